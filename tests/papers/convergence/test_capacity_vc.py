"""VC calculators against the growth function they come from, and a search without bisection."""

from itertools import pairwise

import numpy as np
import pytest

from advlab.core.errors import AdvlabError
from advlab.papers.convergence.theory import capacity


def growth_bound(sizes: list[int]) -> int:
    """The most m with 2^m <= prod_i 2 (2 e m k_i i / W_<=i)^{W_<=i}, the bound's own proof."""
    counts = np.cumsum([(a + 1) * b for a, b in pairwise(sizes)])
    layers = np.arange(1, len(sizes))
    width = np.array(sizes[1:])

    def patterns(m: int) -> float:
        inside = np.maximum(2 * np.e * m * width * layers / counts, 2.0)
        return float((1 + counts * np.log2(inside)).sum())

    m = 1
    while patterns(2 * m) >= 2 * m:
        m *= 2
    return max(i for i in range(m, 2 * m) if patterns(i) >= i)


@pytest.mark.parametrize(
    "sizes", [[1, 1, 1], [3, 1, 1], [3, 12, 1], [10, 8, 1], [5, 7, 7, 1], [2, 30, 4, 9, 1], [4, 1]]
)
def test_the_upper_bound_covers_the_growth_function(sizes):
    assert growth_bound(sizes) <= capacity.vc_upper_bound(sizes) <= 6 * growth_bound(sizes)


def test_the_upper_bound_by_hand():
    # W_<=1 = 12, W_<=2 = 12 + 4 = 16, R = 3 + 2.
    expected = 2 + 28 * np.log2(20 * np.e * np.log2(10 * np.e))
    assert capacity.vc_upper_bound([3, 3, 1]) == pytest.approx(expected)
    assert capacity.network_parameters([3, 3, 1]) == 16


def test_a_half_space_is_below_its_bound():
    """Half-spaces of R^d have VC dimension d + 1, which is the number of their parameters."""
    for d in (1, 5, 50):
        assert d + 1 == capacity.network_parameters([d, 1]) < capacity.vc_upper_bound([d, 1])


def test_the_sandwich():
    found = capacity.vc_sandwich(1000, 10)
    assert found.lower == pytest.approx(1e4 * np.log(100))
    assert found.upper == pytest.approx(1e4 * np.log(1000))


@pytest.mark.parametrize(("n", "d"), [(12, 3), (300, 10), (1000, 50), (1001, 7), (2, 1)])
@pytest.mark.parametrize("hidden", [1, 2])
def test_the_smallest_width_is_the_first_that_passes(n, d, hidden):
    target = n // 2 * d
    assert capacity.robust_vc_floor(n, d) == target
    first = next(
        m for m in range(1, 1000) if capacity.vc_upper_bound([d, *[m] * hidden, 1]) >= target
    )
    assert capacity.smallest_width(n, d, hidden) == first


def test_the_smallest_width_grows_with_n_and_hardly_with_d():
    assert capacity.smallest_width(10_000, 10) > 5 * capacity.smallest_width(1000, 10)
    wide, narrow = capacity.smallest_width(10_000, 100), capacity.smallest_width(10_000, 10)
    assert 0.7 < wide / narrow < 1.3


BAD = {
    "no layer": lambda: capacity.vc_upper_bound([3]),
    "two outputs": lambda: capacity.vc_upper_bound([3, 4, 2]),
    "empty layer": lambda: capacity.network_parameters([3, 0, 1]),
    "no parameter": lambda: capacity.vc_sandwich(0, 1),
    "more layers than parameters": lambda: capacity.vc_sandwich(3, 4),
    "one point": lambda: capacity.smallest_width(1, 3),
    "no hidden layer": lambda: capacity.smallest_width(4, 3, 0),
}


@pytest.mark.parametrize("call", BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused(call):
    with pytest.raises(AdvlabError):
        call()
