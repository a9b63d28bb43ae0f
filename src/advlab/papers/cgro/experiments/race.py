r"""Which is first, memorisation or the true feature: how small N must be for Theorem 4.1.

The theorem allows N = poly(d). Signal that survives GTA grows too, at a rate of order
$(\alpha (1 - \gamma))^3$ (Lemma 4.3); the noise of the N training examples at one of order
$\sigma^2 d / N$ (Lemma 4.4). Race numbers are ratios of the times that they take (ours):

- rho, typical of the setting (`theory.race_number`). With the paper's exponents it is N d^-0.475 up
  to logarithms: the theorem needs N small against d^0.475.
- the measured one: T_1 of the same problem when GTA takes all of the signal away (a twin run, so
  that nobody races against the noise), over `theory.residue_time` at the twin's own plateau.

Two ways to say who has won. What carries y f on the GTA examples of training inputs: the signal's
share s/(s + median V_i). And GTA test accuracy, which also asks how large V is on FRESH inputs: it
is (1 + P(|V| <= s))/2, and the fewer examples are memorised, the smaller V is. So accuracy goes up
before the race is lost, the more so the smaller N, and rho does not collapse it.

Each problem (N, d and seed) is run with several gamma, so that each has crossovers of its own:
where the signal's share passes 1/2, and where a logistic curve in log rho from 1/2 to 1, fitted to
accuracy, passes 3/4. Dashed: equal times.
"""

import warnings
from math import log

import altair as alt
import numpy as np
import polars as pl
from pydantic import PositiveFloat, PositiveInt
from scipy.optimize import OptimizeWarning, curve_fit

from .... import lab
from ....core.randomness import generators
from ....report import Assumption, Claims, Verdict, empirical, ours, sample
from ....report.charts import HEIGHT, WIDTH, AnyChart, panels, points
from ....report.samples import groups
from .. import theory
from ..data import Patches
from ..reductions import patch_law
from ._parts.assumptions import parameterization
from ._parts.patch_runs import FILTERS, SHARE, Tester, middle, phases, race_numbers, run, tidy

SIZES = (5, 10, 20, 40)
ABOUT = lab.About(
    paper="cgro",
    item="Theorem 4.1, the size of N",
    title="The race between memorising and learning the true feature",
    seconds={"smoke": 3, "laptop": 65, "paper": 2400},
    looks=2,
    claims={
        "8a": ours("With a measured race number of 1.3 or more the true feature wins in every "
                   "run: the signal carries at least half of y f on GTA training examples"),
        "8c": ours("The measured race number collapses the race over N: the crossover goes like "
                   "N^p with |p| <= 0.1"),
        "8d": ours("and over d: at d = 1000 it is within 15 % of what it is at d = 500"),
        "8e": ours("It is at 1, without a fitted constant, within 20 %, at every N and d"),
        **{f"8b/{n}": ours(f"At N = {n} GTA test accuracy passes 3/4 at rho between 0.3 and 1")
           for n in SIZES},
        "8f": ours("rho collapses GTA test accuracy over N: its crossover goes like N^p with "
                   "|p| <= 0.1"),
        "8g": ours("Learning and memorising exclude each other: no run has median V_i > 1, no GTA "
                   "training error and GTA test accuracy above 90 %"),
        "7": empirical("With rho <= 1/4 and a polylog of 1.5 or more there is CGRO in every run",
                       "lambda", "eta", "sigma"),
    },
)  # fmt: skip
NAME = "cgro/s2 twins"
TARGETS = (0.25, 0.35, 0.5, 0.6, 0.7, 0.85, 1.0, 1.15, 1.3, 1.8)
POLYLOGS = (3.0, None)
"""None is log d."""
TWIN = 1e7
"""The polylog of a run in which GTA leaves nothing of the signal."""


