"""The one-parameter families that hold every minimiser of the adversarial risk.

The risk grows in the residual spread s and in the dual norm q of theta, so a minimiser has the
least s among all models of its q. With x the amount of shrinking, from 0 (theta0) upwards:
l2 balls give the ridge path (Prop. 8), linf balls the lasso path, l1 balls the path of models with
bounded entries (the last two derived here).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from ..core.checks import Array
from ..core.errors import AdvlabError
from ..threats.norms import dual_order
from .risks import length


class Path(ABC):
    """Models from theta0 (x = 0) to zero (x = end)."""

    start: float
    """Less shrinking than this is none, up to rounding; only data without noise need it."""
    end: float
    """Shrinking by this much leaves the zero model, up to rounding."""
    slope: float
    """m <= slope * x, m as in `profile`."""

    @abstractmethod
    def at(self, x: Array) -> Array:
        """theta, shape (..., d)."""

    @abstractmethod
    def profile(self, x: Array) -> tuple[Array, Array, Array]:
        """(q, s, m): dual norm of theta, residual spread, ball's norm of cov (theta0 - theta)."""


class Ridge(Path):
    """(cov + x I)^{-1} cov theta0, through one eigendecomposition."""

    def __init__(self, theta0: Array, sigma2: float, cov: Array | None):
        self.sigma2 = sigma2
        if cov is None:
            # All directions shrink alike, so one coordinate carries the whole path.
            self.basis = None
            self.truth = theta0
            self.eigenvalues = np.ones(1)
            self.weights = np.array([float(theta0 @ theta0)])
        else:
            eigenvalues, self.basis = np.linalg.eigh(cov)
            seen = eigenvalues > 1e-13 * max(float(eigenvalues[-1]), 0.0)
            # Directions without variance cost nothing to drop: the smallest minimiser has none.
            self.eigenvalues = np.where(seen, eigenvalues, 1.0)
            self.truth = np.where(seen, self.basis.T @ theta0, 0.0)
            self.weights = self.truth**2
        self.slope = float(np.sqrt(self.weights.sum()))
        self.start = float(self.eigenvalues.min() * np.exp(-40.0))
        self.end = float(self.eigenvalues.max() * np.exp(60.0))

    def at(self, x: Array) -> Array:
        kept = self.eigenvalues / (self.eigenvalues + x[..., None]) * self.truth
        return kept if self.basis is None else kept @ self.basis.T

    def profile(self, x: Array) -> tuple[Array, Array, Array]:
        denominator = self.eigenvalues + x[..., None]
        a = np.sqrt((self.eigenvalues / denominator) ** 2 @ self.weights)
        lost = (x[..., None] / denominator) ** 2 @ (self.eigenvalues * self.weights)
        return a, np.sqrt(lost + self.sigma2), x * a


class _Entrywise(Path):
    """`cov` is a matrix, or the vector of its diagonal."""

    order: float
    """Of the ball's norm."""

    def __init__(self, theta0: Array, sigma2: float, cov: Array):
        self.theta0, self.sigma2, self.cov = theta0, sigma2, cov
        self.end, self.slope = self.extent()
        self.start = 1e-9 * self.end

    @abstractmethod
    def extent(self) -> tuple[float, float]:
        """(end, slope)."""

    def profile(self, x: Array) -> tuple[Array, Array, Array]:
        theta = self.at(x)
        lost = self.theta0 - theta
        image = lost * self.cov if self.cov.ndim == 1 else lost @ self.cov
        s = np.sqrt(np.einsum("...i,...i->...", image, lost) + self.sigma2)
        q, m = length(theta, dual_order(self.order)), length(image, self.order)
        return np.asarray(q), s, np.asarray(m)


class Soft(_Entrywise):
    """The lasso path of a diagonal covariance: soft thresholding."""

    order = np.inf

    def extent(self) -> tuple[float, float]:
        return float((self.cov * np.abs(self.theta0)).max()), 1.0

    def at(self, x: Array) -> Array:
        cut = x[..., None] / self.cov
        return np.sign(self.theta0) * np.maximum(np.abs(self.theta0) - cut, 0.0)


class Clip(_Entrywise):
    """Least s with entries at most max|theta0| - x, for a diagonal covariance: clipping."""

    order = 1.0

    def extent(self) -> tuple[float, float]:
        return float(np.abs(self.theta0).max()), float(self.cov.sum())

    def at(self, x: Array) -> Array:
        bound = np.maximum(self.end - x, 0.0)[..., None]
        return np.clip(self.theta0, -bound, bound)


class Lasso(_Entrywise):
    """The lasso path of any positive definite covariance, one bounded least squares per point.

    The dual of the lasso is min g' cov^{-1} g / 2 - theta0'g over |g_i| <= x, and
    theta = theta0 - cov^{-1} g; entries with |g_i| < x are exactly zero.
    """

    order = np.inf

    def extent(self) -> tuple[float, float]:
        return float(np.abs(self.cov @ self.theta0).max()), 1.0

    def at(self, x: Array) -> Array:
        factor = np.linalg.cholesky(self.cov)
        whiten = np.linalg.solve(factor, np.eye(len(self.theta0)))
        target = factor.T @ self.theta0
        return _each(x, len(target), lambda bound: self._point(whiten, target, bound))

    def _point(self, whiten: Array, target: Array, bound: float) -> Array:
        dual, free = _box_least_squares(whiten, target, bound)
        return np.where(free, 0.0, self.theta0 - whiten.T @ (whiten @ dual))


class Bounded(_Entrywise):
    """Least s with entries at most max|theta0| - x, one bounded least squares per point."""

    order = 1.0

    def extent(self) -> tuple[float, float]:
        slope = len(self.theta0) * float(np.linalg.norm(self.cov, 2))
        return float(np.abs(self.theta0).max()), slope

    def at(self, x: Array) -> Array:
        factor = np.linalg.cholesky(self.cov).T
        target = factor @ self.theta0
        return _each(
            x, len(target), lambda cut: _box_least_squares(factor, target, self.end - cut)[0]
        )


def path(theta0: Array, sigma2: float, order: float, cov: Array | None) -> Path:
    """The family for the norm of a ball; closed form unless l1 or linf meets a correlated cov."""
    if order == 2:
        return Ridge(theta0, sigma2, cov)
    matrix = np.eye(len(theta0)) if cov is None else cov
    variances = np.diag(matrix)
    if cov is None or np.array_equal(matrix, np.diag(variances)):
        _positive(variances)
        return (Soft if np.isinf(order) else Clip)(theta0, sigma2, variances)
    _positive(np.linalg.eigvalsh(matrix))
    return (Lasso if np.isinf(order) else Bounded)(theta0, sigma2, matrix)


def _positive(eigenvalues: Array) -> None:
    if eigenvalues.min() <= 1e-10 * eigenvalues.max():
        raise AdvlabError("l1 and linf minimisers need a positive definite cov", "a singular one")


def _each(x: Array, dimension: int, point: Callable[[float], Array]) -> Array:
    rows = [point(float(value)) for value in x.ravel()]
    return np.array(rows).reshape(*x.shape, dimension)


def _box_least_squares(matrix: Array, target: Array, bound: float) -> tuple[Array, NDArray]:
    """argmin ||matrix g - target|| over |g_i| <= bound, and which entries are strictly inside."""
    if bound <= 0:
        return np.zeros(matrix.shape[1]), np.zeros(matrix.shape[1], dtype=bool)
    found = lsq_linear(
        matrix, target, (-bound, bound), method="bvls", tol=1e-15, max_iter=50 * len(target)
    )
    return found.x, found.active_mask == 0
