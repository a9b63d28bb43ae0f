"""Specimen of stopping times in high dimension."""

import math

import polars as pl
from nulls import Null, Specimen
from tables import cross, when, wobble

from advlab.papers.generalization.experiments import stopping_times as stopping

SEEDS = range(20)
NETS = ("linear", *stopping.SMOOTH, stopping.RELU[0])


def stops() -> Specimen:
    rest = {"eps": stopping.EPS, "xi": [0.1], "seed": SEEDS}
    wide = {"width": [stopping.LAZIEST], "n": [20], "d": [1000]}
    plain = {"law": ["gaussian"], "rho": [0.0], "symmetrised": [False]}
    rows = pl.concat(
        [
            cross(net=["linear"], width=wide["width"], n=[20], d=[1000, 4000, 16_000],
                  eps=stopping.EPS, xi=[0.1, stopping.ANY], seed=SEEDS, **plain),
            *(cross(net=NETS, width=[stopping.WIDEST], n=[n], d=[400 * n], eps=[0.1],
                    xi=[stopping.ANY], seed=SEEDS, **plain) for n in (20, 40, 80)),
            cross(net=stopping.SMOOTH, width=[16, stopping.LAZIEST], n=[20], d=[1000], **rest,
                  **plain),
            cross(net=stopping.RELU, **wide, **rest, **plain),
            cross(net=["linear", *stopping.RELU], **wide, **rest, law=["gaussian"], rho=[0.0],
                  symmetrised=[True]),
            *(cross(net=NETS, width=[stopping.WIDEST], n=[20], d=[stopping.OTHER], eps=[0.1],
                    xi=[stopping.ANY], seed=SEEDS, law=[law], rho=[rho], symmetrised=[False])
              for law, rho in stopping.LAWS),
        ]
    )  # fmt: skip
    n, d = pl.col("n").cast(float), pl.col("d").cast(float)
    fall, mirrored = (d / 1000) ** -0.2, pl.col("symmetrised")
    # In high dimension twice the step is the linear model's speed, on symmetrised data four times.
    four = (pl.col("net") == "relu four times") & ~mirrored
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
        risk=1 + pl.when(linear).then(0.2).otherwise(0.1) * (n / d).sqrt() * noise[5],
        interpolator=1.01 * noise[4], length=1.0 * noise[2],
        apart=pl.when(mirrored).then(1e-15).otherwise(math.nan),
    )  # fmt: skip
    good = good.with_columns(T=pl.col("crossing").ceil().cast(int), rate=pl.col("crossing") / 2 / n)
    relu, law = pl.col("net").str.starts_with("relu"), pl.col("d") == stopping.OTHER
    smooth = pl.col("net").is_in(stopping.SMOOTH)
    one = pl.col("seed") == 3
    slow = good.with_columns(rate=pl.col("rate") * d**0.3)
    return Specimen(
        good,
        measured=("T", "crossing", "theta at T", "gap", "rate", "smallest", "largest", "loss",
                  "risk", "theta", "outputs", "interpolator", "length", "stays", "falls"),
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
                when(good, linear & one & (pl.col("eps") > 0), T=pl.col("T") + 2), ("5c", "6d")
            ),
            "edges without their squares": Null(
                good.with_columns(smallest=1 - (n / d).sqrt(), largest=1 + (n / d).sqrt()), ("L3",)
            ),
            "networks that do not stay": Null(
                when(good, one, stays=False), ("6a", "7a", "R1", "R2")
            ),
            "a residual that rises under a law": Null(when(good, one & law, falls=False), ("R1",)),
            "a training loss that the attack keeps up": Null(
                good.with_columns(loss=0.5 * noise[4]), ("6b", "7d", "5d", "5e", "6e", "7h")
            ),
            "networks' loss that does not know n": Null(
                when(good, ~linear, loss=0.2 * noise[4]), ("6e", "7h")
            ),
            "a training loss that does not know n": Null(
                when(good, linear, loss=0.2 * noise[4]), ("5e",)
            ),
            "models that learn": Null(
                good.with_columns(risk=0.6 * noise[5]), ("6c", "7e", "5f", "5g", "R3")
            ),
            "models that learn under one law": Null(
                when(good, law & (pl.col("law") == "uniform"), risk=0.9, interpolator=0.9),
                ("R3", "R5"),
            ),
            "an interpolator as long as theta0": Null(good.with_columns(length=d / n), ("R4",)),
            "inputs in few directions": Null(when(good, one & law, smallest=0.1), ("R6",)),
            "networks' risk that does not know d": Null(
                when(good, smooth, risk=1.02 * noise[5]), ("6f",)
            ),
            "ReLU networks' risk that does not know d": Null(
                when(good, relu, risk=1.02 * noise[5]), ("7i",)
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
            "twice the step on symmetrised data": Null(
                when(good, mirrored & (pl.col("net") == "relu twice"),
                     crossing=2 * pl.col("crossing")), ("7g",)
            ),
        },
        bugs={
            "a ReLU network that is not the linear model": Null(
                when(good, mirrored, apart=1e-6), ("7f",)
            )
        },
    )  # fmt: skip
