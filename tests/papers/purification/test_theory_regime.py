"""The calculator against the numbers of the paper, by hand, and against itself."""

import numpy as np
import pytest

from advlab.core.errors import AdvlabError
from advlab.papers.purification import theory


def test_lambda_is_the_paper_s_and_is_clamped_below_sixteen():
    assert theory.regularisation(100).value == pytest.approx(0.00423, abs=5e-6)
    assert theory.regularisation(256).value == pytest.approx(0.0021, abs=5e-5)
    for d in (2, 10, 15):
        found = theory.regularisation(d)
        assert found.value == 0
        assert found.clamped
        assert "clamped" in str(found)
        assert not found.formula > 0
    assert not theory.regularisation(16).clamped
    assert "clamped" in theory.regime(12, 3).table()


def test_the_window_is_where_the_two_radii_cross():
    """At c0 -> 0: breaks < robust from k = d^(1/3) on, and k^2.5 < d/log d up to d^0.4."""
    d = 1e60
    for power, gap, trained in ((0.32, False, True), (0.35, True, True), (0.45, True, False)):
        found = theory.regime(d, d**power, gamma=1e-4)
        by_name = {one.name: one for one in found.conditions}
        assert by_name["break < robust radius, l2"].satisfied is gap
        assert by_name["k^2.5 < d^(1-2 c0)/log d"].satisfied is trained
        assert (found.radius("breaks", "l2") < found.radius("robust", "l2")) is gap
    assert np.log(theory.regime(d, d**0.36).radius("robust", "l2")) / np.log(d) == pytest.approx(
        -0.18, abs=1e-4
    )


def test_radii_and_times_by_hand():
    found = theory.regime(10_000, 100, c0=0.1, gamma=0.05, eta=0.5, sigma0=1e-3, c=0.01)
    Xi2 = 10_000 ** (2 * 0.05 * 0.1)
    expected = {
        "robust l2": 1 / np.sqrt(100 * 10_000**0.1),
        "breaks l2": Xi2**10 * 100 / 10_000,
        "robust linf": 1 / (100**1.75 * 10_000**0.1),
        "breaks linf": Xi2**10 / 10_000,
        "robust linf, main text": 100**-1.95,
        "breaks linf, main text": 100**-1.95,
        "breaks l2, main text (k = d^0.36)": 100**-0.6,
    }
    for name, value in expected.items():
        assert found.radii[name] == pytest.approx(value), name
    log = np.log(10_000)
    assert found.times["T_a"] == pytest.approx(10 * log**2.5 / 0.5)
    assert found.times["T_b"] == pytest.approx(1e5 / 100 / 0.5)
    assert found.times["T_g"] == pytest.approx(100**2.01 / 0.5)
    assert found.times["T_e"] == pytest.approx(1e4 / (Xi2 * log) / 0.5)
    assert found.constants["c1"] == pytest.approx(2.19)
    assert found.constants["c2"] == pytest.approx(0.005)
    assert found.constants["Xi1"] ** 8 == pytest.approx(found.constants["Xi2"])


def test_theory_is_silent_at_lab_sizes_and_says_why():
    preset = theory.regime(256, 30)
    said = preset.says(0.22)
    assert said.silent
    assert "k <= d^0.499" in str(said)
    assert {"k <= d^0.3999 (l2 window)", "k^2.5 < d^(1-2 c0)/log d"} <= {
        one.name for one in preset.violated
    }
    assert "VIOLATED k <= d^0.499" in str(preset)


def test_statements_on_both_sides_and_between():
    """Far inside the window all conditions hold, and only the radius decides."""
    d = 1e40
    gap = theory.regime(d, d**0.36)
    robust, breaks = gap.radius("robust", "l2"), gap.radius("breaks", "l2")
    assert breaks < robust
    assert not gap.says(np.sqrt(robust * breaks)).silent
    assert str(gap.says(np.sqrt(robust * breaks))) == (
        "below the robust radius and above the break radius"
    )
    assert str(gap.says(breaks / 2)) == "below the robust radius"
    assert str(gap.says(robust * 2)) == "above the break radius"
    none = theory.regime(d, d**0.3)
    middle = np.sqrt(none.radius("robust", "l2") * none.radius("breaks", "l2"))
    assert str(none.says(middle)) == "silent: between the robust and the break radius"
    noisy = theory.regime(d, d**0.36, sx=2.0)
    assert noisy.says(breaks * 2).silent


def test_refusals():
    with pytest.raises(AdvlabError, match="k between 1 and d"):
        theory.regime(100, 101)
    with pytest.raises(AdvlabError, match="gamma"):
        theory.regime(100, 5, gamma=0.1)
    with pytest.raises(AdvlabError, match="norm"):
        theory.regime(100, 5).says(0.1, "l1")  # type: ignore[arg-type]


def test_schedules_are_their_recursions():
    d, k, eta, C = 256, 30, 3.0, 0.15
    b, steps = [0.035], 150
    for _ in range(steps):
        b.append(min(b[-1] + eta * C / d, k**-0.5001))
    found = theory.bias(np.arange(steps + 1), d, k, eta=eta, start=0.035, C=C)
    np.testing.assert_allclose(found, b, rtol=1e-12)
    assert found[-1] == theory.bias_end(k)
    assert found[1] > found[0]
    assert theory.bias_start(d, 0.01) == pytest.approx(0.01 * np.sqrt(2 * np.log(256)))
    assert theory.weight_scale(theory.bias_start(d, 0.01, 2.1), d, 2.1) == pytest.approx(0.01)
    noise = theory.noise_scale([0, 10, 11], [1.0, 2.0, 2.0], d, T_a=10)
    cube = np.log(np.log(np.log(d))) ** 3
    np.testing.assert_allclose(noise, [cube / np.log(d) ** 0.5, 2 * cube / np.log(d) ** 0.5,
                                       2 * cube / np.log(d)])  # fmt: skip
    assert theory.noise_scale(0, 1.0, 10, T_a=5) == 0


def test_conditions_on_a_run_name_what_the_finite_presets_break():
    run = {"width": 1280, "penalty": 2e-5, "sigma0": 0.01, "noise": 0.0, "tau": 0.22}
    found = theory.run_conditions(256, 30, **run, batch_share=0.01, kept=0.42)
    broken = {one.name.split(" ")[0] for one in found if not one.satisfied}
    assert {"sigma_0", "lambda", "noise", "tau", "share", "k"} <= broken
    assert next(one for one in found if one.name == "m > d").satisfied
    lam = theory.regularisation(256).value
    inside = {"width": 300, "penalty": 3 * lam, "sigma0": 0.001, "noise": 0.1, "tau": 0.1}
    kept = theory.run_conditions(256, 8, **inside)
    assert {one.name for one in kept if not one.satisfied} <= {
        *(one.name for one in theory.regime(256, 8).violated), "tau at the break radius"
    }  # fmt: skip
    with pytest.raises(AdvlabError, match="norm"):
        theory.run_conditions(256, 8, **inside, norm="l7")
