"""Figures 1, 3, 5, 9, 10, 11 and the surrogate's limit: end to end at smoke scale, and verdicts
that can come out either way."""

import numpy as np
import polars as pl
import pytest
import torch

from advlab import lab, linear
from advlab.attacks import Surrogate
from advlab.core.randomness import generators
from advlab.models import Linear, Stack
from advlab.papers.generalization import theory
from advlab.papers.generalization.experiments import (
    fig1,
    fig3,
    fig5,
    fig9,
    fig10,
    fig11,
    surrogate_limit,
)
from advlab.papers.generalization.experiments._parts.linear_runs import draw, gradients, train
from advlab.threats import Ball
from advlab.training import fit

FIGURES = {
    "fig1": fig1, "fig3": fig3, "fig5": fig5, "fig9": fig9, "fig10": fig10, "fig11": fig11,
    "surrogate_limit": surrogate_limit,
}  # fmt: skip


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_runs_and_redraws(name, tmp_path):
    result = lab.run(f"generalization/{name}", scale="smoke", jobs=1, out=tmp_path)
    module = FIGURES[name]
    assert result.failed == []
    assert {verdict.id for verdict in result.verdicts} == set(module.ABOUT.claims)
    assert all(verdict.outcome == "undecided" for verdict in result.verdicts)
    measured = [v for v in result.verdicts if "4b" not in v.id]
    assert all(verdict.measured is not None for verdict in measured)
    assert "vega-lite" in result.chart["$schema"]
    again = lab.run(f"generalization/{name}", scale="smoke", jobs=1, out=tmp_path)
    assert again.verdicts == result.verdicts


def test_the_closed_form_run_is_the_general_loop():
    """What the figures train by formula is the plain stack with attack and autograd."""
    data = fig5.Case(n=100, eps=0.5).data
    x, y = draw(data, "test", range(3))
    ball = Ball(norm="l2", radius=0.5)
    path = train(x, y, ball=ball, xi=0.1, lr=0.01, steps=20)
    stack = Stack([Linear.zero(10) for _ in range(3)])
    fit(stack, x, y, steps=20, lr=0.01, loss="squared", ball=ball, attack=Surrogate(xi=0.1),
        rng=generators("a", seeds=range(3)))  # fmt: skip
    torch.testing.assert_close(path.theta[-1], stack.get_parameter("theta").detach())
    adversarial, standard = gradients(path, 0.1)
    step = (path.theta[:-1] - path.theta[1:]) / 0.01
    torch.testing.assert_close(adversarial[:-1], step, rtol=1e-7, atol=1e-9)
    residual = torch.einsum("rnd,rd->rn", x, path.theta[5]) - y
    torch.testing.assert_close(standard[5], 2 / 100 * torch.einsum("rn,rnd->rd", residual, x))


def test_standard_training_follows_its_closed_form():
    case = fig3.Case(d=1000, xi=0.5, eps=0.0, replicates=2)
    x, y = draw(case.data, "generalization/interpolation", case.seeds)
    table = fig3.compute(case)
    theta = np.stack([linear.gd_closed_form(a, b, 1e-3, 60) for a, b in zip(x.numpy(), y.numpy())])  # noqa: B905
    risk = linear.standard_risk(theta, case.data.theta0_vector(), 1.0)
    np.testing.assert_allclose(table.filter(step=60).sort("seed")["test"], risk, rtol=1e-10)


def test_the_interpolator_is_the_smallest_model_that_fits():
    case = fig3.Case(d=1000, xi=0.5, eps=0.0, replicates=5, steps=1)
    x, y = draw(case.data, "generalization/interpolation", case.seeds)
    pairs = zip(x.numpy(), y.numpy(), strict=True)
    theta = np.stack([linear.min_norm(a, b) for a, b in pairs])
    table = fig3.compute(case).filter(step=0).sort("seed")
    np.testing.assert_allclose(table["interpolator_norm2"], (theta**2).sum(1), rtol=1e-10)
    risk = linear.standard_risk(theta, case.data.theta0_vector(), 1.0)
    np.testing.assert_allclose(table["interpolator_risk"], risk, rtol=1e-10)


def outcomes(verdicts) -> dict[str, str]:
    return {v.id: v.outcome for v in verdicts}


def fig1_table(jitters: float, drifts: float) -> pl.DataFrame:
    """30 seeds; the run with xi = `jitters` zigzags; R~ and the loss grow by `drifts` a step."""
    rows = []
    steps = np.arange(101)
    for seed in range(30):
        for xi in (0.0, 0.05):
            wave = 0.1 * (-1.0) ** steps if xi == jitters else 0.0
            rows.append(_runs(seed, steps, train=11 + np.exp(-steps / 20) + wave, xi=xi, eps=3.0))
        rows.append(_runs(seed, steps, train=5 * (1 + drifts * steps), xi=0.1, eps=0.5))
    table = pl.concat(rows).with_columns(potential=pl.col("train"), test=pl.col("train"))
    descent = pl.when(pl.col("eps") == 0.5).then(pl.lit("descent")).otherwise(pl.lit("figure"))
    return table.with_columns(purpose=descent)


def _runs(seed: int, steps, **columns) -> pl.DataFrame:
    return pl.DataFrame({"seed": seed, "step": steps} | columns)


def test_fig1_can_be_refuted():
    good = outcomes(fig1.verdicts(fig1_table(jitters=0.0, drifts=-1e-4)))
    bad = outcomes(fig1.verdicts(fig1_table(jitters=0.05, drifts=1e-3)))
    assert set(good.values()) == {"supported"}
    assert set(bad.values()) == {"refuted"}


