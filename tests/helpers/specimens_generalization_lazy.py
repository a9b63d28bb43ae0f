"""Specimens of Theorem 3: its proof's terms and its schedule; and of Section 4's iterations."""

from collections.abc import Callable

import polars as pl
from nulls import Null, Specimen
from specimens_generalization_stops import stops
from tables import cross, when, wobble

from advlab.papers.generalization.experiments import (
    lazy_expansion,
    linf_iterations,
    network_schedules,
)

SEEDS = range(20)


# Theorem 3's terms


def expansion() -> Specimen:
    widths = [2**k for k in range(8, 23, 2)]
    kinds = {"phi": ["gelu", "sigmoid"], "top": lazy_expansion.TOPS}
    steps = {"seed": SEEDS, "step": [1, 150]}
    usual = {"phi": ["gelu"], "top": ["positive"], "width": [lazy_expansion.WIDEST]}
    rows = pl.concat(
        [
            cross(part=["width"], **kinds, width=widths, n=[1000], d=[2], **steps),
            cross(part=["n"], **usual, n=lazy_expansion.SIZES, d=[2], **steps),
            cross(part=["d"], **usual, n=[lazy_expansion.MANY], d=lazy_expansion.DIMENSIONS,
                  **steps),
        ]
    )  # fmt: skip
    h, gelu = pl.col("width").cast(float), pl.col("phi") == "gelu"
    slow = gelu & (pl.col("top") == "positive")
    size = pl.when(slow).then(1 / h.sqrt()).otherwise(10 / h)
    slope0 = pl.when(gelu).then(0.5).otherwise(0.25)
    noise = [wobble(rows, 0.01, seed) for seed in range(8)]
    good = rows.with_columns(
        **{"kept 0": 0.01 * noise[0], "kept 0.4": 1.5 * noise[0]},
        **{"kept 0.1": 1.6 * noise[1], "kept 0.025": 1.7 * noise[2]},
        **{f"Taylor {k}": 0.9 * noise[3] for k in (1, 2, 3)},
        attack=size * noise[4], output=3 * size * noise[5], slope=2 * size * noise[6],
        gradient=0.02 * size * noise[7], D_12=0.1 * size * noise[0],
        **{"mean output": slope0 * 0.9 * size * noise[1], "largest part": 0.01 * size * noise[2]},
        rest=0.01 * size**2 * noise[3], changed=0.05 / h.sqrt() * noise[4],
    )  # fmt: skip
    flat = good.with_columns((pl.col(name) * h**0.2).alias(name) for name in lazy_expansion.RATES)
    late = pl.col("step") == 150
    return Specimen(
        good,
        measured=(*lazy_expansion.RATES, "rest", "changed", "Taylor 1", "Taylor 2", "Taylor 3"),
        chance={"changed": 0.5, **{f"Taylor {k}": 2.0 for k in (1, 2, 3)}},
        controls={
            "slopes beyond Taylor's bound": Null(good.with_columns(**{"Taylor 3": 1.1}), ("3",)),
            "attacks beyond their order": Null(
                when(good, late & (pl.col("seed") == 3), **{"kept 0": 1.1}), ("1a",)
            ),
            "attacks like 1/xi": Null(
                good.with_columns(
                    **{"kept 0.1": 4 * pl.col("kept 0.4"), "kept 0.025": 16 * pl.col("kept 0.4")}
                ),
                ("1b",),
            ),
            "attacks beyond the longer bound": Null(
                when(good, late & (pl.col("seed") == 3), **{"Taylor 1": 1.01}), ("1c",)
            ),
            "outputs with a second term": Null(
                good.with_columns(**{"mean output": 10 * pl.col("mean output")}), ("2a",)
            ),
            "outputs beyond Taylor's second term": Null(
                good.with_columns(**{"Taylor 2": 1.5}), ("2b",)
            ),
            "terms that fall like h^-0.3": Null(flat, ("h", "rate", "fast", "order")),
            "every network as fast as gelu": Null(
                good.with_columns(
                    (pl.col(name) / size / h.sqrt()).alias(name) for name in lazy_expansion.RATES
                ),
                ("fast",),
            ),
            "every network as fast as sigmoid": Null(
                good.with_columns(
                    (pl.col(name) / size / h).alias(name) for name in lazy_expansion.RATES
                ),
                ("rate",),
            ),
            "a difference that grows like d^2": Null(
                good.with_columns(gradient=pl.col("gradient") * pl.col("d").cast(float) ** 2),
                ("order",),
            ),
            "a remainder of the terms' order": Null(
                good.with_columns(rest=0.5 * pl.col("largest part")), ("rest",)
            ),
            "signs at random": Null(good.with_columns(changed=0.5), ("signs",)),
        },
        by=("part", "phi", "top", "width", "n", "d", "seed"),
    )


