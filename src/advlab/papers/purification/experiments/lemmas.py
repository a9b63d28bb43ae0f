"""Both sides of the lemmas of appendices C, E and F, along one run, and the constants they imply.

The lemmas are orders: left <= O(right), or left >= Omega(right), as d grows, with Xi2 = d^o(1). At
each d (the preset `random`, scaled as the theorems allow) both sides are computed with open
constants and Xi2 equal to 1, at the start, after clean and after adversarial training (against
FGM); what is drawn is left/right, the constant that the order would need there; the table has both
sides, and the note of each verdict the constant. An order that holds shows a level or falling line
(rising, for Omega). Exponents in d are reported: no size that can be run meets the conditions. With
constant 1, four of them are decided as questions of ours.

- C.2: S_sure(0) within S_sure+(t), and the sure neurons per atom; both empty sets at these sizes
  count as "not measured".
- C.7: how often a neuron is on, over k/d.
- C.8 to C.11 and C.14 to C.17: what a clean step adds to <w_i, M_j> (signal and noise), in another
  run, with noise outside and inside (`_parts/growth_along_training.py` says how).
- C.19: neurons with |<w_i, x>| >= b/10, over k, and beside them those that are on; the share of
  leftovers (without the atoms of S_pot+) of at most b/10, which is claimed to be 1.
- C.13 and C.20: L_j, the Lipschitz constant of f in z_j (a quantile over inputs, on a grid of z_j:
  a lower estimate), over sum_{i in S_pot+} |<w_i, M_j>| + k/sqrt(d).
- E.2: sum_i <w_i, M w*> over k d (Omega).
- F.8: the largest coordinate of a neuron beside its own atoms S_pot+, over k/d.
- F.9: the mean of |v_i|^2, where v_i is the neuron without its own atoms after clean training, over
  k^2/d (the r^2 of Lemma F.11).
- F.11: E |g_t(v; x + delta, x) - f_t(x + delta)|, which without noise inside is the gap of f to its
  first order, over tau^2 k^3.5/d (its other term, 1/sigma_rho, is infinite without noise).
- F.2: the share of inputs whose margin at the FGM point exceeds twice the gap.
"""

from copy import deepcopy

import polars as pl
from pydantic import PositiveInt

from .... import lab
from ....report import Assumption, Claim, Claims, Verdict, identity, ours, sample, theorem
from ....report.charts import AnyChart, curves, panels, stacked
from ....report.samples import slopes
from ._parts.conditions import THEOREMS, assumptions_of
from ._parts.growth_along_training import LEMMAS, MAXIMUM, NOISE, OTHER, POINTS, SIGNAL, growth
from ._parts.lemma_sides import both_sides
from ._parts.presets import PAPER_FGM, Preset, SparseProblem, scaled
from ._parts.two_phase_runs import frozen

START, CLEAN, FGM, CONTROL = "start", "clean training", "then against FGM", "more clean steps"
ORDERS = {
    "C.7": ("activation", "A neuron is on with probability O(k/d)"),
    "C.19": ("near", "At most O(k) neurons have |<w_i, x>| >= b/10"),
    "C.20": ("Lipschitz", "L_j is at most sum over S_pot+ of |<w_i, M_j>| + O(k/sqrt d)"),
    "E.2": ("push", "sum_i <w_i, M w*> is Omega(k d)"),
    "F.8": ("other coordinate", "Beside its own atoms a neuron has coordinates of at most O(k/d)"),
    "F.9": ("rest", "The rest v_i of the neurons has a mean square of O(k^2/d)"),
    "F.11": ("coupling", "On the ball f is within O(tau^2 k^3.5/d) of its first order"),
}
"""The lemma's ratio of both sides, and its words; all after clean training but F.9 and F.11."""
AFTER = ("F.9", "F.11")
STAGES = (START, CLEAN, FGM, CONTROL)
ALONG = "along clean training, with noise"
"""The stage of rows about growth."""
GROWTH = {
    SIGNAL: ("Sure pairs grow by", "Theta(1/d)", "Theta(1/d), up to O(L_j/d)"),
    MAXIMUM: ("No pair grows by more than", "O(1/d)", "O((1 + L_j)/d)"),
    OTHER: ("Pairs outside S_pot grow by", "O(Gamma log d/d)", "Gamma O((log d + L_j)/d)"),
    NOISE: ("Input noise adds", "O(Gamma sx^2 |<w_i, M_j>|/(d sigma_rho))",
            "as much, and O(Gamma sx^2 L_j/d)"),
}  # fmt: skip
"""What grows, and its orders in phases I and II."""
NAME = "purification/lemmas"


