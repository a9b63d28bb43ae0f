"""Robust capacity at smoke scale, its search for widths by hand, each verdict both ways."""

import numpy as np
import polars as pl
import pytest
import torch

from advlab import lab
from advlab.core.randomness import generator
from advlab.models import Stack, TwoLayer
from advlab.papers.convergence.experiments import robust_capacity
from advlab.papers.convergence.experiments._parts import least_widths
from advlab.papers.convergence.theory import capacity

TRUE = {
    "failed labellings": 0.0,
    "distance": 1.01,
    "failed below": 0.0,
    "worked above": 0.0,
    "largest eps": 1.0,
    "clean": 1.0,
    "robust": 0.2,
    "plain parameters": 50.0,
    "linf parameters": 500.0,
    "l2 parameters": 400.0,
    "plain width": 2.0,
    "robust width": 5.0,
}
FALSE = {
    "15a": {"failed labellings": 1.0},
    "15b": {"distance": 0.99},
    "16a": {"failed below": 2.0},
    "16b": {"worked above": 2.0},
    "17": {"robust width": 1.0},
    "18a": {"clean": 11 / 12},
    "18b": {"robust": 0.95},
}


def table(**changes: float) -> pl.DataFrame:
    """Every quantity in three dimensions and six seeds, widths with a little noise."""
    noise = np.random.default_rng(0).choice([0.0, 0.0, 0.1], size=6)
    return pl.DataFrame(
        [
            {
                "seed": seed,
                "quantity": quantity,
                "n": 12,
                "d": d,
                "value": value + noise[seed] * (quantity == "robust width"),
            }
            for d in robust_capacity.DIMENSIONS
            for seed in range(6)
            for quantity, value in (TRUE | changes).items()
        ]
    )


def outcomes(rows: pl.DataFrame) -> dict[str, str]:
    found = {verdict.id: verdict.outcome for verdict in robust_capacity.verdicts(rows)}
    assert list(found) == list(robust_capacity.ABOUT.claims)
    return found


def test_all_claims_hold_on_a_table_in_which_they_do():
    assert set(outcomes(table()).values()) == {"supported"}


@pytest.mark.parametrize("part", FALSE)
def test_a_false_claim_is_refuted_and_the_others_are_not(part):
    found = outcomes(table(**FALSE[part]))
    refuted = ["17a", "17b"] if part == "17" else [part]
    assert [claim for claim, outcome in found.items() if outcome == "refuted"] == refuted
    assert [found[claim] for claim in found if claim not in refuted] == ["supported"] * (
        len(found) - len(refuted)
    )


def changed(where: pl.Expr, value: float) -> pl.DataFrame:
    return table().with_columns(value=pl.when(where).then(value).otherwise("value"))


def test_equal_widths_support_the_first_half_of_claim_17_only():
    rows = changed(pl.col("quantity") == "robust width", 2.0)
    found = outcomes(rows)
    assert (found["17a"], found["17b"]) == ("supported", "refuted")


def test_one_dimension_with_a_smaller_robust_width_refutes_17a_but_not_most():
    rows = changed((pl.col("quantity") == "robust width") & (pl.col("d") == 5), 1.0)
    found = outcomes(rows)
    assert (found["17a"], found["17b"]) == ("refuted", "supported")


def test_one_bad_size_is_enough_to_refute_18b():
    rows = changed((pl.col("quantity") == "robust") & (pl.col("d") == 10), 1.0)
    assert outcomes(rows)["18b"] == "refuted"


def test_an_unknown_plain_width_decides_nothing():
    one = (pl.col("quantity") == "plain width") & (pl.col("seed") == 2) & (pl.col("d") == 3)
    assert outcomes(changed(one, float("nan")))["17a"] == "undecided"


@pytest.mark.parametrize(("n", "d"), [(12, 3), (20, 10), (5, 1)])
def test_points_are_farthest_point_samples_with_least_distance_two(n, d):
    x, y = least_widths.separated(n, d, generator("points", n, d))
    assert float(torch.pdist(x).min()) == pytest.approx(2)
    assert int((y < 0).sum()) == n // 2
    assert set(y.tolist()) == {-1.0, 1.0}
    # Each point is as far from those before it as no later point is.
    apart = torch.cdist(x, x)
    for i in range(1, n):
        assert float(apart[i:, :i].amin(1).argmax()) == 0


def search(
    training: least_widths.Training, data: least_widths.Separated, starts: int = 1
) -> least_widths._Search:
    return least_widths._Search([data], training, [(0, start) for start in range(starts)], "test")


