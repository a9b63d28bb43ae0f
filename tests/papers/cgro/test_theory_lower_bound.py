"""The lower bound's numbers against a table, big integers and brute force."""

from fractions import Fraction
from itertools import pairwise, product
from math import comb

import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist

from advlab.core.errors import AdvlabError
from advlab.papers.cgro import theory

TABLE = {
    0.001: (0.3205, 0.437, 0.4455),
    0.01: (0.2805, 0.334, 0.3385),
    0.05: (0.1828, 0.196, 0.1985),
    0.1: (0.1146, 0.121, 0.1225),
    0.2: (0.0408, 0.048, 0.0495),
}
"""Spec 2.7: C(mu) of the paper, by entropy, and exact at n = 2000."""


@pytest.mark.parametrize("mu", TABLE)
def test_shares_are_those_of_the_table(mu):
    found = [theory.capacity_share(mu, version, 2000) for version in ("paper", "entropy", "exact")]
    np.testing.assert_allclose(found, TABLE[mu], atol=5.1e-4)
    paper, entropy, _ = found
    assert (np.e / mu) ** mu * (np.e / paper) ** paper == pytest.approx(2)
    bits = sum(-p * np.log2(p) - (1 - p) * np.log2(1 - p) for p in (mu, entropy))
    assert bits == pytest.approx(1)


@pytest.mark.parametrize("n", [1, 2, 7, 30, 100, 333])
@pytest.mark.parametrize("mu", [0.0, 0.05, 0.1, 0.29, 0.45])
def test_the_exact_share_by_summing_all_binomials(n, mu):
    radius = int(Fraction(str(mu)) * n)
    near = sum(comb(n, i) for i in range(radius + 1))
    least = min(
        bound for bound in range(n + 1) if near * sum(comb(n, j) for j in range(bound + 1)) >= 2**n
    )
    assert theory.least_vc(n, mu) == least
    assert theory.capacity_share(mu, "exact", n) == least / n


@pytest.mark.parametrize("n", [50, 400, 2000])
def test_shares_are_ordered(n):
    """Claim 17: paper <= entropy <= exact + 1/n."""
    for mu in np.linspace(0.005, 0.32, 12):
        paper, entropy, exact = (
            theory.capacity_share(mu, version, n) for version in ("paper", "entropy", "exact")
        )
        assert paper <= entropy <= exact + 1 / n


def test_no_small_set_of_sign_vectors_comes_near_all():
    """n = 4, mu = 1/4 by brute force: a VC class of dimension l has at most sum_j C(4, j) vectors,
    and fewer than 16/5 of them leave a vector at Hamming distance 2."""
    cube = np.array(list(product((-1, 1), repeat=4)))
    apart = (cube[:, None] != cube).sum(-1)
    least = next(
        size for size in range(1, 17)
        if any((apart[list(chosen)].min(0) <= 1).all() for chosen in subsets(16, size))
    )  # fmt: skip
    ceiling = {bound: sum(comb(4, j) for j in range(bound + 1)) for bound in range(5)}
    assert least == 4
    assert theory.least_vc(4, 0.25) <= min(bound for bound in ceiling if ceiling[bound] >= least)


def subsets(n: int, size: int, first: int = 0):
    if size == 0:
        yield ()
        return
    for i in range(first, n):
        yield from ((i, *rest) for rest in subsets(n, size - 1, i + 1))


@pytest.mark.parametrize(("d", "delta"), [(2, 0.1), (3, 0.05), (4, 0.13), (3, 0.5), (5, 0.2)])
def test_packings_are_packings(d, delta):
    grid = theory.packing(d, delta)
    assert grid.shape == (theory.packing_size(d, delta), d - 1)
    assert len(grid) == (1 + int(Fraction(1) / (2 * Fraction(str(delta))))) ** (d - 1)
    assert grid.min() >= 0
    assert grid.max() <= 1
    assert pdist(grid).min() >= 2 * delta * (1 - 1e-12)
    phi = np.random.default_rng(0).choice([-1.0, 1.0], len(grid))
    x = theory.lifted(grid, phi, 0.01, delta)
    np.testing.assert_array_equal(np.sign(x[:, -1] - 0.5), phi)
    if 0 < (phi > 0).sum() < len(phi):
        assert cdist(x[phi > 0], x[phi < 0]).min() > 2 * delta


