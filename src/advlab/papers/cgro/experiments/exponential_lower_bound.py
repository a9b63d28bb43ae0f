r"""What robust classifiers must cost (Theorem 5.3), and the tensor-power lemmas (A.1 to A.3).

- Points of a grid of spacing 2 delta in the slice x_D = 1/2, lifted a little to either side by an
  arbitrary phi: $n = (1 + \lfloor 1/(2 \delta) \rfloor)^{D-1}$ of them. Networks that fit all phi
  but for a share mu have VC dimension at least C(mu) n. C(mu) in three versions: the paper's, with
  the binary entropy, and exact by big integers. M_D: the least number of parameters whose envelope
  network can have that VC dimension, by a bound with all its constants (the paper has orders). D
  runs from 4 to 40: for a few dimensions M_D is 2, the least there is.
- Recursions of the proof of Theorem 4.1, ten thousand random ones per lemma, run until they arrive:
  no time may be exceeded. Sharp forms are derived here and used for T_0 and T_1.

These are bounds on what must be. How large networks are, `cgro/explicit_classifier` says of a
construction and `convergence/robust_capacity` of training; nothing is trained here.
"""

from typing import Literal

import numpy as np
import polars as pl
import torch
from pydantic import PositiveInt

from .... import lab
from ....core.randomness import generator
from ....report import Claims, Verdict, identity, theorem
from .. import theory
from ._parts.lower_bound_figure import MU_DRAWN, RADIUS_DRAWN
from ._parts.lower_bound_figure import figure as figure

