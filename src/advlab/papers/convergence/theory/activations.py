"""Activations in numpy: sigma, sigma', what proofs ask of them, and their tangent kernels.

The tangent kernel of a two-layer network (section 5 of the convergence paper) is
K(x, y) = <x, y> E[sigma'(w.x) sigma'(w.y)] with w ~ N(0, I): on the unit sphere a function of
c = <x, y>. The closed forms below were derived anew; theta = arccos c.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import erf as _erf
from scipy.special import expit, ndtr

from ....core.checks import Numbers, Scalar, fraction, positive
from ....core.errors import AdvlabError

Curve = Callable[[Numbers], Numbers]
PEAK = float(1 / np.sqrt(2 * np.pi))
"""The normal density at 0."""


@dataclass(frozen=True)
class KernelActivation:
    """sigma and sigma'; a constant or a kernel that is not known in closed form is None."""

    phi: Curve
    dphi: Curve
    bound: float | None = None
    """C1 = sup |sigma'|."""
    lipschitz: float | None = None
    """C2, the Lipschitz constant of sigma'."""
    degree: int | None = None
    """sigma(t z) = t^degree sigma(z) for t > 0."""
    breaks: tuple[float, ...] = ()
    """Where sigma' jumps or bends."""
    kernel: Curve | None = None
    """K(c) on the sphere."""
    kernel_slope: Curve | None = None
    """dK/dc."""


def identity() -> KernelActivation:
    return KernelActivation(lambda z: z, np.ones_like, 1.0, 0.0, 1, kernel=lambda c: c * 1.0,
                 kernel_slope=np.ones_like)  # fmt: skip


def relu() -> KernelActivation:
    """K = c (pi - theta)/(2 pi)."""
    return KernelActivation(
        lambda z: np.maximum(z, 0.0),
        lambda z: (z > 0) * 1.0,
        bound=1.0,
        degree=1,
        breaks=(0.0,),
        kernel=_relu_kernel,
        kernel_slope=_relu_kernel_slope,
    )


def leaky_relu(gamma: Scalar = 0.1) -> KernelActivation:
    """K = gamma c + (1 - gamma)^2 times the kernel of ReLU."""
    low = fraction("gamma", gamma)
    return KernelActivation(
        lambda z: np.maximum(z, low * z),
        lambda z: np.where(z > 0, 1.0, low),
        bound=1.0,
        degree=1,
        breaks=(0.0,),
        kernel=lambda c: low * c + (1 - low) ** 2 * _relu_kernel(c),
        kernel_slope=lambda c: low + (1 - low) ** 2 * _relu_kernel_slope(c),
    )


def smoothed_leaky_relu(gamma: Scalar = 0.1, H: Scalar = 1.0) -> KernelActivation:
    """Leaky ReLU with a parabola on [-1/H, 1/H]; its kernel has no closed form here."""
    low, sharp = fraction("gamma", gamma), float(positive("H", H))
    mean, half = (1 + low) / 2, (1 - low) / 2

    def phi(z: Numbers) -> Numbers:
        u = np.clip(z, -1 / sharp, 1 / sharp)
        return mean * z + half * sharp * u * (z - u / 2)

    return KernelActivation(
        phi,
        lambda z: mean + half * np.clip(sharp * z, -1, 1),
        bound=1.0,
        lipschitz=half * sharp,
        breaks=(-1 / sharp, 1 / sharp),
    )


def sigmoid() -> KernelActivation:
    """The logistic function; its kernel has no closed form."""
    return KernelActivation(
        expit, lambda z: expit(z) * expit(-z), bound=0.25, lipschitz=float(1 / np.sqrt(108))
    )


def quadratic_relu() -> KernelActivation:
    """max(z, 0)^2: K = (2c/pi)(sin theta + (pi - theta) c), as d/dc of the bracket is pi - theta.

    The same kernel for w uniform on the sphere of radius sqrt(d): sigma' has degree one, so only
    E||w||^2 = d enters.
    """

    def bracket(c: Numbers) -> Numbers:
        return _sine(c) + (np.pi - np.arccos(c)) * c

    return KernelActivation(
        lambda z: np.maximum(z, 0.0) ** 2,
        lambda z: 2 * np.maximum(z, 0.0),
        lipschitz=2.0,
        degree=2,
        breaks=(0.0,),
        kernel=lambda c: 2 * c / np.pi * bracket(c),
        kernel_slope=lambda c: 2 / np.pi * (bracket(c) + c * (np.pi - np.arccos(c))),
    )


