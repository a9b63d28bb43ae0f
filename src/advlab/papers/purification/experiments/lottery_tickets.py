"""Lottery tickets: which neuron ends with which atom is settled at the start (section 6.1).

At the start A = W M is Gaussian, so the sizes of the sets S_sure and S_pot of Definition B.1 have
binomial laws (Lemma B.2 bounds them); means over many starts are compared with them at several d,
to 2.5 %, which laws without the half, the other atoms or the right threshold miss. Then the preset
`random` is trained clean, and the top atom of a neuron at an early step is mostly its atom at the
end: over half of the neurons alive have it before the loss has left log 2. Along the way: how much
of S_sure(0) is in S_sure(t), and how much of S_pot(t) was in S_pot(0) (Theorem C.1), with sigma_w
tied to the growing bias.
"""

from collections.abc import Callable
from math import log

import polars as pl
import torch
from pydantic import PositiveInt
from torch import Tensor, nn

from .... import lab
from ....core.randomness import generators
from ....models import Stack
from ....report import Assumption, Claims, Verdict, identity, ours, sample, theorem
from ....report.charts import AnyChart, curves, panels, points
from ....report.samples import slopes
from ....training import Probe
from .. import measures
from ._parts.conditions import REDUCED, assumptions_of
from ._parts.presets import PRESETS, Preset, SparseProblem

ABOUT = lab.About(
    paper="purification",
    item="Section 6.1, Lemma B.2 and Theorem C.1",
    title="Lottery tickets: which neuron wins which atom",
    seconds={"smoke": 4, "laptop": 80, "paper": 600},
    looks=1,
    reduced=dict.fromkeys(("laptop", "paper"), REDUCED),
    claims={
        "pot": identity("|S_pot| at the start is m p2 on average over atoms, to 2.5 %"),
        "sure": identity("|S_sure| at the start is m (p1/2)(1 - p2)^(d-1) on average, to 2.5 %"),
        "cover": theorem("Every atom has a sure ticket, in the limit"),
        "early": ours("More than half of the tickets of the end are drawn while the loss, which "
                      "ends below half of log 2, has lost less than a twentieth of it"),
        "kept": ours("More than half of the sure tickets of the start end with their atom, in "
                     "networks whose loss ends below half of log 2"),
    },
)  # fmt: skip
NAME = "purification/tickets"
TOLERANCE = 0.025
"""Of a mean set size over its law. Without the factor (1 - p2)^(d-1) the law of sure tickets is 3
to 5 % too large at these d, with p2 for p1 9 % or more, without the half it is twice as large."""
PLATEAU = 0.95
"""The plateau lasts until the loss falls below this share of log 2."""


class Case(lab.Case):
    """Starts of one size, and their clean training if `steps` are given."""

    d: PositiveInt
    width: PositiveInt
    steps: PositiveInt | None = None
    """Clean steps; None looks at the start only."""
    starts: PositiveInt = 1
    """Starts per seed, over which set sizes are averaged."""

    @property
    def cost(self) -> float:
        drawn = self.starts * self.d * self.width / 2**26
        return self.replicates * (drawn + (self.steps or 0) / 100)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    sizes, usual, trained = {
        "smoke": (((64, 320, 4), (128, 640, 2)), 2, (32, 96, 30)),
        "laptop": (((64, 320, 4000), (128, 640, 2000), (256, 1280, 1000), (512, 3072, 400)), 5,
                   (256, 1280, 1000)),
        "paper": (((128, 640, 2000), (256, 1280, 1000), (512, 3072, 400), (1024, 8192, 140)), 10,
                  (256, 1280, 1000)),
    }[scale]  # fmt: skip
    d, width, steps = trained
    return [
        case
        for block in lab.blocks(seeds or usual, 5)
        for case in (
            Case(d=d, width=width, steps=steps, **block),
            *(Case(d=d, width=width, starts=starts, **block) for d, width, starts in sizes),
        )
    ]


def compute(case: Case) -> pl.DataFrame:
    return _start(case) if case.steps is None else _training(case)


