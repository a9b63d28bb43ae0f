"""Laws of one coordinate, and the experiment on clusters that are not Gaussian."""

import numpy as np
import pytest
import torch
from scipy import stats
from specimens_benign_clusters import table

from advlab import lab
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.papers.benign.data import NoisyMixture, Quartic, UnitLaw
from advlab.papers.benign.experiments import other_clusters
from advlab.papers.benign.experiments._parts.cluster_runs import LAWS, strengths

REFERENCES = {
    "uniform": stats.uniform(-(3**0.5), 2 * 3**0.5),
    "laplace": stats.laplace(scale=0.5**0.5),
    "student": stats.t(4, scale=0.5**0.5),
}


@pytest.mark.parametrize("shape", REFERENCES)
def test_draws_and_density_are_those_of_scipy(shape):
    law, other = UnitLaw(shape=shape), REFERENCES[shape]
    drawn = law.draw(torch.empty(200, 100, dtype=torch.float64), generator("law", shape))
    assert other.var() == pytest.approx(law.variance)
    assert stats.kstest(drawn.flatten().numpy(), other.cdf).pvalue > 1e-3
    wrong = {"uniform": "laplace", "laplace": "student", "student": "laplace"}[shape]
    assert stats.kstest(drawn.flatten().numpy(), REFERENCES[wrong].cdf).pvalue < 1e-6
    t = np.linspace(-1.5, 1.5, 7)
    shift = law.log_density(t) - other.logpdf(t)
    np.testing.assert_allclose(shift, shift[0], atol=1e-12)


def test_a_coin_has_signs_and_no_density():
    law = UnitLaw(shape="signs")
    drawn = law.draw(torch.empty(20_000, dtype=torch.float64), generator("coin"))
    assert set(drawn.unique().tolist()) == {-1.0, 1.0}
    assert abs(float(drawn.mean())) < 0.03
    with pytest.raises(AdvlabError, match="density"):
        law.log_density(0.0)
    assert NoisyMixture(n=1, d=1, mu_norm=1.0, cluster=law).lam == 0


def test_all_laws_of_the_experiment_have_variance_one():
    for name, law in LAWS.items():
        assert law.variance == pytest.approx(1), name
        drawn = law.draw(torch.empty(200_000, dtype=torch.float64), generator("variance", name))
        assert float(drawn.square().mean()) == pytest.approx(1, abs=0.05)
    quartic = Quartic(lam=1.0, c=1.0)
    same = quartic.of_unit_variance()
    t, scale = np.linspace(-2, 2, 5), quartic.variance**0.5
    np.testing.assert_allclose(same.log_density(t), quartic.log_density(t * scale))
    assert LAWS["quartic"].lam == pytest.approx(quartic.variance)


def test_the_experiment_runs_end_to_end(tmp_path):
    result = lab.run("benign/other_clusters", scale="smoke", jobs=1, out=tmp_path)
    assert not result.failed
    assert [one.id for one in result.verdicts] == list(other_clusters.ABOUT.claims)
    assert {one.outcome for one in result.verdicts} == {"undecided"}
    assert result.chart


def test_the_routes_reach_the_same_strengths():
    runs = strengths(table())
    for route in other_clusters.ROUTES:
        assert runs.filter(route=route)["level"].unique().sort().to_list() == [1.0, 2.83]
    assert runs.filter(route="base")["level"].unique().to_list() == [2.0]
    assert runs.filter(route="strong")["level"].unique().to_list() == [14.4]
