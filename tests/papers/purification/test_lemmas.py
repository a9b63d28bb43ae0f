"""The lemmas' hypotheses and right sides, by hand, in l2 and linf."""

from math import log, sqrt

import polars as pl
import pytest
import torch

from advlab.papers.purification.experiments import lemmas, lemmas_linf
from advlab.papers.purification.experiments._parts import lemma_hypotheses as known
from advlab.papers.purification.experiments._parts.lemma_sides import Stages, robust_sides
from advlab.papers.purification.experiments._parts.presets import SparseProblem
from advlab.papers.purification.experiments._parts.two_phase_runs import frozen

D = 24


@pytest.fixture(scope="module", params=["l2", "linf"])
def trained(request):
    kind = lemmas.Case if request.param == "l2" else lemmas_linf.Case
    case = kind(d=D, tests=40, steps=6, replicates=2)
    problem = SparseProblem.draw(case.preset, range(2), "lemmas by hand", 40)
    nets = problem.networks()
    start = frozen(nets)
    problem.train_clean(nets)
    clean = frozen(nets)
    problem.train_adversarial(nets)
    phase = case.preset.adversarial
    return Stages(problem, start, clean, phase.steps * phase.lr), frozen(nets)


def test_right_sides_are_those_of_the_paper(trained):
    stages, nets = trained
    problem, preset = stages.problem, stages.problem.preset
    found = robust_sides(stages, nets)
    d, k, m, tau, b = D, preset.data.k, preset.width, preset.tau, preset.bias.end
    for r in range(2):
        A = nets.weight[r].double() @ problem.M[r].double()
        before = stages.clean.weight[r].double() @ problem.M[r].double()
        own = stages.own[r]
        g = torch.where(own, before, 0.0)
        v, u = A - g, before - g
        order = 2 if preset.norm == "l2" else 1
        square = float((v**2).sum(1).mean())
        longest = float(torch.linalg.vector_norm(v, ord=order, dim=1).max())
        widest = max(sqrt(square), sqrt(d) * float(u.abs().max()))
        sigma = float(nets.sigma[r])
        rest = m * widest**2 / (d * sigma) + k * widest * log(d) / sqrt(d)
        spread = (1 + longest) ** 2 * square * m / (d * b**2)
        near = k + widest**2 * m / (d * b**2)
        cap, kept = preset.cap, float(torch.linalg.vector_norm(g, ord=order, dim=1).max())
        if preset.norm == "l2":
            wanted = tau**2 / sigma * (1 + spread), rest + tau * sqrt(near)
            moved = k / sqrt(d) + stages.trained * sqrt(k) / d
            reach = cap + kept
        else:
            wanted = tau**2 / sigma * (k + spread + k * longest**2), rest + tau * near
            moved, reach = k, cap * sqrt(d) + kept
        names = ("coupling right", "coupling at 0 right", "longest rest right", "longest rest left",
                 "r of u", "rest left", "longest rest speaks")  # fmt: skip
        numbers = (*wanted, moved, longest, widest, square, reach / moved)
        for name, number in zip(names, numbers, strict=True):
            assert float(found[name][r]) == pytest.approx(number, rel=1e-3), name


def test_the_longest_neuron_is_within_reach(trained):
    stages, nets = trained
    found = robust_sides(stages, nets)
    assert (found["longest rest"] <= found["longest rest speaks"] * (1 + 1e-6)).all()


def test_the_radius_in_linf_moves_a_linear_score_as_far_as_in_l2():
    for d in (96, 192):
        preset, l2 = lemmas_linf.in_linf(d), lemmas.Case(d=d).preset
        assert (preset.norm, preset.data.dictionary, preset.warmup) == ("linf", "identity", 0)
        assert preset.bias == l2.bias
        w = preset.data.concept(torch.Generator().manual_seed(0)).w
        assert preset.tau == pytest.approx(float(l2.tau * w.norm() / w.abs().sum()), rel=0.02)


