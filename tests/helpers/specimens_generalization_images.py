"""Specimens of generalization's figures and tables on images."""

from collections.abc import Callable

import polars as pl
from nulls import Null, Specimen
from tables import cross, when, wobble

# Figures 4, 14, 15 and 16


def penalty() -> Specimen:
    rows = cross(n=[10, 20, 50, 100, 200], penalty=[0.0, 0.001], seed=range(3))
    on = pl.col("penalty") > 0
    good = rows.with_columns(
        source=pl.lit("mnist"),
        standard=99 * wobble(rows, 1e-3),
        adversarial=pl.when(on).then(84.0).otherwise(80.0) * wobble(rows, 2e-3, 1),
        train_standard=100.0,
        train_adversarial=100.0,
    )
    return Specimen(
        good,
        measured=("standard", "adversarial", "train_standard", "train_adversarial"),
        chance={"standard": 50.0, "adversarial": 50.0, "train_standard": 50.0,
                "train_adversarial": 50.0},
        controls={
            "no penalty in both": Null(
                good.with_columns(adversarial=80 * wobble(good, 5e-3, 2)), ("15a",)
            ),
            "one class for all": Null(good.with_columns(standard=53 * wobble(good, 0)), ("15b",)),
            "two points lost": Null(when(good, on, standard=97.0 * wobble(good, 1e-3)), ("15b",)),
            "attacked images not learned at one n": Null(
                when(good, on & (pl.col("n") == 200), train_adversarial=98.0), ("15c",)
            ),
        },
    )  # fmt: skip


# Figures 2 and 7

ARMS = {0: (0.0, "per_example"), 1: (0.001, "per_example"), 2: (0.001, "batch_mean"),
        3: (0.1, "per_example")}  # fmt: skip


def surrogate(arms: tuple[int, ...], claims: tuple[str, ...]) -> Specimen:
    rows = cross(arm=arms, seed=range(5), step=[3, 6, 9]).with_columns(
        steps=9,
        data=pl.lit("cifar10"),
        xi=pl.col("arm").replace_strict({k: v[0] for k, v in ARMS.items()}),
        convention=pl.col("arm").replace_strict({k: v[1] for k, v in ARMS.items()}),
    )
    on = pl.col("xi") > 0
    good = rows.with_columns(
        standard=pl.when(on).then(0.34).otherwise(0.28) * wobble(rows, 0.02),
        adversarial=pl.when(on).then(0.2).otherwise(0.17) * wobble(rows, 0.02, 1),
        shrink=pl.when(on).then(0.7).otherwise(1.0) * wobble(rows, 0, 2),
    )
    same = good.with_columns(
        standard=0.3 * wobble(good, 0.02, 11), adversarial=0.18 * wobble(good, 0.02, 12)
    )
    return Specimen(
        good,
        measured=("standard", "adversarial"),
        chance={"standard": 0.1, "adversarial": 0.1},
        controls={"a xi that does nothing": Null(same, claims)},
        by=("arm", "seed"),
    )


# Figure 8


def fig8() -> Specimen:
    rows = cross(radius=[0.5, 2.0], seed=range(5), step=[3, 6, 9]).with_columns(
        steps=9, data=pl.lit("cifar10"), standard=0.3
    )
    large = pl.col("radius") == 2.0
    relative = pl.when(large).then(0.4 + 0.02 * pl.col("step")).otherwise(0.33)
    good = rows.with_columns(relative=relative * wobble(rows, 0.005)).with_columns(
        difference=pl.col("relative") * pl.col("radius"), random=1.4 * wobble(rows, 0.005, 1)
    )
    alike = good.with_columns(relative=0.33 * wobble(good, 0.005, 2)).with_columns(
        difference=pl.col("relative") * pl.col("radius")
    )
    aimless = good.with_columns(relative=1.4 * wobble(good, 0.005, 3)).with_columns(
        difference=pl.col("relative") * pl.col("radius")
    )
    return Specimen(
        good,
        measured=("relative", "difference", "random"),
        chance={"relative": 1.4, "random": 1.4},
        controls={
            "distances in proportion to eps": Null(alike, ("a", "b")),
            "attacks that only draw random points": Null(aimless, ("a", "b", "c", "d")),
        },
        by=("radius", "seed"),
    )


# Tables 1 and 2


def table() -> Specimen:
    rows = cross(l1=[0.0, 1e-5], seed=range(3)).with_columns(
        step=100, steps=100, depth=34, data=pl.lit("cifar10")
    )
    on = pl.col("l1") > 0
    good = rows.with_columns(
        standard=pl.when(on).then(0.866).otherwise(0.843) * wobble(rows, 1e-3),
        adversarial=pl.when(on).then(0.631).otherwise(0.618) * wobble(rows, 1e-3, 1),
    )
    small = good.with_columns(depth=10)
    none = good.with_columns(
        standard=0.85 * wobble(good, 5e-3, 2), adversarial=0.62 * wobble(good, 5e-3, 3)
    )
    return Specimen(
        good,
        measured=("standard", "adversarial"),
        chance={"standard": 0.1, "adversarial": 0.1},
        controls={
            "no penalty in both": Null(none, ("a", "b")),
            "a network that is not the paper's": Null(small, ("a", "b")),
        },
    )


IMAGES: dict[str, Callable[[], Specimen]] = {
    **{f"generalization/fig{number}": penalty for number in (4, 14, 15, 16)},
    "generalization/fig2": lambda: surrogate((0, 1, 2, 3), tuple("abcdef")),
    "generalization/fig7": lambda: surrogate((0, 2), ("a", "b")),
    "generalization/fig8": fig8,
    "generalization/table1": table,
    "generalization/table2": table,
}
