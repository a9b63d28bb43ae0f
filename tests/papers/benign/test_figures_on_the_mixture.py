"""Figures 1-3 of the benign paper: the run is the plain one, and each verdict can be refuted."""

import numpy as np
import polars as pl
import pytest
import torch
from specimens_benign import curve_table, heat_table, ratio_table

from advlab import lab
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generators
from advlab.losses import ModelLoss, margin
from advlab.models import Stack, TwoLayer
from advlab.papers.benign.data import NoisyMixture
from advlab.papers.benign.experiments import exponents as exponents_of_fig1
from advlab.papers.benign.experiments import fig1, fig2, fig3
from advlab.papers.benign.experiments._parts.contours import crossings, exponents
from advlab.papers.benign.experiments._parts.synthetic_claims import checked
from advlab.papers.benign.experiments._parts.synthetic_runs import (
    ATTACK,
    RELU,
    Case,
    LabelledStack,
    trained,
)
from advlab.papers.benign.theory import averaging_contour, robust_upper_bound
from advlab.training import fit


@pytest.mark.parametrize("name", ["fig1", "fig2", "fig3", "exponents"])
def test_a_figure_runs_end_to_end(name, tmp_path):
    result = lab.run(f"benign/{name}", scale="smoke", jobs=1, out=tmp_path)
    assert not result.failed
    assert result.chart
    assert [one.id for one in result.verdicts] == list(lab.load(f"benign/{name}").about.claims)
    assert {one.outcome for one in result.verdicts} == {"undecided"}
    assert all("lower bounds" in one.note for one in result.verdicts)


def test_a_run_is_that_of_the_plain_loop():
    """All d coordinates, autograd, PGD as an attack: the same losses and errors."""
    case = Case(mu_norm=3.0, d=40, ratio=0.2, n=20, width=16, steps=30, tested=200, replicates=2)
    rngs = generators("plain", seeds=range(2))
    data = NoisyMixture(n=20, d=40, mu_norm=3.0, beta=0.1, flips="count")
    train, test = data.sample_stack(rngs), data.sample_stack(rngs, 200)
    fast, plain = (
        Stack.draw(
            lambda rng: TwoLayer.draw(40, 16, rng=rng, **RELU), generators("net", seeds=(0, 1))
        )
        for _ in range(2)
    )
    rows = trained(
        case, fast, LabelledStack(train.x, train.y), LabelledStack(test.x, test.y), train.noisy
    )
    run = fit(plain, train.x, train.y, steps=30, lr=0.1, loss="logistic", ball=case.ball,
              attack=ATTACK)  # fmt: skip
    np.testing.assert_allclose(rows["loss"], run.log.losses()[-1].double(), rtol=1e-4)

    def errors(sample):
        x, y = sample.x.flatten(0, 1), sample.y.flatten()
        found = ATTACK(ModelLoss(plain, y, margin), x, case.ball, rng=rngs)
        return (found.loss >= 0).reshape(sample.y.shape)

    np.testing.assert_allclose(rows["robust_error"], errors(test).double().mean(1), atol=0.011)
    np.testing.assert_allclose(rows["train_error"], errors(train).double().mean(1))
    flipped = (errors(train) & train.noisy).sum(1) / train.noisy.sum(1)
    np.testing.assert_allclose(rows["flipped_error"], flipped)
    with torch.no_grad():
        f = plain(test.x.flatten(0, 1)).reshape(test.y.shape)
    np.testing.assert_allclose(rows["clean_error"], (f * test.y <= 0).double().mean(1), atol=0.006)


def test_the_rate_falls_every_500_steps():
    whole = Case(mu_norm=1.0, d=5, ratio=0.1)
    rates = [whole.schedule.at(step, whole.steps) for step in (0, 499, 500, 999)]
    np.testing.assert_allclose(rates, [0.1, 0.1, 0.01, 0.01])
    short = Case(mu_norm=1.0, d=5, ratio=0.1, steps=200)
    assert short.schedule.at(199, 200) == 0.1


@pytest.mark.parametrize(
    "wrong", [{"beta": 0.5}, {"ratio": -0.1}, {"d": 0}, {"width": 0}, {"mu_norm": float("nan")}]
)
def test_bad_settings_are_refused(wrong):
    with pytest.raises(AdvlabError):
        Case(**({"mu_norm": 1.0, "d": 5, "ratio": 0.1} | wrong))


def test_crossings_and_their_power_are_found():
    """Accuracy that depends on mu^4/d only has contours d ~ mu^4, noise or not."""
    noise = np.random.default_rng(0)
    rows = [
        {"seed": seed, "mu_norm": mu, "d": d, "clean": 0.5 + 0.4 * (1 - np.exp(-x)) + e}
        for seed in range(3)
        for mu in np.geomspace(1, 10, 25)
        for d in (1000, 2000, 5000, 10000)
        for x, e in [(20 * mu**4 / d, 0.002 * noise.standard_normal())]
    ]
    found = crossings(pl.DataFrame(rows), "mu_norm", "d", "clean", 0.8)
    exact = (np.log(4) * found["d"].to_numpy() / 20) ** 0.25
    np.testing.assert_allclose(found["mu_norm"], exact, rtol=0.02)
    for power in exponents(found, "mu_norm", "d").values():
        assert abs(power - 4) < 0.1


