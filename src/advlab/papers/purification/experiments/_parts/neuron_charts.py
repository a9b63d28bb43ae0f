"""The picture of purification: the same neurons, in the basis of the dictionary, at each stage.

Coordinates are A_ij sign(w*_j) = <w_i, M_j> sign(w*_j) over the largest of their neuron, so the
dense mixture along M w* shows as a background of one sign. Rows of the heat maps are neurons alive
after the first training, one per atom (the purest), spread evenly from the purest to the least
pure; columns are their own atoms, which make the diagonal, and then other atoms in the order of the
dictionary.
"""

from collections.abc import Mapping, Sequence

import altair as alt
import numpy as np
import polars as pl
from jaxtyping import Float
from torch import Tensor

from .....report.charts import HEIGHT, WIDTH, AnyChart, curves, panels
from .....report.theme import CATEGORIES
from ... import measures

NEURONS, ATOMS = 20, 60
CLIP = 0.15
"""Coordinates beyond this share of the largest all have the strongest colour."""
KEYS = (
    "red: the sign of w*; blue: against it",
    f"white: 0; full colour: {CLIP:.0%} of the largest",
    "the same neurons and colours",
)
"""What one has to know to read the heat maps, one line under each title."""
EDGES = np.linspace(-0.1, 0.1, 41)
"""Bins of all other coordinates: those outside are not drawn."""


def snapshots(
    stages: Mapping[str, Float[Tensor, "m d"]],
    picked: str,
    M: Float[Tensor, "d D"],
    w: Float[Tensor, " D"],
) -> pl.DataFrame:
    """Rows (part, stage, neuron, atom, coordinate) of the heat maps.

    Args:
        stages: the weights of one network at each stage.
        picked: the stage at which the neurons are chosen.
        M: the dictionary.
        w: w*.
    """
    rows, own = _chosen(stages[picked], M)
    others = [j for j in range(len(w)) if j not in set(own)]
    shown = [*own, *others][:ATOMS]
    parts = []
    for stage, weight in stages.items():
        value = _signed(weight[rows], M, w)[:, shown].double().numpy()
        grid = np.indices(value.shape).reshape(2, -1)
        parts.append(
            pl.DataFrame(
                {"stage": stage, "neuron": grid[0], "atom": grid[1], "coordinate": value.ravel()}
            )
        )
    return pl.concat(parts).with_columns(part=pl.lit("neuron"))


def other_coordinates(
    stages: Mapping[str, Float[Tensor, "m d"]],
    picked: str,
    M: Float[Tensor, "d D"],
    w: Float[Tensor, " D"],
) -> pl.DataFrame:
    """Rows (part, stage, coordinate, density): the law of all coordinates but the largest.

    Arguments as in `snapshots`.
    """
    keep, parts = measures.alive(stages[picked]), []
    for stage, weight in stages.items():
        A = measures.coordinates(weight[keep], M)
        rest = _signed(weight[keep], M, w)[~measures.own_sets(A)].double().numpy()
        counts, _ = np.histogram(rest, EDGES)
        density = counts / (rest.size * np.diff(EDGES))
        middle = (EDGES[1:] + EDGES[:-1]) / 2
        parts.append(pl.DataFrame({"stage": stage, "coordinate": middle, "density": density}))
    return pl.concat(parts).with_columns(part=pl.lit("floor"))


def _signed(
    weight: Float[Tensor, "n d"], M: Float[Tensor, "d D"], w: Float[Tensor, " D"]
) -> Float[Tensor, "n D"]:
    A = measures.coordinates(weight, M) * w.sign()
    return A / A.abs().amax(1, keepdim=True)


def _chosen(weight: Float[Tensor, "m d"], M: Float[Tensor, "d D"]) -> tuple[list[int], list[int]]:
    """Which neurons, and the atom of each."""
    tops = measures.top(measures.coordinates(weight, M))
    purity = measures.top_energy(weight, M).masked_fill(~measures.alive(weight), -1.0)
    first: dict[int, int] = {}
    for i in purity.argsort(descending=True, stable=True).tolist():
        if purity[i] > 0:
            first.setdefault(int(tops[i]), i)
    own, rows = list(first), list(first.values())
    spread = np.linspace(0, len(rows) - 1, min(NEURONS, len(rows))).round().astype(int)
    return [rows[k] for k in spread], [own[k] for k in spread]


def heat_maps(table: pl.DataFrame, titles: Mapping[str, str]) -> list[AnyChart]:
    """One heat map per stage, in the order of `titles` (stage to title)."""
    rows = table.filter(part="neuron").select("stage", "neuron", "atom", "coordinate")
    rows = rows.with_columns(pl.col("coordinate").round(3))
    return [
        _map(rows.filter(stage=stage), alt.TitleParams(title, subtitle=key, subtitleColor="gray"))
        for (stage, title), key in zip(titles.items(), KEYS, strict=False)
    ]


def _map(rows: pl.DataFrame, title: alt.TitleParams) -> alt.Chart:
    scale = alt.Scale(scheme="redblue", reverse=True, domain=[-CLIP, CLIP], clamp=True)
    # A little overlap, as the ground shines through where edges fall between pixels.
    full = alt.RelativeBandSize(band=1.06)
    count = rows["neuron"].n_unique(), rows["atom"].n_unique()
    return (
        alt.Chart(rows.drop("stage"), width=WIDTH, height=HEIGHT, title=title)
        .mark_rect(width=full, height=full)
        .encode(
            x=alt.X("atom:O", title=f"{count[1]} atoms: own ones first").axis(labels=False),
            y=alt.Y("neuron:O", title=f"{count[0]} neurons").axis(labels=False),
            fill=alt.Fill("coordinate:Q", title="coordinate / largest", scale=scale),
            tooltip=["neuron", "atom", alt.Tooltip("coordinate:Q", title="coordinate / largest")],
        )
    )


def other_coordinates_chart(table: pl.DataFrame, stages: Sequence[str], title: str) -> AnyChart:
    """The law of all other coordinates at each stage."""
    rows = table.filter(pl.col("stage").is_in(list(stages)), part="floor")
    rows = rows.with_columns(pl.col("stage").str.replace(" training", ""))
    chart = curves(
        rows,
        "coordinate",
        "density",
        "stage",
        title=title,
        x_title="any other coordinate / largest",
        y_title="density",
    )
    zero = alt.Chart(pl.DataFrame({"x": [0.0]}), width=WIDTH, height=HEIGHT)
    rule = zero.mark_rule(strokeDash=[2, 3], color=CATEGORIES[6]).encode(x="x:Q")
    return chart + rule


def panel_grid(charts: Sequence[AnyChart]) -> AnyChart:
    """Panels in three columns, each with its own colours, and room for legends between rows."""
    together = panels(charts, columns=3).properties(spacing={"row": 128, "column": 72})
    return together.resolve_scale(color="independent", fill="independent")
