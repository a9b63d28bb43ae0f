"""Randomised smoothing of a linear model, whose smoothed version is known in closed form."""

import math

import pytest
import torch
from scipy import stats

from advlab.certify import Smoothed
from advlab.core.errors import AdvlabError
from advlab.models import Linear

THETA = torch.tensor([3.0, 4.0], dtype=torch.float64)
SIGMA = 0.5


def points(*scores: float) -> torch.Tensor:
    """Inputs at these signed distances from the boundary."""
    return torch.tensor(scores, dtype=torch.float64)[:, None] * THETA / 5


def rng(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_radii_of_a_linear_model_approach_the_distance_to_its_boundary():
    """g(x) = sign(theta'x), and p = Phi(distance / sigma): the radius is the distance itself."""
    smooth = Smoothed(Linear(THETA), SIGMA)
    distance = torch.tensor([0.3, -0.5, 0.8], dtype=torch.float64)
    vote = smooth.certify(points(*distance.tolist()), n=40_000, rng=rng())
    assert vote.label.tolist() == [1, -1, 1]
    assert not vote.abstains.any()
    assert (vote.radius < distance.abs()).all()
    torch.testing.assert_close(vote.radius, distance.abs(), atol=0.04, rtol=0)


def test_the_bound_is_clopper_pearsons():
    votes = Smoothed(Linear(THETA), SIGMA)
    vote = votes.certify(points(0.4), n0=50, n=300, alpha=0.01, rng=rng(3))
    again = Smoothed(Linear(THETA), SIGMA)
    source = rng(3)
    again.counts(points(0.4), 50, source)
    k = int(again.counts(points(0.4), 300, source)[0][0, 1])
    exact = stats.binomtest(k, 300, alternative="greater").proportion_ci(0.99, method="exact").low
    assert float(vote.p_lower[0]) == pytest.approx(exact, rel=1e-9)
    assert float(vote.radius[0]) == pytest.approx(SIGMA * stats.norm.ppf(exact), rel=1e-9)


def test_radii_are_too_large_at_most_as_often_as_alpha_says():
    smooth, alpha, runs = Smoothed(Linear(THETA), SIGMA), 0.2, 400
    vote = smooth.certify(points(0.25).expand(runs, 2), n0=20, n=200, alpha=alpha, rng=rng(5))
    too_large = int(((vote.radius > 0.25) & (vote.label == 1) & ~vote.abstains).sum())
    assert stats.binomtest(too_large, runs, alpha, alternative="greater").pvalue > 1e-4
    # And the bound is not idle: without it half of the radii would be too large.
    assert too_large > 0.05 * runs


def test_it_abstains_at_the_boundary_and_predicts_away_from_it():
    smooth = Smoothed(Linear(THETA), SIGMA)
    x = points(0.0, 1.0, -1.0)
    vote = smooth.certify(x, n=2000, rng=rng())
    assert vote.abstains.tolist() == [True, False, False]
    assert float(vote.radius[0]) == 0.0
    said = smooth.predict(x, n=500, rng=rng())
    assert said.abstains.tolist() == [True, False, False]
    assert said.label[1:].tolist() == [1, -1]


def test_certified_error_counts_wrong_unsure_and_too_near():
    smooth = Smoothed(Linear(THETA), SIGMA)
    vote = smooth.certify(points(0.0, 0.6, 0.6, 0.2), n=20_000, rng=rng())
    y = torch.tensor([1, 1, -1, 1])
    assert smooth.certified_error(vote, y, radius=0.0) == 0.5
    assert smooth.certified_error(vote, y, radius=0.4) == 0.75
    assert smooth.certified_error(vote, y, radius=1.0) == 1.0


def test_several_classes_any_batch_and_the_model_stays_in_its_mode():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(4, 3), torch.nn.Dropout(0.9))
    x = torch.randn(3, 2, 2)
    vote = Smoothed(net, 0.1, batch=64).certify(x, n=1000, rng=rng())
    assert net.training
    assert vote.label.tolist() == net.eval()(x).argmax(1).tolist()
    counts, signed = Smoothed(net, 0.1, batch=7).counts(x, 20, rng())
    assert counts.sum(1).tolist() == [20, 20, 20]
    assert not signed


def test_everything_for_one_class_has_the_radius_of_its_count():
    vote = Smoothed(Linear(THETA), SIGMA).certify(points(50.0), n=1000, alpha=0.001, rng=rng())
    assert float(vote.p_lower[0]) == pytest.approx(0.001 ** (1 / 1000))
    assert math.isfinite(float(vote.radius[0]))


@pytest.mark.parametrize("bad", [{"n": 0}, {"alpha": 0.0}, {"alpha": 1.0}, {"n0": 0}])
def test_bad_settings(bad):
    with pytest.raises(AdvlabError):
        Smoothed(Linear(THETA), SIGMA).certify(points(1.0), **bad, rng=rng())


def test_sigma_and_batch_are_positive():
    with pytest.raises(AdvlabError, match="sigma"):
        Smoothed(Linear(THETA), 0.0)
    with pytest.raises(AdvlabError, match="batch"):
        Smoothed(Linear(THETA), 1.0, batch=0)
