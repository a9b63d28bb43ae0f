"""Patch data against their definition, and the paper's attack in closed form."""

import numpy as np
import pytest
import torch
from scipy import stats

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator, generators
from advlab.papers.cgro.data import PATCH_SETTINGS, Patches

SMALL = {"n": 6, "d": 5, "P": 3, "alpha": 2.0, "sigma": 0.3, "gamma": 0.75}


def test_each_input_has_one_signal_patch_and_noise_orthogonal_to_it():
    model = Patches(**SMALL)
    x, y, signal = model.sample(generator("points"), n=200)
    star = model.direction()
    assert float(star.norm()) == 1
    for i in range(200):
        torch.testing.assert_close(x[i, signal[i]], model.alpha * y[i] * star, rtol=0, atol=0)
        noise = x[i, torch.arange(model.P) != signal[i]]
        assert torch.equal(noise @ star, torch.zeros(model.P - 1, dtype=torch.float64))


def test_labels_places_and_noise_have_the_stated_laws():
    model = Patches(**SMALL)
    x, y, signal = model.sample(generator("laws"), n=6000)
    cells = 2 * signal.numpy() + (y.numpy() > 0)
    assert stats.chisquare(np.bincount(cells, minlength=6)).pvalue > 0.001
    noise = x[torch.arange(3) != signal[:, None]][:, 1:].flatten().numpy()
    assert stats.kstest(noise / model.sigma, "norm").pvalue > 0.001
    # Covariances between coordinates vanish up to Monte Carlo error.
    cov = np.cov(x[torch.arange(3) != signal[:, None]][:, 1:].numpy().T) / model.sigma**2
    np.testing.assert_allclose(cov, np.eye(4), atol=5 / np.sqrt(12000) * 1.5)


def test_gta_shrinks_the_signal_by_gamma_and_touches_nothing_else():
    model = Patches(**SMALL)
    points = model.sample_stack(generators("gta", seeds=range(2)))
    moved = model.gta(points)
    lengths = (moved - points.x).flatten(2).norm(dim=2)
    torch.testing.assert_close(lengths, torch.full_like(lengths, model.delta))
    star, place = model.direction(), points.signal[..., None, None]
    seen = (points.x @ star).gather(2, points.signal[..., None])[..., 0]
    # The generic formula X - gamma g(X)/||grad g|| grad g, with g(X) = <w*, X[signal]>.
    step = torch.zeros_like(points.x).scatter(
        2, place.expand(-1, -1, 1, model.d), (model.gamma * seen)[..., None, None] * star
    )
    torch.testing.assert_close(moved, points.x - step, rtol=0, atol=1e-15)


def test_the_scaling_is_the_papers_and_a_is_one_of_its_settings():
    a = PATCH_SETTINGS["A"]
    found = (a.n, a.d, a.P, round(a.alpha, 3), round(a.sigma, 5), round(1 - a.gamma, 5))
    assert found == (20, 1000, 4, 5.585, 0.02972, 0.00458)
    assert a.delta == pytest.approx(5.559, abs=1e-3)
    plain = Patches.scaled(n=5, d=400, polylog=1)
    assert 1 - plain.gamma == pytest.approx(1 / 20)
    assert PATCH_SETTINGS["tiny"].d == 300


def test_a_replicate_has_the_same_bits_alone_and_in_a_stack():
    model = Patches(**SMALL)
    stack = model.sample_stack(generators("stack", seeds=range(3)))
    for r in range(3):
        alone = model.sample(generator("stack", r))
        assert all(torch.equal(whole[r], part) for whole, part in zip(stack, alone, strict=True))


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"gamma": 0.0}, "gamma"),
        ({"gamma": 1.0}, "gamma"),
        ({"gamma": -0.1}, "gamma"),
        ({"P": 1}, "P"),
        ({"d": 1}, "d"),
        ({"sigma": 0.0}, "sigma"),
        ({"alpha": -1.0}, "alpha"),
        ({"delta": 1.0}, "unknown setting"),
    ],
)
def test_mistakes_are_named(settings, says):
    with pytest.raises(AdvlabError, match=says):
        Patches(**SMALL | settings)


def test_an_empty_draw_and_a_single_coordinate_are_refused():
    with pytest.raises(AdvlabError, match="n >= 1"):
        Patches(**SMALL).sample(generator("x"), n=0)
    with pytest.raises(AdvlabError, match="two coordinates"):
        Patches.scaled(n=2, d=1)
