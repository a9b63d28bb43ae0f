"""The losses of linear models as the solvers need them: values, slopes, conjugates.

A regression loss is a convex, increasing function of u = |residual| + attack. A classification loss
is a convex, decreasing function of the margin m = label * score - attack.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import expit, xlogy

from ...core.checks import Array


@dataclass(frozen=True)
class SampleLoss:
    """`curve` u^2 + `linear` u in an auxiliary u, with a bound on its slope (Huber), or logistic.

    Args:
        name: as users write it.
        classifies: whether it is a function of the margin.
        curve, linear: the quadratic programme in u; both 0 for the logistic loss.
        steepest: the largest slope, in absolute value.
    """

    name: str
    classifies: bool
    curve: float = 0.0
    linear: float = 0.0
    steepest: float = np.inf

    @property
    def smooth(self) -> bool:
        """Whether it has a second derivative everywhere and needs no auxiliary variable."""
        return self.curve == 0 == self.linear

    @property
    def bounded(self) -> bool:
        """Huber: quadratic, with a bound on the slope."""
        return self.curve > 0 and bool(np.isfinite(self.steepest))

    def value(self, z: Array) -> Array:
        """The loss at u, or at the margin."""
        if self.smooth:
            return np.logaddexp(0.0, -z)
        if self.classifies:
            return np.maximum(1.0 - z, 0.0)
        if self.curve == 0:
            return z
        if not self.bounded:
            return z**2
        edge = self.steepest / 2
        return np.where(z <= edge, z**2, self.steepest * z - edge**2)

    def slope(self, z: Array) -> Array:
        """|derivative|; where there is a kink, one value of it."""
        if self.smooth:
            return expit(-z)
        if self.classifies:
            return (z < 1.0).astype(np.float64)
        if self.curve == 0:
            return np.ones_like(z)
        return np.minimum(2.0 * z, self.steepest)

    def curvature(self, z: Array) -> Array:
        """The second derivative, 0 at kinks."""
        if self.smooth:
            return expit(z) * expit(-z)
        if self.classifies or self.curve == 0:
            return np.zeros_like(z)
        return np.where(2.0 * z < self.steepest, 2.0, 0.0)

    def conjugate(self, a: Array) -> Array:
        """max over z of a z - loss(z) for u, of -a m - loss(m) for margins; 0 <= a <= steepest."""
        if self.smooth:
            return xlogy(a, a) + xlogy(1 - a, 1 - a)
        if self.classifies:
            return -a
        return a**2 / 4 if self.curve else np.zeros_like(a)

    def inverse(self, value: float) -> float:
        """The u of a regression loss with this value."""
        if self.curve == 0:
            return value
        edge = self.steepest / 2
        if value <= edge**2:
            return float(np.sqrt(value))
        return (value + edge**2) / self.steepest


def named_loss(name: str, delta: float = 1.0) -> SampleLoss:
    """The loss of a name; delta is where Huber's loss turns linear."""
    return {
        "squared": SampleLoss("squared", False, curve=1.0),
        "absolute": SampleLoss("absolute", False, linear=1.0, steepest=1.0),
        "huber": SampleLoss("huber", False, curve=1.0, steepest=2.0 * delta),
        "logistic": SampleLoss("logistic", True, steepest=1.0),
        "hinge": SampleLoss("hinge", True, linear=1.0, steepest=1.0),
    }[name]


REGRESSION = ("squared", "absolute", "huber")
CLASSIFICATION = ("logistic", "hinge")
