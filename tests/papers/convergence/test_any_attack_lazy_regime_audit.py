"""Any attack, the lazy regime and the audit: plain runs agree, and each verdict can be refuted."""

import copy
from typing import ClassVar

import numpy as np
import polars as pl
import pytest
import torch

from advlab import lab
from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.losses import ModelLoss, pseudo_huber
from advlab.papers.convergence.experiments import any_attack, lazy_regime, regret_audit
from advlab.papers.convergence.experiments._parts.regret_audit_runs import Case as Audited
from advlab.papers.convergence.experiments._parts.two_layer_runs import PASSES_PER_STEP, Case, train
from advlab.training import Run

MODULES = {"any_attack": any_attack, "lazy_regime": lazy_regime, "regret_audit": regret_audit}


@pytest.mark.parametrize("name", MODULES)
def test_an_experiment_runs_end_to_end(name, tmp_path):
    result = lab.run(f"convergence/{name}", scale="smoke", jobs=1, out=tmp_path)
    assert not result.failed
    assert result.chart
    assert [one.id for one in result.verdicts] == list(MODULES[name].ABOUT.claims)
    assert {one.outcome for one in result.verdicts} == {"undecided"}


class Exact(Case):
    dtype: ClassVar[torch.dtype] = torch.float64


@pytest.mark.parametrize("attack", PASSES_PER_STEP)
def test_a_run_is_gradient_descent_on_what_the_attack_returns(attack):
    """By hand, network by network, with autograd; the attack is called as anyone would call it."""
    case = Exact(attack=attack, width=8, steps=4, replicates=2)
    run = train(case, "plain")
    x, y = case.data("plain")
    stack, threat = case.networks("plain"), case.map("plain")
    for seed in range(2):
        net = stack.replicate(seed)
        rng = generator("plain", "attack", seed)
        own = threat
        if attack == "transfer":
            own = copy.copy(threat.inner)
        for step in range(4):
            loss = ModelLoss(net, y[seed], pseudo_huber)
            seen = loss
            if attack == "transfer":
                seen = loss.under(threat.source.replicate(seed))
            found = own(seen, x[seed], case.cap, rng=rng).x
            value = loss(found).mean()
            np.testing.assert_allclose(
                float(value.detach()), run.log.losses()[step, seed], rtol=1e-9
            )
            (grad,) = torch.autograd.grad(value, net.weight)
            with torch.no_grad():
                net.weight -= 0.5 * grad


def test_judges_search_the_cap_and_the_oracle_is_the_worst(monkeypatch):
    case = Exact(width=16, steps=60, replicates=3, searched=100)
    model = train(case, "judges").model
    monkeypatch.setattr(any_attack, "NAME", "judges")
    found = any_attack.losses_under(case, model)
    for name in ("identity", "random", "fgm", "pgd"):
        assert (found["oracle"] >= found[name] - 1e-9).all(), name
    assert (found["pgd"] > found["identity"]).all()


def test_data_are_separated_and_incompatible_ones_refused():
    x, _ = Case(width=2, replicates=4).data("apart")
    for points in x:
        assert float(torch.pdist(points).min()) >= 0.6 - 1e-6
    with pytest.raises(AdvlabError, match="must not meet"):
        Case(width=2, replicates=4, radius=0.6).data("apart")
    with pytest.raises(AdvlabError, match="even width"):
        Case(width=3).networks("odd")


def runs(changes=lambda row: {}, seeds=20):
    """What `any_attack` would measure if all went well: everything falls to 1 %."""
    noise = np.random.default_rng(0)
    rows = []
    for attack in PASSES_PER_STEP:
        for width in (64, 256, 1024):
            for seed in range(seeds):
                worst = 0.03 if attack == "identity" else 0.02
                worst += 0.001 * noise.standard_normal()
                for step in (4, 9):
                    row = {
                        "attack": attack, "width": width, "seed": seed, "steps": 9, "step": step,
                        "first": 0.4, "best": 0.004, "loss": 0.004, "start": 1e-15,
                        "under oracle": worst,
                    }  # fmt: skip
                    rows.append(row | changes(row))
    return pl.DataFrame(rows)


def outcomes(module, table):
    return {one.id: one.outcome for one in module.verdicts(table)}


