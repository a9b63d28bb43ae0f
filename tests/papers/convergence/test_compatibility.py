"""Compatibility against brute force: a search for a point that lies in both sets."""

import math

import cvxpy as cp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.papers.convergence.measures import compatibility
from advlab.threats import Ball, Cap
from advlab.threats.base import Threat

ORDERS = {"l1": 1, "l2": 2, "linf": np.inf}


def on_sphere(n: int, d: int, name: str) -> torch.Tensor:
    x = torch.randn(n, d, generator=generator(name), dtype=torch.float64)
    return x / x.norm(dim=1, keepdim=True)


def meeting_radius(a: np.ndarray, b: np.ndarray, norm: str) -> float:
    """min over z of max(||z - a||, ||z - b||) as a convex program."""
    z, r = cp.Variable(len(a)), cp.Variable()
    order = {"l1": 1, "l2": 2, "linf": "inf"}[norm]
    problem = cp.Problem(cp.Minimize(r), [cp.norm(z - a, order) <= r, cp.norm(z - b, order) <= r])
    problem.solve(solver=cp.CLARABEL)
    return float(np.asarray(r.value))


def meeting_radius_of_caps(a: np.ndarray, b: np.ndarray) -> float:
    """The same on the sphere, by a smooth search over directions z/||z|| from many starts."""
    rng = np.random.default_rng(0)

    def away(v: np.ndarray, p: float = 2000.0) -> float:
        z = v / np.linalg.norm(v)
        far = np.array([np.linalg.norm(z - a), np.linalg.norm(z - b)])
        return far.max() + np.log(np.exp(p * (far - far.max())).sum() / 2) / p

    starts = rng.standard_normal((4, len(a)))
    return min(minimize(away, start, tol=1e-12).fun for start in starts)


@pytest.mark.parametrize("norm", ORDERS)
@pytest.mark.parametrize("box", [None, (0.0, 1.0)])
def test_balls_meet_from_the_radius_that_a_convex_program_finds(norm, box):
    x = torch.rand(5, 3, generator=generator("balls"), dtype=torch.float64)
    y = torch.tensor([1, -1, 1, -1, 1])
    found = compatibility(x, y, Ball(norm=norm, radius=0.05, box=box))
    radii = {
        (i, j): meeting_radius(x[i].numpy(), x[j].numpy(), norm)
        for i in range(5)
        for j in range(i + 1, 5)
        if y[i] != y[j]
    }
    assert found.nearest == min(radii, key=radii.__getitem__)
    assert found.largest_radius == pytest.approx(min(radii.values()), abs=1e-6)
    assert found.slack == pytest.approx(2 * min(radii.values()) - 0.1, abs=1e-6)
    middle = sorted(radii.values())[2] + 1e-4
    wide = compatibility(x, y, Ball(norm=norm, radius=middle, box=box))
    assert set(map(tuple, wide.pairs.tolist())) == {p for p, r in radii.items() if r <= middle}
    assert (found.ok, wide.ok) == (min(radii.values()) > 0.05, False)


def test_caps_meet_from_the_radius_that_a_search_finds():
    x, y = on_sphere(4, 3, "caps"), torch.tensor([1.0, -1.0, 1.0, -1.0])
    centers = x.numpy()
    radii = {
        (i, j): meeting_radius_of_caps(centers[i], centers[j])
        for i, j in ((0, 1), (0, 3), (1, 2), (2, 3))
    }
    found = compatibility(x, y, Cap(radius=0.1))
    assert found.largest_radius == pytest.approx(min(radii.values()), abs=2e-3)
    for pair, radius in radii.items():
        two = torch.tensor(pair)
        assert compatibility(x[two], y[two], Cap(radius=radius - 2e-3)).ok
        assert not compatibility(x[two], y[two], Cap(radius=radius + 2e-3)).ok


@given(st.floats(0.01, 1.9), st.integers(0, 200), st.integers(2, 6))
@settings(max_examples=60, deadline=None)
def test_the_formula_of_the_paper_for_caps(radius, seed, d):
    """angle(x_i, x_j) <= 2 theta with theta = 2 arcsin(delta/2)."""
    x, y = on_sphere(6, d, f"formula {seed}"), torch.arange(6) % 2
    angle = torch.arccos((x @ x.T).clamp(-1, 1))
    meet = (angle <= 4 * math.asin(radius / 2)) & (y[:, None] != y)
    expected = {(i, j) for i, j in meet.nonzero().tolist() if i < j}
    found = compatibility(x, y, Cap(radius=radius))
    assert set(map(tuple, found.pairs.tolist())) == expected


