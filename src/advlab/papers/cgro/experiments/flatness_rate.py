"""Theorem E.1's rate: how its bound and the robust generalisation gap scale with N and D.

Theorem E.1 bounds the robust loss of fresh inputs less that of the N training inputs by
N^(-1/(D+2)) O(G), with G the mean of the largest gradient of the loss in a ball. The proof adds
three terms: (I) = O(delta^2), by smoothing; (II) = O(N^(-1/2) delta^(-D/2) + N^-2), by sampling;
and delta G. Its rate comes from delta = N^(-1/(D+2)): the radius must shrink with N, and the slower
the larger D is. So delta G has the power of delta and that of G, and what is asked of it is G.
`flatness_bound` checks the terms at one N; here are their powers.

Two Gaussian clusters y mu + N(0, I) with ||mu|| = 1. First linear classifiers, for which every
expectation is an integral over one or two numbers: nothing but the training sample is random.

- rate: the l2-robust logistic classifier of N training inputs at delta = N^(-1/(D+2))/2, for
  N = 400 to 25,600 and D = 2, 5, 20;
- fixed: the same at delta = 1/4 for every N;
- radius: the classifier theta = 2 mu, which has seen no sample, N = 1600, delta = 0.05 to 0.8.

Each replicate has eight training samples. (II) and the gap have signs: their size is the root mean
square over the eight, and that of the others the mean. Powers are least-squares slopes of
logarithms, one per replicate. The orders of the proof are upper bounds: a term may fall faster.

- network: two-layer ReLU networks of width 32, trained by Adam (rate 0.01, 500 steps) against PGD
  at the radius of the rate, N = 100, 400, 1600. They overfit. Expectations are means over 4000
  fresh inputs (G: 400); G and both robust losses are found by search, LOWER bounds.

Dashed: N^(-1/(D+2)) through the middle of delta G where delta has the rate; the powers delta^2 of
(I), and delta^(-D/2) for D = 5 of (II), in the last row.
"""

from typing import Literal

import numpy as np
import polars as pl
import torch
from pydantic import PositiveInt

from .... import lab
from ....core.randomness import generator
from ....report import Claims, Verdict, empirical, identity, ours, theorem
from ....report.charts import AnyChart, curves, panels
from ....report.samples import groups, slopes
from ..theory.flatness_terms import (
    RateTerms,
    linear_rate_terms,
    printed_radius,
    robust_logistic,
)
from ._parts.rate_networks import network_terms

ABOUT = lab.About(
    paper="cgro",
    item="Theorem E.1: its rate",
    title="The flatness bound and the robust gap over N and D",
    seconds={"smoke": 4, "laptop": 50, "paper": 900},
    looks=1,
    claims={
        "holds": identity("The gap is at most (I) + (II) + delta G, for every training sample of "
                          "linear classifiers"),
        "E.1": empirical("and at most N^(-1/(D+2)) G, the printed bound with constant 1, for every "
                         "sample at the radius of the rate"),
        "E.1/net": empirical("and so is that of every two-layer network"),
        "I": theorem("(I) goes like delta^2, as for any smooth density: its power is within 0.1 of "
                     "2 in every D, at a fixed theta"),
        "II/N": empirical("(II) goes like N^(-1/2) or faster: its power is below -0.4 in every D"),
        "II/r": ours("but not like delta^(-D/2): its power in delta is within 0.1 of 0 in every D"),
        "G": ours("G of linear classifiers hardly goes with N, so that delta G has the power of "
                  "delta: its own is within 0.05 of 0 at both radii in every D"),
        "G/net": ours("That of networks does: from N = 400 to 1600 G falls by more than 5 % in "
                      "every D"),
        "gap": ours("The gap of linear classifiers falls faster than N^(-1/(D+2)): its power is "
                    "below -0.4 in every D, 20 included"),
        "fixed/g": ours("and at a fixed radius, where the bound stays, with a power below -0.4"),
        "gap/net": ours("The gap of networks takes less of N^(-1/(D+2)) G with more inputs: its "
                        "share falls by more than 0.1 from N = 100 to 1600 in every D"),
        "near": ours("Where networks overfit most the printed bound is within a factor 2 of the "
                     "gap: at N = 100 its share is above 1/2 for D = 5 and 20"),
    },
)  # fmt: skip
NAME = "cgro/flatness rate, new draws"
DIMENSIONS, SIZES = (2, 5, 20), (400, 1600, 6400, 25_600)
RADII = (0.05, 0.1, 0.2, 0.4, 0.8)
SHARE, FIXED = 0.5, 0.25
"""The constant of delta in the rate, and delta where it is fixed."""
PARTS = {
    "rate": "linear, delta = N^(-1/(D+2))/2",
    "fixed": "linear, delta = 1/4",
    "network": "network, delta = N^(-1/(D+2))/2",
    "radius": "theta = 2 mu",
}
"""Rows of the picture."""
FEW = (100, 400, 1600)
"""N of networks."""
OVERFIT = (5, 20)
"""D in which they have a large gap at the least N."""