def fig5_table(excess: float, away: float, price: float) -> pl.DataFrame:
    """Final rows with a given excess over R*, distance that grows with n, and factor on c(eps)."""
    data = fig5.Case(n=100, eps=0.0).data
    best = linear.optimal_path(data.theta0_vector(), 1.0, np.array(fig5.EPS)).risk
    cost = linear.cost_of_robustness(data.theta0_vector(), 1.0, np.array(fig5.EPS)) * data.v2
    rng = np.random.default_rng(0)
    rows = [
        {
            "step": 1000, "seed": seed, "n": n, "eps": eps,
            "test": best[i] + excess * data.v2 * (1 + 0.01 * rng.normal()),
            "distance": 0.5 + away * np.log(n) + 0.001 * rng.normal(),
            "standard": 1 + price * cost[i] * (1 + 0.01 * rng.normal()), "least_squares": 1.0,
        }
        for seed in range(10) for n in (100, 1000, 10_000) for i, eps in enumerate(fig5.EPS)
    ]  # fmt: skip
    return pl.DataFrame(rows)


def test_fig5_can_be_refuted():
    good = outcomes(fig5.verdicts(fig5_table(excess=1e-4, away=-0.1, price=1.0)))
    bad = outcomes(fig5.verdicts(fig5_table(excess=0.05, away=0.1, price=-1.0)))
    assert set(good.values()) == {"supported"}
    assert set(bad.values()) == {"refuted"}


def test_surrogate_limit_can_be_refuted():
    rng = np.random.default_rng(0)

    def table(target: str) -> pl.DataFrame:
        rows = []
        for eps, xi in surrogate_limit.SETTINGS:
            truth = (np.ones(10), 1.0)
            limit = float(theory.kappa_alg(*truth, eps, xi))
            best = float(linear.optimal_path(*truth, np.array([eps])).kappa[0])
            kappa = {"limit": limit, "best": best}[target]
            rows += [
                {"step": 600, "seed": s, "eps": eps, "xi": xi,
                 "limit": limit, "best": best, "kappa": kappa * (1 + 1e-3 * rng.normal())}
                for s in range(5)
            ]  # fmt: skip
        return pl.DataFrame(rows)

    good, bad = (outcomes(surrogate_limit.verdicts(table(t))) for t in ("limit", "best"))
    assert good == {"6a": "supported", "6b": "supported", "6c": "supported"}
    assert bad == {"6a": "supported", "6b": "refuted", "6c": "refuted"}


def test_the_limits_excess_risk_can_fall(monkeypatch):
    falling = surrogate_limit.theory_table(np.array([0.01, 0.1, 1.0])).with_columns(
        -pl.col("excess")
    )
    monkeypatch.setattr(surrogate_limit, "theory_table", lambda xis: falling)
    rows = [
        {"step": 1, "seed": s, "eps": eps, "xi": xi, "kappa": 1.0, "limit": 1.0, "best": 2.0}
        for eps, xi in surrogate_limit.SETTINGS for s in range(3)
    ]  # fmt: skip
    assert outcomes(surrogate_limit.verdicts(pl.DataFrame(rows)))["6a"] == "refuted"


def interpolation_table(fits: bool, gap_grows: bool, settings) -> pl.DataFrame:
    """100 seeds of runs that fit and learn nothing, or the reverse; gaps by xi, d and eps."""
    rng = np.random.default_rng(0)
    parts = []
    for d, xi in settings:
        for eps in (0.0, 0.01, 0.1):
            strength = (1 + (xi == 0)) * (2 if d == 1000 else 1) * (eps**2 if gap_grows else eps)
            size = 1 / strength if gap_grows and strength else strength
            for seed in range(100):
                step = np.arange(6)
                residual = 0.9 ** (8 * step) if fits else 0.9 + 0.01 * step
                end = 1e-4 * (1000 / d) if fits else 5.0 * d / 1000
                parts.append(
                    pl.DataFrame(
                        {
                            "step": step, "seed": seed, "d": d, "xi": xi, "eps": eps,
                            "train": 11 * residual, "train_exact": end * (1 + 0.01 * rng.normal()),
                            "test": 11.0 if fits else 3.0 + 0.01 * rng.normal(),
                            "residual": residual,
                            "relative_gap": size * np.exp(0.01 * rng.normal()), "gap": size + 1e-9,
                            "interpolator_norm2": 0.2204 * (1 if fits else 3) + 0.01 * rng.normal(),
                            "interpolator_risk": 10.82 * (1 if fits else 2) + 0.1 * rng.normal(),
                        }
                    )
                )  # fmt: skip
    return pl.concat(parts)


SETTINGS = {
    "fig3": [(1000, 0.5)],
    "fig9": [(1000, 0.0), (1000, 0.5)],
    "fig10": [(1000, 0.5), (5000, 0.5)],
    "fig11": [(5000, 0.0), (5000, 0.5), (1000, 0.0)],
}


@pytest.mark.parametrize("name", SETTINGS)
def test_interpolation_figures_can_be_refuted(name):
    module, settings = FIGURES[name], SETTINGS[name]
    good = outcomes(module.verdicts(interpolation_table(True, False, settings)))
    bad = outcomes(module.verdicts(interpolation_table(False, True, settings)))
    assert set(good.values()) == {"supported"}
    assert set(bad.values()) == {"refuted"}
