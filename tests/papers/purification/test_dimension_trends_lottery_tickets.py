"""Trends over d and lottery tickets: scaled presets, and tables where claims are false or true."""

import polars as pl
import pytest
import torch
from specimens_purification_others import over_d, tickets

from advlab.attacks import FGM
from advlab.papers.purification.experiments import dimension_trends, lottery_tickets
from advlab.papers.purification.experiments._parts.presets import (
    PRESETS,
    SparseProblem,
    scaled,
)
from advlab.papers.purification.experiments._parts.trend_measures import half_radii, mixtures
from advlab.papers.purification.measures import Nets, half_radius, potential
from advlab.papers.purification.measures.tickets import TicketRules
from advlab.papers.purification.theory import regime


def outcomes(found) -> dict[str, str]:
    return {verdict.id: verdict.outcome for verdict in found}


@pytest.mark.parametrize(("power", "falls"), [(-0.3, "supported"), (0.4, "refuted")])
def test_trends_report_the_limit_and_decide_the_direction(power, falls):
    table = over_d(power)
    by_id = {verdict.id: verdict for verdict in dimension_trends.verdicts(table)}
    assert set(by_id) == set(dimension_trends.ABOUT.claims)
    for id in (*dimension_trends.POWERS, *dimension_trends.LINEAR):
        assert by_id[id].outcome == "undecided"
        assert "not decided at finite sizes" in by_id[id].note
    for id in dimension_trends.FALLING:
        assert by_id[id].measured == pytest.approx(power, abs=1e-3)
        assert by_id[f"{id}/falls"].outcome == falls
    assert by_id["6"].outcome == "supported"
    assert dimension_trends.figure(table).to_dict()


def test_radii_are_judged_in_the_units_of_the_theorems():
    """sqrt(d)/k^2 and 1/sqrt(k), at k = d^0.4: powers -0.3 and -0.2 of d are level."""
    table = over_d(radii={"clean": -0.3, "adversarial": -0.2})
    by_id = {verdict.id: verdict for verdict in dimension_trends.verdicts(table)}
    assert by_id["5.1c/radius"].measured == pytest.approx(0, abs=1e-3)
    assert by_id["5.3b/radius"].measured == pytest.approx(0, abs=1e-3)
    assert by_id["5.2/1"].measured == pytest.approx(0, abs=1e-3)
    assert by_id["5/gap"].measured == pytest.approx(0.1, abs=1e-3)


@pytest.mark.parametrize(("power", "outcome"), [(0.0, "supported"), (0.4, "refuted")])
def test_the_average_dense_part_must_stay_near_a_constant_times_its_order(power, outcome):
    beta = 0.1 * (pl.col("d") / 64) ** power
    table = over_d().with_columns((beta * (1 + 0.01 * pl.col("seed"))).alias("beta d/k"))
    assert outcomes(dimension_trends.verdicts(table))["7/level"] == outcome


def test_the_scaled_preset_is_the_random_one_at_its_own_size():
    assert scaled(256) == PRESETS["random"]


def test_scaled_presets_follow_the_powers_of_the_theorems():
    small, large = scaled(128), scaled(512)
    assert large.data.k / small.data.k == pytest.approx(4**0.4, rel=0.05)
    assert large.tau**2 * large.data.k == pytest.approx(small.tau**2 * small.data.k)
    assert large.clean.steps == 4 * small.clean.steps
    assert large.clean.penalty * 4 == pytest.approx(small.clean.penalty)
    assert large.bias.end == pytest.approx(0.85 / large.data.k**0.5)


def test_theory_is_silent_at_the_sizes_of_the_presets():
    """k = 30 at d = 256 is outside the window: the result must say so, not pass for a theorem."""
    assert regime(256, 30).says(0.22, "l2").silent


def smoke(module) -> pl.DataFrame:
    frames = [
        module.compute(case).with_columns(d=pl.lit(case.d)) for case in module.recipe("smoke")
    ]
    return pl.concat(frames, how="diagonal")


