"""Lasso against scikit-learn, explicit matrices, optimality conditions and planted codes."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from advlab.core.errors import AdvlabError
from advlab.measure.dictionaries import ConvolutionalDictionary, DenseDictionary
from advlab.measure.sparse_reconstruction import (
    ReconstructionPath,
    largest_weight,
    lasso_path,
    sparse_reconstruction,
    zero_mean,
)


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@pytest.mark.parametrize("atoms", [8, 40], ids=["few", "overcomplete"])
def test_dense_codes_are_those_of_scikit_learn(atoms):
    from sklearn.linear_model import Lasso

    W, x = drawn(atoms, 20), drawn(5, 20, seed=1)
    found = sparse_reconstruction(DenseDictionary(W), x, lam=3.0, tolerance=1e-11, steps=20000)
    assert float(found.gap.max()) <= 1e-11
    for row, code in zip(x.numpy(), found.code.numpy(), strict=True):
        # sklearn: |y - Xw|^2 / (2 n) + alpha |w|_1
        peer = Lasso(alpha=3.0 / 40, fit_intercept=False, tol=1e-14, max_iter=10**6)
        peer.fit(W.numpy().T, row)
        np.testing.assert_allclose(code, peer.coef_, atol=1e-5)
        assert set(np.flatnonzero(code)) == set(np.flatnonzero(np.abs(peer.coef_) > 1e-7))
    rest = ((x - found.code @ W) ** 2).sum(1) / (x**2).sum(1)
    torch.testing.assert_close(found.error, rest)
    torch.testing.assert_close(found.share, (found.code != 0).double().mean(1))


CASES = [((5, 5), (1, 1), (0, 0)), ((3, 5), (2, 3), (1, 2)), ((4, 4), (4, 4), (0, 0))]


def matrix_of(W: ConvolutionalDictionary, image: torch.Tensor) -> torch.Tensor:
    """W as a matrix, by placing every filter at every place of a padded image by hand."""
    m, c, kh, kw = W.filters.shape
    (sh, sw), (ph, pw), (height, width) = W.stride, W.padding, image.shape[-2:]
    columns = []
    for k in range(m):
        for i in range((height + 2 * ph - kh) // sh + 1):
            for j in range((width + 2 * pw - kw) // sw + 1):
                big = torch.zeros(c, height + 2 * ph, width + 2 * pw, dtype=image.dtype)
                big[:, i * sh : i * sh + kh, j * sw : j * sw + kw] = W.filters[k]
                columns.append(big[:, ph : ph + height, pw : pw + width].flatten())
    return torch.stack(columns, 1)


@pytest.mark.parametrize(("kernel", "stride", "padding"), CASES)
def test_convolutional_codes_solve_the_lasso_of_the_explicit_matrix(kernel, stride, padding):
    x = drawn(3, 2, 11, 10, seed=2)
    W = ConvolutionalDictionary(drawn(4, 2, *kernel), stride, padding).normalised()
    lam = 0.3 * largest_weight(W, x)
    found = sparse_reconstruction(W, x, lam, tolerance=1e-10, steps=20000)
    assert float(found.gap.max()) <= 1e-10
    M = matrix_of(W, x)
    code, rest = found.code.flatten(1), x.flatten(1) - found.code.flatten(1) @ M.mT
    torch.testing.assert_close(found.image.flatten(1), code @ M.mT)
    # 2 M'(x - M y) is lam * sign(y) where y is not zero, and no larger than lam elsewhere.
    slope = 2 * rest @ M
    used = code != 0
    assert 0 < float(used.double().mean()) < 0.9
    assert float((slope.abs() - lam[:, None]).max()) <= 1e-3
    assert float((slope - lam[:, None] * code.sign())[used].abs().max()) <= 1e-3
    dense = sparse_reconstruction(
        DenseDictionary(M.mT.contiguous()), x.flatten(1), lam, tolerance=1e-10, steps=20000
    )
    torch.testing.assert_close(dense.error, found.error, atol=1e-4, rtol=0)


@settings(max_examples=5, deadline=None)
@given(
    seed=st.integers(0, 1000),
    scale=st.sampled_from([1e-3, 1.0, 50.0]),
    part=st.sampled_from([0.02, 0.3]),
)
def test_the_gap_bounds_how_far_the_objective_is_from_its_least_value(seed, scale, part):
    """After any number of steps, against the value after many; float32 as users have it."""
    W = ConvolutionalDictionary(drawn(6, 1, 3, 3, seed=seed).float(), (2, 2), (1, 1))
    x = scale * drawn(2, 1, 8, 8, seed=seed + 1).float()
    lam = part * largest_weight(W, x)

    def value(code: torch.Tensor, image: torch.Tensor) -> torch.Tensor:
        lasso = (image - x).flatten(1).square().sum(1) + lam * code.flatten(1).abs().sum(1)
        return lasso / x.flatten(1).square().sum(1)

    few, many = (
        sparse_reconstruction(W, x, lam, tolerance=1e-9, steps=steps) for steps in (7, 400)
    )
    above = value(few.code, few.image) - value(many.code, many.image)
    assert (above <= few.gap + 1e-5).all()
    assert (above >= -1e-5).all()
    assert float(many.gap.max()) < 0.02


def test_from_the_largest_weight_on_the_code_is_zero_and_below_it_is_not():
    W, x = DenseDictionary(drawn(9, 6)), drawn(4, 6, seed=3)
    most = largest_weight(W, x)
    zero = sparse_reconstruction(W, x, 1.0001 * most, tolerance=1e-12)
    some = sparse_reconstruction(W, x, 0.99 * most, tolerance=1e-12)
    assert (zero.share == 0).all()
    assert (zero.error == 1).all()
    assert (some.share > 0).all()
    assert (some.error < 1).all()


def test_a_path_finds_planted_codes_and_a_random_dictionary_needs_more_of_them():
    """Images made of 3 % of a dictionary's places: others need more than 5 % for them."""
    filters = drawn(16, 3, 5, 5, seed=4)
    W = ConvolutionalDictionary(filters, (2, 2), (2, 2)).normalised()
    rng = torch.Generator().manual_seed(5)
    code = drawn(4, 16, 8, 8, seed=6) * (torch.rand(4, 16, 8, 8, generator=rng) < 0.03)
    x = W.for_images(torch.zeros(1, 3, 16, 16)).synthesize(code)
    own = lasso_path(W, x)
    other = lasso_path(
        ConvolutionalDictionary(drawn(16, 3, 5, 5, seed=7), (2, 2), (2, 2)).normalised(), x
    )
    planted = (code != 0).double().flatten(1).mean(1)
    assert (own.share[-1] <= planted + 1e-9).all()
    assert float(own.error[-1].max()) < 0.005
    assert (other.error_at(0.02) > 0.5 + own.error_at(0.02)).all()
    assert float(own.gap.max()) <= 1e-3
    assert (own.error.diff(dim=0) <= 1e-3).all()


