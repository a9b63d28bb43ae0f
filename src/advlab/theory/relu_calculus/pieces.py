"""Piecewise linear functions of one number as networks, all exact (CGRO paper, Theorem 5.2)."""

import numpy as np

from ...core.checks import Scalar, finite
from ...core.errors import AdvlabError
from .networks import Layer, Network


def absolute() -> Network:
    """|x| = relu(x) + relu(-x): 7 parameters."""
    sides = np.array([[1.0], [-1.0]])
    return Network((Layer(sides, np.zeros(2)), Layer(np.ones((1, 2)), np.zeros(1))))


def clip(low: Scalar, high: Scalar) -> Network:
    """min(max(x, low), high) = low + relu(x - low) - relu(x - high): 7 parameters."""
    below, above = _interval(low, high)
    first = Layer(np.ones((2, 1)), np.array([-below, -above]))
    return Network((first, Layer(np.array([[1.0, -1.0]]), np.array([below]))))


def minimum(bound: Scalar) -> Network:
    """min(x, bound) = bound - relu(bound - x): 4 parameters."""
    top = float(finite("bound", bound))
    first = Layer(np.array([[-1.0]]), np.array([top]))
    return Network((first, Layer(np.array([[-1.0]]), np.array([top]))))


def soft_indicator(inside: Scalar, outside: Scalar) -> Network:
    """1 up to `inside`, 0 from `outside` on, linear between: two ReLUs, 7 parameters.

    1 - relu(u) + relu(u - 1) with u = (s - inside)/(outside - inside).
    """
    low, high = _interval(inside, outside)
    slope = 1 / (high - low)
    first = Layer(np.full((2, 1), slope), -slope * low - np.array([0.0, 1.0]))
    return Network((first, Layer(np.array([[-1.0, 1.0]]), np.ones(1))))


def _interval(low: Scalar, high: Scalar) -> tuple[float, float]:
    ends = float(finite("low", low)), float(finite("high", high))
    if not ends[0] < ends[1]:
        raise AdvlabError("an interval whose lower end is below its upper end", ends)
    return ends
