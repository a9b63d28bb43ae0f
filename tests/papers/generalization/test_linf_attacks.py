"""L_inf: the step search against its definition, smoke scale end to end, verdicts both ways."""

from functools import partial

import numpy as np
import polars as pl
import pytest
import torch

from advlab import lab
from advlab.attacks import Surrogate
from advlab.core.randomness import generators
from advlab.models import Linear, Stack
from advlab.papers.generalization.data import LinearModel
from advlab.papers.generalization.experiments import linf_attacks
from advlab.papers.generalization.reductions import LinearAdversarial
from advlab.threats import Ball
from advlab.training import fit


def table(power=1.0, height=0.5, shrink=1.0, train=1.0, away=1.0) -> pl.DataFrame:
    """Steps in proportion to xi^power; linf at the smallest xi has `height` times the l2 step."""
    noise = 1 + 0.01 * np.random.default_rng(0).standard_normal(6)
    rows: list[dict] = []
    for seed in range(6):
        for xi in (0.05, 0.005):
            l2 = 1e-3 * (xi / 0.05) ** power
            scaled = 1e-3 * height * (xi / 0.005) ** power
            for norm, eta in (("l2", l2), ("linf", scaled)):
                row = {"part": "steps", "norm": norm, "xi": xi, "eta": eta * noise[seed], "d": 10}
                rows.append({**row, "seed": seed, "radius": 3.0})
        for d in (1000, 5000, 20000):
            for c in (1.0, 0.1):
                row = {"part": "interpolation", "d": d, "c": c, "seed": seed}
                fitted = train * c**2 * (1e-3 if train == 1 else 1.0) * noise[seed] * 1000 / d
                gap = away * c * 0.2 * noise[seed] * (1000 / d) ** 0.5
                rows.append({**row, "train_v2": fitted, "test_v2": 1 + gap})
    for d in (10, 1000):
        predicted = 1 / (1 + 0.05 * d)
        shrunk = {"part": "shrink", "d": d, "shrink": shrink * predicted, "predicted": predicted}
        rows.append({**shrunk, "seed": 0})
    return pl.DataFrame(rows, infer_schema_length=None)


def outcomes(rows: pl.DataFrame) -> dict[str, str]:
    found = {verdict.id: verdict.outcome for verdict in linf_attacks.verdicts(rows)}
    assert list(found) == list(linf_attacks.ABOUT.claims)
    return found


def test_verdicts_support_a_table_in_which_the_claims_hold():
    assert set(outcomes(table()).values()) == {"supported"}


@pytest.mark.parametrize(
    ("parts", "changes"),
    [
        ({"16a"}, {"power": 0.5}),
        ({"16b"}, {"height": 1.5}),
        ({"16c"}, {"shrink": 1.01}),
        ({"17c"}, {"train": 3.0}),
        ({"17d"}, {"away": 5.0}),
    ],
)
def test_each_verdict_refutes_a_table_in_which_its_claim_is_false(parts, changes):
    found = outcomes(table(**changes))
    assert {part for part, outcome in found.items() if outcome == "refuted"} == parts
    assert {outcome for part, outcome in found.items() if part not in parts} == {"supported"}


@pytest.mark.parametrize(
    ("part", "column", "rising"),
    [("17a", "train_v2", 1e-8 * pl.col("d")), ("17b", "test_v2", 1 + 1e-7 * pl.col("d"))],
)
def test_growth_with_d_is_refuted(part, column, rising):
    noise = 1e-6 * pl.col("seed")
    assert outcomes(table().with_columns((rising + noise).alias(column)))[part] == "refuted"


def test_a_search_that_found_nothing_leaves_the_claims_undecided():
    rows = table().with_columns(pl.when(pl.col("seed") != 2).then("eta").alias("eta"))
    assert {outcomes(rows)[part] for part in ("16a", "16b")} == {"undecided"}


def test_own_steps_are_those_of_plain_gradient_descent():
    law = LinearModel(n=30, d=4)
    x, y = law.sample_stack(generators("own", seeds=range(2)))
    against = {"loss": "squared", "ball": Ball(norm="linf", radius=0.1)}
    objective = LinearAdversarial(**against, attack=Surrogate(xi=0.1))
    settings = {"steps": 7, "objective": objective}
    rates = (0.01, 0.05)
    both = Stack([Linear.zero(4)] * 2)
    fit(both, x, y, lr=1.0, optimizer=partial(linf_attacks.OwnSteps, rates=rates), **settings)
    for r, lr in enumerate(rates):
        alone = Linear.zero(4)
        fit(alone, x[r], y[r], lr=lr, **settings)
        torch.testing.assert_close(both.theta[r], alone.theta, rtol=1e-12, atol=1e-15)


def test_the_largest_stable_step_is_stable_and_a_larger_one_is_not():
    case = linf_attacks.Case(part="steps", n=300, radius=0.95, xi=0.05, halvings=3, replicates=2)
    eta = linf_attacks.compute(case)["eta"].to_numpy()
    x, y = LinearModel(n=300, d=10).sample_stack(
        generators(linf_attacks.NAME, "data", seeds=range(2))
    )
    assert linf_attacks._stable(case, x, y, eta).all()
    assert not linf_attacks._stable(case, x, y, eta * 32 ** (1 / 8)).any()


def test_a_run_that_diverges_is_not_stable():
    case = linf_attacks.Case(part="steps", norm="l2", n=50, radius=3.0, replicates=1)
    x, y = LinearModel(n=50, d=10).sample_stack(generators("diverge", seeds=[0]))
    assert not linf_attacks._stable(case, x, y, np.array([1e6])).any()


def test_interpolation_matches_a_direct_computation():
    case = linf_attacks.Case(part="interpolation", n=5, d=60, radius=60**-0.5)
    (row,) = linf_attacks.compute(case).iter_rows(named=True)
    law = LinearModel(n=5, d=60, theta0=linf_attacks.SparseVector(k=10))
    x, y = law.sample(generators(linf_attacks.NAME, "interpolation", 60, seeds=[0])[0])
    theta = np.linalg.pinv(x.numpy()) @ y.numpy()
    fitted = (np.abs(theta).sum() / 60**0.5) ** 2
    assert row["train_v2"] == pytest.approx(fitted / 11)
    fresh = np.random.default_rng(0).standard_normal((200_000, 60))
    noise = np.random.default_rng(1).standard_normal(200_000)
    r = np.abs(fresh @ (theta - law.theta0_vector()) - noise)
    assert row["test_v2"] == pytest.approx(((r + fitted**0.5) ** 2).mean() / 11, rel=0.02)


def test_smoke_runs_end_to_end(tmp_path):
    result = lab.run("generalization/linf_attacks", scale="smoke", jobs=1, out=tmp_path)
    assert result.failed == []
    assert [verdict.id for verdict in result.verdicts] == list(linf_attacks.ABOUT.claims)
    assert {verdict.outcome for verdict in result.verdicts} == {"undecided"}
    assert len(result.chart["concat"]) == 4
