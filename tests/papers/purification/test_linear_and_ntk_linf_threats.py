"""Verdicts of the NTK and linf experiments on made-up tables, and both at smoke scale."""

import numpy as np
import polars as pl
import pytest
import torch

from advlab import lab
from advlab.papers.purification.experiments import linear_and_ntk, linf_threats
from advlab.papers.purification.experiments._parts import linear_and_ntk_runs
from advlab.papers.purification.experiments._parts.presets import SparseProblem

SEEDS = 5


def told(module, table: pl.DataFrame) -> dict[str, str]:
    verdicts = module.verdicts(table)
    assert [verdict.id for verdict in verdicts] == list(module.ABOUT.claims)
    return {verdict.id: verdict.outcome for verdict in verdicts}


def computed(module, scale: str = "smoke") -> pl.DataFrame:
    """All rows of a scale with the columns of their cases, as the lab joins them."""
    parts = []
    for case in module.recipe(scale):
        made = module.compute(case)
        rows = made.table if isinstance(made, lab.Computed) else made
        extra = {
            name: pl.lit(value)
            for name, value in case.model_dump().items()
            if name not in rows.columns and isinstance(value, (str, int, float))
        }
        parts.append(rows.with_columns(**extra))
    return pl.concat(parts, how="diagonal")


TRUE = {
    ("linear, oracle", "clean"): 1.0,
    ("linear, oracle", "robust"): 0.02,
    ("linear, trained", "robust"): 0.04,
    ("NTK, adversarial", "clean"): 0.97,
    ("NTK, adversarial", "pgd"): 0.3,
    ("NTK, best trial", "pgd"): 0.4,
    ("NTK, clean", "pgd"): 0.02,
    ("NTK as printed", "closed"): 0.5,
    ("NTK as printed", "clean"): 0.49,
}
FALSE = {
    "16/{}/clean": (("linear, oracle", "clean"), 0.99),
    "16/{}/oracle": (("linear, oracle", "robust"), 0.2),
    "16/{}/trained": (("linear, trained", "robust"), 0.15),
    "17/{}/clean": (("NTK, adversarial", "clean"), 0.9),
    "17/{}/robust": (("NTK, adversarial", "pgd"), 0.6),
    "17/{}/best": (("NTK, best trial", "pgd"), 0.55),
    "17/{}/plain": (("NTK, clean", "pgd"), 0.2),
    "18/{}/closed": (("NTK as printed", "closed"), 0.51),
    "18/{}/random": (("NTK as printed", "clean"), 0.6),
}
FORMS = {
    "21/relu": ("SymmetricReLU", "Monte Carlo", 0.0, 4e-4, 2e-3),
    "21/gradients": ("NTK", "differences", 0.0, 1e-9, 1e-5),
    "21/taylor": ("step", "taylor", 40.0, 1e-15, 1e-8),
}


def low_complexity(change: tuple | None = None, form: str = "", slope: float = 0.5):
    """A table in which all claims hold, but for one accuracy of one preset or one closed form."""
    rows = []
    for seed in range(SEEDS):
        tiny = 1e-4 * seed
        for preset in linear_and_ntk.NAMES:
            for key, value in TRUE.items():
                if change is not None and change[0] == (preset, key):
                    value = change[1]
                off = 0.0 if key[1] == "closed" or value == 1 else tiny
                rows.append((seed, preset, *key, 0.0, value + off))
        for name, (model, quantity, x, right, wrong) in FORMS.items():
            rows.append((seed, "random", model, quantity, x, wrong if name == form else right))
        rows += [
            (seed, "random", "worst v", "tensor ratio", d, d**slope * (1 + tiny))
            for d in (32.0, 64.0, 128.0)
        ]
    columns = ["seed", "preset", "model", "quantity", "x", "value"]
    made = pl.DataFrame(rows, schema=columns, orient="row")
    return made.with_columns(theory=pl.lit("silent: k <= d^0.499"), part=pl.lit("tangent"))


def test_all_claims_of_ntk_hold_on_a_table_in_which_they_do():
    found = told(linear_and_ntk, low_complexity())
    assert found.pop("G4") == "undecided"
    assert set(found.values()) == {"supported"}
    notes = [
        verdict.note
        for verdict in linear_and_ntk.verdicts(low_complexity())
        if verdict.id.startswith("16/")
    ]
    assert all("theorems are silent" in note for note in notes)


