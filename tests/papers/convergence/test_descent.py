"""The explicit bound of Theorem 5.1 against its own recursion, solved by simulation."""

import math

import pytest
from scipy.optimize import brentq

from advlab.core.errors import AdvlabError
from advlab.papers.convergence.theory.descent import (
    Descent,
    steps_of_theorem,
    two_layer_bound,
    width_for,
)


def last_distance(
    run: Descent, steps: int, radius: float, robust_loss: float, loss: float
) -> float:
    """d_T^2 if every step has this loss and loses as much as the descent inequality allows."""
    c, d2 = run.lipschitz * run.curvature, radius**2
    for _ in range(steps):
        d2 = (1 + c * run.rate / math.sqrt(run.width)) * d2 + 2 * run.rate * (robust_loss - loss)
        d2 += (run.rate * run.lipschitz * run.slope) ** 2
    return d2


@pytest.mark.parametrize(
    "run",
    [
        Descent(1024, 0.5, math.sqrt(2), math.sqrt(2)),
        Descent(16384, 0.05, math.sqrt(2), math.sqrt(2)),
        Descent(64, 0.1, 1.0, 0.4, 3.0),
        Descent(64, 0.1, 1.0, 0.0),
    ],
)
@pytest.mark.parametrize("steps", [1, 40, 1810])
def test_the_bound_is_the_largest_loss_that_the_recursion_can_keep_up(run, steps):
    """With a larger loss at every step the squared distance would become negative."""
    bound = two_layer_bound(run, steps, 4.95, 0.03)
    kept = brentq(lambda loss: last_distance(run, steps, 4.95, 0.03, loss), 0, 1e4, xtol=1e-12)
    assert bound == pytest.approx(kept, rel=1e-8)


def test_the_numbers_by_hand():
    """R = 4.95, m = 16384, alpha = .05, T = 1810: L_* + .26."""
    run = Descent(16384, 0.05, math.sqrt(2), math.sqrt(2))
    assert steps_of_theorem(run) == pytest.approx(1810, rel=1e-3)
    assert two_layer_bound(run, 1810, 4.95) == pytest.approx(0.26, abs=0.005)


def test_the_width_makes_the_last_term_the_target():
    run = Descent(1, 1e-6, 1.0, 0.8, 2.0)
    m = width_for(0.1, 5.0, run)
    wide = run._replace(width=round(m))
    term = two_layer_bound(wide, round(steps_of_theorem(wide)), 5.0) - wide.jitter
    assert term == pytest.approx(0.1, rel=1e-4)
    assert width_for(0.05, 5.0, run) == pytest.approx(4 * m)
    assert width_for(0.1, 10.0, run) == pytest.approx(16 * m)


def test_bad_input_is_refused():
    run = Descent(64, 0.1, 1.0, 1.0)
    for wrong in (
        lambda: two_layer_bound(run, 0, 1.0),
        lambda: two_layer_bound(run, 5, -1.0),
        lambda: two_layer_bound(run._replace(rate=0.0), 5, 1.0),
        lambda: width_for(0.0, 1.0, run),
    ):
        with pytest.raises(AdvlabError):
            wrong()
