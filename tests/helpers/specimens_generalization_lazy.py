"""Specimens of the terms of Theorem 3's proof, of stopping times, and of Section 4's iterations."""

from collections.abc import Callable

import polars as pl
from nulls import Null, Specimen
from tables import cross, when, wobble

from advlab.papers.generalization.experiments import lazy_expansion, linf_iterations
from advlab.papers.generalization.experiments import stopping_times as stopping

SEEDS = range(20)


# Theorem 3's terms


def expansion() -> Specimen:
    widths = [2**k for k in range(8, 23, 2)]
    kinds = {"phi": lazy_expansion.PHI, "top": lazy_expansion.TOPS}
    steps = {"seed": SEEDS, "step": [1, 150]}
    usual = {"phi": ["gelu"], "top": ["positive"], "width": [lazy_expansion.WIDEST]}
    rows = pl.concat(
        [
            cross(part=["width"], **kinds, width=widths, n=[1000], d=[2], **steps),
            cross(part=["n"], **usual, n=[250, 1000, 4000], d=[2], **steps),
            cross(part=["d"], **usual, n=[4000], d=[2, 4, 8], **steps),
        ]
    )
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


# Theorems 5 to 7


def stops() -> Specimen:
    rest = {"eps": stopping.EPS, "xi": [0.1], "seed": SEEDS}
    wide = {"width": [stopping.LAZIEST], "n": [20], "d": [1000]}
    rows = pl.concat(
        [
            cross(net=["linear"], width=wide["width"], n=[20], d=[1000, 4000, 16_000],
                  eps=stopping.EPS, xi=[0.1, stopping.ANY], seed=SEEDS),
            *(cross(net=["linear"], width=wide["width"], n=[n], d=[400 * n], eps=[0.1],
                    xi=[stopping.ANY], seed=SEEDS) for n in (20, 40, 80)),
            cross(net=stopping.SMOOTH, width=[16, stopping.LAZIEST], n=[20], d=[1000], **rest),
            cross(net=stopping.RELU, **wide, **rest),
        ]
    )  # fmt: skip
    n, d = pl.col("n").cast(float), pl.col("d").cast(float)
    four, fall = pl.col("net") == "relu four times", (d / 1000) ** -0.2
    # One draw of the data, whatever is done with it.
    luck = pl.Series(1 + 0.02 * ((rows["seed"].to_numpy() * 7) % 5 - 2.0))
    time = n.log().log() / 2 * n * luck
    noise = [wobble(rows, 0.005, seed) for seed in range(6)]
    linear = pl.col("net") == "linear"
    good = rows.with_columns(
        crossing=pl.when(four).then(time / 2).otherwise(time) + 0.02, expected=time,
        stays=True, falls=True, fitted=0.42 * luck * fall,
        **{"theta at T": 0.42 * luck * fall * noise[0], "theta": 0.45 * luck},
        outputs=0.45 * luck,
        gap=pl.col("eps") * 0.8 * noise[1], loss=0.98 / n.log() * noise[4],
        smallest=(1 - (n / d).sqrt()) ** 2 * noise[2], largest=(1 + (n / d).sqrt()) ** 2 * noise[3],
        risk=pl.when(linear).then(1 + 0.2 * (n / d).sqrt() * noise[5]).otherwise(0.99 * noise[5]),
    )  # fmt: skip
    good = good.with_columns(T=pl.col("crossing").ceil().cast(int), rate=pl.col("crossing") / 2 / n)
    relu = pl.col("net").str.starts_with("relu")
    one = pl.col("seed") == 3
    slow = good.with_columns(rate=pl.col("rate") * d**0.3)
    return Specimen(
        good,
        measured=("T", "crossing", "theta at T", "gap", "rate", "smallest", "largest", "loss",
                  "risk", "theta", "outputs"),
        chance={"theta": 4.0, "outputs": 4.0},
        controls={
            "a long theta": Null(when(good, one, theta=1.6), ("M1",)),
            "one run without T": Null(when(good, one & linear, T=-1), ("M1",)),
            "a residual that rises": Null(when(good, one, falls=False), ("M2",)),
            "a theta(T) of the order of the interpolator": Null(
                good.with_columns(**{"theta at T": 0.42 * luck * noise[0]}, fitted=0.42 * luck),
                ("M3",),
            ),
            "the interpolator at T": Null(
                good.with_columns(**{"theta at T": luck * noise[0]}), ("M4",)
            ),
            "gradients that part like sqrt d": Null(
                good.with_columns(gap=pl.col("gap") * d.sqrt()), ("13",)
            ),
            "a T that grows with d": Null(slow, ("5a",)),
            "a step without its factor 2": Null(
                good.with_columns(crossing=2 * pl.col("crossing")), ("5b",)
            ),
            "an attack that delays": Null(
                when(good, linear & one & (pl.col("eps") > 0), T=pl.col("T") + 2), ("5c",)
            ),
            "edges without their squares": Null(
                good.with_columns(smallest=1 - (n / d).sqrt(), largest=1 + (n / d).sqrt()), ("L3",)
            ),
            "networks that do not stay": Null(when(good, one, stays=False), ("6a", "7a")),
            "a training loss that the attack keeps up": Null(
                good.with_columns(loss=0.5 * noise[4]), ("6b", "7d", "5d", "5e")
            ),
            "a training loss that does not know n": Null(
                when(good, linear, loss=0.2 * noise[4]), ("5e",)
            ),
            "models that learn": Null(
                good.with_columns(risk=0.6 * noise[5]), ("6c", "7e", "5f", "5g")
            ),
            "ReLU networks that learn": Null(
                when(good, relu & (pl.col("net") == stopping.RELU[1]), risk=0.9 * noise[5]), ("7e",)
            ),
            "ReLU networks that stop too early": Null(
                when(good, relu & (pl.col("net") == stopping.RELU[0]), loss=0.4 * noise[4]), ("7d",)
            ),
            "a risk that does not know d": Null(
                when(good, linear, risk=1.02 * noise[5]), ("5g",)
            ),
            "networks that are slow": Null(
                when(good, ~linear, T=pl.col("T") + 2, crossing=1.2 * pl.col("crossing")),
                ("6d", "7b"),
            ),
            "ReLU at the speed of the linear model": Null(
                when(good, relu, crossing=time), ("7c",)
            ),
        },
    )  # fmt: skip


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
    "generalization/stopping_times": stops,
    "generalization/linf_iterations": linf,
}
