"""Theorem 5.1 with its constants: what gradient descent on any attack's examples reaches.

A two-layer network f = m^(-1/2) sum a_r sigma(w_r x) with frozen a_r = +-1, |sigma'| <= C1, sigma'
C2-Lipschitz, and a loss that is convex and L-Lipschitz in f, is nearly linear in its weights: its
defect from convexity is L C2 / (2 sqrt(m)) times a squared distance (equation 14).
"""

import math
from typing import NamedTuple

from ....core.errors import AdvlabError


class Descent(NamedTuple):
    """A run of gradient descent and the constants that its bound asks for."""

    width: int
    rate: float
    """alpha, the step size."""
    slope: float
    """C1 = sup |sigma'|."""
    curvature: float
    """C2, the Lipschitz constant of sigma'."""
    lipschitz: float = 1.0
    """L of the loss."""

    @property
    def growth(self) -> float:
        """c alpha / sqrt(m) with c = L C2: how much a squared distance may grow in one step."""
        return self.lipschitz * self.curvature * self.rate / math.sqrt(self.width)

    @property
    def jitter(self) -> float:
        """alpha L^2 C1^2 / 2: what the length of the steps costs."""
        return self.rate * (self.lipschitz * self.slope) ** 2 / 2


def two_layer_bound(run: Descent, steps: int, radius: float, robust_loss: float = 0.0) -> float:
    """Theorem 5.1 with its constants: min over t < steps of L_A(W_t) is at most this.

    robust_loss + alpha L^2 C1^2 / 2 + c R^2 / (2 sqrt(m) (1 - 1/S)), S = (1 + c alpha/sqrt(m))^T.

    Args:
        run: width, rate and constants of the run.
        steps: T.
        radius: R, at least ||W* - W_0||_F of some comparator W*.
        robust_loss: the worst-case loss of that comparator.

    Example:
        from advlab.papers.convergence.theory.descent import Descent, two_layer_bound
        two_layer_bound(Descent(16384, 0.05, 2**0.5, 2**0.5), 1810, radius=4.0)
    """
    _check(run, steps, radius)
    if run.growth == 0:
        return robust_loss + run.jitter + radius**2 / (2 * run.rate * steps)
    # 1 - 1/S without cancellation where the growth is tiny.
    shrunk = -math.expm1(-steps * math.log1p(run.growth))
    return robust_loss + run.jitter + run.growth * radius**2 / (2 * run.rate * shrunk)


def steps_of_theorem(run: Descent) -> float:
    """T = sqrt(m) / (c alpha): beyond it the bound hardly falls (S is about e there).

    Args:
        run: width, rate and constants of the run.
    """
    return math.inf if run.growth == 0 else 1 / run.growth


def width_for(target: float, radius: float, run: Descent) -> float:
    """The width at which the last term of the bound, at T = sqrt(m)/(c alpha), is `target`.

    It is (c R^2 / (2 (1 - 1/e) target))^2: the paper's m = Omega(R^4 / eps^2).

    Args:
        target: eps, above 0.
        radius: R.
        run: its constants; its width is not used.
    """
    if not target > 0:
        raise AdvlabError("a target above 0", target)
    c = run.lipschitz * run.curvature
    return (c * radius**2 / (2 * (1 - math.exp(-1)) * target)) ** 2


def _check(run: Descent, steps: int, radius: float) -> None:
    if run.width < 1 or not run.rate > 0 or steps < 1:
        raise AdvlabError(
            "width and steps of at least 1 and a rate above 0",
            f"width {run.width}, steps {steps}, rate {run.rate}",
        )
    if not radius >= 0:
        raise AdvlabError("a radius of 0 or more", radius)
