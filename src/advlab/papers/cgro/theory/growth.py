"""The growth lemmas behind Theorem 4.1 (4.2 to 4.4, C.5, C.8 to C.10) as diagnostics of a run.

The paper states orders; each function gives the number that the order speaks of.
"""

import numpy as np

from ....core.checks import (
    Array,
    ArrayLike,
    Numbers,
    Scalar,
    finite,
    nonnegative,
    positive,
    scalar,
    together,
)
from ....core.errors import AdvlabError
from .recursion import psi


def signal_growth(u: ArrayLike, after: ArrayLike, alpha: Scalar, eta: Scalar) -> Array:
    """Lemma 4.2's constant, (u_r(t+1) - u_r(t))/(eta alpha^3 u_r^2 psi(alpha^3 U)), of each filter.

    It is 3 (1 - lam) while V_i is O(1) and the attacked signal is negligible, and falls like the
    mean of e^-V_i once the noise is memorised.

    Args:
        u: u_r(t), (m,).
        after: u_r(t+1), (m,).
        alpha: the length of the signal.
        eta: the learning rate.
    """
    before, then = finite("u", u), finite("after", after)
    a, rate = positive("alpha", alpha), positive("eta", eta)
    if before.shape != then.shape or before.ndim != 1:
        raise AdvlabError("u and after: vectors of one length", f"{before.shape}, {then.shape}")
    return (then - before) / (rate * a**3 * before**2 * psi(a**3 * (before**3).sum()))


def signal_ceiling(
    alpha: Scalar, gamma: Scalar, eta: Scalar, N: Scalar, attacked: ArrayLike
) -> Numbers:
    """Lemma 4.3 without its logarithms: 1/alpha + eta (alpha (1 - gamma))^3/N times `attacked`.

    Args:
        alpha, gamma: as in `data.Patches`.
        eta: the learning rate.
        N: the number of training examples.
        attacked: the sum of psi(y f(X adv)) over examples and steps since T_0.
    """
    a, left = positive("alpha", alpha), 1 - scalar("gamma", gamma)
    pushed = scalar("eta", eta) * (a * left) ** 3 / positive("N", N)
    return (1 / a + pushed * nonnegative("attacked", attacked))[()]


def noise_remainder(
    v: ArrayLike, v0: ArrayLike, beta: ArrayLike, squared_norms: ArrayLike
) -> Array:
    """Lemma C.5's remainder v - v(0) - ||X_i[j]||^2 beta: the sum of what other noise patches add.

    Args:
        v: v_ijr now.
        v0: v_ijr at the start.
        beta: (3 eta/N) sum_s p_i v^2, as in `PatchState.beta`; all three have one shape.
        squared_norms: ||X_i[j]||^2, without the last axis.
    """
    now, start, own = finite("v", v), finite("v0", v0), finite("beta", beta)
    norms = nonnegative("squared_norms", squared_norms)[..., None]
    together(v=now, v0=start, beta=own, squared_norms=norms)
    return now - start - norms * own


def noise_remainder_scale(P: Scalar, sigma: Scalar, d: Scalar, alpha: Scalar) -> float:
    """P sigma^2 sqrt(d)/alpha: the order that Lemma C.5 gives the remainder, up to logarithms.

    Args:
        P, sigma, d, alpha: as in `data.Patches`.
    """
    spread = scalar("sigma", sigma) ** 2 * np.sqrt(scalar("d", d))
    return float(scalar("P", P) * spread / positive("alpha", alpha))


def lojasiewicz_ratio(gradient_norm: ArrayLike, loss: ArrayLike) -> Numbers:
    """Lemma C.8: ||grad L||/L, which stays away from 0 after T_1.

    Args:
        gradient_norm: ||grad L||_F.
        loss: L, positive.
    """
    norm, value = nonnegative("gradient_norm", gradient_norm), positive("loss", loss)
    together(gradient_norm=norm, loss=value)
    return (norm / value)[()]


def loss_decay(loss: ArrayLike, step: ArrayLike, T1: ArrayLike, eta: ArrayLike) -> Numbers:
    """Lemma C.9: eta (t - T_1 + 1) L(t), which is bounded for t >= T_1.

    (Its proof must use the squared norm of the gradient.)

    Args:
        loss: L(t).
        step: t, from T_1 on.
        T1: T_1.
        eta: the learning rate.
    """
    value, t, start = nonnegative("loss", loss), finite("step", step), finite("T1", T1)
    together(loss=value, step=t, T1=start)
    if (t < start).any():
        raise AdvlabError("steps from T1 on", f"{t.min()}")
    return (nonnegative("eta", eta) * (t - start + 1) * value)[()]


def attack_budget(eta: Scalar, sigma0: Scalar) -> float:
    """Lemma C.10 without its logarithms: (lam/N) sum_s sum_i psi(y f(X adv)) <= 1/(eta sigma0).

    Args:
        eta: the learning rate.
        sigma0: the spread of the first weights.
    """
    return float(1 / (positive("eta", scalar("eta", eta)) * positive("sigma0", sigma0)))
