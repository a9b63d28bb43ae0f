"""Exact answers by other means: corners, grids, activation patterns, explicit matrices, cvxpy."""

import itertools

import cvxpy
import numpy as np
import pytest
import torch
from certify_nets import network
from torch import nn

from advlab.attacks import Grid
from advlab.certify import BranchAndBound, Crown, CrownIBP, LinearExact, Lipschitz
from advlab.certify._graph.graph import Convolution
from advlab.certify._graph.input_sets import InputSets
from advlab.certify._graph.reader import read
from advlab.certify.lipschitz import constants
from advlab.losses import ModelLoss, margin
from advlab.threats import Ball

F64 = torch.float64


def two_layer(d: int, width: int, classes: int, seed: int, leak: float = 0.0) -> nn.Module:
    torch.manual_seed(seed)
    act = nn.LeakyReLU(leak) if leak else nn.ReLU()
    net = nn.Sequential(nn.Linear(d, width), act, nn.Linear(width, classes)).double()
    for parameter in net.parameters():
        nn.init.normal_(parameter)
    return net


def examples(net: nn.Module, d: int, n: int = 3):
    x = torch.rand(n, d, dtype=F64)
    return x, net(x).argmax(1)


def solve(net, x, y, ball, **settings):
    with torch.no_grad():
        return BranchAndBound(**settings).solve(read(net, x), InputSets(x, ball), y)


def linear_net() -> nn.Module:
    torch.manual_seed(0)
    layers = [nn.Conv2d(1, 3, 2, padding=1), nn.BatchNorm2d(3), nn.AvgPool2d(2), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(3, 4), nn.Linear(4, 3)).double()


@pytest.mark.parametrize("kind", [LinearExact, CrownIBP, Crown])
@pytest.mark.parametrize("box", [None, (0.0, 1.0)])
def test_linear_networks_in_linf_against_all_corners(kind, box):
    net, x = linear_net(), torch.rand(6, 1, 2, 2, dtype=F64)
    y = torch.tensor([0, 1, 2, 0, 1, 2])
    ball = Ball(norm="linf", radius=0.3, box=box)
    corners = torch.tensor(list(itertools.product([-1.0, 1.0], repeat=4)), dtype=F64)
    points = x[:, None] + 0.3 * corners.reshape(1, -1, 1, 2, 2)
    points = points if box is None else points.clamp(*box)
    with torch.no_grad():
        loss = ModelLoss(net, y.repeat_interleave(16), margin)
        brute = loss(points.flatten(0, 1)).reshape(6, 16).amax(1)
    torch.testing.assert_close(kind().worst_margin(net, x, y, ball), brute)


@pytest.mark.parametrize("kind", [LinearExact, CrownIBP, Crown])
@pytest.mark.parametrize("box", [None, (0.0, 1.0)])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_linear_networks_against_cvxpy(kind, norm, box):
    net, x = linear_net(), torch.rand(2, 1, 2, 2, dtype=F64)
    y = torch.tensor([0, 2])
    net.eval()
    weight = torch.autograd.functional.jacobian(lambda v: net(v)[0], x[:1])[:, 0].flatten(1).numpy()
    offset = net(torch.zeros_like(x[:1]))[0].detach().numpy()
    bound = kind().worst_margin(net, x, y, Ball(norm=norm, radius=0.4, box=box))
    for row in range(2):
        best = -np.inf
        for j in set(range(3)) - {int(y[row])}:
            point, center = cvxpy.Variable(4), x[row].flatten().numpy()
            limits = [cvxpy.norm(point - center, 1 if norm == "l1" else 2) <= 0.4]
            limits += [] if box is None else [point >= box[0], point <= box[1]]
            gap = weight[j] - weight[int(y[row])]
            value = cvxpy.Problem(cvxpy.Maximize(gap @ point), limits).solve(solver="CLARABEL")
            best = max(best, value + offset[j] - offset[int(y[row])])
        assert float(bound[row]) == pytest.approx(best, abs=1e-6)


