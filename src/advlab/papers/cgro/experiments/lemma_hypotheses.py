"""What the lemmas behind Theorem 4.1 assume on the way, checked step by step along runs.

`growth_lemmas` follows the lemmas that state orders. Their proofs use recursions (Lemmas A.1, A.3)
and side conditions that must hold along the run as well:

- C.3 uses A.1: u_r of one filter grows by between m u^2 and M u^2 per step until T_0, where
  alpha max u_r = 1, with M/m of order 1. With the m and M of a run its time is bounded from both
  sides. Small steps (eta = 0.002), N = 20, three d.
- C.6: the force on an example, tilde psi_i, is of the order of psi(V_i) from T_0 on.
- C.7: the largest product v_ijr(0) of each example is at least of order P sigma^2 sqrt(d)/alpha.
- C.9 uses a descent step and A.3: from T_1 on (all V_i >= 1) the loss falls by (eta/2) times the
  norm of its gradient in each step, as printed, or by its square, as the proof needs; so that
  L(t+1) <= L(t) - A L(t)^2, A of order eta, and L(t) <= 1/(A (t - T_1)).
- C.10: after T_1 the attacked examples push no more than of order 1/eta in all.

The second part has eta = 0.05, about three times T_1 steps, and at d = 1000 also N = 60: the orders
of A.3's A and of C.10 have no N in them. Losses and pushes are of every step; gradients and tilde
psi of each step to 33 and then of every three percent. Where a paper's order leaves logarithms
open, log d is allowed for them. Where every u_r(0) is negative, with probability 2^-m, the signal
is not learnt (Lemma C.3 excepts this), and where one is above 1/alpha it needs not be: such runs
decide nothing. Medians over seeds at N = 20; dashed: what a step or a bound asks for.
"""

from typing import Literal

import numpy as np
import polars as pl
import torch
from pydantic import PositiveFloat, PositiveInt

from .... import lab
from ....core.randomness import generators
from ....report import Assumption, Claims, Verdict, empirical, ours, theorem
from ....report.charts import AnyChart, curves, panels, points
from ....report.samples import groups, slopes
from .. import theory
from ..data import Patches
from ..reductions import patch_law
from ..reductions.patch_dynamics import PatchState, log_steps, trajectory
from ..reductions.patch_law import PatchProblem
from ._parts.assumptions import parameterization
from ._parts.patch_runs import FILTERS, SHARE

NEEDS = ("lambda", "eta", "sigma", "start")
ABOUT = lab.About(
    paper="cgro",
    item="Lemmas A.1, A.3, C.3, C.6, C.7, C.9 and C.10: their hypotheses",
    title="What the lemmas assume, along a run",
    seconds={"smoke": 3, "laptop": 45, "paper": 1200},
    looks=2,
    claims={
        "A.1": theorem("With the rates of its run T_0 is between the earliest time that they allow "
                       "and the time of Lemma A.1, in every run", "start"),
        "C.3": empirical("These rates are of one order until T_0: M/m is at most 3 on average",
                         *NEEDS),
        "C.6": empirical("tilde psi_i is psi(V_i) up to a factor between lambda/log d and 1 from "
                         "T_0 on, for all examples of every run", *NEEDS),
        "C.7": empirical("The largest v_ijr(0) is at least P sigma^2 sqrt(d)/(alpha log d) for at "
                         "least 99 % of the examples", *NEEDS),
        "C.9": empirical("Each step from T_1 on takes at least (eta/2) ||grad L|| off the loss, as "
                         "printed, in every run", *NEEDS),
        "C.9/2": empirical("and at least (eta/2) ||grad L||^2, as the proof needs, in every run",
                           *NEEDS),
        "A.3/h": empirical("L(t+1) <= L(t) - A L(t)^2 from T_1 on with A of eta/log d or more, in "
                           "every run", *NEEDS),
        "A.3/N": ours("That A falls with N, though its order has no N: over the N that were run "
                      "like N^(-1/2) or faster"),
        "A.3": theorem("With the A of its run L(t) is at most 1/(A (t - T_1)) at every step of "
                       "every run"),
        "C.10": empirical("(lambda/N) sum psi(y f(X adv)) over the steps from T_1 on is at most "
                          "log d/eta, in every run", *NEEDS),
        "C.10/N": ours("and grows with N: like N^(1/2) or faster over the N that were run"),
    },
)  # fmt: skip
NAME = "cgro/lemma hypotheses, over N"


