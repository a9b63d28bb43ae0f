"""What dense mixtures cause: removed, transplanted and dosed by hand, without any training.

Section 6.2 and Theorem 5.2: clean networks fall to attacks because every neuron carries a small
multiple of M w*; Theorem 5.3: adversarial training makes networks robust by taking it away. That
the mixture goes while robustness comes is a correlation. Here the part of each neuron along
v = M w*/|M w*| is set by hand, w_i <- w_i + (s - 1) <w_i, v> v, and nothing else:

- removed (s = 0) from the clean network. As controls: its parts along a random direction, which
  are much shorter; vectors of the same lengths and signs, <w_i, v> u, that are subtracted along a
  random direction u that all neurons share, or along one of each neuron's own; and neurons that are
  only as short as the removal makes them (with a fixed bias shorter neurons answer less);
- transplanted: the adversarial network gets the clean network's part along v, and the reverse; as
  controls, parts of the same size along a random direction of each neuron's own, and along one that
  all neurons share;
- dosed: s from 0 to 2.

Beside them: the adversarial network without its recruits (neurons that came alive in adversarial
training), with its new lengths on the clean network's directions and the reverse (is it the size of
neurons or their direction that matters?), and the control of as many more clean steps.

Were mixtures the whole cause, s = 0 would make a clean network as robust as training does, the
worst accuracy would be highest there, shorter neurons would give nothing, and the transplant would
do more harm than random parts of its size. What each of them does is measured against what
adversarial training gains. The length of neurons is not held fixed by the removal: what it gives
beyond shortening alone is `remove/shorter`. "Worst" is the worst case over the universal direction,
FGM and PGD from four starts: an upper bound of the robust accuracy.
"""

from copy import deepcopy
from dataclasses import replace

import altair as alt
import polars as pl
import torch
from pydantic import PositiveInt
from torch import Tensor

from .... import lab
from ....core.randomness import generators, normal
from ....report import Assumption, Claims, Verdict, empirical, identity, ours, sample
from ....report.charts import HEIGHT, WIDTH, AnyChart, curves, panels
from .. import measures
from ._parts.conditions import assumptions_of
from ._parts.presets import SparseProblem, scaled
from ._parts.two_phase_runs import TINY, ScaledCase, columns, frozen

CLEAN, PURE, CONTROL = "clean", "adversarial", "more clean steps"
REMOVED, OTHER = "clean without M w*", "clean without another direction"
MATCHED, OWN = "clean less as much of one other direction", "clean less as much of one each"
SHORTER = "clean, as short as without M w*"
MATCHES = (MATCHED, OWN, SHORTER)
"""The controls that change every neuron as much as the removal does, or make it as short."""
GIVEN, TAKEN = "adversarial with clean M w*", "clean with adversarial M w*"
SHARED = "adversarial with one other direction for all"
NOISE = "adversarial with another direction each"
FEWER = "adversarial without recruits"
LENGTHS, DIRECTIONS = "clean with adversarial lengths", "adversarial with clean lengths"
TAKEN_OUT = (REMOVED, OTHER, *MATCHES)
SHARE = "worst accuracy gained, over what adversarial training gains"
ORDER = (
    CLEAN,
    CONTROL,
    OTHER,
    *MATCHES,
    LENGTHS,
    TAKEN,
    REMOVED,
    PURE,
    FEWER,
    DIRECTIONS,
    NOISE,
    SHARED,
    GIVEN,
)
DOSES = (0.0, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0)
DECIDED = (0.25, 1.5)
"""Between which doses the worst accuracy is asked to fall."""
NAME = "purification/causality, each dose"

