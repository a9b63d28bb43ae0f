"""PGD training in closed coordinates against the lab's own loop and attack in d dimensions."""

import polars as pl
import pytest
import torch

from advlab.attacks import PGD
from advlab.core.randomness import generator, generators
from advlab.losses import ModelLoss, margin
from advlab.models import Stack
from advlab.papers.cgro.data import Patches, PatchPoints
from advlab.papers.cgro.experiments import pgd_phases
from advlab.papers.cgro.experiments._parts import pgd_phases_figure
from advlab.papers.cgro.models import PatchCNN
from advlab.papers.cgro.reductions import patch_law
from advlab.papers.cgro.reductions.patch_errors import network, train_inputs
from advlab.papers.cgro.reductions.patch_pgd import PatchPGD, PGDState, pgd_trajectory
from advlab.threats import Ball
from advlab.training import Mixed, fit

LAWS = (
    Patches(n=5, d=30, P=3, alpha=2.0, sigma=0.3, gamma=0.9),
    # More noise patches than dimensions.
    Patches(n=6, d=9, P=3, alpha=1.5, sigma=0.4, gamma=0.9),
)
RADIUS, RATE, STEPS = 0.6, 0.1, 25


def trained(law: Patches) -> tuple[PGDState, PatchPoints, Stack]:
    """Two networks by both ways."""
    points = PatchPoints(*law.sample_stack(generators("points", law.d, seeds=range(2))))
    nets = Stack.draw(
        lambda rng: PatchCNN.draw(law.d, 4, 0.3, rng), generators("start", law.d, seeds=range(2))
    )
    problem = patch_law.of_points(law, points, nets.get_parameter("weight"))
    rates = torch.full((2,), RATE, dtype=torch.float64)
    attack = PatchPGD(torch.full((2,), RADIUS, dtype=torch.float64))
    (state,) = pgd_trajectory(problem, attack, 0.4, rates, [STEPS])
    walk = PGD(steps=3, step_size=0.5, random_start=False)
    objective = Mixed(loss="logistic", ball=Ball("l2", RADIUS), attack=walk, lam=0.4)
    fit(nets, points.x, points.y, steps=STEPS, lr=RATE, objective=objective,
        rng=generators("run", seeds=range(2)))  # fmt: skip
    return state, points, nets


def test_closed_training_is_training_against_pgd():
    for law in LAWS:
        state, points, nets = trained(law)
        weight = nets.get_parameter("weight").detach()
        noise = patch_law.noise_patches(law, points)
        torch.testing.assert_close(state.gram, weight @ weight.mT, rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(state.u, weight[..., 0], rtol=1e-7, atol=1e-9)
        torch.testing.assert_close(state.v, noise @ weight.mT, rtol=1e-7, atol=1e-9)
        f = nets(points.x.flatten(0, 1)).reshape(points.y.shape)
        torch.testing.assert_close(state.signal[:, None] + state.V, points.y * f, rtol=1e-7,
                                   atol=1e-9)  # fmt: skip


def test_the_moves_are_those_of_pgd():
    state, points, nets = trained(LAWS[0])
    walk, ball = PGD(steps=7, step_size=0.3, random_start=False), Ball("l2", 1.1)
    loss = ModelLoss(nets, points.y.flatten(), margin)
    found = walk(loss, points.x.flatten(0, 1), ball, rng=generator("any"))
    radius = torch.full((2,), 1.1, dtype=torch.float64)
    move, moved = PatchPGD(radius, steps=7, step_size=0.3)(state.seen, state.gram)
    margins = (moved**3).sum((2, 3))
    torch.testing.assert_close(-found.loss.reshape(margins.shape), margins, rtol=1e-6, atol=1e-8)
    lengths = (move * (moved - state.seen)).sum((2, 3)).sqrt()
    assert (lengths <= 1.1 * (1 + 1e-9)).all()
    # And the state serves the attacks of the lab in the span of the filters.
    span = network(state)
    there = ModelLoss(span, points.y.flatten(), margin)
    again = walk(there, train_inputs(state).flatten(0, 1), ball, rng=generator("any"))
    torch.testing.assert_close(found.loss, again.loss, rtol=1e-6, atol=1e-8)


def test_a_crossing_is_interpolated_and_missing_where_there_is_none():
    rows = [(5, 0, noise, 0.5, error) for noise, error in ((1.0, 0.0), (2.0, 0.25), (4.0, 0.75))]
    rows += [(5, 1, noise, 0.5, 0.0) for noise in (1.0, 2.0, 4.0)]
    table = pl.DataFrame(rows, schema=["n", "seed", "noise", "radius", "robust test"], orient="row")
    clean = table.with_columns(pl.lit(1.0).alias("robust test"), lam=0.0)
    table = pl.concat([table.with_columns(lam=0.5), clean])
    found = pgd_phases.crossings(table)["crossing"].to_list()
    assert abs(found[0] - 8**0.5) < 1e-12
    assert found[1] is None


def test_outcomes_by_hand_and_the_most_frequent_of_each_cell():
    rows = pl.DataFrame({
        "n": [5] * 6, "radius": [0.5] * 6, "noise": [1.0, 1.0, 1.0, 2.0, 2.0, 2.0],
        "robust train": [0.0, 0.2, 0.9, 0.0, 0.0, 0.5],
        "clean test": [0.0, 0.0, 0.5, 0.5, 0.1, 0.0],
        "robust test": [0.2, 0.1, 1.0, 1.0, 0.9, 1.0],
    })  # fmt: skip
    told = pgd_phases_figure.outcomes(rows)["outcome"].to_list()
    assert told == ["robust", "robust", "failed", "memorised", "CGRO", "failed"]
    cells = pgd_phases_figure.cells(pgd_phases_figure.outcomes(rows))
    # Of a tie the outcome that is first in the legend.
    assert cells["outcome"].to_list() == ["robust", "CGRO"]
    assert cells["share"].to_list() == pytest.approx([2 / 3, 1 / 3])