class Case(lab.Case):
    part: Literal["signal", "decay"]
    d: PositiveInt
    n: PositiveInt = 20
    lam: PositiveFloat = SHARE
    eta: PositiveFloat
    steps: PositiveInt

    @property
    def law(self) -> Patches:
        return Patches.scaled(n=self.n, d=self.d)

    @property
    def cost(self) -> float:
        return self.steps * self.replicates * (1 + (self.n / 20) ** 2) / 2e6


def recipe(scale: lab.Scale, seeds: int | None = None) -> list[Case]:
    usual, dims, n, more = {
        "smoke": (3, (60, 120), 4, (6,)),
        "laptop": (20, (250, 1000, 4000), 20, (60,)),
        "paper": (50, (250, 1000, 4000, 16_000), 20, (60, 100)),
    }[scale]
    blocks = lab.blocks(seeds or usual, 20)
    # T_0 goes like 1/(eta alpha^3 u(0)): a hundred steps, and thousands where every filter starts
    # across the signal. T_1 goes like N sqrt(d)/(eta lambda).
    grown = 600 if scale == "smoke" else 30_000
    signal = [
        Case(part="signal", d=d, n=n, eta=0.002, steps=grown, **b) for b in blocks for d in dims
    ]
    settings = [(d, n, 20) for d in (dims[:2] if scale == "laptop" else dims)]
    decay = [
        Case(part="decay", d=d, n=size, eta=0.05, steps=round(50 * size * d**0.5), **block)
        for d, size, most in [*((dims[1], large, 10) for large in more[::-1]), *settings]
        for block in lab.blocks(seeds or usual, most)
    ]
    return [*decay, *signal]


def compute(case: Case) -> pl.DataFrame:
    """Rows of each replicate at some steps; what is known of the whole run is in all of them."""
    law = case.law
    rngs = generators(NAME, case.part, case.d, case.n, seeds=case.seeds)
    problem = patch_law.draw_stack(law, FILTERS, law.d**-0.5, rngs)
    table, whole = (_signal if case.part == "signal" else _decay)(case, problem)
    order = theory.noise_remainder_scale(law.P, law.sigma, law.d, law.alpha)
    whole["seed"] = np.array(case.seeds)
    whole["begun"] = _begins(law.alpha * problem.u.amax(1).numpy())
    whole["start share"] = (problem.largest >= order / np.log(law.d)).double().mean(1).numpy()
    return table.cast({"step": pl.Int64}).join(pl.DataFrame(whole), on="seed")


def _begins(start: np.ndarray) -> np.ndarray:
    """Whether alpha max u_r(0) is where Lemma C.3 begins: above 0, and below 1."""
    return (start > 0) & (start < 1)


def _signal(case: Case, problem: PatchProblem) -> tuple[pl.DataFrame, dict[str, np.ndarray]]:
    """Rates of the filter with the largest u_r(0), and when it arrives at 1/alpha."""
    place, alpha = problem.u.argmax(1, keepdim=True), case.law.alpha
    states = trajectory(problem, case.lam, case.eta, range(case.steps + 1))
    z = torch.cat([state.u.gather(1, place) for state in states], 1).numpy()
    rates = np.diff(z, axis=1) / z[:, :-1] ** 2
    time = np.where((alpha * z >= 1).any(1), (alpha * z >= 1).argmax(1), case.steps)
    before = np.arange(case.steps) < time[:, None]
    least = np.where(before, rates, np.inf).min(1)
    most = np.where(before, rates, -np.inf).max(1)
    begun, target = _begins(alpha * z[:, 0]), np.full(len(z), 1 / alpha)
    # Lemma A.1 is about positive sequences on their way.
    start, least, most = (
        np.where(begun, one, other) for one, other in ((z[:, 0], target), (least, 1), (most, 1))
    )
    whole = {
        "T0": np.where(time < case.steps, time, np.nan).astype(float),
        "T0 earliest": theory.earliest_time(start, target, most),
        "T0 latest": theory.growth_time(start, target, least, most, "paper"),
        "rates": most / least,
    }
    whole = {name: np.where(begun, value, np.nan) for name, value in whole.items()}
    shown = log_steps(case.steps - 1, 1.1)
    flat = rates[:, shown] / (1.5 * case.eta * alpha**3 * (1 - case.lam))
    rows = {"step": np.tile(shown, len(z)), "seed": np.repeat(list(case.seeds), len(shown)),
            "rate": flat.ravel()}  # fmt: skip
    return pl.DataFrame(rows), whole