@pytest.mark.parametrize("box", [None, (0.0, 1.0)])
@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize(("seed", "leak"), [(0, 0.0), (2, 0.2)])
def test_branch_and_bound_meets_the_grid_in_two_dimensions(norm, box, seed, leak):
    net = two_layer(2, 12, 3, seed, leak)
    x, y = examples(net, 2)
    ball = Ball(norm=norm, radius=0.4, box=box)
    grid = Grid(points=900)(ModelLoss(net, y, margin), x, ball, rng=torch.Generator()).loss
    found = solve(net, x, y, ball)
    assert found.exact.all()
    assert (found.upper >= grid).all()
    # Ascent from the best grid point ends on the best linear piece, or on one close to it.
    torch.testing.assert_close(found.upper, grid, atol=0.06, rtol=0)
    assert (found.upper - grid).median() < 1e-3
    assert (found.lower <= found.upper).all()
    assert (found.upper - found.lower).max() < 1e-5


@pytest.mark.parametrize("norm", ["linf", "l2"])
@pytest.mark.parametrize("box", [None, (0.0, 1.0)])
def test_branch_and_bound_against_all_activation_patterns(norm, box):
    """On each of 2^6 patterns the network is linear: a convex program each, by cvxpy."""
    net = two_layer(3, 6, 2, seed=5)
    x, y = examples(net, 3, n=1)
    ball = Ball(norm=norm, radius=0.6, box=box)
    w, b, v, c = (parameter.detach().numpy() for parameter in net.parameters())
    own = int(y[0])
    top, shift, center = v[1 - own] - v[own], c[1 - own] - c[own], x[0].numpy()
    point, signs = cvxpy.Variable(3), cvxpy.Parameter(6)
    gains, constant = cvxpy.Parameter(3), cvxpy.Parameter()
    limits = [cvxpy.norm(point - center, 2 if norm == "l2" else "inf") <= 0.6]
    limits += [] if box is None else [point >= 0, point <= 1]
    limits.append(cvxpy.multiply(signs, w @ point + b) >= 0)
    problem = cvxpy.Problem(cvxpy.Maximize(gains @ point + constant), limits)
    best = -np.inf
    for pattern in itertools.product([0.0, 1.0], repeat=6):
        on = np.array(pattern)
        signs.value, gains.value = 2 * on - 1, (top * on) @ w
        constant.value = float((top * on) @ b + shift)
        value = problem.solve(solver="CLARABEL")
        best = max(best, value) if problem.status == "optimal" else best
    found = solve(net, x, y, ball)
    assert float(found.upper[0]) == pytest.approx(best, abs=2e-6)
    assert float(found.lower[0]) == pytest.approx(best, abs=2e-6)


@pytest.mark.parametrize("norm", ["linf", "l2"])
def test_a_node_limit_leaves_a_bound_that_says_it_is_not_exact(norm):
    net = two_layer(4, 24, 3, seed=3)
    x, y = examples(net, 4)
    ball = Ball(norm=norm, radius=0.8)
    whole = solve(net, x, y, ball, nodes=5000)
    short = solve(net, x, y, ball, nodes=3)
    assert whole.exact.all()
    assert not short.exact.all()
    assert (short.nodes <= 3).all()
    assert (short.upper >= whole.upper - 1e-5).all()
    assert (short.lower <= whole.lower + 1e-5).all()
    assert (Crown().worst_margin(net, x, y, ball) >= whole.upper - 1e-5).all()


@pytest.mark.parametrize(("norm", "radius"), [("linf", 0.6), ("l2", 0.8)])
def test_the_sign_alone_is_the_same_and_costs_less(norm, radius):
    net = two_layer(4, 24, 3, seed=3)
    x, y = examples(net, 4, n=8)
    ball = Ball(norm=norm, radius=radius)
    whole, sign = solve(net, x, y, ball), solve(net, x, y, ball, only_sign=True)
    assert 0 < int((whole.upper < 0).sum()) < 8
    assert torch.equal(whole.upper < 0, sign.upper < 0)
    assert (sign.upper >= whole.upper - 1e-5).all()
    assert int(sign.nodes.sum()) < int(whole.nodes.sum())


