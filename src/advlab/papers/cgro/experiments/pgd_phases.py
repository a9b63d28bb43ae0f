"""What PGD training makes of patch data: robust, CGRO, memorised or failed, over radius, noise, N.

Theorem 4.1 is about GTA, an attack that knows w*. Other attacks in training are the paper's future
work (section 7). Here training is on (O) with lambda = 1/2 against l2 PGD on the network itself,
three steps from the clean input, and the noise is as long as the paper's or longer: the mean length
sigma sqrt(d) of a noise patch is 1/4 (the paper's at d = 300) to 4 times that of the signal.
d = 300, m = 10, P = 4, radii as shares of alpha, eta = 0.2/alpha^2 (less by the square of the noise
where that is longer than the signal), 1600 steps.

Four outcomes, told by three errors at the end. "Robust" errors are LOWER bounds, by a PGD of 20
steps and four starts at the training radius:

- robust: right on attacked fresh inputs; where noise is shorter than the signal.
- CGRO: right on clean fresh inputs and on attacked training inputs, wrong on attacked fresh ones;
  a band where noise is one and a half to three times as long as the signal.
- memorised: right on attacked training inputs, a coin flip on clean fresh ones; beyond that band.
- failed: wrong on attacked training inputs; at 0.9 alpha.

So CGRO in the whole ball needs longer noise than Parameterization 3.1 has, where training against
GTA shows it in the direction of w* alone. The CGRO index is robust test error less the larger of
clean test error and robust training error: 1 where CGRO is complete, at most 0 where there is none.
Beside it clean training (lambda = 0) on the same problems, judged at alpha/2 and 0.9 alpha: at
smaller radii it is robust too where noise is shorter than the signal.

Maps have the most frequent outcome of each cell, where an error above 1/4 counts: failed by robust
training error, else memorised by clean test error, else CGRO by robust test error. Numbers are per
cent of the runs, where not all have the outcome. Below them the errors, with standard errors, at
alpha/2, for one N at 0.9 alpha and for this N after clean training at alpha/2; then the noise at
which robust test error passes 1/2 at alpha/2.
Dashed: N^(1/3), where noise and signal would grow equally fast from their starts.

Exact in few dimensions: moves of PGD lie in the span of the filters (`reductions.patch_pgd`).
"""

import numpy as np
import polars as pl
import torch
from pydantic import NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor

from .... import lab
from ....attacks import PGD
from ....core.randomness import generators
from ....losses import ModelLoss, margin
from ....report import Claims, Verdict, ours
from ....report.charts import AnyChart
from ....report.samples import groups, slopes
from ....threats import Ball
from ..data import Patches
from ..reductions import patch_law
from ..reductions.patch_errors import FreshNoise, network, test_inputs, train_inputs
from ..reductions.patch_pgd import PatchPGD, PGDState, pgd_trajectory
from ._parts import pgd_phases_figure
from ._parts.patch_runs import FILTERS, SHARE