def _decay(case: Case, problem: PatchProblem) -> tuple[pl.DataFrame, dict[str, np.ndarray]]:
    """Loss and push at every step; gradients and forces at some."""
    looked, seeds = set(log_steps(case.steps - 1, 1.03)), list(case.seeds)
    losses, pushes, done, rows = [], [], [], []
    for state in trajectory(problem, case.lam, case.eta, range(case.steps + 1)):
        losses.append(state.loss.numpy())
        pushes.append(torch.sigmoid(-state.margins(True)).mean(1).numpy())
        done.append((state.V.amin(1) >= 1).numpy())
        if state.step in looked:
            rows.append({"step": state.step, "seed": seeds, **_forces(state)})
    loss, memorised = np.array(losses), np.array(done)
    T1 = np.where(memorised.any(0), memorised.argmax(0), np.nan)
    after = np.arange(len(loss))[:, None] - T1
    falls = np.where(after[:-1] >= 0, (loss[:-1] - loss[1:]) / loss[:-1] ** 2, np.inf).min(0)
    rate = np.where(np.isfinite(falls), falls, np.nan)
    with np.errstate(invalid="ignore"):
        use = np.where(after > 0, loss * rate * after, -np.inf).max(0)
    push = case.lam * np.where(after >= 0, np.array(pushes), 0.0).sum(0)
    whole = {"T1": T1, "A": rate / case.eta, "A.3 use": np.where(np.isnan(T1), np.nan, use),
             "push": np.where(np.isnan(T1), np.nan, case.eta * push)}  # fmt: skip
    table = pl.concat(pl.DataFrame(row) for row in rows)
    fall = (loss[:-1] - loss[1:]) / case.eta
    at = table["step"].to_numpy(), np.array([seeds.index(one) for one in table["seed"]])
    slope = table["gradient"].to_numpy()
    return table.with_columns(
        loss=loss[at], printed=fall[at] / slope, squared=fall[at] / slope**2
    ), whole  # fmt: skip


def _forces(state: PatchState) -> dict[str, np.ndarray]:
    """The norm of the gradient, and tilde psi_i over psi(V_i) of the extreme examples."""
    clean, attacked = (torch.sigmoid(-state.margins(one)) for one in (False, True))
    lam = state.lam[:, None]
    force = ((1 - lam) * clean + lam * attacked) / torch.sigmoid(-state.V)
    started = state.problem.alpha * state.u.amax(1) >= 1
    least, most = (torch.where(started, one, torch.nan) for one in (force.amin(1), force.amax(1)))
    return {"gradient": state.gradient_norm.numpy(), "least force": least.numpy(),
            "most force": most.numpy()}  # fmt: skip


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """Parameterization 3.1, and the exception of Lemma C.3."""
    share = float(str(_runs(table)["begun"].mean()))
    start = Assumption(
        name="start", reached=share, holds=share > 0,
        condition="0 < max u_r(0) < 1/alpha (Lemma C.3), share of runs; others do not count",
    )  # fmt: skip
    return [*parameterization(table), start]


