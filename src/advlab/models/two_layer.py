"""Two-layer networks f(x) = (1/sqrt(m)) sum_s a_s phi(w_s'x + b_s) + c."""

import math
from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ..core.errors import AdvlabError
from .activations import Activation, resolve

Init = Literal["symmetric", "paired", "paired_sphere", "torch"]


class TwoLayer(nn.Module):
    """f(x) = (1/sqrt(m)) sum_s a_s phi(w_s'x + b_s) + c; with init "torch", without 1/sqrt(m).

    `weight` holds the w_s, `bias` the b_s, `top` the a_s and `top_bias` c; biases may be absent.
    The top layer (a and c) trains only with `train_top`. But for init "torch", a network whose
    second half mirrors its first (equal w and b, opposite a) is the constant c, to the last bit and
    with no gradient in x: rounding would give its values, and the attacks on it, random signs.
    """

    weight: nn.Parameter
    bias: nn.Parameter | None
    top: Tensor
    top_bias: Tensor | None

    def __init__(
        self,
        weight: Float[Tensor, "m d"],
        top: Float[Tensor, " m"],
        activation: str | Activation,
        bias: Float[Tensor, " m"] | None = None,
        top_bias: Float[Tensor, ""] | None = None,
        *,
        init: Init = "symmetric",
        train_top: bool = False,
    ):
        super().__init__()
        _check(len(weight), init)
        self.activation = resolve(activation)
        self.init: Init = init
        self.scale = 1.0 if init == "torch" else 1 / math.sqrt(len(weight))
        self.weight = nn.Parameter(weight.detach().clone())
        self.bias = None if bias is None else nn.Parameter(bias.detach().clone())
        for name, value in (("top", top), ("top_bias", top_bias)):
            kept = None if value is None else value.detach().clone()
            if train_top and kept is not None:
                self.register_parameter(name, nn.Parameter(kept))
            else:
                self.register_buffer(name, kept)

    @classmethod
    def draw(
        cls,
        d: int,
        width: int,
        activation: str | Activation,
        rng: torch.Generator,
        init: Init = "symmetric",
        omega: float | None = None,
        train_top: bool = False,
        bias: bool = False,
        dtype: torch.dtype = torch.float64,
    ) -> "TwoLayer":
        """A network at its start.

        "symmetric" (benign, section 2.1): a_s = 1, w_s ~ N(0, omega^2 I) and b_s ~ N(0, omega^2)
        for the first half, the same w and b with a_s = -1 for the second, c = 0: f is 0.
        "paired" (convergence, section 5): the same with omega = 1, no biases, and a fair coin a_s =
        +-1 for each pair; "paired_sphere" (its Appendix C.2) has w_s uniform of length sqrt(d).
        "torch": the numbers that nn.Linear(d, width) and nn.Linear(width, 1) draw, in turn.
        """
        if d < 1:
            raise AdvlabError("at least one input", d)
        _check(width, init)
        w, a, b, c = _STARTS[init](d, width, bias, omega, rng, dtype)
        return cls(w, a, activation, b, c, init=init, train_top=train_top)

    def forward(self, x: Float[Tensor, "batch d"]) -> Float[Tensor, " batch"]:
        mirrored = None if self.init == "torch" else self.mirrored()
        if mirrored is not None:
            x = torch.where(mirrored, x.detach(), x)
        z = x @ self.weight.T
        if self.bias is not None:
            z = z + self.bias
        f = self.scale * (self.activation.phi(z) @ self.top)
        if mirrored is not None:
            # The value becomes 0, the gradient in the weights stays.
            f = f - torch.where(mirrored, f.detach(), 0)
        return f if self.top_bias is None else f + self.top_bias

    def mirrored(self) -> Bool[Tensor, ""]:
        """Whether the second half of the network cancels the first."""
        return mirrored(self.weight, self.top, self.bias)


def mirrored(
    weight: Float[Tensor, "*stack m d"],
    top: Float[Tensor, "*stack m"],
    bias: Float[Tensor, "*stack m"] | None = None,
) -> Bool[Tensor, "*stack"]:
    """Whether second halves cancel first ones: equal w and b, opposite a."""
    (w1, w2), (a1, a2) = weight.detach().chunk(2, -2), top.detach().chunk(2, -1)
    same = (w1 == w2).all(-1).all(-1) & (a1 == -a2).all(-1)
    if bias is None:
        return same
    b1, b2 = bias.detach().chunk(2, -1)
    return same & (b1 == b2).all(-1)


Layers = tuple[Tensor, Tensor, Tensor | None, Tensor | None]
"""w (m, d), a (m,), b (m,), c (); without biases the last two are None."""


def _symmetric(
    d: int, width: int, bias: bool, omega: float | None, rng: torch.Generator, dtype: torch.dtype
) -> Layers:
    if omega is None or not 0 <= omega < math.inf:
        raise AdvlabError("omega of 0 or more for a symmetric start", omega)
    half = width // 2
    weight = omega * torch.randn(half, d, generator=rng, dtype=dtype)
    top = torch.ones(half, dtype=dtype)
    w, a = torch.cat([weight, weight]), torch.cat([top, -top])
    if not bias:
        return w, a, None, None
    b = omega * torch.randn(half, generator=rng, dtype=dtype)
    return w, a, torch.cat([b, b]), torch.zeros((), dtype=dtype)


def _paired(
    d: int, width: int, bias: bool, omega: float | None, rng: torch.Generator, dtype: torch.dtype
) -> Layers:
    if bias or omega is not None:
        raise AdvlabError(
            "no biases and no omega with a paired start", f"bias {bias}, omega {omega}"
        )
    weight = torch.randn(width // 2, d, generator=rng, dtype=dtype)
    top = 2.0 * torch.randint(2, (width // 2,), generator=rng).to(dtype) - 1
    return torch.cat([weight, weight]), torch.cat([top, -top]), None, None


def _paired_sphere(
    d: int, width: int, bias: bool, omega: float | None, rng: torch.Generator, dtype: torch.dtype
) -> Layers:
    w, a, b, c = _paired(d, width, bias, omega, rng, dtype)
    return math.sqrt(d) * w / w.norm(dim=1, keepdim=True), a, b, c


def _torch(
    d: int, width: int, bias: bool, omega: float | None, rng: torch.Generator, dtype: torch.dtype
) -> Layers:
    if omega is not None:
        raise AdvlabError("no omega with init torch, which has its own scale", omega)

    def linear(fan_in: int, fan_out: int) -> tuple[Tensor, Tensor | None]:
        # As nn.Linear does it, which takes no generator.
        weight = torch.empty(fan_out, fan_in, dtype=dtype)
        nn.init.kaiming_uniform_(weight, a=math.sqrt(5), generator=rng)
        if not bias:
            return weight, None
        bound = 1 / math.sqrt(fan_in)
        return weight, torch.empty(fan_out, dtype=dtype).uniform_(-bound, bound, generator=rng)

    w, b = linear(d, width)
    a, c = linear(width, 1)
    return w, a[0], b, None if c is None else c[0]


_STARTS: dict[str, Callable[..., Layers]] = {
    "symmetric": _symmetric,
    "paired": _paired,
    "paired_sphere": _paired_sphere,
    "torch": _torch,
}


def _check(width: int, init: str) -> None:
    if init not in _STARTS:
        raise AdvlabError(f"init must be one of {', '.join(_STARTS)}", repr(init))
    if width < 1 or (init != "torch" and width % 2):
        least = "a width of at least 1" if init == "torch" else "an even width of at least 2"
        raise AdvlabError(least, width)