ABOUT = lab.About(
    paper="purification",
    item="Section 6.2, Theorems 5.2 and 5.3, by intervention",
    title="The dense mixture by intervention: removed, transplanted and dosed",
    seconds={"smoke": 3, "laptop": 40, "paper": 700},
    looks=4,
    reduced={
        "laptop": "d = 128 where theorems want d to infinity; draws of small |<w*, z>| rejected",
        "paper": "d = 256 where theorems want d to infinity; draws of small |<w*, z>| rejected",
    },
    claims={
        "remove": ours("Taking M w* out of every neuron of the clean network, without training, "
                       "gives more than half of what adversarial training gains"),
        "remove/control": ours("and taking another direction out, of which neurons hold little, "
                               "gives less than a tenth of it"),
        "remove/matched": ours("nor is it the size of what is taken: vectors of the same lengths "
                               "and signs along one random direction for all neurons give less "
                               "than a tenth, and M w* more than half of the gain beyond that"),
        "remove/own": ours("as do those along a random direction of each neuron's own"),
        "remove/shorter": ours("Nor only that neurons are shorter without it: making them as short "
                               "gives less than M w* does, by more than a tenth of the gain"),
        "transplant": ours("Giving the clean network's M w* to the adversarial one takes away more "
                           "than half of what it had gained"),
        "transplant/control": ours("and parts of the same size, each neuron's in a direction of "
                                   "its own, take less than they do, by more than 0.1 of it"),
        "shared": ours("That all neurons share it does harm: parts of the same size along one "
                       "random direction for all take more than half, and more than those along a "
                       "direction of each neuron's own, by more than 0.1 of the gain"),
        "dose": ours("Worst accuracy of the clean network falls from each dose of its own M w* to "
                     f"the next, from {DECIDED[0]} to {DECIDED[1]}"),
        "dose/none": ours("and is highest without any: higher at dose 0 than at dose "
                          f"{DECIDED[0]}"),
        "clean": ours("The mixture is hardly needed: without it more than 0.85 of clean inputs are "
                      "right"),
        "recruits": empirical("No new features are needed: without neurons that came alive more "
                              "than 0.85 of the gain stays"),
        "lengths": ours("Purification also shortens neurons, and that matters: with the lengths of "
                        "the adversarial network alone the clean one gains more than half, and "
                        "with those of the clean one the adversarial one loses more than half"),
        "more_clean": ours("It is not time: as many more clean steps gain less than a tenth"),
        "projection": identity("After the removal no neuron has a part along M w*"),
        "same_size": identity("The controls of the removal's size take as much of every neuron as "
                              "it does, and the one of its lengths leaves as much"),
    },
)  # fmt: skip


class Case(ScaledCase):
    """Both phases of the preset `random`, and what is made of their networks."""

    tests: PositiveInt = 500


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    usual, some = {"smoke": (2, TINY), "laptop": (20, {"d": 128}), "paper": (10, {})}[scale]
    return [Case(**some, **block) for block in lab.blocks(seeds or usual, 1)]


def compute(case: Case) -> pl.DataFrame:
    """Rows (seed, network, dose, accuracies): doses are of the clean network's own M w*."""
    problem = case.problem(NAME)
    nets = problem.networks()
    problem.train_clean(nets)
    clean, more = frozen(nets), deepcopy(nets)
    problem.train_adversarial(nets)
    problem.train_control(more)
    made = interventions(problem, clean, frozen(nets), frozen(more))
    errors = {name: {"size error": off} for name, off in size_errors(made).items()}
    rows = [_judged(case, problem, one, errors.get(name, {})).with_columns(network=pl.lit(name))
            for name, one in made.items()]  # fmt: skip
    for dose in DOSES:
        weight = scaled_part(clean.weight, problem.direction, dose)
        row = _judged(case, problem, replace(clean, weight=weight), {})
        rows.append(row.with_columns(network=pl.lit("dosed"), dose=pl.lit(dose)))
    return pl.concat(rows, how="diagonal")


def interventions(
    problem: SparseProblem, clean: measures.Nets, pure: measures.Nets, control: measures.Nets
) -> dict[str, measures.Nets]:
    """The networks that are made by hand, and those they are made of, by name.

    Args:
        problem: whose M w* is the direction.
        clean: networks after clean training.
        pure: the same after adversarial training.
        control: the same after as many more clean steps.
    """
    before, after, way = clean.weight, pure.weight, problem.direction
    rngs = generators(problem.stream, "another direction", seeds=problem.seeds)
    other = normal(torch.empty_like(way), rngs)
    mixed, left = along(before, way), along(after, way)
    size = mixed.norm(dim=-1, keepdim=True)
    each = normal(torch.empty_like(before), generators(problem.stream, "each", seeds=problem.seeds))
    new = measures.turnover(before, after, problem.M).recruits[..., None]
    longer = after.norm(dim=-1, keepdim=True) / before.norm(dim=-1, keepdim=True)
    shared, own = measures.unit(other)[..., None, :], measures.unit(each)
    parts = measures.label_parts(before, measures.unit(way))[..., None]
    shorter = (before - mixed).norm(dim=-1, keepdim=True) / before.norm(dim=-1, keepdim=True)
    made = {
        REMOVED: before - mixed,
        OTHER: scaled_part(before, other, 0.0),
        MATCHED: before - parts * shared,
        OWN: before - parts * own,
        SHORTER: before * shorter,
        GIVEN: after - left + mixed,
        TAKEN: before - mixed + left,
        SHARED: after - left + size * shared,
        NOISE: after - left + size * own,
        FEWER: after.masked_fill(new, 0.0),
        LENGTHS: before * longer,
        DIRECTIONS: after / longer,
    }
    found = {name: replace(clean, weight=weight) for name, weight in made.items()}
    return {CLEAN: clean, PURE: pure, CONTROL: control} | found