def test_packings_grow_exponentially():
    assert [theory.packing_size(d, 0.1) for d in (2, 3, 16)] == [6, 36, 6**15]


def dense_vc(sizes: list[int]) -> tuple[int, float]:
    """Weights and biases of a dense network, and L + (sum_i W_<=i) log2(4e R log2(2e R)) of it."""
    by_layer = [(fan_in + 1) * fan_out for fan_in, fan_out in pairwise(sizes)]
    R = sum(i * k for i, k in enumerate(sizes[1:], 1))
    logs = np.log2(4 * np.e * R * np.log2(2 * np.e * R))
    return sum(by_layer), float(len(by_layer) + np.cumsum(by_layer).sum() * logs)


@pytest.mark.parametrize(("size", "d"), [(2, 3), (5, 2), (12, 7)])
def test_the_envelope_holds_all_small_networks(size, d):
    _, direct = dense_vc([d] + [size] * (size - 1) + [1])
    assert theory.envelope_vc(size, d) == pytest.approx(direct, rel=1e-12)
    for hidden in range(1, size):
        for width in range(1, size + 1):
            parameters, vc = dense_vc([d] + [width] * hidden + [1])
            assert parameters > size or vc <= theory.envelope_vc(size, d)


@pytest.mark.parametrize("d", [4, 8, 12])
def test_the_least_size_is_the_first_whose_envelope_reaches(d):
    least = theory.least_parameters(d, 0.05, 0.05)
    target = theory.capacity_share(0.05) * theory.packing_size(d, 0.05)
    assert theory.required_vc(d, 0.05, 0.05) == pytest.approx(target)
    assert theory.envelope_vc(least, d) >= target
    assert least == 2 or theory.envelope_vc(least - 1, d) < target


def test_the_least_size_grows_linearly_on_a_log_scale():
    """At a quarter of the rate of n, a little less because of the logarithm."""
    dims = np.arange(16, 41, 4)
    logs = np.log([theory.least_parameters(int(d), 0.1, 0.05) for d in dims])
    rates = np.diff(logs) / np.diff(dims) / np.log(6)
    assert (rates > 0.2).all()
    assert (rates < 0.25).all()


def test_the_papers_order_by_hand():
    assert theory.parameters_order(1e8, 0.2, 3.0) == pytest.approx(
        (0.2e8 / (3 * np.log(1e8))) ** 0.25
    )


BAD = {
    "mu too large for the paper": (lambda: theory.capacity_share(0.33, "paper"), "below 0.3276"),
    "mu too large": (lambda: theory.capacity_share(0.5), "below 0.5"),
    "no n": (lambda: theory.capacity_share(0.1, "exact"), "state n"),
    "n too large": (lambda: theory.least_vc(10**6, 0.1), "at most 20000"),
    "too many points": (lambda: theory.packing(12, 0.05), "larger delta"),
    "a version": (lambda: theory.capacity_share(0.1, "best"), "paper or entropy or exact"),
    "one dimension": (lambda: theory.packing_size(1, 0.1), "at least 2"),
    "no points": (lambda: theory.parameters_order(1.0, 0.1), "n above 1"),
    "labels": (lambda: theory.lifted([[0.1], [0.9]], [1, 0], 0.05, 0.1), "-1 and"),
    "a height": (lambda: theory.lifted([[0.1], [0.9]], [1, -1], 0.2, 0.1), "below delta"),
}


@pytest.mark.parametrize(("call", "says"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused(call, says):
    with pytest.raises(AdvlabError, match=says):
        call()
