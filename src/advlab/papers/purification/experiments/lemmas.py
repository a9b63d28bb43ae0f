"""Both sides of the lemmas of appendices C, E and F, along one run, and the constants they imply.

The lemmas are orders: left <= O(right), or left >= Omega(right), as d grows, with Xi2 = d^o(1). At
each d (the preset `random`, scaled as the theorems allow, with noise inside, sigma_rho = 0.1 b)
both sides are computed with open constants and Xi2 equal to 1: after clean training, after training
against FGM at the full radius from the first step, as Theorem F.1 has it, and after as many more
clean steps. Exponents in d are reported: no size that can be run meets the conditions. As questions
of ours (`level`) it is decided whether the constant that an order needs is at most 10 (at least
1/10, for Omega) and does not grow (fall) with d; where a lemma's own hypotheses, measured in the
same runs, fail, the question is outside (`_parts/lemma_hypotheses.py`). A bound that nothing can
break says nothing: of F.11 and F.12 it is asked that as many more clean steps break it, of F.15
and of the second half of E.2 that the norm cap lets neurons do so, of C.14 that its band leaves 0
out, each with constant 10.

Own atoms S_i of a neuron are those of S_j,pot at the start (Proposition F.8), g_i its part on them
after clean training, and v_i the rest (Definition F.9).

- Hypotheses and Theorem C.2: the shares of neurons in S_ept, S_ept+ and S_ept++, of S_pot+ within
  S_pot(0), and of S_sure(0) within S_sure(t) and S_sure+(t). An empty set counts as not measured.
- C.7: Gamma_t, the largest over neurons of Pr[|<w_i, x>| >= b/10], over k/d. The lemma has
  c2/(10 c1) b, which is 0.0006 b at these d; that Gamma and the mean over neurons are in the table.
  The lemma is about phase I, at whose end C.7/I judges it; C.7 is after clean training.
- C.8 to C.11, C.14 to C.17 (C.17b is the sum over atoms) and the second half of E.2: what a clean
  step adds to <w_i, M_j>, in another run, with noise outside as well
  (`_parts/growth_along_training.py` says how).
- C.19: neurons with |<w_i, x>| >= b/10, over k, and beside them those that are on; the share of
  leftovers (without the atoms of S_pot+) of at most b/10, which is claimed to be 1.
- C.13 and C.20: L_j, the Lipschitz constant of f in z_j (a quantile over inputs, on a grid of z_j:
  a lower estimate), over sum_{i in S_pot+} |<w_i, M_j>| + k/sqrt(d).
- C.21: the largest L_j, |w_i| (which the norm cap sets: an identity) and |f(x)|/log d. C.22: E[l']
  over min(1, 1/(L_max log d)^2) (Omega).
- E.2: the sum of <w_i, M w*> over the i in any S_j,sure(0), over k d (Omega).
- F.1: the mean of the objective at FGM points along training, less the clean objective at T_f.
- F.8: the largest coordinate of a neuron beside its own atoms, over k/d. F.9: the mean of |v_i|^2
  over k^2/d, equation (F.12). F.15: the largest |v_i| over k/sqrt(d) + T eta sqrt(k)/d.
- F.11 and F.12: the robust coupling at drawn noise, the largest gap at the FGM, the universal and
  the PGD point; r and r' are the ones measured. F.17: the regulariser of g_i against that of w_i.
- F.2: the share of inputs whose margin at the FGM point exceeds twice the gap.
"""

from copy import deepcopy

import polars as pl
from pydantic import PositiveInt

from .... import lab
from ....report import Assumption, Claim, Claims, Verdict, identity, ours, theorem
from ....report.charts import AnyChart
from ._parts.conditions import THEOREMS, assumptions_of
from ._parts.growth_along_training import LEMMAS, POINTS, growth, noise_inside
from ._parts.lemma_charts import charts
from ._parts.lemma_hypotheses import ALONG, CLEAN, FGM, lemma_assumptions
from ._parts.lemma_orders import (
    ALONG_FGM,
    CONTROL,
    ORDERS,
    START,
    against_control,
    at_growth,
    order_claims,
    order_verdicts,
)
from ._parts.lemma_sides import Stages, both_sides, hypotheses
from ._parts.presets import Preset, SparseProblem, scaled
from ._parts.robust_objective import (
    against_fgm,
    by_d,
    objective_claims,
    objective_verdicts,
)
from ._parts.two_phase_runs import columns, frozen

