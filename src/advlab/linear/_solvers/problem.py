"""The convex problem of a robust linear model.

    minimise over theta, b   sum_i w_i loss(|y_i - x_i'theta - b| + N(theta))        (regression)
                             sum_i w_i loss(y_i (x_i'theta + b) - N(theta))          (two classes)
                             + sum_j l1_j |theta_j| + sum_j l2_j theta_j^2 / 2

with N(theta) = ||radii * theta||_q: the most that delta'theta can be over the threat set
||delta / radii||_p <= 1, where 1/p + 1/q = 1. So the inner maximum of the loss over the attack is
taken exactly; the intercept is not attacked.
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from ...core.checks import Array
from ...threats.norms import dual_order
from .sample_losses import SampleLoss


@dataclass(frozen=True)
class LinearProblem:
    """One problem, checked.

    Args:
        x: (n, d), an array or a scipy CSR matrix.
        y: answers (n,), or labels -1, +1.
        weights: of the samples, positive, summing to 1.
        loss: of a sample.
        radii: (d,), the radius of the threat set along each feature.
        order: p of the threat set.
        l1, l2: (d,), extra penalties; l2 is zero everywhere or nowhere.
        intercept: whether there is one.
    """

    x: Any
    y: Array
    weights: Array
    loss: SampleLoss
    radii: Array
    order: float
    l1: Array
    l2: Array
    intercept: bool
    shared: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """What problems with the same samples compute once."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.x.shape

    @cached_property
    def dual(self) -> float:
        """q."""
        return dual_order(self.order)

    @cached_property
    def attacked(self) -> bool:
        return bool(self.radii.any())

    @cached_property
    def penalised(self) -> bool:
        return bool(self.l1.any() or self.l2.any())

    @cached_property
    def free(self) -> np.ndarray:
        """Columns that neither the attack nor a penalty touches, besides the intercept."""
        if self.radii.all():
            return np.zeros(0, dtype=int)
        return np.flatnonzero((self.radii == 0) & (self.l1 == 0) & (self.l2 == 0))

    def attack(self, theta: Array) -> float:
        """N(theta)."""
        if not self.attacked:
            return 0.0
        return float(np.linalg.norm(self.radii * theta, ord=self.dual))

    def scores(self, theta: Array, b: float) -> Array:
        return self.x @ theta + b

    def arguments(self, scores: Array, attack: float) -> Array:
        """What the loss is taken of: |residual| + attack, or the margin - attack."""
        if self.loss.classifies:
            return self.y * scores - attack
        return np.abs(self.y - scores) + attack

    def penalty(self, theta: Array) -> float:
        return float(self.l1 @ np.abs(theta) + self.l2 @ theta**2 / 2)

    def objective(self, theta: Array, b: float) -> float:
        z = self.arguments(self.scores(theta, b), self.attack(theta))
        return float(self.weights @ self.loss.value(z)) + self.penalty(theta)

    def columns(self, kept: np.ndarray) -> "LinearProblem":
        """The same problem with some columns only."""
        return replace(
            self, x=self.x[:, kept], radii=self.radii[kept], l1=self.l1[kept], l2=self.l2[kept],
            shared={},
        )  # fmt: skip

    def at_radii(self, radii: Array) -> "LinearProblem":
        """The same problem under another attack."""
        found = replace(self, radii=radii)
        for name in ("dual", "penalised", "constant_fit", "zero_objective", "flat"):
            if name in self.__dict__:
                found.__dict__[name] = self.__dict__[name]
        return found

    @property
    def weighted_gram(self) -> Array | None:
        """[X, 1]' diag(weights) [X, 1], for faces; None where it is not worth its room."""
        n, d = self.shape
        if is_sparse(self.x) or d > min(2 * n, 2000):
            return None
        if "gram" not in self.shared:
            root = np.sqrt(self.weights)[:, None]
            half = np.hstack([self.x, np.ones((n, 1))]) * root
            self.shared["gram"] = half.T @ half
        return self.shared["gram"]

    @cached_property
    def constant_fit(self) -> float:
        """The intercept of the best model without features."""
        if not self.intercept:
            return 0.0
        if self.loss.classifies:
            up = float(self.weights[self.y > 0].sum())
            if self.loss.smooth:
                return (
                    float(np.log(up / (1 - up))) if 0 < up < 1 else float(np.sign(up - 0.5)) * 40.0
                )
            return float(np.sign(up - 0.5)) if abs(up - 0.5) > 1e-12 else 0.0
        return location(self.y, self.weights, self.loss)

    @cached_property
    def zero_objective(self) -> float:
        """The objective of the best model without features."""
        z = self.arguments(np.full(len(self.y), self.constant_fit), 0.0)
        return float(self.weights @ self.loss.value(z))

    @cached_property
    def flat(self) -> bool:
        """Whether the best model without features fits every answer."""
        if self.loss.classifies:
            return False
        size = float(np.abs(self.y).max(initial=0.0))
        return bool(np.ptp(self.y - self.constant_fit) <= 1e-14 * size)


def location(y: Array, weights: Array, loss: SampleLoss) -> float:
    """argmin over b of sum w loss(|y - b|): mean, weighted median, or Huber's location."""
    if loss.curve and not loss.bounded:
        return float(weights @ y)
    order = np.argsort(y)
    total = np.cumsum(weights[order])
    if not loss.curve:
        place = int(np.searchsorted(total, 0.5 * total[-1] * (1 - 1e-12)))
        return float(y[order[place]])
    edge = loss.steepest / 2
    b = float(y[order[int(np.searchsorted(total, 0.5 * total[-1]))]])
    for _ in range(200):
        r = y - b
        inside = np.abs(r) <= edge
        mass = float(weights[inside].sum())
        step = float(weights @ np.clip(r, -edge, edge)) / (mass if mass else 1.0)
        b += step
        if abs(step) <= 1e-15 * (1 + abs(b)):
            break
    return b


def is_sparse(x: Any) -> bool:
    return bool(sparse.issparse(x))
