"""What the theorems of the convergence paper ask for, and how much of it a run has reached.

Where the paper's constants are not given (Theorem 4.1) the orders are taken with the constant 1:
then only a ratio is reported, and whether the condition holds is unknown.
"""

import math
from collections.abc import Iterable

import numpy as np

from ....core.errors import AdvlabError
from ....report.verdict import Assumption
from .descent import Descent, steps_of_theorem, two_layer_bound, width_for


def on_unit_sphere(lengths: object) -> Assumption:
    """Section 3.1: every input has the norm 1.

    Args:
        lengths: of all inputs.
    """
    away = float(np.abs(np.asarray(lengths, dtype=float) - 1).max())
    return Assumption(
        name="unit sphere", condition="inputs of norm 1, off by at most 1e-6", reached=away,
        holds=away <= 1e-6,
    )  # fmt: skip


def compatible_caps(separation: float, delta: float) -> Assumption:
    """Section 3.3: caps of radius delta around points of different labels do not meet.

    Points at the distance s have caps that touch at delta = 2 sin(arcsin(s/2)/2).

    Args:
        separation: the least distance of two inputs.
        delta: the radius of the caps.
    """
    if not 0 < separation <= 2 or not 0 <= delta < 2:
        raise AdvlabError("a separation in (0, 2] and a radius in [0, 2)", (separation, delta))
    touch = 2 * math.sin(math.asin(separation / 2) / 2)
    return Assumption(
        name="caps",
        condition=f"caps of a radius below {touch:.4g}, where those of other labels touch",
        reached=delta,
        holds=delta < touch,
    )


def two_layer_theorem(
    run: Descent, steps: int, radius: float, robust_loss: float, start: float
) -> list[Assumption]:
    """Theorem 5.1: width, rate and steps, and the accuracy that its bound gives to this run.

    eps is what the bound leaves above the comparator's robust loss. The theorem says something if
    the whole bound is below the loss at the start.

    Args:
        run: width, rate and constants.
        steps: T.
        radius: R, the comparator's distance.
        robust_loss: the comparator's worst-case loss.
        start: the loss before the first step.
    """
    eps = two_layer_bound(run, steps, radius, 0.0)
    # What is left for the term of the width if the bound is to be below the start.
    room = start - robust_loss - run.jitter
    wanted = width_for(room, radius, run) if room > 0 else math.inf
    return [
        Assumption(
            name="explicit bound",
            condition=f"eps = {eps:.3g} and L_*(W*) = {robust_loss:.3g}, together below the loss "
            f"at the start, {start:.3g}",
            reached=eps + robust_loss,
            holds=eps + robust_loss < start,
        ),
        Assumption(
            name="width",
            condition=f"m above {wanted:.3g} for a bound below the start, at R = {radius:.3g}",
            reached=run.width,
            holds=run.width > wanted,
        ),
        Assumption(
            name="steps",
            condition=f"T >= sqrt(m)/(c alpha) = {steps_of_theorem(run):.3g}",
            reached=steps,
            holds=steps >= steps_of_theorem(run) * (1 - 1e-3),
        ),
    ]


def deep_theorem(
    width: int, depth: int, d: int, radius: float, rate: float, eps: float, which: str = ""
) -> list[Assumption]:
    """Theorem 4.1 at an accuracy: R = Omega(1), m >= max(R^9 H^16 eps^-7, d^2) up to a constant,
    alpha = O(eps / (m H^2)).

    Args:
        width: m.
        depth: H.
        d: the dimension of the inputs.
        radius: R.
        rate: alpha, the step size.
        eps: the accuracy that is asked for.
        which: of several runs, in words for the names.
    """
    of = f", {which}" if which else ""
    return [
        Assumption(
            name=f"deep width{of}",
            condition=f"m of order max(R^9 H^16 eps^-7, d^2) = "
            f"{_deep_width(depth, d, radius, eps):.2g} at eps = {eps:g}, "
            "up to a constant that is not given",
            reached=float(width),
        ),
        Assumption(
            name=f"deep rate{of}",
            condition=f"alpha of order eps/(m H^2) = {eps / (width * depth**2):.2g} or less, up to "
            "a constant that is not given",
            reached=rate,
        ),
    ]


def deep_extremes(
    runs: Iterable[tuple[int, int, float, float]], d: int, eps: float
) -> list[Assumption]:
    """`deep_theorem` for the one of several runs that is farthest from its width, and the nearest.

    Args:
        runs: width, depth, radius R and step size of each.
        d: the dimension of the inputs.
        eps: the accuracy that is asked for.
    """
    ranked = sorted(runs, key=lambda run: run[0] / _deep_width(run[1], d, run[2], eps))
    found = []
    for which, (m, H, R, rate) in {"farthest run": ranked[0], "nearest run": ranked[-1]}.items():
        found += deep_theorem(m, H, d, R, rate, eps, f"{which} (H = {H}, R = {R:g}, m = {m})")
    return found


def _deep_width(depth: int, d: int, radius: float, eps: float) -> float:
    return max(radius**9 * float(depth) ** 16 / eps**7, float(d) ** 2)
