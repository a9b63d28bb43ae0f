"""The growth lemmas behind Theorem 4.1, followed along runs: which of them hold, and how well.

The proof of Theorem 4.1 rests on lemmas that state orders: 4.2 (= C.2) and 4.3 (= C.4) of the
signal, C.5 and 4.4 (= C.6) of the noise, A.2's hypothesis as C.7 uses it, C.8 (Lojasiewicz), C.10
(how much the attacked examples push) and the induction hypothesis C.1 (= C.11). Each order is
computed along runs (`theory.growth`); where logarithms are left open, log d is allowed for them, as
in gamma. The orders of C.5, C.8 and C.10 have no N in them, though N = poly(d). Setting: eta =
0.05, the paper's exponents, three d with N = 20, three N at d = 1000, about three times T_1.

- Lemma 4.2 is said of any t. Its constant is 3 (1 - lambda) while V_i is small and then falls with
  e^-V_i: what it says is about phase I.
- Lemma 4.3: max u_r is at most of order 1/alpha and a sum over the attacked examples, the noise.
  The first term is C.11's; the text reads the lemma for the second: after T_0 the growth is that of
  the sum. So the growth since T_0 is held to the sum alone.
- Lemma C.5, for any t_0 < t: v_ijr(t) - v_ijr(t_0) less what a patch owes to itself is
  P sigma^2 sqrt(d)/alpha, up to logarithms. Here t_0 = 0, and t_0 = T_1 where it says so.
- Lemma C.7 applies Lemma A.2 to the fastest product of each example, with this remainder as its
  noise C. A.2 asks for C <= z_0/2.
- Lemma C.10: the sum of psi over attacked examples is of order 1/(eta sigma_0) from step 0 on. Its
  proof bounds the steps from T_1 on only. Until then psi is about 1/2, so that the sum is lambda
  T_1/2 or so, and T_1 goes like N.

Sums over steps are trapezoids over the steps looked at (each to 33, then every three percent).
One picture per lemma, medians over seeds at N = 20: Lemma 4.2's constant, the remainder of C.5 over
its order, C.8's ratio, growth over sum of 4.3, and what C.10 and 4.4 bound, over their bounds
without logarithms; time is over T_1, when V_i >= 1 for the last example of all seeds. Then two of
these for each N. Dashed: what the claims allow, log d or 1/log d from where on the lemma speaks,
and a tenth for Lemma 4.2.
"""

from dataclasses import replace

import numpy as np
import polars as pl
import torch
from pydantic import PositiveFloat, PositiveInt

from .... import lab
from ....core.randomness import generators
from ....report import Assumption, Claims, Verdict, empirical, identity, ours
from ....report.charts import AnyChart
from ....report.samples import groups, slopes
from .. import theory
from ..data import Patches
from ..reductions import patch_law
from ..reductions.patch_dynamics import PatchState, log_steps, trajectory
from ..reductions.patch_law import PatchProblem
from ._parts import growth_lemmas_figure
from ._parts.assumptions import parameterization
from ._parts.patch_runs import FILTERS, SHARE, middle
from ._parts.remainder import FastestProducts

NEEDS = ("lambda", "eta", "sigma")
ABOUT = lab.About(
    paper="cgro",
    item="Lemmas 4.2 to 4.4, C.5, C.8, C.10, C.11 and the use of A.2",
    title="The lemmas behind the three phases, along a run",
    seconds={"smoke": 3, "laptop": 175, "paper": 1700},
    looks=4,
    claims={
        "C.2": identity("A step of the run is the step of the proof, coupled and decoupled"),
        "4.2a": empirical("Lemma 4.2's constant is of order 1 at any t: its least value over a run "
                          "is a tenth of 3 (1 - lambda) or more, on average", *NEEDS),
        "4.2b": ours("At a quarter of T_1 it is 3 (1 - lambda) in the median run, within 10 %"),
        "4.3": empirical("The growth of max u_r after T_0 is that of Lemma 4.3's sum over attacked "
                         "examples: from T_0 to the end at most log d times it, in every run",
                         *NEEDS),
        "C.5": empirical("The remainder of Lemma C.5 from t_0 = 0 on is at most log d times its "
                         "order, on average", *NEEDS),
        "C.5/t": empirical("and that from t_0 = T_1 on (all V_i >= 1) too", *NEEDS),
        "C.5/d": ours("and over the d that were run the remainder grows faster than log d times "
                      "its order"),
        "C.5/N": ours("and over the N that were run like N^(1/4) or faster, though its order has "
                      "no N"),
        "4.4": empirical("v_ijr is nowhere below v_ijr(0) plus what its own patch adds by more "
                         "than log d times P sigma^2 sqrt(d)/alpha, on average (Lemma 4.4)",
                         *NEEDS),
        "A.2": empirical("Lemma A.2 applies as C.7 uses it: C <= z_0/2 until V_i >= 1 for at least "
                         "99 % of the examples", *NEEDS),
        "C.7": ours("What other patches add does not change T_1 at N = 20: without it T_1 is the "
                    "same within 20 %, at each d"),
        "C.7/N": ours("and more of it makes T_1 earlier: over the N that were run the ratio of the "
                      "times grows"),
        "C.8": empirical("||grad L|| >= L/log d from T_1 on, in every run", *NEEDS),
        "C.10": empirical("(lambda/N) sum psi(y f(X adv)) from step 0 on is at most log d/(eta "
                          "sigma_0), in every run", *NEEDS),
        "C.10/N": ours("That sum grows like N, as lambda T_1/2 alone does: the exponent of N is "
                       "within 0.2 of 1"),
        "C.11": empirical("alpha max u and max |v| are at most log d at all t, in every run "
                          "(Hypothesis C.1)", *NEEDS),
    },
)  # fmt: skip
NAME = "cgro/growth lemmas, over N"
REFERENCE = 20
"""The N of the runs over d, and of the figure."""


