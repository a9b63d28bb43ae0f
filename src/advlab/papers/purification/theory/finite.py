"""Finite-size arithmetic that predicts the experiments (spec 2.2), and exact linear accuracies."""

import numpy as np

from ....core.checks import (
    Array,
    ArrayLike,
    Numbers,
    Scalar,
    chosen,
    nonnegative,
    scalar,
    signs,
    vector,
)
from ....core.errors import AdvlabError
from .inputs import sizes


def pure_cosine(p: ArrayLike, d: Scalar) -> Numbers:
    """theta(w, pure) = 1/sqrt(1 + p^2 d) for own part 1 and p on each of d other coordinates."""
    return (1 / np.sqrt(1 + nonnegative("p", p) ** 2 * scalar("d", d)))[()]


def universal_shift(tau: ArrayLike, d: Scalar, p: ArrayLike) -> Numbers:
    """tau sqrt(d) p (1 + p d): by how much M w* of length tau moves f, in units of <w*, z>.

    p d active neurons, each with <w_i, M w*>/||M w*|| = (1 + p d)/sqrt(d).
    """
    share, size = nonnegative("p", p), scalar("d", d)
    return (nonnegative("tau", tau) * np.sqrt(size) * share * (1 + share * size))[()]


def pure_shift(tau: ArrayLike, k: Scalar) -> Numbers:
    """tau sqrt(k): by how much the worst perturbation of length tau moves a pure net, which is
    linear with about k active directions."""
    return (nonnegative("tau", tau) * np.sqrt(scalar("k", k)))[()]


def shift_ratio(d: Scalar, k: Scalar) -> float:
    """k^1.5/sqrt(d): universal over pure shift at p = k/d, up to the factor 1 + 1/k."""
    dimension, sparsity = sizes(d, k)
    return float(sparsity**1.5 / np.sqrt(dimension))


def linear_accuracy(
    scores: ArrayLike, labels: ArrayLike, direction: ArrayLike, tau: Scalar, norm: str
) -> float:
    """Exact robust accuracy of x -> <direction, x> on points: mean(y f > tau ||direction||_*).

    The dual norm is l2 for l2 and l1 for linf. A zero output counts as wrong.
    """
    f, y = vector("scores", scores), signs(labels)
    if len(f) != len(y):
        raise AdvlabError("one label a score", f"{len(f)} scores, {len(y)} labels")
    return float((y * f > scalar("tau", tau) * dual_norm(direction, norm)).mean())


def dual_norm(direction: ArrayLike, norm: str) -> float:
    """||direction||_2 for l2, ||direction||_1 for linf."""
    w: Array = vector("direction", direction)
    return float(np.linalg.norm(w, 2 if chosen("norm", norm, ("l2", "linf")) == "l2" else 1))
