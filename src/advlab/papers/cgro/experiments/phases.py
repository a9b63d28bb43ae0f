"""The three phases of Theorem 4.1: learn part of the signal, stall, memorise the noise.

The theorem: after enough steps of gradient descent on the objective (O), U = Theta(alpha^-3) and
V_i = Omega(1) for every training example, so that clean test error and robust training error
vanish while robust test error is at least 1/2 - o(1). Setting A: d = 1000, N = 20, lambda = 1/2,
eta = 0.02, T = 400 N (0.2/eta) = 80 000 steps. The decay of the loss (Lemma C.9) is about
t much larger than T_1: it is followed with eta = 0.1 for 40 000 steps.

Top: what the signal patch adds to y f (alpha^3 U) and what the noise of each training example adds
(V_i, from the smallest to the largest, means over seeds). Bottom: the four errors. Signal jumps by
T_0, then all but stalls; noise is memorised from T_1 on, example by example. In the end clean
inputs are right, GTA examples of training inputs too, and those of test inputs are right half of
the time: V is symmetric for fresh inputs, so 1/2 is the ceiling of this error. Dashed: T_0 and T_1
as predicted from the start alone, medians over seeds and examples. Without adversarial training
(lambda = 0) nothing is memorised.

"Plateau" is to be read on this log axis: after T_0 alpha^3 U still rises like log t, until V_i is
of order 1. GTA training error reaches 0 well before that, as it only asks for V_i > 0.

Errors are shown from draws in law (m x m numbers). The variance of V and the GTA test error are
also measured on fresh inputs in all d dimensions, with the lifted weights.
"""

from functools import partial
from typing import Literal

import numpy as np
import polars as pl
import torch
from pydantic import PositiveInt
from torch import Tensor

from .... import lab
from ....core.randomness import generator, generators
from ....report import Claims, Verdict, sample
from ....report.samples import ends
from .. import theory
from ..data import Patches, PatchPoints
from ..models import PatchCNN
from ..reductions import patch_law
from ..reductions.patch_dynamics import PatchState, log_steps
from ._parts.patch_runs import (
    FILTERS,
    RATE,
    SHARE,
    Tester,
    memory_times,
    middle,
    phases,
    race_numbers,
    ratios,
    run,
    signal_times,
    tidy,
)
from ._parts.phases_figure import figure as figure

ABOUT = lab.About(
    paper="cgro",
    item="Theorem 4.1 and Lemmas 4.2 to 4.4",
    title="Learn part of the truth, stall, memorise the rest",
    seconds={"smoke": 3, "laptop": 35, "paper": 600},
    looks=1,
    claims={
        "4a": "Phase I ends before Lemma A.1's time",
        "4b": "and within a factor 2 of the sharp formula",
        "5a": "alpha^3 U changes by less than 20 % from T_1/2 on",
        "5b": "with alpha max u of order 1",
        "6a": "Every training example is memorised: min V_i >= 1",
        "6b": "at the time that its start predicts",
        "7a": "Clean test accuracy is at least 99 %",
        "7b": "No GTA example of a training input is wrong",
        "7c": "GTA test error is a coin's toss",
        "10a": "eta (t - T_1 + 1) L(t) is bounded after memorisation",
        "10b": "and does not grow in its tail",
        "11a": "The variance of memorised noise is its formula's",
        "11b": "GTA test error is (1 - P(|V| <= s))/2",
    },
)
NAME = "cgro/s1 decisive"
CHUNK = 1000
"""Fresh inputs in d dimensions made at a time."""