class Case(lab.Case):
    n: PositiveInt
    dims: tuple[PositiveInt, ...] = (500, 1000)
    targets: tuple[PositiveFloat, ...] = TARGETS
    """Values of rho, each reached by the polylog L of 1 - gamma = 1/(sqrt(d) L)."""
    polylogs: tuple[PositiveFloat | None, ...] = POLYLOGS
    eta: PositiveFloat = 0.1
    steps: PositiveInt
    tested: PositiveInt = 4000

    @property
    def cells(self) -> list[tuple[int, float]]:
        """(d, polylog); the first of each d is the twin."""
        return [
            (d, L)
            for d in self.dims
            for L in (
                TWIN,
                *(polylog_of(self.n, d, rho) for rho in self.targets),
                *(log(d) if L is None else L for L in self.polylogs),
            )
        ]

    @property
    def cost(self) -> float:
        return self.steps * self.replicates * (0.3 + len(self.dims) * (self.n / 40) ** 2) / 1e4


def polylog_of(n: int, d: int, rho: float) -> float:
    """The L at which the typical race number is rho: it goes like L^-3."""
    law = Patches.scaled(n=n, d=d, polylog=1.0)
    one = theory.race_number(
        n, d, law.alpha, law.sigma, law.gamma, sigma0=d**-0.5, m=FILTERS, P=law.P
    )
    return float((one / rho) ** (1 / 3))


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    some = {"dims": (60,), "targets": (0.3, 1.0), "polylogs": (None,), "tested": 100}
    sizes, usual, per_point, settings = {
        "smoke": ((4, 8), 2, 50, some),
        "laptop": (SIZES[::-1], 8, 600, {}),
        "paper": ((160, 80, *SIZES[::-1]), 8, 600, {"dims": (500, 1000, 2000)}),
    }[scale]
    return [
        Case(n=n, steps=per_point * n, **settings, **block)
        for block in lab.blocks(seeds or usual, 8)
        for n in sizes
    ]


def compute(case: Case) -> pl.DataFrame:
    """All cells of one N and their seeds as one stack; rows at the end only, without the twins."""
    cells = [(d, L, seed) for d, L in case.cells for seed in case.seeds]
    dims, polylogs, seeds = zip(*cells, strict=True)
    laws = [Patches.scaled(n=case.n, d=d, polylog=L) for d, L, _ in cells]
    # The same problem for every polylog.
    rngs = [rng for d, _ in case.cells for rng in generators(NAME, case.n, d, seeds=case.seeds)]
    problem = patch_law.draw_stack(laws, FILTERS, [d**-0.5 for d in dims], rngs)
    tester = Tester(case.tested, NAME, case.n, seeds=seeds)
    plateau = _Plateau(len(cells))
    shown = set(plateau_steps(case.steps))
    events, seen = run(
        problem, SHARE, case.eta, case.steps,
        lambda state: plateau(state) | (tester(state) if state.step == case.steps else {}), shown,
    )  # fmt: skip
    typical, own = race_numbers(laws, problem)
    columns = {"d": dims, "polylog": polylogs, "seed": seeds, "rho": typical, "own rho": own,
               "T1": middle(events.memorised), "c": plateau.c,
               "alpha": [law.alpha for law in laws], "gamma": [law.gamma for law in laws],
               "sigma": [law.sigma for law in laws]}  # fmt: skip
    return _against_twins(tidy(seen[-1:], columns), case.eta)


def plateau_steps(last: int) -> list[int]:
    """Steps at which the plateau is read: every five percent, and the last."""
    return sorted({*(round(1.05**k) for k in range(int(np.log(last) / np.log(1.05)))), last})


class _Plateau:
    """alpha max_r u_r at the last step shown before the median example is memorised."""

    def __init__(self, replicates: int):
        self.c = np.full(replicates, np.nan)

    def __call__(self, state) -> dict:
        found = phases(state)
        waiting = (found["median V"] < 1).numpy()
        self.c[waiting] = found["alpha u"].numpy()[waiting]
        return found


