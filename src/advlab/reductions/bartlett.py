"""Gaussian points in the fewest coordinates that keep their inner products: Bartlett's triangle."""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ..core.errors import AdvlabError


def bartlett(rows: int, dim: int, rng: torch.Generator) -> Float[Tensor, "{rows} k"]:
    """L of min(rows, dim) columns such that L L' has the law of Z Z', where Z has `dim` columns of
    independent N(0, 1) entries.

    L is lower triangular with L_ii^2 ~ chi^2(dim - i), i from 0, and N(0, 1) below the diagonal.

    Args:
        rows: the number of points.
        dim: their dimension; no vector of this length is made.
        rng: where the draws come from.

    Returns:
        float64, (rows, min(rows, dim)).

    Example:
        from advlab.reductions import bartlett
        L = bartlett(100, 10_000, rng)  # L @ L.T is the Gram matrix of 100 Gaussian points
    """
    if rows < 1 or dim < 0:
        raise AdvlabError("rows of 1 or more and a dimension of 0 or more", f"{rows} and {dim}")
    k = min(rows, dim)
    triangle = torch.empty(rows, k, dtype=torch.float64).normal_(generator=rng).tril(-1)
    # torch draws no chi-squares from a generator of its own.
    seed = int(torch.randint(2**62, (), generator=rng))
    squares = np.random.default_rng(seed).chisquare(dim - np.arange(k))
    triangle.diagonal().copy_(torch.from_numpy(np.sqrt(squares)))
    return triangle
