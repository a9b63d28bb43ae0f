"""The explicit classifier and the lower bound: data by hand, smoke runs, false claims refuted."""

from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from scipy.spatial.distance import pdist

from advlab import lab
from advlab.core.randomness import generator
from advlab.papers.cgro.experiments import explicit_classifier, exponential_lower_bound
from advlab.papers.cgro.experiments._parts import explicit_classifier_runs

K = np.arange(1, 11)
SLOPE = {"l2 products, own squares": 120.0, "l2 free, own squares": 120.0, "l2 products": 1.0,
         "l2 free": 1.0, "linf products": 6.0, "linf free": 6.0}  # fmt: skip


def blocks(**changes) -> list[tuple]:
    values = {
        "square error": 2.0 ** (-2 * K - 2),
        "square undershoot": 0.0 * K,
        "square parameters": 20.0 * K - 7,
        "product error": 9.0 * 2.0 ** (-2 * K - 2),
        "product on axes": 0.0 * K,
    } | changes
    return [
        (0, name, "", 0, 0, float(k), float(value))
        for name, column in values.items()
        for k, value in zip(K, column, strict=True)
    ]


def classifiers(bend: float = 0.0, slope: Any = None, **changes: float) -> list[tuple]:
    shares = {"clean train": 0.0, "clean test": 0.0, "robust train": 0.0, "robust test": 1.0,
              "robust test of the clean classifier": 1.0} | changes  # fmt: skip
    rows = []
    for d in explicit_classifier.DIMENSIONS:
        for n in explicit_classifier.SIZES:
            for seed in range(3):
                for name, rate in (SLOPE | (slope or {})).items():
                    size = 50 * d + n * (rate * d + 9) + bend * n**2
                    values = {"parameters": size, **shares}
                    rows += [(seed, key, name, n, d, 0.0, value) for key, value in values.items()]
                rows.append((seed, "disagreements", "l2", n, d, 0.0, shares.get("apart", 0.0)))
    return rows


def depths(extra: int = 0, fits: float = 0.5, misses: float = 2.0) -> list[tuple]:
    rows = []
    for d in explicit_classifier.DIMENSIONS:
        rows.append(
            (0, "least depth", "", 0, d, 0.0, float(explicit_classifier.predicted_depth(d) + extra))
        )
        rows.append((0, "error at least depth", "", 0, d, 4.0, fits))
        rows.append((0, "error one below", "", 0, d, 3.0, misses))
    return rows


def table(first=None, second=None, third=None) -> pl.DataFrame:
    rows = [*(first or blocks()), *(second or classifiers()), *(third or depths())]
    return pl.DataFrame(rows, schema=explicit_classifier.SCHEMA, orient="row")


def outcomes(module, rows: pl.DataFrame) -> dict[str, str]:
    found = {verdict.id: verdict.outcome for verdict in module.verdicts(rows)}
    assert list(found) == list(module.ABOUT.claims)
    return found


def refuted(module, rows: pl.DataFrame) -> list[str]:
    found = outcomes(module, rows)
    assert set(found.values()) <= {"supported", "refuted"}
    return [claim for claim, outcome in found.items() if outcome == "refuted"]


def test_all_claims_of_s6_hold_on_a_table_in_which_they_do():
    assert set(outcomes(explicit_classifier, table()).values()) == {"supported"}


FALSE_CLASSIFIER = {
    "14a": table(blocks(**{"square error": 2.0 ** (-2 * K - 1)})),
    "14b": table(blocks(**{"square undershoot": -1e-6 + 0 * K})),
    "14c": table(blocks(**{"square parameters": 20.0 * K - 6})),
    "14d": table(blocks(**{"product error": 13.5 * 2.0 ** (-2 * K - 2)})),
    "14e": table(blocks(**{"product on axes": 1e-3 + 0 * K})),
    "15a": table(None, classifiers(**{"clean test": 0.01})),
    "15b": table(None, classifiers(**{"robust train": 0.01})),
    "15c": table(None, classifiers(**{"robust test": 0.9})),
    "15d": table(None, None, depths(extra=1)),
    "15e": table(None, None, depths(fits=1.2)),
    "16a": table(None, classifiers(bend=0.1)),
    "16b": table(None, classifiers(slope={"l2 free": 2.0})),
    "16c": table(None, classifiers(apart=1.0)),
}


@pytest.mark.parametrize("claim", FALSE_CLASSIFIER)
def test_a_false_claim_of_s6_is_refuted_and_the_others_are_not(claim):
    assert refuted(explicit_classifier, FALSE_CLASSIFIER[claim]) == [claim]


def test_too_much_room_one_depth_below_refutes_15e():
    assert refuted(explicit_classifier, table(None, None, depths(misses=0.9))) == ["15e"]


def test_a_missing_part_decides_nothing():
    some = table().filter(pl.col("quantity") != "clean test")
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
    found = explicit_classifier_runs._errors(f, train, test, inside, case, "l2", 0)
    assert (found["clean train"], found["clean test"]) == (clean, clean)
    assert (found["robust train"], found["robust test"]) == (1.0, 1.0)
    assert found["robust test of the clean classifier"] == 1.0


def lower(uses=0.0, sharp=0.0, gap=0.01, exact=0.02, bent=0.0, rate=0.19) -> pl.DataFrame:
    rows = [
        (0, f"{form} violations", lemma, 0.0, value if lemma == "A.2" else 0.0)
        for form, value in (("paper", uses), ("sharp", sharp))
        for lemma in ("A.1", "A.2", "A.3")
    ]
    for mu in exponential_lower_bound.MU:
        share = {"paper": 0.3 - mu, "entropy": 0.3 - mu + gap,
                 "exact, n = 100": 0.3 - mu + gap + exact}  # fmt: skip
        rows += [(0, "share", kind, mu, value) for kind, value in share.items()]
    for d in range(4, 41, 4):
        size = rate * d + bent * (d - 22) ** 2
        rows.append((0, "parameters", "0.1", float(d), size))
    return pl.DataFrame(rows, schema=exponential_lower_bound.SCHEMA, orient="row")


FALSE_BOUND = {
    "13a": lower(uses=1.0),
    "13b": lower(sharp=2.0),
    "17a": lower(gap=-0.01),
    "17b": lower(exact=-0.02),
    "17c": lower(rate=-0.1),
    "17d": lower(bent=0.02),
}


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
