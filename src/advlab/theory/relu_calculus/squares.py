"""Yarotsky's network for the square on [0, 1] (CGRO, Lemma D.2).

With hat(x) = 2 relu(x) - 4 relu(x - 1/2) + 2 relu(x - 1) and g_s its s-fold composition,
q_k(x) = x - sum_{s<=k} g_s(x)/4^s is the interpolant of x^2 on a grid of mesh 2^-k, so
0 <= q_k(x) - x^2 <= 2^{-2k-2}, with equality in the middle of each cell.
"""

import numpy as np

from ...core.checks import Array, whole
from ...core.errors import AdvlabError
from .networks import Layer, Network

HAT = np.array([2.0, -4.0, 2.0])
SHIFTS = np.array([0.0, -0.5, -1.0])
DEEPEST = 20
"""Beyond it, what a square network adds is lost in the rounding of float64."""


def square_error(depth: int) -> float:
    """2^{-2k-2}: how far q_k exceeds the square at most."""
    return 2.0 ** (-2 * whole("depth", depth, 1) - 2)


def square_network(depth: int) -> Network:
    """q_k as k hidden layers of width 4, three hat units and an accumulator: 20k - 7 parameters."""
    k = whole("depth", depth, 1)
    first = Layer(np.ones((4, 1)), np.r_[SHIFTS, 0.0])
    hidden = [Layer(square_step(s), np.r_[SHIFTS, 0.0]) for s in range(1, k)]
    return Network((first, *hidden, Layer(square_output(k)[None], np.zeros(1))))


def square_step(s: int) -> Array:
    """From layer s to s + 1: three times g_s, and the accumulator x - sum_{r<=s} g_r/4^r."""
    return np.vstack([np.tile(np.r_[HAT, 0.0], (3, 1)), square_output(s)])


def square_output(s: int) -> Array:
    """q_s in terms of layer s. It is at least x^2, so a ReLU does not change it."""
    return np.r_[-HAT / 4.0**s, 1.0]


def least_square_depth(scale: float, room: float, share: float = 0.5) -> int:
    """The least k at which an error of scale 2^{-2k-2} is at most this share of the room."""
    k = max(1, int(np.ceil(np.log2(scale / (4 * share * room)) / 2)))
    if k > DEEPEST:
        raise AdvlabError(
            f"a gap between the labels that square networks of depth {DEEPEST} resolve",
            f"one that needs depth {k}",
            "use a smaller delta",
        )
    return k
