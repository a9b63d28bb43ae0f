"""Explicit interpolators against brute force over their balls: corners, samples, PGD."""

from itertools import product

import numpy as np
import pytest
import torch
from scipy import sparse

from advlab import theory
from advlab.attacks import PGD
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.papers.convergence.theory import capacity
from advlab.theory import relu_calculus as calculus
from advlab.threats import Ball


def problem(n: int, d: int, norm: str, share: float, seed: int = 0):
    """Random points and labels, and delta as a share of half their separation."""
    rng = np.random.default_rng([n, d, seed])
    x = 3 * rng.random((n, d)) - 1
    y = rng.permutation(np.where(np.arange(n) < n // 2, -1.0, 1.0))
    return x, y, share * theory.separation(x, y, norm).distance / 2


def in_l2_balls(x: np.ndarray, delta: float, count: int, seed: int = 0) -> np.ndarray:
    """Points of each ball: half on its rim, half uniform, and the ends of every axis."""
    rng = np.random.default_rng(seed)
    way = rng.standard_normal((len(x), count, x.shape[1]))
    way /= np.linalg.norm(way, axis=-1, keepdims=True)
    way[:, ::2] *= rng.random((len(x), (count + 1) // 2, 1)) ** (1 / x.shape[1])
    axes = np.concatenate([np.eye(x.shape[1]), -np.eye(x.shape[1])])
    axes = np.broadcast_to(axes, (len(x), *axes.shape))
    return x[:, None] + delta * np.concatenate([way, axes], axis=1)


def in_torch(network: calculus.Network):
    """The same layers, evaluated by torch: a second implementation, and one to climb."""

    def dense(weight):
        return torch.as_tensor(weight.toarray() if isinstance(weight, sparse.csr_array) else weight)

    parts = [(dense(layer.weight), torch.as_tensor(layer.bias)) for layer in network.layers]

    def forward(x: torch.Tensor) -> torch.Tensor:
        for weight, bias in parts[:-1]:
            x = (x @ weight.T + bias).relu()
        return (x @ parts[-1][0].T + parts[-1][1])[:, 0]

    return forward


def attacked(network: calculus.Network, x, y, ball: Ball) -> float:
    """The least y f that PGD finds."""
    forward, labels = in_torch(network), torch.as_tensor(y)
    attack = PGD(steps=40, step_size=0.1, restarts=5)
    found = attack(lambda z: -labels * forward(z), torch.as_tensor(x), ball, rng=generator("pgd"))
    return -float(found.loss.max())


@pytest.mark.parametrize(("n", "d"), [(1, 1), (2, 3), (20, 10), (200, 2)])
def test_plain_interpolation_with_d_plus_2n_parameters(n, d):
    rng = np.random.default_rng(n)
    x, values = rng.random((n, d)), rng.standard_normal(n)
    f = capacity.plain_interpolator(x, values, np.random.default_rng(0))
    assert f.parameters == d + 2 * n
    np.testing.assert_allclose(f(x), values, atol=1e-7)
    by_hand = [
        sum(c * max(f.direction @ one - b, 0) for c, b in zip(f.coefficients, f.knots, strict=True))
        for one in x[:3]
    ]
    np.testing.assert_allclose(f(x[:3]), by_hand, atol=1e-7)


@pytest.mark.parametrize("radius", [0.0, 0.01, 0.3])
def test_extremes_of_a_ridge_spline_are_those_of_a_grid(radius):
    x, y, _ = problem(12, 4, "l2", 0.8)
    f = capacity.plain_interpolator(x, y, np.random.default_rng(0))
    low, high = f.extremes(x, radius)
    grid = x[:, None] + np.linspace(-radius, radius, 40_001)[:, None] * f.direction
    steepest = np.abs(np.cumsum(f.coefficients)).max() * radius / 20_000
    np.testing.assert_allclose(low, f(grid).min(axis=1), atol=steepest + 1e-9)
    np.testing.assert_allclose(high, f(grid).max(axis=1), atol=steepest + 1e-9)
    inside = f(in_l2_balls(x, radius, 500))
    assert (inside >= low[:, None] - 1e-9).all()
    assert (inside <= high[:, None] + 1e-9).all()


@pytest.mark.parametrize(("n", "d"), [(2, 1), (8, 2), (12, 3), (20, 6)])
@pytest.mark.parametrize("share", [0.3, 0.97])
def test_the_linf_network_is_robust_at_corners_faces_and_inside(n, d, share):
    x, y, delta = problem(n, d, "linf", share)
    f = capacity.robust_linf(x, y, delta)
    assert f.parameters == n * (6 * d + 1) + n + 1
    corners = x[:, None] + delta * np.array(list(product((-1, 0, 1), repeat=d)))
    inside = x[:, None] + delta * np.random.default_rng(0).uniform(-1, 1, (n, 300, d))
    for z in (corners, inside):
        assert (y[:, None] * f(z)).min() >= 1 - 1e-9
    assert attacked(f, x, y, Ball(norm="linf", radius=delta)) >= 1 - 1e-9


def test_the_linf_network_is_exactly_y_where_all_balls_are_apart():
    x = 2.0 * np.array(list(product((0, 1, 2), repeat=2)))
    y = np.where(np.arange(9) % 2, 1.0, -1.0)
    f = capacity.robust_linf(x, y, 0.9)
    z = x[:, None] + 0.9 * np.random.default_rng(0).uniform(-1, 1, (9, 300, 2))
    np.testing.assert_allclose(f(z), np.broadcast_to(y[:, None], (9, 300)), atol=1e-9)


def test_the_linf_network_breaks_beyond_its_radius():
    """Near half the separation a larger attack crosses to the other label."""
    x, y, delta = problem(12, 3, "linf", 0.9)
    f = capacity.robust_linf(x, y, delta)
    corners = x[:, None] + 2 * delta * np.array(list(product((-1, 0, 1), repeat=3)))
    assert (y[:, None] * f(corners)).min() < 0


@pytest.mark.parametrize("k", [1, 2, 3, 5, 8])
def test_the_square_network(k):
    q = calculus.square_network(k)
    assert q.parameters == 20 * k - 7
    assert q.depth == k + 1
    t = np.linspace(0, 1, 2 ** (k + 4) + 1)
    # The interpolant of the square on a grid of mesh 2^-k, by numpy.
    grid = np.linspace(0, 1, 2**k + 1)
    np.testing.assert_allclose(q(t[:, None]), np.interp(t, grid, grid**2), atol=1e-14)
    excess = q(t[:, None]) - t**2
    assert excess.min() >= -1e-15
    assert excess.max() == pytest.approx(calculus.square_error(k), rel=1e-9)


@pytest.mark.parametrize(("n", "d"), [(2, 1), (8, 2), (12, 3), (12, 10), (60, 6)])
@pytest.mark.parametrize("share", [0.3, 0.8, 0.97])
def test_the_l2_network_is_robust_on_samples_and_under_pgd(n, d, share):
    x, y, delta = problem(n, d, "l2", share)
    f = capacity.robust_l2(x, y, delta)
    assert f.parameters == d * (22 * f.depth - 6) + n * (d + 8) + 2
    assert f.error <= f.room / 2
    assert (y[:, None] * f(in_l2_balls(x, delta, 400))).min() >= 1 - 1e-8
    assert attacked(f.network, x, y, Ball(norm="l2", radius=delta)) >= 1 - 1e-8


def test_the_l2_network_on_a_fine_grid_of_the_plane():
    x, y, delta = problem(8, 2, "l2", 0.95)
    f = capacity.robust_l2(x, y, delta)
    angle, reach = np.linspace(0, 2 * np.pi, 721), np.linspace(0, delta, 41)
    way = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    disc = (reach[:, None, None] * way).reshape(-1, 2)
    assert (y[:, None] * f(x[:, None] + disc)).min() >= 1 - 1e-8


@pytest.mark.parametrize("depth", [None, 6])
def test_squared_distances_are_too_large_by_at_most_the_error(depth):
    x, y, delta = problem(12, 3, "l2", 0.8)
    f = capacity.robust_l2(x, y, delta, depth)
    z = in_l2_balls(x, delta, 400).reshape(-1, 3)
    hidden = z
    for layer in f.network.layers[:-2]:
        hidden = np.maximum(layer(hidden), 0)
    excess = hidden - ((z[:, None] - x) ** 2).sum(axis=-1)
    assert excess.min() >= -1e-12
    assert 0.3 * f.error < excess.max() <= f.error


def test_depths_from_the_least_that_works():
    """The rule k > log2(d w^2 / (4 room)) / 2, and what happens below it."""
    x, y, delta = problem(12, 3, "l2", 0.95)
    usual = capacity.robust_l2(x, y, delta)
    width = np.ptp(x) + 2 * delta
    least = int(np.floor(np.log2(3 * width**2 / (4 * usual.room)) / 2)) + 1
    for depth in (least, least + 1, least + 4):
        f = capacity.robust_l2(x, y, delta, depth)
        assert (y[:, None] * f(in_l2_balls(x, delta, 200))).min() >= 1 - 1e-6
    with pytest.raises(AdvlabError, match=f"use depth {usual.depth}"):
        capacity.robust_l2(x, y, delta, least - 1)


def test_parameters_grow_like_nd_and_one_more_bit_costs_22d():
    sizes = {}
    for n, d in product((10, 40), (5, 20)):
        x, y, delta = problem(n, d, "l2", 0.8)
        sizes[n, d] = capacity.robust_l2(x, y, delta, depth=12).parameters
        deeper = capacity.robust_l2(x, y, delta, depth=13).parameters
        assert deeper - sizes[n, d] == 22 * d
    assert sizes[40, 5] - sizes[10, 5] == 30 * (5 + 8)


def test_one_label_needs_no_separation():
    x = np.random.default_rng(0).random((5, 3))
    for make in (capacity.robust_linf, capacity.robust_l2):
        for label in (-1.0, 1.0):
            f = make(x, np.full(5, label), 2.0)
            assert (label * f(in_l2_balls(x, 2.0, 50))).min() > 0
    assert theory.separation(x, np.ones(5), "l2").pair is None


def test_separation_is_the_nearest_pair_across_labels():
    x, y, _ = problem(15, 4, "l2", 0.8)
    for norm, order in (("l2", 2), ("linf", np.inf)):
        pairs = {
            (i, j): np.linalg.norm(x[i] - x[j], order)
            for i in range(15)
            for j in range(i + 1, 15)
            if y[i] != y[j]
        }
        found = theory.separation(x, y, norm)
        assert found.pair == min(pairs, key=pairs.__getitem__)
        assert found.distance == pytest.approx(min(pairs.values()))
        assert found.slack(0.1) == pytest.approx(min(pairs.values()) - 0.2)


X, Y = np.array([[0.0, 0.0], [3.0, 4.0], [9.0, 9.0]]), [1, -1, 1]
BAD = {
    "balls touch in l2": (lambda: capacity.robust_l2(X, Y, 2.5), r"\(0, 1\) at distance 5, slack"),
    "balls touch in linf": (lambda: capacity.robust_linf(X, Y, 2.0), r"\(0, 1\) at distance 4"),
    "balls overlap": (lambda: capacity.robust_l2(X, Y, 3.0), "slack -1; use delta below 2.5"),
    "a gap too small": (lambda: capacity.robust_l2(X, Y, 2.5 - 1e-13), "smaller delta"),
    "no radius": (lambda: capacity.robust_linf(X, Y, 0.0), "delta must be positive"),
    "no depth": (lambda: capacity.robust_l2(X, Y, 1.0, 0), "depth must be"),
    "another norm": (lambda: theory.separation(X, Y, "l1"), "l2 or linf"),
    "too few labels": (lambda: capacity.robust_l2(X, [1, -1], 1.0), "each of 3 points"),
    "labels": (lambda: capacity.robust_l2(X, [1, 0, 1], 1.0), "-1 and \\+1"),
    "one point": (lambda: capacity.robust_l2(X[0], [1], 1.0), "rows of an"),
    "no square": (lambda: calculus.square_network(0), "depth must be"),
    "x of another size": (lambda: capacity.robust_linf(X, Y, 1.0)([1.0]), "length 2"),
    "values": (
        lambda: capacity.plain_interpolator(X, [1.0], np.random.default_rng(0)),
        "one value for each of 3",
    ),
    "repeated": (
        lambda: capacity.plain_interpolator(X[[0, 1, 0]], Y, np.random.default_rng(0)),
        r"points \(0, 2\) are the same",
    ),
    "nearly repeated": (
        lambda: capacity.plain_interpolator(
            [[1.0, 0.0], [1.0, 1e-300]], [1, -1], np.random.default_rng(0)
        ),
        "more than rounding",
    ),
}


@pytest.mark.parametrize(("call", "says"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused(call, says):
    with pytest.raises(AdvlabError, match=says):
        call()
