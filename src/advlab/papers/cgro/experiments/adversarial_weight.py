"""The weight lambda of adversarial training in (O) sets when memorisation comes, not whether.

Theorem 4.1 allows every lambda from 1/poly(d) to 1. Setting A (d = 1000, N = 20, eta = 0.02). T_1,
here the first step with median_i V_i >= 1/2, goes like 1/lambda, as only the adversarial part of
the loss is left to push once clean inputs are right; the order of T_1 in Lemma C.7 omits the
factor. At lambda = 0 nothing is memorised at all: V_i stays at its start, and GTA examples of
training inputs are wrong as often as those of test inputs. Claims 9a to 9c say so; 9d is about the
time, and a power of lambda other than -1 by a tenth or more would miss its tolerance.
"""

import polars as pl
import torch
from pydantic import PositiveFloat, PositiveInt

from .... import lab
from ....core.randomness import generators
from ....report import Assumption, Claims, Verdict, empirical, ours, sample
from ....report.charts import AnyChart, curves, panels, points
from ....report.samples import ends, groups
from ..data import Patches
from ..reductions import patch_law
from ._parts.assumptions import parameterization
from ._parts.patch_runs import (
    FILTERS,
    RATE,
    Tester,
    log_steps,
    memory_times,
    middle,
    phases,
    run,
    tidy,
)

ABOUT = lab.About(
    paper="cgro",
    item="Theorem 4.1 and Lemma C.7, the weight lambda",
    title="Any weight on adversarial examples memorises; the time is its inverse",
    seconds={"smoke": 2, "laptop": 45, "paper": 800},
    looks=1,
    claims={
        "9a": ours("Clean training leaves GTA examples of training inputs wrong that any lambda > "
                   "0 makes right: its GTA training error is at least 0.3 larger"),
        "9b": ours("and memorises nothing: |mean V_i| is below 0.05"),
        "9c": ours("while clean test accuracy is at least 99 % on average"),
        "9d": ours("T_1 is proportional to 1/lambda, within 10 % at each lambda"),
        "9e": empirical("Every lambda > 0 memorises: min V_i >= 1 in the end in every run",
                        "lambda", "eta"),
    },
)  # fmt: skip
NAME = "cgro/s3"
SHARES = (0.1, 0.3, 0.5, 0.9)
LONG = 40_000
"""Steps times lambda: 80 000 at lambda = 1/2, as in `phases`."""


class Case(lab.Case):
    lam: float
    d: PositiveInt = 1000
    n: PositiveInt = 20
    eta: PositiveFloat = RATE
    steps: PositiveInt = 2 * LONG
    tested: PositiveInt = 4000

    @property
    def cost(self) -> float:
        return self.steps * self.replicates / 1e6


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    usual, long, shares, settings = {
        "smoke": (3, 300, (0.3, 0.5), {"d": 120, "n": 5, "eta": 0.1, "tested": 200}),
        "laptop": (20, LONG, SHARES, {}),
        "paper": (20, LONG, (0.05, *SHARES, 0.95), {}),
    }[scale]
    return [
        Case(lam=lam, steps=round(long / (lam or 0.5)), **settings, **block)
        for block in lab.blocks(seeds or usual, 20)
        for lam in (*shares, 0.0)
    ]


def compute(case: Case) -> pl.DataFrame:
    law, seeds = Patches.scaled(n=case.n, d=case.d), list(case.seeds)
    # The same problems for every lambda.
    rngs = generators(NAME, "problem", seeds=seeds)
    problem = patch_law.draw_stack(law, FILTERS, law.d**-0.5, rngs)
    tester = Tester(case.tested, NAME, seeds=seeds)
    events, seen = run(
        problem,
        case.lam,
        case.eta,
        case.steps,
        lambda state: phases(state) | tester(state),
        log_steps(case.steps, 1.08),
    )
    each = torch.ones(len(seeds), dtype=torch.float64)
    predicted = middle(memory_times(problem, case.lam * each, case.eta * each))
    return tidy(seen, {"seed": seeds, "T1": events.half.numpy(), "T1 sharp": predicted})


def figure(table: pl.DataFrame) -> AnyChart:
    rows = table.filter(pl.col("step") > 0).sort("lam", descending=True)
    rows = rows.with_columns(
        **{"lambda": pl.col("lam").map_elements(lambda one: f"{one:g}", return_dtype=pl.String)}
    )
    trained = ends(rows).filter(pl.col("lam") > 0, pl.col("T1").is_finite()).sort("lam")
    theory = trained.select("lam", T1="T1 sharp").group_by("lam").median().sort("lam")
    times = points(
        trained,
        "lam",
        "T1",
        theory=theory,
        title="time of memorisation",
        x_title="lambda",
        y_title="T_1 (median V_i >= 1/2)",
        log_x=True,
        log_y=True,
    )
    shown = {"signal": "alpha^3 U", "median V": "median_i V_i"}
    lines = [
        curves(
            rows, "step", name, "lambda", title=title, x_title="steps t", y_title=title, log_x=True
        )
        for name, title in shown.items()
    ]
    return panels([*lines, times], columns=3)


def proportion(table: pl.DataFrame) -> pl.DataFrame:
    """(lam, seed, ratio): lambda T_1 over what it is for the same problem at lambda = 1/2."""
    rows = ends(table).filter(pl.col("lam") > 0)
    scaled = rows.select("lam", "seed", time=pl.col("lam") * pl.col("T1")).sort("lam", "seed")
    half = scaled.filter(lam=0.5).select("seed", half="time")
    both = scaled.filter(pl.col("lam") != 0.5).join(half, on="seed", how="left")
    # An event that was not seen has no ratio, which leaves the claim undecided.
    ratio = pl.when(pl.col("half").is_finite()).then(pl.col("time") / pl.col("half"))
    return both.select("lam", "seed", ratio=ratio)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """Parameterization 3.1."""
    return parameterization(table)


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, end = Claims(ABOUT.claims), ends(table)
    clean, trained = end.filter(lam=0.0), end.filter(pl.col("lam") > 0)
    worst = trained.group_by("seed").agg(most=pl.col("GTA train").max())
    clean = clean.join(worst, on="seed", how="left").with_columns(
        left=pl.col("GTA train") - pl.col("most"),
        size=pl.col("mean V").abs(),
        right=1 - pl.col("clean test"),
    )
    memorised = trained.group_by("seed").agg(flag=(pl.col("smallest V") >= 1).all()).sort("seed")
    return [
        claims.above("9a", sample(clean, "left"), 0.3,
            what="GTA training error at lambda = 0 less the largest at lambda > 0"),
        claims.below("9b", sample(clean, "size"), 0.05, what="|mean_i V_i| at lambda = 0"),
        claims.above("9c", sample(clean, "right"), 0.99, what="clean test accuracy at lambda = 0"),
        claims.equal("9d", groups(proportion(table), "ratio", "lam"), 1, 0.1,
            what="lambda T_1 over its value at lambda = 1/2"),
        claims.every("9e", memorised["flag"], what="min_i V_i >= 1 at every lambda > 0 of a seed"),
    ]  # fmt: skip