def _claims() -> dict[str, Claim]:
    orders = {label: theorem(words, THEOREMS) for label, (_, words) in ORDERS.items()}
    for label, (grows, phase) in LEMMAS.items():
        what, *order = GROWTH[grows]
        orders[label] = theorem(
            f"Phase {'I' * phase}: {what} {order[phase - 1]} per step", THEOREMS
        )
    return orders | {
        "C.20/1": ours("With constant 1 Lemma C.20's bound holds for more than 0.9 of the atoms "
                       "after training against FGM, and for fewer than half after clean training"),
        "C.19/1": ours("Fewer than 10 k neurons have |<w_i, x>| >= b/10 after clean training"),
        "C.19/b": ours("More than 0.9 of the leftovers are at most b/10 after clean training"),
        "F.2": ours("For more than 0.4 of the inputs the margin at the FGM point exceeds twice the "
                    "gap after FGM, and for fewer than 0.1 after as many more clean steps"),
        "C.2": ours("More neurons are in S_sure+ after training against FGM than after as many "
                    "more clean steps, by more than 0.05 per atom"),
        "C.13": identity("L_j is never above sum_i |<w_i, M_j>|: units are 1-Lipschitz"),
    }  # fmt: skip


ABOUT = lab.About(
    paper="purification",
    item="Theorem C.2, Lemmas C.7-C.11, C.14-C.17, C.19, C.20, E.2, F.11, Proposition F.8, "
    "Corollary F.2",
    title="Both sides of the appendix's lemmas, and the constants they imply",
    seconds={"smoke": 4, "laptop": 200, "paper": 900},
    looks=2,
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
        """The preset `random` at this dimension."""
        full = scaled(self.d)
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
    """One row per seed and stage: both sides of each lemma, and shares that hold; and one per
    seed, growth lemma and step of clean training."""
    problem = SparseProblem.draw(case.preset, case.seeds, f"{NAME}/{case.d}", case.tests)
    nets = problem.networks()
    stages = {START: frozen(nets)}
    problem.train_clean(nets)
    stages[CLEAN], more = frozen(nets), deepcopy(nets)
    problem.train_adversarial(nets, attack=PAPER_FGM)
    problem.train_control(more)
    stages |= {FGM: frozen(nets), CONTROL: frozen(more)}
    rows = []
    for stage, one in stages.items():
        found = both_sides(problem, one, stages[CLEAN])
        row = {"seed": list(case.seeds), "stage": stage, "k": case.preset.data.k}
        rows.append(pl.DataFrame(row | {name: v.double().numpy() for name, v in found.items()}))
    along = growth(case.preset, case.seeds, f"{NAME}/{case.d} growth", case.points)
    rows.append(along.with_columns(stage=pl.lit(ALONG), k=pl.lit(case.preset.data.k)))
    return pl.concat(rows, how="diagonal_relaxed")


def figure(table: pl.DataFrame) -> AnyChart:
    after = [stage for stage in STAGES if stage != START]
    shown = table.filter(pl.col("stage").is_in(after))
    orders = [(label, name) for label, (name, _) in ORDERS.items()]
    orders.insert(2, ("C.19", "open"))
    charts: list[AnyChart] = [
        curves(shown, "d", name, "stage", title=f"{label}: {name}", x_title="dimension d",
               y_title="left / right, constants 1", log_x=True, log_y=True)
        for label, name in orders
    ]  # fmt: skip
    shares = {"Lipschitz holds": "C.20: atoms with L_j below its bound",
              "leftovers": "C.19: leftovers of at most b/10",
              "FGM floor": "F.2: margin above twice the gap",
              "sure+ per atom": "C.2: sure neurons per atom"}  # fmt: skip
    charts += [
        curves(shown, "d", name, "stage", title=title, x_title="dimension d",
               y_title="count" if "per atom" in name else "share", log_x=True)
        for name, title in shares.items()
    ]  # fmt: skip
    return stacked(panels(charts, columns=3), panels(_growth_charts(table), columns=3))


def _growth_charts(table: pl.DataFrame) -> list[AnyChart]:
    """What growth lemmas imply at each d, and along training at the largest."""
    rows = at_growth(table)
    words = {"y_title": "left / right, constants 1", "log_y": True}
    found: list[AnyChart] = []
    for phase in (1, 2):
        mine = [lemma for lemma, (_, its) in LEMMAS.items() if its == phase]
        title = f"Growth per step, phase {'I' * phase}"
        found.append(curves(rows.filter(pl.col("lemma").is_in(mine)), "d", "constant", "lemma",
                            title=title, x_title="dimension d", log_x=True, **words))  # fmt: skip
    largest = table["d"].max()
    along = table.filter((pl.col("stage") == ALONG) & (pl.col("d") == largest))
    late = along.filter(pl.col("lemma").is_in([one for one in LEMMAS if LEMMAS[one][1] == 2]))
    found.append(curves(late, "share", "constant", "lemma", title=f"Phase II, d = {largest}",
                        x_title="share of clean training", **words))  # fmt: skip
    return found


def at_growth(table: pl.DataFrame) -> pl.DataFrame:
    """The constant that each growth lemma needs in its phase: the largest for O, the least mean
    for Theta; one row per seed, d and lemma."""
    rows = table.filter((pl.col("stage") == ALONG) & pl.col("constant").is_finite())
    signal = pl.col("lemma").is_in([one for one in LEMMAS if LEMMAS[one][0] == SIGNAL])
    order = pl.when(signal).then(pl.col("constant")).otherwise(-pl.col("constant"))
    worst = (
        rows.with_columns(order=order).sort("order").unique(["d", "seed", "lemma"], keep="first")
    )
    ranks = pl.DataFrame({"lemma": list(LEMMAS)}).with_row_index("rank")
    return worst.join(ranks, on="lemma").sort("d", "seed", "rank").drop("order", "rank")


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    return assumptions_of({f"d = {d}": scaled(d) for d in table["d"].unique().sort().to_list()})


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims = Claims(ABOUT.claims)

    def at(label: str) -> pl.DataFrame:
        return table.filter(stage=FGM if label in AFTER else CLEAN)

    def of(stage: str, column: str) -> dict[str, pl.Series]:
        rows = table.filter(stage=stage)
        return {
            f"d = {d}": sample(rows.filter(d=d).sort("seed"), column)  # type: ignore[dict-item]
            for d in sorted(table["d"].unique().to_list())
        }

    def beside(words: str, column: str, stage: str, bound: float, sign: int) -> dict:
        return {f"{words}, {d}": sign * (values - bound)
                for d, values in of(stage, column).items()}  # fmt: skip

    orders = [
        implied(claims.trend(label, slopes(at(label), "d", name), what=f"exponent of {name} in d"),
                at(label), name)
        for label, (name, _) in ORDERS.items()
    ]  # fmt: skip
    grown = at_growth(table)
    for label, (grows, _) in LEMMAS.items():
        rows = grown.filter(lemma=label)
        found = slopes(rows, "d", "constant") if rows["d"].n_unique() > 1 else None
        what = f"exponent in d of the constant for {grows} growth"
        orders.append(implied(claims.trend(label, found, what=what), rows))
    left, holds, floor = "what is left to the bound", "Lipschitz holds", "FGM floor"
    excess = table["Lipschitz excess"].drop_nulls().to_list()
    pure, mixed = of(FGM, "sure+ per atom"), of(CONTROL, "sure+ per atom")
    more = {d: pure[d] - mixed[d] for d in pure}
    return [
        *orders,
        claims.above("C.20/1", beside("share, above 0.9", holds, FGM, 0.9, 1) |
                     beside("after clean training, below 0.5", holds, CLEAN, 0.5, -1), 0,
                     what=left),
        claims.below("C.19/1", of(CLEAN, "near"), 10, what="neurons with |<w_i, x>| >= b/10, by k"),
        claims.above("C.19/b", of(CLEAN, "leftovers"), 0.9, what="share of leftovers up to b/10"),
        claims.above("F.2", beside("share, above 0.4", floor, FGM, 0.4, 1) |
                     beside("control, below 0.1", floor, CONTROL, 0.1, -1), 0, what=left),
        claims.above("C.2", more, 0.05, what="neurons in S_sure+ per atom, over the control's"),
        claims.below("C.13", max(excess, default=None), 1e-4,
                     what="largest L_j less sum_i |<w_i, M_j>|, over the latter"),
    ]  # fmt: skip


def implied(verdict: Verdict, rows: pl.DataFrame, name: str = "") -> Verdict:
    """The verdict with both sides and the constant at each d, means over seeds, in its note.

    Args:
        verdict: about the exponent.
        rows: one per seed and d.
        name: of the lemma's columns; those of a growth lemma are "left", "right" and "constant".
    """
    left, right, ratio = f"{name} left".strip(), f"{name} right".strip(), name or "constant"
    said = [
        f"at d = {d} {mean[left]:.3g} over {mean[right]:.3g}, constant {mean[ratio]:.3g}"
        for (d,), some in sorted(rows.partition_by("d", as_dict=True).items())
        for mean in some.select(left, right, ratio).mean().iter_rows(named=True)
    ]
    note = "; ".join(filter(None, (verdict.note, *said)))
    return verdict.model_copy(update={"note": note})
