"""Correlations of neurons against plain double loops."""

import itertools
import math

import numpy as np
import pytest
import torch

from advlab.core.randomness import generator
from advlab.papers.purification import measures
from advlab.papers.purification.measures import (
    alive,
    move_ratio,
    pair_floor,
    pair_ratio,
    pairs,
    spread,
    start_ratio,
    theta,
    turn_ratio,
)


def some(*shape: int, name: object = "w") -> torch.Tensor:
    return torch.randn(*shape, generator=generator("correlations", name), dtype=torch.float64)


W0, W = some(3, 7, 4, name="start"), some(3, 7, 4)


def cosine(a, b) -> float:
    return float(abs(sum(p * q for p, q in zip(a, b, strict=True)))) / (
        math.sqrt(sum(float(p) ** 2 for p in a)) * math.sqrt(sum(float(q) ** 2 for q in b))
    )


def test_theta_is_the_absolute_cosine_and_zero_for_dead_neurons():
    found = theta(W0, W)
    for r, i in itertools.product(range(3), range(7)):
        assert float(found[r, i]) == pytest.approx(cosine(W0[r, i], W[r, i]))
    assert theta(torch.zeros(2, 4).double(), W[0, :2]).tolist() == [0.0, 0.0]


def test_alive_neurons_are_longer_than_a_fifth_of_the_longest():
    w = torch.diag(torch.tensor([10.0, 2.1, 1.9, 0.0])).double()
    assert alive(torch.stack([w, 5 * w])).tolist() == [[True, True, False, False]] * 2


@pytest.mark.parametrize("rows", [2, 512])
def test_pairs_are_those_of_a_double_loop(monkeypatch, rows):
    monkeypatch.setattr(measures.correlations, "ROWS", rows)
    keep = torch.rand(3, 7, generator=generator("keep")) < 0.7
    for chosen in (None, keep):
        found = pairs(W, 0.4, chosen)
        for r in range(3):
            own = range(7) if chosen is None else keep[r].nonzero()[:, 0].tolist()
            values = [cosine(W[r, i], W[r, j]) for i in own for j in own if i != j]
            assert float(found.mean[r]) == pytest.approx(np.mean(values))
            assert float(found.below[r]) == pytest.approx(np.mean(np.array(values) < 0.4))
    alone = pairs(W[1], 0.4)
    torch.testing.assert_close(alone.mean, pairs(W, 0.4).mean[1])


def test_pairs_of_equal_and_of_orthogonal_neurons():
    assert float(pairs(torch.ones(4, 3).double()).mean) == pytest.approx(1)
    assert float(pairs(torch.eye(4).double()).below) == 1
    assert bool(pairs(torch.ones(1, 3).double()).mean.isnan())
    dead = torch.tensor([[1.0, 0], [2.0, 0], [0, 0]]).double()
    assert float(pairs(dead).mean) == pytest.approx(1 / 3)
    assert float(pairs(dead).below) == pytest.approx(2 / 3)


def test_the_spread_over_kept_neurons_is_numpys():
    values, keep = theta(W0, W), torch.rand(3, 7, generator=generator("kept")) < 0.6
    found = spread(values, 0.5, keep)
    for r in range(3):
        kept = values[r][keep[r]].numpy()
        assert float(found.mean[r]) == pytest.approx(kept.mean())
        assert float(found.below[r]) == pytest.approx((kept < 0.5).mean())
        assert float(found.above[r]) == pytest.approx((kept > 0.5).mean())
        expected = np.quantile(kept, [0.05, 0.25, 0.5, 0.75, 0.95])
        np.testing.assert_allclose(found.quantiles[:, r].numpy(), expected)
    nothing = spread(values[0], 0.5, torch.zeros(7, dtype=torch.bool))
    assert bool(nothing.mean.isnan())
    assert bool(nothing.below.isnan())


def test_the_ratios_are_their_sums():
    for r in range(3):
        a, b = W0[r].numpy(), W[r].numpy()
        inner = sum(float(a[i] @ b[i]) ** 2 for i in range(7))
        sizes = sum(float(a[i] @ a[i]) * float(b[i] @ b[i]) for i in range(7))
        assert float(start_ratio(W0, W)[r]) == pytest.approx(inner / sizes)
        double = sum(float(b[i] @ b[j]) ** 2 for i in range(7) for j in range(7))
        assert float(pair_ratio(W)[r]) == pytest.approx(double / float((b * b).sum()) ** 2)
        moved = float(((b - a) ** 2).sum() / (a * a).sum())
        assert float(move_ratio(W0, W)[r]) == pytest.approx(moved)
        cosines = [
            float(a[i] @ b[i]) / np.linalg.norm(a[i]) / np.linalg.norm(b[i]) for i in range(7)
        ]
        assert float(turn_ratio(W0, W)[r]) == pytest.approx(2 - 2 * np.mean(cosines))


def test_the_pair_ratio_meets_its_floor_at_equal_eigenvalues():
    q = torch.linalg.qr(some(6, 6)).Q
    for w in (q[:4], torch.cat([q, -q]), q[:1].expand(5, -1)):
        torch.testing.assert_close(pair_ratio(w), pair_floor(w))
    assert bool((pair_ratio(W) > pair_floor(W)).all())
    assert pair_floor(W).tolist() == [0.25] * 3


def test_growth_in_norm_is_no_turn():
    torch.testing.assert_close(turn_ratio(W, 3 * W), torch.zeros(3).double())
    torch.testing.assert_close(move_ratio(W, 3 * W), torch.full((3,), 4.0).double())
    keep = torch.tensor([True] + [False] * 6).expand(3, 7)
    turned = torch.cat([-W[:, :1], W[:, 1:]], 1)
    torch.testing.assert_close(turn_ratio(W, turned, keep), torch.full((3,), 4.0).double())
