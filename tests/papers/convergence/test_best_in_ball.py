"""Theorem 4.1 in a small run: what the columns mean, and where eps has something to ask for."""

import polars as pl
import pytest
import torch

from advlab.attacks import PGD
from advlab.losses import ModelLoss, pseudo_huber
from advlab.papers.convergence.experiments import best_in_ball
from advlab.papers.convergence.experiments._parts import best_in_ball_runs as runs
from advlab.papers.convergence.reductions.low_rank_deep import LowRankDeep

CASE = runs.Case(width=16, depth=2, steps=6, searched=8, judged=40, tangents=3, replicates=2)


def test_the_worst_case_is_found_by_another_search_too_and_after_training_it_is_stored():
    """Many starts of PGD find no more than the grid does, and nearly as much."""
    starts, (x, y) = CASE.starts(), CASE.data()
    net = LowRankDeep(starts, CASE.radii)
    loss = ModelLoss(net, y.flatten(), pseudo_huber)
    rng = torch.Generator().manual_seed(0)
    other = PGD(steps=40, step_size=0.1, restarts=8)(loss, x.flatten(0, 1), runs.CAP, rng=rng)
    other = other.loss.reshape(y.shape).mean(1)
    found = runs.worst_case(CASE, net, x, y)
    torch.testing.assert_close(found, other, rtol=0.02, atol=0.0)
    table = best_in_ball.compute(CASE)
    after = table.filter(attack="pgd").sort("seed", "R")
    assert after["start"].to_list() == pytest.approx(found.tolist(), rel=1e-5)
    assert (after["robust"] >= after["found"]).all()
    assert (after["robust"] < after["start"]).all()
    # What PGD finds is below the worst case of the same network.
    assert (after["first"] <= after["start"] + 1e-6).all()
    others = table.filter(~pl.col("attack").is_in(runs.JUDGED))
    assert others["robust"].is_nan().all()


def test_what_is_found_is_the_least_of_its_candidates_and_a_quarter_of_the_run_is_no_better():
    table = best_in_ball.compute(CASE)
    rows = table.filter(attack=runs.STAR)
    assert (rows["found"] <= rows["built"]).all()
    assert (rows["found"] <= rows["robust"]).all()
    assert (table["least"] <= table["early"]).all()
    assert (table["early"] <= table["first"]).all()
    assert sorted(set(table["attack"])) == sorted(CASE.maps())
    assert len(CASE.maps()) == 9


def test_bounds_of_the_linearised_optimum_are_in_order():
    table = best_in_ball.compute(CASE)
    assert (table["bound"] <= table["linear"] + 1e-6).all()
    assert (table["linear"] <= table["linear found"] + 1e-6).all()
    assert (table["linear found"] - table["linear"] < 2e-3).all()


def test_steps_of_the_theorem_are_counted_for_each_R_of_its_own():
    case = runs.Case(kind="rates", width=16, depth=1, eps=0.5, steps=6, searched=4, judged=20,
                     tangents=3, replicates=2)  # fmt: skip
    assert case.promised == [4, 16]
    table = best_in_ball.compute(case)
    assert table.select("R", "promised").unique().sort("R")["promised"].to_list() == [4, 16]
    there = table.filter(pl.col("needed").is_finite())
    assert (there["needed"] <= there["promised"]).all()
    assert (there["least"] <= there["found"] + 0.5 + 1e-9).all()
    never = table.filter(pl.col("needed").is_nan())
    assert (never["least"] > never["found"] + 0.5).all()


def test_outputs_can_move_as_far_at_every_depth():
    for depth in (1, 2, 4):
        case = CASE.model_copy(update={"depth": depth})
        assert [R * depth for R in case.radii] == pytest.approx(runs.REACHES)


def test_eps_cannot_bind_where_the_best_loss_is_near_0_or_training_wins_little():
    table = best_in_ball.compute(CASE)
    rows = table.with_columns(found=pl.lit(0.4), start=pl.lit(1.0))
    assert _binds(rows).reached == pytest.approx(0.4)
    assert _binds(rows).holds
    some = pl.col("R") == 0.5
    near = rows.with_columns(found=pl.when(some).then(0.005).otherwise("found"))
    assert not _binds(near).holds
    little = rows.with_columns(start=pl.when(some).then(0.405).otherwise("start"))
    assert not _binds(little).holds


def _binds(table: pl.DataFrame):
    found = best_in_ball.assumptions(
        table.with_columns(kind=pl.lit("widths"), rate=pl.lit(1.0), width=16, depth=2, eps=0.01)
    )
    return next(one for one in found if one.name == best_in_ball.BINDS)


def test_the_worst_case_after_an_attack_is_drawn_of_that_attack_alone():
    table = best_in_ball.compute(CASE).with_columns(width=16, depth=2)
    drawn = best_in_ball._excess(table)
    for attack, name in best_in_ball.AFTER.items():
        rows = table.filter(attack=attack).sort("R", "seed")
        shown = drawn.filter(excess=name).sort("reach", "seed")
        assert shown["above"].to_list() == (rows["robust"] - rows["found"]).to_list()
