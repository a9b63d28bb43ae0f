"""f_S against brute force over balls, PGD, counts by hand, and its own definition."""

from itertools import product

import numpy as np
import pytest
import torch
from scipy.spatial.distance import cdist
from torch import nn

from advlab.attacks import PGD
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.papers.cgro import theory
from advlab.papers.cgro.models import ReluProgram
from advlab.theory import relu_calculus as calculus
from advlab.threats import Ball

DELTA, SEPARATION, HEIGHT = 0.1, 0.25, 0.02
WAYS = list(product(("l2", "linf"), ("paper", "free"), ("shared", "paper")))
WAYS = [way for way in WAYS if way[0] == "l2" or way[2] == "shared"]


def linear(d: int, slope: float = 1.0) -> calculus.Network:
    """slope (x_d - 1/2)."""
    return calculus.affine(slope * np.eye(d)[-1:], -slope / 2)


def grid(n: int, d: int, seed: int = 0):
    """Training points and labels, and fresh ones: lifted points of a grid of spacing 1/4."""
    rng = np.random.default_rng([n, d, seed])
    points = theory.packing(d, 0.125)
    y = rng.choice([-1.0, 1.0], len(points))
    x, order = theory.lifted(points, y, HEIGHT, 0.1), rng.permutation(len(points))
    train, test = order[:n], order[n : n + 200]
    return x[train], y[train], x[test], y[test]


def build(x, y, way=("l2", "free", "shared"), clean=None, **more):
    norm, assembly, distances = way
    clean = linear(x.shape[1]) if clean is None else clean
    settings = {"norm": norm, "assembly": assembly, "distances": distances} | more
    return theory.cgro_network(x, y, clean, DELTA, SEPARATION, **settings)


def at(f: nn.Module, x: np.ndarray) -> np.ndarray:
    with torch.no_grad():
        return f(torch.as_tensor(x.reshape(-1, x.shape[-1]))).numpy().reshape(x.shape[:-1])


