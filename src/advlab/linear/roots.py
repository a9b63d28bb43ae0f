"""Zeros of many scalar functions at once.

Chandrupatla's method, as in `scipy.optimize.elementwise.find_root`, without the bookkeeping that
costs that function several times the evaluations themselves.
"""

from collections.abc import Callable

import numpy as np

from ..core.checks import Array
from ..core.errors import AdvlabError

_RELATIVE = 4 * np.finfo(np.float64).eps
_STEPS = 200


def find_roots(function: Callable[[Array], Array], low: Array, high: Array) -> Array:
    """One zero in each bracket [low, high].

    Args:
        function: elementwise, from arrays of places to arrays of values.
        low, high: the ends of the brackets, at which the function differs in sign.

    Returns:
        The zeros, in the shape of the brackets.
    """
    a, b = low, high
    fa, fb = function(a), function(b)
    if (np.sign(fa) == np.sign(fb)).any():
        raise AdvlabError("the function must change sign in each bracket", f"{fa} and {fb}")
    share = np.full(np.shape(a), 0.5)
    for _ in range(_STEPS):
        x = a + share * (b - a)
        fx = function(x)
        same = np.sign(fx) == np.sign(fa)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        best = np.where(np.abs(fa) < np.abs(fb), a, b)
        least = _RELATIVE * (np.abs(best) + 1) / np.maximum(np.abs(b - a), 1e-300)
        done = (least > 0.5) | (fa == 0) | (fb == 0)
        if done.all():
            return best
        share = np.clip(_share(a, b, c, fa, fb, fc), least, 1 - least)
        share = np.where(done, 0.0, share)
    raise AdvlabError("the search for a zero must converge", f"brackets {low} to {high}")


def _share(a: Array, b: Array, c: Array, fa: Array, fb: Array, fc: Array) -> Array:
    """Inverse quadratic interpolation where it can be trusted, else the middle."""
    with np.errstate(all="ignore"):
        place, height = (a - b) / (c - b), (fa - fb) / (fc - fb)
        trusted = (height**2 < place) & ((1 - height) ** 2 < 1 - place)
        quadratic = fa / (fb - fa) * fc / (fb - fc)
        quadratic += (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    return np.where(trusted & np.isfinite(quadratic), quadratic, 0.5)
