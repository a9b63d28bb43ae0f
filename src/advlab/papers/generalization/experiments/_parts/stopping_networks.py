"""What `stopping_times` claims of networks (Theorems 6 and 7), and how it is decided."""

from typing import Literal

import polars as pl

from .....report import Claim, Claims, Verdict, identity, ours, theorem
from .....report.samples import changes, groups

WIDE = ("high dimension", "step size")
NETS = (*WIDE, "lazy", "second layer")
NETWORK_CLAIMS: dict[str, Claim] = {
    "6a": theorem(
        "gelu and sigmoid networks stop in every run, and stay below the level for as long again: "
        "at d = 1000 with h = 2^26, and at d = 400 n with h = 2^40", *NETS,
    ),
    "6b": theorem(
        "at T their adversarial training loss is below 1.1/log n of v^2 on average, at each n and "
        "d and eps = 0.1 (without attack T's definition says so)", *NETS,
    ),
    "6c": theorem(
        "and their adversarial risk is within 5 % of v^2 on average, at each n and d and eps = 0.1",
        *NETS,
    ),
    "6d": ours("and T is that of the linear model up to one iteration in every run"),
    "6e": theorem(
        "their training loss over v^2 at T falls as n grows, at d = 400 n and eps = 0.1", *NETS
    ),
    "6f": theorem(
        "and their risk is within O(sqrt(n/d)) of v^2: on average its distance from v^2 is below "
        "0.2 v^2 sqrt(n/d), at each n and d and eps = 0.1", *NETS,
    ),
    "7a": theorem(
        "ReLU networks stop in every run, and stay below the level: at d = 1000 with twice and "
        "four times the step, and at d = 400 n with twice", *WIDE,
    ),
    "7b": ours(
        "at d = 1000, with twice the step, T is that of the linear model, within 10 % on average"
    ),
    "7c": ours(
        "with four times the step, which low dimension needs, T is 0.45 to 0.6 of the linear "
        "model's"
    ),
    "7d": theorem(
        "(8) for ReLU networks: at T their adversarial training loss is below 1.1/log n of v^2 on "
        "average, at each n, d and step and eps = 0.1 (without attack T's definition says so)",
        *WIDE,
    ),
    "7e": theorem(
        "(8) for ReLU networks: at T their adversarial risk is within 5 % of v^2 on average, at "
        "each n, d and step and eps = 0.1", *WIDE,
    ),
    "7f": identity(
        "on symmetrised data, X = [X0, -X0], a ReLU network with four times the step is the linear "
        "model at d = 1000 too"
    ),
    "7g": theorem(
        "on symmetrised data with twice the step T is that of the linear model, within 10 % on "
        "average (as the proof of Theorems 4 and 7 says)", *WIDE,
    ),
    "7h": theorem(
        "the training loss over v^2 at T of ReLU networks falls as n grows, at d = 400 n, "
        "eps = 0.1 and twice the step", *WIDE,
    ),
    "7i": theorem(
        "and their risk is within O(sqrt(n/d)) of v^2: on average its distance from v^2 is below "
        "0.2 v^2 sqrt(n/d), at each n, d and step and eps = 0.1", *WIDE,
    ),
}  # fmt: skip
LAZIEST, WIDEST = 2**26, 2**40
"""The widest network at n = 20, d = 1000, whose width varies; and at all other sizes."""
Net = Literal["linear", "gelu", "sigmoid", "relu twice", "relu four times"]
SMOOTH: tuple[Net, ...] = ("gelu", "sigmoid")
RELU: tuple[Net, ...] = ("relu twice", "relu four times")
WEAK = 0.1


