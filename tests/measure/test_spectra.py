"""Spectra against an explicit Fourier sum, autocorrelation against numpy's correlation."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from advlab.core.errors import AdvlabError
from advlab.measure.spectra import autocorrelation, energy_spectrum, high_frequency_share


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def fourier_by_hand(image: np.ndarray) -> np.ndarray:
    """|sum_{r,s} x_rs exp(-2 pi i (u r/h + v s/w))|^2 of one channel."""
    height, width = image.shape
    rows, columns = np.arange(height), np.arange(width)
    left = np.exp(-2j * np.pi * np.outer(rows, rows) / height)
    right = np.exp(-2j * np.pi * np.outer(columns, columns) / width)
    return np.abs(left @ image @ right) ** 2


@settings(max_examples=20, deadline=None)
@given(
    height=st.integers(2, 9), width=st.integers(2, 9), channels=st.integers(1, 3),
    cutoff=st.sampled_from([0.0, 0.1, 0.25, 0.5]),
)  # fmt: skip
def test_the_share_is_that_of_an_explicit_fourier_sum(height, width, channels, cutoff):
    x = drawn(3, channels, height, width)
    shares = high_frequency_share(x, cutoff).numpy()
    for one, spectrum, share in zip(x.numpy(), energy_spectrum(x).numpy(), shares, strict=True):
        energy = sum(fourier_by_hand(channel - channel.mean()) for channel in one)
        np.testing.assert_allclose(spectrum, energy / energy.sum(), atol=1e-12)
        u = np.minimum(np.arange(height), height - np.arange(height)) / height
        v = np.minimum(np.arange(width), width - np.arange(width)) / width
        high = np.sqrt(u[:, None] ** 2 + v**2) > cutoff
        # Frequencies on the cutoff itself may fall on either side by rounding.
        edge = np.isclose(np.sqrt(u[:, None] ** 2 + v**2), cutoff, atol=1e-6)
        low, most = energy[high & ~edge].sum(), energy[high | edge].sum()
        assert low / energy.sum() - 1e-9 <= share <= most / energy.sum() + 1e-9


def test_waves_are_where_their_period_says():
    place = torch.arange(16.0)
    waves = torch.stack(
        [(2 * torch.pi * f * place / 16).cos().expand(16, 16) for f in (1, 3, 5, 8)]
    )
    assert high_frequency_share(waves[:, None]).round(decimals=4).tolist() == [0, 0, 1, 1]
    # cos(w r) cos(w (r + 1)) averages to cos(w)/2 across, 1 along the wave: the mean of both.
    expected = torch.tensor([(np.cos(2 * np.pi * f / 16) + 1) / 2 for f in (1, 3, 5, 8)])
    torch.testing.assert_close(autocorrelation(waves), expected.float(), atol=0.07, rtol=0)


@pytest.mark.parametrize("lag", [1, 3])
def test_autocorrelation_is_the_correlation_of_pairs_of_pixels(lag):
    x = drawn(4, 2, 7, 9).cumsum(-1)
    for one, found in zip(x.numpy(), autocorrelation(x, lag).numpy(), strict=True):
        one = one - one.mean((1, 2), keepdims=True)
        a = np.concatenate([one[:, :, lag:].ravel(), one[:, lag:].ravel()])
        b = np.concatenate([one[:, :, :-lag].ravel(), one[:, :-lag].ravel()])
        assert found == pytest.approx(a @ b / np.sqrt(a @ a * (b @ b)))


def test_noise_has_none_and_smoothing_raises_it():
    noise = drawn(50, 3, 32, 32, seed=1)
    smooth = torch.nn.functional.avg_pool2d(noise, 3, 1, 1)
    assert float(autocorrelation(noise).mean()) == pytest.approx(0, abs=0.01)
    # Of a 3x3 mean of noise the overlap at lag 1 is two thirds.
    assert float(autocorrelation(smooth).mean()) == pytest.approx(2 / 3, abs=0.03)
    assert float(high_frequency_share(smooth).mean()) < 0.4
    # All frequencies of noise are alike: the share is that of the square outside of the disc.
    assert float(high_frequency_share(noise).mean()) == pytest.approx(1 - np.pi / 16, abs=0.02)


def test_images_without_variation_have_no_answer():
    flat = torch.ones(2, 1, 4, 4)
    assert high_frequency_share(flat).isnan().all()
    assert autocorrelation(flat).isnan().all()
    with pytest.raises(AdvlabError, match="lag"):
        autocorrelation(flat, 4)
    with pytest.raises(AdvlabError, match="images of shape"):
        energy_spectrum(torch.ones(0, 1, 4, 4))
