"""What a run owes to a comparator: the proofs of Theorems 4.1 and 5.1 as audits of a run.

Top: the mean loss of the steps so far, and the regret inequality's bound on it in its four parts:
the comparator's loss on the same attacked inputs, the distance to it, the length of the gradients,
and what f is off its linearisation. It holds for every network, attack and comparator in the set
(the step behind Theorem 4.1), so a violation would be a bug. Every term is computed from the run.

Bottom: the smallest loss so far against the explicit bound of Theorem 5.1 with its constants. It
never fails and is loose; with wide networks and small steps it falls below the loss at the start.
"""

import polars as pl

from .... import lab
from ....report import Assumption, Claims, Verdict, identity, ours, theorem
from ....report.charts import AnyChart, curves, panels
from ....report.samples import ends
from .. import theory
from ._parts.conditions import data_conditions
from ._parts.regret_audit_runs import NAME, audited, descent
from ._parts.regret_audit_runs import Case as Case

ABOUT = lab.About(
    paper="convergence",
    item="Proofs of Theorems 4.1 and 5.1",
    title="Every run obeys its audit, and the explicit bound",
    seconds={"smoke": 6, "laptop": 345, "paper": 2400},
    looks=1,
    claims={
        "3": theorem("Each step obeys the descent inequality of Theorem 5.1"),
        "4": theorem("The smallest loss is below the explicit bound of Theorem 5.1"),
        "5a": theorem("The regret inequality holds in every run, deep and projected ones too"),
        "5b": identity(
            "and its identity, before the inequalities, holds to rounding, as do loss, gradient "
            "and the projected update of every step"
        ),
        "c": ours(
            "With width 16384 and rate 0.05 the explicit bound is on average below the loss at the "
            "start"
        ),
    },
)
WIDE = {"width": 16384, "rate": 0.05, "steps": 1810}
"""T = sqrt(m)/(c alpha) for this width and rate."""


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    shallow, deep, usual, steps, wide = {
        "smoke": ((16,), (8,), 2, (10, 10), []),
        "laptop": ((64, 256, 1024), (64, 256), 5, (1500, 400), [WIDE]),
        "paper": ((64, 256, 1024, 4096), (64, 256, 512), 20, (1500, 400), [WIDE]),
    }[scale]
    attacks, radii = (
        (("pgd",), (1.0,)) if scale == "smoke" else (("pgd", "random"), (1.0, 3.0, 10.0))
    )
    settings = [
        *wide,
        *(
            {"attack": attack, "width": width, "rate": rate, "steps": steps[0]}
            for width in shallow
            for rate in (0.5, 0.05)
            for attack in (*attacks, "switch")
        ),
        *(
            {"attack": attack, "width": width, "depth": depth, "R": R, "steps": steps[1]}
            | {"d": 5, "rate": 0.3}
            for width in deep
            for depth in (1, 2)
            for R in radii
            for attack in attacks
        ),
    ]
    searched = 10 if scale == "smoke" else 300
    return [
        Case(**one, **block, searched=searched)
        for one in settings
        for block in lab.blocks(seeds or (3 if one is WIDE else usual), 5)
    ]


def compute(case: Case) -> pl.DataFrame:
    return audited(case)


def figure(table: pl.DataFrame) -> AnyChart:
    two, deep = table.filter(depth=0, attack="pgd"), table.filter(depth=2, R=1.0, attack="pgd")
    rate, width = max(two["rate"]), max(deep["width"])
    chosen = two.filter(rate=rate).filter(pl.col("width") == pl.col("width").max())
    charts = [
        _parts(chosen, f"two layers, width {chosen['width'][0]}, rate {rate:g}, PGD"),
        _parts(deep.filter(width=width), f"two hidden layers, width {width}, R = 1, PGD"),
        *(
            _bounds(two.filter(rate=rate), f"rate {rate:g}")
            for rate in sorted(set(two["rate"]))[::-1]
        ),
    ]
    return panels(charts, columns=2)


def _parts(table: pl.DataFrame, title: str) -> AnyChart:
    names = {
        "mean_loss": "mean loss",
        "bound": "bound",
        "comparator_part": "comparator",
        "distance_part": "distance",
        "gradient_part": "gradients",
        "linearisation_part": "linearisation",
    }
    long = table.unpivot(list(names), index=["step", "seed"], variable_name="term")
    long = long.with_columns(pl.col("term").replace_strict(names))
    return curves(
        long,
        "step",
        "value",
        "term",
        title=title,
        x_title="iterations",
        y_title="mean over the steps so far",
        log_x=True,
        log_y=True,
        band="quartiles",
    )


def _bounds(table: pl.DataFrame, title: str) -> AnyChart:
    bound = table.group_by("step", "width").agg(best=pl.col("theorem").mean())
    return curves(
        table.sort("width"),
        "step",
        "best",
        "width",
        theory=bound.sort("width", "step"),
        title=f"Theorem 5.1 (dashed), {title}",
        x_title="iterations T",
        y_title="min over t < T of L_A",
        log_x=True,
        log_y=True,
    )


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, two = Claims(ABOUT.claims), table.filter(depth=0)
    last, finished = ends(table), ends(two)
    gap = two.select((pl.col("theorem") - pl.col("best")).min()).item()
    rests = table.select((pl.col("bound") - pl.col("mean_loss")).min()).item()
    wide = finished.filter(width=WIDE["width"], rate=WIDE["rate"], attack="pgd").sort("seed")
    starts = two.filter(step=1, width=WIDE["width"], rate=WIDE["rate"], attack="pgd").sort("seed")
    runs = f"of {last.height} runs"
    broken = int(last["violations"].sum())
    residual = float(last["residual"].to_numpy().max())
    return [
        claims.above(
            "3",
            float(finished["slack"].to_numpy().min()),
            -1e-9,
            what=f"smallest slack of a step of {finished.height} two-layer runs",
        ),
        claims.above(
            "4",
            gap,
            0,
            what=f"smallest bound less loss, in any step of {finished.height} two-layer runs,",
        ),
        claims.above(
            "5a",
            rests,
            0,
            what=f"smallest bound less mean loss, {runs},",
        ),
        claims.below(
            "5b",
            residual + broken,
            1e-8,
            what=f"largest gap between the sides of the identity plus violations, {runs},",
        ),
        claims.below(
            "c",
            wide["theorem"] / starts["loss"],
            1,
            what="explicit bound over the loss at the start",
        ),
    ]


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """Sections 3 and 5: compatible caps, and Theorem 5.1 for the widest two-layer run with PGD."""
    found = data_conditions(table, NAME)
    two = table.filter(depth=0, attack="pgd").filter(pl.col("width") == pl.col("width").max())
    two = two.filter(pl.col("rate") == pl.col("rate").min())
    last, first = ends(two), two.filter(step=1)
    if last.is_empty():
        return found
    row = last.select(pl.col("start", "worst").mean()).row(0, named=True)
    run = descent(int(last["width"][0]), float(last["rate"][0]))
    start = float(first["loss"].to_numpy().mean())
    steps = int(last["steps"][0])
    return found + theory.two_layer_theorem(run, steps, row["start"], row["worst"], start)