def test_errors_between_the_points_of_a_path():
    path = ReconstructionPath((0.5, 0.2), torch.tensor([[0.6, 1.0], [0.2, 0.4]]),
                     torch.tensor([[0.1, 0.0], [0.3, 0.2]]), torch.zeros(2, 2))  # fmt: skip
    torch.testing.assert_close(path.error_at(0.05), torch.tensor([0.8, 0.85]))
    torch.testing.assert_close(path.error_at(0.2), torch.tensor([0.4, 0.4]))
    assert path.error_at(0.25).isnan().tolist() == [False, True]
    with pytest.raises(AdvlabError, match="share"):
        path.error_at(0)


def test_layers_images_and_weights_that_make_no_sense_are_refused():
    layer = nn.Conv2d(3, 8, 11, stride=4, padding=5)
    W = ConvolutionalDictionary.of(layer)
    assert (W.stride, W.padding) == ((4, 4), (5, 5))
    x = zero_mean(torch.rand(2, 3, 32, 32))
    assert float(x.mean((2, 3)).abs().max()) < 1e-6
    assert W.for_images(x).synthesize(W.analyze(x)).shape == x.shape
    with pytest.raises(AdvlabError, match="groups"):
        ConvolutionalDictionary.of(nn.Conv2d(4, 8, 3, groups=2))
    with pytest.raises(AdvlabError, match="positive"):
        sparse_reconstruction(W, x, lam=0.0)
    with pytest.raises(AdvlabError, match="falling"):
        lasso_path(W, x, (0.1, 0.2))
    with pytest.raises(AdvlabError, match="orthogonal"):
        lasso_path(W, 0 * x)
