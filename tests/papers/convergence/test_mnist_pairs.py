"""The least robust kernel function on images: geometry, and fits that points of caps confirm."""

import math

import numpy as np
import pytest

from advlab.attacks import APGD
from advlab.core.randomness import generator
from advlab.papers.convergence import theory
from advlab.papers.convergence.experiments import mnist_pairs
from advlab.papers.convergence.theory.caps import overlapping_caps, sample

CASE = mnist_pairs.Case(digits=(0, 1), source="stand-in", samples=3)


@pytest.fixture(autouse=True)
def short_search(monkeypatch):
    """Checks of shapes and types make a step of the search thirty times as long as it is."""
    monkeypatch.setattr(mnist_pairs, "SEARCH", APGD(steps=25, restarts=2))


def test_images_lie_on_the_sphere_and_differ_from_seed_to_seed():
    x, y = mnist_pairs.images(CASE, 0)
    assert x.shape == (2 * mnist_pairs.EACH, 784)
    np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1)
    assert y.tolist() == [1.0] * mnist_pairs.EACH + [-1.0] * mnist_pairs.EACH
    assert not np.allclose(x, mnist_pairs.images(CASE, 1)[0])


def test_rows_are_least_norm_fits_of_caps_that_do_not_meet():
    """Against least squares at the images alone, and random points of every cap."""
    table = mnist_pairs.compute(CASE)
    x, y = mnist_pairs.images(CASE, 0)
    gap = table["gap"][0]
    touch = 2 * math.sin(math.asin(gap / 2) / 2)
    assert not overlapping_caps(x, y, 0.999 * touch).pairs
    assert overlapping_caps(x, y, 1.001 * touch).pairs
    # A fit with error 0 is one of those that the program may choose, and so no shorter.
    exact = math.sqrt(y @ np.linalg.solve(theory.gram("sin_cos", x), y))
    assert table.filter(share=0.01)["norm"][0] <= exact
    assert (table["error"] <= table["eps"]).all()
    # The other search finds about as much, and no more than eps.
    np.testing.assert_allclose(table["searched"], table["error"], rtol=0.01)
    assert (table["searched"] <= table["eps"]).all()
    assert set(table["status"]) == {"fits"}
    widths = table["width"] * (np.sqrt(1 + table["eps"] ** 2) - 1) ** 2 / table["norm"] ** 4
    np.testing.assert_allclose(widths, widths[0])
    c, target = math.sqrt(2), 0.75 * (math.sqrt(1.25) - 1)
    row = table.filter(share=0.4, eps=0.5).row(0, named=True)
    # c R^2/(2 (1 - 1/e) sqrt(m)) is the target at this width.
    reached = c * row["norm"] ** 2 / (2 * (1 - math.exp(-1)) * math.sqrt(row["width"]))
    np.testing.assert_allclose(reached, target)


def test_the_search_sees_that_a_fit_of_small_caps_does_not_fit_large_ones():
    """Also against every pair of random points of the caps, which it must not be below."""
    x, y = mnist_pairs.images(CASE, 0)
    gap = np.linalg.norm(x[:, None] - x, axis=2)[y[:, None] != y].min()
    touch = 2 * math.sin(math.asin(gap / 2) / 2)
    rng = np.random.default_rng(0)
    small = theory.robust_interpolant("sin_cos", x, y, 0.01 * touch, 0.5, rng=rng, samples=3)
    found = mnist_pairs.farthest(small.expansion, x, y, 0.6 * touch, generator("search"))
    assert found > 0.6
    drawn = sample(x, 0.6 * touch, 50, rng)
    errors = np.abs(small.expansion(drawn.reshape(-1, 784)).reshape(8, 50) - y[:, None])
    assert found >= errors.max()
