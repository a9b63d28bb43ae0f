"""The windows of a pooling layer, written out."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor


def windows(
    x: Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
) -> Tensor:
    """(n, c, h, w) to (n, c, rows, columns, window), padding -inf."""
    (ph, pw), (kh, kw), (sh, sw), (dh, dw) = padding, kernel, stride, dilation
    padded = F.pad(x, (pw, pw, ph, ph), value=-torch.inf)
    rows = (padded.shape[2] - dh * (kh - 1) - 1) // sh + 1
    columns = (padded.shape[3] - dw * (kw - 1) - 1) // sw + 1
    parts = [
        padded[:, :, i * dh : i * dh + sh * (rows - 1) + 1 : sh,
               j * dw : j * dw + sw * (columns - 1) + 1 : sw]
        for i in range(kh) for j in range(kw)
    ]  # fmt: skip
    return torch.stack(parts, -1)
