"""A table of `benign/other_clusters` in which its claims hold, and what must break them."""

import numpy as np
import polars as pl
from nulls import Null, Specimen
from scipy.special import ndtr

from advlab.papers.benign.experiments import other_clusters
from advlab.papers.benign.experiments._parts.cluster_runs import ACTIVATIONS

MEASURED = ("clean_error", "robust_error", "train_error", "L_rob")


def table(
    powers: tuple[float, float, float] = (0.5, -0.5, 2.0),
    constant: float = 0.72,
    odd: str = "",
    other: float = 0.72,
    weak: float = 1.0,
) -> pl.DataFrame:
    """Margins with these powers of n, d and ||mu|| around the base; the law `odd` has another
    constant, and `weak` times the margin where the signal is strong."""
    rng, rows, base = np.random.default_rng(0), [], other_clusters.BASE
    for case in other_clusters.recipe("laptop"):
        setting = case.model_dump(exclude={"seed", "replicates"})
        setting |= {"eta": case.eta, "omega": case.omega}
        S = 2 * np.prod([
            (getattr(case, name) / base[name]) ** p
            for name, p in zip(("n", "d", "mu_norm"), powers, strict=True)
        ])  # fmt: skip
        ratio = case.n * case.mu_norm**2 / case.d
        share = other if case.law == odd else constant
        share *= weak if case.law == odd and case.route == "strong" else 1.0
        for seed in case.seeds:
            for shape in ACTIVATIONS:
                m = share * S / np.sqrt(1 + 0.64 * ratio) * (1 + 0.02 * rng.standard_normal())
                errors = {"clean_error": ndtr(-m), "robust_error": ndtr(case.alpha - m)}
                ends = {"train_error": 0.0, "L_rob": 0.005}
                rows.append({**setting, "activation": shape, **errors, **ends, "seed": seed})
    return pl.DataFrame(rows, infer_schema_length=None)


def clusters() -> Specimen:
    true = table()
    strong = pl.col("route") == "strong"
    last = strong & (pl.col("seed") == 7)
    slow = true.with_columns(L_rob=pl.when(last).then(0.02).otherwise("L_rob"))
    missed = true.with_columns(train_error=pl.when(last).then(0.025).otherwise("train_error"))
    both = ("scaling", "other_scaling")
    return Specimen(
        table=true,
        measured=MEASURED,
        chance={"clean_error": 0.5, "robust_error": 0.5, "train_error": 0.5, "L_rob": 0.7},
        controls={
            "n^1": Null(table((1.0, -0.5, 2.0)), both),
            "n^(1/4)": Null(table((0.25, -0.5, 2.0)), both),
            "d^(-1)": Null(table((0.5, -1.0, 2.0)), both),
            "||mu||^1": Null(table((0.5, -0.5, 1.0)), both),
            "one loss that stays": Null(slow, ("loss", "other_loss")),
            "one point that can be attacked": Null(missed, ("loss", "other_loss")),
            "Laplace noise costs a fifth": Null(
                table(odd="laplace", other=0.58), ("law", "robust_law")
            ),
            "coins are easier": Null(table(odd="signs", other=0.88), ("law", "robust_law")),
            "quartic clusters overfit": Null(table(odd="quartic", weak=0.2), ("error",)),
            "Student's clusters overfit": Null(table(odd="student", weak=0.2), ("other_error",)),
            "a third of the margin": Null(table(constant=0.24), ("constant",)),
        },
    )  # fmt: skip
