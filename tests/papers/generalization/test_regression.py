"""The linear model against its own law, and the bits of stacks against the bits of single draws."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator, generators
from advlab.papers.generalization.data import AR1, LinearModel, SparseVector, symmetrise
from advlab.papers.generalization.data.regression import T_CUT

LAWS = ("gaussian", "uniform", "truncated-t")
COV = ((2.0, 0.5, 0.0), (0.5, 1.0, -0.3), (0.0, -0.3, 0.7))


def truncated_t(power: int) -> float:
    """A moment of Student's t with two degrees of freedom cut at +-T_CUT, by quadrature."""
    law = stats.t(2)
    inside = law.cdf(T_CUT) - law.cdf(-T_CUT)
    return 2 * law.expect(lambda t: t**power, lb=0, ub=T_CUT) / inside


def truncated_t_cdf(z):
    law, scale = stats.t(2), np.sqrt(truncated_t(2))
    low, high = law.cdf(-T_CUT), law.cdf(T_CUT)
    return (law.cdf(np.clip(z * scale, -T_CUT, T_CUT)) - low) / (high - low)


CDF = {
    "gaussian": stats.norm.cdf,
    "uniform": stats.uniform(-np.sqrt(3), 2 * np.sqrt(3)).cdf,
    "truncated-t": truncated_t_cdf,
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("cov", [None, AR1(rho=0.6), COV])
def test_moments_are_those_of_the_law(law, cov):
    model = LinearModel(n=200_000, d=3, theta0=(1.0, -2.0, 0.5), sigma2=0.4, cov=cov, law=law)
    x, y = model.sample(generator("moments", law, cov))
    sigma, theta0 = model.covariance(), model.theta0_vector()
    # Standard errors are at most about 3/sqrt(n) = 0.007 here (the t law has kurtosis 6).
    np.testing.assert_allclose(x.mean(0), np.zeros(3), atol=0.02)
    np.testing.assert_allclose(np.cov(x.T.numpy()), sigma, atol=0.05)
    np.testing.assert_allclose((x * y[:, None]).mean(0), sigma @ theta0, atol=0.12)
    np.testing.assert_allclose(y.var(), model.v2, rtol=0.02)
    noise = y - x @ torch.from_numpy(theta0)
    np.testing.assert_allclose(noise.var(), 0.4, rtol=0.02)
    np.testing.assert_allclose((x * noise[:, None]).mean(0), np.zeros(3), atol=0.01)


@pytest.mark.parametrize("law", LAWS)
def test_the_entries_follow_the_law(law):
    x, _ = LinearModel(n=20_000, d=2, law=law).sample(generator("law", law))
    assert stats.kstest(x.flatten().numpy(), CDF[law]).pvalue > 0.01
    for other in set(LAWS) - {law}:
        assert stats.kstest(x.flatten().numpy(), CDF[other]).pvalue < 1e-6


def test_the_laws_are_their_quantile_functions():
    """The same uniform numbers through scipy's quantile functions give the same entries."""
    u = torch.empty(500, 2, dtype=torch.float64).uniform_(generator=generator("u")).numpy()
    low, high = stats.t(2).cdf([-T_CUT, T_CUT])
    expected = {
        "uniform": stats.uniform(-np.sqrt(3), 2 * np.sqrt(3)).ppf(u),
        "truncated-t": stats.t(2).ppf(low + (high - low) * u) / np.sqrt(truncated_t(2)),
    }
    for law, entries in expected.items():
        x, _ = LinearModel(n=500, d=2, law=law).sample(generator("u"))
        np.testing.assert_allclose(x, entries, rtol=1e-7, atol=1e-9)


def test_noise_is_normal_and_goes_with_sigma2():
    model = LinearModel(n=20_000, d=2, theta0=(0.0, 0.0), sigma2=9.0, law="uniform")
    _, y = model.sample(generator("noise"))
    assert stats.kstest(y.numpy() / 3, stats.norm.cdf).pvalue > 0.01
    x, y = model.model_copy(update={"sigma2": 0.0, "theta0": (1.0, 2.0)}).sample(generator("none"))
    assert torch.equal(y, x @ torch.tensor([1.0, 2.0], dtype=torch.float64))


models = st.builds(
    LinearModel,
    n=st.integers(1, 40),
    d=st.integers(1, 20),
    theta0=st.sampled_from(["ones", "unit", SparseVector(k=1, value=3.0)]),
    cov=st.none() | st.builds(AR1, rho=st.floats(-0.9, 0.9)),
    law=st.sampled_from(LAWS),
)


@given(model=models, replicates=st.integers(1, 6), more=st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_a_replicate_has_the_same_bits_alone_and_in_any_stack(model, replicates, more):
    x, y = model.sample_stack(generators("stack", seeds=range(replicates + more)))
    assert x.shape == (replicates + more, model.n, model.d)
    assert y.shape == (replicates + more, model.n)
    fewer = model.sample_stack(generators("stack", seeds=range(replicates)))
    assert torch.equal(x[:replicates], fewer.x)
    assert torch.equal(y[:replicates], fewer.y)
    for r in range(replicates):
        alone = model.sample(generator("stack", r))
        assert torch.equal(x[r], alone.x)
        assert torch.equal(y[r], alone.y)


def test_theta0_as_words_and_v2():
    # v^2 = 11 and 2 are the values of the paper's settings (d = 10 ones; d = 3 unit; ten ones).
    assert LinearModel(n=1, d=10, theta0="ones").v2 == 11
    assert LinearModel(n=1, d=3, theta0="unit").v2 == pytest.approx(2)
    ten = LinearModel(n=1, d=1000, theta0=SparseVector(k=10), sigma2=0.1)
    assert ten.v2 == pytest.approx(10.1)
    assert ten.theta0_vector().tolist() == [1.0] * 10 + [0.0] * 990
    assert LinearModel(n=1, d=2, theta0=(1.0, 1.0), cov=AR1(rho=0.5), sigma2=0).v2 == 3


def test_ar1_is_its_formula():
    sigma = LinearModel(n=1, d=3, cov=AR1(rho=-0.5)).covariance()
    np.testing.assert_array_equal(sigma, [[1, -0.5, 0.25], [-0.5, 1, -0.5], [0.25, -0.5, 1]])


@given(model=models)
@settings(max_examples=30, deadline=None)
def test_settings_survive_json_and_sampling(model):
    key = model.key()
    model.sample(generator("json"))
    back = LinearModel.model_validate_json(model.model_dump_json())
    assert back == model
    assert back.key() == model.key() == key


def test_symmetrised_data_are_odd():
    x, y = LinearModel(n=4, d=2).sample_stack(generators("odd", seeds=range(3)))
    both = symmetrise(x, y)
    assert both.x.shape == (3, 8, 2)
    assert torch.equal(both.x[:, 4:], -x)
    assert torch.equal(both.y[:, :4], y)
    assert torch.equal(both.y[:, 4:], -y)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"theta0": (1.0, 2.0)}, "2 entries but d = 3"),
        ({"theta0": "one"}, "theta0"),
        ({"theta0": SparseVector(k=4)}, "k = 4"),
        ({"theta0": (1.0, 2.0, float("nan"))}, "finite"),
        ({"cov": ((1.0, 0.0), (0.0, 1.0))}, "3 rows of 3"),
        ({"cov": ((1.0, 0.2, 0), (0.0, 1.0, 0), (0, 0, 1.0))}, "symmetric"),
        ({"cov": ((1.0, 1.0, 0), (1.0, 1.0, 0), (0, 0, 1.0))}, "positive definite"),
        ({"cov": {"rho": 1.0}}, "rho"),
        ({"sigma2": -1.0}, "sigma2"),
        ({"law": "cauchy"}, "law"),
        ({"n": 0}, "n"),
    ],
)
def test_mistakes_are_named(settings, says):
    with pytest.raises(AdvlabError, match=says):
        LinearModel(**{"n": 5, "d": 3} | settings)


def test_an_empty_draw_is_refused():
    model = LinearModel(n=5, d=3)
    with pytest.raises(AdvlabError, match="n >= 1"):
        model.sample(generator("x"), n=0)
    with pytest.raises(AdvlabError, match="one generator per replicate"):
        model.sample_stack([])