class Case(lab.Case):
    d: PositiveInt
    n: PositiveInt = REFERENCE
    lam: PositiveFloat = SHARE
    eta: PositiveFloat = 0.05
    steps: PositiveInt

    @property
    def law(self) -> Patches:
        return Patches.scaled(n=self.n, d=self.d)

    @property
    def cost(self) -> float:
        return self.steps * self.replicates * (1 + (self.n / 20) ** 2) / 2e6


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    usual, dims, n, more = {
        "smoke": (3, (60, 120), 4, (6,)),
        "laptop": (60, (250, 1000, 4000), REFERENCE, (45, 100)),
        "paper": (50, (250, 1000, 4000, 16_000), REFERENCE, (45, 100)),
    }[scale]
    # At lambda = 1/2 alone 3 (1 - lambda) could be 3 lambda.
    settings = [(d, n, SHARE) for d in dims] + [(dims[1], n, 0.3)]
    # A step costs K^2 = 9 N^2, and there are more of them: for larger N a third of the seeds.
    few = seeds or (20 if scale == "laptop" else usual)
    blocks = [(lab.blocks(seeds or usual, 20), settings),
              (lab.blocks(few, 10), [(dims[1], large, SHARE) for large in more[::-1]])]  # fmt: skip
    return [
        # T_1 goes like N sqrt(d)/(eta lambda).
        Case(d=d, n=size, lam=lam, steps=round(25 * size * d**0.5 / lam), **block)
        for some, rows in blocks[::-1]
        for d, size, lam in rows
        for block in some
    ]


def compute(case: Case) -> pl.DataFrame:
    """Rows of each replicate at some steps; what is known of the whole run is in all of them."""
    law, seeds = case.law, list(case.seeds)
    rngs = generators(NAME, case.d, case.n, seeds=seeds)
    problem = patch_law.draw_stack(law, FILTERS, law.d**-0.5, rngs)
    followed = _Followed(case, problem)
    steps = log_steps(case.steps - 1, 1.03)
    states = trajectory(problem, case.lam, case.eta, {*steps, *(t + 1 for t in steps)})
    before, rows = next(states), []
    for after in states:
        if after.step == before.step + 1 and before.step in set(steps):
            rows.append({"step": before.step, "seed": seeds} | followed.look(before, after))
        before = after
    whole = followed.whole() | {"T1 decoupled": _decoupled_time(case, problem)}
    table = pl.concat(pl.DataFrame(row) for row in rows)
    return table.join(pl.DataFrame({"seed": seeds} | whole), on="seed")


