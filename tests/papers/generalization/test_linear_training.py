"""The shortcuts give the same run: closed form against autograd, subspace against whole."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from advlab.attacks import FGM, PGD, Exact, Identity, Surrogate
from advlab.core.errors import AdvlabError
from advlab.models import Linear, Stack
from advlab.papers.generalization.reductions import LinearAdversarial, Subspace
from advlab.threats import Ball
from advlab.training import Adversarial, fit


def problem(n: int, d: int, replicates: int = 3, seed: int = 0):
    rng = torch.Generator().manual_seed(seed)
    x = torch.randn(replicates, n, d, generator=rng, dtype=torch.float64)
    theta0 = torch.ones(d, dtype=torch.float64)
    y = x @ theta0 + torch.randn(replicates, n, generator=rng, dtype=torch.float64)
    return x, y, 0.1 * torch.randn(replicates, d, generator=rng, dtype=torch.float64)


def train(x, y, start, objective, ball, attack, lr=0.02, steps=60):
    stack = Stack([Linear(theta) for theta in start])
    rng = torch.Generator().manual_seed(0)
    objective = objective(loss="squared", ball=ball, attack=attack)
    result = fit(stack, x, y, steps=steps, lr=lr, objective=objective, rng=rng)
    return stack.get_parameter("theta").detach(), result.log.losses()


@pytest.mark.parametrize("norm", ["l2", "linf"])
@pytest.mark.parametrize(
    "attack",
    [
        FGM(),
        Exact(),
        Surrogate(xi=0.1),
        Surrogate(xi=0.0),
        Surrogate(xi=2.0, inner=Exact()),
        Identity(),
    ],
    ids=str,
)
def test_the_closed_form_is_attack_and_autograd(norm, attack):
    x, y, start = problem(30, 6)
    ball = Ball(norm=norm, radius=0.3)
    closed = train(x, y, start, LinearAdversarial, ball, attack)
    plain = train(x, y, start, Adversarial, ball, attack)
    torch.testing.assert_close(closed[0], plain[0], rtol=1e-10, atol=1e-12)
    torch.testing.assert_close(closed[1], plain[1], rtol=1e-10, atol=1e-12)


@given(st.integers(0, 100), st.floats(0.01, 3), st.floats(0, 2))
@settings(max_examples=30, deadline=None)
def test_gradient_of_the_frozen_attack(seed, eps, xi):
    """2xr + 2eps theta r^2/w + 2eps |theta|^2 x r/w + 2eps^2 theta |theta|^2 r^2/w^2 (Lemma 2)."""
    x, y, start = problem(12, 4, replicates=1, seed=seed)
    theta = start[0]
    r = x[0] @ theta - y[0]
    w = (r**2 * (theta @ theta) + (xi / 2) ** 2).sqrt()
    expected = (
        2 * x[0] * r[:, None]
        + (2 * eps * r**2 / w)[:, None] * theta
        + (2 * eps * theta @ theta * r / w)[:, None] * x[0]
        + (2 * eps**2 * theta @ theta * r**2 / w**2)[:, None] * theta
    ).mean(0)
    after, _ = train(x, y, start, LinearAdversarial, Ball(norm="l2", radius=eps),
                     Surrogate(xi=xi), lr=1.0, steps=1)  # fmt: skip
    torch.testing.assert_close(theta - after[0], expected)


def test_zero_weights_without_xi_are_not_attacked():
    x, y, _ = problem(10, 4)
    zero = torch.zeros(3, 4, dtype=torch.float64)
    ball = Ball(norm="l2", radius=5.0)
    attacked, losses = train(x, y, zero, LinearAdversarial, ball, Exact(), steps=1)
    clean, _ = train(x, y, zero, LinearAdversarial, ball, Identity(), steps=1)
    torch.testing.assert_close(attacked, clean)
    torch.testing.assert_close(losses[0], (y**2).mean(1))


@pytest.mark.parametrize(
    "attack", [Surrogate(xi=0.5), Surrogate(xi=0.0), PGD(steps=3, random_start=False)]
)
def test_training_in_the_subspace_is_training_in_the_whole_space(attack):
    x, y, start = problem(8, 200, replicates=3)
    ball, objective = Ball(norm="l2", radius=0.2), Adversarial
    whole, losses = train(x, y, start, objective, ball, attack, lr=0.005, steps=50)
    span = Subspace.of(x, start)
    assert span.basis.shape == (3, 200, 9)
    small, same = train(span.into(x), y, span.into(start), objective, ball, attack, 0.005, 50)
    torch.testing.assert_close(same, losses, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(span.lift(small), whole, rtol=1e-10, atol=1e-10)


def test_vectors_of_the_span_keep_their_geometry():
    x, _, start = problem(5, 40)
    theta0 = torch.ones(40, dtype=torch.float64)
    span = Subspace.of(x, start, theta0)
    inside = span.into(torch.cat([x, start[:, None]], 1))
    both = torch.cat([x, start[:, None]], 1)
    torch.testing.assert_close(inside @ inside.mT, both @ both.mT)
    torch.testing.assert_close(span.lift(inside), both)
    with pytest.raises(AdvlabError, match="dimension 40"):
        Subspace.of(x, torch.ones(3, dtype=torch.float64))


@pytest.mark.parametrize(
    "change",
    [
        {"attack": PGD()},
        {"ball": Ball(norm="l1", radius=1)},
        {"ball": Ball(norm="l2", radius=1, box=(-9, 9))},
    ],
)
def test_scenes_without_a_closed_form_are_refused(change):
    x, y, start = problem(10, 4)
    settings = {"ball": Ball(norm="l2", radius=1), "attack": FGM()} | change
    with pytest.raises(AdvlabError, match="closed form"):
        train(x, y, start, LinearAdversarial, **settings)