def size_errors(made: dict[str, measures.Nets]) -> dict[str, Tensor]:
    """How far any neuron of a control of the removal's size is from that size, by control: from the
    length of what the removal takes, or, where neurons are only shortened, from what it leaves.

    Args:
        made: the networks of `interventions`.
    """
    before, removed = made[CLEAN].weight, made[REMOVED].weight
    taken, left = (removed - before).norm(dim=-1), removed.norm(dim=-1)
    found = {name: (made[name].weight - before).norm(dim=-1) - taken for name in (MATCHED, OWN)}
    found[SHORTER] = made[SHORTER].weight.norm(dim=-1) - left
    return {name: errors.abs().amax(-1) for name, errors in found.items()}


def along(weight: Tensor, direction: Tensor) -> Tensor:
    """<w_i, v> v for the unit vector v of a direction."""
    v = measures.unit(direction)
    return measures.label_parts(weight, v)[..., None] * v[..., None, :]


def scaled_part(weight: Tensor, direction: Tensor, dose: float) -> Tensor:
    """The neurons with their part along the direction times `dose`."""
    return weight + (dose - 1) * along(weight, direction)


def _judged(
    case: Case, problem: SparseProblem, nets: measures.Nets, more: dict[str, Tensor]
) -> pl.DataFrame:
    """One row per seed: accuracies, parts along M w* and dense parts; and `more` columns."""
    rngs = generators(problem.stream, "worst", seeds=problem.seeds)
    found = measures.survival(nets, problem.test_x, problem.test_y, problem.preset.ball,
                              problem.direction, rngs, case.pgd_steps).accuracies()  # fmt: skip
    parts = measures.label_parts(nets.weight, measures.unit(problem.direction))
    found["largest part"] = parts.abs().amax(-1)
    A = measures.coordinates(nets.weight, problem.M)
    ratio = measures.dense_over_top(A, problem.w)
    found["dense over top"] = measures.spread(ratio, 0.0, measures.alive(nets.weight)).mean
    return pl.DataFrame({"seed": list(problem.seeds)} | columns(found | more))


def figure(table: pl.DataFrame) -> AnyChart:
    made = table.filter(pl.col("network") != "dosed")
    order = pl.DataFrame({"network": list(ORDER)}).with_row_index("rank")
    made = made.join(order, on="network").sort("rank")
    names = {"clean": "clean", "worst": "worst case"}
    long = made.unpivot(list(names), index=["network", "seed"], variable_name="accuracy")
    long = long.with_columns(pl.col("accuracy").replace_strict(names))
    dosed = table.filter(network="dosed")
    doses = dosed.unpivot(
        ["clean", "universal", "worst"], index=["dose", "seed"], variable_name="attack"
    ).with_columns(pl.col("attack").replace({"clean": "none", "worst": "worst case"}))
    ends = [made.filter(network=name).select("seed", end="worst") for name in (CLEAN, PURE)]
    first, last = pl.col("end"), pl.col("end_right")
    share = ((pl.col("worst") - first) / (last - first)).alias("share of the gain")
    taken = made.filter(pl.col("network").is_in(TAKEN_OUT))
    taken = taken.join(ends[0], on="seed").join(ends[1], on="seed").with_columns(share)
    return panels(
        [
            _by_network(long, "value", "accuracy", "Made by hand, without training"),
            _by_network(made, "dense over top", None, "Dense part over the top atom"),
            curves(doses, "dose", "value", "attack", title="Dose of M w* in the clean network",
                   x_title="times its own part along M w*", y_title="accuracy"),
            _by_network(taken, "share of the gain", None, "Taken out of the clean network", True),
        ]
    ).resolve_scale(color="independent")  # fmt: skip


