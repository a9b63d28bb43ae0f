"""Fewer features for the same problem: l2 attacks live in the span of the samples."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ...core.checks import Array
from .problem import LinearProblem, is_sparse


def in_span(problem: LinearProblem) -> tuple[LinearProblem, Callable[[Array], Array]] | None:
    """For q = 2 and more features than samples: n features, and the way back.

    With x~ = x/radii the objective sees theta~ = radii theta through x~ theta~ and its length, so
    it is best inside the span of the samples: theta~ = X~'U L^{-1/2} xi with the Gram matrix
    X~X~' = U L U', and the design becomes U L^{1/2}.
    """
    n, d = problem.shape
    r = problem.radii
    if problem.dual != 2 or d <= n or problem.l1.any() or not r.all():
        return None
    if problem.l2.any() and np.ptp(r) > 0:
        return None
    if is_sparse(problem.x):
        scaled = problem.x.multiply(1 / r[None, :]).tocsr()
        gram = (scaled @ scaled.T).toarray()
    else:
        scaled = problem.x / r
        gram = scaled @ scaled.T
    values, vectors = np.linalg.eigh(gram)
    kept = values > 1e-13 * max(float(values[-1]), 1e-300)
    root = np.sqrt(values[kept])
    lift = vectors[:, kept] / root
    k = int(kept.sum())
    l2 = problem.l2[:k] / r[:k] ** 2
    small = replace(problem, x=vectors[:, kept] * root, radii=np.ones(k), l1=np.zeros(k), l2=l2)
    return small, lambda xi: np.asarray(scaled.T @ (lift @ xi)) / r