SIZES = (5, 10, 20, 40)
NOISE = (0.25, 0.5, 0.75, 1.0, 1.3, 1.6, 2.0, 2.5, 3.2, 4.0)
"""sigma sqrt(d)/alpha."""
RADII = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Over alpha, in training and at the end."""
MIDDLE = 0.5
"""The radius whose cells claims about the noise are made of."""
ABOUT = lab.About(
    paper="cgro",
    item="Section 7, PGD in training",
    title="A phase diagram of PGD training: radius, noise and N",
    seconds={"smoke": 3, "laptop": 110, "paper": 2400},
    looks=1,
    claims={
        "robust": ours("Where noise patches are at most as long as the signal, training at 0.5 "
                       "alpha is robust: test error under PGD is below 5 % at every N"),
        "robust/c": ours("and it is PGD that makes it so: at lambda = 0 this error is at least 0.9 "
                         "larger on the same problems"),
        "CGRO": ours("At 0.5 alpha every N has noise at which there is CGRO under PGD: robust test "
                     "error is more than 0.6 above both clean test and robust training error"),
        "CGRO/c": ours("and none without PGD: the largest such difference over the noises is at "
                       "least 0.5 less at lambda = 0, on the same problems"),
        "band": ours("and that noise is longer than the signal: robust test error passes 1/2 at a "
                     "length above 1.2 alpha, at every N"),
        "memorised": ours("With noise of 4 alpha training examples are memorised, and nothing "
                          "else: clean test error is more than 0.35 above robust training error, "
                          "at 0.1, 0.3 and 0.5 alpha and every N"),
        "failed": ours("At 0.9 alpha PGD training fails where noise is at most as long as the "
                       "signal, as clean training does: robust training error is more than 0.3 "
                       "above clean training error at every N, with lambda = 1/2 and with 0"),
        "N": ours("More examples put the loss of robustness off, less than the growth rates say: "
                  "its noise goes like N^p with p from 0.1 to 0.3, not 1/3"),
    },
)  # fmt: skip
NAME, MIDDLE_NAME = "cgro/pgd phases, controls", "cgro/pgd phases, controls at alpha/2"


class Case(lab.Case):
    n: PositiveInt
    radius: PositiveFloat
    lam: NonNegativeFloat = SHARE
    d: PositiveInt = 300
    noise: tuple[PositiveFloat, ...] = NOISE
    eta: PositiveFloat = 0.2
    """Times alpha^2."""
    steps: PositiveInt = 1600
    tested: PositiveInt = 60
    restarts: PositiveInt = 4

    @property
    def cells(self) -> list[tuple[float, int]]:
        return [(noise, seed) for noise in self.noise for seed in self.seeds]

    @property
    def stream(self) -> str:
        return MIDDLE_NAME if self.radius == MIDDLE else NAME

    def law(self, noise: float) -> Patches:
        usual = Patches.scaled(n=self.n, d=self.d)
        return usual.model_copy(update={"sigma": noise * usual.alpha / self.d**0.5})

    @property
    def cost(self) -> float:
        return self.steps * self.replicates * (5 + self.n**1.5 / 8) / 1e4


def recipe(scale: lab.Scale, seeds: int | None = None) -> list[Case]:
    few = {"d": 60, "noise": (0.5, 2.0), "steps": 30, "tested": 10, "restarts": 1}
    usual, sizes, radii, some = {
        "smoke": (2, (3, 4), (MIDDLE, 0.9), few),
        "laptop": (8, SIZES, RADII, {}),
        "paper": (24, (*SIZES, 80), RADII, {"steps": 6400, "tested": 500, "restarts": 20}),
    }[scale]
    # Where robustness is lost differs from seed to seed, what happens far from there does not.
    times = {MIDDLE: 3 if scale == "laptop" else 1}
    arms = [(radius, SHARE) for radius in radii] + [(MIDDLE, 0.0), (radii[-1], 0.0)]
    return [
        Case(n=n, radius=radius, lam=lam, **some, **block)
        for radius, lam in arms
        for block in lab.blocks(seeds or usual * times.get(radius, 1), 12)
        for n in sizes[::-1]
    ]


def compute(case: Case) -> pl.DataFrame:
    """All noises and seeds of one N and radius as one stack; one row per network, at the end."""
    laws = [case.law(noise) for noise, _ in case.cells]
    alpha = laws[0].alpha
    # The same directions at every noise and lambda, and at every radius but the middle one.
    rngs = [rng for _ in case.noise for rng in generators(case.stream, case.n, seeds=case.seeds)]
    starts = [case.d**-0.5] * len(laws)
    problem = patch_law.draw_stack(laws, FILTERS, starts, rngs)
    longer = torch.tensor([max(1.0, noise) for noise, _ in case.cells], dtype=torch.float64)
    radius = torch.full_like(longer, case.radius * alpha)
    rates = case.eta / (alpha * longer) ** 2
    (state,) = pgd_trajectory(problem, PatchPGD(radius), case.lam, rates, [case.steps])
    noise, seeds = zip(*case.cells, strict=True)
    return pl.DataFrame(
        {"noise": noise, "seed": seeds, "signal": state.signal.numpy(),
         "mean V": state.V.mean(1).numpy()} | _errors(case, state, radius)
    )  # fmt: skip


def _errors(case: Case, state: PGDState, radius: Tensor) -> dict[str, np.ndarray]:
    """Clean errors, and those that PGD with restarts finds at the training radius."""
    fresh = [rng for _ in case.noise for rng in generators(case.stream, "fresh", seeds=case.seeds)]
    tested = test_inputs(state, FreshNoise.draw(state, case.tested, fresh))
    model, ones = network(state), torch.ones_like(tested[:, :, 0, 0])
    walk, unit = PGD(steps=20, step_size=0.2, restarts=case.restarts), Ball("l2", 1.0)
    first = walk.model_copy(update={"restarts": 1, "random_start": False})
    found = {}
    for name, x, y in (("train", train_inputs(state), state.problem.y), ("test", tested, ones)):
        # f(cX) = c^3 f(X): one ball for all radii.
        rows = (x / radius[:, None, None, None]).flatten(0, 1)
        loss = ModelLoss(model, y.flatten(), margin)
        with torch.no_grad():
            clean = loss(rows)
        rngs = [rng for _ in case.noise
                for rng in generators(case.stream, "attack", name, seeds=case.seeds)]  # fmt: skip
        worst = torch.stack([one(loss, rows, unit, rng=rngs).loss for one in (first, walk)])
        for kind, values in (("clean", clean), ("robust", worst.amax(0))):
            broken = (values >= 0).double().reshape(y.shape).mean(1)
            found[f"{kind} {name}"] = broken.numpy()
    return found


def figure(table: pl.DataFrame) -> AnyChart:
    clean = pl.col("lam") == 0
    return pgd_phases_figure.figure(table.filter(~clean), table.filter(clean), crossings(table))


def _indexed(table: pl.DataFrame) -> pl.DataFrame:
    worse = pl.max_horizontal("clean test", "robust train")
    return table.with_columns(
        index=pl.col("robust test") - worse,
        memorised=pl.col("clean test") - pl.col("robust train"),
        failed=pl.col("robust train") - pl.col("clean train"),
    )


def crossings(table: pl.DataFrame) -> pl.DataFrame:
    """Per N and seed, the least noise at which robust test error passes 1/2, by log interpolation.

    At the radius alpha/2, with lambda > 0; missing where it does not.
    """
    rows = []
    cells = table.filter(pl.col("lam") > 0, radius=MIDDLE).sort("noise")
    for (n, seed), part in cells.partition_by("n", "seed", as_dict=True).items():
        error, place = part["robust test"].to_numpy(), np.log(part["noise"].to_numpy())
        above = np.flatnonzero(error > 0.5)
        found = None
        if len(above) and above[0] > 0:
            at = slice(above[0] - 1, above[0] + 1)
            found = float(np.exp(np.interp(0.5, error[at], place[at])))
        rows.append((n, seed, found))
    return pl.DataFrame(
        rows, schema={"n": pl.Int64, "seed": pl.Int64, "crossing": pl.Float64}, orient="row"
    ).sort("n", "seed")


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, every = Claims(ABOUT.claims), _indexed(table)
    short, cells = pl.col("noise") <= 1, ("n", "noise", "radius")
    rows, clean = (every.filter((pl.col("lam") > 0) == on) for on in (True, False))
    middle = rows.filter(short, radius=MIDDLE)
    pairs = middle.join(clean, on=["seed", *cells], suffix=" clean").with_columns(
        more=pl.col("robust test clean") - pl.col("robust test")
    )
    best, none = (_largest(one) for one in (rows, clean))
    less = best.join(none, on=["n", "seed"], suffix=" clean").with_columns(
        less=pl.col("index") - pl.col("index clean")
    )
    longest = rows.filter(pl.col("radius") <= MIDDLE, pl.col("noise") == pl.col("noise").max())
    widest = every.filter(short, radius=RADII[-1])
    found = crossings(table)
    seen = found.filter(pl.col("crossing").is_not_null().all().over("seed"))
    return [
        claims.below("robust", groups(middle, "robust test", *cells), 0.05,
            what="test error under PGD"),
        claims.above("robust/c", groups(pairs, "more", *cells), 0.9,
            what="test error under PGD at lambda = 0 less that at 1/2"),
        claims.above("CGRO", groups(best, "index", "n"), 0.6,
            what="largest CGRO index over the noises"),
        claims.above("CGRO/c", groups(less, "less", "n"), 0.5,
            what="largest CGRO index over the noises less that at lambda = 0"),
        claims.above("band", groups(found, "crossing", "n"), 1.2,
            what="noise over alpha at which robust test error passes 1/2"),
        claims.above("memorised", groups(longest, "memorised", *cells), 0.35,
            what="clean test error less training error under PGD"),
        claims.above("failed", groups(widest, "failed", *cells, "lam"), 0.3,
            what="training error under PGD less that on clean inputs"),
        claims.within("N", slopes(seen, "n", "crossing") if seen.height else [], 0.1, 0.3,
            what="exponent of N in the noise at which robust test error passes 1/2"),
    ]  # fmt: skip


def _largest(rows: pl.DataFrame) -> pl.DataFrame:
    """The largest index over the noises of each N and seed, at the radius alpha/2."""
    best = rows.filter(radius=MIDDLE).group_by("n", "seed").agg(pl.col("index").max())
    return best.sort("n", "seed")
