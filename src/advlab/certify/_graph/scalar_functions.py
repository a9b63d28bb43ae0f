"""Functions of one number that networks apply entry by entry, and what bounds need to know of them.

Inflection points of GELU (tanh form), SiLU and Mish are roots of the second derivative in float64.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

INF = math.inf


@dataclass(frozen=True)
class ScalarFunction:
    """f with pieces on which it is convex, concave or linear: all that sound lines need.

    Args:
        name: As it is called.
        value: f.
        derivative: f'; at the end of a piece that is not linear, that piece's.
        breaks: Where one piece ends and the next begins.
        curvature: Of each piece: 1 convex, -1 concave, 0 linear.
        monotone: 1 rising, -1 falling, 0 neither.
        lipschitz: max |f'|.
        range: Values it never leaves.
        domain: Outside it there is no value, hence no bound.
        pole: Where it has no value inside the domain.
        error: How far the network's own f may be from this one, rounding aside.
    """

    name: str
    value: Callable[[Tensor], Tensor]
    derivative: Callable[[Tensor], Tensor]
    breaks: tuple[float, ...] = ()
    curvature: tuple[int, ...] = (1,)
    monotone: int = 1
    lipschitz: float = INF
    range: tuple[float, float] = (-INF, INF)
    domain: tuple[float, float] = (-INF, INF)
    pole: float | None = None
    error: float = 0.0

    def negative(self) -> "ScalarFunction":
        """-f."""
        return ScalarFunction(
            f"-{self.name}", lambda z: -self.value(z), lambda z: -self.derivative(z), self.breaks,
            tuple(-c for c in self.curvature), -self.monotone, self.lipschitz,
            (-self.range[1], -self.range[0]), self.domain, self.pole, self.error,
        )  # fmt: skip

    def undefined(self, low: Tensor, high: Tensor) -> Tensor:
        """Where some point of the interval has no value, or the interval is not finite."""
        outside = ~(low.isfinite() & high.isfinite())
        outside = outside | (low < self.domain[0]) | (high > self.domain[1])
        if self.pole is not None:
            outside = outside | ((low <= self.pole) & (high >= self.pole))
        return outside


def _sigmoid_derivative(z: Tensor) -> Tensor:
    s = torch.sigmoid(z)
    return s * (1 - s)


SIGMOID = ScalarFunction(
    "sigmoid", torch.sigmoid, _sigmoid_derivative, (0.0,), (1, -1), 1, 0.25, (0.0, 1.0)
)
TANH = ScalarFunction(
    "tanh", torch.tanh, lambda z: 1 - torch.tanh(z) ** 2, (0.0,), (1, -1), 1, 1.0, (-1.0, 1.0)
)
ERF = ScalarFunction(
    "erf", torch.erf, lambda z: 2 / math.sqrt(math.pi) * torch.exp(-z * z),
    (0.0,), (1, -1), 1, 2 / math.sqrt(math.pi), (-1.0, 1.0),
)  # fmt: skip
ATAN = ScalarFunction(
    "atan", torch.atan, lambda z: 1 / (1 + z * z),
    (0.0,), (1, -1), 1, 1.0, (-math.pi / 2, math.pi / 2),
)  # fmt: skip


def _gelu_derivative(z: Tensor) -> Tensor:
    density = torch.exp(-z * z / 2) / math.sqrt(2 * math.pi)
    return torch.special.ndtr(z) + z * density


def _gelu_tanh_derivative(z: Tensor) -> Tensor:
    c = math.sqrt(2 / math.pi)
    t = torch.tanh(c * (z + 0.044715 * z**3))
    return (1 + t) / 2 + z * (1 - t * t) * c * (1 + 3 * 0.044715 * z * z) / 2


GELU = ScalarFunction(
    "gelu", F.gelu, _gelu_derivative,
    (-math.sqrt(2), math.sqrt(2)), (-1, 1, -1), 0, 1.12891, (-0.17, INF),
)  # fmt: skip
GELU_TANH = ScalarFunction(
    "gelu", lambda z: F.gelu(z, approximate="tanh"), _gelu_tanh_derivative,
    (-1.4185040087908284, 1.4185040087908284), (-1, 1, -1), 0, 1.129, (-0.1701, INF),
)  # fmt: skip


def _silu_derivative(z: Tensor) -> Tensor:
    s = torch.sigmoid(z)
    return s * (1 + z * (1 - s))


SILU = ScalarFunction(
    "silu", F.silu, _silu_derivative,
    (-2.3993572805154677, 2.3993572805154677), (-1, 1, -1), 0, 1.09984, (-0.2785, INF),
)  # fmt: skip


def _mish_derivative(z: Tensor) -> Tensor:
    t = torch.tanh(F.softplus(z))
    return t + z * (1 - t * t) * torch.sigmoid(z)


MISH = ScalarFunction(
    "mish", F.mish, _mish_derivative,
    (-2.2563763963607935, 1.4905711794854282), (-1, 1, -1), 0, 1.0885, (-0.309, INF),
)  # fmt: skip
LOG_SIGMOID = ScalarFunction(
    "logsigmoid", F.logsigmoid, lambda z: torch.sigmoid(-z), (), (-1,), 1, 1.0, (-INF, 0.0)
)
HARDSWISH = ScalarFunction(
    "hardswish", F.hardswish,
    lambda z: torch.where(z > 3, 1.0, torch.where(z < -3, 0.0, (2 * z + 3) / 6)),
    (-3.0, 3.0), (0, 1, 0), 0, 1.5, (-0.3751, INF),
)  # fmt: skip
EXP = ScalarFunction("exp", torch.exp, torch.exp, range=(0.0, INF))
EXPM1 = ScalarFunction("expm1", torch.expm1, torch.exp, range=(-1.0, INF))
LOG = ScalarFunction("log", torch.log, lambda z: 1 / z, (), (-1,), domain=(0.0, INF), pole=0.0)
LOG1P = ScalarFunction(
    "log1p", torch.log1p, lambda z: 1 / (1 + z), (), (-1,), domain=(-1.0, INF), pole=-1.0
)
SQRT = ScalarFunction(
    "sqrt", torch.sqrt, lambda z: 0.5 * z.clamp(min=torch.finfo(z.dtype).tiny).rsqrt(),
    (), (-1,), range=(0.0, INF), domain=(0.0, INF),
)  # fmt: skip
RSQRT = ScalarFunction(
    "rsqrt", torch.rsqrt, lambda z: -0.5 * z.rsqrt() / z,
    monotone=-1, range=(0.0, INF), domain=(0.0, INF), pole=0.0,
)  # fmt: skip
RECIPROCAL = ScalarFunction(
    "reciprocal", torch.reciprocal, lambda z: -1 / (z * z), (0.0,), (-1, 1), -1, pole=0.0
)


def softplus(beta: float, threshold: float) -> ScalarFunction:
    """log(1 + exp(beta z)) / beta; PyTorch takes z itself where beta z > threshold."""
    return ScalarFunction(
        "softplus", lambda z: F.softplus(z, beta, threshold), lambda z: torch.sigmoid(beta * z),
        lipschitz=1.0, range=(0.0, INF), error=1.1 * math.exp(-threshold) / beta,
    )  # fmt: skip


def elu(alpha: float, scale: float, input_scale: float) -> ScalarFunction:
    """scale z for z > 0, scale alpha (exp(input_scale z) - 1) elsewhere; SELU and CELU too."""
    steep = scale * alpha * input_scale

    def value(z: Tensor) -> Tensor:
        left = scale * alpha * torch.expm1(input_scale * z.clamp(max=0))
        return torch.where(z > 0, scale * z, left)

    return ScalarFunction(
        "elu", value,
        lambda z: torch.where(z > 0, scale, steep * torch.exp(input_scale * z.clamp(max=0))),
        (0.0,), (1, 0), 1, max(scale, steep), (-scale * alpha, INF),
    )  # fmt: skip


def power(exponent: int) -> ScalarFunction:
    """z^exponent for a whole number from 2 on."""
    even = exponent % 2 == 0
    return ScalarFunction(
        f"power {exponent}", lambda z: z**exponent, lambda z: exponent * z ** (exponent - 1),
        () if even else (0.0,), (1,) if even else (-1, 1), 0 if even else 1,
        range=(0.0, INF) if even else (-INF, INF),
    )  # fmt: skip
