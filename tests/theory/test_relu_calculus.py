"""Explicit networks against the functions they stand for; weights counted by hand."""

from itertools import pairwise

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from advlab.core.errors import AdvlabError
from advlab.papers.cgro.theory import product_error, product_network
from advlab.theory import relu_calculus as calculus

T = np.linspace(-3, 3, 6001)


def counted(network: calculus.Network) -> int:
    """Entries of dense weights, stored entries of sparse ones, and biases, one by one."""
    total = 0
    for layer in network.layers:
        stored = isinstance(layer.weight, sparse.csr_array)
        total += len(layer.weight.data) if stored else np.prod(layer.weight.shape)
        total += len(layer.bias)
    return int(total)


@pytest.mark.parametrize("k", range(1, 11))
def test_squares_err_upwards_by_exactly_their_error(k):
    """Claim 14: on the middles of all cells of mesh 2^-k, and between them."""
    q = calculus.square_network(k)
    assert counted(q) == q.parameters == 20 * k - 7
    middles = (np.arange(2**k) + 0.5) / 2**k
    excess = q(middles[:, None]) - middles**2
    np.testing.assert_allclose(excess, 2.0 ** (-2 * k - 2), atol=1e-12, rtol=0)
    t = np.linspace(0, 1, 12_345)
    excess = q(t[:, None]) - t**2
    assert excess.min() >= -1e-14
    assert excess.max() <= calculus.square_error(k) + 1e-12


@pytest.mark.parametrize("bound", [1.0, 2.5])
@pytest.mark.parametrize("k", [1, 2, 3, 5, 8])
def test_products_are_within_their_error_which_is_attained(k, bound):
    mul = product_network(k, bound)
    assert counted(mul) == mul.parameters == 60 * k + 3
    # Cells have corners at multiples of 2B/2^k: a mesh four times as fine, on the inside.
    t = np.linspace(-bound, bound, 2 ** (min(k, 5) + 3) + 1)
    x, y = (one.ravel() for one in np.meshgrid(t, t))
    error = np.abs(mul(np.column_stack([x, y])) - x * y)
    allowed = 4 * bound**2 * 2.0 ** (-2 * k - 2)
    assert product_error(k, bound) == pytest.approx(allowed)
    assert error.max() <= allowed + 1e-12
    if k <= 5:
        assert error.max() == pytest.approx(allowed, rel=1e-9)
    assert np.abs(mul(np.column_stack([t, 0 * t]))).max() < 1e-12
    assert np.abs(mul(np.column_stack([0 * t, t]))).max() < 1e-12


@pytest.mark.parametrize("k", [1, 2, 4, 7])
def test_products_of_positive_numbers_need_no_absolute_values(k):
    mul, full = product_network(k, 2.0, signed=False), product_network(k, 2.0)
    assert counted(mul) == mul.parameters == 60 * k - 19
    t = np.linspace(0, 2, 173)
    pairs = np.stack(np.meshgrid(t, t), axis=-1)
    np.testing.assert_allclose(mul(pairs), full(pairs), atol=1e-12)
    assert mul(pairs).min() >= -1e-12
    assert mul(pairs).max() <= 4 + 1e-12


@pytest.mark.parametrize("k", [1, 3, 6])
def test_products_with_the_bound_itself_are_exact(k):
    """What makes the paper's assembly exact on balls: mul(x, B) = B x for x in [0, B]."""
    t = np.linspace(0, 1.5, 999)
    mul = product_network(k, 1.5)
    np.testing.assert_allclose(mul(np.column_stack([t, 0 * t + 1.5])), 1.5 * t, atol=1e-12)


PIECES = {
    "absolute": (calculus.absolute(), np.abs, 7),
    "clip": (calculus.clip(-1, 2.0), lambda t: np.clip(t, -1, 2), 7),
    "minimum": (calculus.minimum(0.5), lambda t: np.minimum(t, 0.5), 4),
    "soft indicator": (
        calculus.soft_indicator(-1.0, 0.5),
        lambda t: np.interp(t, [-1.0, 0.5], [1.0, 0.0]),
        7,
    ),
}


@pytest.mark.parametrize(("network", "function", "size"), PIECES.values(), ids=PIECES.keys())
def test_pieces_are_exact(network, function, size):
    np.testing.assert_allclose(network(T[:, None]), function(T), atol=1e-14)
    assert counted(network) == network.parameters == size


@pytest.mark.parametrize(("n", "d"), [(1, 1), (3, 2), (4, 5), (2, 8)])
def test_l1_and_linf_distances_are_exact(n, d):
    rng = np.random.default_rng([n, d])
    points, x = rng.normal(size=(n, d)), rng.normal(size=(200, d))
    for make, metric in (
        (calculus.l1_distances, "cityblock"),
        (calculus.linf_distances, "chebyshev"),
    ):
        network = make(points)
        np.testing.assert_allclose(network.values(x), cdist(x, points, metric), atol=1e-12)
        np.testing.assert_allclose(network(x), cdist(x, points, metric)[:, 0], atol=1e-12)
        assert counted(network) == network.parameters
    assert calculus.l1_distances(points).parameters == n * (6 * d + 1)


