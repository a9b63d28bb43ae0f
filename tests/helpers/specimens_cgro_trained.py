"""Specimens of cgro: trainings that the paper leaves open, and its theorems on trained networks."""

from collections.abc import Callable

import polars as pl
from nulls import Null, Specimen
from tables import cross, wobble

from advlab.papers.cgro.experiments import pgd_phases

EVERY = pl.lit(True)


def phases_table(power: float = 0.2, middle: float = 1.9) -> pl.DataFrame:
    """Robustness is lost at middle (N/14)^power, clean answers at 1.5 times that noise.

    Clean training is robust nowhere.
    """
    rows = cross(
        n=pgd_phases.SIZES, radius=pgd_phases.RADII, noise=pgd_phases.NOISE, seed=range(24),
        lam=(0.5, 0.0),
    ).filter(
        (pl.col("seed") < 8) | (pl.col("radius") == pgd_phases.MIDDLE),
        (pl.col("lam") > 0) | pl.col("radius").is_in([pgd_phases.MIDDLE, pgd_phases.RADII[-1]]),
    )  # fmt: skip
    noise, failed, clean = pl.col("noise"), pl.col("radius") > 0.8, pl.col("lam") == 0
    edge = middle * (pl.col("n") / 14).pow(power) * wobble(rows, 0.01)
    lost = 1 / (1 + (-20 * (noise / edge).log()).exp())
    blind = 0.5 / (1 + (-20 * (noise / (1.5 * edge)).log()).exp())
    return rows.with_columns(
        **{"clean test": blind * wobble(rows, 0.01, 1), "clean train": 0.0, "mean V": noise,
           "signal": 1 / noise,
           "robust train": pl.when(failed | clean).then(0.9 * wobble(rows, 0.01, 2)).otherwise(0.0),
           "robust test": pl.when(failed | clean).then(1.0).otherwise(lost)},
    )  # fmt: skip


def phases() -> Specimen:
    table, errors = phases_table(), ("clean train", "clean test", "robust train", "robust test")
    blind = table.with_columns(pl.lit(0.0).alias("clean test"))
    keys = ["n", "radius", "noise", "seed"]
    clean = table.filter(lam=0.0).select(*keys, *errors)
    without = table.join(clean, on=keys, how="left", suffix=" of clean").with_columns(
        pl.coalesce(f"{one} of clean", one).alias(one) for one in errors
    )
    alike = table.filter(pl.col("lam") > 0).select(*keys, *errors)
    as_robust = table.join(alike, on=keys, suffix=" with").with_columns(
        pl.col(f"{one} with").alias(one) for one in errors
    )
    failing = pl.col("radius") > 0.8
    return Specimen(
        table=table,
        measured=errors,
        chance=dict.fromkeys(errors, 0.5),
        controls={
            "lambda = 0": Null(without, ("robust", "robust/c", "CGRO", "CGRO/c", "band",
                                         "memorised")),
            "clean training is as robust": Null(as_robust, ("robust/c", "CGRO/c")),
            "training and test alike": Null(
                table.with_columns(pl.col("robust test").alias("robust train")),
                ("CGRO", "CGRO/c", "memorised")),
            "robustness is lost before the noise is as long": Null(
                phases_table(middle=0.8), ("robust", "band")),
            "the signal is learnt at any noise": Null(blind, ("memorised",)),
            "memorised at 0.9 alpha too": Null(
                table.with_columns(pl.lit(0.0).alias("robust train")), ("failed",)),
            "PGD training holds at 0.9 alpha": Null(
                table.with_columns(pl.when(failing, pl.col("lam") > 0).then(0.0)
                                   .otherwise("robust train").alias("robust train")),
                ("failed",)),
            **{f"N^{p:.2f}": Null(phases_table(power=p), ("N",)) for p in (0.0, 1 / 3, 0.5)},
        },
    )  # fmt: skip


