"""Same case, same bits: nothing an experiment computes depends on what ran before it.

A fifth of the experiments takes its turn each day; `make nightly` has all of them.
"""

import numpy as np
import polars as pl
import pytest
import torch
from turns import in_turn

from advlab import lab
from advlab.papers import EXPERIMENTS


def rows(computed: pl.DataFrame | lab.Computed) -> pl.DataFrame:
    return computed.table if isinstance(computed, lab.Computed) else computed


@pytest.mark.parametrize("name", in_turn(EXPERIMENTS))
def test_computing_a_case_again_gives_the_same_bits(name):
    experiment = lab.load(name)
    cases = experiment.cases("smoke", 2)
    some = [cases[i] for i in sorted({0, len(cases) // 2, len(cases) - 1})]
    first = [rows(experiment.compute(case)) for case in some]
    # Memory that is used without being written would now hold other numbers.
    dirt = [torch.full((100_000,), float("nan")) for _ in range(50)]
    dirt += [torch.full((50,), -1.0) for _ in range(1000)]
    del dirt
    torch.manual_seed(1)
    np.random.seed(1)
    again = [rows(experiment.compute(case)) for case in reversed(some)][::-1]
    for one, other in zip(first, again, strict=True):
        assert one.equals(other)
