"""A radius from the data alone."""

from typing import Any

import numpy as np

from ..core.checks import ArrayLike
from ..core.errors import AdvlabError
from .solve import Prepared, prepare


def default_eps(
    x: Any,
    y: ArrayLike,
    norm: str | float = "linf",
    loss: str = "squared",
    *,
    draws: int = 100,
    seed: int = 0,
    **settings: Any,
) -> float:
    """The radius at which answers of pure noise give the zero model, on average over draws.

    For noise u the zero threshold is ||X'u||_p / ||u||_1, which does not depend on the size of the
    noise: Ribeiro, Zachariah, Bach and Schoen, "Regularization properties of adversarially-trained
    linear regression" (NeurIPS 2023), propose it for regression, where for linf attacks it has the
    rate sqrt(log d / n) of the square-root lasso. For classes we take random labels in its place.

    Args:
        x, y, norm, loss: as in `solve_linear`.
        draws: of the noise.
        seed: of the draws.
        settings: fit_intercept, sample_weight, scales, as there.

    Example:
        from advlab.linear import default_eps
        default_eps(x, y, "linf")
    """
    return default_eps_of(prepare(x, y, norm=norm, loss=loss, **settings), draws, seed)


def default_eps_of(ready: Prepared, draws: int, seed: int) -> float:
    problem, unit = ready.problem, ready.unit
    if not unit.any():
        raise AdvlabError("a feature that is attacked", "scales that are all zero")
    rng = np.random.default_rng(seed)
    n = len(problem.y)
    noise = rng.normal(size=(n, draws))
    if problem.loss.classifies:
        noise = np.sign(noise)
    weighted = problem.weights[:, None] * noise
    if problem.intercept:
        weighted = weighted - problem.weights[:, None] * weighted.sum(axis=0)
    seen = unit > 0
    image = np.asarray(problem.x.T @ weighted)[seen] / unit[seen][:, None]
    top = np.linalg.norm(image, ord=problem.order, axis=0)
    return float((top / np.maximum(np.abs(weighted).sum(axis=0), 1e-300)).mean())