def hypotheses_table(power: float = 0.8) -> pl.DataFrame:
    """Twenty runs per part, d and N; T_1 = 500 of 1000 steps; the push goes like N^power."""
    rows = cross(part=["signal", "decay"], d=[250, 1000], n=[20, 60], seed=range(20),
                 step=range(0, 1000, 50))  # fmt: skip
    usual, larger = pl.col("n") == 20, (pl.col("d") == 1000) & (pl.col("part") == "decay")
    rows = rows.filter(usual | larger)
    signal, j = pl.col("part") == "signal", wobble(rows.group_by("seed").first(), 0.02)
    j = pl.col("seed").replace_strict(range(20), j.to_list())
    after = pl.col("step") >= 500

    def of(where: pl.Expr, value: pl.Expr | float) -> pl.Expr:
        return pl.when(where).then(value)

    return rows.with_columns(
        lam=0.5, eta=0.05, steps=1000, begun=True,
        rate=of(signal, 1.0 * j), gradient=of(~signal, 1.0),
        loss=of(~signal, 1 / (1 + pl.col("step"))), rates=of(signal, 2.0 * j),
        printed=of(~signal, pl.when(after).then(0.7 * j).otherwise(0.1)),
        squared=of(~signal, pl.when(after).then(0.9 * j).otherwise(0.1)),
        **{"T0": of(signal, 100 * j), "T0 earliest": of(signal, 80.0),
           "T0 latest": of(signal, 700.0), "T1": of(~signal, 500.0), "start share": 1.0,
           "A": of(~signal, 1.2 * j * (pl.col("n") / 20) ** -power),
           "A.3 use": of(~signal, 0.4 * j),
           "push": of(~signal, 1.1 * j * (pl.col("n") / 20) ** power),
           "least force": of(~signal, 0.5 * j), "most force": of(~signal, 0.7 * j)},
    )  # fmt: skip


def hypotheses() -> Specimen:
    table = hypotheses_table()

    def changed(where: pl.Expr = EVERY, **values: float) -> pl.DataFrame:
        return table.with_columns(
            pl.when(where, pl.col(name).is_not_null()).then(value).otherwise(name).alias(name)
            for name, value in values.items()
        )

    one = pl.col("seed") == 3
    return Specimen(
        table=table,
        measured=("T0", "rates", "printed", "squared", "A", "A.3 use", "push", "start share",
                  "least force", "most force"),
        chance={"T0": 1e4, "rates": 50, "printed": 1e-3, "squared": 1e-3, "A": 1e-3,
                "A.3 use": 3, "push": 100, "start share": 0.5, "least force": 1e-3},
        controls={
            "one run is late": Null(changed(one, T0=800.0), ("A.1",)),
            "one run is early": Null(changed(one, T0=70.0), ("A.1",)),
            "rates of several orders": Null(changed(rates=10.0), ("C.3",)),
            "a force without lambda": Null(changed(one, **{"least force": 0.02}), ("C.6",)),
            "a twentieth of the examples start low": Null(
                changed(EVERY, **{"start share": 0.95}), ("C.7",)),
            "flat": Null(changed(one, printed=0.3), ("C.9",)),
            "steps that overshoot": Null(changed(one, squared=0.3), ("C.9/2",)),
            "slower than 1/t": Null(changed(one, A=0.1), ("A.3/h",)),
            "above its bound": Null(changed(one, **{"A.3 use": 1.01}), ("A.3",)),
            "pushes on": Null(changed(one, push=9.0), ("C.10",)),
            **{f"N^{p}": Null(hypotheses_table(power=p), ("A.3/N", "C.10/N")) for p in (0.0, 0.3)},
            "every filter starts across the signal": Null(
                table.with_columns(begun=pl.lit(False)),
                ("A.1", "C.3", "C.6", "C.7", "C.9", "C.9/2", "A.3/h", "A.3", "C.10")),
        },
        by=("seed", "part", "d", "n"),
    )  # fmt: skip


TRAINED: dict[str, Callable[[], Specimen]] = {
    "cgro/pgd_phases": phases,
    "cgro/lemma_hypotheses": hypotheses,
}
