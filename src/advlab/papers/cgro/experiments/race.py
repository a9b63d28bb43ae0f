"""Which is first, memorisation or the true feature: how small N must be for Theorem 4.1.

The theorem allows N = poly(d). Signal that survives GTA grows too, at a rate of order
(alpha (1 - gamma))^3 (Lemma 4.3); the noise of the N training examples at one of order sigma^2 d/N
(Lemma 4.4). rho is the ratio of the times that they take (ours, `theory.race_number`). With small
rho noise is memorised first and GTA test accuracy stays at 1/2 (CGRO); with large rho the network
learns the true feature robustly, memorises nothing and is right on GTA examples. With the paper's
exponents rho is N d^-0.475 up to logarithms: the theorem needs N small against d^0.475.

Cells differ in d, N and the polylog L of 1 - gamma = 1/(sqrt(d) L). Left: accuracy against rho in
its typical form, with c = 2.5 for alpha max u on the plateau and kappa = sqrt(2 log(m (P - 1))).
Middle: against the form that each run's own start gives (c = 1). Dashed: the fitted crossover, a
logistic curve in log rho from 1/2 to 1, at 3/4. Right: the same accuracies over N and L, d = 1000.
"""

from math import log

import altair as alt
import numpy as np
import polars as pl
from pydantic import PositiveFloat, PositiveInt
from scipy.optimize import curve_fit

from .... import lab
from ....core.randomness import generators
from ....report import Claims, Verdict
from ....report.charts import HEIGHT, WIDTH, AnyChart, heat, panels, points
from ....report.samples import groups
from ..data import Patches
from ..reductions import patch_law
from ._parts.patch_runs import FILTERS, SHARE, Tester, phases, race_numbers, run, tidy

ABOUT = lab.About(
    paper="cgro",
    item="Theorem 4.1, the size of N",
    title="The race between memorising and learning the true feature",
    seconds={"smoke": 2, "laptop": 240, "paper": 1200},
    looks=1,
    claims={
        "8a": "With rho >= 1 the true feature is learnt: GTA test accuracy is at least 95 %",
        "8b": "The crossover is at rho between 0.3 and 1",
        "8c": "also with rho measured at the start of each run",
        "7": "With rho <= 1/4 and a polylog of 1.5 or more there is CGRO in every run",
    },
)
NAME = "cgro/s2"
POLYLOGS = (0.8, 1.0, 1.2, 1.5, 3.0, None)
"""None is log d."""


class Case(lab.Case):
    n: PositiveInt
    dims: tuple[PositiveInt, ...] = (500, 1000)
    polylogs: tuple[PositiveFloat | None, ...] = POLYLOGS
    eta: PositiveFloat = 0.1
    steps: PositiveInt
    tested: PositiveInt = 4000

    @property
    def cells(self) -> list[tuple[int, float]]:
        """(d, polylog)."""
        return [(d, log(d) if L is None else L) for d in self.dims for L in self.polylogs]

    @property
    def cost(self) -> float:
        return self.steps * (0.3 + len(self.dims) * (self.n / 40) ** 2) / 1e4


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    sizes, usual, per_point, settings = {
        "smoke": ((4, 8), 2, 50, {"dims": (60,), "polylogs": (0.8, None), "tested": 100}),
        "laptop": ((80, 40, 20, 10, 5), 5, 600, {}),
        "paper": ((160, 80, 40, 20, 10, 5), 5, 600, {"dims": (500, 1000, 2000)}),
    }[scale]
    return [
        Case(n=n, steps=per_point * n, **settings, **block)
        for block in lab.blocks(seeds or usual, 5)
        for n in sizes
    ]


def compute(case: Case) -> pl.DataFrame:
    """All cells of one N and their seeds as one stack; rows at the end only."""
    cells = [(d, L, seed) for d, L in case.cells for seed in case.seeds]
    laws = [Patches.scaled(n=case.n, d=d, polylog=L) for d, L, _ in cells]
    rngs = [
        rng
        for d, L in case.cells
        for rng in generators(NAME, case.n, d, f"{L:.6g}", seeds=case.seeds)
    ]
    problem = patch_law.draw_stack(laws, FILTERS, [d**-0.5 for d, _, _ in cells], rngs)
    tester = Tester(case.tested, NAME, case.n, seeds=range(len(cells)))
    _, seen = run(
        problem,
        SHARE,
        case.eta,
        case.steps,
        lambda state: phases(state) | tester(state),
        {case.steps},
    )
    typical, measured = race_numbers(laws, problem)
    dims, polylogs, seeds = zip(*cells, strict=True)
    columns = {"d": dims, "polylog": polylogs, "seed": seeds, "rho": typical, "own rho": measured}
    return tidy(seen, columns).with_columns(accuracy=1 - pl.col("GTA test"))


