"""Theorem E.1's rate: how its bound and the robust generalisation gap scale with N and D.

Theorem E.1 bounds the robust loss of fresh inputs less that of the N training inputs by
N^(-1/(D+2)) O(G), with G the mean of the largest gradient of the loss in a ball. The proof adds
three terms: (I) = O(delta^2), by smoothing; (II) = O(N^(-1/2) delta^(-D/2) + N^-2), by sampling;
and delta G. Its rate comes from delta = N^(-1/(D+2)): the radius must shrink with N, and the slower
the larger D is. `flatness_bound` checks the terms at one N; here are their powers.

Two Gaussian clusters y mu + N(0, I) with ||mu|| = 1, and linear classifiers, for which every
expectation is an integral over one or two numbers: nothing but the training sample is random.

- rate: the l2-robust logistic classifier of N training inputs at delta = N^(-1/(D+2))/2, for
  N = 400 to 25,600 and D = 2, 5, 20;
- fixed: the same at delta = 1/4 for every N;
- radius: the classifier theta = 2 mu, which has seen no sample, N = 1600, delta = 0.05 to 0.8.

Each replicate has eight training samples. (II) and the gap have signs: their size is the root mean
square over the eight, and that of the others the mean. Powers are least-squares slopes of
logarithms, one per replicate. The orders of the proof are upper bounds: a term may fall faster.

Dashed: N^(-1/(D+2)) through the middle of delta G in the first row; the powers delta^2 of (I), and
delta^(-D/2) for D = 5 of (II), in the last.
"""

from typing import Literal

import numpy as np
import polars as pl
import torch
from pydantic import PositiveInt

from .... import lab
from ....core.randomness import generator
from ....report import Claims, Verdict, empirical, identity, ours
from ....report.charts import AnyChart, curves, panels
from ....report.samples import slopes
from ..theory.flatness_terms import (
    RateTerms,
    linear_rate_terms,
    printed_radius,
    robust_logistic,
)

ABOUT = lab.About(
    paper="cgro",
    item="Theorem E.1: its rate",
    title="The flatness bound and the robust gap over N and D",
    seconds={"smoke": 2, "laptop": 38, "paper": 300},
    claims={
        "holds": identity("The gap is at most (I) + (II) + delta G, for every training sample"),
        "E.1": empirical("and at most N^(-1/(D+2)) G, the printed bound with constant 1, for every "
                         "sample at the radius of the rate"),
        "I": empirical("(I) goes like delta^2: its power is within 0.1 of 2 in every D"),
        "II/N": empirical("(II) goes like N^(-1/2) or faster: its power is below -0.4 in every D"),
        "II/r": ours("but not like delta^(-D/2): its power in delta is within 0.1 of 0 in every D"),
        "rate": empirical("delta G goes like N^(-1/(D+2)): its power is within 0.05 of -1/(D+2) in "
                          "every D"),
        "gap": ours("The gap itself falls faster, at the same radius: its power is below -0.4 in "
                    "every D, 20 included"),
        "fixed": ours("At a fixed radius the bound does not fall with N: its power is within "
                      "0.1 of 0 in every D"),
        "fixed/g": ours("while the gap does, with a power below -0.4"),
    },
)  # fmt: skip
NAME = "cgro/flatness rate decisive"
DIMENSIONS, SIZES = (2, 5, 20), (400, 1600, 6400, 25_600)
RADII = (0.05, 0.1, 0.2, 0.4, 0.8)
SHARE, FIXED = 0.5, 0.25
"""The constant of delta in the rate, and delta where it is fixed."""


class Case(lab.Case):
    part: Literal["rate", "fixed", "radius"]
    D: PositiveInt
    N: PositiveInt
    draws: PositiveInt = 8

    @property
    def cost(self) -> float:
        return self.replicates * self.draws * self.N * self.D**0.5 / 2e6


def recipe(scale: lab.Scale, seeds: int | None = None) -> list[Case]:
    usual, dims, sizes = {
        "smoke": (3, (2, 5), (50, 200)),
        "laptop": (20, DIMENSIONS, SIZES),
        "paper": (50, (*DIMENSIONS, 50), SIZES),
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
    ]


def compute(case: Case) -> pl.DataFrame:
    """One row per replicate and radius."""
    rows = []
    for seed in case.seeds:
        samples = [_sample(case, seed, draw) for draw in range(case.draws)]
        if case.part == "radius":
            radii = RADII
        else:
            radii = (FIXED if case.part == "fixed" else SHARE * printed_radius(case.N, case.D),)
        rows += [{"seed": seed, "delta": delta, **_sizes(case, samples, delta)} for delta in radii]
    return pl.DataFrame(rows)


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
    for part, words in (("rate", "delta = N^(-1/(D+2))/2"), ("fixed", "delta = 1/4")):
        for (D,), rows in table.filter(part=part).sort("D").partition_by(
            "D", as_dict=True, maintain_order=True
        ).items():  # fmt: skip
            dashed = _power(rows, "N", "delta G", -1 / (int(D) + 2)) if part == "rate" else None  # type: ignore[call-overload]
            charts.append(curves(_long(rows, "N", names), "N", "value", "term", theory=dashed,
                                 title=f"D = {D}, {words}", x_title="N", y_title="size",
                                 log_x=True, log_y=True, y_domain=_ends(table, part)))  # fmt: skip
    for (D,), rows in table.filter(part="radius").sort("D").partition_by(
        "D", as_dict=True, maintain_order=True
    ).items():  # fmt: skip
        dashed = [_power(rows, "delta", "(I)", 2)]
        if D == 5:
            dashed.append(_power(rows, "delta", "(II)", -2.5).filter(pl.col("value") < 3))
        charts.append(curves(_long(rows, "delta", names), "delta", "value", "term",
                             theory=pl.concat(dashed), title=f"D = {D}, theta = 2 mu",
                             x_title="delta", y_title="size", log_x=True, log_y=True,
                             y_domain=_ends(table, "radius")))  # fmt: skip
    return panels(charts, columns=3)


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
    off = {
        name: one + 1 / (int(name.rpartition(" ")[2]) + 2)
        for name, one in _powers(table, "rate", "N", "delta G").items()
    }
    slack = _least(table, "part", "slack")
    printed = _least(table.filter(part="rate"), "D", "printed slack")
    return [
        claims.above("holds", slack, -1e-9, what="least bound less gap"),
        claims.above("E.1", printed, 0, what="least N^(-1/(D+2)) G less gap"),
        claims.equal("I", _powers(table, "radius", "delta", "(I)"), 2, 0.1,
            what="power of delta in (I)"),
        claims.below("II/N", _powers(table, "fixed", "N", "(II)"), -0.4, what="power of N in (II)"),
        claims.equal("II/r", _powers(table, "radius", "delta", "(II)"), 0, 0.1,
            what="power of delta in (II)"),
        # N^(-1/(D+1)) is off by 0.083 at D = 2.
        claims.equal("rate", off, 0, 0.05, what="power of N in delta G, plus 1/(D + 2),"),
        claims.below("gap", _powers(table, "rate", "N", "gap"), -0.4, what="power of N in the gap"),
        claims.equal("fixed", _powers(table, "fixed", "N", "bound"), 0, 0.1,
            what="power of N in the bound"),
        claims.below("fixed/g", _powers(table, "fixed", "N", "gap"), -0.4,
            what="power of N in the gap"),
    ]  # fmt: skip