class Case(lab.Case):
    part: Literal["rate", "fixed", "radius", "network"]
    D: PositiveInt
    N: PositiveInt
    draws: PositiveInt = 8
    """Training samples per replicate; of networks one."""
    steps: PositiveInt = 500
    fresh: PositiveInt = 4000

    @property
    def cost(self) -> float:
        if self.part == "network":
            return self.replicates * self.steps * (400 + self.N) * self.D**0.5 / 4e5
        return self.replicates * self.draws * self.N * self.D**0.5 / 2e6


def recipe(scale: lab.Scale, seeds: int | None = None) -> list[Case]:
    usual, dims, sizes, few, some = {
        "smoke": (3, (2, 5), (50, 200), (100, 400, 1600), {"steps": 5, "fresh": 50}),
        "laptop": (20, DIMENSIONS, SIZES, FEW, {}),
        "paper": (50, (*DIMENSIONS, 50), SIZES, (*FEW, 6400), {"fresh": 20_000}),
    }[scale]
    parts: tuple[Literal["rate", "fixed"], ...] = ("rate", "fixed")
    return [
        *(
            Case(part=part, D=D, N=N, **block)
            for N in sizes[::-1]
            for D in dims
            for part in parts
            for block in lab.blocks(seeds or usual, 20)
        ),
        *(
            Case(part="radius", D=D, N=sizes[1], **block)
            for D in dims
            for block in lab.blocks(seeds or usual, 20)
        ),
        *(
            Case(part="network", D=D, N=N, **some, **block)
            for N in few[::-1]
            for D in dims
            for block in lab.blocks(seeds or usual // 2, 10)
        ),
    ]


def compute(case: Case) -> pl.DataFrame:
    """One row per replicate and radius."""
    if case.part == "network":
        return _networks(case)
    rows = []
    for seed in case.seeds:
        samples = [_sample(case, seed, draw) for draw in range(case.draws)]
        if case.part == "radius":
            radii = RADII
        else:
            radii = (FIXED if case.part == "fixed" else SHARE * printed_radius(case.N, case.D),)
        rows += [{"seed": seed, "delta": delta, **_sizes(case, samples, delta)} for delta in radii]
    return pl.DataFrame(rows)


def _networks(case: Case) -> pl.DataFrame:
    delta = SHARE * printed_radius(case.N, case.D)
    found = network_terms(NAME, case.D, case.N, delta, tuple(case.seeds), case.steps, case.fresh)
    sizes = [
        {"gap": one.gap, "(I)": one.smoothing, "(II)": abs(one.sampling), "delta G": one.sharpness,
         "bound": one.bound, "slack": one.bound - one.gap,
         "printed slack": one.sharpness / SHARE - one.gap}
        for one in found
    ]  # fmt: skip
    return pl.DataFrame(
        [{"seed": seed, "delta": delta, **one} for seed, one in zip(case.seeds, sizes, strict=True)]
    )


def _sample(case: Case, seed: int, draw: int) -> tuple[np.ndarray, np.ndarray]:
    rng = generator(NAME, case.D, case.N, draw, seed)
    y = 2.0 * torch.randint(2, (case.N,), generator=rng).double() - 1
    noise = torch.randn(case.N, case.D, generator=rng, dtype=torch.float64)
    return (noise + y[:, None] / case.D**0.5).numpy(), y.numpy()


def _sizes(case: Case, samples: list, delta: float) -> dict[str, float]:
    """Sizes of the terms over the samples, and the least slack of the two bounds."""
    mean = np.full(case.D, case.D**-0.5)
    terms: list[RateTerms] = []
    for x, y in samples:
        theta = 2 * mean if case.part == "radius" else robust_logistic(x, y, delta)
        terms.append(linear_rate_terms(theta, mean, y * (x @ theta), delta))
    G = np.array([one.sharpness for one in terms]) / delta
    gaps, sampling = (np.array([getattr(one, name) for one in terms]) for name in
                      ("gap", "sampling"))  # fmt: skip
    printed = printed_radius(case.N, case.D) * G
    return {
        "gap": float(np.sqrt((gaps**2).mean())),
        "(I)": float(np.mean([one.smoothing for one in terms])),
        "(II)": float(np.sqrt((sampling**2).mean())),
        "delta G": float(delta * G.mean()),
        "bound": float(np.mean([one.bound for one in terms])),
        "slack": float(min(one.bound - one.gap for one in terms)),
        "printed slack": float((printed - gaps).min()),
    }


def figure(table: pl.DataFrame) -> AnyChart:
    names = ["bound", "delta G", "(II)", "(I)", "gap"]
    charts = []
    for part, words in PARTS.items():
        x = "delta" if part == "radius" else "N"
        for (D,), rows in table.filter(part=part).sort("D").partition_by(
            "D", as_dict=True, maintain_order=True
        ).items():  # fmt: skip
            charts.append(curves(_long(rows, x, names), x, "value", "term",
                                 theory=_dashed(rows, part, int(D)), title=f"D = {D}, {words}",  # type: ignore[call-overload]
                                 x_title=x, y_title="size", log_x=True, log_y=True,
                                 y_domain=_ends(table, part)))  # fmt: skip
    return panels(charts, columns=3)


def _dashed(rows: pl.DataFrame, part: str, D: int) -> pl.DataFrame | None:
    """The powers of the proof, through the middle of their terms."""
    if part == "fixed":
        return None
    if part != "radius":
        return _power(rows, "N", "delta G", -1 / (D + 2))
    lines = [_power(rows, "delta", "(I)", 2)]
    if D == 5:
        lines.append(_power(rows, "delta", "(II)", -2.5).filter(pl.col("value") < 3))
    return pl.concat(lines)


def _ends(table: pl.DataFrame, part: str) -> tuple[float, float]:
    """One axis for all D of a part: what is around the terms that are drawn."""
    terms = table.filter(part=part).select("bound", "delta G", "(II)", "(I)", "gap").to_numpy()
    terms = terms[terms > 0]
    return float(terms.min()) / 1.3, float(terms.max()) * 1.3


def _long(rows: pl.DataFrame, x: str, names: list[str]) -> pl.DataFrame:
    return rows.unpivot(names, index=[x, "seed"], variable_name="term")


def _power(rows: pl.DataFrame, x: str, y: str, power: float) -> pl.DataFrame:
    """A power of x through the middle of a term."""
    at = rows[x].unique().sort().cast(pl.Float64)
    middle = rows.select((pl.col(y).log() - power * pl.col(x).cast(pl.Float64).log()).mean()).item()
    values = np.exp(middle) * at.to_numpy() ** power
    return pl.DataFrame({x: at.cast(rows[x].dtype), "value": values, "term": y})


def _powers(table: pl.DataFrame, part: str, x: str, y: str) -> dict[str, np.ndarray]:
    """For each D the power of x in y, one per replicate."""
    rows = table.filter(part=part).sort("D").partition_by("D", as_dict=True, maintain_order=True)
    return {f"D = {D}": np.array(slopes(one, x, y)) for (D,), one in rows.items()}


def _least(table: pl.DataFrame, by: str, value: str) -> dict[str, float]:
    parts = table.partition_by(by, as_dict=True, maintain_order=True)
    return {
        f"{by} {level}": float(rows[value].to_numpy().min()) for (level,), rows in parts.items()
    }


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims = Claims(ABOUT.claims)
    table = table.with_columns(G=pl.col("delta G") / pl.col("delta"))
    linear = table.filter(pl.col("part") != "network")
    slack = _least(linear, "part", "slack")
    printed = _least(table.filter(part="rate"), "D", "printed slack")
    flat = {f"{part}, {D}": power for part in ("rate", "fixed")
            for D, power in _powers(table, part, "N", "G").items()}  # fmt: skip
    found = [
        claims.above("holds", slack, -1e-9, what="least bound less gap"),
        claims.above("E.1", printed, 0, what="least N^(-1/(D+2)) G less gap"),
        claims.equal("I", _powers(table, "radius", "delta", "(I)"), 2, 0.1,
            what="power of delta in (I)"),
        claims.below("II/N", _powers(table, "fixed", "N", "(II)"), -0.4, what="power of N in (II)"),
        claims.equal("II/r", _powers(table, "radius", "delta", "(II)"), 0, 0.1,
            what="power of delta in (II)"),
        claims.equal("G", flat, 0, 0.05, what="power of N in G"),
        claims.below("gap", _powers(table, "rate", "N", "gap"), -0.4, what="power of N in the gap"),
        claims.below("fixed/g", _powers(table, "fixed", "N", "gap"), -0.4,
            what="power of N in the gap"),
        *_network_verdicts(claims, table.filter(part="network")),
    ]  # fmt: skip
    by_label = {one.id: one for one in found}
    return [by_label[label] for label in ABOUT.claims]


def _network_verdicts(claims: Claims, table: pl.DataFrame) -> list[Verdict]:
    table = table.with_columns(share=pl.col("gap") * SHARE / pl.col("delta G"))
    few, middle, many = (table.filter(N=N).sort("D", "seed") for N in FEW)
    steps = middle.join(many, on=["D", "seed"], suffix=" after").with_columns(
        ratio=pl.col("G after") / pl.col("G")
    )
    less = few.join(many, on=["D", "seed"], suffix=" after").with_columns(
        less=pl.col("share") - pl.col("share after")
    )
    near = few.filter(pl.col("D").is_in(OVERFIT))
    return [
        claims.above("E.1/net", _least(table, "D", "printed slack"), 0,
            what="least N^(-1/(D+2)) G less gap"),
        claims.below("G/net", groups(steps, "ratio", "D"), 0.95,
            what="G at N = 1600 over that at N = 400"),
        claims.above("gap/net", groups(less, "less", "D"), 0.1,
            what="gap over N^(-1/(D+2)) G at N = 100, less that at N = 1600"),
        claims.above("near", groups(near, "share", "D"), 0.5,
            what="gap over N^(-1/(D+2)) G at N = 100"),
    ]  # fmt: skip