def test_a_map_without_a_crossing_has_no_contour():
    flat = pl.DataFrame({"seed": [0, 0], "mu_norm": [1.0, 2.0], "d": [5, 5], "clean": [0.5, 0.6]})
    assert crossings(flat, "mu_norm", "d", "clean", 0.8).is_empty()
    assert np.isnan(exponents(crossings(flat, "mu_norm", "d", "clean", 0.55), "mu_norm", "d")[0])


def outcomes(figure, table) -> dict[str, str]:
    return {one.id: one.outcome for one in figure.verdicts(table)}


def test_figure_1_supports_what_is_true():
    assert set(outcomes(fig1, heat_table()).values()) == {"supported"}


@pytest.mark.parametrize(
    ("table", "id"),
    [
        (heat_table(clean=2.5), "17a"),
        (heat_table(clean=4.0, robust=4.5), "17b"),
        (heat_table(robust=3.5), "17c"),
        (heat_table(train_error=0.01), "5E"),
        (heat_table(robust_error=0.05), "6E"),
    ],
)
def test_figure_1_refutes_what_is_false(table, id):
    assert outcomes(fig1, table)[id] == "refuted"


def test_the_contour_of_the_bound_is_where_the_bound_is():
    lengths = np.array([2.0, 4.0, 7.0])
    dims = fig1._bound_contour(100, 2.5, lengths, 0.1)
    error = robust_upper_bound(100, dims, lengths, 0.1 * lengths, 0.1, C=2.5)
    np.testing.assert_allclose(error, 0.2)


def test_figure_2_supports_what_is_true():
    assert set(outcomes(fig2, curve_table()).values()) == {"supported"}


@pytest.mark.parametrize(
    ("what", "id"),
    [
        ({"loss": pl.col("loss") + 0.02}, "2E"),
        ({"loss": 0.001 + pl.col("step") * 1e-6}, "2Ed"),
        ({"robust_error": pl.col("robust_error") + 0.05}, "3a"),
        ({"robust_error": 0.1 + pl.col("mu_norm") / 100}, "3b"),
        ({"robust_error": 0.2 - pl.col("d") / 20000}, "3c"),
        ({"robust_error": 0.2 - pl.col("ratio") / 2}, "3d"),
        ({"train_error": pl.lit(0.01)}, "5Ea"),
        ({"clean_error": pl.lit(0.05)}, "5Eb"),
        ({"robust_error": pl.lit(0.05)}, "6E"),
    ],
)
def test_figure_2_refutes_what_is_false(what, id):
    assert outcomes(fig2, curve_table(**what))[id] == "refuted"


def test_figure_3_decides_both_ways():
    assert set(outcomes(fig3, ratio_table()).values()) == {"supported"}
    assert outcomes(fig3, ratio_table(sign=-1))["18"] == "refuted"
    assert outcomes(fig3, ratio_table(train_error=0.02))["5E"] == "refuted"
    assert outcomes(fig3, ratio_table(robust_error=0.05))["6E"] == "refuted"


def test_the_averaging_contour_of_figure_3_agrees_with_that_of_figure_1():
    ratio = fig3._averaging_ratio(100, 3000.0)
    np.testing.assert_allclose(averaging_contour(5.0, 0.8, 100, 0.1, ratio), 3000, rtol=1e-6)


@pytest.mark.parametrize("wrong", [{"d": 99}, {"ratio": 2.0}])
def test_settings_in_which_the_question_makes_no_sense_are_refused_in_a_line(wrong):
    setting = {"mu_norm": 1.0, "d": 100, "ratio": 0.1, "n": 100} | wrong
    with pytest.raises(AdvlabError) as refused:
        exponents_of_fig1.Case(**setting)
    assert "\n" not in str(refused.value)
    with pytest.raises(AdvlabError):
        checked([Case(**setting)])


@pytest.mark.parametrize("figure", [fig1, fig2, fig3])
def test_figures_say_what_they_reach_of_assumption_1(figure):
    table = {fig1: heat_table, fig2: curve_table, fig3: ratio_table}[figure]()
    found = {one.name: one for one in figure.assumptions(table.with_columns(width=pl.lit(1000)))}
    assert found["Assumption 1"].holds is False
    assert found["Assumption 1"].reached < 1
    assert "(3) not met" in found["Assumption 1"].condition
    assert found["step size"].holds is False
    assert 0 <= found["good run"].reached < 0.95
