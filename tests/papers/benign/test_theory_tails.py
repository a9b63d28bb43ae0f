"""The small probability statements, against samples and exact tails."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mixture_parts import LAWS, draws
from scipy.stats import binom

from advlab.papers.benign import theory


@pytest.mark.parametrize(
    ("c", "law"),
    [
        (np.sqrt(8 / 3), "normal"),
        (1 / np.sqrt(np.log(2)), "coin"),
    ],
)
def test_anti_concentration(c, law):
    rng = np.random.default_rng(7)
    x = rng.normal(size=200_000) if law == "normal" else rng.choice([-1.0, 1.0], size=200_000)
    threshold, probability = theory.anti_concentration(c)
    assert (threshold, probability) == pytest.approx((0.1 / c**2, 0.04 / 220 ** (2 / 3) / c**4))
    assert (x >= threshold).mean() > probability


@pytest.mark.parametrize("delta", [0.4, 0.1, 0.01])
def test_projections_and_norms_stay_in_their_bounds(delta):
    for name, lam in (("gaussian", 1.0), ("quartic", 0.7)):
        noise, v = draws(LAWS[name], (20_000, 4), seed=8), np.array([1.0, -2.0, 0.5, 0.0])
        bound = theory.projection_bound(np.linalg.norm(v), delta, lam)
        assert (np.abs(noise @ v) > bound).mean() <= delta
    # psi_2 norm 1 means variance 3/8.
    noise = np.sqrt(3 / 8) * np.random.default_rng(9).normal(size=(20_000, 4))
    assert ((noise**2).sum(1) > theory.noise_norm_bound(4, delta)).mean() <= delta


@given(n=st.integers(1, 500), beta=st.floats(0, 0.499), excess=st.floats(0.001, 0.4))
@settings(deadline=None)
def test_hoeffding_covers_the_binomial_tail(n, beta, excess):
    exact = binom(n, beta).sf(np.floor(n * (beta + excess) + 1e-9))
    assert exact <= theory.flip_tail(n, excess) * (1 + 1e-9)
    share = theory.flip_share_bound(n, beta, 0.05)
    assert theory.flip_tail(n, share - beta) == pytest.approx(0.05)
