"""When the phases of Theorem 4.1 end: T_0 of the signal, T_1 of memorisation, and their ratio."""

import numpy as np

from ....core.checks import (
    Array,
    ArrayLike,
    Numbers,
    Scalar,
    chosen,
    finite,
    positive,
    scalar,
    together,
)
from ....core.errors import AdvlabError

FORMS = ("sharp", "bound", "paper")


def signal_time(
    u0: ArrayLike, alpha: ArrayLike, eta: ArrayLike, lam: ArrayLike, form: str = "sharp"
) -> Numbers:
    """T_0 (Lemma C.3): when max_r alpha u_r reaches 1.

    Until then psi is about 1/2 and u grows by B u^2 per step, B = 3 eta alpha^3 (1 - lam)/2.
    Infinite if u0 <= 0 or lam = 1, zero if u0 is already there. Arguments broadcast.

    Args:
        u0: max_r u_r(0).
        alpha: the length of the signal.
        eta: the learning rate.
        lam: the weight lambda of adversarial examples in (O).
        form: "sharp" integrates the growth, (1/u0 - alpha)/B; "bound" adds what discrete steps may
            lose, 1 + log(1/(alpha u0)); "paper" is Lemma A.1, 3/(B u0) + 8 ceil(log2(1/(alpha
            u0))).
    """
    chosen("form", form, FORMS)
    start, a, rate = finite("u0", u0), positive("alpha", alpha), positive("eta", eta)
    share = _share(lam)
    together(u0=start, alpha=a, eta=rate, lam=share)
    B = 1.5 * rate * a**3 * (1 - share)
    with np.errstate(divide="ignore", invalid="ignore"):
        z0 = np.where((start > 0) & (B > 0), start, np.nan)
        times = _hitting(z0, 1 / a, B, form)
    times = np.where(start * a >= 1, 0.0, times)
    return np.where(np.isnan(times), np.inf, times)[()]


def memorisation_times(
    v0: ArrayLike, squared_norms: ArrayLike, eta: Scalar, lam: Scalar, form: str = "sharp"
) -> Array:
    """T_1,i of each example (Lemma C.7): when its V_i reaches 1; shape (N,).

    Once the clean loss is gone v grows by A v^2 per step, A = (3 eta/N)(lam/2) ||X_i[j]||^2, and
    the fastest of an example's products decides. The paper's order omits 1/lam. Infinite where no
    product is positive or lam = 0.

    Args:
        v0: v_ijr at the start, (N, P - 1, m).
        squared_norms: ||X_i[j]||^2 of the noise patches, (N, P - 1).
        eta: the learning rate.
        lam: the weight lambda of adversarial examples in (O).
        form: "sharp" is min_{j,r} 1/(A v), as 1/v^2 is the time's slope and most of it passes while
            v is small; "bound" is its discrete form to v = 1; "paper" is Lemma A.2 with its
            constants, 21/(A v) + 8 ceil(log2(1/v)).
    """
    chosen("form", form, FORMS)
    v, norms = finite("v0", v0), positive("squared_norms", squared_norms)
    if v.ndim != 3 or norms.shape != v.shape[:2]:
        raise AdvlabError(
            "v0 (N, P - 1, m) and squared_norms (N, P - 1)", f"{v.shape}, {norms.shape}"
        )
    A = 1.5 * scalar("eta", eta) * float(_share(lam)) / len(v) * norms[..., None]
    with np.errstate(divide="ignore", invalid="ignore"):
        z0 = np.where((v > 0) & (A > 0), v, np.nan)
        if form == "sharp":
            times = 1 / (A * z0)
        elif form == "bound":
            times = _hitting(z0, 1.0, A, form)
        else:
            times = 21 / (A * z0) + 8 * np.ceil(np.log2(1 / z0))
    return np.where(np.isnan(times), np.inf, times).min((1, 2))