@pytest.mark.parametrize("style", ["shared", "paper"])
@pytest.mark.parametrize("k", [1, 3, 6])
def test_squared_distances_err_upwards_by_at_most_their_error(style, k):
    rng = np.random.default_rng(k)
    n, d, low, width = 5, 3, -0.3, 1.7
    points = low + width * rng.random((n, d))
    x = low + width * rng.random((20_000, d))
    network = calculus.squared_distances(points, k, low, width, style)
    excess = network.values(x) - cdist(x, points, "sqeuclidean")
    error = calculus.squared_distance_error(d, k, width)
    assert error == pytest.approx(width**2 * d / 4 ** (k + 1))
    assert excess.min() >= -1e-12
    assert 0.8 * error < excess.max() <= error + 1e-12
    by_hand = {"shared": d * (22 * k - 6) + 1 + n * (d + 2), "paper": n * (20 * k * d + 1)}
    assert counted(network) == network.parameters == by_hand[style]


def test_the_error_of_a_squared_distance_is_attained_in_the_middle_of_a_cell():
    network = calculus.squared_distances(np.zeros((1, 4)), 3, 0.0, 1.0)
    middle = np.full(4, 5.5 / 8)
    assert network(middle) - 4 * 5.5**2 / 64 == pytest.approx(4 * 2.0**-8, abs=1e-14)


def test_linf_indicators_fall_from_one_to_zero_over_the_gap():
    rng = np.random.default_rng(0)
    points, x = rng.random((6, 3)), 2 * rng.random((5000, 3)) - 0.5
    network = calculus.linf_indicators(points, 0.2, 0.15)
    found, far = np.maximum(network.values(x), 0), cdist(x, points, "chebyshev")
    np.testing.assert_allclose(found[far <= 0.2], 1.0, atol=1e-12)
    np.testing.assert_allclose(found[far >= 0.35], 0.0, atol=1e-12)
    assert ((found >= 0) & (found <= 1)).all()
    assert network.parameters == 6 * (6 * 3 + 1)


def random_network(sizes: tuple[int, ...], seed: int) -> calculus.Network:
    rng = np.random.default_rng(seed)
    pairs = pairwise(sizes)
    return calculus.Network(
        tuple(calculus.Layer(rng.normal(size=(b, a)), rng.normal(size=b)) for a, b in pairs)
    )


def test_how_networks_are_put_together():
    f, g = random_network((3, 5, 2), 0), random_network((2, 4, 4, 1), 1)
    h = random_network((3, 2, 3), 2)
    x = np.random.default_rng(3).normal(size=(50, 3))
    merged = calculus.chain(f, g)
    np.testing.assert_allclose(merged(x), g(f.values(x)), atol=1e-12)
    assert merged.depth == f.depth + g.depth - 1
    apart = calculus.rectified(f, g)
    np.testing.assert_allclose(apart(x), g(np.maximum(f.values(x), 0)), atol=1e-12)
    assert apart.parameters == f.parameters + g.parameters
    both = calculus.beside(f, h)
    np.testing.assert_allclose(both.values(x), np.hstack([f.values(x), h.values(x)]), atol=1e-12)
    assert both.parameters == f.parameters + h.parameters
    twice = calculus.across(g, 2)
    np.testing.assert_allclose(
        twice.values(x[:, [0, 1, 2, 0]]), np.stack([g(x[:, :2]), g(x[:, [2, 0]])], -1), atol=1e-12
    )
    assert twice.parameters == 2 * g.parameters
    longer = calculus.lengthened(f, 5)
    np.testing.assert_allclose(longer.values(x), np.maximum(f.values(x), 0), atol=1e-12)
    assert longer.parameters == f.parameters + 3 * 2 * 2
    moved = calculus.reading(g, [2, 0], 3)
    np.testing.assert_allclose(moved(x), g(x[:, [2, 0]]), atol=1e-12)
    assert moved.parameters == g.parameters


F, G = random_network((3, 5, 2), 0), random_network((3, 4), 1)
BAD = {
    "sizes that do not match": (lambda: calculus.chain(F, G), "2 inputs to come next"),
    "sizes with a ReLU": (lambda: calculus.rectified(F, G), "2 inputs to come next"),
    "unequal depths": (lambda: calculus.beside(F, G), "equal inputs and depth"),
    "an empty interval": (lambda: calculus.clip(1.0, 1.0), "lower end is below"),
    "an indicator the wrong way": (lambda: calculus.soft_indicator(2.0, 1.0), "lower end"),
    "no bound": (lambda: product_network(2, 0.0), "bound must be positive"),
    "no depth": (lambda: product_error(0), "depth must be"),
    "a point outside": (
        lambda: calculus.squared_distances([[0.5, 1.2]], 3, 0.0, 1.0),
        "from 0.5 to 1.2",
    ),
    "a style": (lambda: calculus.squared_distances([[0.5]], 3, 0.0, 1.0, "mine"), "shared or pape"),
    "no gap": (lambda: calculus.linf_indicators([[0.5]], 0.1, 0.0), "gap must be positive"),
    "too deep": (lambda: calculus.least_square_depth(1.0, 1e-20), "depth 20 resolve"),
}


@pytest.mark.parametrize(("call", "says"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused(call, says):
    with pytest.raises(AdvlabError, match=says):
        call()
