"""Tangent kernels of any sigma' by quadrature and by Hermite series.

Smooth sigma' take Gauss-Hermite rules. Where sigma' jumps or bends those lose their accuracy, so
integrals are then split at the breaks into short panels, each with a Gauss-Legendre rule.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from ....core.checks import Array, ArrayLike, Numbers, Scalar, cosine, finite, vector, whole
from .activations import Curve, KernelActivation, get_activation

FAR = 13.0
"""The normal density is below 1e-36 out there."""
NODES = 200


def kernel_by_quadrature(
    slope: str | KernelActivation | Callable, c: ArrayLike, breaks: Sequence[Scalar] = ()
) -> Numbers:
    """K(c) = c E[sigma'(u) sigma'(v)] with u standard normal and v = c u + sqrt(1 - c^2) z.

    Args:
        slope: an activation, or sigma' as a function.
        c: <x, y> of unit vectors.
        breaks: where sigma' jumps or bends, if it is a function.
    """
    curve, cuts = _curve(slope, breaks)
    cosines = cosine(c)
    mean = _smooth_mean if not cuts.size else _broken_mean
    values = [one * mean(curve, one, cuts) for one in cosines.ravel().tolist()]
    return np.array(values).reshape(cosines.shape)[()]


def hermite_coefficients(
    slope: str | KernelActivation | Callable, degree: int = 40, breaks: Sequence[Scalar] = ()
) -> Array:
    """h_k = E[sigma'(z) He_k(z)]/sqrt(k!) for k = 0, ..., degree.

    Args:
        slope: an activation, or sigma' as a function.
        degree: the last k.
        breaks: where sigma' jumps or bends, if it is a function.
    """
    curve, cuts = _curve(slope, breaks)
    z, weight = _normal_rule(cuts)
    return _hermites(z, whole("degree", degree, 0)) @ (weight * curve(z))


def kernel_by_hermite(coefficients: ArrayLike, c: ArrayLike) -> Numbers:
    """K(c) = sum_k h_k^2 c^(k+1).

    Args:
        coefficients: h_0, h_1, ...
        c: <x, y> of unit vectors.
    """
    h = vector("coefficients", coefficients)
    return np.polynomial.Polynomial(np.r_[0.0, h**2])(cosine(c))


def with_series(activation: str | KernelActivation, degree: int = 60) -> KernelActivation:
    """The activation with the kernel of its first Hermite coefficients in place of a closed form.

    A polynomial with coefficients >= 0 is a kernel itself, so Gram matrices stay semi-definite.

    Args:
        activation: a name, or one's own.
        degree: of the last coefficient.
    """
    own = get_activation(activation)
    series = np.polynomial.Polynomial(np.r_[0.0, hermite_coefficients(own, degree) ** 2])
    return replace(own, kernel=series, kernel_slope=series.deriv())


def _curve(
    slope: str | KernelActivation | Callable, breaks: Sequence[Scalar]
) -> tuple[Curve, Array]:
    if not callable(slope):
        slope = get_activation(slope)
    if isinstance(slope, KernelActivation):
        return slope.dphi, np.array(slope.breaks)
    return slope, np.unique(finite("breaks", list(breaks)))


def _smooth_mean(curve: Curve, c: float, cuts: Array) -> float:
    z, weight = _normal_rule(cuts)
    v = c * z[:, None] + np.sqrt(1 - c**2) * z
    return float(weight @ (curve(z) * (curve(v) @ weight)))


def _broken_mean(curve: Curve, c: float, cuts: Array) -> float:
    """E[sigma'(u) E[sigma'(v) | u]], both integrals split at the breaks.

    The inner one as a function of u has a layer of width sqrt(1 - c^2)/|c| about break/c.
    """
    spread = np.sqrt(1 - c**2)
    if spread < 1e-8:
        u, weight = _normal_rule(np.r_[cuts, np.sign(c) * cuts])
        return float(weight @ (curve(u) * curve(np.sign(c) * u)))
    layers = np.outer(spread * np.array([-8, -4, -2, -1, 0, 1, 2, 4, 8]), np.ones(len(cuts)))
    edges = (cuts + layers) / c if abs(c) > 1e-3 else np.zeros(0)
    u, weight = _normal_rule(np.r_[cuts, np.ravel(edges)])
    z, inner = _panels((cuts - c * u[:, None]) / spread)
    means = (inner * curve(c * u[:, None] + spread * z)).sum(1)
    return float(weight @ (curve(u) * means))


def _normal_rule(cuts: Array) -> tuple[Array, Array]:
    """Nodes and weights for the mean over a standard normal."""
    if not cuts.size:
        z, weight = np.polynomial.hermite_e.hermegauss(NODES)
        return z, weight / weight.sum()
    z, weight = _panels(cuts[None])
    return z[0], weight[0]


def _panels(cuts: Array, nodes: int = 20) -> tuple[Array, Array]:
    """The same for each row of cuts: panels of length at most one that end at the cuts."""
    base = np.linspace(-FAR, FAR, 27)
    edges = np.concatenate([np.broadcast_to(base, (len(cuts), len(base))), cuts], axis=1)
    edges = np.sort(np.clip(edges, -FAR, FAR), axis=1)
    t, weight = np.polynomial.legendre.leggauss(nodes)
    half = np.diff(edges, axis=1)[:, :, None] / 2
    z = ((edges[:, :-1, None] + half) + half * t).reshape(len(cuts), -1)
    weights = (half * weight).reshape(len(cuts), -1)
    return z, weights * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)


def _hermites(z: Array, degree: int) -> Array:
    """He_k(z)/sqrt(k!), one row per degree."""
    rows = np.ones((degree + 1, len(z)))
    if degree:
        rows[1] = z
    for k in range(1, degree):
        rows[k + 1] = (z * rows[k] - np.sqrt(k) * rows[k - 1]) / np.sqrt(k + 1)
    return rows