def network_verdicts(claims: Claims, table: pl.DataFrame) -> list[Verdict]:
    """6a to 7e, 7h and 7i.

    Args:
        claims: of the experiment.
        table: runs with Gaussian inputs that are not symmetrised, linear models among them.
    """
    col = pl.col
    linear = table.filter(net="linear")
    wide = table.filter(col("net").is_in(SMOOTH), col("width") >= LAZIEST)
    relu = table.filter(col("net").is_in(RELU))
    usual = relu.filter(col("d") != 400 * col("n"))
    near = (col("T") - col("T other")).abs() <= 1
    two, four = (groups(_ratio(beside(usual.filter(net=net), linear, "n", "d", "eps", "xi")),
                        "ratio", "eps") for net in RELU)  # fmt: skip
    return [
        claims.every("6a", flags(wide, col("stays")), what="a T, and the level kept"),
        *_at_the_stop(claims, wide, "6b", "6c", "6e", "6f"),
        claims.every("6d", flags(beside(wide, linear, "n", "d", "eps", "xi"), near),
                     what="T within one iteration of the linear model's"),
        claims.every("7a", flags(relu, col("stays")), what="a T, and the level kept"),
        claims.equal("7b", two, 1, 0.1, what="T over the linear model's"),
        claims.within("7c", four, 0.45, 0.6, what="T over the linear model's"),
        *_at_the_stop(claims, relu, "7d", "7e", "7h", "7i"),
    ]  # fmt: skip


def _at_the_stop(
    claims: Claims, rows: pl.DataFrame, small: str, close: str, falls: str, order: str
) -> list[Verdict]:
    """(8) at each size, and its two limits, under the weak attack."""
    col, by = pl.col, ("net", "n", "d")
    # At the start the level is met by chance in some draws: T = 0 says nothing.
    weak = rows.filter(col("eps") == WEAK, col("crossing").is_not_nan()).with_columns(
        share=col("loss") * col("n").cast(float).log(),
        away=(col("risk") - 1).abs() * (col("d") / col("n")).sqrt(),
    )
    sizes = weak.filter(col("d") == 400 * col("n"))
    return [
        claims.below(small, groups(weak, "share", *by), 1.1,
                     what="adversarial training loss at T / v^2 times log n"),
        claims.within(close, groups(weak, "risk", *by), 0.95, 1.05,
                      what="adversarial risk at T / v^2"),
        claims.below(falls, changes(sizes, "n", "loss", "net"), 0,
                     what="change of the adversarial training loss at T / v^2"),
        claims.below(order, groups(weak, "away", *by), 0.2,
                     what="|risk at T / v^2 - 1| over sqrt(n/d)"),
    ]  # fmt: skip


def symmetrised_verdicts(claims: Claims, table: pl.DataFrame) -> list[Verdict]:
    """7f and 7g.

    Args:
        claims: of the experiment.
        table: all runs.
    """
    rows = table.filter(pl.col("symmetrised"))
    twice, four = (rows.filter(net=net) for net in RELU)
    ratios = groups(_ratio(beside(twice, rows.filter(net="linear"), "eps")), "ratio", "eps")
    return [
        claims.below("7f", float(four["apart"].to_numpy().max()), 1e-10,
                     what="the largest difference of outputs over v sqrt n"),
        claims.equal("7g", ratios, 1, 0.1, what="T over the linear model's"),
    ]  # fmt: skip


def _ratio(pairs: pl.DataFrame) -> pl.DataFrame:
    """T as a real number over that of the other run, where neither starts below the level."""
    ratio = pl.col("crossing") / pl.col("crossing other")
    return pairs.with_columns(ratio=ratio).filter(pl.col("ratio").is_not_nan())


def beside(rows: pl.DataFrame, other: pl.DataFrame, *keys: str) -> pl.DataFrame:
    """Each run with T and its crossing of another run of the same seed and `keys`."""
    kept = other.select("seed", *keys, "T", "crossing").unique(maintain_order=True)
    return rows.join(kept, on=["seed", *keys], suffix=" other", maintain_order="left")


def flags(rows: pl.DataFrame, holds: pl.Expr) -> list[bool]:
    """One flag per seed: whether it holds in all settings."""
    found = rows.group_by("seed").agg(holds=holds.all()).sort("seed")
    return found["holds"].to_list()
