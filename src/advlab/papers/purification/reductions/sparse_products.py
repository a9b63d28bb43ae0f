"""Matrix products that visit only the entries that are not zero, where these are few.

Two factors of training are mostly zeros: the inputs in the basis of the dictionary (about k of d
entries are not), and the gates of networks without noise (a few per cent of the neurons are open).
"""

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

FEW = 0.2
"""Up to this share of entries that are not zero the sparse way is the faster one."""


def sparse_product(left: Tensor, right: Float[Tensor, "m d"]) -> Float[Tensor, "n d"]:
    """left @ right up to rounding, by the entries of `left` that are not zero if they are few.

    Each row is then the sum of a few weighted rows of `right`. There is no gradient.

    Args:
        left: (n, m), the factor that may be sparse; gates of 0 and 1 may be a mask.
        right: the other factor.

    Example:
        gradient = sparse_product(gates, weight)   # sum_i G_i w_i
    """
    mask = left if left.dtype == torch.bool else left != 0
    # NumPy finds the entries several times faster than `nonzero` does.
    filled = mask.contiguous().cpu().numpy()
    if np.count_nonzero(filled) > FEW * filled.size:
        return left.to(right) @ right
    where = torch.from_numpy(np.flatnonzero(filled)).to(right.device)
    row = where // left.shape[1]
    column = where - row * left.shape[1]
    first = torch.searchsorted(row, torch.arange(len(left), device=row.device))
    values = None if mask is left else left[row, column]
    return F.embedding_bag(column, right.contiguous(), first, mode="sum", per_sample_weights=values)
