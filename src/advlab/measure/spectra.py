"""Frequency content and autocorrelation of images, filters and perturbations.

Ours: numbers for what Figures 1, 6 and 7 of the purification paper show to the eye, that features
and perturbations of robust networks are smooth and those of clean networks are like noise.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from ..core.checks import scalar
from ..core.errors import AdvlabError

Images = Float[Tensor, "n *channels height width"]


@torch.no_grad()
def energy_spectrum(x: Images) -> Float[Tensor, "n height width"]:
    """|DFT|^2 of each image, over its sum: the share of energy at each frequency.

    The mean of each channel is taken away first, and energies are summed over channels. Entry
    (u, v) is at the frequencies `torch.fft.fftfreq(height)[u]` and `fftfreq(width)[v]`. An image
    without variation has no energy: NaN.

    Args:
        x: images, filters or perturbations.

    Example:
        from advlab.measure.spectra import energy_spectrum
        energy_spectrum(layer.weight)[0]
    """
    energy = torch.fft.fft2(_channels(x)).abs().square().sum(1)
    return energy / energy.sum((-2, -1), keepdim=True)


@torch.no_grad()
def high_frequency_share(x: Images, cutoff: float = 0.25) -> Float[Tensor, " n"]:
    """The share of each image's energy at frequencies above a cutoff.

    Args:
        x: images, filters or perturbations.
        cutoff: in cycles per pixel, the length of the frequency vector; 0.25 is a period of four
            pixels, the largest is 0.71.

    Example:
        from advlab.measure.spectra import high_frequency_share
        high_frequency_share(attacked.x - x).mean()
    """
    scalar("cutoff", cutoff)
    spectrum = energy_spectrum(x)
    rows, columns = (torch.fft.fftfreq(side, device=x.device) for side in spectrum.shape[1:])
    high = torch.hypot(rows[:, None].expand(len(rows), len(columns)), columns.expand(len(rows), -1))
    return (spectrum * (high > cutoff)).sum((-2, -1))


@torch.no_grad()
def autocorrelation(x: Images, lag: int = 1) -> Float[Tensor, " n"]:
    """The correlation of pixels with those `lag` to the right and below, in [-1, 1].

    With each channel's mean taken away: sum of x_p x_q over such pairs of pixels, over the root of
    the product of sum x_p^2 and sum x_q^2 over the same pairs. White noise has about 0, natural
    images about 0.9. An image without variation has none: NaN.

    Args:
        x: images, filters or perturbations.
        lag: in pixels.

    Example:
        from advlab.measure.spectra import autocorrelation
        autocorrelation(attacked.x - x).mean()
    """
    if not 0 < lag < min(x.shape[-2:]):
        raise AdvlabError(f"a lag of 1 .. {min(x.shape[-2:]) - 1} pixels", lag)
    images = _channels(x)
    pairs = [(images[..., lag:], images[..., :-lag]), (images[..., lag:, :], images[..., :-lag, :])]
    inner, first, second = (
        sum((a * b).flatten(1).sum(1) for a, b in one)
        for one in (pairs, [(a, a) for a, _ in pairs], [(b, b) for _, b in pairs])
    )
    return inner / torch.sqrt(torch.as_tensor(first * second))


def _channels(x: Tensor) -> Float[Tensor, "n channels height width"]:
    """Images with one axis of channels, each of mean zero."""
    if x.ndim < 3 or 0 in x.shape:
        raise AdvlabError("images of shape (n, channels, height, width)", tuple(x.shape))
    x = x.reshape(len(x), -1, *x.shape[-2:])
    x = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    return x - x.mean((-2, -1), keepdim=True)
