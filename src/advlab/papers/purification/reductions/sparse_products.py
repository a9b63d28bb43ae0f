"""Matrix products that visit only the entries that are not zero, where these are few.

Two factors of training are mostly zeros: the inputs in the basis of the dictionary (about k of d
entries are not), and the gates of networks without noise (a few per cent of the neurons are open).
Attacked inputs are dense, and have a product of their own (`Rows`).
"""

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

FEW = 0.2
"""Up to this share of entries that are not zero the sparse way is the faster one."""


class Rows:
    """x -> x @ weight.mT for many x, by oneDNN where it can: processors of AMD take half the time
    of the product of BLAS (MKL) that `@` is, those of Intel about the same.

    Args:
        weight: (m, d). There is no gradient.

    Example:
        from advlab.papers.purification.reductions.sparse_products import Rows
        preactivations = Rows(weight)(x)
    """

    def __init__(self, weight: Float[Tensor, "m d"]):
        fits = weight.device.type == "cpu" and weight.dtype == torch.float32
        self.onednn = fits and torch.backends.mkldnn.is_available() and weight.numel() > 0
        self.weight = weight.to_mkldnn() if self.onednn else weight

    def __call__(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n m"]:
        if not self.onednn:
            return x @ self.weight.mT
        return F.linear(x.to_mkldnn(), self.weight).to_dense()


def sparse_product(left: Tensor, right: Float[Tensor, "m d"]) -> Float[Tensor, "n d"]:
    """left @ right up to rounding, by the entries of `left` that are not zero if they are few.

    Each row is then the sum of a few weighted rows of `right`. There is no gradient.

    Args:
        left: (n, m), the factor that may be sparse; gates of 0 and 1 may be a mask.
        right: the other factor.

    Example:
        from advlab.papers.purification.reductions import sparse_product
        gradient = sparse_product(gates, weight)   # sum_i G_i w_i
    """
    where = _entries(left)
    if where is None:
        return left.to(right) @ right
    _, column, first = _places(where, *left.shape)
    return _sums(right, column, first, _values(left, where))


def transposed_product(left: Tensor, right: Float[Tensor, "n d"]) -> Float[Tensor, "m d"]:
    """left.mT @ right up to rounding, by the entries of `left` that are not zero if they are few.

    Args:
        left: (n, m), the factor that may be sparse; gates of 0 and 1 may be a mask.
        right: the other factor.

    Example:
        from advlab.papers.purification.reductions.sparse_products import transposed_product
        gradient = transposed_product(gates, slope[:, None] * x)   # of the mean loss in the weights
    """
    where = _entries(left)
    if where is None:
        return left.mT.to(right) @ right
    row, column, _ = _places(where, *left.shape)
    width = left.shape[1]
    # Keys of 16 bits are sorted by counting, which is faster than finding the entries anew.
    order = np.argsort(column.astype(np.min_scalar_type(width)), kind="stable")
    count = np.bincount(column, minlength=width)
    return _sums(right, row[order], np.cumsum(count) - count, _values(left, where[order]))


def _entries(left: Tensor) -> np.ndarray | None:
    """Where entries are not zero, row by row, if they are few. NumPy finds them several times
    faster than `nonzero` does, and `bool` than a comparison with zero."""
    filled = left.bool().contiguous().cpu().numpy()
    return None if np.count_nonzero(filled) > FEW * filled.size else np.flatnonzero(filled)


def _places(where: np.ndarray, rows: int, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The row and the column of each entry, and where each row begins among them."""
    first = np.searchsorted(where, width * np.arange(rows + 1))
    row = np.repeat(np.arange(rows), first[1:] - first[:-1])
    return row, where - width * row, first[:-1]


def _values(left: Tensor, where: np.ndarray) -> Tensor | None:
    """The entries themselves; None if they are ones."""
    if left.dtype == torch.bool:
        return None
    return left.flatten().index_select(0, torch.from_numpy(where).to(left.device))


def _sums(right: Tensor, index: np.ndarray, first: np.ndarray, values: Tensor | None) -> Tensor:
    """Sums of weighted rows of `right`, from one place of `first` to the next."""
    index_, first_ = (torch.from_numpy(part).to(right.device) for part in (index, first))
    return F.embedding_bag(
        index_, right.contiguous(), first_, mode="sum", per_sample_weights=values
    )