def test_trends_train_against_fgm_at_the_full_radius_from_the_first_step(monkeypatch):
    """Theorem 5.3b is about FGM: its step is always taken, and the radius does not grow."""
    seen, train = [], SparseProblem.train_adversarial

    def noted(problem, nets, *hooks, **settings):
        seen.append((settings["attack"], problem.preset.warmup))
        return train(problem, nets, *hooks, **settings)

    monkeypatch.setattr(SparseProblem, "train_adversarial", noted)
    case = dimension_trends.recipe("smoke")[0]
    dimension_trends.compute(case)
    assert seen == [(FGM(keep_worst=False), 0)]
    assert case.preset.ball.radius == scaled(case.d).tau


@pytest.mark.parametrize("module", [dimension_trends, lottery_tickets])
def test_smoke_runs_and_draws(module):
    table = smoke(module)
    assert module.figure(table).to_dict()
    assert {verdict.id for verdict in module.verdicts(table)} == set(module.ABOUT.claims)


def test_tickets_claims_can_be_true():
    found = outcomes(lottery_tickets.verdicts(tickets()))
    assert found.pop("cover") == "undecided"
    assert set(found.values()) == {"supported"}


@pytest.mark.parametrize(
    ("changes", "wrong"),
    [
        ({"pot": 1.09}, {"pot"}),
        ({"sure": 0.95}, {"sure"}),
        ({"kept": 0.3}, {"early"}),
        ({"won": 0.2}, {"kept"}),
        ({"end": 0.6}, {"early", "kept"}),
    ],
)
def test_tickets_claims_can_be_false(changes, wrong):
    found = outcomes(lottery_tickets.verdicts(tickets(**changes)))
    assert {id for id, outcome in found.items() if outcome == "refuted"} == wrong


def test_the_plateau_ends_at_the_first_loss_below_its_level():
    assert lottery_tickets.plateau_end(tickets())["step"].to_list() == [10] * 5


def test_the_half_radius_is_where_a_falling_share_crosses_one_half():
    assert half_radius(lambda r: 1 / (1 + r**2 / 0.09), 0.01, 10.0, 12) == pytest.approx(
        0.3, rel=1e-4
    )
    assert half_radius(lambda r: 1.0, 0.1, 2.0) == 2.0
    assert half_radius(lambda r: 0.2, 0.1, 2.0) == 0.1
    # A step is found up to the last interval.
    assert half_radius(lambda r: float(r < 0.7), 0.1, 10.0, 12) == pytest.approx(0.7, rel=2e-3)


def small_problem() -> SparseProblem:
    full = scaled(24)
    law = full.data.model_copy(update={"n": 60})
    return SparseProblem.draw(full.model_copy(update={"data": law}), range(2), "radii", 101)


def test_the_half_radius_of_a_linear_network_is_the_median_distance_to_its_boundary():
    """Without a bias the pair is linear: an input breaks at |<w, x>|/|w|, if it is right."""
    problem = small_problem()
    nets = Nets.at(problem.direction[:, None], 0.0)
    found = half_radii(problem, nets)
    for r in range(2):
        way = problem.direction[r]
        margin = problem.test_y[r] * (problem.test_x[r] @ way) / way.norm()
        assert float(found[r]) == pytest.approx(float(margin.median()), rel=0.03)


def test_own_atoms_of_theorem_5_2_are_those_of_the_start():
    problem = small_problem()
    start = problem.networks().get_parameter("weight").detach()
    clean = Nets.at(3 * start, 0.1)
    found = mixtures(problem, start, clean)
    rules = TicketRules.of(24, 120)
    for r in range(2):
        A, w = start[r] @ problem.M[r], problem.w[r]
        own = potential(A, rules, problem.preset.sigma0)
        betas = (3 * A / w).masked_fill(own, 0.0)
        assert float(found["largest beta"][r]) == pytest.approx(float(betas.abs().max()))
        assert int(found["most own atoms"][r]) == int(own.sum(1).max())
        alpha = torch.where(own, 3 * A / w, 0.0)
        won = (own.sum(1) == 1) & (alpha.amax(1) > 0.5)
        assert float(found["winners/d"][r]) == pytest.approx(int(won.sum()) / 24)
        top = (3 * A / w).scatter(1, A.abs().argmax(1, keepdim=True), 0.0)
        assert float(found["largest beta, top"][r]) == pytest.approx(float(top.abs().max()))
