"""VC dimension of ReLU networks: cited bounds, and the width that robust fitting needs.

H is the number of layers with weights, W of weights and biases. The upper bound is quoted, not
proved here: Bartlett, Harvey, Liaw and Mehrabian (2019), their bound with all its constants.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from .....core.checks import whole
from .....core.errors import AdvlabError


@dataclass(frozen=True)
class Sandwich:
    """Omega(lower) <= VC <= O(upper): orders only, constants are left out."""

    lower: float
    upper: float


def vc_sandwich(parameters: int, depth: int) -> Sandwich:
    """H W log(W/H) and H W log W (cited), for W parameters in H layers."""
    size, layers = whole("parameters", parameters, 1), whole("depth", depth, 1)
    if layers > size:
        raise AdvlabError("at least one parameter a layer", f"{size} in {layers} layers")
    return Sandwich(layers * size * np.log(size / layers), layers * size * np.log(size))


def network_parameters(sizes: Sequence[int]) -> int:
    """Weights and biases of a dense network with these layers, input and output included."""
    return sum(_by_layer(sizes))


def vc_upper_bound(sizes: Sequence[int]) -> float:
    """VC <= L + (sum_i W_<=i) log2(4e R log2(2e R)), R = sum_i i k_i (cited).

    `sizes` are d, k_1, ..., k_L of a dense ReLU network with k_L = 1; W_<=i counts the weights and
    biases of layers 1 to i.
    """
    by_layer = _by_layer(sizes)
    if sizes[-1] != 1:
        raise AdvlabError("a network with one output", f"{sizes[-1]} outputs")
    up_to = np.cumsum(by_layer)
    R = sum(i * k for i, k in enumerate(sizes[1:], 1))
    return float(len(by_layer) + up_to.sum() * np.log2(4 * np.e * R * np.log2(2 * np.e * R)))


def robust_vc_floor(n: int, d: int) -> int:
    """floor(n/2) d: the VC dimension that robust fitting of n points forces (Theorem 6.1)."""
    return whole("n", n, 2) // 2 * whole("d", d, 1)


def smallest_width(n: int, d: int, hidden: int = 1) -> int:
    """The least width of `hidden` layers whose VC upper bound reaches floor(n/2) d.

    Necessary, not sufficient: no narrower network fits all n-tuples of balls robustly.
    """
    target, layers = robust_vc_floor(n, d), whole("hidden", hidden, 1)

    def passes(width: int) -> bool:
        return vc_upper_bound([d, *[width] * layers, 1]) >= target

    high = 1
    while not passes(high):
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high


def _by_layer(sizes: Sequence[int]) -> list[int]:
    if len(sizes) < 2:
        raise AdvlabError("the sizes of a network from input to output", list(sizes))
    checked = [whole("a layer's size", size, 1) for size in sizes]
    return [(fan_in + 1) * fan_out for fan_in, fan_out in pairwise(checked)]
