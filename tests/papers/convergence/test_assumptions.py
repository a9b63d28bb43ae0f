"""What the theorems ask for: conditions that hold where they should, and fail where they must."""

import math

import polars as pl
import pytest

from advlab import lab
from advlab.core.errors import AdvlabError
from advlab.papers.convergence import theory
from advlab.papers.convergence.experiments import gradient_drift
from advlab.papers.convergence.theory.descent import Descent


def test_caps_touch_at_half_the_angle():
    assert theory.compatible_caps(0.6, 0.15).holds
    assert theory.compatible_caps(0.6, 0.3034).holds
    assert theory.compatible_caps(0.6, 0.3036).holds is False
    with pytest.raises(AdvlabError, match="separation"):
        theory.compatible_caps(0.0, 0.1)


def test_inputs_off_the_sphere_are_seen():
    assert theory.on_unit_sphere([1.0, 1 + 1e-7]).holds
    assert theory.on_unit_sphere([1.0, 0.9]).holds is False


def test_theorem_5_1_says_something_for_wide_networks_and_small_rates_only():
    wide = theory.two_layer_theorem(Descent(16384, 0.05, 2**0.5, 2**0.5), 1811, 3.0, 0.01, 0.4)
    assert [one.holds for one in wide] == [True, True, True]
    fast = theory.two_layer_theorem(Descent(1024, 0.5, 2**0.5, 2**0.5), 1500, 3.0, 0.01, 0.4)
    assert fast[0].holds is False


def test_whether_theorem_4_1_applies_is_unknown_as_its_constants_are():
    found = theory.deep_theorem(512, 2, 5, 1.0, 3e-4, 0.1)
    assert [one.holds for one in found] == [None, None]
    assert "6.6e+11" in found[0].condition


def test_of_several_runs_the_farthest_from_the_orders_and_the_nearest_are_told():
    runs = [(64, 1, 1.0, 1e-3), (512, 1, 1.0, 1e-3), (512, 4, 0.5, 1e-3)]
    found = theory.deep_extremes(runs, 3, 0.1)
    names = [one.name for one in found]
    assert names[0] == "deep width, farthest run (H = 4, R = 0.5, m = 512)"
    assert names[2] == "deep width, nearest run (H = 1, R = 1, m = 512)"
    # 0.5^9 4^16 / 0.1^7
    assert "8.4e+13" in found[0].condition
    assert [one.reached for one in found] == [512, 1e-3, 512, 1e-3]


def test_lemma_a_5_s_ball_is_told_at_the_run_that_is_farthest_from_it():
    rows = [
        {"kind": "exact", "width": 2**20, "depth": 1, "R": 0.5, "delta": None},
        {"kind": "exact", "width": 2**8, "depth": 1, "R": 4.0, "delta": None},
        {"kind": "search", "width": 64, "depth": 4, "R": 1.0, "delta": None},
        {"kind": "inputs", "width": 2048, "depth": 4, "R": None, "delta": 0.16},
    ]
    found = gradient_drift.assumptions(pl.DataFrame(rows, infer_schema_length=None))
    assert [one.reached for one in found] == [4 / 16, 1 / 8, 0.16]
    assert "farthest at H = 1, m = 256, R = 4" in found[0].condition
    assert f"{4**-6 / math.log(2048) ** 3:.2g}" in found[2].condition


def test_a_smoke_run_carries_its_conditions(tmp_path):
    result = lab.run("convergence/lazy_regime", scale="smoke", jobs=1, out=tmp_path)
    reached = {one.name: one.holds for one in result.verdicts[0].scope.assumptions}
    assert reached == {"unit sphere": True, "caps": True}
