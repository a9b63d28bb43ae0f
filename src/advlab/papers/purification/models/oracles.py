"""Reference classifiers of sparse coding that know the dictionary M and the labels' w* (section 3).

All read an input through its coordinates u_j = <M_j, x>. The linear oracle breaks at l2 radius
1/sqrt(d); the thresholded and the ReLU oracle are robust up to o(1/sqrt(k)), which is what
adversarial training can hope for; polynomials of low degree cannot be robust.
"""

from math import sqrt

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ....core.errors import AdvlabError
from ....models.linear import Linear
from .symmetric_relu import SymmetricReLU


class _Oracle(nn.Module):
    """f(x) = sum_j w_j phi(<M_j, x>) for an odd phi; nothing trains."""

    atoms: Tensor
    w: Tensor

    def __init__(self, M: Float[Tensor, "d D"], w: Float[Tensor, " D"]):
        super().__init__()
        self.register_buffer("atoms", M.detach().mT.clone())
        self.register_buffer("w", w.detach().clone())

    def forward(self, x: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        return self.entries(x @ self.atoms.mT) @ self.w

    def entries(self, u: Float[Tensor, "n D"]) -> Float[Tensor, "n D"]:
        raise NotImplementedError


class ThresholdedOracle(_Oracle):
    """f(x) = sum_j w*_j u_j 1[|u_j| >= threshold], the threshold 1/(2 sqrt k) as a rule."""

    def __init__(self, M: Float[Tensor, "d D"], w: Float[Tensor, " D"], threshold: float):
        super().__init__(M, w)
        self.threshold = _positive("a positive threshold", threshold)

    def entries(self, u: Float[Tensor, "n D"]) -> Float[Tensor, "n D"]:
        return torch.where(u.abs() >= self.threshold, u, 0.0)


class ReLUOracle(_Oracle):
    """f(x) = sum_j w*_j [ReLU(u_j - b) - ReLU(-u_j - b)]: every entry has the same threshold b."""

    def __init__(self, M: Float[Tensor, "d D"], w: Float[Tensor, " D"], bias: float):
        super().__init__(M, w)
        self.bias = _positive("a positive bias", bias)

    def entries(self, u: Float[Tensor, "n D"]) -> Float[Tensor, "n D"]:
        return u - u.clamp(-self.bias, self.bias)


class PolynomialOracle(_Oracle):
    """f(x) = sum_j w*_j u_j^degree, of an odd degree: low complexity, hence not robust."""

    def __init__(self, M: Float[Tensor, "d D"], w: Float[Tensor, " D"], degree: int = 3):
        super().__init__(M, w)
        if degree < 1 or degree % 2 == 0:
            raise AdvlabError("an odd degree, as labels are odd in x", degree)
        self.degree = degree

    def entries(self, u: Float[Tensor, "n D"]) -> Float[Tensor, "n D"]:
        return u**self.degree


def linear_oracle(M: Float[Tensor, "d D"], w: Float[Tensor, " D"]) -> Linear:
    """f(x) = <w*, M'x>, whose robust accuracy is known exactly."""
    return Linear(M @ w)


def symmetric_oracle(M: Float[Tensor, "d D"], w: Float[Tensor, " D"], bias: float) -> SymmetricReLU:
    """The ReLU oracle as a network that training could reach: rows w*_j M_j, top weights 1, one b.

    Its entries have the thresholds b/|w*_j|, not b: where all |w*_j| = 1 it is `ReLUOracle`.
    """
    return SymmetricReLU((M * w).mT, _positive("a positive bias", bias))


def oracle_bias(k: float) -> float:
    """1/(2 sqrt k): half the least entry of z that is not zero."""
    return 1 / (2 * sqrt(_positive("a positive k", k)))


def _positive(rule: str, value: float) -> float:
    if not value > 0:
        raise AdvlabError(rule, value)
    return value
