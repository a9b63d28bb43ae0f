"""Specimens of generalization's lasso, networks and L_inf attacks."""

from collections.abc import Callable

import polars as pl
from nulls import Null, Specimen
from tables import cross, when, wobble

from advlab.papers.generalization.experiments._parts.lazy_runs import NETS, UNIT

# The adversarial LASSO

JUDGED = {50: 40, 100: 40, 200: 20, 400: 10, 800: 10}
CONSTANTS = (0.0, 0.1, 0.15, 0.2, 0.3, 0.4, 0.6)
RISK = {50: 9.5, 100: 7.0, 200: 4.5, 400: 3.8, 800: 3.5}


def lasso() -> Specimen:
    parts = [
        cross(purpose=[purpose], n=[n], constant=CONSTANTS, seed=range(seeds))
        for n, judged in JUDGED.items()
        for purpose, seeds in (("judged", judged), ("choice", 10))
    ]
    rows = pl.concat(parts)
    none, n = pl.col("constant") == 0, pl.col("n")
    worse = 2 * (pl.col("constant") - 0.2).abs()
    good = rows.with_columns(
        risk=pl.when(none).then(11.0).otherwise(n.replace_strict(RISK) + worse)
        * wobble(rows, 0.02),
        least=3.25,
        l1_error=pl.when(none).then(50.0).otherwise(400 / n.cast(float).sqrt() / 10)
        * wobble(rows, 0.02, 1),
        nonzero=pl.when(none).then(1.0).otherwise(0.1) * wobble(rows, 0.02, 2),
    )
    dense = ~none
    useless = when(good, dense, risk=11.0 * wobble(good, 0.02), nonzero=1.0, l1_error=50.0)
    useless = useless.with_columns(l1_error=pl.col("l1_error") * wobble(good, 0.02, 3))
    half = when(good, dense & (n == 800), nonzero=0.34 * wobble(good, 0.02, 2))
    lucky = when(good, dense & (pl.col("purpose") == "judged"), risk=9.0 * wobble(good, 0.02))
    return Specimen(
        good,
        measured=("risk", "l1_error", "nonzero"),
        controls={
            "a penalty of 0": Null(useless, ("14a", "14b", "14c", "14d", "14e")),
            "half of the penalty": Null(half, ("14c",)),
            "a penalty that helps only the draws that chose it": Null(lucky, ("14a", "14b")),
        },
    )


# Figure 6

BEST = {0.1: 1.162, 0.3: 1.483, 0.5: 1.758}
IDENTITIES = {"8a": "equivariance", "8b": "linear network", "8c": "four times", "8d": "twice"}
DISTANCES = ("D_12", "D_23", "max |x'theta|")


def _fig6_risks() -> pl.DataFrame:
    sizes = [(100, 50, 20), (1000, 50, 6), (100, 400, 6)]
    parts = [
        cross(kind=["risk"], n=[n], width=[h], activation=NETS, radius=BEST, seed=range(seeds))
        for n, h, seeds in sizes
    ]
    rows = pl.concat(parts).with_columns(step=4000, steps=4000)
    gap = pl.when(pl.col("activation") == "linear").then(0.0).otherwise(1 / pl.col("width"))
    best = pl.col("radius").replace_strict(BEST)
    return rows.with_columns(best=best, risk=best + gap * wobble(rows, 0.2) + 0.001)


def _fig6_speeds() -> pl.DataFrame:
    radii = (0.0, 0.1, 0.3, 0.5)
    parts = [
        cross(kind=["speed"], n=[1000], width=[h], activation=nets, radius=radii, seed=range(seeds))
        for h, nets, seeds in ((50, NETS, 20), (400, ("linear", "sigmoid"), 6))
    ]
    rows = pl.concat(parts).with_columns(step=100, steps=100)
    gap = pl.when(pl.col("activation") == "sigmoid").then(1 / pl.col("width")).otherwise(0.0)
    return rows.with_columns(
        risk=(1.2 + pl.col("radius") + gap) * wobble(rows, 1e-3),
        standard=(1.2 + pl.col("radius") + gap) * wobble(rows, 1e-3, 1),
    )


def fig6() -> Specimen:
    exact = cross(kind=["identities"], seed=range(8))
    exact = exact.with_columns(pl.lit(1e-15).alias(name) for name in IDENTITIES.values())
    far = cross(kind=["distances"], width=[50, 200, 800], seed=range(8))
    far = far.with_columns((20 / pl.col("width") * wobble(far, 0.1)).alias(d) for d in DISTANCES)
    good = pl.concat([_fig6_risks(), _fig6_speeds(), exact, far], how="diagonal_relaxed")
    speed, risk = pl.col("kind") == "speed", pl.col("kind") == "risk"
    relu, wide = pl.col("activation") == "relu", pl.col("width") == 400
    untrained = when(good, speed, risk=2.0, standard=2.0)
    slow = when(good, speed & relu, risk=pl.col("risk") + 0.2, standard=pl.col("standard") + 0.2)
    linear = when(good, risk, risk=pl.col("best") * wobble(good, 1e-3, 5))
    return Specimen(
        good,
        measured=("risk", "standard", *IDENTITIES.values(), *DISTANCES),
        controls={
            "no training": Null(untrained, ("9a", "9b")),
            "ReLU at half the speed": Null(slow, ("9a", "9b")),
            "linear networks only": Null(linear, ("9d", "9e")),
            "no step towards R*": Null(when(good, risk, risk=1.9), ("9c",)),
            "gaps that stay as h grows": Null(
                when(good, wide & (pl.col("activation") != "linear"), risk=pl.col("risk") + 0.05),
                ("9d", "9g"),
            ),
            "no trend in h": Null(
                good.with_columns(pl.lit(0.1).alias(name) for name in DISTANCES), ("9f",)
            ),
            "twice the step": Null(when(good, pl.col("kind") == "identities", twice=0.47), ("8d",)),
        },
        bugs={
            f"{name} off by 1e-6": Null(good.with_columns((pl.col(name) + 1e-6).alias(name)), (id,))
            for id, name in IDENTITIES.items()
        },
        by=("kind", "n", "width", "activation", "radius", "seed"),
    )