NAME = "purification/lemmas, with their hypotheses"
STATED = {
    "C.2/1": ("ept+ and ept++", "Every neuron is in S_ept+ and in S_ept++"),
    "C.2/2": ("sure within sure", "S_sure(0) stays within S_sure(t)"),
    "C.2/3": ("pot+ within pot", "S_pot+(t) is within S_pot(0)"),
    "C.2/4": ("sure within sure+", "S_sure(0) is within S_sure+(t)"),
}
"""The statements of Theorem C.2, which are also hypotheses of lemmas, and their shares."""
MOST = 0.9
"""What share of them is asked to hold."""


def _claims() -> dict[str, Claim]:
    stated = {
        label: theorem(f"{words}, after clean training", THEOREMS)
        for label, (_, words) in STATED.items()
    }
    return order_claims() | stated | objective_claims("F.1") | {
        "C.2/most": ours("After clean training each of these statements of Theorem C.2 holds for "
                         f"more than {MOST} of its neurons or pairs"),
        "C.20/1": ours("With constant 1 Lemma C.20's bound holds for more than 0.9 of the atoms "
                       "after training against FGM, and for fewer than half after clean training"),
        "C.19/1": ours("Fewer than 10 k neurons have |<w_i, x>| >= b/10 after clean training"),
        "C.19/b": ours("More than 0.9 of the leftovers are at most b/10 after clean training"),
        "E.2/0": ours("Without input noise fewer than 0.01 of the neurons alive have <w_i, M w*> "
                      "below 0 after clean training"),
        "F.2": ours("For more than 0.4 of the inputs the margin at the FGM point exceeds twice the "
                    "gap after FGM, and for fewer than 0.1 after as many more clean steps"),
        "C.2": ours("More neurons are in S_sure+ after training against FGM than after as many "
                    "more clean steps, by more than 0.05 per atom"),
        "C.13": identity("L_j is never above sum_i |<w_i, M_j>|: units are 1-Lipschitz"),
        "C.21/cap": identity("No neuron is longer than the norm cap"),
    }  # fmt: skip


ABOUT = lab.About(
    paper="purification",
    item="Theorem C.2, Lemmas C.7-C.11, C.14-C.17, C.19-C.22, E.2, F.11, F.12, F.15, "
    "Proposition F.8, Claim F.17, Theorem F.1, Corollary F.2",
    title="Both sides of the appendix's lemmas, and the constants they imply",
    seconds={"smoke": 4, "laptop": 225, "paper": 1500},
    looks=4,
    claims=_claims(),
)


class Case(lab.Case):
    """The scaled preset at one dimension; `steps` shortens training."""

    d: PositiveInt
    tests: PositiveInt = 300
    points: PositiveInt = POINTS
    steps: PositiveInt | None = None

    @property
    def cost(self) -> float:
        return self.replicates * (self.d / 128) ** 3

    @property
    def preset(self) -> Preset:
        """The preset `random` at this dimension, with noise inside and FGM's radius from the first
        step of training against it."""
        full = noise_inside(scaled(self.d)).model_copy(update={"warmup": 0})
        if self.steps is None:
            return full
        few = {name: getattr(full, name).model_copy(update={"steps": self.steps})
               for name in ("clean", "adversarial")}  # fmt: skip
        return full.model_copy(update=few | {"data": full.data.model_copy(update={"n": 300})})


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    dims, usual, some = {
        "smoke": ((24, 32, 48), 2, {"tests": 20, "points": 60, "steps": 6}),
        "laptop": ((192, 128, 96), 8, {}),
        "paper": ((512, 384, 256, 192, 128), 5, {}),
    }[scale]
    return [Case(d=d, **some, **block) for d in dims for block in lab.blocks(seeds or usual, 4)]


def compute(case: Case) -> pl.DataFrame:
    """One row per seed and stage: both sides of each lemma, and shares that hold; one per seed,
    growth lemma and step of clean training; one per seed and probe of training against FGM."""
    problem = SparseProblem.draw(case.preset, case.seeds, f"{NAME}/{case.d}", case.tests)
    phase = case.preset.adversarial
    nets = problem.networks()
    start = frozen(nets)
    problem.train_clean(nets)
    clean, more = frozen(nets), deepcopy(nets)
    before = Stages(problem, start, clean, 0.0)
    along = against_fgm(problem, nets, clean)
    problem.train_control(more)
    after = Stages(problem, start, clean, phase.steps * phase.lr)
    reached = {CLEAN: (before, clean), FGM: (after, frozen(nets)), CONTROL: (after, frozen(more))}
    found = {START: hypotheses(before, start, at_start=True)} | {
        stage: hypotheses(stages, net) | both_sides(stages, net)
        for stage, (stages, net) in reached.items()
    }
    rows = [
        pl.DataFrame({"seed": list(case.seeds), "stage": stage} | columns(one))
        for stage, one in found.items()
    ]
    grown = growth(case.preset, case.seeds, f"{NAME}/{case.d} growth", case.points)
    rows += [grown.with_columns(stage=pl.lit(ALONG)), along.with_columns(stage=pl.lit(ALONG_FGM))]
    return pl.concat(rows, how="diagonal_relaxed").with_columns(k=pl.lit(case.preset.data.k))