def _by_network(
    rows: pl.DataFrame, value: str, color: str | None, title: str, named: bool = False
) -> AnyChart:
    """Means over seeds, a line per network: their names are long, and stand where they are asked
    for or where there are colours."""
    by = ["network", *([color] if color else [])]
    means = rows.group_by(by, maintain_order=True).agg(pl.col(value).mean())
    # The panel beside has the same lines: names stand once.
    axis = alt.Axis(labelLimit=320, labelOverlap=False, labels=named or color is not None)
    chart = alt.Chart(means, title=title, width=WIDTH, height=HEIGHT)
    chart = chart.mark_point(filled=True, size=60, opacity=1).encode(
        x=alt.X(f"{value}:Q", title=value if color is None else "accuracy (worst: upper bound)"),
        y=alt.Y("network:N", sort=list(ORDER), title=None, axis=axis),
    )
    if color is None:
        return chart
    names = means[color].unique(maintain_order=True).to_list()
    return chart.encode(color=alt.Color(f"{color}:N", title=color, sort=names))


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    return assumptions_of({f"d = {d}": scaled(d) for d in table["d"].unique().sort().to_list()})


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims = Claims(ABOUT.claims)

    def of(name: str, column: str = "worst") -> pl.Series:
        return sample(table.filter(network=name).sort("seed"), column)  # type: ignore[return-value]

    gain = of(PURE) - of(CLEAN)

    def gained(name: str) -> pl.Series:
        return (of(name) - of(CLEAN)) / gain

    def lost(name: str) -> pl.Series:
        return (of(PURE) - of(name)) / gain

    def dosed(dose: float) -> pl.Series:
        rows = table.filter(pl.col("network") == "dosed", pl.col("dose") == dose).sort("seed")
        return sample(rows, "worst")  # type: ignore[return-value]

    loss = "worst accuracy lost, over what adversarial training gains"
    doses = table.filter((pl.col("network") == "dosed") & pl.col("dose").is_between(*DECIDED))
    removed = table.filter(network=REMOVED)["largest part"].drop_nulls().to_list()
    left = max(removed) if removed else None
    errors = table["size error"].drop_nulls().to_list()
    stays = {"share of the gain, above 0.85": gained(FEWER) - 0.85, "gain, above 0.3": gain - 0.3}
    return [
        *_removals(claims, {name: gained(name) for name in TAKEN_OUT}, gain),
        claims.above("transplant", {"share, above a half": lost(GIVEN) - 0.5,
                                    "gain of adversarial training, above 0.3": gain - 0.3}, 0,
                     what=f"{loss}, and what is left to the bounds"),
        claims.above("transplant/control", lost(GIVEN) - lost(NOISE), 0.1,
                     what=f"{loss}: M w* less directions of their own"),
        claims.above("shared", {"share, above a half": lost(SHARED) - 0.5,
                                "beyond one direction each, above 0.1":
                                    lost(SHARED) - lost(NOISE) - 0.1,
                                "gain of adversarial training, above 0.3": gain - 0.3}, 0,
                     what=f"{loss}, and what is left to the bounds"),
        claims.decreasing("dose", doses, "dose", "worst", what="worst accuracy"),
        claims.above("dose/none", dosed(0.0) - dosed(DECIDED[0]), 0,
                     what=f"worst accuracy at dose 0 less that at {DECIDED[0]}"),
        claims.above("clean", {"clean accuracy, above 0.85": of(REMOVED, "clean") - 0.85,
                               "dense/top, below a quarter": of(CLEAN, "dense over top") / 4 -
                               of(REMOVED, "dense over top").abs()}, 0,
                     what="what is left to the bounds"),
        claims.above("recruits", stays, 0, what="what is left to the bounds"),
        claims.above("lengths", {"gained with them, above a half": gained(LENGTHS) - 0.5,
                                 "lost without, above a half": lost(DIRECTIONS) - 0.5,
                                 "gain of adversarial training, above 0.3": gain - 0.3}, 0,
                     what=f"{SHARE}, and what is left to the bounds"),
        claims.below("more_clean", gained(CONTROL), 0.1, what=SHARE),
        claims.below("projection", left, 1e-4, what="largest |<w_i, v>| of any neuron and seed"),
        claims.below("same_size", max(errors, default=None), 1e-4,
                     what="largest error of a control's size, of any neuron and seed"),
    ]  # fmt: skip


def _removals(claims: Claims, gained: dict[str, pl.Series], gain: pl.Series) -> list[Verdict]:
    """What is taken out of the clean network: M w*, and the controls.

    Args:
        claims: where verdicts are made.
        gained: the worst accuracy that each gives, over what adversarial training gains.
        gain: what adversarial training gains.
    """
    removed = gained[REMOVED]
    bounds = {"share, above a half": removed - 0.5,
              "gain of adversarial training, above 0.3": gain - 0.3}  # fmt: skip
    found = [
        claims.above("remove", bounds, 0, what=f"{SHARE}, and what is left to the bounds"),
        claims.below("remove/control", gained[OTHER], 0.1, what=SHARE),
    ]
    for label, name in (("remove/matched", MATCHED), ("remove/own", OWN)):
        parts = {"a tenth less its share": 0.1 - gained[name],
                 "M w* beyond it, above a half": removed - gained[name] - 0.5}  # fmt: skip
        found.append(claims.above(label, parts, 0, what="share of the gain, left to the bounds"))
    shorter = claims.above("remove/shorter", removed - gained[SHORTER], 0.1,
                           what=f"{SHARE}: without M w* less as short")  # fmt: skip
    return [*found, shorter]