def crossover(rho: np.ndarray, accuracy: np.ndarray) -> float:
    """Where a logistic curve in log rho, from 1/2 to 1, passes 3/4; nan if none can be fitted."""

    def curve(x: np.ndarray, middle: float, steepness: float) -> np.ndarray:
        return 0.5 + 0.5 / (1 + np.exp(-np.clip(steepness * (x - middle), -50, 50)))

    try:
        (middle, steepness), _ = curve_fit(
            curve, np.log(rho), accuracy, p0=(np.log(0.6), 4.0), maxfev=5000
        )
    except RuntimeError:
        return float("nan")
    return float(np.exp(middle)) if steepness > 0 else float("nan")


def crossovers(table: pl.DataFrame, rho: str) -> list[float]:
    """One per seed, over all cells."""
    parts = sorted(table.partition_by("seed", as_dict=True).items())
    return [crossover(rows[rho].to_numpy(), rows["accuracy"].to_numpy()) for _, rows in parts]


def figure(table: pl.DataFrame) -> AnyChart:
    shown = table.with_columns(pl.format("d = {}", "d").alias("dimension"))
    charts: list[AnyChart] = [
        _against(shown, "rho", "rho (typical, c = 2.5)"),
        _against(_binned(shown), "own rho", "rho (measured at the start, c = 1)"),
        heat(
            table.filter(pl.col("d") == pl.col("d").max()).with_columns(pl.col("polylog").round(2)),
            "n",
            "polylog",
            "accuracy",
            domain=(0.5, 1.0),
            title=f"GTA test accuracy, d = {max(table['d'])}",
            x_title="N",
            y_title="polylog L",
            value_title="accuracy",
            log_x=True,
            log_y=True,
        ),
    ]
    return panels(charts, columns=3).resolve_scale(color="independent")


def _binned(table: pl.DataFrame) -> pl.DataFrame:
    """Each cell at the median of its runs' own rho, so that its seeds make one point."""
    return table.with_columns(pl.col("own rho").median().over("n", "d", "polylog"))


def _against(table: pl.DataFrame, rho: str, x_title: str) -> AnyChart:
    middle = float(np.nanmedian(crossovers(table, rho)))
    chart = points(
        table,
        rho,
        "accuracy",
        "dimension",
        x_title=x_title,
        y_title="GTA test accuracy",
        log_x=True,
    )
    line = alt.Chart(pl.DataFrame({"x": [middle]}), width=WIDTH, height=HEIGHT)
    rule = line.mark_rule(strokeDash=[5, 4], strokeWidth=1.5, color="#888").encode(x="x:Q")
    layers = [chart, rule] if np.isfinite(middle) else [chart]
    return alt.LayerChart(layer=layers, title=f"crossover at rho = {middle:.2g}")


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims = Claims(ABOUT.claims)
    large = table.filter(pl.col("rho") >= 1)
    small = table.filter((pl.col("rho") <= 0.25) & (pl.col("polylog") >= 1.5))
    fails = (
        (pl.col("clean test") > 0.01)
        | (pl.col("GTA train") > 0)
        | ((pl.col("accuracy") - 0.5).abs() > 0.08)
    )
    what = "rho where the fitted GTA test accuracy passes 3/4"
    return [
        claims.within("8a", groups(large, "accuracy", "n", "d", "polylog"), 0.95, 1.0,
            what="GTA test accuracy where rho >= 1"),
        claims.within("8b", crossovers(table, "rho"), 0.3, 1, what=what),
        claims.within("8c", crossovers(table, "own rho"), 0.3, 1, what=what),
        claims.below("7",
            float(small.select(fails.sum()).item()) if small.height else float("nan"), 1,
            what="the number of runs with clean test error above 1 %, a GTA training error, or "
            "GTA test error outside [.42, .58]"),
    ]  # fmt: skip
