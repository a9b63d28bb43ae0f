"""Figure 2: neurons leave their start, and adversarial training keeps what clean training found.

theta(a, b) = |<a, b>| / (|a| |b|) between the weights of a neuron at the start (w0), after clean
training (w) and after adversarial training from there (w'), and between different neurons. The
principle (section 1): for most neurons theta(w0, w) and theta(w0, w') are at most 0.2 and theta(w,
w') is at least 0.8; for most pairs theta(w_i, w_j) is at most 0.2. Figure 2 has it for the first
layer of AlexNet and, by three stages, for layers of ResNet-34; the latter is `purification/fig11`
here.

Two things that the paper does not show decide what this is worth, and stand beside it: theta(w, w')
after as many more clean epochs (control), and the scale of the start. Under BatchNorm a smaller
start gives the same network, and its filters turn further from where they began.

At paper scale AlexNet is trained against l2(1, 0.25) from its own start: a GPU is expected, about
an hour per seed on one.
"""

import polars as pl

from .... import lab
from ....measure.correlations import (
    neuron_correlations,
    pair_correlations,
    stage_correlations,
)
from ....report import Claim, Claims, Verdict, empirical, ours
from ....report.charts import AnyChart, panels, points
from ._parts import image_scales as scales
from ._parts.image_runs import ImageSettings, Trainings
from ._parts.image_scales import Stage, histories

SCALES = (0.1, 1.0)
"""Of the first layer's start: ours, and PyTorch's own."""
STAGES: tuple[Stage, ...] = ("start", "clean", "control", "adversarial")
MOST = 0.5
RULES: dict[str, Claim] = {
    "left": empirical("Most neurons leave their start: theta(w0, w) and theta(w0, w') are below "
                      "0.2 for more than half"),
    "kept": empirical("and adversarial training keeps them: theta(w, w') is above 0.8 for more "
                      "than half, which as many more clean epochs do as well"),
    "gap": empirical("and theta(w, w') is more than 0.3 above theta(w0, w') on average"),
    "pairs": empirical("Most pairs differ: theta(w_i, w_j) is below 0.2 for more than half of "
                       "them, after clean and after adversarial training"),
    "turned": ours("Adversarial training turns neurons more than its control does: theta(w, w') is "
                   "more than 0.01 below that of as many more clean epochs"),
}  # fmt: skip
ABOUT = lab.About(
    paper="purification",
    item="Figure 2, first layer",
    title="Neurons leave their start and are kept by adversarial training",
    seconds={"smoke": 15, "laptop": 460, "paper": 12_000},
    data=scales.DATA,
    looks=1,
    reduced=scales.reduced("AlexNet"),
    claims={
        f"{name}/{scale:g}": claim.model_copy(
            update={"words": f"{claim.words} (start scaled by {scale:g})"}
        )
        for scale in SCALES
        for name, claim in RULES.items()
    },
)


class Case(ImageSettings):
    """The settings of the trainings alone."""


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    starts = (1.0,) if scale == "paper" else SCALES
    return [
        case.model_copy(update={"start_scale": start})
        for start in starts
        for case in scales.cases(Case, scale, seeds, "AlexNet")
    ]


def compute(case: Case) -> pl.DataFrame:
    """theta between stages (part "theta"), and the numbers that decide (part "end")."""
    trainings, layer = Trainings(case), case.first_layer
    known = histories(case)
    nets = {name: trainings.network(*known[name]) for name in STAGES}
    moved = neuron_correlations(nets["clean"], nets["adversarial"], layer)
    from_start = {
        name: neuron_correlations(nets["start"], nets[name], layer)
        for name in ("clean", "adversarial")
    }
    pairs = {name: pair_correlations(nets[name], layer).below for name in ("clean", "adversarial")}
    numbers = {
        **{f"{name}: left": one.share_below(0.2) for name, one in from_start.items()},
        **{f"{name}: pairs": share for name, share in pairs.items()},
        "kept": moved.share_above(0.8),
        "control: kept": neuron_correlations(nets["clean"], nets["control"], layer).share_above(
            0.8
        ),
        "theta(w, w')": moved.mean,
        "theta(w0, w)": from_start["clean"].mean,
        "theta(w0, w')": from_start["adversarial"].mean,
        "control: theta(w, w')": neuron_correlations(nets["clean"], nets["control"], layer).mean,
    }
    thetas = pl.DataFrame(stage_correlations(nets, [layer])).with_columns(part=pl.lit("theta"))
    return pl.concat([thetas, scales.end_row(case, numbers)], how="diagonal")


PAIRS = {
    ("start", "clean"): "w0, w",
    ("start", "adversarial"): "w0, w'",
    ("clean", "adversarial"): "w, w'",
    ("clean", "control"): "w, control",
}
"""What the figure compares, in the paper's letters."""


def figure(table: pl.DataFrame) -> AnyChart:
    names = pl.DataFrame(
        [(*pair, name) for pair, name in PAIRS.items()],
        schema=["before", "after", "pair"],
        orient="row",
    )
    rows = names.join(table.filter(part="theta"), on=["before", "after"], maintain_order="left")
    rows = rows.with_columns(start=pl.format("scaled by {}", "start_scale"))
    looks = {
        "mean": "mean theta of the same neuron",
        "above": "share of neurons with theta above 0.8",
        "below": "share of neurons with theta below 0.2",
        "others": "mean theta of unrelated neurons",
    }
    charts = [
        points(rows, "pair", column, "start", y_title=words, x_title="theta between")
        for column, words in looks.items()
    ]
    return panels(charts, columns=2)


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    return [one for scale in SCALES for one in _of_scale(table, scale)]


def _of_scale(table: pl.DataFrame, scale: float) -> list[Verdict]:
    claims, rows = Claims(ABOUT.claims), table.filter(pl.col("start_scale") == scale)
    left, pairs = (
        {name: scales.ended(rows, f"{name}: {column}") for name in ("clean", "adversarial")}
        for column in ("left", "pairs")
    )
    kept, control = (scales.ended(rows, f"{name}theta(w, w')") for name in ("", "control: "))
    gap = kept - scales.ended(rows, "theta(w0, w')")
    return [
        claims.above(f"left/{scale:g}", left, MOST, what="share of neurons with theta below 0.2"),
        claims.above(
            f"kept/{scale:g}", scales.ended(rows, "kept"), MOST,
            what="share of neurons with theta(w, w') above 0.8",
        ),
        claims.above(f"gap/{scale:g}", gap, 0.3, what="theta(w, w') less theta(w0, w')"),
        claims.above(f"pairs/{scale:g}", pairs, MOST, what="share of pairs with theta below 0.2"),
        claims.above(
            f"turned/{scale:g}", control - kept, 0.01, what="control's theta less theta(w, w')"
        ),
    ]  # fmt: skip