class _Followed:
    """What the lemmas speak of, state by state, and what must be remembered between them."""

    def __init__(self, case: Case, problem: PatchProblem):
        self.case, self.problem, R = case, problem, len(problem)
        self.last, self.pushed, self.before = 0, np.zeros(R), np.zeros(R)
        """The last step seen, the sum of psi(adv) over steps and examples, and its last term."""
        self.at_signal, self.signal = np.full(R, np.nan), np.full(R, np.nan)
        """That sum and max u_r at T_0."""
        self.at_memory = np.full(R, np.nan)
        """That sum at T_1 of the last example."""
        self.left = np.zeros(problem.v.shape)
        """The remainders of Lemma C.5 at T_1 of the last example."""
        self.fastest = FastestProducts(problem)
        self.error = np.zeros(R)

    def look(self, state: PatchState, after: PatchState) -> dict[str, object]:
        case, law = self.case, self.case.law
        self._push(state)
        u, remainder = state.u.amax(1).numpy(), self.fastest.note(state).numpy()
        self._remember(state, u, remainder)
        if state.step < 50 or state.step % 10 == 0:
            self._compare(state, after)
        order = theory.noise_remainder_scale(law.P, law.sigma, law.d, law.alpha)
        rate = case.eta * (law.alpha * (1 - law.gamma)) ** 3 / case.n
        scales = law.alpha, law.gamma, case.eta, case.n
        late = np.abs(remainder - self.left).max((1, 2))
        since = np.nan_to_num(self.pushed - self.at_signal)
        noise = theory.signal_ceiling(*scales, since) - 1 / law.alpha
        with np.errstate(divide="ignore", invalid="ignore"):  # at T_0 both are 0
            growth = (u - self.signal) / noise
        return {
            "constant": _constants(state, after, law.alpha) / (3 * (1 - case.lam)),
            "growth ratio": growth,
            "remainder ratio": np.abs(remainder).max((1, 2))
            / (order + case.lam * rate * self.pushed),
            "late remainder": late / (order + case.lam * rate * (self.pushed - self.at_memory)),
            "below ratio": -remainder.min((1, 2)) / order,
            "lojasiewicz": theory.lojasiewicz_ratio(
                state.gradient_norm.numpy(), state.loss.numpy()
            ),
            "budget ratio": case.lam
            / case.n
            * self.pushed
            / theory.attack_budget(case.eta, law.d**-0.5),
            "alpha u": law.alpha * u,
            "largest v": state.v.abs().amax((1, 2)).numpy(),
        }

    def whole(self) -> dict[str, np.ndarray]:
        """T_1 and what became of A.2's hypothesis, one value per replicate."""
        fastest = self.fastest
        return {
            "T1": middle(fastest.memorised),
            "T1 last": fastest.memorised.amax(1).numpy(),
            "A.2 share": fastest.met.double().mean(1).numpy(),
            "A.2 noise": (fastest.noise / fastest.start).median(1).values.numpy(),
            "step error": self.error,
        }

    def _push(self, state: PatchState) -> None:
        """The trapezoid rule, from the last state to this one."""
        now = torch.sigmoid(-state.margins(True)).sum(1).numpy()
        self.pushed = self.pushed + (state.step - self.last) * (self.before + now) / 2
        self.last, self.before = state.step, now

    def _remember(self, state: PatchState, u: np.ndarray, remainder: np.ndarray) -> None:
        """What the lemmas start from: the states at T_0 and at T_1 of the last example."""
        begun = np.isnan(self.at_signal) & (self.case.law.alpha * u >= 1)
        self.at_signal[begun], self.signal[begun] = self.pushed[begun], u[begun]
        done = np.isnan(self.at_memory) & (state.V.amin(1) >= 1).numpy()
        self.at_memory[done], self.left[done] = self.pushed[done], remainder[done]

    def _compare(self, state: PatchState, after: PatchState) -> None:
        """The proof's step against the run's, and with a diagonal Gram matrix against its own."""
        settings = {"alpha": self.case.law.alpha, "gamma": self.case.law.gamma,
                    "lam": self.case.lam, "eta": self.case.eta}  # fmt: skip
        for r in range(len(self.problem)):
            u, gram = state.u[r].numpy(), self.problem.gram[r].numpy()
            v = state.v[r].reshape(self.case.n, -1, FILTERS).numpy()
            norms = gram.diagonal().reshape(v.shape[:2])
            step = theory.exact_step(u, v, gram, **settings)
            alone = theory.exact_step(u, v, np.diag(gram.diagonal()), **settings)
            apart = theory.decoupled_step(u, v, norms, **settings)
            there = after.v[r].reshape(v.shape).numpy()
            errors = (step.u - after.u[r].numpy(), step.v - there, alone.v - apart.v)
            self.error[r] = max(self.error[r], *(np.abs(one).max() for one in errors))


def _constants(state: PatchState, after: PatchState, alpha: float) -> np.ndarray:
    """Lemma 4.2's constant of each replicate's largest filter."""
    return np.array(
        [
            theory.signal_growth(u, then, alpha, eta)[u.argmax()]
            for u, then, eta in zip(
                state.u.numpy(), after.u.numpy(), state.eta.numpy(), strict=True
            )
        ]
    )


def _decoupled_time(case: Case, problem: PatchProblem) -> np.ndarray:
    """T_1 of the same problems if each noise patch felt itself alone."""
    alone = replace(problem, gram=torch.diag_embed(problem.gram.diagonal(dim1=1, dim2=2)))
    times = np.full(problem.y.shape, np.inf)
    for state in trajectory(alone, case.lam, case.eta, log_steps(case.steps, 1.03)):
        times[(state.V >= 1).numpy() & np.isinf(times)] = state.step
        if np.isfinite(middle(times)).all():
            break
    return middle(times)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    """Parameterization 3.1."""
    return parameterization(table)


