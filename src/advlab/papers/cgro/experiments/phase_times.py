"""The times of the phases against what the start of a run predicts, over d, N and eta.

T_0, when max alpha u_r reaches 1, is of order 1/(eta alpha^3 sigma_0) by Lemmas 4.2 and C.3, and
T_1, the median over examples of when V_i reaches 1, of order N/(eta sigma_0 sigma^3 d^(3/2)) by
Lemmas 4.4 and C.7; both rest on the recursions of Lemmas A.1 and A.2. Predicted without any fitted
constant: T_0 = 2 (1/u_0 - alpha)/(3 eta alpha^3 (1 - lambda)) with u_0 = max_r u_r(0), and T_1,i =
min_{j,r} 2N/(3 eta lambda ||X_i[j]||^2 v_ijr(0)). The lines are T = T. Small rates show T_0 with
many steps: with eta = 0.02 and the paper's scaling it is over in ten.

Slopes are least squares of log observed against log predicted, one per seed. Lemma A.2's time is
held against the examples that meet the lemma's hypothesis, C <= z_0/2 until V_i >= 1 (C is the
remainder of Lemma C.5): `growth_lemmas` says how many do.
"""

from typing import Literal

import numpy as np
import polars as pl
import torch
from pydantic import PositiveFloat, PositiveInt

from .... import lab
from ....core.randomness import generators
from ....report import Assumption, Claims, Scope, Verdict, empirical, ours
from ....report.charts import AnyChart, panels, points
from ....report.samples import groups, slopes
from ..data import Patches
from ..reductions import patch_law
from ..reductions.patch_dynamics import PatchState, log_steps
from ._parts.assumptions import parameterization
from ._parts.patch_runs import FILTERS, SHARE, memory_times, middle, run, signal_times
from ._parts.remainder import FastestProducts

ABOUT = lab.About(
    paper="cgro",
    item="Lemmas A.1, A.2, C.3 and C.7",
    title="Both phase times are what the start predicts",
    seconds={"smoke": 2, "laptop": 60, "paper": 700},
    looks=2,
    claims={
        "a": ours("T_0 observed goes like T_0 predicted: the exponent is 1 within 0.1"),
        "b": ours("and on average is within a factor [0.5, 1.5] of it, in every setting"),
        "c": ours("T_1 observed goes like T_1 predicted: the exponent is 1 within 0.1"),
        "d": ours("and on average is within a factor [0.5, 1.5] of it, in every setting"),
        "4": empirical("T_0 is below Lemma A.1's time in every run", "lambda", "eta"),
        "6": empirical("T_1,i is below Lemma A.2's time for every example that meets the lemma's "
                       "hypothesis", "A.2"),
    },
)  # fmt: skip
NAME = "cgro/s4"
DIMS = (200, 500, 1000, 2000)


class Case(lab.Case):
    part: Literal["T0", "T1"]
    n: PositiveInt
    dims: tuple[PositiveInt, ...] = DIMS
    rates: tuple[PositiveFloat, ...]
    steps: PositiveInt

    @property
    def cost(self) -> float:
        return self.steps * (1 + (self.n / 20) ** 2) / 1e4


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    sizes, usual, per_point, settings = {
        "smoke": ((4, 8), 3, 800, {"dims": (60, 120)}),
        "laptop": ((40, 20, 10, 5), 20, 2000, {}),
        "paper": ((80, 40, 20, 10, 5), 20, 2000, {"dims": (*DIMS, 4000)}),
    }[scale]
    return [
        case
        for block in lab.blocks(seeds or usual, 20)
        for case in (
            *(
                Case(part="T1", n=n, rates=(0.05,), steps=per_point * n, **settings, **block)
                for n in sizes
            ),
            Case(part="T0", n=5, rates=(0.0005, 0.002, 0.008), steps=4000, **settings, **block),
        )
    ]