def _against_twins(rows: pl.DataFrame, eta: float) -> pl.DataFrame:
    """The measured race number of each run, from the twin of its problem."""
    twin = pl.col("polylog") == TWIN
    twins = rows.filter(twin).select("d", "seed", pl.col("T1", "c").name.prefix("twin "))
    both = rows.filter(~twin).join(twins, on=["d", "seed"], how="left")
    parts = [both[name].to_numpy() for name in ("alpha", "gamma", "twin c")]
    survives = theory.residue_time(parts[0], parts[1], eta, SHARE, parts[2])
    residue = (1 - pl.col("gamma")) ** 3 * pl.col("signal")
    return both.with_columns(
        pl.Series("race", both["twin T1"].to_numpy() / survives),
        accuracy=1 - pl.col("GTA test"),
        share=residue / (residue + pl.col("median V")),
    )


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """Parameterization 3.1 at each d, and what N = poly(d) leaves out."""
    return parameterization(table.with_columns(lam=SHARE))


def crossover(rho: np.ndarray, accuracy: np.ndarray) -> float:
    """Where a logistic curve in log rho, from 1/2 to 1, passes 3/4; nan if none can be fitted."""

    def curve(x: np.ndarray, middle: float, steepness: float) -> np.ndarray:
        return 0.5 + 0.5 / (1 + np.exp(-np.clip(steepness * (x - middle), -50, 50)))

    try:
        with warnings.catch_warnings():
            # A curve that is all level has no covariance; it is found out below.
            warnings.simplefilter("ignore", OptimizeWarning)
            (middle, steepness), _ = curve_fit(
                curve, np.log(rho), accuracy, p0=(np.log(0.6), 4.0), maxfev=5000
            )
    except RuntimeError:
        return float("nan")
    return float(np.exp(middle)) if steepness > 0 else float("nan")


def passes_half(race: np.ndarray, share: np.ndarray) -> float:
    """Where the signal's share first passes 1/2, interpolated in log race; nan if it does not."""
    order = np.argsort(race)
    x, w = np.log(race[order]), share[order]
    up = np.flatnonzero((w[:-1] < 0.5) & (w[1:] >= 0.5))
    if not len(up):
        return float("nan")
    k = up[0]
    return float(np.exp(x[k] + (0.5 - w[k]) / (w[k + 1] - w[k]) * (x[k + 1] - x[k])))


def crossovers(table: pl.DataFrame) -> pl.DataFrame:
    """(n, d, seed, race, rho): of each problem, where the race and where accuracy crosses."""
    rows = []
    for (n, d, seed), one in table.partition_by("n", "d", "seed", as_dict=True).items():
        race, rho, share, accuracy = (
            one[name].to_numpy() for name in ("race", "rho", "share", "accuracy")
        )
        rows.append((n, d, seed, passes_half(race, share), crossover(rho, accuracy)))
    return pl.DataFrame(rows, schema=["n", "d", "seed", "race", "rho"], orient="row").sort(
        "n", "d", "seed"
    )


def figure(table: pl.DataFrame) -> AnyChart:
    shown = table.with_columns(pl.format("N = {}", "n").alias("examples")).sort("n")
    found = crossovers(table).with_columns(pl.format("N = {}", "n").alias("examples"))
    titles = {
        "race": "where the signal's share passes 1/2",
        "rho": "where GTA test accuracy passes 3/4",
    }
    seen = {name: found.filter(pl.col(name).is_finite()) for name in titles}
    return panels(
        [
            _against(shown, "race", "share", "measured race number", "signal's share of y f"),
            _against(shown, "rho", "accuracy", "rho (typical, c = 2.5)", "GTA test accuracy"),
            *(points(rows, "n", name, "examples", title=titles[name], x_title="N", y_title=name,
                     log_x=True, log_y=True) for name, rows in seen.items() if len(rows)),
        ],
        columns=2,
    )  # fmt: skip