class Case(lab.Case):
    part: Literal["phases", "decay"]
    lams: tuple[float, ...]
    """Run together, on the same problems."""
    d: PositiveInt = 1000
    n: PositiveInt = 20
    eta: float = RATE
    steps: PositiveInt = 80_000
    tested: PositiveInt = 2000
    lifted: PositiveInt = 4000
    """Fresh inputs in d dimensions."""

    @property
    def cost(self) -> float:
        return self.steps * self.replicates * (1 + len(self.lams)) / 1e6

    @property
    def law(self) -> Patches:
        return Patches.scaled(n=self.n, d=self.d)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    usual, settings, rates, steps = {
        "smoke": (3, {"d": 120, "n": 5, "tested": 200, "lifted": 200}, (0.1, 0.2), (1200, 1200)),
        "laptop": (20, {}, (RATE, 0.1), (80_000, 40_000)),
        "paper": (20, {"d": 3000}, (0.011, 0.05), (240_000, 120_000)),
    }[scale]
    return [
        case
        for block in lab.blocks(seeds or usual, 20)
        for case in (
            Case(
                part="phases", lams=(SHARE, 0.0), eta=rates[0], steps=steps[0], **settings, **block
            ),
            Case(part="decay", lams=(SHARE,), eta=rates[1], steps=steps[1], **settings, **block),
        )
    ]