def _start(case: Case) -> pl.DataFrame:
    """Counts in Gaussian starts: in the basis of M they are as Gaussian as in any other."""
    rules = measures.TicketRules.of(case.d, case.width)
    rows = []
    for seed, rng in zip(case.seeds, generators(NAME, case.d, seeds=case.seeds), strict=True):
        found = [_counts(case, rules, rng) for _ in range(case.starts)]
        rows.append({"seed": seed} | {name: _mean(found, name) for name in found[0]})
    return pl.DataFrame(rows).with_columns(
        pl.lit(measures.expected_potential(rules, case.width).mean).alias("expected pot"),
        pl.lit(measures.expected_sure(rules, case.width).mean).alias("expected sure"),
        part=pl.lit("start"),
    )


def _counts(case: Case, rules: measures.TicketRules, rng: torch.Generator) -> dict[str, float]:
    """Mean set sizes over the atoms of one start, and the share of atoms with a sure ticket."""
    A = torch.randn(case.width, case.d, generator=rng, dtype=torch.float64)
    sign = torch.randint(2, (case.d,), generator=rng).double() * 2 - 1
    pot, sure = measures.potential(A, rules, 1.0), measures.sure(A, sign, rules, 1.0)
    return {
        "pot": float(pot.sum()) / case.d,
        "sure": float(sure.sum()) / case.d,
        "cover": float(sure.any(0).double().mean()),
    }


def _mean(found: list[dict[str, float]], name: str) -> float:
    return sum(one[name] for one in found) / len(found)


def _training(case: Case) -> pl.DataFrame:
    problem = SparseProblem.draw(_preset(case), case.seeds, f"{NAME}/training", tests=1)
    nets, tops = problem.networks(), []
    probes = _probes(problem, nets, tops)
    steps = case.steps or 0
    seen = {*range(min(steps, 30)), *range(0, steps, 10)}
    fitted = problem.train_clean(nets, Probe(probes, at=seen))
    end = nets.get_parameter("weight").detach()
    alive, final = measures.alive(end), tops[-1]
    kept = torch.stack([_share(top == final, alive) for top in tops])
    table = fitted.log.table(case.seeds).with_columns(
        part=pl.lit("training"), kept=pl.Series(kept.flatten().numpy())
    )
    # A sure ticket is its neuron's top atom at the start: is it still at the end?
    won = _share(tops[0] == final, _sure(problem, problem.networks()).any(-1))
    last = {"seed": list(case.seeds), "step": case.steps, "won": won.numpy()}
    return table.join(pl.DataFrame(last), on=["seed", "step"], how="left")


def _sure(problem: SparseProblem, nets: Stack) -> Tensor:
    rules = measures.TicketRules.of(problem.preset.data.d, problem.preset.width)
    return measures.sure(_atoms(nets, problem), problem.w, rules, problem.preset.sigma0)


