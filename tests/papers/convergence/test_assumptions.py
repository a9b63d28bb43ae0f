"""What the theorems ask for: conditions that hold where they should, and fail where they must."""

import pytest

from advlab import lab
from advlab.core.errors import AdvlabError
from advlab.papers.convergence import theory
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


def test_a_smoke_run_carries_its_conditions(tmp_path):
    result = lab.run("convergence/lazy_regime", scale="smoke", jobs=1, out=tmp_path)
    reached = {one.name: one.holds for one in result.verdicts[0].scope.assumptions}
    assert reached == {"unit sphere": True, "caps": True}