def figure(table: pl.DataFrame) -> AnyChart:
    return charts(table)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    sizes = table["d"].unique().sort().to_list()
    presets = {d: noise_inside(scaled(d)) for d in sizes}
    shared = assumptions_of({f"d = {d}": one for d, one in presets.items()})
    return [*shared, *lemma_assumptions(table, presets)]


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims = Claims(ABOUT.claims)

    def of(stage: str, column: str) -> dict[str, pl.Series]:
        return by_d(table.filter(stage=stage), column)

    def beside(words: str, column: str, stage: str, bound: float, sign: int) -> dict:
        return {f"{words}, {d}": sign * (values - bound)
                for d, values in of(stage, column).items()}  # fmt: skip

    found = []
    stages = {FGM: against_control(table), CLEAN: table.filter(stage=CLEAN)}
    for label, order in ORDERS.items():
        found += order_verdicts(claims, label, stages[order.stage])
    grown = at_growth(table)
    for label in LEMMAS:
        found += order_verdicts(claims, label, grown.filter(lemma=label))
    found += _theorem_c2(claims, table.filter(stage=CLEAN))
    found += objective_verdicts(claims, "F.1", table.filter(stage=ALONG_FGM))
    left, holds, floor = "what is left to the bound", "Lipschitz holds", "FGM floor"
    excess = table["Lipschitz excess"].drop_nulls().to_list()
    pure, mixed = of(FGM, "sure+ per atom"), of(CONTROL, "sure+ per atom")
    more = {d: pure[d] - mixed[d] for d in pure}
    caps = pl.DataFrame({"d": sorted(set(table["d"].to_list()))}).with_columns(
        cap=pl.col("d").map_elements(lambda d: scaled(d).cap, return_dtype=pl.Float64)
    )
    beyond = table.join(caps, on="d").select(pl.col("longest left") - pl.col("cap"))["longest left"]
    return [
        *found,
        claims.above("C.20/1", beside("share, above 0.9", holds, FGM, 0.9, 1) |
                     beside("after clean training, below 0.5", holds, CLEAN, 0.5, -1), 0,
                     what=left),
        claims.below("C.19/1", of(CLEAN, "near"), 10, what="neurons with |<w_i, x>| >= b/10, by k"),
        claims.above("C.19/b", of(CLEAN, "leftovers"), 0.9, what="share of leftovers up to b/10"),
        claims.below("E.2/0", of(CLEAN, "opposed"), 0.01,
                     what="share of the neurons alive with <w_i, M w*> < 0"),
        claims.above("F.2", beside("share, above 0.4", floor, FGM, 0.4, 1) |
                     beside("control, below 0.1", floor, CONTROL, 0.1, -1), 0, what=left),
        claims.above("C.2", more, 0.05, what="neurons in S_sure+ per atom, over the control's"),
        claims.below("C.13", max(excess, default=None), 1e-4,
                     what="largest L_j less sum_i |<w_i, M_j>|, over the latter"),
        claims.below("C.21/cap", max(beyond.drop_nulls().to_list(), default=None), 1e-4,
                     what="largest |w_i| less the norm cap, of any run"),
    ]  # fmt: skip


def _theorem_c2(claims: Claims, rows: pl.DataFrame) -> list[Verdict]:
    """The statements of Theorem C.2: shares per d, and whether most of each hold."""
    both = pl.min_horizontal("ept+", "ept++").alias("ept+ and ept++")
    rows = rows.with_columns(both)
    shares = {label: by_d(rows, name) for label, (name, _) in STATED.items()}
    most = {f"{label}, {d}": values - MOST for label, found in shares.items()
            for d, values in found.items()}  # fmt: skip
    told = [claims.trend(label, shares[label], what=f"share, {name}")
            for label, (name, _) in STATED.items()]  # fmt: skip
    return [*told, claims.above("C.2/most", most, 0, what=f"share less {MOST}")]
