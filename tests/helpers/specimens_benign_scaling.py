"""A table of `benign/scaling_law` in which its claims hold, and what must break them."""

import numpy as np
import polars as pl
from nulls import Null, Specimen
from scipy.special import log_ndtr

from advlab.papers.benign.experiments import scaling_law

MEASURED = ("log_clean", "log_robust", "clean_margin", "robust_margin", "L_rob")


def table(
    powers: tuple[float, float, float] = (0.5, -0.5, 2.0),
    radius: float = 1.0,
    per_mu: bool = False,
    constant: float = 0.78,
    saturates: float = 0.64,
    inside: float | None = None,
    bent: float = 1.0,
    grid: float = 0.98,
) -> pl.DataFrame:
    """Margins with these powers of n, d and ||mu|| around the base, less `radius` alpha (or alpha
    in units of ||mu||, or its power `bent`, which is 2 at alpha = 2); `inside` replaces the margin
    inside Assumption 1. The grid has a constant of its own: margins agree at equal S - alpha where
    it is about 1, and other claims hold where it is not."""
    rng, rows = np.random.default_rng(0), []
    for case in scaling_law.recipe("laptop"):
        setting = case.model_dump(exclude={"seed", "replicates"})
        setting |= {"eta": case.eta, "omega": case.omega}
        base = scaling_law.BASE
        S = np.prod([
            (getattr(case, name) / base[name]) ** p
            for name, p in zip(("n", "d", "mu_norm"), powers, strict=True)
        ])  # fmt: skip
        ratio = case.n * case.mu_norm**2 / case.d
        wide = np.sqrt(1 + saturates * ratio)
        taken = radius * case.alpha**bent * 2 ** (1 - bent)
        taken *= 20 / case.mu_norm if per_mu else 1
        for seed in case.seeds:
            own = grid if case.route == "grid" else constant
            m = 2 * own * S / wide * (1 + 0.01 * rng.standard_normal())
            m = inside if inside is not None and case.route == "inside" else m
            margins = {"clean_margin": m, "robust_margin": m - taken}
            logs = {"log_clean": log_ndtr(-m), "log_robust": log_ndtr(taken - m)}
            rows.append({**setting, **margins, **logs, "L_rob": 0.01, "seed": seed})
    return pl.DataFrame(rows, infer_schema_length=None)


def scaling() -> Specimen:
    true = table()
    large = pl.col("route") == "alpha"
    worse = pl.when(large).then(pl.col("clean_margin") / 2).otherwise(pl.col("clean_margin"))
    return Specimen(
        table=true,
        measured=MEASURED,
        chance={"log_clean": float(np.log(0.5)), "log_robust": float(np.log(0.5))},
        perfect={"log_clean": -1e6, "log_robust": -1e6, "clean_margin": 1e3, "robust_margin": 1e3},
        controls={
            "n^1": Null(table((1.0, -0.5, 2.0)), ("n", "collapse", "robust_collapse")),
            "n^(1/4)": Null(table((0.25, -0.5, 2.0)), ("n", "collapse", "robust_collapse")),
            "d^(-1)": Null(table((0.5, -1.0, 2.0)), ("d", "collapse", "robust_collapse")),
            "||mu||^1": Null(table((0.5, -0.5, 1.0)), ("mu", "collapse", "robust_collapse")),
            "||mu||^3": Null(table((0.5, -0.5, 3.0)), ("mu", "collapse", "law")),
            "half of alpha": Null(table(radius=0.5), ("alpha", "scaled_difference", "threshold")),
            "alpha in units of ||mu||": Null(
                table(per_mu=True), ("alpha", "robust_collapse", "crossing")
            ),
            "alpha^1.5": Null(table(bent=1.5), ("alpha", "scaled_difference", "crossing")),
            "C of 1.25": Null(table(grid=0.8), ("difference",)),
            "half of the margin": Null(table(constant=0.39), ("threshold", "constant")),
            "all of S": Null(table(constant=1.1), ("threshold", "constant")),
            "a large radius harms": Null(true.with_columns(clean_margin=worse), ("large_alpha",)),
            "errors of 0.003 inside": Null(table(inside=2.8), ("inside", "law")),
            "E like the root of the ratio": Null(
                table((0.25, -0.25, 2.0)), ("exponent", "n", "d")
            ),
            "networks that fail where the ratio is large": Null(table(saturates=8.0), ("match",)),
            "better than the best": Null(
                true.with_columns(log_robust=pl.col("log_robust") * 200), ("lower",)
            ),
        },
    )  # fmt: skip
