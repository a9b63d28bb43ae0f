"""How well adversarial training does: Theorem 3.1 (B.1, B.17) and the certificate of Lemma B.2.

The theorems leave constants c and C open. Concentration of Lipschitz functions of a
lam-strongly log-concave law gives c = 1/2 (derived here); C can be fitted to measurements.
"""

from typing import NamedTuple

import numpy as np

from ....core.checks import (
    ArrayLike,
    Numbers,
    Scalar,
    chosen,
    finite,
    fraction,
    nonnegative,
    positive,
    scalar,
    together,
)
from ....core.errors import AdvlabError
from .inputs import flip_rate


class SampleSizes(NamedTuple):
    """Orders of magnitude that n must exceed by far."""

    clean: float
    robust: float
    fixed_ratio: float


def clean_upper_bound(
    n: ArrayLike,
    d: ArrayLike,
    mu_norm: ArrayLike,
    beta: ArrayLike,
    lam: ArrayLike = 1.0,
    c: ArrayLike = 0.5,
    C: ArrayLike = 1.0,
) -> Numbers:
    """Theorem 3.1 (2): beta + 2 exp(-c lam n ||mu||^4/(C^2 d)); see `robust_upper_bound`."""
    return robust_upper_bound(n, d, mu_norm, 0.0, beta, lam, c, C)


def robust_upper_bound(
    n: ArrayLike,
    d: ArrayLike,
    mu_norm: ArrayLike,
    alpha: ArrayLike,
    beta: ArrayLike,
    lam: ArrayLike = 1.0,
    c: ArrayLike = 0.5,
    C: ArrayLike = 1.0,
) -> Numbers:
    """Theorem 3.1 (3): beta + 2 exp(-c lam (sqrt(n/d) ||mu||^2/C - alpha)^2), at most 1.

    Where the difference is negative the theorem says nothing, and the bound is 1.

    Args:
        n, d, mu_norm, alpha, beta, lam: numbers or arrays, which broadcast.
        c, C: the constants that the theorem leaves open.
    """
    named = {
        "n": positive("n", n),
        "d": positive("d", d),
        "mu_norm": nonnegative("mu_norm", mu_norm),
        "alpha": nonnegative("alpha", alpha),
        "beta": flip_rate(beta),
        "lam": positive("lam", lam),
        "c": positive("c", c),
        "C": positive("C", C),
    }
    together(**named)
    strength = np.sqrt(named["n"] / named["d"]) * named["mu_norm"] ** 2 / named["C"]
    gap = np.maximum(strength - named["alpha"], 0)
    return np.minimum(named["beta"] + 2 * np.exp(-named["c"] * named["lam"] * gap**2), 1)[()]


def fit_C(
    measured: ArrayLike,
    n: ArrayLike,
    d: ArrayLike,
    mu_norm: ArrayLike,
    alpha: ArrayLike,
    beta: ArrayLike,
    lam: ArrayLike = 1.0,
    c: ArrayLike = 0.5,
) -> float:
    """The smallest C whose bound covers every measured error; alpha = 0 fits clean errors.

    A point e <= beta always is, so the answer is 0 if all are; a point e > beta is covered when
    C >= sqrt(n/d) ||mu||^2/(alpha + sqrt(log(2/(e - beta))/(c lam))).

    Args:
        measured: errors between 0 and 1.
        n, d, mu_norm, alpha, beta, lam, c: as in `robust_upper_bound`, one for all or one each.
    """
    errors = nonnegative("measured", measured)
    if not errors.size or (errors > 1).any():
        raise AdvlabError("measured errors are one or more numbers between 0 and 1", measured)
    sizes, dims, length = positive("n", n), positive("d", d), nonnegative("mu_norm", mu_norm)
    radius, rate = nonnegative("alpha", alpha), flip_rate(beta)
    steep = np.asarray(positive("c", c) * positive("lam", lam))
    together(measured=errors, n=sizes, d=dims, mu_norm=length, alpha=radius, beta=rate, lam=steep)
    excess = np.maximum(errors - rate, 0)
    with np.errstate(divide="ignore"):
        # -log 0 is infinite, and such a point asks for nothing.
        width = np.sqrt((np.log(2) - np.log(excess)) / steep)
    return float(np.max(np.sqrt(sizes / dims) * length**2 / (radius + width)))


