"""Tangent kernels (Definition 5.1) in closed form, on the unit sphere and off it."""

import numpy as np

from ....core.checks import Array, ArrayLike, Numbers, cosine, points
from ....core.errors import AdvlabError
from .activations import ACTIVATIONS, Curve, KernelActivation, get_activation
from .inputs import ON_SPHERE


def kernel(name: str | KernelActivation, c: ArrayLike) -> Numbers:
    """K(c) = c E[sigma'(u) sigma'(v)], u and v standard normals of correlation c.

    Args:
        name: an activation of ACTIVATIONS, or one's own.
        c: <x, y> of unit vectors.

    Example:
        from advlab.papers.convergence.theory import kernel
        kernel("sin_cos", 0.5)  # 0.5 exp(-0.5)
    """
    return _closed(name)(cosine(c))[()]


def kernel_slope(name: str | KernelActivation, c: ArrayLike) -> Numbers:
    """dK/dc; very large, not infinite, where the kernel of ReLU has its cusp.

    Arguments as for `kernel`.
    """
    closed = get_activation(name).kernel_slope
    if closed is None:
        raise _no_closed_form(name)
    return closed(cosine(c))[()]


def gram(name: str | KernelActivation, x: ArrayLike, y: ArrayLike | None = None) -> Array:
    """K(x_i, y_j). Off the sphere only homogeneous sigma: K = (|x||y|)^degree K(c).

    Args:
        name: an activation of ACTIVATIONS, or one's own.
        x: points as rows.
        y: other points, by default x.
    """
    left = points("x", x)
    right = left if y is None else points("y", y, left.shape[1])
    a, b = np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=1)
    scale = np.outer(a, b)
    product = left @ right.T
    cosines = np.divide(product, scale, out=np.zeros_like(product), where=scale > 0)
    # Rounding of c = +-1 would become its root where a kernel has a cusp.
    cosines = np.where(1 - np.abs(cosines) < 1e-14, np.sign(cosines), cosines)
    values = _closed(name)(cosines)
    if max(np.abs(a - 1).max(), np.abs(b - 1).max()) <= ON_SPHERE:
        return values
    degree = get_activation(name).degree
    if degree is None:
        raise AdvlabError(
            "points on the unit sphere, as the activation is not homogeneous",
            f"a point of length {max(a.max(), b.max()):.6g}",
            "divide each point by its length",
        )
    return values * scale**degree


def closed_forms() -> list[str]:
    """The names that `kernel` knows."""
    return [name for name, make in ACTIVATIONS.items() if make().kernel is not None]


def _closed(name: str | KernelActivation) -> Curve:
    closed = get_activation(name).kernel
    if closed is None:
        raise _no_closed_form(name)
    return closed


def _no_closed_form(name: str | KernelActivation) -> AdvlabError:
    return AdvlabError(
        "an activation whose kernel has a closed form",
        repr(name) if isinstance(name, str) else "one without",
        "use kernel_by_quadrature, or with_series for a kernel from its Hermite series",
    )
