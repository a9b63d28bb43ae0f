"""Points on the sphere: on it, apart, in their half, lifted, in pairs; and uniform."""

import numpy as np
import pytest
import torch
from scipy import stats

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator, generators
from advlab.papers.convergence.data import Antipodes, Sphere, lift
from advlab.papers.convergence.measures import compatibility
from advlab.threats import Cap


def least_distance(x: torch.Tensor) -> float:
    return float(torch.pdist(x).min())


@pytest.mark.parametrize("hemisphere", [False, True])
@pytest.mark.parametrize("lifted", [False, True])
def test_points_are_on_the_sphere_apart_and_labelled_in_turn(hemisphere, lifted):
    model = Sphere(n=6, d=3, separation=0.5, hemisphere=hemisphere, lifted=lifted)
    for seed in range(20):
        x, y = model.sample(generator("sphere", seed))
        assert x.shape == (6, 3 + lifted)
        assert x.dtype == torch.float64
        torch.testing.assert_close(x.norm(dim=1), torch.ones(6, dtype=torch.float64))
        assert least_distance(x) >= 0.5
        assert y.tolist() == [1, -1, 1, -1, 1, -1]
        if hemisphere:
            assert (x[:, 2] >= 0).all()
        if lifted:
            torch.testing.assert_close(x[:, 3], torch.full_like(y, 0.5**0.5))


def test_points_without_separation_are_uniform():
    """On the sphere of R^3 every coordinate is uniform (Archimedes), and all have mean 0."""
    x = Sphere(n=5000, d=3).sample(generator("uniform")).x.numpy()
    for column in x.T:
        assert stats.kstest(column, stats.uniform(-1, 2).cdf).pvalue > 0.01
    upper = Sphere(n=5000, d=3, hemisphere=True).sample(generator("upper")).x.numpy()
    assert stats.kstest(upper[:, 2], stats.uniform(0, 1).cdf).pvalue > 0.01
    assert stats.kstest(upper[:, 0], stats.uniform(-1, 2).cdf).pvalue > 0.01


def test_two_points_have_the_law_of_pairs_that_are_apart():
    """In R^3 the inner product of independent points is uniform: with |x - x'| >= s it is so on
    [-1, 1 - s^2/2]."""
    model = Sphere(n=2, d=3, separation=1.0)
    pairs = [model.sample(generator("pairs", seed)).x for seed in range(2000)]
    inner = np.array([float(x[0] @ x[1]) for x in pairs])
    assert stats.kstest(inner, stats.uniform(-1, 1.5).cdf).pvalue > 0.01


def test_a_separation_of_four_radii_is_compatible_with_its_caps():
    for seed in range(20):
        x, y = Sphere(n=6, d=5, separation=0.6).sample(generator("compatible", seed))
        found = compatibility(x, y, Cap(radius=0.15))
        assert found.ok
        assert found.slack >= 0.3


def test_lifting_halves_squared_distances_and_leaves_no_antipodes():
    x = Antipodes(n=8, d=3).sample(generator("lift")).x
    torch.testing.assert_close(torch.pdist(lift(x)), torch.pdist(x) / 2**0.5)
    torch.testing.assert_close(lift(x).norm(dim=1), torch.ones(8, dtype=torch.float64))
    assert float((lift(x) @ lift(x).T).min()) == pytest.approx(0, abs=1e-15)


@pytest.mark.parametrize(
    ("labels", "expected"), [("equal", [1, 1, -1, -1, 1, 1]), ("opposite", [1, -1, -1, 1, 1, -1])]
)
def test_antipodes_come_in_pairs(labels, expected):
    x, y = Antipodes(n=6, d=4, labels=labels).sample(generator("pairs"))
    assert torch.equal(x[::2], -x[1::2])
    torch.testing.assert_close(x.norm(dim=1), torch.ones(6, dtype=torch.float64))
    assert y.tolist() == expected
    raw = Antipodes(n=6, d=4, labels=labels, lifted=True).sample(generator("pairs"))
    assert torch.equal(raw.x, lift(x))
    assert torch.equal(raw.y, y)


def test_stacks_hold_what_each_generator_draws_alone():
    model = Sphere(n=4, d=3, separation=0.7)
    x, y = model.sample_stack(generators("stack", seeds=range(3)))
    assert x.shape == (3, 4, 3)
    assert y.shape == (3, 4)
    for r in range(3):
        assert torch.equal(x[r], model.sample(generator("stack", r)).x)


def test_a_separation_out_of_reach_is_refused_with_advice():
    model = Sphere(n=7, d=2, separation=1.01)  # six points fit on a circle at distance 1
    with pytest.raises(AdvlabError, match=r"7 points.*1\.01, which only [45] kept.*lower"):
        model.sample(generator("full"))
    with pytest.raises(AdvlabError, match="which only 1 kept"):
        Sphere(n=2, d=3, separation=1.5, lifted=True).sample(generator("x"))


@pytest.mark.parametrize(
    ("model", "settings", "says"),
    [
        (Sphere, {"d": 1}, "d:"),
        (Sphere, {"separation": -0.1}, "separation"),
        (Sphere, {"separation": 2.1}, "separation"),
        (Sphere, {"separation": float("nan")}, "separation"),
        (Sphere, {"n": 0}, "n:"),
        (Sphere, {"radius": 1.0}, "unknown setting"),
        (Antipodes, {"d": 1}, "d:"),
        (Antipodes, {"labels": "random"}, "labels"),
    ],
)
def test_mistakes_are_named(model, settings, says):
    with pytest.raises(AdvlabError, match=says):
        model(**{"n": 4, "d": 3} | settings)


def test_draws_that_make_no_sense_are_refused():
    with pytest.raises(AdvlabError, match="even n"):
        Antipodes(n=5, d=3).sample(generator("x"))
    for model in (Sphere(n=4, d=3), Antipodes(n=4, d=3)):
        with pytest.raises(AdvlabError, match="n >= 1"):
            model.sample(generator("x"), n=0)