@pytest.mark.parametrize("threat", [Ball(norm="l1", radius=0.4), Ball(norm="linf", radius=0.15)])
def test_no_sampled_point_is_in_two_compatible_sets(threat: Threat):
    x = torch.rand(8, 2, generator=generator("sampled"), dtype=torch.float64) * 3
    y = torch.arange(8) % 3
    found = compatibility(x, y, threat)
    met = set()
    for i in range(8):
        cloud = threat.sample(x[i].expand(20_000, -1), rng=generator("cloud", i))
        for j in range(i + 1, 8):
            if y[i] != y[j] and threat.contains(cloud, x[j].expand(20_000, -1)).any():
                met.add((i, j))
    assert met
    assert met <= set(map(tuple, found.pairs.tolist()))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("norm", ORDERS)
def test_sets_that_touch_meet(norm, dtype):
    x = torch.tensor([[0.1, 0.3], [0.1, 0.9]], dtype=dtype)
    y = torch.tensor([1, -1])
    assert not compatibility(x, y, Ball(norm=norm, radius=0.3)).ok
    assert compatibility(x, y, Ball(norm=norm, radius=0.2999)).ok


def test_caps_that_touch_meet_and_antipodes_meet_at_the_equator():
    x = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    poles = compatibility(x[:2], torch.tensor([1, -1]), Cap(radius=math.sqrt(2)))
    assert not poles.ok
    assert poles.slack == pytest.approx(0, abs=1e-15)
    assert compatibility(x[:2], torch.tensor([1, -1]), Cap(radius=1.414)).ok
    right_angle = compatibility(x[1:], torch.tensor([1, -1]), Cap(radius=0.5))
    assert right_angle.largest_radius == pytest.approx(2 * math.sin(math.pi / 8))


def test_equal_labels_never_clash_and_blocks_change_nothing(monkeypatch):
    x, y = on_sphere(20, 3, "blocks"), torch.arange(20) % 2
    assert compatibility(x, torch.ones(20), Cap(radius=2.0)).ok
    assert compatibility(x, torch.ones(20), Cap(radius=2.0)).slack == math.inf
    assert compatibility(x, torch.ones(20), Cap(radius=2.0)).nearest is None
    whole = compatibility(x, y, Cap(radius=0.4))
    monkeypatch.setitem(compatibility.__globals__, "ROWS", 7)
    parts = compatibility(x, y, Cap(radius=0.4))
    assert torch.equal(whole.pairs, parts.pairs)
    assert len(whole.pairs) > 1
    assert (whole.slack, whole.nearest) == (parts.slack, parts.nearest)


def test_images_are_compared_as_vectors():
    x = torch.rand(4, 1, 2, 2, generator=generator("images"))
    y = torch.arange(4) % 2
    flat = compatibility(x.flatten(1), y, Ball(norm="linf", radius=0.2, box=(0.0, 1.0)))
    assert torch.equal(
        compatibility(x, y, Ball(norm="linf", radius=0.2, box=(0.0, 1.0))).pairs, flat.pairs
    )


def test_require_names_the_pair_the_number_the_slack_and_a_cure():
    x = torch.tensor([[0.0], [1.0], [2.0], [5.0]])
    y = torch.tensor([1.0, -1.0, 1.0, -1.0])
    compatibility(x, y, Ball(norm="l2", radius=0.4)).require()
    with pytest.raises(AdvlabError) as error:
        compatibility(x, y, Ball(norm="l2", radius=0.7)).require()
    for words in ("2 pairs", "rows 0 and 1", "slack -0.4", "below 0.5", "radius 0.7"):
        assert words in str(error.value)
    with pytest.raises(AdvlabError, match=r"rows \(0, 1\) are one input with two labels"):
        compatibility(torch.zeros(2, 1), y[:2], Ball(norm="l2", radius=0.0)).require()


def test_bad_input_is_refused():
    x = torch.eye(3)
    with pytest.raises(AdvlabError, match="3 inputs and 2 labels"):
        compatibility(x, torch.ones(2), Cap(radius=0.1))
    with pytest.raises(AdvlabError, match=r"unit sphere.*row 1 has norm 2"):
        compatibility(x * torch.tensor([[1.0], [2.0], [1.0]]), torch.ones(3), Cap(radius=0.1))
    with pytest.raises(AdvlabError, match="box"):
        compatibility(2 * x, torch.ones(3), Ball(norm="l2", radius=0.1, box=(0.0, 1.0)))
    with pytest.raises(AdvlabError, match="finite"):
        compatibility(x / 0, torch.ones(3), Ball(norm="l2", radius=0.1))

    assert compatibility(x[:0], torch.ones(0), Cap(radius=0.1)).ok


def test_a_threat_of_an_unknown_kind_is_refused():
    class Everywhere(Cap):
        """A set with a geometry of its own, of which nobody knows when two of them meet."""

        def contains(self, point, center):
            return torch.ones(len(point), dtype=torch.bool)

    with pytest.raises(AdvlabError, match=r"when two of them meet.*Everywhere"):
        compatibility(torch.eye(2), torch.ones(2), Everywhere(radius=0.1))