ABOUT = lab.About(
    paper="cgro",
    item="Theorem 5.3 and Lemmas A.1 to A.3",
    title="The exponential lower bound, and times of tensor-power recursions",
    seconds={"smoke": 2, "laptop": 1, "paper": 20},
    looks=1,
    claims={
        "13a": theorem("No recursion exceeds the time or bound of its lemma (A.1, A.2, A.3)"),
        "13b": theorem("and none exceeds the sharp form"),
        "17a": theorem("The paper's C(mu) is at most that with the binary entropy"),
        "17b": theorem("which is at most the exact one + 1/n"),
        "17c": identity("M_D never falls with D"),
        "17d": identity("and grows like n^(1/4), as the paper's order has it: the slope of log M_D "
                        "in D is log(1 + floor(1/(2 delta)))/4 within 10 % from D = 20 on"),
    },
)  # fmt: skip
NAME = "cgro/s7"
MU = (0.001, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
RADII = (0.05, RADIUS_DRAWN, 0.2)
LARGE = 20
"""From this D on the logarithm in the VC bound bends the line little."""
SCHEMA = {"seed": pl.Int64, "quantity": pl.String, "kind": pl.String, "x": pl.Float64,
          "value": pl.Float64}  # fmt: skip
Row = tuple[int, str, str, float, float]


class Case(lab.Case):
    part: Literal["A.1", "A.2", "A.3", "shares", "sizes"]
    draws: PositiveInt = 10_000
    steps: PositiveInt = 20_000
    """More than any recursion takes."""
    n: tuple[PositiveInt, ...] = (50, 200, 1000, 2000)
    dims: tuple[PositiveInt, ...] = tuple(range(4, 41, 2))


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    usual, some = {
        "smoke": (1, {"draws": 200, "n": (50,), "dims": (4, 8, 12, 16)}),
        "laptop": (1, {}),
        "paper": (5, {}),
    }[scale]
    lemmas: tuple[Literal["A.1", "A.2", "A.3"], ...] = ("A.1", "A.2", "A.3")
    return [
        *(Case(part=part, replicates=seeds or usual, **some) for part in lemmas),
        Case(part="shares", **some),
        Case(part="sizes", **some),
    ]


def compute(case: Case) -> pl.DataFrame:
    if case.part in ("shares", "sizes"):
        rows = (_shares if case.part == "shares" else _sizes)(case)
    else:
        run = {"A.1": _growth, "A.2": _noisy, "A.3": _decay}[case.part]
        rows = [row for seed in case.seeds for row in run(case, seed)]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def _numbers(case: Case, seed: int) -> np.random.Generator:
    """numpy's generator, from the lab's names."""
    start = torch.randint(2**62, (1,), generator=generator(NAME, case.part, seed))
    return np.random.default_rng(int(start))


def _starts(rng: np.random.Generator, n: int) -> tuple[np.ndarray, ...]:
    """Start, target and rate over orders of magnitude; 1/(m z0) is at most 1000."""
    start = 10 ** rng.uniform(-4, 1, n)
    target = start * 10 ** rng.uniform(0, 4, n)
    return start, target, 10 ** rng.uniform(-3, 1, n) / start


def _arrivals(start: np.ndarray, target: np.ndarray, step, steps: int) -> np.ndarray:
    """The first t with z_t >= target; nan if there is none."""
    z, time = start.copy(), np.where(start >= target, 0.0, np.nan)
    for t in range(1, steps):
        waiting = np.isnan(time)
        if not waiting.any():
            break
        z = np.where(waiting, step(z, t), z)
        time = np.where(waiting & (z >= target), t, time)
    return time


def _growth(case: Case, seed: int) -> list[Row]:
    """Lemma A.1: a third each at the lower rate, at the upper one, and anywhere between."""
    rng = _numbers(case, seed)
    z0, v, m = _starts(rng, case.draws)
    M = m * 10 ** rng.uniform(0, 1.5, case.draws)
    kind = rng.integers(3, size=case.draws)

    def step(z: np.ndarray, t: int) -> np.ndarray:
        share = np.select([kind == 0, kind == 1], [0.0, 1.0], rng.random(case.draws))
        return z + (m + (M - m) * share) * z**2

    time = _arrivals(z0, v, step, case.steps)
    return _uses(seed, "A.1", time / theory.growth_time(z0, v, m, M, "paper"),
                 time / theory.growth_time(z0, v, m))  # fmt: skip


def _noisy(case: Case, seed: int) -> list[Row]:
    """Lemma A.2: noise that stays low, alternates, is random, or falls when the sum is large."""
    rng = _numbers(case, seed)
    z0, v, A = _starts(rng, case.draws)
    C = z0 / 2 * rng.random(case.draws)
    kind, total = rng.integers(4, size=case.draws), z0.copy()

    def step(z: np.ndarray, t: int) -> np.ndarray:
        total[:] = total + A * z**2
        noise = [-1.0, (-1.0) ** t, rng.uniform(-1, 1, case.draws)]
        dip = np.where(total < v / 2, 1.0, -1.0)
        return total + C * np.select([kind == 0, kind == 1, kind == 2], noise, dip)

    # The sum runs on beyond the target, where it may overflow and is not looked at.
    with np.errstate(over="ignore"):
        time = _arrivals(z0, v, step, case.steps)
    return _uses(seed, "A.2", time / theory.noisy_growth_time(z0, v, A, C, "paper"),
                 time / theory.noisy_growth_time(z0, v, A, C))  # fmt: skip


def _decay(case: Case, seed: int) -> list[Row]:
    """Lemma A.3, at each of 300 steps: exactly at the rate, or now and then faster."""
    rng = _numbers(case, seed)
    A = 10 ** rng.uniform(-2, 2, case.draws)
    z = start = 10 ** rng.uniform(-3, 0, case.draws) / A
    faster = rng.random(case.draws) < 0.5
    paper, sharp = np.zeros(case.draws), np.zeros(case.draws)
    for t in range(1, 301):
        extra = faster * 0.2 * rng.random(case.draws) * (rng.random(case.draws) < 0.2)
        z = (z - A * z**2) * (1 - extra)
        paper = np.maximum(paper, z / theory.decay_bound(t, A, form="paper"))
        sharp = np.maximum(sharp, z / theory.decay_bound(t, A, start))
    return _uses(seed, "A.3", paper, sharp)


def _uses(seed: int, lemma: str, paper: np.ndarray, sharp: np.ndarray) -> list[Row]:
    """How much of its bound a recursion uses: violations, those that never came, quantiles."""
    rows = []
    for form, use in (("paper", paper), ("sharp", sharp)):
        # A recursion that did not arrive counts as a violation; 1e-9 is for rounding.
        over = np.isnan(use) | (use > 1 + 1e-9)
        rows.append((seed, f"{form} violations", lemma, 0.0, float(over.sum())))
        shares = np.quantile(
            np.nan_to_num(use, nan=np.inf), np.linspace(0, 1, 101), method="higher"
        )
        rows += [
            (seed, f"{form} use", lemma, float(q), float(value))
            for q, value in zip(np.linspace(0, 100, 101), shares, strict=True)
        ]
    return rows


def _shares(case: Case) -> list[Row]:
    """C(mu), the exact one for each n; x is mu."""
    rows = []
    for mu in MU:
        rows += [
            (0, "share", kind, mu, theory.capacity_share(mu, kind)) for kind in ("paper", "entropy")
        ]
        rows += [
            (0, "share", f"exact, n = {n}", mu, theory.capacity_share(mu, "exact", n))
            for n in case.n
        ]
    return rows


def _sizes(case: Case) -> list[Row]:
    """log10 of n, of C(mu) n and of M_D; x is D."""
    rows = []
    for delta in RADII:
        for d in case.dims:
            values = {
                "points": float(theory.packing_size(d, delta)),
                "VC dimension": theory.required_vc(d, delta, MU_DRAWN),
                "parameters": float(theory.least_parameters(d, delta, MU_DRAWN)),
            }
            rows += [
                (0, name, f"{delta:g}", float(d), float(np.log10(value)))
                for name, value in values.items()
            ]
    return rows


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, shares = Claims(ABOUT.claims), _by_mu(table)
    exact = {name: one for name, one in shares.items() if name.startswith("exact")}
    slack = {
        name: float((one + 1 / int(name.rpartition(" ")[2]) - shares["entropy"]).min())
        for name, one in exact.items()
    }
    rises, slopes = _lines(table)
    return [
        claims.below("13a", _violations(table, "paper"), 1, what="number of violations"),
        claims.below("13b", _violations(table, "sharp"), 1, what="number of violations"),
        claims.above("17a", (shares["entropy"] - shares["paper"]).min(), -1e-12,
            what="least entropy share less the paper's"),
        claims.above("17b", slack, -1e-12, what="least exact share + 1/n less the entropy's"),
        claims.above("17c", rises, -1e-12, what="least rise of log10 M_D from one D to the next"),
        # Powers 1/3 and 1/5 of n would be off by a third and a fifth.
        claims.equal("17d", slopes, 1, 0.1,
            what=f"4 times the slope of log10 M_D in D from {LARGE} on over log10 of the side"),
    ]  # fmt: skip


def _violations(table: pl.DataFrame, form: str) -> dict[str, float]:
    rows = table.filter(quantity=f"{form} violations").group_by("kind").agg(pl.col("value").sum())
    return {
        f"Lemma {kind}": value for kind, value in rows.sort("kind").select("kind", "value").rows()
    }


def _by_mu(table: pl.DataFrame) -> dict[str, np.ndarray]:
    rows = table.filter(quantity="share").sort("x")
    parts = rows.partition_by("kind", as_dict=True)
    return {str(kind): part["value"].to_numpy() for (kind,), part in parts.items()}


def _lines(table: pl.DataFrame) -> tuple[dict[str, float], dict[str, float]]:
    """For each delta the least rise of log10 M_D, and its slope over that of n^(1/4)."""
    rises, slopes = {}, {}
    rows = table.filter(quantity="parameters").sort("x")
    for (delta,), part in rows.partition_by("kind", as_dict=True).items():
        d, size = part["x"].to_numpy(), part["value"].to_numpy()
        name, large = f"delta = {delta}", d >= LARGE
        rises[name] = float(np.diff(size).min())
        side = theory.packing_size(2, float(delta))
        slope = np.polyfit(d[large], size[large], 1)[0] if large.sum() > 1 else np.nan
        slopes[name] = float(4 * slope / np.log10(side))
    return rises, slopes
