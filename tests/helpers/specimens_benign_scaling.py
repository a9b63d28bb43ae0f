"""A table of `benign/scaling_law` in which its claims hold, and what must break them."""

import numpy as np
import polars as pl
from nulls import Null, Specimen
from scipy.special import log_ndtr

from advlab.papers.benign.experiments import scaling_law
from advlab.papers.benign.experiments._parts.scaling_runs import INSIDE
from advlab.papers.benign.theory import averaging_accuracy

MEASURED = ("log_clean", "log_robust", "log_certified", "clean_margin", "robust_margin", "fitted",
            "L_rob")  # fmt: skip
USUAL = (1, 0.85, 0.7, 1)
DRAWS = {"clean_draws": 200.0, "robust_draws": 100.0, "certified_draws": 100.0}


def table(
    powers: tuple[float, float, float] = (0.5, -0.5, 2.0),
    radius: float = 1.0,
    per_mu: bool = False,
    constant: float = 0.78,
    saturates: float = 0.64,
    inside: float | None = None,
    bent: float = 1.0,
    grid: float = 0.98,
    strong: tuple[float, ...] | None = None,
    memorised: float = 1.0,
    far: float = 1.0,
) -> pl.DataFrame:
    """Margins with these powers of n, d and ||mu|| around the base, less `radius` alpha (or alpha
    in units of ||mu||, or its power `bent`, which is 2 at alpha = 2); `inside` replaces the margin
    inside Assumption 1, and `far` multiplies it by a power of the ratio there. The grid has a
    constant of its own: margins agree at equal S - alpha where it is about 1, and other claims hold
    where it is not. At large ratios networks are the averaging classifier, but for shares of its E
    without flips, with one of 80, with a tenth, and after one step; `memorised` is the share of
    flipped labels that is fitted."""
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
        deep = case.route in INSIDE
        for seed in case.seeds:
            own = grid if case.route == "grid" else constant
            noise = 1 + (0.001 if deep else 0.01) * rng.standard_normal()
            m = 2 * own * S / wide * noise
            m *= (ratio / 0.005) ** (far - 1) if case.route == "order" else 1
            m = inside if inside is not None and deep else m
            if case.route == "ratio" and ratio > 0.9:
                q = averaging_accuracy(case.n, case.d, case.mu_norm, 0.0, case.beta).q
                which = 3 if case.steps == 1 else sum(case.beta > one for one in (0.0, 0.05))
                m = q * np.sqrt((strong or USUAL)[which]) * (1 + 0.1 * (noise - 1))
            margins = {"clean_margin": m, "robust_margin": m - taken}
            logs = {"log_clean": log_ndtr(-m), "log_robust": log_ndtr(taken - m)}
            logs["log_certified"] = log_ndtr(1.8 * taken - m) if deep else None
            fitted = memorised if case.steps > 1 else 0.0
            found = {**margins, **logs, **DRAWS, "L_rob": 0.01, "fitted": fitted}
            rows.append({**setting, **found, "seed": seed})
    return pl.DataFrame(rows, infer_schema_length=None)


def one_run(column: str, value: float, *where: pl.Expr) -> pl.DataFrame:
    """One run of those has another value."""
    first = pl.all_horizontal(*where, pl.col("seed") == 3).cast(pl.Int64).cum_sum() == 1
    chosen = first & pl.all_horizontal(*where, pl.col("seed") == 3)
    return table().with_columns(pl.when(chosen).then(value).otherwise(column).alias(column))


def scaling() -> Specimen:
    true = table()
    large = pl.col("route") == "alpha"
    worse = pl.when(large).then(pl.col("clean_margin") / 2).otherwise(pl.col("clean_margin"))
    deep = pl.col("route").is_in(INSIDE)
    powers = ("collapse", "robust_collapse", "inside_powers", "inside_collapse")
    mild = pl.col("route") == "order", pl.col("alpha") == 0.5
    return Specimen(
        table=true,
        measured=MEASURED,
        chance={"log_clean": float(np.log(0.5)), "log_robust": float(np.log(0.5)),
                "log_certified": float(np.log(0.5))},
        perfect={"log_clean": -1e6, "log_robust": -1e6, "log_certified": -1e6,
                 "clean_margin": 1e3, "robust_margin": 1e3},
        controls={
            "n^1": Null(table((1.0, -0.5, 2.0)), ("n", *powers)),
            "n^(1/4)": Null(table((0.25, -0.5, 2.0)), ("n", *powers)),
            "d^(-1)": Null(table((0.5, -1.0, 2.0)), ("d", *powers)),
            "||mu||^1": Null(table((0.5, -0.5, 1.0)), ("mu", *powers)),
            "||mu||^3": Null(table((0.5, -0.5, 3.0)), ("mu", "law", *powers)),
            "half of alpha": Null(
                table(radius=0.5), ("alpha", "scaled_difference", "threshold", "inside_alpha",
                                    "implied")
            ),
            "alpha in units of ||mu||": Null(
                table(per_mu=True), ("alpha", "robust_collapse", "crossing", "inside_alpha")
            ),
            "alpha^1.5": Null(table(bent=1.5), ("alpha", "scaled_difference", "crossing",
                                                "inside_alpha")),
            "C of 1.25": Null(table(grid=0.8), ("difference",)),
            "half of the margin": Null(table(constant=0.39), ("threshold", "constant")),
            "all of S": Null(table(constant=1.1), ("threshold", "constant")),
            "a large radius harms": Null(true.with_columns(clean_margin=worse), ("large_alpha",)),
            "errors of 0.003 inside": Null(table(inside=2.8), ("inside", "law")),
            "one run above the bound of (2)": Null(one_run("log_clean", -1.0, deep), ("inside",)),
            "one run above that of (3)": Null(one_run("log_certified", -3.0, *mild), ("inside",)),
            "E like the ratio to the power 1.2": Null(table(far=1.1), ("exponent",)),
            "E like the ratio to the power 0.8": Null(table(far=0.9), ("exponent",)),
            "robust margins a tenth short": Null(
                true.with_columns(log_robust=1.25 * pl.col("log_robust")), ("implied",)
            ),
            "networks that fail where the ratio is large": Null(
                table(strong=(1, 0.85, 0.2, 1)), ("match",)
            ),
            "flips cost nothing": Null(table(strong=(1, 1, 1, 1)), ("flips",)),
            "one flip costs nothing": Null(table(strong=(1, 1, 0.7, 1)), ("flips",)),
            "networks that fail without flips": Null(
                table(strong=(0.6, 0.3, 0.2, 1)), ("unflipped",)
            ),
            "networks that fail at once": Null(table(strong=(1, 0.85, 0.7, 0.6)), ("first_step",)),
            "one run with a flipped label that is not fitted": Null(
                one_run("fitted", 7 / 8, pl.col("route") == "ratio", pl.col("beta") == 0.1,
                        pl.col("steps") > 1, pl.col("mu_norm") ** 2 * 80 / pl.col("d") > 9.9),
                ("fitted",),
            ),
            "networks that fit no flipped label": Null(table(memorised=0.0), ("fitted",)),
            "one network better than the best": Null(
                one_run("log_robust", -1e5, pl.col("route") == "ratio"), ("lower",)
            ),
            **{f"too few {name} in one run": Null(one_run(name, 4.0, *where), broken)
               for name, where, broken in (
                   ("clean_draws", (pl.col("route") == "d", pl.col("alpha") == 0.5),
                    ("d", "collapse")),
                   ("robust_draws", (pl.col("route") == "inside_d",), ("inside_collapse",)),
                   ("certified_draws", mild, ("inside",)))},
        },
    )  # fmt: skip
