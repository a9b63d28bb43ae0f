"""Two lines that hold a scalar function between them on an interval.

For any slope s, the line s z + max over [low, high] of (f(z) - s z) is above f; so soundness
needs that maximum from above, and the choice of slope only makes it tight. On a convex piece the
maximum is at an end. On a concave piece it is bracketed by bisection of f' - s, and the tangents at
the bracket's ends are above it.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from .scalar_functions import ScalarFunction

BISECTIONS = 12
"""The bracket's width enters squared, so this is 2^-24 of the interval's squared."""
Interval = tuple[Tensor, Tensor]


@dataclass(frozen=True)
class Lines:
    """lower z + lower_intercept <= f(z) <= upper z + upper_intercept on an interval, by entries."""

    upper: Tensor
    upper_intercept: Tensor
    lower: Tensor
    lower_intercept: Tensor


def lines(f: ScalarFunction, interval: Interval) -> Lines:
    """The lines above and below f that are nearest to it at the middle of the interval, of those
    through its ends, tangent in the middle, or tangent from one end.

    Where f has no value, or the interval is infinite (something overflowed), they are infinite.
    """
    nowhere = f.undefined(*interval)
    inside = 1.0 if f.pole is None else f.pole + 1.0
    low, high = (torch.where(nowhere, inside, end) for end in interval)
    upper, above = _line_above(f, low, high)
    lower, below = _line_above(f.negative(), low, high)
    return Lines(
        torch.where(nowhere, 0.0, upper),
        torch.where(nowhere, torch.inf, above),
        torch.where(nowhere, 0.0, -lower),
        torch.where(nowhere, -torch.inf, -below),
    )


def image(f: ScalarFunction, interval: Interval) -> Interval:
    """What f is between on an interval."""
    nowhere = f.undefined(*interval)
    inside = 1.0 if f.pole is None else f.pole + 1.0
    low, high = (torch.where(nowhere, inside, end) for end in interval)
    if f.monotone == 0:
        flat = torch.zeros_like(low)
        least, most = -_intercept(f.negative(), flat, low, high), _intercept(f, flat, low, high)
    else:
        ends = f.value(low), f.value(high)
        least, most = ends if f.monotone > 0 else ends[::-1]
    error = f.error + _noise(f, low, high)
    least, most = (end.clamp(*f.range) for end in _widened(least, most, error))
    return torch.where(nowhere, -torch.inf, least), torch.where(nowhere, torch.inf, most)


def _noise(f: ScalarFunction, low: Tensor, high: Tensor) -> Tensor:
    """How far rounding may move f(z) = z g(z) with g computed as 1 + ..., which cancels: GELU, SiLU
    and Mish have values far smaller than z, with the absolute error of z."""
    size = torch.maximum(low.abs(), high.abs())
    return (f.monotone == 0) * 4 * torch.finfo(low.dtype).eps * size


def _widened(least: Tensor, most: Tensor, error: float | Tensor) -> Interval:
    unit = 8 * torch.finfo(least.dtype).eps
    slack = unit * torch.maximum(least.abs(), most.abs()) + error
    return least - slack, most + slack


def _line_above(f: ScalarFunction, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
    """Slope and intercept of a line above f, as low as possible at the middle."""
    middle = (low + high) / 2
    best_slope = best = best_height = None
    for slope in _slopes(f, low, high):
        intercept = _intercept(f, slope, low, high)
        height = slope * middle + intercept
        if best_slope is None or best is None or best_height is None:
            best_slope, best, best_height = slope, intercept, height
            continue
        better = height < best_height
        best_slope = torch.where(better, slope, best_slope)
        best = torch.where(better, intercept, best)
        best_height = torch.where(better, height, best_height)
    if best_slope is None or best is None:
        raise ValueError(f.name)
    size = torch.maximum(low.abs(), high.abs())
    unit = 16 * torch.finfo(low.dtype).eps
    error = f.error + _noise(f, low, high)
    return best_slope, best + unit * (best.abs() + best_slope.abs() * size) + error


def _slopes(f: ScalarFunction, low: Tensor, high: Tensor) -> list[Tensor]:
    """Slopes worth trying: the concave envelope's at the middle is among them, but for functions
    with two concave pieces, whose common tangent is not tried."""
    middle, width = (low + high) / 2, high - low
    tangent = f.derivative(middle)
    if all(c < 0 for c in f.curvature):
        return [tangent]
    narrow = width <= 1e-3 * torch.finfo(low.dtype).eps ** 0.5 * (1 + middle.abs())
    rise = f.value(high) - f.value(low)
    chord = torch.where(narrow, tangent, rise / torch.where(narrow, 1.0, width))
    if all(c >= 0 for c in f.curvature):
        return [chord]
    found = [chord, tangent]
    ends = (-torch.inf, *f.breaks, torch.inf)
    for k, curvature in enumerate(f.curvature):
        if curvature < 0:
            a, b = (end.clamp(ends[k], ends[k + 1]) for end in (low, high))
            if k > 0:
                found.append(_tangent_from(f, low, a, b, 1.0))
            if k + 1 < len(f.curvature):
                found.append(_tangent_from(f, high, a, b, -1.0))
    return found


def _tangent_from(f: ScalarFunction, end: Tensor, a: Tensor, b: Tensor, sign: float) -> Tensor:
    """The slope from (end, f(end)) to where it touches the concave piece [a, b], or nearly."""
    at_end = f.value(end)
    for _ in range(BISECTIONS):
        t = (a + b) / 2
        # Rises along a concave piece for an end on its left, falls for one on its right.
        above = sign * (f.value(t) - at_end - f.derivative(t) * (t - end)) > 0
        a, b = torch.where(above, a, t), torch.where(above, t, b)
    t = (a + b) / 2
    near = (t - end).abs() <= 1e-3 * (1 + end.abs()) * torch.finfo(t.dtype).eps ** 0.5
    chord = (f.value(t) - at_end) / torch.where(near, 1.0, t - end)
    return torch.where(near, f.derivative(t), chord)


def _intercept(f: ScalarFunction, slope: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """At least the maximum of f(z) - slope z over [low, high]."""
    ends = (-torch.inf, *f.breaks, torch.inf)
    most = torch.full_like(low, -torch.inf)
    for k, curvature in enumerate(f.curvature):
        # Outside of the interval a piece shrinks to one of its ends.
        a, b = (torch.clamp(end, low, high) for end in _piece(ends[k], ends[k + 1], low))
        if curvature < 0:
            top = _concave_maximum(f, slope, a, b)
        else:
            top = torch.maximum(f.value(a) - slope * a, f.value(b) - slope * b)
        most = torch.maximum(most, top)
    return most


def _piece(a: float, b: float, like: Tensor) -> Interval:
    return torch.full_like(like, a), torch.full_like(like, b)


def _concave_maximum(f: ScalarFunction, slope: Tensor, a: Tensor, b: Tensor) -> Tensor:
    for _ in range(BISECTIONS):
        t = (a + b) / 2
        rising = f.derivative(t) > slope
        a, b = torch.where(rising, t, a), torch.where(rising, b, t)
    left, right = f.value(a) - slope * a, f.value(b) - slope * b
    up, down = (f.derivative(a) - slope).clamp(min=0), (slope - f.derivative(b)).clamp(min=0)
    # Both tangents are above a concave function; the larger end keeps rounding out.
    top = torch.minimum(left + up * (b - a), right + down * (b - a))
    return torch.maximum(top, torch.maximum(left, right))