def figure(table: pl.DataFrame) -> AnyChart:
    return growth_lemmas_figure.figure(table.filter(lam=SHARE))


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, runs = Claims(ABOUT.claims), _runs(table)
    usual = runs.filter(lam=SHARE)
    each, over_d, over_n = ("d", "n"), *_ladders(usual)
    error = runs["step error"].max()
    return [
        claims.below("C.2", float("nan") if error is None else float(str(error)), 1e-10,
            what="largest |step of the proof - step of the run| of any u or v"),
        claims.above("4.2a", groups(usual, "least constant", *each), 0.1,
            what="least constant of Lemma 4.2 over a run, over 3 (1 - lambda)"),
        # 3, or 3 lambda, for 3 (1 - lambda) would be off by 40 % or more at lambda = 0.3.
        claims.equal("4.2b", groups(runs, "early constant", *each, "lam"), 1, 0.1,
            what="constant of Lemma 4.2 at T_1/4 over 3 (1 - lambda)", statistic="median"),
        claims.every("4.3", _flags(usual.filter("begun"), "growth"),
            what="growth of max u_r over the sum <= log d, in runs that reach T_0"),
        claims.below("C.5", groups(usual, "remainder", *each), 1,
            what="largest remainder over (log d times its order)"),
        claims.below("C.5/t", groups(usual, "late remainder", *each), 1,
            what="largest remainder from T_1 on over (log d times its order)"),
        claims.above("C.5/d", slopes(over_d, "d", "remainder"), 0,
            what="exponent of d in the remainder over (log d times its order)"),
        claims.above("C.5/N", slopes(over_n, "n", "remainder"), 0.25,
            what="exponent of N in the remainder over its order"),
        claims.below("4.4", groups(usual, "below", *each), 1,
            what="largest fall over (log d times P sigma^2 sqrt(d)/alpha)"),
        claims.above("A.2", groups(usual, "A.2 share", *each), 0.99,
            what="share of examples with C <= z_0/2"),
        claims.equal("C.7", groups(over_d, "T1 ratio", "d"), 1, 0.2,
            what="median T_1,i without the other patches over that with them"),
        claims.above("C.7/N", slopes(over_n, "n", "T1 ratio"), 0,
            what="exponent of N in this ratio"),
        claims.every("C.8", _flags(usual, "lojasiewicz"), what="||grad L|| log d/L >= 1"),
        claims.every("C.10", _flags(usual, "budget"), what="push/bound <= log d"),
        claims.equal("C.10/N", slopes(over_n, "n", "budget"), 1, 0.2,
            what="exponent of N in the push"),
        claims.every("C.11", _flags(usual, "largest"), what="alpha max u, max |v| <= log d"),
    ]  # fmt: skip


def _ladders(runs: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The runs over d, at the usual N; and those over N, of seeds that have all of them."""
    usual = int(str(runs["n"].min()))
    over_d = runs.filter(n=usual)
    at = runs.filter(pl.col("n") > usual)["d"].unique()
    over_n = runs.filter(pl.col("d").is_in(at.implode()))
    sizes = pl.col("n").n_unique()
    return over_d, over_n.filter(sizes.over("seed") == over_n["n"].n_unique())


def _runs(table: pl.DataFrame) -> pl.DataFrame:
    """One row per run: the worst of each quantity over its steps, divided by what is allowed."""
    allowed, keys = pl.col("d").cast(pl.Float64).log(), ("d", "n", "lam", "seed")
    after = pl.col("step") >= pl.col("T1 last")
    early = pl.col("step") <= pl.col("T1") / 4
    table = table.with_columns(pl.col("growth ratio", "late remainder").fill_nan(None))
    found = table.sort("step").group_by(*keys, maintain_order=True).agg(
        pl.col("step error", "A.2 share", "T1", "T1 decoupled").first(),
        pl.col("constant").min().alias("least constant"),
        pl.col("constant").filter(early).last().alias("early constant"),
        (pl.col("alpha u").max() >= 1).alias("begun"),
        (pl.col("growth ratio").last() / allowed.first()).alias("growth"),
        (pl.col("remainder ratio").max() / allowed.first()).alias("remainder"),
        (pl.col("late remainder").max() / allowed.first()).alias("late remainder"),
        (pl.col("below ratio").max() / allowed.first()).alias("below"),
        (1 / (pl.col("lojasiewicz").filter(after).min() * allowed.first())).alias("lojasiewicz"),
        (pl.col("budget ratio").max() / allowed.first()).alias("budget"),
        (pl.max_horizontal("alpha u", "largest v").max() / allowed.first()).alias("largest"),
    )  # fmt: skip
    ratio = pl.col("T1 decoupled") / pl.col("T1")
    return found.with_columns(ratio.alias("T1 ratio")).sort(*keys)


def _flags(runs: pl.DataFrame, column: str) -> pl.Series:
    """Whether each run stays within what is allowed; missing where it was not seen."""
    return runs[column] <= 1
