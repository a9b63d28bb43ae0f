"""The calculator against the numbers of the paper, by hand, and against itself."""

import numpy as np
import polars as pl
import pytest

from advlab.core.errors import AdvlabError
from advlab.core.randomness import generator
from advlab.papers.purification import theory
from advlab.papers.purification.experiments import noise_and_dictionaries
from advlab.papers.purification.experiments._parts.conditions import noise_size


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


RUN = {"width": 1280, "penalty": 2e-5, "sigma0": 0.01, "noise": 0.0, "tau": 0.22, "rate": 3.0,
       "clean_steps": 1000, "adversarial_steps": 600}  # fmt: skip


def reached(*args, **changes):
    found = theory.run_conditions(*args, **{**RUN, **changes})
    return {one.name: one for one in found}


def test_conditions_on_a_run_name_what_the_finite_presets_break():
    found = reached(256, 30, batch_share=0.01, kept=0.42)
    broken = {name.split(" ")[0] for name, one in found.items() if not one.satisfied}
    assert {"sigma_0", "lambda", "noise", "tau", "share", "k", "T_f"} <= broken
    assert found["m > d"].satisfied
    d, k, rate = 256, 8, 1.0
    lam = 3 * theory.regularisation(d).value
    inside = {"width": 300, "penalty": lam, "sigma0": 0.001, "noise": 0.1, "tau": 0.1, "rate": rate,
              "clean_steps": 2 / lam, "adversarial_steps": 300 * k**2 * np.log(d) / d}  # fmt: skip
    c0 = np.log(300) / np.log(d) - 1
    kept = reached(d, k, **inside)
    assert {name for name, one in kept.items() if not one.satisfied} <= {
        *(one.name for one in theory.regime(d, k, c0=c0).violated), "tau at the break radius"
    }  # fmt: skip
    with pytest.raises(AdvlabError, match="norm"):
        reached(d, k, **inside, norm="l7")


def test_c0_of_a_run_is_that_of_its_width():
    """m = d^(1 + c0): at a width of 5 d the robust radius is 1/sqrt(5 k), not 1/sqrt(k)."""
    for width in (300, 1280):
        asked = reached(256, 30, width=width)["tau at the robust radius"]
        assert asked.limit == pytest.approx((30 * width / 256) ** -0.5)
    # With a width of d or below there is no c0, and that of Corollary F.3 stands in.
    asked = reached(256, 30, width=256)
    assert asked["tau at the robust radius"].limit == pytest.approx(30**-0.5, rel=1e-3)
    assert not asked["m > d"].satisfied


def test_the_noise_of_a_run_is_held_against_the_bound_of_theorem_f1():
    name = "sx <= d^(2(1-2 c0))/k^5.5"
    for sx in (0.0, 1e-9, 0.5):
        one = reached(128, 23, width=129, sx=sx)[name]
        c0 = np.log(129) / np.log(128) - 1
        assert one.value == sx
        assert one.limit == pytest.approx(128 ** (2 * (1 - 2 * c0)) / 23**5.5)
        assert one.satisfied == (sx < 1e-4)
    assert name not in reached(128, 23, sx=0.5, norm="linf")


def test_the_clocks_of_theorems_e1_and_f1():
    d, k, m, rate, lam = 256, 30, 1280, 3.0, 2e-5
    found = reached(d, k)
    assert found["T_f >= 1/(eta lambda)"].limit == pytest.approx(1 / (rate * lam))
    assert not found["T_f >= 1/(eta lambda)"].satisfied
    assert reached(d, k, clean_steps=17_000)["T_f >= 1/(eta lambda)"].satisfied
    assert reached(d, k, penalty=0.0)["T_f >= 1/(eta lambda)"].limit == np.inf
    assert found["T_f >= d/eta"].limit == pytest.approx(d / rate)
    T_g = k**2 * m * np.log(d) / (rate * d)
    near = "T_g near k^2 m log d/(eta d), in powers of ten"
    for factor, holds in ((1.0, True), (9.0, True), (1 / 9, True), (11.0, False), (1 / 11, False)):
        assert reached(d, k, adversarial_steps=factor * T_g)[near].satisfied == holds


def test_scopes_show_the_setting_that_is_furthest_from_each_condition():
    rows = pl.DataFrame({"d": [128]})
    facts = {one.name: one for one in noise_and_dictionaries.assumptions(rows)}
    noise = facts["sx <= d^(2(1-2 c0))/k^5.5"]
    assert (noise.reached, noise.holds) == (1.5, False)
    assert noise.condition.endswith("at sx = 1.5")
    assert facts["tau at the robust radius"].condition.endswith("at plain")
    # Spikes are noise too: k^-0.501 each, three of them on average.
    spikes = noise_and_dictionaries.Case(setting="spikes").preset.data
    assert noise_size(spikes) == pytest.approx(3**0.5 * spikes.k**-0.501)
    drawn = spikes.model_copy(update={"margin": 0.0}).sample(generator("spikes"), 4000)
    left = drawn.x @ drawn.M - drawn.z
    assert float((left**2).sum(1).mean()) == pytest.approx(noise_size(spikes) ** 2, rel=0.1)
