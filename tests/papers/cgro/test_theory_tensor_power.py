"""Lemmas A.1 to A.3 on ten thousand random recursions each: no time is ever exceeded (claim 13)."""

import numpy as np
import pytest

from advlab.core.errors import AdvlabError
from advlab.papers.cgro import theory

DRAWS = 10_000
STEPS = 4000
"""Recursions are drawn so that all arrive within."""


def draws(seed: int):
    """Starts, targets and rates over orders of magnitude, with 1/(m z0) up to 300."""
    rng = np.random.default_rng(seed)
    start = 10 ** rng.uniform(-3, 1, DRAWS)
    target = start * 10 ** rng.uniform(0, 3, DRAWS)
    least = 10 ** rng.uniform(-2.4, 1, DRAWS) / start
    most = least * 10 ** rng.uniform(0, 1.5, DRAWS)
    return rng, start, target, least, most


def arrivals(start, target, step) -> np.ndarray:
    """The first t with z_t >= target, by running the recursion."""
    z, time = start.copy(), np.where(start >= target, 0, -1)
    for t in range(1, STEPS):
        z = np.where(time < 0, step(z, t), z)
        time = np.where((time < 0) & (z >= target), t, time)
        if (time >= 0).all():
            return time
    raise AssertionError("a recursion did not arrive")


@pytest.mark.parametrize("kind", ["slowest", "fastest", "random"])
def test_growth_times_are_never_exceeded(kind):
    rng, z0, v, m, M = draws(1)
    share = {"slowest": lambda: 0.0, "fastest": lambda: 1.0, "random": lambda: rng.random(DRAWS)}
    time = arrivals(z0, v, lambda z, t: z + (m + (M - m) * share[kind]()) * z**2)
    assert (time <= theory.growth_time(z0, v, m, M, "paper")).all()
    assert (time <= theory.growth_time(z0, v, m) + 1e-9).all()
    assert (time >= theory.earliest_time(z0, v, M) - 1e-9).all()


def test_the_sharp_time_is_reached_and_below_the_papers():
    _, z0, v, m, M = draws(2)
    sharp, paper = theory.growth_time(z0, v, m), theory.growth_time(z0, v, m, M, "paper")
    # A start at its target has nothing to do, and the sharp form still allows a step.
    assert (sharp <= paper + 1).all()
    time = arrivals(z0, v, lambda z, t: z + m * z**2)
    assert (time / sharp).max() > 0.98
    slow = theory.growth_time(1e-4, 1.0, 1.0)
    assert slow == pytest.approx(1 + 1e4 - 1 + np.log(1e4))


@pytest.mark.parametrize("kind", ["low", "high", "alternating", "random", "dip"])
def test_noisy_growth_times_are_never_exceeded(kind):
    rng, z0, v, A, _ = draws(3)
    C = z0 / 2 * rng.random(DRAWS)
    total = z0.copy()

    def noise(t):
        return {
            "low": -1.0,
            "high": 1.0,
            "alternating": (-1.0) ** t,
            "random": rng.uniform(-1, 1, DRAWS),
            # Up while it is small, down when it matters.
            "dip": np.where(total < v / 2, 1.0, -1.0),
        }[kind]

    def step(z, t):
        total[:] = total + A * z**2
        return total + C * noise(t)

    time = arrivals(z0, v, step)
    assert (time <= theory.noisy_growth_time(z0, v, A, C, "paper")).all()
    assert (time <= theory.noisy_growth_time(z0, v, A, C) + 1e-9).all()


def test_the_sharp_noisy_time_allows_noise_up_to_the_start():
    _, z0, v, A, _ = draws(4)
    C = 0.7 * z0
    total = z0.copy()

    def step(z, t):
        total[:] = total + A * z**2
        return total - C

    assert (arrivals(z0, v, step) <= theory.noisy_growth_time(z0, v, A, C) + 1e-9).all()


def test_decays_stay_below_their_bound():
    rng = np.random.default_rng(5)
    A = 10 ** rng.uniform(-2, 2, DRAWS)
    # z+ >= 0 needs A z <= 1.
    z = start = rng.random(DRAWS) / A
    for t in range(1, 200):
        z = (z - A * z**2) * (1 - 0.1 * rng.random(DRAWS) * (rng.random(DRAWS) < 0.3))
        sharp, paper = theory.decay_bound(t, A, start), theory.decay_bound(t, A, form="paper")
        assert (z <= sharp * (1 + 1e-12)).all()
        assert (sharp <= paper).all()


def test_the_decay_bound_is_nearly_reached():
    z, A = 1e-3, 1.0
    for _ in range(5000):
        z -= A * z**2
    assert z / theory.decay_bound(5000, A, 1e-3) == pytest.approx(1, abs=1e-3)


def test_the_formulas_by_hand():
    assert theory.growth_time(0.5, 3.0, 2.0, 4.0, "paper") == pytest.approx(3 + 16 * 3)
    assert theory.noisy_growth_time(0.5, 3.0, 2.0, 0.1, "paper") == pytest.approx(8 * 3 + 21)
    assert theory.decay_bound(4, 0.5, form="paper") == pytest.approx(0.5)
    assert theory.decay_bound(4, 0.5, 2.0) == pytest.approx(1 / 2.5)
    assert theory.earliest_time(0.5, 2.0, 3.0) == pytest.approx(0.5)


BAD = {
    "no start": (lambda: theory.growth_time(0.0, 1.0, 1.0), "start must be positive"),
    "a target below": (lambda: theory.growth_time(2.0, 1.0, 1.0), "at least the start"),
    "no M": (lambda: theory.growth_time(1.0, 2.0, 1.0, form="paper"), "upper rate M"),
    "M below m": (lambda: theory.growth_time(1.0, 2.0, 2.0, 1.0, "paper"), "least <= most"),
    "much noise": (lambda: theory.noisy_growth_time(1.0, 2.0, 1.0, 0.6, "paper"), "z0/2"),
    "more noise": (lambda: theory.noisy_growth_time(1.0, 2.0, 1.0, 1.0), "below the start"),
    "no step": (lambda: theory.decay_bound(0, 1.0, form="paper"), "at least one step"),
    "no start of a decay": (lambda: theory.decay_bound(1, 1.0), "needs the start"),
    "a form": (lambda: theory.growth_time(1.0, 2.0, 1.0, form="best"), "paper or sharp"),
}


@pytest.mark.parametrize(("call", "says"), BAD.values(), ids=BAD.keys())
def test_bad_input_is_refused(call, says):
    with pytest.raises(AdvlabError, match=says):
        call()
