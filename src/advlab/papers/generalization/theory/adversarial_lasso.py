"""The adversarial LASSO of Theorem 9 under l2 attacks.

The estimate minimises the sample version of the potential R~ of Theorem 2's proof, which is convex
and smooth for xi > 0, plus an l1 penalty. At xi = 0 it is the adversarial risk of the sample, which
`advlab.linear` minimises exactly.
"""

from dataclasses import dataclass, replace

import numpy as np

from ....core.checks import Array, ArrayLike, Scalar, scalar, stack, vector
from ....linear.interpolation import check_samples
from ....linear.samples import Minimum, newton, report_miss, smoothed_risk, soft_threshold
from ....linear.solve import solve_linear
from .surrogate import xi_eff


def empirical_potential(
    theta: ArrayLike,
    x: ArrayLike,
    y: ArrayLike,
    radius: Scalar,
    xi: Scalar,
    convention: str = "definition",
) -> tuple[float, Array]:
    """The sample version of R~: mean r^2 + 2 radius sqrt(r^2 a^2 + xi_eff^2) + radius^2 a^2.

    Args:
        theta: one model (d,).
        x, y: samples (n, d) and (n,).
        radius, xi: of the l2 attack.
        convention: how xi is read, see `xi_eff`.

    Returns:
        The value and its gradient in theta.
    """
    design, target = check_samples(x, y)
    model = stack("theta", vector("theta", theta), design.shape[1])
    smoothing = float(xi_eff(scalar("xi", xi), convention))
    return smoothed_risk(model, design, target, scalar("radius", radius), smoothing)


def adversarial_lasso(
    x: ArrayLike,
    y: ArrayLike,
    radius: Scalar,
    penalty: Scalar,
    xi: Scalar,
    convention: str = "definition",
    steps: int = 5000,
    tolerance: Scalar = 1e-6,
) -> Minimum:
    """argmin of the empirical potential + penalty * ||theta||_1 (the estimator of Theorem 9).

    Rounds of FISTA (with backtracking and restarts, from zero) and of Newton's method on the
    non-zero entries, until the certified gap is small enough; a warning says so where it never is.
    A small xi is approached from larger ones. Zero if penalty >= max |gradient at zero|. With
    xi = 0 the exact solver of robust linear models is used instead.

    Args:
        x, y: samples (n, d) and (n,).
        radius, xi: of the l2 attack.
        penalty: lambda.
        convention: how xi is read, see `xi_eff`.
        steps: of FISTA, at most so many (and one for each xi on the way).
        tolerance: the gap asked for, as a share of the objective.

    Returns:
        The estimate `.theta`, its objective `.value`, a certified bound `.gap` on what it is above
        the least, and whether that is as small as asked, `.converged`.

    Example:
        from advlab.papers.generalization.theory import adversarial_lasso
        adversarial_lasso(x, y, 0.3, 0.1, xi=0.05).theta
    """
    design, target = check_samples(x, y)
    eps, weight = scalar("radius", radius), scalar("penalty", penalty)
    smoothing, asked = float(xi_eff(scalar("xi", xi), convention)), scalar("tolerance", tolerance)
    if smoothing == 0 and eps > 0:
        exact = solve_linear(
            design, target, eps, "l2", l1=weight, fit_intercept=False, tol=asked, max_iter=steps
        )
        return Minimum(exact.coef, exact.objective, exact.gap, exact.iterations, exact.converged)
    problem = _Lasso(design, target, eps, weight, smoothing)
    theta, done = np.zeros(design.shape[1]), 0
    scale = float((target**2).mean())
    for level in _levels(smoothing, 0.01 * scale) if eps else [smoothing]:
        part = replace(problem, smoothing=level)
        last = level == smoothing
        theta, taken = part.solve(theta, steps - done, asked if last else max(asked, 1e-2))
        done += taken
    value, gap = problem.value(theta), problem.gap(theta)
    found = Minimum(theta, value, gap, done, gap <= asked * value)
    return report_miss(found, "adversarial_lasso")


def _levels(last: float, first: float) -> list[float]:
    """From `first` down to `last`, at most tenfold at a time."""
    if first <= last:
        return [last]
    levels = np.geomspace(first, last, int(np.ceil(np.log10(first / last))) + 1)
    return [*levels[:-1].tolist(), last]