def _preset(case: Case) -> Preset:
    full = PRESETS["random"]
    if (case.d, case.width, case.steps) == (full.data.d, full.width, full.clean.steps):
        return full
    data = full.data.model_copy(update={"d": case.d, "k": max(case.d // 9, 1), "n": 600})
    phase = full.clean.model_copy(update={"steps": case.steps})
    return full.model_copy(update={"data": data, "width": case.width, "clean": phase})


def _probes(problem: SparseProblem, nets: Stack, tops: list[Tensor]) -> dict[str, Callable]:
    """Persistence of the sets; the top atoms themselves go into `tops`."""
    rules = measures.TicketRules.of(problem.preset.data.d, problem.preset.width)
    sw = problem.preset.sigma0
    sure, pot = _sure(problem, nets), measures.potential(_atoms(nets, problem), rules, sw)

    def scale(model: nn.Module) -> float:
        return rules.scale(float(model.get_buffer("bias")[0]))

    def sure_kept(model: nn.Module) -> Tensor:
        return measures.share_within(
            sure, measures.sure(_atoms(model, problem), problem.w, rules, scale(model))
        )

    def pot_old(model: nn.Module) -> Tensor:
        return measures.share_within(
            measures.potential(_atoms(model, problem), rules, scale(model)), pot
        )

    def top(model: nn.Module) -> Tensor:
        tops.append(measures.top(_atoms(model, problem)))
        return torch.zeros(len(problem.seeds))

    return {"sure kept": sure_kept, "pot old": pot_old, "top": top}


def _atoms(model: nn.Module, problem: SparseProblem) -> Tensor:
    return measures.coordinates(model.get_parameter("weight").detach(), problem.M)


def _share(same: Tensor, keep: Tensor) -> Tensor:
    return (same & keep).sum(1) / keep.sum(1).clamp(min=1).double()


def plateau_end(table: pl.DataFrame) -> pl.DataFrame:
    """The last probe before the loss leaves the plateau at log 2, one row per seed."""
    left = pl.col("loss") < PLATEAU * log(2)
    first = pl.col("step").filter(left).min().over("seed")
    return (
        table.filter(pl.col("part") == "training")
        .filter(pl.col("step") < first.fill_null(pl.col("step").max() + 1))
        .sort("step")
        .group_by("seed", maintain_order=True)
        .last()
    )


def figure(table: pl.DataFrame) -> AnyChart:
    start = table.filter(pl.col("part") == "start")
    # From 1, for the log axis: what matters happens in the first twenty steps.
    along = table.filter(pl.col("part") == "training").with_columns(pl.col("step") + 1)
    theory = pl.concat(
        start.select("d", pl.lit(label).alias("set"), pl.col(f"expected {name}").alias("size"))
        for name, label in SETS.items()
    )
    sizes = pl.concat(
        start.select("d", "seed", pl.lit(label).alias("set"), pl.col(name).alias("size"))
        for name, label in SETS.items()
    )
    kept = along.unpivot(index=["step", "seed"], on=list(SHARES), variable_name="share of")
    kept = kept.with_columns(pl.col("share of").replace_strict(SHARES))
    charts: list[AnyChart] = [
        points(
            sizes, "d", "size", "set", theory=theory.unique(), title="set sizes at the start",
            x_title="dimension d", y_title="mean size over atoms", log_x=True, log_y=True,
        ),
        curves(
            along, "step", "loss", title="the loss leaves log 2",
            x_title="step of clean training", y_title="loss", log_x=True,
        ),
        curves(
            kept.filter(pl.col("value").is_not_nan()), "step", "value", "share of",
            title="when most neurons have chosen", x_title="step of clean training",
            y_title="share", log_x=True,
        ),
    ]  # fmt: skip
    return panels(charts, columns=3).resolve_scale(color="independent")


SETS = {"pot": "potential", "sure": "sure"}
SHARES = {
    "kept": "have final atom",
    "sure kept": "sure(0) kept",
    "pot old": "pot(t) old",
}


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    return assumptions_of({"random": PRESETS["random"]})


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, start = Claims(ABOUT.claims), table.filter(pl.col("part") == "start")
    found = [
        claims.equal(
            name,
            sample(
                start.with_columns(ratio=pl.col(name) / pl.col(f"expected {name}")), "ratio", by="d"
            ),
            1,
            TOLERANCE,
            what="mean set size over its expectation",
        )
        for name in SETS
    ]
    training = table.filter(pl.col("part") == "training").sort("step")
    last = training.group_by("seed", maintain_order=True).last().sort("seed")
    fallen = 0.5 * log(2) - last["loss"]
    early, won = plateau_end(table).sort("seed"), table.drop_nulls("won").sort("seed")
    left = "what is left to the bound"
    learned = "log 2 / 2 less the last loss"
    return [
        *found,
        claims.trend(
            "cover",
            slopes(start, "d", "cover"),
            what="exponent in d of the share of atoms with a sure ticket",
        ),
        claims.above(
            "early",
            {"share with their final atom at the end of the plateau, less one half":
             early["kept"] - 0.5, learned: fallen},
            0,
            what=left,
        ),
        claims.above(
            "kept",
            {"share of sure tickets that are their neuron's top atom at the end, less one half":
             won["won"] - 0.5, learned: fallen},
            0,
            what=left,
        ),
    ]  # fmt: skip