def residue_time(
    alpha: ArrayLike, gamma: ArrayLike, eta: ArrayLike, lam: ArrayLike, c: ArrayLike
) -> Numbers:
    """When the signal that GTA leaves blows up: 2/(3 eta lam alpha^2 (1 - gamma)^3 c); ours.

    On the plateau of phase II u grows by A u^2 per step, A = (3 eta lam/2) (alpha (1 - gamma))^3,
    from u = c/alpha: 1/(A u) steps. Lemma 4.3 has the rate as an order. T_1 over this time is the
    race number; with T_1 of `memorisation_times` it is `race_number`. Arguments broadcast.

    Args:
        alpha, gamma: as in `data.Patches`.
        eta: the learning rate.
        lam: the weight lambda of adversarial examples in (O).
        c: alpha max_r u_r on the plateau.
    """
    a, rate, share = positive("alpha", alpha), positive("eta", eta), positive("lam", lam)
    left, plateau = np.asarray(1 - _inside(gamma)), positive("c", c)
    together(alpha=a, gamma=left, eta=rate, lam=share, c=plateau)
    return (1 / (1.5 * rate * share * a**2 * left**3 * plateau))[()]


def race_number(
    N: ArrayLike,
    d: ArrayLike,
    alpha: ArrayLike,
    sigma: ArrayLike,
    gamma: ArrayLike,
    *,
    v0: ArrayLike | None = None,
    sigma0: ArrayLike | None = None,
    m: ArrayLike = 10,
    P: ArrayLike = 4,
    c: ArrayLike | None = None,
) -> Numbers:
    """rho = N alpha^2 (1 - gamma)^3 c/(sigma^2 d v0): small where Theorem 4.1 holds.

    The time that memorising takes (Lemma 4.4) over the time that the signal takes to survive GTA
    (Lemma 4.3); it is ours, not the paper's. Small: CGRO; large: the true feature is learnt
    robustly. Arguments broadcast.

    Args:
        N: the number of training examples.
        d, alpha, sigma, gamma: as in `data.Patches`.
        v0: median_i max_{j,r} v_ijr(0), for the measured form, in which c is 1.
        sigma0: the spread of the first weights, for the typical form: v0 = sqrt(2 log(m (P - 1)))
            sigma0 sigma sqrt(d), in which c is 2.5. The two differ by about the factor c.
        m: filters, for the typical form.
        P: patches, for the typical form.
        c: alpha max_r u_r on the plateau, in place of either default.

    Example:
        from advlab.papers.cgro.data import Patches
        from advlab.papers.cgro.theory import race_number
        law = Patches.scaled(n=20, d=1000)
        race_number(20, 1000, law.alpha, law.sigma, law.gamma, sigma0=1000**-0.5)
    """
    if (v0 is None) == (sigma0 is None):
        raise AdvlabError(
            "v0 for the measured form or sigma0 for the typical one",
            "both" if v0 is not None else "neither",
        )
    noise = positive("sigma", sigma) * np.sqrt(positive("d", d))
    if v0 is not None:
        start, plateau = positive("v0", v0), 1.0
    else:
        kappa = np.sqrt(2 * np.log(positive("m", m) * (positive("P", P) - 1)))
        start, plateau = kappa * positive("sigma0", sigma0) * noise, 2.5
    top = positive("N", N) * positive("alpha", alpha) ** 2 * (1 - _inside(gamma)) ** 3
    factor = plateau if c is None else positive("c", c)
    together(top=np.asarray(top), start=np.asarray(start), c=np.asarray(factor))
    return (top * factor / (noise**2 * start))[()]


def _hitting(z0: Numbers, target: Numbers, rate: Numbers, form: str) -> Numbers:
    """Steps of z += rate z^2 from z0 to the target."""
    if form == "paper":
        return 3 / (rate * z0) + 8 * np.ceil(np.log2(target / z0))
    smooth = (1 / z0 - 1 / target) / rate
    return smooth if form == "sharp" else smooth + 1 + np.log(target / z0)


def _share(lam: ArrayLike) -> Array:
    share = finite("lam", lam)
    if (share < 0).any() or (share > 1).any():
        raise AdvlabError("lam must lie between 0 and 1", f"{share.min()} to {share.max()}")
    return share


def _inside(gamma: ArrayLike) -> Array:
    share = finite("gamma", gamma)
    if (share <= 0).any() or (share >= 1).any():
        raise AdvlabError("gamma must lie inside (0, 1)", f"{share.min()} to {share.max()}")
    return share
