"""Theorem 5.3: a robust classifier can need exp(Omega(D)) parameters, as a calculator.

The points (x, 1/2 + eps0 phi(x)), x in a 2 delta-packing of n points of the slice x_D = 1/2, have
labels phi(x) that are arbitrary. If networks of M parameters fit a 1 - mu fraction of them robustly
whatever phi is, their values at the n points (x, 1/2) come within mu n of every sign vector, so

    2^n / sum_{i <= mu n} C(n, i)  <=  sum_{j <= l} C(n, j)

with l the VC dimension of an envelope network (M - 1 hidden layers of width M): l >= C(mu) n.
"""

from itertools import product
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import xlogy

from ....core.checks import Array, Scalar, chosen, length, points_of, scalar, signs, whole
from ....core.errors import AdvlabError

VERSIONS = ("paper", "entropy", "exact")
MOST_POINTS = 10**6
"""More are counted, but not listed."""
LARGEST_EXACT = 20_000
"""Beyond it, sums of binomials take minutes, and the entropy form is within 0.1 % or so."""


def packing_side(delta: Scalar) -> int:
    """1 + floor(1/(2 delta)): grid points on [0, 1] at distances of at least 2 delta."""
    # 1/(2 * 0.05) is a whole number up to rounding only.
    return 1 + int(np.floor(1 / (2 * length("delta", delta)) + 1e-9))


def packing_size(d: int, delta: Scalar) -> int:
    """n = (1 + floor(1/(2 delta)))^(d-1), a whole number of any size.

    Args:
        d: D, the dimension of the inputs.
        delta: the radius of the balls.
    """
    return packing_side(delta) ** (whole("d", d, 2) - 1)


def packing(d: int, delta: Scalar) -> Array:
    """The n grid points in [0, 1]^(d-1), as rows.

    Args:
        d: D, the dimension of the inputs.
        delta: the radius of the balls; at most a million points are listed.
    """
    side, n = packing_side(delta), packing_size(d, delta)
    if n > MOST_POINTS:
        raise AdvlabError(f"a packing of at most {MOST_POINTS} points", n, "use a larger delta")
    return np.array(list(product(np.linspace(0, 1, side) if side > 1 else [0.5], repeat=d - 1)))


def lifted(points: Any, phi: Any, eps0: Scalar, delta: Scalar) -> Array:
    """The points (x, 1/2 + eps0 phi(x)): in l2, opposite labels are more than 2 delta apart.

    Args:
        points: rows x of the packing.
        phi: the labels, +1 or -1.
        eps0: the height, below delta: a classifier that is robust at delta then has the sign phi(x)
            at (x, 1/2) too.
        delta: the radius of the balls.
    """
    rows, height, radius = points_of(points), length("eps0", eps0), length("delta", delta)
    if height >= radius:
        raise AdvlabError(f"a height eps0 below delta = {radius:.6g}", height)
    return np.column_stack([rows, 0.5 + height * signs(phi, len(rows))])


def capacity_share(mu: Scalar, version: str = "entropy", n: int | None = None) -> float:
    """C(mu): networks that fit a share 1 - mu for every phi have VC dimension at least C(mu) n.

    Args:
        mu: the share of points that may be lost.
        version: "paper": (e/mu)^mu (e/C)^C = 2, for mu below 0.3276; "entropy": H(C) + H(mu) = 1 in
            bits, for mu below 1/2; "exact": the least l/n that the inequality of binomials leaves.
            In
            this order they grow: each uses a sharper bound on sums of binomials.
        n: the number of points, for the exact version.
    """
    part = scalar("mu", mu)
    if chosen("version", version, VERSIONS) == "exact":
        if n is None:
            raise AdvlabError("the exact share is one of n points", "no n", "state n")
        return least_vc(n, part) / n
    curve = _paper_curve if version == "paper" else _entropy
    top, total = (1.0, np.log(2)) if version == "paper" else (0.5, 1.0)
    if not part < 0.5 or curve(part) >= total:
        bound = 0.5 if version == "entropy" else _root(curve, total, 1.0)
        raise AdvlabError(f"mu below {bound:.4f} for a share that is positive", part)
    return _root(curve, total - curve(part), top)


