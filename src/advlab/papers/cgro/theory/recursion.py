"""One step of gradient descent on (O) in closed coordinates (proof of Theorem C.2).

And the decoupled model, in which each noise patch only feels itself.

u_r = <w_r, w*>, v_ijr = y_i <w_r, X_i[j]> over the noise patches j. All functions take one network.
"""

from typing import NamedTuple

from scipy.special import expit

from ....core.checks import Array, ArrayLike, Numbers, Scalar, finite, scalar
from ....core.errors import AdvlabError


class PatchStep(NamedTuple):
    """u (m,) and v (N, P - 1, m) after a step."""

    u: Array
    v: Array


def psi(z: ArrayLike) -> Numbers:
    """1/(1 + e^z): minus the slope of the logistic loss."""
    return expit(-finite("z", z))[()]


def exact_step(
    u: ArrayLike,
    v: ArrayLike,
    gram: ArrayLike,
    *,
    alpha: Scalar,
    gamma: Scalar,
    lam: Scalar,
    eta: Scalar,
) -> PatchStep:
    """u and v after one step on (O). The paper's display drops the labels y_i in the noise term.

    Args:
        u: u_r, (m,).
        v: v_ijr, (N, P - 1, m).
        gram: <y_k x_k, y_l x_l> of the K = N (P - 1) noise patches, (K, K).
        alpha, gamma: as in `data.Patches`.
        lam: the weight lambda of adversarial examples.
        eta: the learning rate.
    """
    signal, noise = _checked(u, v)
    products = finite("gram", gram)
    k = noise.shape[0] * noise.shape[1]
    if products.shape != (k, k):
        raise AdvlabError(f"gram of shape ({k}, {k})", products.shape)
    push, Q = _forces(signal, noise, *_numbers(alpha, gamma, lam, eta))
    moved = (products @ Q.reshape(k, -1)).reshape(noise.shape)
    return PatchStep(signal + push, noise + moved)


def decoupled_step(
    u: ArrayLike,
    v: ArrayLike,
    squared_norms: ArrayLike,
    *,
    alpha: Scalar,
    gamma: Scalar,
    lam: Scalar,
    eta: Scalar,
) -> PatchStep:
    """The same with a diagonal Gram matrix.

    Args:
        u: u_r, (m,).
        v: v_ijr, (N, P - 1, m).
        squared_norms: ||X_i[j]||^2 of the noise patches, (N, P - 1).
        alpha, gamma, lam, eta: as for `exact_step`.
    """
    signal, noise = _checked(u, v)
    norms = finite("squared_norms", squared_norms)
    if norms.shape != noise.shape[:2]:
        raise AdvlabError(f"squared_norms of shape {noise.shape[:2]}", norms.shape)
    push, Q = _forces(signal, noise, *_numbers(alpha, gamma, lam, eta))
    return PatchStep(signal + push, noise + norms[..., None] * Q)


def _forces(
    u: Array, v: Array, alpha: float, gamma: float, lam: float, eta: float
) -> tuple[Array, Array]:
    """What u gains, and what the coefficient of each noise patch does."""
    U, V = (u**3).sum(), (v**3).sum((1, 2))
    whole, left = alpha**3, (alpha * (1 - gamma)) ** 3
    clean, attacked = expit(-(whole * U + V)), expit(-(left * U + V))
    rate = 3 * eta / len(v)
    push = rate * u**2 * ((1 - lam) * whole * clean + lam * left * attacked).sum()
    return push, rate * ((1 - lam) * clean + lam * attacked)[:, None, None] * v**2


def _checked(u: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    signal, noise = finite("u", u), finite("v", v)
    if signal.ndim != 1 or noise.ndim != 3 or noise.shape[2] != len(signal):
        raise AdvlabError("u (m,) and v (N, P - 1, m)", f"{signal.shape} and {noise.shape}")
    return signal, noise


def _numbers(*values: Scalar) -> list[float]:
    names = ("alpha", "gamma", "lam", "eta")
    return [scalar(name, value) for name, value in zip(names, values, strict=True)]