def certificate(
    margins: ArrayLike,
    spectral_norm: ArrayLike,
    alpha: ArrayLike,
    beta: ArrayLike,
    lam: ArrayLike = 1.0,
    form: str = "tight",
    c: ArrayLike = 0.5,
) -> Numbers:
    """Lemma B.2: an upper bound of the robust error of any 1-Lipschitz-activation network W.

    With the gap (M/||W||_2 - alpha)_+ it is beta + sum exp(-c lam gap^2) over the two classes, at
    most 1. Only flips with P(y != y_c) <= beta are asked for.

    Args:
        margins: M = E[y_c f(x; W) | y_c] of the two classes (..., 2).
        spectral_norm: ||W||_2 (...).
        alpha: the radius; 0 bounds the clean error.
        beta, lam: of the mixture.
        form: "paper", or "tight", which keeps the class prior 1/2 before the sum (derived here).
        c: the constant of the concentration inequality.
    """
    weight = {"paper": 1.0, "tight": 0.5}[chosen("form", form, ("paper", "tight"))]
    means = finite("margins", margins)
    if not means.ndim or means.shape[-1] != 2:
        raise AdvlabError("margins must end in an axis of the two classes", means.shape)
    norm, radius = positive("spectral_norm", spectral_norm), nonnegative("alpha", alpha)
    rate, steep = flip_rate(beta), np.asarray(positive("c", c) * positive("lam", lam))
    together(margins=means[..., 0], spectral_norm=norm, alpha=radius, beta=rate, lam=steep)
    gap = np.maximum(means / norm[..., None] - radius[..., None], 0)
    return np.minimum(rate + weight * np.exp(-steep[..., None] * gap**2).sum(axis=-1), 1)[()]


def iterations_needed(
    eps: Scalar,
    mu_norm: Scalar,
    eta: Scalar,
    gamma: Scalar,
    width: int,
    d: int,
    zeta: Scalar = 0.0,
    c0: Scalar | None = None,
    form: str = "paper",
) -> float:
    """The steps T after which the robust training loss is at most eps.

    Smooth activations (c0 = None; Theorem B.1): ((35 + 8 sqrt(m/d^3))/(gamma ||mu|| eta eps))^r
    with r = 2/(1 - zeta). Non-smooth ones (Theorem B.17): (30/(gamma c0 ||mu|| sqrt(eta) eps))^2.

    Args:
        eps: the loss to reach.
        mu_norm, eta, gamma, width, d: as everywhere in this folder.
        zeta: of the activation, |z phi'(z) - phi(z)| <= c1 + c2 |z|^zeta.
        c0: the fraction of Lemma B.21, for non-smooth activations.
        form: "tight" is the r = (2 - zeta)/(1 - zeta) that the proof of Lemma B.15 gives.
    """
    base, power = _rate(mu_norm, eta, gamma, width, d, zeta, c0, form)
    return (base / float(positive("eps", scalar("eps", eps)))) ** (1 / power)


def training_loss_bound(
    steps: ArrayLike,
    mu_norm: Scalar,
    eta: Scalar,
    gamma: Scalar,
    width: int,
    d: int,
    zeta: Scalar = 0.0,
    c0: Scalar | None = None,
    form: str = "paper",
) -> Numbers:
    """The robust training loss after `steps` is at most this: Lemmas B.15 and (with c0) B.29.

    Args:
        steps: numbers of steps, 1 or more.
        mu_norm, eta, gamma, width, d, zeta, c0, form: as in `iterations_needed`.
    """
    base, power = _rate(mu_norm, eta, gamma, width, d, zeta, c0, form)
    return base / positive("steps", steps)[()] ** power


def slrelu_loss_bound(
    steps: ArrayLike, mu_norm: Scalar, eta: Scalar, gamma: Scalar, width: int, smoothness: Scalar
) -> Numbers:
    """Corollary B.16: (30 + 6 m^(1/4)/sqrt H)/(gamma ||mu|| sqrt(eta T)) for SLReLU(gamma, H)."""
    length, step = positive("mu_norm", mu_norm)[()], positive("eta", eta)[()]
    H, m = positive("smoothness", smoothness)[()], positive("width", width)[()]
    scale = fraction("gamma", gamma) * length * np.sqrt(step * positive("steps", steps))
    return ((30 + 6 * m**0.25 / np.sqrt(H)) / scale)[()]


def sample_sizes(d: Scalar, mu_norm: Scalar, alpha: Scalar) -> SampleSizes:
    """How large n must be by Section 3.4, up to constants and logarithms.

    d/||mu||^4, d (1 + alpha)^2/||mu||^4, and d/||mu||^2 at a fixed ratio alpha/||mu||.
    """
    length = float(positive("mu_norm", scalar("mu_norm", mu_norm)))
    dims, radius = scalar("d", d), scalar("alpha", alpha)
    return SampleSizes(dims / length**4, dims * (1 + radius) ** 2 / length**4, dims / length**2)


def _rate(
    mu_norm: Scalar,
    eta: Scalar,
    gamma: Scalar,
    width: int,
    d: int,
    zeta: Scalar,
    c0: Scalar | None,
    form: str,
) -> tuple[float, float]:
    """(a, p) of the loss bound a/T^p."""
    chosen("form", form, ("paper", "tight"))
    length = float(positive("mu_norm", scalar("mu_norm", mu_norm)))
    step, m = float(positive("eta", scalar("eta", eta))), float(positive("width", width))
    dims, slope, growth = float(positive("d", d)), fraction("gamma", gamma), scalar("zeta", zeta)
    if growth >= 1:
        raise AdvlabError("zeta must be below 1", zeta)
    if c0 is not None:
        return 30 / (slope * fraction("c0", c0) * length * step**0.5), 0.5
    power = (1 - growth) / (2 if form == "paper" else 2 - growth)
    return (35 + 8 * (m / dims**3) ** 0.5) / (slope * length * step), power