_ROUND = 100
"""Steps of FISTA before Newton's method is tried on the entries that it left non-zero."""


@dataclass(frozen=True)
class _Lasso:
    """The empirical potential plus an l1 penalty."""

    x: Array
    y: Array
    eps: float
    weight: float
    smoothing: float

    def value(self, theta: Array) -> float:
        smooth = smoothed_risk(theta, self.x, self.y, self.eps, self.smoothing)[0]
        return smooth + self.weight * float(np.abs(theta).sum())

    def gap(self, theta: Array) -> float:
        """A bound on value(theta) - least value, from the tangent of the convex
        h(p, q) = p^2 + q^2 + 2 sqrt(p^2 q^2 + c^2) at p = |r|, q = eps ||theta|| (derived here).

        The least model is no longer than `reach`, as eps^2 ||theta||^2 and weight ||theta||_1 are
        below the objective.
        """
        r, eps, n = self.x @ theta - self.y, self.eps, len(self.y)
        p, q, c = np.abs(r), eps * float(np.linalg.norm(theta)), eps * self.smoothing
        root = np.sqrt(p**2 * q**2 + c**2)
        inverse = np.divide(1.0, root, out=np.zeros_like(root), where=root > 0)
        by_p, by_q = 2 * p * (1 + q**2 * inverse), 2 * q * (1 + p**2 * inverse)
        beta, value = by_p * np.sign(r), self.value(theta)
        tangent = p**2 + q**2 + 2 * root - by_p * p - by_q * q - beta * self.y
        left = float(np.linalg.norm(soft_threshold(self.x.T @ beta / n, self.weight)))
        slack = left - eps * float(by_q.mean())
        reach = min(
            float(np.sqrt(value)) / eps if eps else np.inf,
            value / self.weight if self.weight else np.inf,
        )
        return max(value - float(tangent.mean()) + (reach * slack if slack > 0 else 0.0), 0.0)

    def solve(self, theta: Array, steps: int, asked: float) -> tuple[Array, int]:
        """Rounds of FISTA and Newton's method, until the gap is small or the steps are gone."""
        bound = 2 * float(np.linalg.norm(self.x, 2)) ** 2 / len(self.y) + 2 * self.eps**2
        done, allowed = 0, max(steps, 1)
        while done < allowed:
            taken = min(_ROUND, allowed - done)
            theta, bound = self._fista(theta, bound, taken)
            done += taken
            if self.gap(theta) <= asked * self.value(theta):
                break
            polished = self._polish(theta)
            if self.value(polished) < self.value(theta):
                theta = polished
            if self.gap(theta) <= asked * self.value(theta):
                break
        return theta, done

    def _fista(self, theta: Array, bound: float, steps: int) -> tuple[Array, float]:
        args = (self.x, self.y, self.eps, self.smoothing)
        momentum, time = theta, 1.0
        for _ in range(steps):
            value, gradient = smoothed_risk(momentum, *args)
            while True:
                new = soft_threshold(momentum - gradient / bound, self.weight / bound)
                step = new - momentum
                model = value + gradient @ step + bound / 2 * step @ step
                if smoothed_risk(new, *args)[0] <= model + 1e-12 * abs(model):
                    break
                bound *= 2
            moved = new - theta
            later = (1 + np.sqrt(1 + 4 * time**2)) / 2
            # A step against the momentum restarts it; otherwise FISTA circles the solution.
            uphill = (momentum - new) @ moved > 0
            momentum = new if uphill else new + (time - 1) / later * moved
            theta, time = new, 1.0 if uphill else later
        return theta, bound / 4

    def _polish(self, theta: Array) -> Array:
        """Newton's method on the non-zero entries; those that reach zero leave."""
        if self.smoothing == 0:
            return theta
        theta, x = theta.copy(), self.x
        for _ in range(len(theta)):
            support = np.flatnonzero(theta)
            if not support.size:
                break
            slope = self.weight * np.sign(theta[support]) if self.weight else 0.0
            found, _ = newton(
                theta[support], x[:, support], self.y, self.eps, self.smoothing, slope
            )
            theta[support] = found
            gone = np.abs(found) <= 1e-14 * np.abs(found).max()
            theta[support[gone]] = 0.0
            if not (self.weight and gone.any()):
                break
        return theta
