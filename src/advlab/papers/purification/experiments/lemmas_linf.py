"""Both sides of the lemmas of appendix F in linf, Theorem F.4's objective, and Corollary F.5.

What `lemmas` does in l2, for training against linf attacks (Theorem 5.4). M is the identity, for
which max_j |M_j|_1 is 1; the preset `random`, scaled as the theorems allow, has noise inside
(sigma_rho = 0.1 b); the radius is the one at which M w* moves a linear score as far as in l2, tau_2
|w*|_2/|w*|_1, so that it falls as 1/sqrt(k d). Training is against FGM at the full radius from the
first step; the control is as many more clean steps. Open constants and Xi2 are 1.

- F.4: the mean of the objective at FGM points along training, less the clean objective at T_f.
- F.13 and F.14: the robust coupling at drawn noise, the largest gap at the FGM, the universal and
  the PGD point; r and r', the largest |v_i|_1, are the ones measured.
- F.16: the largest |v_i|_1 over k. F.9: the mean of |v_i|^2 over k^2/d, equation (F.15).
- F.5: FGM is enough where y f(x + delta_FGM) exceeds twice the gap of f to its first order on the
  ball, here the largest at the FGM, the universal and the PGD point: a lower bound of the gap.

The lemmas' own hypotheses are measured, and the questions about their constants (`level`) are
outside where they fail. "Worst" is the worst case over the universal direction, FGM and PGD from
four starts: an upper bound of the robust accuracy.
"""

from copy import deepcopy

import polars as pl
from pydantic import PositiveInt

from .... import lab
from ....core.randomness import generators
from ....report import Assumption, Claim, Claims, Verdict, empirical
from ....report.charts import AnyChart, curves, panels, stacked
from .. import measures
from ..data import SparseCoding
from ._parts.clean_then_adversarial_runs import linearity
from ._parts.conditions import assumptions_of
from ._parts.growth_along_training import noise_inside
from ._parts.lemma_charts import objective_charts, order_chart
from ._parts.lemma_hypotheses import CLEAN, FGM, ball_assumptions
from ._parts.lemma_orders import (
    ALONG_FGM,
    CONTROL,
    LINF,
    Sense,
    against_control,
    claims_of,
    order_verdicts,
)
from ._parts.lemma_sides import Stages, robust_sides
from ._parts.presets import Preset, SparseProblem, scaled
from ._parts.robust_objective import (
    against_fgm,
    by_d,
    objective_claims,
    objective_verdicts,
)
from ._parts.two_phase_runs import columns, frozen

NAME = "purification/lemmas in linf"
RATIO = 1.03**0.5
"""|w*|_2 sqrt(d)/|w*|_1 on average: |w*_j| is uniform on [0.7, 1.3]."""


def _claims() -> dict[str, Claim]:
    said: dict[str, tuple[str, Sense]]
    said = {label: (order.words, order.sense) for label, order in LINF.items()}
    return objective_claims("F.4") | claims_of(said) | {
        "F.5/worst": empirical("Trained against FGM in linf, the worst case leaves more than 0.5 "
                               "at each d, and more than 0.3 over the clean network"),
        "F.5/gap": empirical("The gap of f to its first order falls more than 3 times, and not by "
                             "as many more clean steps"),
        "F.5/floor": empirical("so that y f(x + delta_FGM) exceeds twice the gap for more than 0.5 "
                               "of the inputs, and for fewer than 0.1 after as many more clean "
                               "steps"),
    }  # fmt: skip


ABOUT = lab.About(
    paper="purification",
    item="Theorem F.4, Corollary F.5, Lemmas F.13, F.14 and F.16, equation (F.15)",
    title="Both sides of the lemmas in linf, and why FGM is enough there",
    seconds={"smoke": 4, "laptop": 125, "paper": 900},
    claims=_claims(),
)


class Case(lab.Case):
    """The scaled preset in linf at one dimension; `steps` shortens training."""

    d: PositiveInt
    tests: PositiveInt = 300
    steps: PositiveInt | None = None

    @property
    def cost(self) -> float:
        return self.replicates * (self.d / 128) ** 3

    @property
    def preset(self) -> Preset:
        """The preset `random` at this dimension in linf, with noise inside and the full radius from
        the first step."""
        full = in_linf(self.d)
        if self.steps is None:
            return full
        few = {name: getattr(full, name).model_copy(update={"steps": self.steps})
               for name in ("clean", "adversarial")}  # fmt: skip
        return full.model_copy(update=few | {"data": full.data.model_copy(update={"n": 300})})