def test_who_fits_is_what_an_exact_computation_says():
    """Ridge splines as networks: all fit the points, and their balls as their extremes have it."""
    rng, seen = np.random.default_rng(0), []
    for seed in range(12):
        data = least_widths.separated(4, 2, generator("fits", seed))
        x, y = data.x.numpy(), data.y.numpy()
        f = capacity.plain_interpolator(x, y, rng)
        w, b, a = (torch.as_tensor(part) for part in (f.direction, -f.knots, f.coefficients))
        network = Stack([TwoLayer(w.expand(4, -1), a, "relu", b, torch.zeros(()).double(),
                                  init="torch")])  # fmt: skip
        low, high = f.extremes(x, least_widths.RADIUS)
        expected = bool((np.where(y > 0, low, -high) > 0).all())
        assert search("plain", data).fits(network).tolist() == [True]
        assert search("robust", data).fits(network).tolist() == [expected]
        seen.append(expected)
    assert 0 < sum(seen) < 12


SETTINGS = {"steps": 100, "starts": 2, "name": "test"}


def xor(scale: float = 1.0) -> least_widths.Separated:
    x = scale * torch.tensor([[1.0, 1.0], [-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0]]).double()
    return least_widths.Separated(x, torch.tensor([1.0, 1.0, -1.0, -1.0]).double())


def test_one_unit_cannot_fit_xor_and_more_can():
    for training in ("plain", "robust"):
        (width,) = least_widths.minimal_widths([xor()], [0], training, (1, 8, 16), **SETTINGS)
        assert width in (8, 16)
    assert least_widths.minimal_widths([xor()], [0], "plain", (1,), **SETTINGS) == [None]


def test_balls_that_overlap_cannot_be_fitted_but_their_points_can():
    close = xor(0.5)
    short = SETTINGS | {"steps": 20}
    assert least_widths.minimal_widths([close], [0], "robust", (16,), **short) == [None]
    assert least_widths.minimal_widths([close], [0], "plain", (16,), **SETTINGS) == [16]


def test_a_data_set_has_the_same_width_alone_and_in_company():
    data = [least_widths.separated(4, 2, generator("alone", seed)) for seed in range(3)]
    data[1] = xor()
    together = least_widths.minimal_widths(data, range(3), "robust", (1, 8), **SETTINGS)
    assert len(set(together)) > 1
    # The last one trains in stacks of other sizes: alone, and with those that are left.
    assert least_widths.minimal_widths(data[2:], [2], "robust", (1, 8), **SETTINGS) == together[2:]


def test_a_width_that_is_not_found_is_the_largest_for_balls_and_missing_for_points(monkeypatch):
    monkeypatch.setattr(
        robust_capacity, "minimal_widths", lambda data, *args, **kwargs: [None] * len(data)
    )
    rows = robust_capacity.compute(
        robust_capacity.Case(part="widths", d=3, n=4, widths=(1, 8), replicates=2)
    )
    assert rows.filter(quantity="robust width")["value"].to_list() == [8, 8]
    assert rows.filter(quantity="plain width")["value"].is_nan().all()


def test_parts_that_need_no_training_give_the_numbers_of_the_paper():
    cases = [case for case in robust_capacity.recipe("smoke") if case.part != "widths"]
    rows = pl.concat([robust_capacity.compute(case) for case in cases])
    assert rows.filter(quantity="failed labellings")["value"].sum() == 0
    tried = rows.filter(quantity="distance").select("n", "d").rows()
    assert {(2, 6), (12, 1), (6, 2), (4, 3), *robust_capacity.LARGE} <= set(tried)
    for name in ("failed below", "worked above"):
        assert rows.filter(quantity=name)["value"].sum() == 0
    ends = rows.filter(quantity="largest eps").select("d", "n", "value").rows()
    for d, k, end in ends:
        assert end == pytest.approx(1 / capacity.gamma(d, k), rel=1e-9)
    assert (rows.filter(quantity="clean")["value"] == 1).all()
    plain = rows.filter(quantity="plain parameters").select("n", "d", "value").rows()
    linf = rows.filter(quantity="linf parameters").select("n", "d", "value").rows()
    assert all(value == d + 2 * n for n, d, value in plain)
    assert all(value == n * (6 * d + 1) + n + 1 for n, d, value in linf)


def test_smoke_runs_end_to_end(tmp_path):
    result = lab.run("convergence/robust_capacity", scale="smoke", jobs=1, out=tmp_path)
    assert result.failed == []
    assert {verdict.outcome for verdict in result.verdicts} == {"undecided"}
    planes = result.chart["concat"][:2]
    assert len(result.chart["concat"]) == 6
    for plane in planes:
        # Balls are round: a unit has as many pixels across as upwards.
        across, up = (plane["layer"][0]["encoding"][axis]["scale"]["domain"] for axis in "xy")
        assert plane["width"] / (across[1] - across[0]) == pytest.approx(
            plane["height"] / (up[1] - up[0])
        )
