"""Deep ReLU networks of the convergence paper (section 4): square hidden layers train, ends do not.

The paper's derivative of ReLU at 0 is 1, autograd's is 0: a pre-activation is exactly 0 with
probability zero, so the two agree almost surely.
"""

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ....core.errors import AdvlabError


class DeepReLU(nn.Module):
    """f(x) = a'x_H with x_0 = A x and x_h = relu(W_h x_{h-1}), h = 1, ..., H; no biases.

    There is no ReLU on x_0, so f is linear in x along the pieces where no hidden unit changes its
    sign.

    Args:
        bottom: A (m, d), fixed.
        hidden: the W_h (m, m), which train.
        top: a (m,), fixed.
    """

    bottom: Tensor
    top: Tensor

    def __init__(
        self,
        bottom: Float[Tensor, "m d"],
        hidden: Sequence[Float[Tensor, "m m"]],
        top: Float[Tensor, " m"],
    ):
        super().__init__()
        _check(bottom.shape[1], len(bottom), len(hidden))
        self.register_buffer("bottom", bottom.detach().clone())
        self.hidden = nn.ParameterList(nn.Parameter(w.detach().clone()) for w in hidden)
        self.register_buffer("top", top.detach().clone())

    @classmethod
    def draw(
        cls,
        d: int,
        width: int,
        depth: int,
        rng: torch.Generator,
        input_var: float = 2.0,
        dtype: torch.dtype = torch.float64,
    ) -> "DeepReLU":
        """A ~ N(0, input_var/m), W_h ~ N(0, 2/m), a ~ N(0, 1), all entries independent.

        Args:
            d: the dimension of the inputs.
            width: m.
            depth: H.
            rng: where the weights are drawn from.
            input_var: with the paper's 2 and ||x|| = 1 the norms of x_h are near sqrt(2) and those
                of W_h x_{h-1} near 2; Lemma A.2 says [2/3, 4/3], which 1 gives for x_h.
            dtype: of the weights.
        """
        _check(d, width, depth)
        if not 0 < input_var < math.inf:
            raise AdvlabError("a positive variance of the first layer", input_var)

        def entries(*shape: int) -> Tensor:
            return torch.randn(*shape, generator=rng, dtype=dtype)

        bottom = math.sqrt(input_var / width) * entries(width, d)
        hidden = [math.sqrt(2 / width) * entries(width, width) for _ in range(depth)]
        return cls(bottom, hidden, entries(width))

    def forward(self, x: Float[Tensor, "batch d"]) -> Float[Tensor, " batch"]:
        state = x @ self.bottom.T
        for weight in self.hidden:
            state = (state @ weight.T).relu()
        return state @ self.top

    def preactivations(self, x: Float[Tensor, "batch d"]) -> list[Float[Tensor, "batch m"]]:
        """W_h x_{h-1} of each hidden layer; the units that are on are those above 0."""
        state, found = x @ self.bottom.T, []
        for weight in self.hidden:
            found.append(state @ weight.T)
            state = found[-1].relu()
        return found


def _check(d: int, width: int, depth: int) -> None:
    if min(d, width, depth) < 1:
        raise AdvlabError(
            "inputs, width and depth of at least 1", f"d {d}, width {width}, depth {depth}"
        )
