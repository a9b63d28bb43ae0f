"""Specimens of convergence: tables in which the claims hold, and what must break them."""

from collections.abc import Callable

import numpy as np
import polars as pl
from nulls import Null, Specimen
from specimens_convergence_theory import THEORY
from specimens_convergence_trained import TRAINED

from advlab.papers.convergence.experiments import (
    kernel_parity,
    robust_capacity,
    robust_interpolation,
)

KERNELS = (*kernel_parity.SMOOTH, *kernel_parity.KINKED)


def changed(table: pl.DataFrame, where: pl.Expr, **values: object) -> pl.DataFrame:
    """The table with other values in some rows."""
    return table.with_columns(
        pl.when(where).then(value).otherwise(pl.col(name)).cast(table[name].dtype).alias(name)
        for name, value in values.items()
    )


def kernels() -> Specimen:
    """30 seeds of every row that the experiment makes, with what its claims foretell."""
    rng = np.random.default_rng(0)
    rows = []
    for seed in range(30):
        rows += [(seed, name, "gap", None, None, None, 1e-12) for name in kernel_parity.SMOOTH]
        for name in kernel_parity.KINKED:
            for c in kernel_parity.COSINES:
                exact = float(kernel_parity.theory.kernel(name, c))
                mean = exact + 1e-3 * rng.standard_normal()
                rows.append((seed, name, "sampled", None, None, c, mean))
            for d in (3, 4, 5):
                even, odd = (d * (d + 1) / 2, 60) if name == "quadratic_relu" else (60, d)
                rows.append((seed, name, "even rank", None, None, d, even))
                rows.append((seed, name, "odd rank", None, None, d, odd))
        for name in KERNELS:
            rows.append((seed, name, "eigenvalue", None, None, 3, -1e-16))
            parity = kernel_parity.theory.parity(name)
            for labels, degree in (("equal", parity.even), ("opposite", parity.odd)):
                for inputs in ("raw", "lifted"):
                    fits = inputs == "lifted" or degree == np.inf
                    value = 1e-3 if fits else 1.0
                    rows.append((seed, name, "residual", labels, inputs, None, value))
    columns = ["seed", "activation", "quantity", "labels", "inputs", "at", "value"]
    schema = {name: kernel_parity.SCHEMA[name] for name in columns}
    table = pl.DataFrame(rows, schema=schema, orient="row")
    quantity, at, value = pl.col("quantity"), pl.col("at"), pl.col("value")
    sampled = quantity == "sampled"
    unlifted = changed(table, pl.col("inputs") == "lifted", value=1.0)
    return Specimen(
        table=table,
        measured=("value",),
        controls={
            "without lifting": Null(unlifted, ("d",)),
            "nothing is fitted": Null(
                changed(table, quantity == "residual", value=1.0), ("c", "d", "e")
            ),
            "everything is fitted": Null(
                changed(table, quantity == "residual", value=1e-3), ("a", "b", "e")
            ),
            "full ranks": Null(
                changed(table, quantity.str.ends_with("rank"), value=60.0), ("11a", "11b")
            ),
        },
        bugs={
            "a closed form off": Null(changed(table, quantity == "gap", value=1e-6), ("10a",)),
            "a kernel without its factor c": Null(
                changed(table, sampled, value=value / at), ("10b",)
            ),
            "a kernel twice too large": Null(changed(table, sampled, value=2 * value), ("10b",)),
            "a Gram matrix with a negative eigenvalue": Null(
                changed(table, quantity == "eigenvalue", value=-1e-6), ("10c",)
            ),
        },
    )


