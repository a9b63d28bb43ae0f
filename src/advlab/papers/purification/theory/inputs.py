"""Sizes of the sparse coding model, and log log log d."""

import numpy as np

from ....core.checks import Scalar, length, whole
from ....core.errors import AdvlabError


def sizes(d: Scalar, k: Scalar) -> tuple[int, float]:
    """A dimension of at least 2 and a sparsity of at least 1 that does not exceed it."""
    dimension, sparsity = whole("d", d, 2), length("k", k)
    if not 1 <= sparsity <= dimension:
        raise AdvlabError(
            f"k between 1 and d = {dimension}", f"{sparsity:g}", "about k of d entries are not zero"
        )
    return dimension, sparsity


def log3(d: Scalar) -> float:
    """log log log d: negative below e^e = 15.15, and nan where log log d is not positive."""
    inner = np.log(np.log(length("d", d))) if d > 1 else -1.0
    return float(np.log(inner)) if inner > 0 else float("nan")