def test_skips_leaks_and_one_output_are_exact_too():
    """A skip connection and a leak stay with the linear part; LazyNet's ReLU is made of |z|."""

    class Skip(nn.Module):
        def __init__(self):
            super().__init__()
            self.body, self.skip = two_layer(2, 6, 3, 8, leak=0.3), nn.Linear(2, 3).double()

        def forward(self, x):
            return self.body(x) + self.skip(x)

    for net, x in ((Skip(), torch.rand(3, 2, dtype=F64)),):
        y = net(x).argmax(1)
        ball = Ball(norm="linf", radius=0.4)
        grid = Grid(points=900)(ModelLoss(net, y, margin), x, ball, rng=torch.Generator()).loss
        found = solve(net, x, y, ball)
        assert (found.upper >= grid).all()
        torch.testing.assert_close(found.upper, grid, atol=0.05, rtol=0)
    for kind in ("lazy", "symmetric"):
        net, x, y = network(kind, 3)
        ball = Ball(norm="l2", radius=0.5)
        found = solve(net, x, y, ball)
        assert found.exact.all()
        assert (Crown().worst_margin(net, x, y, ball) >= found.upper - 1e-6).all()


CONVOLUTIONS = [
    {"kernel_size": 3, "padding": 1},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": 2, "dilation": 2},
    {"kernel_size": 3, "padding": 2, "groups": 2},
    {"kernel_size": 1},
]


@pytest.mark.parametrize("settings", CONVOLUTIONS)
@pytest.mark.parametrize("order", [1.0, 2.0, float("inf")])
def test_operator_norms_of_convolutions_against_the_explicit_matrix(settings, order):
    torch.manual_seed(1)
    net = nn.Conv2d(2, 4, bias=False, **settings).double()
    graph = read(net, torch.rand(1, 2, 6, 6, dtype=F64))
    node = next(node for node in graph.nodes if isinstance(node, Convolution))
    matrix = net(torch.eye(72, dtype=F64).reshape(72, 2, 6, 6)).flatten(1).T.detach()
    truth = float(torch.linalg.matrix_norm(matrix, order))
    bound = node.operator_norm(order, matrix)
    assert bound >= truth * (1 - 1e-12)
    if order == 2:
        assert bound <= truth * (2.2 if net.stride[0] > 1 else 1.3)
    else:
        assert bound == pytest.approx(truth)


def test_the_adjoint_of_every_map_is_its_transpose():
    for kind in ("conv", "residual", "forked", "normalised"):
        net, x, _ = network(kind, 9)
        for node in read(net, x).nodes:
            if not hasattr(node, "adjoint"):
                continue
            u, v = torch.randn(3, *node.source, dtype=F64), torch.randn(3, *node.shape, dtype=F64)
            left = (node.matrix(u) * v).sum()
            torch.testing.assert_close(left, (u * node.adjoint(v)).sum())


@pytest.mark.parametrize("order", [1.0, 2.0, float("inf")])
def test_lipschitz_constants_hold_between_points(order):
    for kind in ("mlp", "pooled", "residual"):
        net, x, _ = network(kind, 4)
        net.eval()
        graph = read(net, x)
        rates = constants(graph, order, x)
        near, far = torch.rand(2, 300, *x.shape[1:], dtype=F64)
        near = far + 0.01 * (near - far)
        moves = torch.linalg.vector_norm((near - far).flatten(1), order, dim=1)
        for k, (a, b) in enumerate(zip(graph.values(near), graph.values(far), strict=True)):
            if np.isfinite(rates[k]):
                moved = torch.linalg.vector_norm((a - b).reshape(300, -1), order, dim=1)
                assert (moved <= rates[k] * moves * (1 + 1e-9)).all()


def test_a_linear_score_over_an_l2_ball_is_where_lipschitz_is_exact():
    net = nn.Linear(4, 2).double()
    x, y = torch.rand(3, 4, dtype=F64), torch.tensor([0, 1, 0])
    ball = Ball(norm="l2", radius=0.5)
    torch.testing.assert_close(
        Lipschitz().worst_margin(net, x, y, ball), LinearExact().worst_margin(net, x, y, ball)
    )