# Figures 12 and 13


def _high(settings: list[tuple[int, float, float]], seeds: int) -> pl.DataFrame:
    steps = (0, 20, 60, 100)
    parts = [
        cross(d=[d], entry=[entry], v2=[v2], activation=NETS, radius=[0.0, 0.01, 0.1],
              seed=range(seeds), step=steps)
        for d, entry, v2 in settings
    ]  # fmt: skip
    return pl.concat(parts).with_columns(steps=100)


def fig12() -> Specimen:
    rows = _high([(1000, UNIT, 1.1), (1000, 1.0, 10.1)], 100)
    share = pl.col("step").replace_strict({0: 1.0, 20: 0.1, 60: 0.01, 100: 0.002})
    good = rows.with_columns(loss=pl.col("v2") * share * wobble(rows, 0.02))
    attacked, sigmoid = pl.col("radius") > 0, pl.col("activation") == "sigmoid"
    slower = when(good, attacked & (pl.col("step") == 20), loss=0.3 * pl.col("v2"))
    stuck = when(good, sigmoid & (pl.col("step") == 100), loss=0.04 * pl.col("v2"))
    return Specimen(
        good,
        measured=("loss",),
        controls={
            "half the step under attack": Null(slower, ("a",)),
            "no training": Null(good.with_columns(loss="v2"), ("a", "b", "c")),
            "a network that cannot reach the answers": Null(stuck, ("b", "c")),
        },
    )


def fig13() -> Specimen:
    rows = _high([(1000, UNIT, 1.1), (1000, 1.0, 10.1), (5000, UNIT, 1.1)], 50)
    good = rows.with_columns(risk=pl.col("v2") * (1 + 10 / pl.col("d") * wobble(rows, 0.1)))
    learned = good.with_columns(risk=0.5 * pl.col("v2") * wobble(good, 0.01))
    crossing = when(good, (pl.col("radius") == 0.1) & (pl.col("d") == 1000), risk="v2")
    return Specimen(
        good,
        measured=("risk",),
        controls={
            "networks that learned": Null(learned, ("a", "c")),
            "effects that cancel at d = 1000": Null(crossing, ("d",)),
        },
    )


# L_inf attacks


def linf() -> Specimen:
    steps = cross(part=["steps"], norm=["l2", "linf"], xi=[0.05, 0.0158, 0.005], d=[10],
                  seed=range(10))  # fmt: skip
    height = pl.when(pl.col("norm") == "l2").then(0.02).otherwise(0.12)
    steps = steps.with_columns(eta=height * pl.col("xi") * wobble(steps, 0.01))
    fits = cross(part=["interpolation"], d=[1000, 5000, 20_000], c=[1.0, 0.1], seed=range(30))
    scale = pl.col("c") * (1000 / pl.col("d")).sqrt() * wobble(fits, 0.1)
    fits = fits.with_columns(train_v2=0.0135 * scale**2, test_v2=1 + 0.17 * scale)
    shrink = cross(part=["shrink"], d=[10, 100, 1000], seed=[0])
    shrink = shrink.with_columns(predicted=1 / (1 + 0.05 * pl.col("d")))
    shrink = shrink.with_columns(shrink="predicted")
    good = pl.concat([steps, fits, shrink], how="diagonal_relaxed")
    linf_steps = pl.col("norm") == "linf"
    square = 0.002 * (pl.col("xi") / 0.05) ** 2 * wobble(good, 0.01)
    flat = when(good, pl.col("part") == "interpolation", train_v2=0.02, test_v2=1.1)
    return Specimen(
        good,
        measured=("eta", "train_v2", "test_v2", "shrink"),
        chance={"train_v2": 1.0, "test_v2": 2.0},
        controls={
            "steps like xi^2": Null(good.with_columns(eta=square), ("16a",)),
            "the l2 attack twice": Null(
                when(good, linf_steps, eta=0.2 * pl.col("xi") * wobble(good, 0.01)), ("16b",)
            ),
            "no change with d": Null(flat, ("17a", "17b", "17c", "17d")),
        },
        bugs={
            "shrunk by the root of a sum": Null(
                good.with_columns(shrink=1 / (1 + (0.05 * pl.col("d")) ** 2) ** 0.5), ("16c",)
            )
        },
    )


SPECIMENS: dict[str, Callable[[], Specimen]] = {
    "generalization/lasso": lasso,
    "generalization/fig6": fig6,
    "generalization/fig12": fig12,
    "generalization/fig13": fig13,
    "generalization/linf_attacks": linf,
}