def interpolation() -> Specimen:
    """60 seeds of two activations at every width."""
    rng = np.random.default_rng(0)
    settings = [
        (seed, name, m)
        for seed in range(60)
        for name in ("sin_cos", "quadratic_relu")
        for m in robust_interpolation.WIDTHS
    ]
    table = pl.DataFrame(settings, schema=["seed", "activation", "m"], orient="row")
    wobble = 1 + 0.02 * rng.standard_normal(table.height)
    m = pl.col("m")
    table = table.with_columns(
        wobble=wobble, delta=pl.lit(0.15), eps=pl.lit(0.3), norm=pl.lit(10.0),
        kernel_margin=pl.lit(0.7), rf_norm=pl.lit(100.0), refused_above=pl.lit(True),
        refused_below=pl.lit(False), forced_margin=pl.lit(-0.2),
    ).with_columns(
        feature_error=4 / m.sqrt() * pl.col("wobble"), residual=3 / m * pl.col("wobble"),
        residual_bound=9 / m.sqrt(), distance=10 + 20 / m.sqrt() * pl.col("wobble"),
        margin=0.6 - 16 / m.sqrt(),
    ).drop("wobble")  # fmt: skip
    everywhere = pl.lit(True)
    return Specimen(
        table=table,
        measured=("norm", "kernel_margin", "rf_norm", "refused_above", "refused_below",
                  "forced_margin", "feature_error", "residual", "residual_bound", "distance",
                  "margin"),
        controls={
            "features that fall like M^(-1/3)": Null(
                changed(table, everywhere, feature_error=pl.col("feature_error") * m ** (1 / 6)),
                ("12a",)),
            "no pairing": Null(
                changed(table, everywhere, residual=pl.col("residual") * m.sqrt()), ("a",)),
            "features of a thousandth": Null(
                changed(table, everywhere, feature_error=1e3 * pl.col("feature_error")), ("12b",)),
            "another norm": Null(changed(table, everywhere, distance=11.0), ("13a",)),
            "one cap missed": Null(
                changed(table, (pl.col("seed") == 3) & (m == 16384), margin=-0.1), ("13b",)),
            "the bound without C2/2": Null(
                changed(table, everywhere, residual_bound=pl.col("residual") / 2), ("b",)),
            "forced fits that are robust": Null(
                changed(table, pl.col("seed") == 1, forced_margin=0.1), ("19b",)),
        },
        bugs={
            "a guard that never refuses": Null(
                changed(table, everywhere, refused_above=False), ("19a",)),
            "a guard that always refuses": Null(
                changed(table, everywhere, refused_below=True), ("19a",)),
        },
    )  # fmt: skip


CAPACITY = {
    "failed labellings": 0.0, "distance": 1.01, "failed below": 0.0, "worked above": 0.0,
    "largest eps": 1.0, "clean": 1.0, "robust": 0.2, "plain parameters": 50.0,
    "linf parameters": 500.0, "l2 parameters": 400.0, "plain width": 2.0, "robust width": 5.0,
}  # fmt: skip


def capacity() -> Specimen:
    """Every quantity in three dimensions and 12 seeds, robust widths with a little noise."""
    noise = np.random.default_rng(0).choice([0.0, 0.0, 1.0], size=12)
    table = pl.DataFrame(
        [
            (seed, quantity, 12, d, value + noise[seed] * (quantity == "robust width"))
            for d in robust_capacity.DIMENSIONS
            for seed in range(12)
            for quantity, value in CAPACITY.items()
        ],
        schema=robust_capacity.SCHEMA,
        orient="row",
    )
    quantity = pl.col("quantity")

    def put(name: str, value: object) -> pl.DataFrame:
        return changed(table, quantity == name, value=value)

    return Specimen(
        table=table,
        measured=("value",),
        controls={
            "a labelling that fails": Null(put("failed labellings", 1.0), ("15a",)),
            "balls that touch": Null(put("distance", 1.0), ("15b",)),
            "gamma_k too small": Null(put("failed below", 1.0), ("16a",)),
            "gamma_k too large": Null(put("worked above", 1.0), ("16b",)),
            "robust training as narrow as plain": Null(put("robust width", 2.0), ("17b",)),
            "robust training narrower": Null(put("robust width", 1.0), ("17a", "17b")),
            "balls that are fitted": Null(put("robust", 0.95), ("18b",)),
        },
        bugs={"a network that misses a point": Null(put("clean", 11 / 12), ("18a",))},
    )


SPECIMENS: dict[str, Callable[[], Specimen]] = {
    "convergence/kernel_parity": kernels,
    "convergence/robust_interpolation": interpolation,
    "convergence/robust_capacity": capacity,
    **TRAINED,
    **THEORY,
}
