"""What Theorem 5 asks of a wide design matrix, and when it stops (with Lemma 3)."""

from dataclasses import dataclass

import numpy as np

from ....core.checks import ArrayLike, Scalar, scalar
from ....core.errors import AdvlabError
from ....linear.interpolation import check_design


def spectrum_edges(n: int, d: int) -> tuple[float, float]:
    """Lemma 3: the eigenvalues of XX'/d for cov = I lie in (1 -+ sqrt(n/d))^2 as n, d grow."""
    if n < 1 or d < n:
        raise AdvlabError("need 1 <= n <= d", f"n={n}, d={d}")
    ratio = float(np.sqrt(n / d))
    return (1 - ratio) ** 2, (1 + ratio) ** 2


def stopping_level(n: int) -> float:
    """Theorem 5 stops at the first t with ||X theta - y|| / (v sqrt n) below 1 / sqrt(log n)."""
    if n < 3:
        raise AdvlabError("1 / sqrt(log n) stops training only for n of 3 or more", n)
    return float(1 / np.sqrt(np.log(n)))


def wide_growth(n: int, d: int) -> float:
    """(log n) sqrt(n/d): tends to 0 in Theorems 5 to 7 (6 and 7 print its inverse's regime)."""
    if n < 1 or d < 1:
        raise AdvlabError("need n and d of 1 or more", f"n={n}, d={d}")
    return float(np.log(n) * np.sqrt(n / d))


@dataclass(frozen=True)
class InterpolationRegime:
    """The numbers Theorem 5 makes assumptions about; it is the reader who judges them."""

    growth: float
    """`wide_growth`, should tend to 0."""
    literal_step: float
    """lambda_max(eta X'X), below 1 in the statement."""
    step: float
    """2 eta lambda_max(X'X) / n: gradient descent is stable below 2 and monotone below 1."""
    edges: tuple[float, float]
    """The range of the eigenvalues of XX'/d; compare `spectrum_edges`."""


def interpolation_regime(x: ArrayLike, eta: Scalar) -> InterpolationRegime:
    """Theorem 5's assumptions and Lemma 3's range, measured on a design matrix.

    Args:
        x: the design matrix (n, d).
        eta: the step size.
    """
    design = check_design(x)
    n, d = design.shape
    eigenvalues = np.linalg.svd(design, compute_uv=False) ** 2
    top = scalar("eta", eta) * float(eigenvalues[0])
    edges = (float(eigenvalues[-1]) / d, float(eigenvalues[0]) / d)
    return InterpolationRegime(wide_growth(n, d), top, 2 * top / n, edges)