def compute(case: Case) -> pl.DataFrame:
    """Rows of each replicate at some steps; what is known of the whole run is in all of them."""
    law, copies = case.law, len(case.lams)
    seeds = [seed for _ in case.lams for seed in case.seeds]
    points = PatchPoints(*law.sample_stack(generators(NAME, case.part, "data", seeds=seeds)))
    rngs = generators(NAME, case.part, "start", seeds=seeds)
    start = torch.stack(
        [PatchCNN.draw(law.d, FILTERS, law.d**-0.5, rng).weight.detach() for rng in rngs]
    )
    problem = patch_law.of_points(law, points, start)
    lam = torch.tensor(case.lams).double().repeat_interleave(len(seeds) // copies)
    tester, kept = Tester(case.tested, NAME, case.part, seeds=seeds), []
    look = partial(_look, tester=tester, kept=kept, end=case.steps)
    events, seen = run(problem, lam, case.eta, case.steps, look, set(log_steps(case.steps, 1.08)))
    state = kept[-1]
    predicted = memory_times(problem, lam, state.eta)
    whole = {
        "seed": seeds,
        "lam": lam.numpy(),
        "T0": events.signal.numpy(),
        "T0 sharp": signal_times(problem, lam, state.eta),
        "T0 paper": signal_times(problem, lam, state.eta, "paper"),
        "T1": middle(events.memorised),
        "T1 sharp": middle(predicted),
        "T1 last": events.memorised.amax(1).numpy(),
        "T1 ratio": middle(ratios(events.memorised, predicted)),
        "rho": race_numbers([law] * len(seeds), problem)[0],
        **_in_d_dimensions(case, state, state.lift(law, points, start), tester),
    }
    return tidy(seen, whole)


def _look(state: PatchState, tester: Tester, kept: list[PatchState], end: int) -> dict[str, Tensor]:
    if state.step == end:
        kept.append(state)
    return phases(state) | tester(state)


def _in_d_dimensions(
    case: Case, state: PatchState, weight: Tensor, tester: Tester
) -> dict[str, np.ndarray]:
    """How many standard errors the closed forms are off what fresh d-vectors show."""
    exact = theory.noise_variance(
        state.weight_gram.numpy(), state.problem.sigma.numpy(), case.law.P
    )
    copies = weight.reshape(len(case.lams), case.replicates, *weight.shape[1:]).unbind(1)
    each = [_noise(case, seed, some) for seed, some in zip(case.seeds, copies, strict=True)]
    V = torch.stack(each, 1).flatten(0, 1).numpy()
    squares = V**2
    spread = squares.std(1, ddof=1) / np.sqrt(V.shape[1])
    residue = state.residue.numpy()
    wrong = (residue[:, None] + V <= 0).mean(1)
    closed = theory.error_from_noise(tester.noise(state).numpy(), np.maximum(residue, 0))
    chance = np.sqrt(0.25 / V.shape[1] + 0.25 / case.tested)
    return {
        "variance": exact,
        "variance off": (squares.mean(1) - exact) / spread,
        "GTA off": (wrong - closed) / chance,
    }


def _noise(case: Case, seed: int, weights: Tensor) -> Tensor:
    """V of fresh inputs, y f less what the signal patch adds, for the networks of one seed."""
    law, rng, found = case.law, generator(NAME, case.part, "test", seed), []
    for first in range(0, case.lifted, CHUNK):
        x, y, _ = law.sample(rng, n=min(CHUNK, case.lifted - first))
        with torch.no_grad():
            found.append(torch.stack([y * PatchCNN(weight)(x) for weight in weights]))
    return torch.cat(found, 1) - (law.alpha * weights[..., 0]).pow(3).sum(1, keepdim=True)


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    rows = table.filter(pl.col("lam") > 0, part="phases").sort("seed", "step")
    end = ends(rows)
    claims = Claims(ABOUT.claims)

    def flags(label: str, flag: pl.Expr, what: str) -> Verdict:
        return claims.every(label, sample(end.with_columns(flag=flag), "flag"), what=what)

    def count(label: str, wrong: pl.Expr, what: str) -> Verdict:
        failed = float(end.select(wrong.sum()).item())
        return claims.below(label, failed, 1, what=f"the number of seeds {what}")

    T0, sharp = pl.col("T0"), pl.col("T0 sharp")
    return [
        flags("4a", pl.col("T0 paper") >= T0, "T_0 <= 3/(B u0) + 8 ceil(log2(1/(alpha u0)))"),
        flags("4b", (2 * sharp >= T0) & (sharp / 2 <= T0), "T_0/sharp T_0 in [1/2, 2]"),
        claims.below("5a", sample(_plateau(rows), "change"), 0.2,
            what="share by which alpha^3 U grows from T_1/2 (predicted median) to T"),
        claims.within("5b", sample(end, "alpha u"), 0.5, 4, what="alpha max_r u_r at T"),
        flags("6a", pl.col("smallest V") >= 1, "min_i V_i >= 1 at T"),
        claims.within("6b", sample(end, "T1 ratio"), 0.6, 1.2,
            what="median over examples of T_1,i observed/predicted"),
        count("7a", pl.col("clean test") > 0.01, "with clean test error above 1 %"),
        count("7b", pl.col("GTA train") > 0, "with a GTA training error"),
        count("7c", (pl.col("GTA test") - 0.5).abs() > 0.08,
            "with GTA test error outside [.42, .58]"),
        *_decay(claims, table.filter(part="decay").sort("seed", "step")),
        _off(claims, "11a", end, "variance off", "|MC variance of V - formula|"),
        _off(claims, "11b", end, "GTA off", "|GTA test error on d-vectors - (1 - P(|V| <= s))/2|"),
    ]  # fmt: skip


def _plateau(rows: pl.DataFrame) -> pl.DataFrame:
    """(seed, change): from the last step shown before T_1/2 to T."""
    before = rows.filter(pl.col("step") <= pl.col("T1 sharp") / 2)
    first = before.group_by("seed").agg(first=pl.col("signal").sort_by("step").last())
    both = ends(rows).join(first, on="seed", how="left")
    return both.select("seed", change=(pl.col("signal") / pl.col("first") - 1).abs())


def _decay(claims: Claims, rows: pl.DataFrame) -> list[Verdict]:
    """Lemma C.9, with T_1 the step from which every V_i has been 1 or more."""
    after = rows.filter(pl.col("step") >= pl.col("T1 last")).with_columns(
        scaled=pl.col("eta") * (pl.col("step") - pl.col("T1 last") + 1) * pl.col("loss")
    )
    late = pl.col("step") >= (pl.col("T1 last") + pl.col("steps")) / 2
    largest = after.group_by("seed").agg(pl.col("scaled").max())
    scaled = pl.col("scaled").sort_by("step")
    tail = after.filter(late).group_by("seed").agg(growth=scaled.last() / scaled.first() - 1)
    seeds = rows.select("seed").unique()
    largest, tail = (seeds.join(part, on="seed", how="left") for part in (largest, tail))
    return [
        claims.below("10a", sample(largest, "scaled"), 5,
            what="largest eta (t - T_1 + 1) L(t) from T_1, when the last V_i reaches 1, on"),
        claims.below("10b", sample(tail, "growth"), 0,
            what="its relative growth over the second half of the steps after T_1"),
    ]  # fmt: skip


def _off(claims: Claims, label: str, end: pl.DataFrame, column: str, what: str) -> Verdict:
    worst = float(end.select(pl.col(column).abs().max()).item())
    what = f"largest {what}, in standard errors, over seeds"
    return claims.below(label, worst, 5, what=what)