def around(x: np.ndarray, norm: str, radius: float, count: int = 60, seed: int = 0) -> np.ndarray:
    """(n, count + 2d, d): points of the balls on their rim and inside, and the ends of all axes."""
    rng, d = np.random.default_rng(seed), x.shape[1]
    way = rng.standard_normal((len(x), count, d))
    if norm == "l2":
        way /= np.linalg.norm(way, axis=-1, keepdims=True)
        way[:, ::2] *= rng.random((len(x), (count + 1) // 2, 1)) ** (1 / d)
    else:
        way[:, ::2], way[:, 1::2] = np.tanh(way[:, ::2]), np.sign(way[:, 1::2])
    axes = np.concatenate([np.eye(d), -np.eye(d)])
    ends = np.broadcast_to(axes, (len(x), *axes.shape))
    return x[:, None] + radius * np.concatenate([way, ends], axis=1)


def attacked(f: nn.Module, x, y, norm: str) -> torch.Tensor:
    """The least y f that PGD finds, of each row."""
    labels = torch.as_tensor(y)
    attack = PGD(steps=20, step_size=0.02, restarts=2)
    ball = Ball(norm=norm, radius=DELTA)
    return -attack(lambda z: -labels * f(z), torch.as_tensor(x), ball, rng=generator("pgd")).loss


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_cgro(way):
    """Claim 15: no clean error, no robust training error, and every fresh point can be attacked."""
    x, y, fresh, labels = grid(40, 4)
    f = build(x, y, way)
    assert isinstance(f, ReluProgram)
    assert (labels * at(f, fresh)).min() > 0
    assert (y[:, None] * at(f, around(x, way[0], DELTA))).min() >= 1 - 1e-9
    assert attacked(f, x, y, way[0]).min() >= 1 - 1e-9
    # The clean classifier changes its sign within the ball, and so does f.
    across = fresh.copy()
    across[:, -1] -= 0.09 * labels
    assert (labels * at(f, across)).max() < 0
    assert attacked(f, fresh, labels, way[0]).max() < 0


@pytest.mark.parametrize("way", WAYS, ids="-".join)
@pytest.mark.parametrize(("n", "d", "k"), [(7, 3, 5), (20, 4, 4), (13, 6, 7)])
def test_parameters_by_hand(way, n, d, k):
    """Claim 16: every connection and every bias; the clean network is one linear map."""
    x, y, *_ = grid(n, d)
    norm, assembly, distances = way
    p = 3
    f = build(x, y, way, depth=k, product_depth=p)
    if norm == "linf":
        indicators, layers = n * (6 * d + 1), 2
    else:
        squares = d * (22 * k - 6) + 1 + n * (d + 2) if distances == "shared" else n
        squares += 0 if distances == "shared" else 20 * k * d * n
        # Two ReLUs of a slope and a bias each.
        indicators, layers = squares + 4 * n, k + 3
    clipped = 2 * (d + 1) + 3
    if assembly == "free":
        sums = (n if norm == "linf" else 2 * n) + 2
        layers += 1
        end = sums + 3 + 1
    else:
        own = 0 if norm == "linf" else 3 * n
        layers += 0 if norm == "linf" else 1
        end = own + n * (28 + 60 * (p - 1) + 12) + 2 * p + 2
    carried = 2 * (layers - 2)
    assert f.parameters_counted == indicators + clipped + carried + end
    plan = theory.cgro_plan(x, y, linear(d), DELTA, SEPARATION, k, norm, assembly,
                          distances=distances, product_depth=p)  # fmt: skip
    assert plan.parameters == f.parameters_counted
    assert f.parameters_counted == sum(one.numel() for one in f.parameters())


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_parameters_are_affine_in_n_with_the_claimed_slope(way):
    def size(n, d):
        x, y, *_ = grid(n, d)
        return build(x, y, way, depth=6).parameters_counted

    slopes = {}
    for d in (4, 6):
        sizes = [size(n, d) for n in (10, 20, 30)]
        assert sizes[2] - sizes[1] == sizes[1] - sizes[0]
        slopes[d] = (sizes[1] - sizes[0]) / 10
    a_dimension = {("l2", "shared"): 1, ("l2", "paper"): 20 * 6, ("linf", "shared"): 6}
    assert (slopes[6] - slopes[4]) / 2 == a_dimension[way[0], way[2]]


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_the_definition_of_f_s(norm):
    """z outside all shells, and y_i + (k - 1)-fold overlaps inside: against distances by scipy."""
    x, y, *_ = grid(30, 3, seed=1)
    rng = np.random.default_rng(2)
    inputs = rng.uniform(-0.1, 1.1, (4000, 3))
    near = cdist(inputs, x, "euclidean" if norm == "l2" else "chebyshev")
    z = np.clip(inputs[:, -1] - 0.5, -1, 1)
    outside = (near >= SEPARATION - DELTA).all(axis=1)
    inside = (near <= DELTA).any(axis=1)
    own = y[near.argmin(axis=1)]
    assert min(outside.sum(), inside.sum()) > 50
    paper, free = (
        at(build(x, y, (norm, one, "shared"), depth=8 if norm == "l2" else None), inputs)
        for one in ("paper", "free")
    )
    for f in (paper, free):
        np.testing.assert_allclose(f[outside], z[outside], atol=1e-9)
    np.testing.assert_allclose(paper[inside], own[inside], atol=1e-9)
    np.testing.assert_allclose(free[inside], (z + 2 * own)[inside], atol=1e-9)


@pytest.mark.parametrize("way", WAYS, ids="-".join)
def test_overlapping_balls_of_one_label_do_no_harm(way):
    """Many points of one label at one place: the printed rewriting needs disjoint balls."""
    rng = np.random.default_rng(0)
    left, right = 0.3 + 0.05 * rng.random((9, 3)), 0.7 + 0.05 * rng.random((9, 3))
    x, y = np.concatenate([left, right]), np.repeat([1.0, -1.0], 9)
    # A clean classifier that is right and far beyond 1 in size: |f| would be k y - (k - 1) f.
    clean = calculus.affine(np.full((1, 3), -9.0), 27 * 0.525)
    f = build(x, y, way, clean)
    assert (y[:, None] * at(f, around(x, way[0], DELTA))).min() >= 1 - 1e-9


@pytest.mark.parametrize("p", [1, 2, 5])
def test_both_assemblies_agree_in_sign_on_support_and_balls(p):
    """Claim 16, at every product depth: mul(x, 1) = x and mul(x, 0) = 0 exactly."""
    x, y, fresh, _ = grid(50, 4, seed=3)
    for norm in ("l2", "linf"):
        paper = build(x, y, (norm, "paper", "shared"), product_depth=p)
        free = build(x, y, (norm, "free", "shared"))
        for z in (fresh, around(x, norm, DELTA)):
            np.testing.assert_array_equal(np.sign(at(paper, z)), np.sign(at(free, z)))


@pytest.mark.parametrize("d", [4, 6])
@pytest.mark.parametrize("distances", ["shared", "paper"])
def test_the_least_depth_works_and_one_less_does_not(d, distances):
    """D = 6: k <= 3 is not enough."""
    x, y, *_ = grid(30, d)
    width = 1 + 2 * DELTA
    bound = np.log2(d * width**2 / (4 * SEPARATION * (SEPARATION - 2 * DELTA))) / 2
    least = theory.least_depth(d, DELTA, SEPARATION, width)
    assert least - 1 <= bound < least
    way = ("l2", "free", distances)
    f = build(x, y, way, depth=least)
    assert (y[:, None] * at(f, around(x, "l2", DELTA))).min() >= 1 - 1e-6
    with pytest.raises(AdvlabError, match=f"at depth {least - 1}; use depth {least}"):
        build(x, y, way, depth=least - 1)


def test_below_the_least_depth_squared_distances_cannot_tell_the_balls_apart():
    """Somewhere within delta of a point its distance comes out beyond (separation - delta)^2."""
    d, width = 6, 1 + 2 * DELTA
    cell = width / 2**3
    centre = np.full((1, d), -DELTA + 4.5 * cell)
    network = calculus.squared_distances(centre, 3, -DELTA, width)
    seen = network(centre[0] + DELTA * np.eye(d)).max()
    assert seen > (SEPARATION - DELTA) ** 2


def test_a_torch_module_is_wrapped():
    x, y, fresh, _ = grid(30, 4)
    torch.manual_seed(0)
    clean = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)).double()
    f = build(x, y, ("l2", "paper", "shared"), clean)
    z = clean(torch.as_tensor(fresh)).detach().numpy()[:, 0]
    # Whatever the module says is what f says away from the training balls, and y in them.
    far = cdist(fresh, x).min(axis=1) >= SEPARATION - DELTA
    np.testing.assert_allclose(at(f, fresh)[far], np.clip(z, -1, 1)[far], atol=1e-9)
    assert (y[:, None] * at(f, around(x, "l2", DELTA))).min() >= 1 - 1e-9
    explicit = calculus.Network(
        tuple(
            calculus.Layer(one.weight.detach().numpy(), one.bias.detach().numpy())
            for one in (clean[0], clean[2])
        )
    )
    same = build(x, y, ("l2", "paper", "shared"), explicit)
    np.testing.assert_allclose(at(f, fresh), at(same, fresh), atol=1e-10)
    inner = sum(one.numel() for one in clean.parameters())
    plan = theory.cgro_plan(x, y, clean, DELTA, SEPARATION)
    assert f.parameters_counted == plan.parameters + inner


