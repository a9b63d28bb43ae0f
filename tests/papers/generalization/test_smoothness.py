"""The smoothness of the potential: its value at zero, and descent with a step of 1 over it."""

import numpy as np
import pytest

from advlab.papers.generalization import theory

LAW = (np.array([0.8, -0.6, 0.5, 0.0]), 1.0)
V2 = 1.25 + 1.0


@pytest.mark.parametrize(("eps", "xi"), [(0.3, 0.5), (1.5, 0.1)])
def test_it_is_that_at_zero_or_a_little_more(eps, xi):
    at_zero = 2 + 2 * eps**2 + 2 * eps * V2 / (xi / 2)
    found = theory.potential_smoothness(*LAW, eps, xi, 3.0)
    assert at_zero * (1 - 1e-6) <= found <= 1.1 * at_zero
    near = theory.potential_smoothness(*LAW, eps, xi, 1e-6)
    assert near == pytest.approx(at_zero, rel=1e-4)


@pytest.mark.parametrize(("eps", "xi"), [(0.3, 0.5), (1.5, 0.1)])
def test_no_second_difference_of_the_potential_is_larger(eps, xi):
    """Between random models, long and short: R~ lies below its tangent plus L |move|^2/2."""
    rng = np.random.default_rng(0)
    lengths = 10 ** rng.uniform(-4, 0.3, size=(4000, 2, 1))
    unit = rng.normal(size=(4000, 2, 4))
    one, other = np.moveaxis(lengths * unit / np.linalg.norm(unit, axis=2, keepdims=True), 1, 0)
    at = (*LAW, eps, xi)
    move = other - one
    rise = theory.potential(other, *at) - theory.potential(one, *at)
    rise -= (move * theory.potential_gradient(one, *at)).sum(1)
    smooth = theory.potential_smoothness(*LAW, eps, xi, 3.0)
    assert (rise <= smooth / 2 * (move**2).sum(1) + 1e-12).all()
    assert (rise > 0.9 * smooth / 2 * (move**2).sum(1)).any()
