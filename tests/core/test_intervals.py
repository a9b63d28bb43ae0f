"""Intervals against their definitions."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from advlab.core.intervals import clopper_pearson, estimate, numbers


@pytest.mark.parametrize(("hits", "n"), [(0, 20), (7, 20), (20, 20), (1, 1)])
def test_clopper_pearson_inverts_the_binomial_tails(hits, n):
    low, high = clopper_pearson(hits, n)
    if hits > 0:
        assert stats.binom.sf(hits - 1, n, low) == pytest.approx(0.025)
    if hits < n:
        assert stats.binom.cdf(hits, n, high) == pytest.approx(0.025)
    assert (low == 0) == (hits == 0)
    assert (high == 1) == (hits == n)


def test_a_share_is_clopper_and_pearsons():
    found = estimate([True, False, True, True], "share")
    assert (found.value, found.low, found.high) == (0.75, *clopper_pearson(3, 4))


def test_columns_lists_and_arrays_are_the_same_sample():
    values = [0.5, None, 2.0]
    expected = np.array([0.5, np.nan, 2.0])
    for sample in (pl.Series(values), values, expected):
        np.testing.assert_array_equal(numbers(sample), expected)
    assert numbers(pl.Series([True, False])).tolist() == [1.0, 0.0]
    assert numbers(pl.Series([1, 2, 3])).dtype == float