def erf() -> KernelActivation:
    """K = (4/pi) c/sqrt(9 - 4 c^2)."""
    steep = 2 / np.sqrt(np.pi)
    return KernelActivation(
        _erf,
        lambda z: steep * np.exp(-(z**2)),
        bound=float(steep),
        lipschitz=float(np.sqrt(2) * steep * np.exp(-0.5)),
        kernel=lambda c: 4 / np.pi * c / np.sqrt(9 - 4 * c**2),
        kernel_slope=lambda c: 36 / np.pi * (9 - 4 * c**2) ** -1.5,
    )


def gaussian_relu() -> KernelActivation:
    """z Phi + phi, the integral of the normal distribution function: K = c E(c), `_orthant`."""
    return KernelActivation(
        lambda z: z * ndtr(z) + _density(z),
        ndtr,
        bound=1.0,
        lipschitz=PEAK,
        kernel=lambda c: c * _orthant(c),
        kernel_slope=lambda c: _orthant(c) + c / (2 * np.pi * np.sqrt(4 - c**2)),
    )


def gelu() -> KernelActivation:
    """z Phi: K = c (E(c) + c r/(2 pi) + c r^3/(2 pi)) with r = 1/sqrt(4 - c^2)."""

    def mean(c: Numbers) -> Numbers:
        r = 1 / np.sqrt(4 - c**2)
        return _orthant(c) + c * (r + r**3) / (2 * np.pi)

    def mean_slope(c: Numbers) -> Numbers:
        r = 1 / np.sqrt(4 - c**2)
        return (2 * r + (1 + c**2) * r**3 + 3 * c**2 * r**5) / (2 * np.pi)

    largest = float(ndtr(np.sqrt(2)) + np.sqrt(2) * PEAK * np.exp(-1))
    return KernelActivation(
        lambda z: z * ndtr(z),
        lambda z: ndtr(z) + z * _density(z),
        bound=largest,
        lipschitz=2 * PEAK,
        kernel=lambda c: c * mean(c),
        kernel_slope=lambda c: mean(c) + c * mean_slope(c),
    )


def sin() -> KernelActivation:
    """K = c cosh(c)/e."""
    return KernelActivation(
        np.sin,
        np.cos,
        bound=1.0,
        lipschitz=1.0,
        kernel=lambda c: c * np.cosh(c) / np.e,
        kernel_slope=lambda c: (np.cosh(c) + c * np.sinh(c)) / np.e,
    )


def sin_cos() -> KernelActivation:
    """sin z + cos z = sqrt(2) sin(z + pi/4): K = c exp(c - 1), universal on the sphere."""
    root = float(np.sqrt(2))
    return KernelActivation(
        lambda z: root * np.sin(z + np.pi / 4),
        lambda z: root * np.cos(z + np.pi / 4),
        bound=root,
        lipschitz=root,
        kernel=lambda c: c * np.exp(c - 1),
        kernel_slope=lambda c: (1 + c) * np.exp(c - 1),
    )


ACTIVATIONS: dict[str, Callable[..., KernelActivation]] = {
    "identity": identity,
    "relu": relu,
    "leaky_relu": leaky_relu,
    "smoothed_leaky_relu": smoothed_leaky_relu,
    "sigmoid": sigmoid,
    "quadratic_relu": quadratic_relu,
    "erf": erf,
    "gaussian_relu": gaussian_relu,
    "gelu": gelu,
    "sin": sin,
    "sin_cos": sin_cos,
}


def get_activation(activation: str | KernelActivation) -> KernelActivation:
    """One of ACTIVATIONS with its default parameters, or the user's own as it is.

    Args:
        activation: a name, or one's own.
    """
    if isinstance(activation, KernelActivation):
        return activation
    if activation not in ACTIVATIONS:
        raise AdvlabError(f"activation must be one of {', '.join(ACTIVATIONS)}", repr(activation))
    return ACTIVATIONS[activation]()


def _density(z: Numbers) -> Numbers:
    return PEAK * np.exp(-(z**2) / 2)


def _orthant(c: Numbers) -> Numbers:
    """E[Phi(u) Phi(v)] for standard normals of correlation c."""
    return 0.25 + np.arcsin(c / 2) / (2 * np.pi)


def _sine(c: Numbers) -> Numbers:
    return np.sqrt((1 - c) * (1 + c))


def _relu_kernel(c: Numbers) -> Numbers:
    return c * (np.pi - np.arccos(c)) / (2 * np.pi)


def _relu_kernel_slope(c: Numbers) -> Numbers:
    # The kernel has a cusp at c = +-1; the floor keeps its slope a number there.
    return (np.pi - np.arccos(c) + c / np.maximum(_sine(c), 1e-12)) / (2 * np.pi)
