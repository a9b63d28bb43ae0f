"""Figure 6 runs end to end, its risks are right, and each of its verdicts can come out refuted."""

import numpy as np
import polars as pl
import pytest
import torch

from advlab import lab
from advlab.attacks import FGM
from advlab.linear import adversarial_risk
from advlab.losses import ModelLoss, squared
from advlab.papers.generalization.data import LinearModel
from advlab.papers.generalization.experiments import fig6
from advlab.papers.generalization.experiments._parts.lazy_runs import (
    NETS,
    LazyProblem,
    NetCase,
    linear_parts,
)
from advlab.report.samples import changes
from advlab.threats import Ball

BEST = 1.4828
RISK = {("linear", 50): 1.481, ("linear", 400): 1.482, ("sigmoid", 50): 1.50, ("relu", 50): 1.51,
        ("sigmoid", 400): 1.49, ("relu", 400): 1.489}  # fmt: skip
SPEED = [("linear", 50, 0), ("relu", 50, 0), ("sigmoid", 50, 0.05), ("linear", 400, 0),
         ("sigmoid", 400, 0.01)]  # fmt: skip
IDENTITIES = {"equivariance": 1e-15, "linear network": 1e-16, "four times": 1e-15, "twice": 1e-15}
DISTANCES = ["D_12", "D_23", "max |x'theta|"]


def table(where=lambda row: False, **what) -> pl.DataFrame:
    """A table in which every claim is true; rows of `where` get `what` instead."""
    noise = np.random.default_rng(0)
    rows = []
    for seed in range(6):
        wobble = 1e-3 * noise.standard_normal()
        end = {"seed": seed, "radius": 0.3, "step": 4000, "steps": 4000, "best": BEST}
        rows += [
            end
            | {"kind": "risk", "activation": net, "n": n, "width": h}
            | {"risk": risk + wobble * (net != "linear")}
            for (net, h), risk in RISK.items()
            for n in ((100, 1000) if h == 50 else (100,))
        ]
        rows += [
            end
            | {"kind": "speed", "activation": net, "n": 1000, "width": h, "step": 100, "steps": 100}
            | {"risk": 1.7 + gap + wobble, "standard": 1.3 + wobble}
            for net, h, gap in SPEED
        ]
        rows.append({"seed": seed, "kind": "identities", **IDENTITIES})
        rows += [
            {"seed": seed, "kind": "distances", "width": h}
            | dict.fromkeys(DISTANCES, 20 / h + wobble)
            for h in (50, 200)
        ]
    changed = [row | what if where(row) else row for row in rows]
    return pl.DataFrame(changed, infer_schema_length=None)


def outcomes(rows: pl.DataFrame) -> dict[str, str]:
    found = fig6.verdicts(rows)
    return {verdict.id: verdict.outcome for verdict in found}


def at(kind: str, **where):
    return lambda row: row["kind"] == kind and all(row[k] == v for k, v in where.items())


FALSE = {
    "8a": (at("identities"), {"equivariance": 1e-9}),
    "8b": (at("identities"), {"linear network": 1e-9}),
    "8c": (at("identities"), {"four times": 1e-9}),
    "8d": (at("identities"), {"twice": 0.7}),
    "9a": (at("speed", activation="relu"), {"standard": 1.4}),
    "9b": (at("speed", activation="relu"), {"risk": 1.5}),
    "9c": (at("risk", activation="sigmoid", n=1000), {"risk": 1.6}),
    "9d": (at("risk", activation="relu", width=400), {"risk": 1.55}),
    "9e": (at("risk", activation="sigmoid", n=100), {"risk": 1.45}),
    "9f": (at("distances", width=200), {"D_23": 0.9}),
    "9g": (at("speed", activation="sigmoid", width=400), {"risk": 1.78}),
}


def test_all_claims_hold_on_a_table_in_which_they_do():
    assert outcomes(table()) == dict.fromkeys(FALSE, "supported")
    assert [verdict.id for verdict in fig6.verdicts(table())] == list(fig6.ABOUT.claims)


