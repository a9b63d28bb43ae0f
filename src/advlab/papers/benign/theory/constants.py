"""The explicit constants of the lemmas about training.

`kappa` and `gamma` are those of the cluster law and the activation. `c0` = None means a smooth
activation; for the others it is the fraction of Lemma B.21, in (0, 1), which is measured. Other
arguments have the names of `papers.benign.theory`. The constants are huge; that measured quantities
do not drift is the useful test.
"""

from typing import NamedTuple

import numpy as np

from ....core.checks import ArrayLike, Numbers, Scalar, fraction, nonnegative, positive, scalar
from ....core.errors import AdvlabError


class Bounds(NamedTuple):
    """What a quantity lies between."""

    low: float
    high: float


def C1(kappa: Scalar) -> float:
    """Lemma B.4: squared norms of inputs lie in [d/C1, C1 d] with C1 = 10/kappa."""
    return 10 / float(positive("kappa", scalar("kappa", kappa)))


def C_r(kappa: Scalar, gamma: Scalar, c0: Scalar | None = None) -> float:
    """Loss gradients of examples differ by a factor C_r at most, at any time.

    Lemma B.9: 64 C1 (sqrt C1 + 1/(2 sqrt C1))^2/gamma^2.
    Lemma B.26: 192 C1 (C1 + 1/(4 C1))/(c0 gamma^2).
    """
    one, slope = C1(kappa), fraction("gamma", gamma)
    if c0 is None:
        return 64 * one * (one**0.5 + 0.5 / one**0.5) ** 2 / slope**2
    return 192 * one * (one + 1 / (4 * one)) / (fraction("c0", c0) * slope**2)


def C2(kappa: Scalar, gamma: Scalar, c0: Scalar | None = None) -> float:
    """Eq. 5: ||grad L_rob||_F <= C2 sqrt(d/n) G_rob with C2 = sqrt(5 C1 C_r)."""
    return (5 * C1(kappa) * C_r(kappa, gamma, c0)) ** 0.5


def loss_ratio_bound(d: Scalar, alpha: Scalar, kappa: Scalar, gamma: Scalar) -> float:
    """Lemma B.9 before it is relaxed to C_r, for smooth activations.

    16 (sqrt(C1 d) + alpha)^2/(gamma^2 (sqrt(d/C1) - alpha)^2); at most C_r while
    alpha <= sqrt(d/C1)/2.
    """
    short, long = _lengths(d, alpha, kappa)
    return 16 * long**2 / (fraction("gamma", gamma) ** 2 * short**2)


def margin_growth(
    eta: Scalar, n: Scalar, d: Scalar, alpha: Scalar, kappa: Scalar, gamma: Scalar, c0: Scalar
) -> Bounds:
    """Lemma B.26 (E2): a step moves a margin by g~ times a number in these bounds (non-smooth).

    eta c0 gamma^2 (sqrt(d/C1) - alpha)^2/(2n) and 3 eta (C1 d + alpha^2)/n.
    """
    short, _ = _lengths(d, alpha, kappa)
    step = scalar("eta", eta) / float(positive("n", scalar("n", n)))
    low = step * fraction("c0", c0) * fraction("gamma", gamma) ** 2 * short**2 / 2
    return Bounds(low, 3 * step * (C1(kappa) * d + alpha**2))


def gradient_alignment(gamma: Scalar, c0: Scalar | None = None) -> float:
    """Lemmas B.15, B.29: <-grad L_rob, V> >= this ||mu|| G_rob; gamma/4, times c0 if non-smooth.

    V has the rows a_s mu/(||mu|| sqrt m), so ||V||_F = 1.
    """
    return fraction("gamma", gamma) / 4 * (1.0 if c0 is None else fraction("c0", c0))


def c7(kappa: Scalar, gamma: Scalar, c0: Scalar | None = None) -> float:
    """Lemma B.30: a step moves a_s y <w_s, x> by c7 eta ||mu||^2 G_rob/sqrt(m) and more, less what
    depends on the fresh point; c7 = c0 gamma/(6 C_r).

    Its proof has B1 >= c0 gamma/(3 C_r) in these units, and B2 and B3 at most a quarter of that
    each; B4 is the rest. Smooth activations have slopes of gamma and more at all examples: the
    same proof with c0 = 1 and the C_r of Lemma B.9.
    """
    share = 1.0 if c0 is None else fraction("c0", c0)
    return share * fraction("gamma", gamma) / (6 * C_r(kappa, gamma, c0))