def test_any_attack_is_supported_by_runs_that_converge_and_refuted_by_others():
    assert set(outcomes(any_attack, runs()).values()) == {"supported"}

    def stuck(row):
        return {"best": 0.1} if (row["attack"], row["width"]) == ("switch", 256) else {}

    assert (
        outcomes(any_attack, runs(stuck))["1"]
        == outcomes(any_attack, runs(stuck))["1T"]
        == "refuted"
    )
    late = runs(lambda row: {"best": 0.1} if row["step"] == 4 else {})
    assert outcomes(any_attack, late)["1"] == "refuted"
    assert outcomes(any_attack, late)["1T"] == "supported"

    def three(row):
        return {"best": 0.1} if row["attack"] == "pgd" and row["seed"] < 3 else {}

    def two(row):
        return {"best": 0.1} if row["attack"] == "pgd" and row["seed"] < 2 else {}

    assert outcomes(any_attack, runs(three))["1"] == "refuted"
    assert outcomes(any_attack, runs(two))["1"] == "supported"
    # Narrow networks are not part of the claim; few seeds decide nothing.
    narrow = runs(lambda row: {"best": 0.1} if row["width"] == 64 else {})
    assert outcomes(any_attack, narrow)["1"] == "supported"
    assert outcomes(any_attack, runs(seeds=19))["1"] == "undecided"
    assert outcomes(any_attack, runs(lambda row: {"start": 1e-9}))["2"] == "refuted"
    turned = runs(lambda row: {"under oracle": 0.05 - row["under oracle"]})
    assert outcomes(any_attack, turned)["b"] == "refuted"


def displacements(frobenius=4.0, power=-0.5, row_power=-0.4, spread=1.0):
    noise = np.random.default_rng(1)
    rows = []
    for i, width in enumerate((64, 256, 1024, 4096)):
        for seed in range(20):
            jitter = 1 + 0.02 * noise.standard_normal(3)
            rows.append(
                {
                    "width": width, "seed": seed, "step": 5, "steps": 5,
                    "frobenius": frobenius * spread**i * jitter[0],
                    "relative": width**power * jitter[1], "row": width**row_power * jitter[2],
                }
            )  # fmt: skip
    return pl.DataFrame(rows)


def test_the_lazy_regime_is_supported_by_lazy_networks_and_refuted_by_others():
    assert set(outcomes(lazy_regime, displacements()).values()) == {"supported"}
    assert outcomes(lazy_regime, displacements(power=-0.2))["8a"] == "refuted"
    assert outcomes(lazy_regime, displacements(power=-0.8))["8a"] == "refuted"
    assert outcomes(lazy_regime, displacements(spread=1.3))["8b"] == "refuted"
    assert outcomes(lazy_regime, displacements(row_power=0.1))["8c"] == "refuted"


def test_the_lazy_regime_measures_the_distance_from_the_start():
    case = lazy_regime.Case(width=8, steps=5, replicates=2)
    table = lazy_regime.compute(case).filter(step=5).sort("seed")
    start = case.networks(lazy_regime.NAME)
    for seed in range(2):
        before = start.replicate(seed).weight.detach()
        after = train(case, lazy_regime.NAME).model.replicate(seed).weight.detach()
        move = (after - before).numpy()
        row = table.row(seed, named=True)
        assert row["frobenius"] == pytest.approx(np.linalg.norm(move))
        assert row["row"] == pytest.approx(np.linalg.norm(move, axis=1).max())
        assert row["relative"] == pytest.approx(np.linalg.norm(move) / np.linalg.norm(before))


def audits(**changes):
    rows = []
    for depth in (0, 2):
        for seed in range(5):
            for step in (1, 1810):
                row = {
                    "depth": depth, "R": None, "attack": "pgd", "seed": seed, "step": step,
                    "steps": 1810, "loss": 0.4 if step == 1 else 0.01, "best": 0.01,
                    "mean_loss": 0.05, "bound": 0.06, "residual": 1e-14, "violations": 0,
                    **regret_audit.WIDE,
                }  # fmt: skip
                if depth == 0:
                    row |= {"theorem": 0.2 + 0.001 * seed, "slack": 0.001}
                rows.append(row | (changes if depth == 0 or "bound" in changes else {}))
    return pl.DataFrame(rows, infer_schema_length=None)


@pytest.mark.parametrize(
    ("claim", "change"),
    [
        ("3", {"slack": -1e-8}),
        ("4", {"theorem": 0.005}),
        ("5a", {"bound": 0.04}),
        ("5a", {"violations": 1}),
        ("5b", {"residual": 1e-7}),
        ("c", {"theorem": 0.6}),
    ],
)
def test_the_audit_is_refuted_where_an_inequality_fails(claim, change):
    assert set(outcomes(regret_audit, audits()).values()) == {"supported"}
    assert outcomes(regret_audit, audits(**change))[claim] == "refuted"


@pytest.mark.parametrize("depth", [0, 2])
def test_the_audit_finds_a_run_that_does_not_descend(depth, monkeypatch):
    """The same computation on updates that are a hundredth too long."""
    case = Audited(width=8, depth=depth, R=1.0 if depth else None, steps=6, replicates=2, rate=0.2,
                   searched=10)  # fmt: skip
    honest = regret_audit.compute(case)
    assert honest["violations"].sum() == 0
    assert (honest["mean_loss"] <= honest["bound"]).all()
    assert honest["residual"].max() < 1e-10
    descend = Run.descend

    def longer(self, grads):
        descend(self, [1.01 * grad for grad in grads])

    if depth == 0:
        monkeypatch.setattr(Run, "descend", longer)
        assert regret_audit.compute(case)["violations"].min() > 0
