"""The explicit classifier and the lower bound: data by hand, smoke runs, false claims refuted."""

import numpy as np
import polars as pl
import pytest
import torch
from scipy.spatial.distance import pdist
from specimens_cgro_bounds import (
    FALSE_BOUND,
    FALSE_CLASSIFIER,
    depths,
    explicit_table,
    lower,
)

from advlab import lab
from advlab.core.randomness import generator
from advlab.papers.cgro.experiments import explicit_classifier, exponential_lower_bound
from advlab.papers.cgro.experiments._parts import explicit_classifier_runs


def outcomes(module, rows: pl.DataFrame) -> dict[str, str]:
    found = {verdict.id: verdict.outcome for verdict in module.verdicts(rows)}
    assert list(found) == list(module.ABOUT.claims)
    return found


def refuted(module, rows: pl.DataFrame) -> list[str]:
    found = outcomes(module, rows)
    assert set(found.values()) <= {"supported", "refuted"}
    return [claim for claim, outcome in found.items() if outcome == "refuted"]


def test_all_claims_of_s6_hold_on_a_table_in_which_they_do():
    assert set(outcomes(explicit_classifier, explicit_table()).values()) == {"supported"}


@pytest.mark.parametrize("claim", FALSE_CLASSIFIER)
def test_a_false_claim_of_s6_is_refuted_and_the_others_are_not(claim):
    assert refuted(explicit_classifier, FALSE_CLASSIFIER[claim]) == [claim]


def test_too_much_room_one_depth_below_refutes_15e():
    assert refuted(explicit_classifier, explicit_table(None, None, depths(misses=0.9))) == ["15e"]


def test_a_missing_part_decides_nothing():
    some = explicit_table().filter(pl.col("quantity") != "clean test")
    assert outcomes(explicit_classifier, some)["15a"] == "undecided"


@pytest.mark.parametrize(("n", "d"), [(20, 3), (90, 4), (60, 9)])
def test_grid_data(n, d):
    x, y = explicit_classifier_runs.grid_data(n, d, generator("grid", n, d))
    assert len(x) == min(n, 5 ** (d - 1))
    assert torch.allclose((x[:, :-1] * 4).round() / 4, x[:, :-1])
    assert pdist(x[:, :-1]).min() >= 0.25 - 1e-12
    assert torch.allclose(x[:, -1], 0.5 + 0.02 * y)
    assert set(y.tolist()) == {-1.0, 1.0}


def test_explicit_classifier_at_smoke_scale():
    """Shares are of points; what is exact is supported even here, and a picture comes out."""
    cases = explicit_classifier.recipe("smoke")
    rows = pl.concat([explicit_classifier.compute(case) for case in cases])
    assert set(outcomes(explicit_classifier, rows).values()) == {"supported"}
    assert len(lab.load("cgro/explicit_classifier").cases("smoke")) == len(cases)
    assert explicit_classifier.figure(rows).to_dict()


class LastAxis(torch.nn.Module):
    """sign (x_d - 1/2): the clean classifier, or its opposite."""

    def __init__(self, sign: float):
        super().__init__()
        self.sign = sign

    def forward(self, x):
        return self.sign * (x[:, -1] - 0.5)


@pytest.mark.parametrize(("sign", "clean"), [(1.0, 0.0), (-1.0, 1.0)])
def test_errors_are_seen_where_they_are(sign, clean):
    x, y = explicit_classifier_runs.grid_data(20, 4, generator("grid", "errors"))
    case = explicit_classifier.Case(part="classifier", d=4, n=10, draws=5, steps=5)
    f, train, test = LastAxis(sign), (x[:10], y[:10]), (x[10:], y[10:])
    balls = explicit_classifier_runs._in_balls(train[0], "l2", 5, generator("balls"))
    assert ((balls - train[0]).norm(dim=-1) <= 0.1 + 1e-12).all()
    inside = explicit_classifier_runs._values(f, balls.flatten(0, 1)).reshape(balls.shape[:2])
    found = explicit_classifier_runs._errors(f, train, test, inside, case, "l2", 0, LastAxis(1.0))
    assert (found["clean train"], found["clean test"]) == (clean, clean)
    assert (found["robust train"], found["robust test"]) == (1.0, 1.0)
    assert found["robust test of the clean classifier"] == 1.0


def test_transfer_finds_what_a_clipped_gradient_hides():
    """Around 100 (x_D - 1/2) f_S is flat at its points: PGD must be lucky, transfer need not."""
    case = explicit_classifier.Case(part="steep", d=16, n=10, draws=5, fresh=40, steps=5)
    rows = explicit_classifier_runs.steep_classifiers(case, 0)
    found = {(name, key): value for _, key, name, _, _, _, value in rows}
    for name in ("l2 free, steep", "linf free, steep"):
        assert found[name, "robust test by transfer"] == found[name, "robust test"] == 1
        assert found[name, "robust test by PGD"] < 0.8
        assert found[name, "robust train"] == found[name, "clean test"] == 0


def test_all_claims_of_s7_hold_on_a_table_in_which_they_do():
    assert set(outcomes(exponential_lower_bound, lower()).values()) == {"supported"}
    # Below the entropy's share, but by less than 1/n.
    assert set(outcomes(exponential_lower_bound, lower(exact=-0.005)).values()) == {"supported"}


@pytest.mark.parametrize("claim", FALSE_BOUND)
def test_a_false_claim_of_s7_is_refuted_and_the_others_are_not(claim):
    assert refuted(exponential_lower_bound, FALSE_BOUND[claim]) == [claim]


def test_exponential_lower_bound_at_smoke_scale():
    rows = pl.concat(
        [exponential_lower_bound.compute(case) for case in exponential_lower_bound.recipe("smoke")]
    )
    found = outcomes(exponential_lower_bound, rows)
    assert {found[claim] for claim in ("13a", "13b", "17a", "17b", "17c")} == {"supported"}
    assert exponential_lower_bound.figure(rows).to_dict()
    used = rows.filter(quantity="sharp use", x=100.0)["value"]
    assert used.max() == pytest.approx(1, abs=0.05)


def test_a_recursion_that_never_arrives_is_a_violation():
    rows = exponential_lower_bound._uses(0, "A.1", np.array([0.5, np.nan]), np.array([0.9, 1.1]))
    counts = {quantity: value for _, quantity, _, _, value in rows if "violations" in quantity}
    assert counts == {"paper violations": 1.0, "sharp violations": 1.0}
    z = exponential_lower_bound._arrivals(np.ones(2), np.array([8.0, 100.0]), lambda z, t: 2 * z, 5)
    np.testing.assert_array_equal(z, [3.0, np.nan])
