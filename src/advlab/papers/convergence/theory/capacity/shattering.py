"""The points of Theorem 6.1, and when two balls can split a cluster (explicit constants).

A cluster has the points c + eps e_1, ..., c + eps e_d. Of these, k have label +1 (set P), the rest
-1 (set N). With yhat = y/sqrt(d), the balls of radius delta around

    z_P = c + (eps/k) 1_P + tau_P yhat,    z_N = c + (eps/(d-k)) 1_N - tau_N yhat

hold P and N if tau_P <= sqrt(delta^2 - eps^2 (1 - 1/k)) (for N with d-k). If both tau exceed
delta - eps/sqrt(d), the balls lie on either side of the hyperplane <yhat, z - c> = 0 and are
disjoint. There is such a tau if and only if delta > gamma_k eps, and then no other pair of balls on
the two sides does with a smaller delta. Balls on the two sides of another hyperplane may, by some
per cent, where k and d-k differ.
"""

import numpy as np

from .....core.checks import Array, Scalar, length, whole
from .....core.errors import AdvlabError


def cluster_points(n: int, d: int, delta: Scalar, eps: Scalar) -> Array:
    """(floor(n/2), d, d): the points c_i + eps e_j that n balls of radius delta shatter.

    Clusters lie at c_i = (6 i delta, 0, ..., 0), i = 1, 2, ..., out of reach of one another.

    Args:
        n: the number of balls.
        d: the dimension.
        delta: their radius.
        eps: the spread of a cluster.
    """
    clusters, dims = whole("n", n, 2) // 2, whole("d", d, 1)
    centres = np.zeros((clusters, 1, dims))
    centres[:, 0, 0] = 6 * length("delta", delta) * np.arange(1, clusters + 1)
    return centres + length("eps", eps) * np.eye(dims)


def gamma(d: int, k: int) -> float:
    """gamma_k: the construction splits a cluster k to d-k if and only if delta > gamma_k eps.

    (sqrt(d)/2) (1 - 1/max(k, d-k) + 1/d), at most sqrt(d)/2. For d = 2, k = 1 every eps will do, so
    gamma is 0: the two points are alone in their balls, and what is far apart can be told apart. A
    cluster of one label (k = 0 or d) takes one ball around c, so gamma is 1.

    Args:
        d: the dimension, and the number of points.
        k: how many have label +1.
    """
    dims, positive = whole("d", d, 1), whole("k", k, 0)
    if positive > dims:
        raise AdvlabError(f"k counts some of d = {dims} points", k)
    if positive in (0, dims):
        return 1.0
    if dims == 2:
        return 0.0
    return float(np.sqrt(dims) / 2 * (1 - 1 / max(positive, dims - positive) + 1 / dims))


def tau_interval(d: int, k: int, delta: Scalar, eps: Scalar) -> tuple[float, float]:
    """The open interval of tau for the ball that holds k of d points.

    (delta - eps/sqrt(d), sqrt(delta^2 - eps^2 (1 - 1/k))), empty if its ends are in the wrong
    order; the upper end is nan where no ball of radius delta holds the k points.

    Args:
        d: the dimension, and the number of points.
        k: how many the ball holds.
        delta: its radius.
        eps: the spread of the cluster.
    """
    dims, held = whole("d", d, 1), whole("k", k, 1)
    radius, spread = length("delta", delta), length("eps", eps)
    square = radius**2 - spread**2 * (1 - 1 / held)
    high = float(np.sqrt(square)) if square >= 0 else float("nan")
    # A tau below -high would leave the ball on the other side; it matters for k = 1 only.
    return max(radius - spread / float(np.sqrt(dims)), -high), high


def require_feasible(d: int, k: int, delta: float, eps: float) -> None:
    """Refuse an eps at which the two balls of a cluster would meet."""
    bound = gamma(d, k)
    if delta > bound * eps:
        return
    reason = (
        "one ball of radius delta around a cluster of one label"
        if k in (0, d)
        else f"two disjoint balls of radius delta that split {d} points {k} to {d - k}"
    )
    raise AdvlabError(
        f"{reason} need eps below delta/gamma_k = {delta / bound:.6g}, gamma_k = {bound:.6g}",
        f"eps = {eps:.6g} and delta = {delta:.6g}",
        "make eps smaller; below delta and 2 delta/sqrt(d) every labelling works",
    )