def figure(table: pl.DataFrame) -> AnyChart:
    table = table.filter(pl.col("n") == pl.col("n").min())
    rows = table.with_columns(dimension=pl.format("d = {}", "d"))
    early = _binned(rows.filter(part="signal"), "T0").filter(pl.col("ratio") <= 1)
    decay = _binned(rows.filter(part="decay"), "T1")
    rise = (pl.col("eta") * (pl.col("step") - pl.col("T1") + 1) * pl.col("loss")).alias("within")
    late = decay.filter(pl.col("ratio") > 1).with_columns(rise)
    usual = {"log_x": True, "band": "quartiles"}
    after = {"x_title": "t/T_1", **usual}
    half = pl.DataFrame({"printed": [0.5], "squared": [0.5]})
    names = {"T0 earliest": "earliest", "T0": "T_0", "T0 latest": "Lemma A.1"}
    times = table.filter(part="signal").group_by("d", "seed").first().unpivot(
        list(names), index=["d", "seed"], variable_name="time"
    )  # fmt: skip
    return panels(
        [
            curves(early, "ratio", "rate", "dimension", title="Lemma C.3: growth of the signal",
                   x_title="t/T_0", y_title="growth of u over 3 eta alpha^3 (1 - lambda) u^2/2",
                   **usual),
            points(times.with_columns(pl.col("time").replace_strict(names)), "d", "value", "time",
                   title="Lemma A.1", x_title="d", log_x=True, log_y=True, y_title="steps"),
            curves(decay, "ratio", "least force", "dimension", title="Lemma C.6: least force",
                   y_title="force over psi(V_i)", **after),
            curves(late, "ratio", "printed", "dimension", theory=half.select("printed"),
                   title="Lemma C.9: descent as printed", y_title="fall of L/(eta ||grad L||)",
                   log_y=True, **after),
            curves(late, "ratio", "squared", "dimension", theory=half.select("squared"),
                   title="Lemma C.9: descent with the square",
                   y_title="fall of L/(eta ||grad L||^2)", **after),
            curves(late, "ratio", "within", "dimension", title="Lemma A.3",
                   y_title="eta (t - T_1 + 1) L(t)", **after),
        ],
        columns=3,
    )  # fmt: skip


def _binned(rows: pl.DataFrame, time: str) -> pl.DataFrame:
    """Rows with t over a time of their run, to the nearest of ten levels per factor of e."""
    ratio = ((pl.col("step") / pl.col(time)).log() * 10).round() / 10
    rows = rows.filter(pl.col("step") > 0).with_columns(ratio=ratio.exp())
    return rows.filter(pl.col("ratio").is_finite())


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, runs = Claims(ABOUT.claims), _runs(table).filter("begun")
    signal, decay = (runs.filter(part=part) for part in ("signal", "decay"))
    sized = decay.filter(pl.col("n").n_unique().over("d", "seed") > 1)
    bounded = (signal["T0 earliest"] <= signal["T0"]) & (signal["T0"] <= signal["T0 latest"])
    forced = (decay["least force"] >= decay["lam"] / decay["allowed"]) & (decay["most force"] <= 1)
    return [
        claims.every("A.1", bounded, what="earliest time <= T_0 <= time of Lemma A.1"),
        claims.below("C.3", groups(signal, "rates", "d"), 3, what="M/m until T_0"),
        claims.every("C.6", forced, what="lambda/log d <= tilde psi_i/psi(V_i) <= 1"),
        claims.above("C.7", groups(runs, "start share", "part", "d", "n"), 0.99,
            what="share of examples"),
        claims.every("C.9", decay["printed"] >= 0.5,
            what="least fall of the loss over eta ||grad L|| >= 1/2"),
        claims.every("C.9/2", decay["squared"] >= 0.5,
            what="least fall of the loss over eta ||grad L||^2 >= 1/2"),
        claims.every("A.3/h", decay["A"] * decay["allowed"] >= 1, what="A log d/eta >= 1"),
        claims.below("A.3/N", slopes(sized, "n", "A"), -0.5, what="exponent of N in A"),
        claims.every("A.3", decay["A.3 use"] <= 1 + 1e-9, what="L(t) A (t - T_1) <= 1"),
        claims.every("C.10", decay["push"] <= decay["allowed"], what="eta times the push <= log d"),
        claims.above("C.10/N", slopes(sized, "n", "push"), 0.5,
            what="exponent of N in the push from T_1 on"),
    ]  # fmt: skip


def _runs(table: pl.DataFrame) -> pl.DataFrame:
    """One row per run: the worst of what was looked at, and what is known of all of it."""
    after = pl.col("step") >= pl.col("T1")
    numbers = ["T0", "T0 earliest", "T0 latest", "rates", "start share", "A", "A.3 use", "push"]
    return (
        table.group_by("part", "d", "n", "lam", "seed", maintain_order=True)
        .agg(
            pl.col("begun", *numbers).first(),
            pl.col("printed", "squared").filter(after).min(),
            pl.col("least force").drop_nans().min(),
            pl.col("most force").drop_nans().max(),
        )
        .with_columns(pl.col(numbers).fill_nan(None), allowed=pl.col("d").cast(pl.Float64).log())
        .sort("part", "d", "n", "seed")
    )