def test_the_module_is_its_plan_and_has_gradients():
    x, y, fresh, _ = grid(20, 4)
    f = build(x, y, ("l2", "paper", "paper"))
    plan = theory.cgro_plan(x, y, linear(4), DELTA, SEPARATION, distances="paper")
    np.testing.assert_allclose(at(f, fresh), plan.network(fresh), atol=1e-10)
    # Irrational shifts, to stay away from kinks.
    z = torch.as_tensor(x + 0.0712 * np.sqrt(np.arange(1, 5)) / 2.2)
    z.requires_grad_(True)
    f(z).sum().backward()
    step, direction = 1e-7, torch.as_tensor(np.random.default_rng(0).normal(size=z.shape))
    with torch.no_grad():
        change = (f(z + step * direction) - f(z - step * direction)) / (2 * step)
    torch.testing.assert_close((z.grad * direction).sum(1), change, atol=1e-4, rtol=1e-4)
    assert all(one.grad is not None for one in f.parameters())


def test_fresh_points_beyond_the_samples_own_box_are_served():
    """The support's box counts, not the sample's: squares know nothing outside theirs."""
    x = np.array([[0.4, 0.4], [0.6, 0.6]])
    y = np.array([1.0, -1.0])
    clean = calculus.affine(-np.ones((1, 2)), 1.0)
    f = theory.cgro_network(x, y, clean, 0.1, 0.25, assembly="free")
    corners = np.array([[-0.1, -0.1], [1.1, 1.1], [-0.1, 1.05], [1.1, -0.05]])
    np.testing.assert_allclose(at(f, corners), np.clip(1 - corners.sum(1), -1, 1), atol=1e-9)