def compute(case: Case) -> pl.DataFrame:
    """One row per run: its time, and what the sharp and the paper's formula say."""
    cells = [(d, eta, seed) for d in case.dims for eta in case.rates for seed in case.seeds]
    dims, rates, seeds = zip(*cells, strict=True)
    laws = [Patches.scaled(n=case.n, d=d) for d in dims]
    rngs = [
        rng
        for d in case.dims
        for _ in case.rates
        # The same problems for every rate.
        for rng in generators(NAME, case.part, case.n, d, seeds=case.seeds)
    ]
    problem = patch_law.draw_stack(laws, FILTERS, [d**-0.5 for d in dims], rngs)
    lam, eta = (torch.as_tensor(one).double().expand(len(cells)) for one in (SHARE, rates))
    fastest = FastestProducts(problem)

    def look(state: PatchState) -> dict:
        fastest.note(state)
        return {}

    shown = log_steps(case.steps, 1.02) if case.part == "T1" else ()
    events, _ = run(problem, lam, eta, case.steps, look, shown)
    if case.part == "T0":
        observed = events.signal.numpy()
        sharp, paper = (signal_times(problem, lam, eta, form) for form in ("sharp", "paper"))
    else:
        observed = middle(events.memorised)
        sharp, paper = (
            middle(memory_times(problem, lam, eta, form)) for form in ("sharp", "paper")
        )
    # Lemma A.2, example by example, where its hypothesis is met.
    bound = memory_times(problem, lam, eta, "paper")
    met = fastest.met.numpy() & (case.part == "T1")
    memorised = fastest.memorised.numpy()
    # An example that a run ends too early for is neither in time nor late.
    ended = met & np.isinf(memorised) & (bound > case.steps)
    late = met & ~ended & (memorised > bound)
    return pl.DataFrame(
        {
            "d": dims,
            "eta": rates,
            "seed": seeds,
            "observed": observed,
            "sharp": np.asarray(sharp),
            "paper": np.asarray(paper),
            "met": met.mean(1),
            "late": late.sum(1),
            "ended": ended.sum(1),
        }
    )


def figure(table: pl.DataFrame) -> AnyChart:
    return panels([_against(table, part) for part in ("T0", "T1")], columns=2)


def _against(table: pl.DataFrame, part: str) -> AnyChart:
    """One point per run, against its own prediction."""
    rows = table.filter(pl.col("part") == part, pl.col("observed").is_finite(), _usable())
    rows = rows.with_columns(pl.format("d = {}", "d").alias("dimension")).sort("d")
    ends = [float(rows.select(pl.col("sharp").min()).item() or 1),
            float(rows.select(pl.col("sharp").max()).item() or 1)]  # fmt: skip
    name = {"T0": "T_0, when the signal is learnt", "T1": "T_1, when noise is memorised"}
    return points(
        rows,
        "sharp",
        "observed",
        "dimension",
        theory=pl.DataFrame({"sharp": ends, "observed": ends}),
        title=name[part],
        x_title="predicted steps",
        y_title="observed steps",
        log_x=True,
        log_y=True,
    )


def _usable() -> pl.Expr:
    """Starts that are not yet past 1/alpha, and have a filter that points the right way."""
    return pl.col("sharp").is_finite() & (pl.col("sharp") > 0)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """Parameterization 3.1."""
    return parameterization(table.with_columns(lam=SHARE))


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    rows = table.filter(_usable()).with_columns(ratio=pl.col("observed") / pl.col("sharp"))
    first, second = (rows.filter(part=part) for part in ("T0", "T1"))
    claims, found = Claims(ABOUT.claims), []
    for part, slope, ratio, by in (
        (first, "a", "b", ("d", "eta")),
        (second, "c", "d", ("d", "n")),
    ):
        seen = part if part["observed"].is_finite().all() else part.clear()
        found += [
            claims.equal(slope, slopes(seen, "sharp", "observed"), 1, 0.1,
                what="slope of log observed against log predicted time"),
            claims.within(ratio, groups(part, "ratio", *by), 0.5, 1.5,
                what="observed/predicted time"),
        ]  # fmt: skip
    flags = first.group_by("seed").agg(flag=(pl.col("observed") <= pl.col("paper")).all())
    found.append(
        claims.every("4", flags.sort("seed")["flag"], what="T_0 <= Lemma A.1 in all runs of a seed")
    )
    return [*found, _noisy_growth(claims, table.filter(part="T1"))]


def _noisy_growth(claims: Claims, rows: pl.DataFrame) -> Verdict:
    """Lemma A.2 on the runs in which some example meets its hypothesis."""
    share = float(rows.select(pl.col("met").mean()).item() or 0)
    some = rows.filter(pl.col("met") > 0)
    # Late examples refute; where a run ended before an example was memorised, nothing is known.
    known = pl.when(pl.col("late") > 0).then(False).when(pl.col("ended") == 0).then(True)
    each = some.with_columns(flag=known).group_by("seed")
    flags = each.agg(flag=pl.col("flag").all(ignore_nulls=False)).sort("seed")["flag"]
    flags = flags if flags.drop_nulls().all() else flags.drop_nulls()
    what = (
        "all T_1,i of examples with C <= z_0/2 are at most Lemma A.2's time, in all runs of a seed"
    )
    hypothesis = Assumption(
        name="A.2", condition="C <= z_0/2 until V_i >= 1, share of examples", reached=share,
        holds=share > 0,
    )  # fmt: skip
    verdict = claims.every("6", flags, what=what)
    if some.is_empty():
        verdict = claims.outside("6", "no example has C <= z_0/2 until V_i >= 1")
    return verdict.model_copy(update={"scope": Scope(assumptions=[hypothesis])})