def least_vc(n: int, mu: Scalar) -> int:
    """The least l with sum_{i<=mu n} C(n,i) sum_{j<=l} C(n,j) >= 2^n, in whole numbers.

    Args:
        n: the number of points, at most 20 000.
        mu: the share of points that may be lost.
    """
    size, part = whole("n", n, 1), scalar("mu", mu)
    if size > LARGEST_EXACT:
        raise AdvlabError(f"n of at most {LARGEST_EXACT}", size, "use the entropy version")
    ball = _binomial_sums(size)
    # 0.1 * 30 is a little more than 3, 0.29 * 100 a little less than 29.
    radius = int(np.floor(part * size + 1e-9))
    near = next(value for i, value in enumerate(ball) if i == min(radius, size))
    return next(l for l, value in enumerate(_binomial_sums(size)) if near * value >= 1 << size)  # noqa: E741


def envelope_vc(parameters: int, d: int) -> float:
    """An upper bound on the VC dimension of all ReLU networks with M parameters; of order M^4 log
    M.

    Lemma A.7 with its constants (Bartlett, Harvey, Liaw and Mehrabian 2019, cited): a dense network
    of L layers with k_i units has VC <= L + (sum_i W_<=i) log2(4e R log2(2e R)), R = sum_i i k_i
    and W_<=i the weights and biases of layers 1 to i; here for M layers, all but the last M wide.

    Args:
        parameters: M, at least 2.
        d: the dimension of the inputs.
    """
    M, inputs = whole("parameters", parameters, 2), whole("d", d, 1)
    up_to = M * (inputs + 1) * M + (M * (M - 1) // 2 - 1) * (M + 1) * M + M + 1
    R = M * (M * (M - 1) // 2) + M
    return M + up_to * float(np.log2(4 * np.e * R * np.log2(2 * np.e * R)))


def least_parameters(d: int, delta: Scalar, mu: Scalar, version: str = "entropy") -> int:
    """M_D: no smaller M has an envelope whose VC bound reaches C(mu) n, so none fits every phi.

    Args:
        d: D, the dimension of the inputs.
        delta: the radius of the balls.
        mu: the share of points that may be lost.
        version: of C(mu), as in `capacity_share`.
    """
    target = required_vc(d, delta, mu, version)
    high = 2
    while envelope_vc(high, d) < target:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if envelope_vc(middle, d) >= target else (middle, high)
    return high


def parameters_order(n: Scalar, share: Scalar, constant: Scalar = 1.0) -> float:
    """(C n/(c log n))^(1/4): the paper's M_D.

    Args:
        n: the number of points, above 1.
        share: C(mu).
        constant: c of VC <= c M^4 log M.
    """
    points = scalar("n", n)
    if points <= 1:
        raise AdvlabError("n above 1", points)
    scale = length("constant", constant) * np.log(points)
    return float((scalar("share", share) * points / scale) ** 0.25)


def required_vc(d: int, delta: Scalar, mu: Scalar, version: str = "entropy") -> float:
    """C(mu) n for the grid packing.

    Args:
        d: D, the dimension of the inputs.
        delta: the radius of the balls.
        mu: the share of points that may be lost.
        version: of C(mu), as in `capacity_share`.
    """
    n = packing_size(d, delta)
    return capacity_share(mu, version, n if version == "exact" else None) * n


def _binomial_sums(n: int) -> Any:
    """sum_{i <= l} C(n, i) for l = 0, 1, ..., n."""
    term = total = 1
    yield total
    for i in range(n):
        term = term * (n - i) // (i + 1)
        total += term
        yield total


def _paper_curve(x: float) -> float:
    """log of (e/x)^x."""
    return float(x - xlogy(x, x))


def _entropy(x: float) -> float:
    return float(-(xlogy(x, x) + xlogy(1 - x, 1 - x)) / np.log(2))


def _root(curve: Any, total: float, top: float) -> float:
    """Where an increasing curve on [0, top] takes a value."""
    root: Any = brentq(lambda x: curve(x) - total, 0.0, top, xtol=1e-14)
    return float(root)