def in_linf(d: int) -> Preset:
    """The scaled preset with noise inside, in linf: M is the identity."""
    l2 = noise_inside(scaled(d))
    law = SparseCoding.model_validate(l2.data.model_dump() | {"dictionary": "identity"})
    radius = l2.tau * RATIO / d**0.5
    return l2.model_copy(update={"data": law, "norm": "linf", "tau": radius, "warmup": 0})


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    dims, usual, some = {
        "smoke": ((24, 32, 48), 2, {"tests": 20, "steps": 6}),
        "laptop": ((192, 128, 96), 8, {}),
        "paper": ((512, 384, 256, 192, 128), 5, {}),
    }[scale]
    return [Case(d=d, **some, **block) for d in dims for block in lab.blocks(seeds or usual, 4)]


def compute(case: Case) -> pl.DataFrame:
    """One row per seed and stage: both sides, the gap to the first order, accuracies; and one per
    seed and probe of training against FGM."""
    problem = SparseProblem.draw(case.preset, case.seeds, f"{NAME}/{case.d}", case.tests)
    nets = problem.networks()
    start = frozen(nets)
    problem.train_clean(nets)
    clean, more = frozen(nets), deepcopy(nets)
    phase = problem.preset.adversarial
    stages = Stages(problem, start, clean, phase.steps * phase.lr)
    along = against_fgm(problem, nets, clean)
    problem.train_control(more)
    steps = 2 if case.steps else 30
    rows = [along.with_columns(stage=pl.lit(ALONG_FGM))]
    for stage, net in {CLEAN: clean, FGM: frozen(nets), CONTROL: frozen(more)}.items():
        found = robust_sides(stages, net) | linearity(problem, net)
        rngs = generators(problem.stream, "worst", seeds=problem.seeds)
        found |= measures.survival(net, problem.test_x, problem.test_y, problem.preset.ball,
                                   problem.direction, rngs, steps).accuracies()  # fmt: skip
        rows.append(pl.DataFrame({"seed": list(case.seeds), "stage": stage} | columns(found)))
    return pl.concat(rows, how="diagonal_relaxed").with_columns(k=pl.lit(case.preset.data.k))


def figure(table: pl.DataFrame) -> AnyChart:
    ends = table.filter(pl.col("stage") != ALONG_FGM)

    def over(name: str, title: str, y_title: str, log: bool = False) -> AnyChart:
        return curves(ends, "d", name, "stage", title=title, y_title=y_title, log_x=True,
                      log_y=log, x_title="dimension d")  # fmt: skip

    sides = panels(
        [
            *[order_chart(ends, label, order) for label, order in LINF.items()],
            over("linearity gap", "F.5: gap to the first order", "mean gap, lower bound", True),
            over("FGM floor", "F.5: margin above twice the gap", "share of inputs"),
            over("worst", "Worst case, radius tau", "accuracy (upper bound)"),
            over("clean", "Without an attack", "accuracy"),
        ],
        columns=3,
    )
    return stacked(sides, panels(objective_charts(table, "F.4")))


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    presets = {d: in_linf(d) for d in table["d"].unique().sort().to_list()}
    shared = assumptions_of({f"d = {d}": one for d, one in presets.items()})
    return [*shared, *ball_assumptions(table.filter(stage=FGM), presets)]


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims = Claims(ABOUT.claims)
    found = objective_verdicts(claims, "F.4", table.filter(stage=ALONG_FGM))
    rows = against_control(table)
    for label in LINF:
        found += order_verdicts(claims, label, rows)
    before, robust, control = (table.filter(stage=one) for one in (CLEAN, FGM, CONTROL))

    def each(words: str, values: dict[str, pl.Series]) -> dict[str, pl.Series]:
        return {f"{words}, {d}": one for d, one in values.items()}

    def beside(words: str, column: str, change) -> dict[str, pl.Series]:
        now, then = by_d(robust, column), by_d(before, column)
        kept = by_d(control, column)
        return each(words, {d: change(now[d], then[d], kept[d]) for d in now})

    left = "what is left to the bound"
    worst = beside("worst accuracy, above 0.5", "worst", lambda now, then, kept: now - 0.5)
    worst |= beside("gained, above 0.3", "worst", lambda now, then, kept: now - then - 0.3)
    gap = beside(
        "fall of the gap, above 3", "linearity gap", lambda now, then, kept: then / now - 3
    )
    gap |= beside("control: 1.5 less its fall", "linearity gap",
                  lambda now, then, kept: 1.5 - then / kept)  # fmt: skip
    floor = beside("share, above 0.5", "FGM floor", lambda now, then, kept: now - 0.5)
    floor |= beside("control, below 0.1", "FGM floor", lambda now, then, kept: 0.1 - kept)
    parts = {"F.5/worst": worst, "F.5/gap": gap, "F.5/floor": floor}
    return [*found, *(claims.above(label, some, 0, what=left) for label, some in parts.items())]