X, Y = np.array([[0.1, 0.1], [0.3, 0.1], [0.9, 0.9]]), np.array([1.0, -1.0, 1.0])
LINE = linear(2)
BAD = {
    "balls overlap": (
        lambda: theory.cgro_network(X, Y, LINE, 0.1, 0.3),
        r"points \(0, 1\) at dist",
    ),
    "and in linf": (
        lambda: theory.cgro_network(X, Y, LINE, 0.15, 0.4, norm="linf"),
        r"points \(0, 1\) at distance 0.2, slack -0.1",
    ),
    "points contradict": (
        lambda: theory.cgro_network(X, Y, LINE, 0.05, 0.25),
        r"points \(0, 1\) at distance 0.2; state a lower bound",
    ),
    "too shallow": (lambda: theory.cgro_network(X, Y, LINE, 0.09, 0.2, depth=2), "use depth 4"),
    "separation": (lambda: theory.cgro_network(X, Y, LINE, 0.09, 0.18), "above 2 delta = 0.18"),
    "outside": (lambda: theory.cgro_network(X + 0.5, Y, LINE, 0.05, 0.2), "state the box"),
    "clean of another size": (
        lambda: theory.cgro_network(X, Y, linear(3), 0.05, 0.2),
        "clean network with 2 inputs",
    ),
    "no module": (lambda: theory.cgro_network(X, Y, np.sin, 0.05, 0.2), "a torch module"),
    "a norm": (lambda: theory.cgro_network(X, Y, LINE, 0.05, 0.2, norm="l1"), "l2 or linf"),
    "an assembly": (
        lambda: theory.cgro_network(X, Y, LINE, 0.05, 0.2, assembly="b"),
        "paper or fr",
    ),
    "distances": (
        lambda: theory.cgro_network(X, Y, LINE, 0.05, 0.2, distances="b"),
        "shared or pa",
    ),
    "an inner with two outputs": (
        lambda: theory.cgro_network(X, Y, nn.Linear(2, 2).double(), 0.05, 0.2)(torch.as_tensor(X)),
        "one output per example",
    ),
    "no layers": (lambda: ReluProgram([]), "at least one layer"),
}


@pytest.mark.parametrize(("call", "says"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused(call, says):
    with pytest.raises(AdvlabError, match=says):
        call()