@pytest.mark.parametrize("preset", linear_and_ntk.NAMES)
@pytest.mark.parametrize("claim", FALSE)
def test_a_false_claim_of_ntk_is_refuted_and_the_others_are_not(claim, preset):
    key, value = FALSE[claim]
    found = told(linear_and_ntk, low_complexity(((preset, key), value)))
    assert [name for name, how in found.items() if how == "refuted"] == [claim.format(preset)]


@pytest.mark.parametrize("form", FORMS)
def test_a_wrong_closed_form_is_refuted(form):
    found = told(linear_and_ntk, low_complexity(form=form))
    assert [name for name, how in found.items() if how == "refuted"] == [form]


@pytest.mark.parametrize("slope", [-1.0, 0.0, 1.0])
def test_the_tensor_trend_never_passes(slope):
    assert told(linear_and_ntk, low_complexity(slope=slope))["G4"] == "undecided"


def test_missing_rows_leave_claims_undecided():
    empty = low_complexity().filter(pl.col("seed") > SEEDS)
    assert set(told(linear_and_ntk, empty).values()) == {"undecided"}


def test_ntk_at_smoke_scale():
    rows = computed(linear_and_ntk)
    found = told(linear_and_ntk, rows)
    exact = {"18/random/closed", "18/wide_margin/closed", "21/gradients", "21/taylor"}
    assert {found[claim] for claim in exact} == {"supported"}
    assert linear_and_ntk.figure(rows).to_dict()
    assert rows["theory"].str.starts_with("silent").all()


def small_problem(norm: str = "l2") -> SparseProblem:
    preset = linear_and_ntk_runs.resized("random", 64, 400, dictionary="identity")
    preset = preset.model_copy(update={"norm": norm, "tau": 0.02 if norm == "linf" else 0.2})
    return SparseProblem.draw(preset, range(2), "test of ntk runs", 300)


@pytest.mark.parametrize("norm", ["l2", "linf"])
def test_exact_accuracies_are_those_of_the_theory_and_of_the_worst_point(norm):
    problem = small_problem(norm)
    ball, theta = problem.preset.ball, problem.direction
    found = linear_and_ntk_runs.linear_accuracy(problem, theta, ball, 1.0)
    for r in range(2):
        scores = problem.test_x[r] @ theta[r]
        f, y, w = (one.double().numpy() for one in (scores, problem.test_y[r], theta[r]))
        dual = np.linalg.norm(w, 2 if norm == "l2" else 1)
        assert float(found[r]) == (y * f > ball.radius * dual).mean()
        move = ball.radius * (theta[r].sign() if norm == "linf" else theta[r] / theta[r].norm())
        worst = (problem.test_x[r] - problem.test_y[r][:, None] * move) @ theta[r]
        assert float(found[r]) == pytest.approx(
            float((worst * problem.test_y[r] > 0).double().mean())
        )


def test_the_path_of_linear_training_and_its_best_point():
    found, path = linear_and_ntk_runs.linear_rows(small_problem(), 40)
    best = torch.stack([one["robust"] for one in path.values()]).amax(0)
    assert torch.equal(found["trained robust"], best)
    assert (found["oracle clean"] == 1).all()
    assert (path[40]["clean"] > 0.8).all()


def test_tangent_models_are_trained_on_their_own_data():
    problem = small_problem()
    recipe = linear_and_ntk_runs.NTKSettings(adversarial=True, rate=0.01)
    models = linear_and_ntk_runs.tangent(problem, recipe, 24, 30)
    with torch.no_grad():
        f = models(problem.x.flatten(0, 1)).reshape(problem.y.shape)
    assert ((f * problem.y > 0).double().mean(1) > 0.8).all()
    even = linear_and_ntk_runs.tangent(
        problem, linear_and_ntk_runs.NTKSettings(adversarial=False, sign=-1), 24, 5
    )
    assert (linear_and_ntk_runs.closed_accuracy(problem, even) == 0.5).all()
    found = linear_and_ntk_runs.attacked(problem, models, 5)
    assert (found["worst"] <= found["pgd"]).all()
    assert (found["pgd"] <= found["clean"]).all()


