"""Specimens of cgro's figures on images."""

from collections.abc import Callable

import polars as pl
from nulls import Null, Specimen
from tables import cross, when, wobble

MEASURED = ("clean", "robust", "robust_loss", "sharp", "rise")
PARTS = ("train", "held-out", "test")
EPOCHS = (8, 12, 16, 20, 24, 28, 32)
TRAIN, TEST = pl.col("part") == "train", pl.col("part") == "test"
TIME = (pl.col("step") - 8) / 24


def runs(data: str, n: int, seeds: int) -> pl.DataFrame:
    """Trainings that overfit robustly: training data grow flat, test data sharp."""
    rows = cross(data=[data], n=[n], seed=range(seeds), step=EPOCHS, part=PARTS,
                 share=[0.5, 1.0, 1.5, 2.0, 3.0])  # fmt: skip
    rows = rows.with_columns(steps=32)
    one = pl.col("share") == 1.0
    sharp = pl.when(TRAIN).then(10 - 4 * TIME).otherwise(12 * (1 + 2 * TIME.pow(1.5)))
    far = pl.col("share").replace_strict({0.5: 0.2, 1.0: 1.0, 1.5: 3.0, 2.0: 8.0, 3.0: 12.0})
    robust = pl.when(TRAIN).then(0.4 + 0.4 * TIME).otherwise(0.3 - 0.1 * TIME)
    loss = pl.when(TRAIN).then(1 - 0.4 * TIME).otherwise(2 + 3 * TIME.pow(1.5))
    rows = rows.with_columns(
        sharp=pl.when(pl.col("part") != "held-out").then(sharp * far * wobble(rows, 0.005)),
        rise=pl.when(pl.col("part") != "held-out").then(far * wobble(rows, 0.01, 1)),
        clean=pl.when(one).then((0.9 + 0.05 * TIME) * wobble(rows, 0.002, 2)),
        robust=pl.when(one).then(robust * wobble(rows, 0.01, 3)),
        robust_loss=pl.when(one).then(loss * wobble(rows, 0.002, 4)),
    )
    return rows.filter((pl.col("part") != "held-out") | one)


def fig1() -> Specimen:
    good = pl.concat([runs("cifar10", 1000, 5), runs("cifar10", 4000, 3)])
    flat = when(good, pl.col("part") != "train", robust=0.25 * wobble(good, 0.02))
    lost = when(good, TEST, clean=(0.9 - 0.2 * TIME) * wobble(good, 0.01))
    # The peak of the very images that are judged falls by luck alone; other images do not.
    lucky = when(flat, TEST | TRAIN, robust=0.25 * wobble(good, 0.02, 7))
    return Specimen(
        good,
        measured=MEASURED,
        chance={"clean": 0.1, "robust": 0.1},
        controls={
            "no fall on test images": Null(flat, ("a", "d")),
            "noise on all images": Null(lucky, ("a", "b", "d")),
            "clean accuracy falls as well": Null(lost, ("c", "e")),
        },
        by=("data", "n", "seed", "part", "share"),
    )


def fig2() -> Specimen:
    good = pl.concat([runs("mnist", 1000, 4), runs("cifar10", 1000, 5)])
    # A loss that is linear in the input: the same gradient everywhere, a rise like the radius.
    linear = good.with_columns(
        sharp=pl.when(pl.col("sharp").is_not_null()).then(10 * wobble(good, 0.01)),
        rise=pl.when(pl.col("rise").is_not_null()).then(pl.col("share") * wobble(good, 0.01, 1)),
    )
    everywhere = ("18a", "18b", "18c", "18d", "18e", "18f", "19a", "19b", "19c")
    return Specimen(
        good,
        measured=MEASURED,
        controls={"a linear loss that never changes": Null(linear, everywhere)},
        by=("data", "n", "seed", "part", "share"),
    )


def fig3() -> Specimen:
    good = runs("cifar10", 1000, 5)
    alike = good.with_columns(
        sharp=pl.when(pl.col("sharp").is_not_null()).then((10 + 20 * TIME) * wobble(good, 0.01))
    )
    unrelated = when(good, TEST, robust_loss=2 * wobble(good, 0.3, 5))
    unrelated = when(unrelated, TRAIN, robust_loss=1 * wobble(good, 0.3, 6))
    return Specimen(
        good,
        measured=MEASURED,
        controls={
            "both grow alike": Null(alike, ("20a",)),
            "a gap of its own": Null(unrelated, ("20b", "20c")),
        },
        by=("data", "n", "seed", "part", "share"),
    )


def explicit() -> Specimen:
    rows = cross(network=["trained", "f_S"], seed=range(8)).with_columns(
        source=pl.lit("mnist"), apart=0.98, separation=0.7
    )
    built = pl.col("network") == "f_S"
    good = rows.with_columns(
        pl.lit(0.0).alias("unlike train"),
        pl.lit(0.0).alias("unlike test"),
        pl.when(built).then(0.0).otherwise(1.0).alias("robust train"),
        (0.97 * wobble(rows, 0.01)).alias("transfer test"),
        (0.5 * wobble(rows, 0.05, 1)).alias("PGD test"),
    )
    # A single image in 40 that an attack breaks, in one of the runs.
    open_ball = when(good, built & (pl.col("seed") == 3), **{"robust train": 1 / 40})
    other = when(good, built & (pl.col("seed") == 3), **{"unlike test": 1 / 100})
    plain = when(good, built, **{"PGD test": pl.col("transfer test")})
    safe = when(good, built, **{"transfer test": 0.3 * wobble(good, 0.1, 2)})
    return Specimen(
        good,
        measured=("unlike train", "unlike test", "robust train", "transfer test", "PGD test"),
        chance={"transfer test": 0.5, "PGD test": 0.5},
        controls={
            "a ball with a hole": Null(open_ball, ("a",)),
            "a clean image that changes": Null(other, ("b",)),
            "a gradient that shows": Null(plain, ("d",)),
            "test images protected too": Null(safe, ("c", "d")),
        },
    )


IMAGES: dict[str, Callable[[], Specimen]] = {
    "cgro/fig1": fig1,
    "cgro/fig2": fig2,
    "cgro/fig3": fig3,
    "cgro/explicit_on_images": explicit,
}