@pytest.mark.parametrize("part", FALSE)
def test_a_false_claim_is_refuted_and_the_others_are_not(part):
    where, what = FALSE[part]
    expected = dict.fromkeys(FALSE, "supported") | {part: "refuted"}
    assert outcomes(table(where, **what)) == expected


def test_changes_pair_replicates_and_neighbouring_levels():
    rows = pl.DataFrame(
        {"seed": [0, 1, 0, 1, 0], "h": [5, 5, 9, 9, 20], "y": [1.0, 2.0, 4.0, 8.0, 1.0],
         "net": ["a"] * 5}
    )  # fmt: skip
    found = changes(rows, "h", "y", "net")
    assert {name: list(values) for name, values in found.items()} == {
        "net a, h from 5 to 9": [3.0, 6.0],
        "net a, h from 9 to 20": [-3.0],
    }


def test_smoke_runs_and_decides_nothing(tmp_path):
    result = lab.run("generalization/fig6", scale="smoke", jobs=1, out=tmp_path)
    assert not result.failed
    assert {verdict.outcome for verdict in result.verdicts} == {"undecided"}
    assert [verdict.id for verdict in result.verdicts] == list(fig6.ABOUT.claims)
    exact = {verdict.id: verdict.measured for verdict in result.verdicts[:4]}
    assert max(exact["8a"], exact["8b"], exact["8c"]) < 1e-10 < 0.01 < exact["8d"]
    assert len(result.chart["concat"]) == 2


@pytest.mark.parametrize("activation", NETS)
def test_the_risk_is_the_mean_loss_under_the_attack(activation):
    """The corrected estimate against plain losses of the attack on ten times as many points."""
    law = LinearModel(n=4, d=30, theta0="unit", sigma2=0.5)
    case = NetCase(activation=activation, n=4, width=5, radius=0.4, xi=0.1, lr=2.0, steps=20,
                   replicates=2, tests=20_000)  # fmt: skip
    problem = LazyProblem.draw("test", law, case, delta=-1.0)
    assert problem.train.x.shape == (2, 4, 10)
    net = problem.fit(case).model
    found = problem.risk(net, 0.4)
    ball, rng = Ball(norm="l2", radius=0.4), torch.Generator().manual_seed(5)
    for r in range(2):
        x = torch.randn(200_000, 10, generator=rng)
        y = x @ problem.theta0[r] + 0.5**0.5 * torch.randn(len(x), generator=rng)
        loss = FGM()(ModelLoss(net.replicate(r), y, squared), x, ball, rng=rng).loss.double()
        errors = float(loss.std()) * (len(x) ** -0.5 + case.tests**-0.5)
        assert abs(float(loss.mean()) - float(found[r])) < 4 * errors
        plain = float(((net.replicate(r)(x) - y) ** 2).detach().mean())
        assert float(loss.mean()) - plain > 6 * errors


def test_the_risk_of_a_linear_network_is_the_closed_form():
    law = LinearModel(n=20, d=3, theta0="unit")
    case = NetCase(activation="linear", n=20, width=5, steps=50, replicates=2, tests=50)
    problem = LazyProblem.draw("test", law, case, delta=0.5)
    net = problem.fit(case).model
    beta, ball = linear_parts(net).double().numpy(), Ball(norm="l2", radius=0.3)
    exact = [
        adversarial_risk(one, truth, 1.0, ball)
        for one, truth in zip(beta, problem.theta0.double().numpy(), strict=True)
    ]
    np.testing.assert_allclose(problem.risk(net, 0.3), exact, rtol=1e-5)


def test_a_seed_has_the_same_data_in_every_run():
    law = LinearModel(n=20, d=3, theta0="unit")
    stack = NetCase(activation="sigmoid", n=20, replicates=3, tests=10)
    alone = NetCase(activation="relu", n=20, radius=0.1, seed=1, tests=10)
    one, other = (LazyProblem.draw("test", law, case, 0.5) for case in (stack, alone))
    for first, second in zip((*one.train, *one.test), (*other.train, *other.test), strict=True):
        torch.testing.assert_close(first[1], second[0])
    torch.testing.assert_close(one.nets[1].theta, other.nets[0].theta)
