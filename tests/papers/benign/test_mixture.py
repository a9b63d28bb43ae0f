"""The mixture against its own law: clusters, coins, the three ways of flipping, bits of stacks."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad
from scipy.special import gamma, pbdv

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator, generators
from advlab.papers.benign.data import NoisyMixture, Quartic, Scaled

CLUSTERS = {
    "gaussian": "gaussian",
    "scaled": Scaled(s=0.5),
    "quartic": Quartic(lam=0.7, c=0.4),
    "nearly gaussian": Quartic(lam=2.0, c=0.003),
    "nearly pure quartic": Quartic(lam=1e-6, c=3.0),
}
ALL = pytest.mark.parametrize("cluster", CLUSTERS.values(), ids=CLUSTERS.keys())


def quartic_moment(law: Quartic, power: int) -> float:
    """E t^power in parabolic cylinder functions (Gradshteyn-Ryzhik 3.462.1 with x = t^2)."""
    z = law.lam / 2 / np.sqrt(2 * law.c)

    def integral(k: float) -> float:
        nu = k + 0.5
        return (2 * law.c) ** (-nu / 2) * gamma(nu) * pbdv(-nu, z)[0]

    return integral(power / 2) / integral(0)


def variance(cluster) -> float:
    if cluster == "gaussian":
        return 1.0
    return cluster.s**2 if isinstance(cluster, Scaled) else quartic_moment(cluster, 2)


def quartic_cdf(law: Quartic):
    grid = np.linspace(-12, 12, 40_001)
    density = np.exp(-law.lam * grid**2 / 2 - law.c * grid**4)
    below = np.concatenate([[0], np.cumsum((density[1:] + density[:-1]) / 2)])
    return lambda t: np.interp(t, grid, below / below[-1])


@ALL
def test_entries_of_the_noise_follow_the_law(cluster):
    noise = NoisyMixture(n=2_000, d=50, mu_norm=3.0, cluster=cluster).sample(generator("ks")).noise
    cdf = (
        quartic_cdf(cluster)
        if isinstance(cluster, Quartic)
        else stats.norm(scale=np.sqrt(variance(cluster))).cdf
    )
    assert stats.kstest(noise.flatten().numpy(), cdf).pvalue > 0.01


def test_the_ks_test_would_see_a_law_that_is_a_little_off():
    noise = NoisyMixture(n=2_000, d=50, mu_norm=0.0, cluster=Quartic(lam=0.7, c=0.4)).sample(
        generator("ks")
    )
    wrong = quartic_cdf(Quartic(lam=0.7, c=0.5))
    assert stats.kstest(noise.noise.flatten().numpy(), wrong).pvalue < 1e-6


@ALL
def test_moments_of_the_noise(cluster):
    model = NoisyMixture(n=100_000, d=3, mu_norm=2.0, cluster=cluster)
    noise = model.sample(generator("moments")).noise.numpy()
    expected = variance(cluster)
    assert model.kappa == pytest.approx(expected, rel=1e-9)
    # Standard errors: sd/sqrt(n) of a mean, at most sqrt(2/n) = 0.0045 relative of a variance.
    np.testing.assert_allclose(noise.mean(0), 0, atol=4 * np.sqrt(expected / 1e5))
    np.testing.assert_allclose(np.cov(noise.T), expected * np.eye(3), atol=0.018 * expected)
    if isinstance(cluster, Quartic):
        spread = np.sqrt((quartic_moment(cluster, 8) - quartic_moment(cluster, 4) ** 2) / 3e5)
        assert (noise**4).mean() == pytest.approx(quartic_moment(cluster, 4), abs=4 * spread)


@ALL
def test_the_law_is_strongly_log_concave_with_its_lam_and_no_more(cluster):
    model = NoisyMixture(n=1, d=1, mu_norm=1.0, cluster=cluster)
    t, h = np.linspace(-2, 2, 81), 1e-3
    log_p = model.law.log_density
    curvature = -(log_p(t + h) - 2 * log_p(t) + log_p(t - h)) / h**2
    assert curvature.min() == pytest.approx(model.lam, rel=1e-4, abs=1e-4)


def test_lam_and_kappa_as_the_paper_has_them():
    assert (NoisyMixture(n=1, d=1, mu_norm=1.0).lam, NoisyMixture(n=1, d=1, mu_norm=1.0).kappa) == (
        1,
        1,
    )
    scaled = NoisyMixture(n=1, d=1, mu_norm=1.0, cluster=Scaled(s=0.5))
    assert (scaled.lam, scaled.kappa) == (4, 0.25)
    quartic = NoisyMixture(n=1, d=1, mu_norm=1.0, cluster=Quartic(lam=2.0, c=1.0))
    weight = [quad(lambda t, p=p: t**p * np.exp(-(t**2) - t**4), -9, 9)[0] for p in (0, 2)]
    assert quartic.lam == 2
    assert quartic.kappa == pytest.approx(weight[1] / weight[0], rel=1e-10)


def test_inputs_are_centres_and_noise_and_classes_are_fair():
    model = NoisyMixture(n=20_000, d=4, mu_norm=2.5, beta=0.2)
    data = model.sample(generator("parts"))
    assert model.mu().tolist() == [2.5, 0, 0, 0]
    assert torch.equal(data.x, data.noise + data.y_clean[:, None] * model.mu())
    assert set(data.y.tolist()) == set(data.y_clean.tolist()) == {-1.0, 1.0}
    assert stats.binomtest(int((data.y_clean > 0).sum()), 20_000).pvalue > 0.001
    assert data.x.dtype == data.y.dtype == torch.float64
    # The cluster says nothing about the noise, nor does the flip.
    for mask in (data.y_clean > 0, data.noisy):
        two = data.noise[mask, 0].numpy(), data.noise[~mask, 0].numpy()
        assert stats.ks_2samp(*two).pvalue > 0.001


@pytest.mark.parametrize("flips", ["independent", "count", "margin"])
def test_masks_say_which_labels_were_flipped(flips):
    data = NoisyMixture(n=200, d=3, mu_norm=1.0, beta=0.3, flips=flips).sample(generator("masks"))
    assert torch.equal(data.clean, ~data.noisy)
    assert torch.equal(data.y[data.clean], data.y_clean[data.clean])
    assert torch.equal(data.y[data.noisy], -data.y_clean[data.noisy])
    assert 0 < data.noisy.sum() < 200


def test_independent_flips_are_binomial():
    stack = NoisyMixture(n=30, d=1, mu_norm=1.0, beta=0.1).sample_stack(
        generators("flips", seeds=range(2_000))
    )
    counts = np.bincount(stack.noisy.sum(-1).numpy(), minlength=31)
    expected = 2_000 * stats.binom(30, 0.1).pmf(np.arange(31))
    seen = np.append(counts[:7], counts[7:].sum())
    assert stats.chisquare(seen, np.append(expected[:7], expected[7:].sum())).pvalue > 0.001


@pytest.mark.parametrize("flips", ["count", "margin"])
@pytest.mark.parametrize(
    ("n", "beta", "count"),
    [(20, 0.1, 2), (100, 0.29, 29), (10, 0.19, 1), (9, 0.1, 0), (1, 0.49, 0), (30, 0.0, 0)],
)
def test_counted_flips_are_exactly_the_floor(flips, n, beta, count):
    model = NoisyMixture(n=n, d=2, mu_norm=1.0, beta=beta, flips=flips)
    noisy = model.sample_stack(generators("count", seeds=range(5))).noisy
    assert noisy.sum(-1).tolist() == [count] * 5


def test_counted_flips_fall_on_every_example_alike():
    model = NoisyMixture(n=10, d=1, mu_norm=1.0, beta=0.3, flips="count")
    hits = model.sample_stack(generators("even", seeds=range(2_000))).noisy.sum(0)
    # The counts of one draw sum to 3, which shrinks the statistic: chi-square is conservative.
    assert stats.chisquare(hits.numpy()).pvalue > 0.001


def test_margin_flips_are_the_points_nearest_the_other_cluster():
    model = NoisyMixture(n=50, d=3, mu_norm=2.0, beta=0.2, flips="margin")
    data = model.sample(generator("margin"))
    margin = (data.x @ model.mu()) * data.y_clean
    assert set(torch.argsort(margin)[:10].tolist()) == set(torch.where(data.noisy)[0].tolist())


def test_the_clean_data_do_not_depend_on_the_flips():
    draws = [
        NoisyMixture(n=40, d=3, mu_norm=2.0, beta=beta, flips=flips).sample(generator("same"))
        for flips in ("independent", "count", "margin")
        for beta in (0.1, 0.4)
    ]
    assert all(torch.equal(draws[0].x, other.x) for other in draws)
    assert all(torch.equal(draws[0].y_clean, other.y_clean) for other in draws)
    few, many = draws[0].noisy, draws[1].noisy
    assert not (few & ~many).any()


models = st.builds(
    NoisyMixture,
    n=st.integers(1, 30),
    d=st.integers(1, 20),
    mu_norm=st.floats(0, 10),
    beta=st.floats(0, 0.49),
    cluster=st.sampled_from(list(CLUSTERS.values())),
    flips=st.sampled_from(["independent", "count", "margin"]),
)


@given(model=models, replicates=st.integers(1, 5), more=st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_a_replicate_has_the_same_bits_alone_and_in_any_stack(model, replicates, more):
    stack = model.sample_stack(generators("stack", seeds=range(replicates + more)))
    assert stack.x.shape == stack.noise.shape == (replicates + more, model.n, model.d)
    assert stack.noisy.shape == (replicates + more, model.n)
    for r in range(replicates):
        alone = model.sample(generator("stack", r))
        assert all(torch.equal(whole[r], part) for whole, part in zip(stack, alone, strict=True))
        assert torch.equal(stack.noisy[r], alone.noisy)


@given(model=models)
@settings(max_examples=30, deadline=None)
def test_settings_survive_json_and_sampling(model):
    key = model.key()
    model.sample(generator("json"))
    assert model.kappa > 0
    back = NoisyMixture.model_validate_json(model.model_dump_json())
    assert back == model
    assert back.key() == model.key() == key


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"beta": 0.5}, "beta"),
        ({"beta": -0.1}, "beta"),
        ({"beta": float("nan")}, "beta"),
        ({"mu_norm": -1.0}, "mu_norm"),
        ({"mu_norm": float("inf")}, "mu_norm"),
        ({"cluster": "cauchy"}, "cluster"),
        ({"cluster": {"s": 0.0}}, "cluster"),
        ({"cluster": {"lam": 1.0, "c": -1.0}}, "cluster"),
        ({"cluster": {"lam": 0.0, "c": 1.0}}, "cluster"),
        ({"flips": "all"}, "flips"),
        ({"d": 0}, "d"),
        ({"n": 0}, "n"),
        ({"mu": 1.0}, "unknown setting"),
    ],
)
def test_mistakes_are_named(settings, says):
    with pytest.raises(AdvlabError, match=says):
        NoisyMixture(**{"n": 5, "d": 3, "mu_norm": 1.0} | settings)


def test_an_empty_draw_is_refused():
    model = NoisyMixture(n=5, d=3, mu_norm=1.0)
    with pytest.raises(AdvlabError, match="n >= 1"):
        model.sample(generator("x"), n=0)
    with pytest.raises(AdvlabError, match="one generator per replicate"):
        model.sample_stack([])