# Theorems 3 and 4


def schedules() -> Specimen:
    at = {"eps": network_schedules.EPS, "seed": range(12)}
    sizes = [10**k for k in range(3, 8)]
    rows = pl.concat(
        [
            cross(net=network_schedules.NETS, schedule=["theorem"], n=sizes, **at),
            cross(net=["gelu"], schedule=["fixed xi"], n=sizes, **at),
        ]
    )
    n, held = pl.col("n").cast(float).log(), pl.col("schedule") == "fixed xi"
    ratio = pl.when(held).then(1.08).otherwise(7.4 / n)
    noise = [wobble(rows, 0.005, seed) for seed in range(2)]
    good = rows.with_columns(
        ratio=ratio, surrogate=-0.09 * ratio * noise[0], whole=0.3 * ratio * noise[1]
    )
    relu, scheduled = pl.col("net") == "relu", pl.col("schedule") == "theorem"
    constant = -0.09 * noise[0]
    return Specimen(
        good,
        measured=("surrogate", "whole"),
        controls={
            "xi held": Null(
                when(good, scheduled, surrogate=constant, whole=0.3 * noise[1]), ("3", "4", "whole")
            ),
            "ReLU networks that stay": Null(when(good, relu, surrogate=constant), ("4",)),
            "one smooth network that stays": Null(
                when(good, pl.col("net") == "sigmoid", surrogate=constant), ("3",)
            ),
            "a difference that changes its sign and grows": Null(
                when(good, scheduled, surrogate=0.01 * n * noise[0]), ("3", "4")
            ),
            "the schedule's xi in the control": Null(
                when(good, held, surrogate=-0.09 * 7.4 / n * noise[0]), ("fixed",)
            ),
        },
    )


# Section 4


def linf() -> Specimen:
    rows = pl.concat(
        [
            cross(attack=["l2", "linf, xi/d"], xi=linf_iterations.XIS, seed=SEEDS),
            cross(attack=["linf, xi"], xi=[0.4], seed=SEEDS),
        ]
    )
    scaled, wide = pl.col("attack") == "linf, xi/d", pl.col("attack") == "linf, xi"
    noise = [wobble(rows, 0.02, seed) for seed in range(3)]
    good = rows.with_columns(
        eta=pl.when(scaled).then(0.18 * pl.col("xi")).otherwise(0.38) * noise[0],
        iterations=pl.when(scaled).then(16 / pl.col("xi")).otherwise(6.0) * noise[1],
        excess=pl.when(wide).then(0.01).otherwise(0.003) * noise[2],
    )
    return Specimen(
        good,
        measured=("eta", "iterations", "excess"),
        controls={
            "the l2 attack twice": Null(
                when(good, scaled, eta=0.38 * noise[0], iterations=6.0 * noise[1]),
                ("i1", "i2", "i3", "i4"),
            ),
            "steps like sqrt(xi)": Null(when(good, scaled, eta=0.1 * pl.col("xi").sqrt()), ("i3",)),
            "iterations that do not know xi": Null(
                when(good, scaled, iterations=40 * noise[1]), ("i4",)
            ),
            "no cost of shrinking": Null(good.with_columns(excess=0.003 * noise[2]), ("i5",)),
        },
    )


LAZY: dict[str, Callable[[], Specimen]] = {
    "generalization/lazy_expansion": expansion,
    "generalization/network_schedules": schedules,
    "generalization/stopping_times": stops,
    "generalization/linf_iterations": linf,
}