def ends(**changes: float) -> pl.DataFrame:
    """Rows in which all hypotheses of the lemmas in l2 hold."""
    share = {"ept": 1.0, "ept+": 1.0, "ept++": 1.0, "pot+ within pot": 1.0}
    row = {"largest L left": 5.0, "rest left": 0.01, "longest rest left": 0.2, "r of u": 0.5}
    row |= {key: value for key, value in changes.items() if key in row}
    share |= {key: value for key, value in changes.items() if key in share}
    some = pl.DataFrame([{"d": d, "seed": seed, **row, **share} for d in (96, 128)
                         for seed in range(2)])  # fmt: skip
    parts = [some.with_columns(stage=pl.lit(stage)) for stage in (known.CLEAN, known.FGM)]
    parts += [some.with_columns(stage=pl.lit(known.ALONG), lemma=pl.lit(lemma))
              for lemma in ("C.7/I", "C.9", "C.15")]  # fmt: skip
    return pl.concat(parts, how="diagonal")


def test_hypotheses_hold_where_they_do_and_fail_by_the_worst_d():
    presets = {d: lemmas.Case(d=d).preset for d in (96, 128)}
    # With a radius that is small enough and little time all of them hold.
    easy = {d: one.model_copy(update={"tau": 0.01, "adversarial": one.adversarial.model_copy(
        update={"steps": 1})}) for d, one in presets.items()}  # fmt: skip
    facts = {one.name: one for one in known.lemma_assumptions(ends(), easy)}
    assert {name for needs in known.NEEDS.values() for name in needs} - set(facts) == {
        known.CLOCK, *(f"hypotheses of {label}" for label in ("F.13", "F.14", "F.16"))
    }  # fmt: skip
    assert all(one.holds for one in facts.values())
    broken = {
        "ept": {known.FIRST},
        "ept+": {known.PLUS, known.END, known.PLUS_TWO},
        "ept++": {known.TWICE, known.TWICE_TWO},
        "pot+ within pot": {known.WITHIN, known.WITHIN_TWO},
        "largest L left": {known.STEEP},
        "r of u": {"hypotheses of F.12"},
        "rest left": {"hypotheses of F.11"},
    }
    for column, names in broken.items():
        value = 0.9 if column in ("ept", "ept+", "ept++", "pot+ within pot") else 12.0
        facts = known.lemma_assumptions(ends(**{column: value}), easy)
        assert {one.name for one in facts if not one.holds} == names
    facts = {one.name: one for one in known.lemma_assumptions(ends(), presets)}
    one = presets[128]
    time = one.adversarial.steps * one.adversarial.lr
    moved = facts["hypotheses of F.15"]
    assert moved.reached == pytest.approx(time / (128 * one.bias.end))
    assert moved.condition.endswith("at d = 128")
    assert facts["hypotheses of F.11"].reached == pytest.approx(
        max(presets[d].tau * 1.2 / presets[d].bias.end for d in (96, 128))
    )


def test_hypotheses_in_linf():
    presets = {d: lemmas_linf.in_linf(d) for d in (96, 128)}
    rows = ends().filter(stage=known.FGM)
    facts = {one.name: one for one in known.ball_assumptions(rows, presets)}
    assert set(facts) == {f"hypotheses of {label}" for label in ("F.13", "F.14", "F.16")}
    assert facts["hypotheses of F.13"].holds
    assert facts["hypotheses of F.14"].holds
    one = presets[128]
    k, b = one.data.k, one.bias.end
    time = one.adversarial.steps * one.adversarial.lr
    wanted = max(time * k / (128 * b**2), one.tau * time * k / b**2)
    assert facts["hypotheses of F.16"].reached == pytest.approx(wanted)
    assert not facts["hypotheses of F.16"].holds


def test_every_hypothesis_that_a_question_needs_is_measured():
    for module in (lemmas, lemmas_linf):
        made = [module.compute(case).with_columns(d=pl.lit(case.d))
                for case in module.recipe("smoke", 1)]  # fmt: skip
        rows = pl.concat(made, how="diagonal_relaxed")
        names = {one.name for one in module.assumptions(rows)}
        needed = {name for claim in module.ABOUT.claims.values() for name in claim.needs}
        assert needed <= names
        assert {one.id for one in module.verdicts(rows)} == set(module.ABOUT.claims)
        assert module.figure(rows).to_dict()
