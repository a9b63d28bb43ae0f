"""The l2 norm of a convolution from above."""

from collections.abc import Sequence

import torch
from torch import Tensor

MOST = 2**31
"""Multiplications that a norm is worth; the general bound serves beyond."""


def convolution_norm(
    weight: Tensor, size: Sequence[int], dilation: Sequence[int], groups: int
) -> float | None:
    """At least the spectral norm of a convolution of images of this size with zero padding.

    Zero padding puts the image on a torus that is a kernel's reach larger, convolves there, and
    drops outputs (at the rim, and by the stride): neither the first nor the last step makes a norm
    larger. On the torus the Fourier transform turns the convolution into one small matrix per
    frequency, and the norm is the largest of theirs.
    """
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, weight.shape[2:], strict=True)]
    torus = [n + r - 1 for n, r in zip(size, reach, strict=True)]
    out, into = len(weight) // groups, weight.shape[1]
    frequencies = torch.Size(torus).numel()
    if groups * frequencies * out * into * min(out, into) > MOST:
        return None
    kernel = torch.zeros(*weight.shape[:2], *torus, dtype=torch.float64)
    kernel[(..., *(slice(0, r, d) for r, d in zip(reach, dilation, strict=True)))] = (
        weight.cpu().double()
    )
    transfer = torch.fft.rfftn(kernel, dim=list(range(2, kernel.ndim))).flatten(2)
    return largest_singular_value(transfer.permute(2, 0, 1).unflatten(1, (groups, out)))


def largest_singular_value(matrices: Tensor) -> float:
    """Of all of them, by the smaller Gram matrix in float64, whose rounding is far below 1e-9."""
    wide = matrices.cpu().to(torch.complex128 if matrices.is_complex() else torch.float64)
    gram = wide @ wide.mH if wide.shape[-2] <= wide.shape[-1] else wide.mH @ wide
    return float(torch.linalg.eigvalsh(gram)[..., -1].max().clamp(min=0).sqrt()) * (1 + 1e-9)
