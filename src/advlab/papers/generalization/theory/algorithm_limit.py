"""Where Algorithm 1 with a surrogate attack comes to rest in the population (derived here)."""

from dataclasses import dataclass

import numpy as np

from ....core.checks import (
    Array,
    ArrayLike,
    Numbers,
    Scalar,
    covariance,
    nonnegative,
    scalar,
    together,
    vector,
)
from ....linear.minimiser import optimal_path
from ....linear.paths import RidgePath
from ....linear.risks import adversarial_risks, total_variance
from ....linear.roots import find_roots
from .surrogate import attack_moments, xi_eff

_GRID = np.linspace(-46.0, 60.0, 1061)


@dataclass(frozen=True)
class Limit:
    """The rest point of the surrogate algorithm and what its xi costs."""

    theta: Array
    kappa: Numbers
    risk: Numbers
    """The true adversarial risk there."""
    excess: Numbers
    """That risk minus R*."""


def algorithm_limit(
    theta0: ArrayLike,
    sigma2: Scalar,
    radius: ArrayLike,
    xi: ArrayLike,
    convention: str = "definition",
    cov: ArrayLike | None = None,
) -> Limit:
    """The zero of `frozen_gradient` on the ridge path.

    kappa = (radius J1 + radius^2 J2) / (1 + radius a^2 J1 / s^2); xi = 0 gives the optimum itself.
    From `eps_zero` on theta shrinks like xi but is not zero. With little noise there can be several
    zeros: this is the one nearest to theta = 0, where gradient descent from zero stops.

    Args:
        theta0, sigma2, cov: the linear model; cov = None is the identity.
        radius, xi: of the attack; they broadcast.
        convention: how xi is read, see `xi_eff`.
    """
    truth = vector("theta0", theta0)
    noise = scalar("sigma2", sigma2)
    matrix = covariance(cov, len(truth))
    eps = nonnegative("radius", radius)
    smoothing = np.asarray(xi_eff(xi, convention))
    shape = together(radius=eps, xi=smoothing)
    eps, smoothing = (np.broadcast_to(part, shape).ravel() for part in (eps, smoothing))
    family = RidgePath(truth, noise, matrix)
    kappa = _largest_zero(family, eps, smoothing).reshape(shape)
    gone = np.isinf(kappa)[..., None]
    theta = np.where(gone, 0.0, family.at(np.where(np.isinf(kappa), 0.0, kappa)))
    risk = adversarial_risks(theta, truth, noise, eps.reshape(shape), "l2", matrix)
    least = optimal_path(truth, noise, eps.reshape(shape), "l2", matrix).risk
    return Limit(theta, kappa[()], risk, risk - least)


def kappa_alg(
    theta0: ArrayLike,
    sigma2: Scalar,
    radius: ArrayLike,
    xi: ArrayLike,
    convention: str = "definition",
    cov: ArrayLike | None = None,
) -> Numbers:
    """The ridge parameter of `algorithm_limit`; same arguments."""
    return algorithm_limit(theta0, sigma2, radius, xi, convention, cov).kappa


def _largest_zero(family: RidgePath, eps: Array, xi: Array) -> Array:
    # The path depends on neither eps nor xi, so one scan serves all of them.
    grid = np.log(family.eigenvalues.max()) + _GRID
    scan = _imbalance(grid, eps[:, None], xi[:, None], family)
    above = scan > 0
    last = above.shape[1] - 1 - above[:, ::-1].argmax(axis=1)
    kappa = np.where(above.any(axis=1), np.inf, 0.0)
    inside = np.flatnonzero(above.any(axis=1) & (last < above.shape[1] - 1))
    e, f = eps[inside], xi[inside]
    first, second = grid[last[inside]], grid[last[inside] + 1]
    kappa[inside] = np.exp(find_roots(lambda x: _imbalance(x, e, f, family), first, second))
    return kappa


def _imbalance(log_kappa: Array, eps: Array, xi: Array, family: RidgePath) -> Array:
    kappa = np.exp(log_kappa)
    a, s, _ = family.profile(kappa)
    k1, k2 = attack_moments(a, s, xi)
    inward = eps * s**2 * k1 + eps**2 * k2
    return inward / (1 + eps * a**2 * k1) / kappa - 1


def stable_eta(
    theta0: ArrayLike,
    sigma2: Scalar,
    radius: ArrayLike,
    xi: ArrayLike,
    convention: str = "definition",
    cov: ArrayLike | None = None,
) -> Numbers:
    """Steps above 1 / (lambda_max(cov) + radius v^2 / xi_eff) jitter about theta = 0.

    The frozen gradient has Jacobian 2 cov + 2 (radius v^2 / xi_eff) I there (derived here); for
    small xi this is the rule eta < xi_eff / (radius v^2). 0 when xi = 0 and radius > 0. Arguments
    as in `algorithm_limit`.
    """
    truth = vector("theta0", theta0)
    matrix = covariance(cov, len(truth))
    eps, smoothing = nonnegative("radius", radius), np.asarray(xi_eff(xi, convention))
    shape = together(radius=eps, xi=smoothing)
    top = 1.0 if matrix is None else float(np.linalg.eigvalsh(matrix)[-1])
    pulled = np.broadcast_to(eps * total_variance(truth, sigma2, matrix), shape)
    stiff = np.divide(pulled, smoothing, out=np.where(pulled > 0, np.inf, 0.0), where=smoothing > 0)
    return (1 / (top + stiff))[()]
