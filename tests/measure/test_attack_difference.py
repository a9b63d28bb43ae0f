"""Two starts of an attack, and what a surrogate attack shrinks by."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from advlab.attacks import FGM, PGD, Surrogate
from advlab.core.errors import AdvlabError
from advlab.losses import ModelLoss, squared
from advlab.measure.attack_difference import attack_difference, surrogate_shrinkage
from advlab.threats import Ball


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


THETA = torch.randn(5, generator=seeded(0), dtype=torch.float64)


def linear(x: torch.Tensor) -> torch.Tensor:
    return x @ THETA


def signed_peaks(x: torch.Tensor) -> torch.Tensor:
    return x[:, 0].abs()


def test_two_starts_meet_where_the_loss_is_linear_and_part_where_it_has_two_peaks():
    x, y = torch.zeros(200, 5, dtype=torch.float64), torch.ones(200, dtype=torch.float64)
    ball = Ball("l2", 0.5)
    far = PGD(steps=40, step_size=0.2, keep="last", jump=False)
    same = attack_difference(linear, x, y, ball, loss="logistic", attack=far, rng=0)
    assert float(same.relative.max()) < 0.01
    # |x_1| has a peak on either side: half of all pairs of starts end 2 radii apart.
    apart = attack_difference(signed_peaks, x, y, ball, loss=lambda z, y: z, attack=far, rng=0)
    split = apart.relative > 1
    assert 0.35 < float(split.double().mean()) < 0.65
    torch.testing.assert_close(apart.relative[split], torch.full_like(apart.relative[split], 2.0),
                               atol=1e-2, rtol=0)  # fmt: skip
    assert float(apart.relative[~split].max()) < 0.05


def test_the_control_is_the_distance_of_random_points():
    """E|U - V|^2 = 2 E|U|^2 = 2 d/(d+2) r^2 in an l2 ball."""
    x, y = torch.zeros(4000, 3, dtype=torch.float64), torch.ones(4000, dtype=torch.float64)
    found = attack_difference(lambda x: x[:, 0], x, y, Ball("l2", 2.0), loss="logistic", rng=1)
    assert float(found.random.square().mean()) == pytest.approx(2 * 3 / 5 * 4, rel=0.03)
    assert float((found.relative * 2 - found.distance).abs().max()) == 0


def test_batches_are_drawn_anew_and_a_seed_repeats():
    x, y = torch.zeros(6, 5, dtype=torch.float64), torch.ones(6, dtype=torch.float64)
    first, again = (
        attack_difference(linear, x, y, Ball("linf", 0.1), loss="logistic", batch=3, rng=5,
                          attack=PGD(steps=1, keep="last", jump=False))
        for _ in range(2)
    )  # fmt: skip
    assert torch.equal(first.distance, again.distance)
    assert float((first.random[:3] - first.random[3:]).abs().min()) > 0
    with pytest.raises(AdvlabError, match="above zero"):
        attack_difference(linear, x, y, Ball("linf", 0.0), loss="logistic")


@settings(max_examples=30, deadline=None)
@given(
    norm=st.sampled_from(["l1", "l2", "linf"]), xi=st.sampled_from([0.0, 0.01, 0.5, 3.0]),
    seed=st.integers(0, 50),
)  # fmt: skip
def test_the_shrinkage_is_what_the_surrogate_attack_does(norm, xi, seed):
    x = torch.randn(4, 5, generator=seeded(seed), dtype=torch.float64)
    y = torch.randn(4, generator=seeded(seed + 1), dtype=torch.float64)
    ball, loss = Ball(norm, 0.1), ModelLoss(linear, y, squared)
    whole, shrunk = (
        attack(loss, x, ball, rng=0).x - x for attack in (FGM(), Surrogate(xi=xi, inner=FGM()))
    )
    found = surrogate_shrinkage(linear, x, y, ball, xi, loss="squared")
    # linf moves every coordinate by the radius: the mean factor is the mean of the moves.
    moves = whole.abs().sum(1) if norm == "linf" else whole.norm(dim=1)
    kept = shrunk.abs().sum(1) if norm == "linf" else shrunk.norm(dim=1)
    torch.testing.assert_close(found, kept / moves, atol=1e-9, rtol=1e-9)


def test_the_mean_over_a_batch_has_gradients_that_are_n_times_smaller():
    x = torch.randn(10, 5, generator=seeded(3), dtype=torch.float64)
    y = torch.zeros(10, dtype=torch.float64)
    grad = 2 * (x @ THETA).abs() * THETA.norm() / 10
    found = surrogate_shrinkage(
        linear, x, y, Ball("l2", 1.0), 0.3, loss="squared", gradient="mean", batch=4
    )
    torch.testing.assert_close(found, grad / (grad**2 + 0.09).sqrt())