LINF_TRUE = {
    ("clean network", "universal", 1.0): 0.1,
    ("clean network", "universal", 1.5): 0.01,
    ("clean network", "worst", 1.0): 0.05,
    ("adversarial network", "clean", 1.0): 0.98,
    ("adversarial network", "worst", 1.0): 0.93,
    ("ReLU oracle", "worst", 1.0): 0.95,
    ("linear, oracle", "clean", 1.0): 1.0,
    ("linear, oracle", "robust", 1.0): 0.02,
    ("linear, trained", "robust", 1.0): 0.04,
    ("NTK, adversarial", "clean", 1.0): 0.97,
    ("NTK, adversarial", "pgd", 1.0): 0.3,
    ("NTK, clean", "pgd", 1.0): 0.02,
}
LINF_FALSE = {
    "2/{}/tau": (("clean network", "universal", 1.0), 0.3),
    "2/{}/beyond": (("clean network", "universal", 1.5), 0.1),
    "5/{}/clean": (("adversarial network", "clean", 1.0), 0.9),
    "5/{}/worst": (("adversarial network", "worst", 1.0), 0.845),
    "5/{}/times": (("clean network", "worst", 1.0), 0.4),
    "5/{}/oracle": (("ReLU oracle", "worst", 1.0), 0.58),
    "16/{}/clean": (("linear, oracle", "clean", 1.0), 0.99),
    "16/{}/oracle": (("linear, oracle", "robust", 1.0), 0.2),
    "16/{}/trained": (("linear, trained", "robust", 1.0), 0.55),
    "17/{}/clean": (("NTK, adversarial", "clean", 1.0), 0.9),
    "17/{}/robust": (("NTK, adversarial", "pgd", 1.0), 0.6),
    "17/{}/plain": (("NTK, clean", "pgd", 1.0), 0.2),
}


def in_linf(change: tuple | None = None) -> pl.DataFrame:
    rows = []
    for seed in range(SEEDS):
        for preset in linf_threats.NAMES:
            for key, value in LINF_TRUE.items():
                if change is not None and change[0] == (preset, key):
                    value = change[1]
                rows.append((seed, preset, *key, value + (1e-4 * seed if value < 1 else 0.0)))
    columns = ["seed", "preset", "model", "quantity", "x", "value"]
    return pl.DataFrame(rows, schema=columns, orient="row").with_columns(theory=pl.lit("silent: k"))


def test_all_claims_of_linf_hold_on_a_table_in_which_they_do():
    assert set(told(linf_threats, in_linf()).values()) == {"supported"}
    assert all("theorems are silent" in one.note for one in linf_threats.verdicts(in_linf()))
    empty = in_linf().filter(pl.col("seed") > SEEDS)
    assert set(told(linf_threats, empty).values()) == {"undecided"}


@pytest.mark.parametrize("preset", linf_threats.NAMES)
@pytest.mark.parametrize("claim", LINF_FALSE)
def test_a_false_claim_of_linf_is_refuted_and_the_others_are_not(claim, preset):
    key, value = LINF_FALSE[claim]
    found = told(linf_threats, in_linf(((preset, key), value)))
    refuted = [name for name, how in found.items() if how == "refuted"]
    assert refuted == [claim.format(preset)]


def test_linf_at_smoke_scale():
    """Too small to decide anything, but attacks are ordered and networks learn."""
    rows = computed(linf_threats)
    assert linf_threats.figure(rows).to_dict()
    told(linf_threats, rows)
    wide = rows.filter(part="networks").pivot("quantity", index=["seed", "preset", "model", "x"],
                                              values="value")  # fmt: skip
    for weaker, stronger in (("clean", "pgd"), ("fgm", "pgd"), ("pgd", "worst")):
        assert (wide[weaker] >= wide[stronger]).all()
    assert (wide["universal"] >= wide["worst"]).all()


def test_the_linf_radius_moves_a_linear_score_as_far_as_the_l2_one():
    for name, tau in linf_threats.RADII.items():
        preset = linf_threats.preset_of(linf_threats.Case(part="networks", preset=name))  # type: ignore[arg-type]
        assert (preset.norm, preset.tau, preset.data.dictionary) == ("linf", tau, "identity")
        w = preset.data.concept(torch.Generator().manual_seed(0)).w
        l2 = linear_and_ntk_runs.PRESETS[name].tau
        assert tau == pytest.approx(float(l2 * w.norm() / w.abs().sum()), rel=0.01)
        assert preset.clean == linear_and_ntk_runs.PRESETS[name].clean
        assert preset.width == linear_and_ntk_runs.PRESETS[name].width