def normalised_margin_floor(kappa: Scalar, gamma: Scalar, c0: Scalar | None = None) -> float:
    """Lemmas B.14, B.33: min M/||W||_2 >= this ||mu||^2 sqrt(n/d).

    Smooth: gamma^2/(32 C2). Non-smooth: c9/(16 C2) with the c9 = 3 gamma c7/8 of B.33's proof, in
    which Corollary B.31 holds with probability 3/4 and more.
    """
    slope, size = fraction("gamma", gamma), C2(kappa, gamma, c0)
    if c0 is None:
        return slope**2 / (32 * size)
    return 3 * slope * c7(kappa, gamma, c0) / 8 / (16 * size)


def first_step_floor(mu_norm: Scalar, gamma: Scalar, c0: Scalar | None = None) -> float:
    """Proposition B.34: ||W^1 - W^0||_F/||W^0||_F >= gamma ||mu||/10; the non-smooth one has c0."""
    size = scalar("mu_norm", mu_norm) * fraction("gamma", gamma) / 10
    return size * (1.0 if c0 is None else fraction("c0", c0))


def squared_norm_rate(eta: Scalar, width: Scalar, c1: Scalar, curvature: Scalar = 1.0) -> float:
    """||W^t||_F^2 <= ||W^0||_F^2 + rate t, with rate = eta (2/3 + 2 c1 sqrt(m) + curvature).

    z g(z) <= 1/3 bounds what a step adds along W^t. c1 is the activation's, 0 where it is
    homogeneous. The curvature is any bound of eta ||grad L_rob||_F^2: eta C2^2 d/n by eq. 5, which
    is 1 at most where Assumption (4) holds.
    """
    root = float(positive("width", scalar("width", width))) ** 0.5
    near = 2 * scalar("c1", c1) * root
    return scalar("eta", eta) * (2 / 3 + near + scalar("curvature", curvature))


def norm_growth_bound(
    steps: ArrayLike,
    start: Scalar,
    eta: Scalar,
    n: Scalar,
    d: Scalar,
    kappa: Scalar,
    gamma: Scalar,
    c0: Scalar,
) -> Numbers:
    """Lemma B.29, eq. 16: a bound on ||W^t||_F^2 for non-smooth activations; `start` is ||W^0||_F.

    ||W^0||_F^2 + (eta^2 C2^2 d/n + 2 eta/3) t
    """
    step, share = scalar("eta", eta), scalar("d", d) / float(positive("n", scalar("n", n)))
    rate = squared_norm_rate(step, 1, 0.0, step * C2(kappa, gamma, c0) ** 2 * share)
    return (scalar("start", start) ** 2 + rate * nonnegative("steps", steps))[()]


def slrelu_norm_growth_bound(
    steps: ArrayLike, start: Scalar, eta: Scalar, gamma: Scalar, width: Scalar, smoothness: Scalar
) -> Numbers:
    """Corollary B.16: ||W^0||_F^2 + eta (5/3 + (1 - gamma) sqrt(m)/(2H)) t for SLReLU(gamma, H).

    It is proved where eta C2^2 d <= n, which Assumption (4) ensures: 5/3 is 2/3 and that term.
    """
    H = float(positive("smoothness", scalar("smoothness", smoothness)))
    rate = squared_norm_rate(eta, width, (1 - fraction("gamma", gamma)) / (4 * H))
    return (scalar("start", start) ** 2 + rate * nonnegative("steps", steps))[()]


def span_distance_bound(
    omega: Scalar, width: Scalar, d: Scalar, eta: Scalar, alpha: Scalar
) -> float:
    """Lemmas B.10, B.27: attacked points are within min(omega sqrt(m d)/eta, alpha) of the span."""
    start = scalar("omega", omega) * (scalar("width", width) * scalar("d", d)) ** 0.5
    return min(start / float(positive("eta", scalar("eta", eta))), scalar("alpha", alpha))


def _lengths(d: Scalar, alpha: Scalar, kappa: Scalar) -> tuple[float, float]:
    """The shortest and longest input in a ball: sqrt(d/C1) - alpha and sqrt(C1 d) + alpha."""
    one, dims = C1(kappa), float(positive("d", scalar("d", d)))
    radius, shortest = scalar("alpha", alpha), float(np.sqrt(dims / one))
    if radius >= shortest:
        raise AdvlabError(
            f"alpha must be below sqrt(d/C1) = {shortest:.6g}", radius, "use a larger dimension"
        )
    return shortest - radius, float(np.sqrt(one * dims)) + radius