def _against(table: pl.DataFrame, x: str, y: str, x_title: str, y_title: str) -> AnyChart:
    rows = table.with_columns(pl.col(x).median().over("n", "d", "polylog"))
    chart = points(rows, x, y, "examples", x_title=x_title, y_title=y_title, log_x=True)
    line = alt.Chart(pl.DataFrame({"x": [1.0]}), width=WIDTH, height=HEIGHT)
    rule = line.mark_rule(strokeDash=[5, 4], strokeWidth=1.5, color="#888").encode(x="x:Q")
    return alt.LayerChart(layer=[chart, rule], title=f"{y_title} against {x}")


def _exponents(found: pl.DataFrame, column: str) -> list[float]:
    """Of each seed, the slope of log crossover against log N over all d; nan if one is missing."""
    return [
        float(np.polyfit(np.log(rows["n"].to_numpy()), np.log(rows[column].to_numpy()), 1)[0])
        if rows[column].is_finite().all() and rows["n"].n_unique() > 1
        else float("nan")
        for _, rows in sorted(found.partition_by("seed", as_dict=True).items())
    ]


def _over_dims(found: pl.DataFrame) -> dict:
    """The race's crossover at the largest d over that at the least, at each N."""
    least, most = (found.filter(d=d) for d in (found["d"].min(), found["d"].max()))
    both = least.join(most, on=["n", "seed"], suffix=" most")
    return groups(both.with_columns(ratio=pl.col("race most") / pl.col("race")), "ratio", "n")


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, found = Claims(ABOUT.claims), crossovers(table)
    lost = table.filter(pl.col("race") >= 1.3)
    small = table.filter((pl.col("rho") <= 0.25 + 1e-9) & (pl.col("polylog") >= 1.5))
    cgro = (
        (pl.col("clean test") <= 0.01)
        & (pl.col("GTA train") == 0)
        & ((pl.col("accuracy") - 0.5).abs() <= 0.08)
    )
    both = (pl.col("median V") > 1) & (pl.col("GTA train") == 0) & (pl.col("accuracy") > 0.9)
    at = "rho where the fitted GTA test accuracy passes 3/4, over d and seeds"
    exponent = "slope of log crossover against log N"
    return [
        claims.every("8a", _per_problem(lost, pl.col("share") >= 0.5),
            what="the signal carries half of y f in all runs of a problem with race >= 1.3"),
        claims.equal("8c", _exponents(found, "race"), 0, 0.1, what=f"{exponent}, of the race"),
        claims.equal("8d", _over_dims(found), 1, 0.15, what="crossover at the larger d/smaller d"),
        claims.equal("8e", groups(found, "race", "n", "d"), 1, 0.2,
            what="race number where the signal's share passes 1/2"),
        *(claims.within(f"8b/{n}", _over_seeds(found.filter(n=n)), 0.3, 1, what=at)
          for n in SIZES),
        claims.equal("8f", _exponents(found, "rho"), 0, 0.1, what=f"{exponent}, of accuracy"),
        claims.every("8g", _per_problem(table, ~both),
            what="no run of a problem both memorises and is right on GTA test examples"),
        claims.every("7", _per_problem(small, cgro),
            what="clean test error at most 1 %, no GTA training error and GTA test error in "
            "[.42, .58] in all runs of a problem"),
    ]  # fmt: skip


def _per_problem(rows: pl.DataFrame, flag: pl.Expr) -> pl.Series:
    """Whether the flag holds in all runs of each problem: runs of one share their data."""
    return rows.group_by("n", "d", "seed", maintain_order=True).agg(flag=flag.all())["flag"]


def _over_seeds(found: pl.DataFrame) -> pl.Series:
    """The geometric mean over d of each seed's crossovers."""
    means = found.group_by("seed").agg(pl.col("rho").log().mean().exp())
    mean = sample(means, "rho")
    return mean if isinstance(mean, pl.Series) else pl.Series()
