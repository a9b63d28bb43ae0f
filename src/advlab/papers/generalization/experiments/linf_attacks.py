"""L_inf attacks: harder to train, and adversarial training still interpolates (Section 4).

Harder to train. The surrogate attack shrinks coordinate by coordinate, by |g_i|/(|g_i| + xi). For
theta = (1/d, ..., 1/d) and 2|r| = 1 that is 1/(1 + d xi), so xi has to be o(1/d); and a smaller xi
needs smaller steps. The comparison is with an l2 attack of the same strength: radius eps/sqrt(d)
and xi/d against radius eps and xi. At an equal xi the linf attack takes the larger steps, because
it shrinks too much.

A step size is stable for a data set if, in the last 50 of 400 iterations from |theta| = 5 xi, the
surrogate training loss never rises (d = 10, n = 1000, eps = 3, as in Figure 1, where that start is
0.25 for xi = 0.05). Rises below 1e-10 of the loss are rounding: by then a stable run is at rest.
The largest stable step is found to 2 % by bisection, each replicate with its own.

Interpolation. If eps = c/sqrt(d) and d/n grows, the min-norm interpolator theta(y) has a training
loss that goes to zero, while its adversarial risk goes to v^2, that of the zero model. Both are
closed forms of theta(y).
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Literal

import numpy as np
import polars as pl
import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from .... import lab, linear
from ....attacks import FGM, Surrogate
from ....core.randomness import generator, generators
from ....losses import ModelLoss, squared
from ....models import Linear, Stack
from ....report import Claims, Verdict, empirical, identity, sample
from ....report.charts import AnyChart, curves, panels, points
from ....threats import Ball
from ....training import fit
from .. import theory
from ..data import LinearModel, SparseVector
from ..reductions import LinearAdversarial
from ._parts.linear_runs import risks, train

ABOUT = lab.About(
    paper="generalization",
    item="Section 4",
    title="L_inf attacks: smaller steps, and interpolation as before",
    seconds={"smoke": 3, "laptop": 15, "paper": 200},
    looks=1,
    claims={
        "16a": empirical("the largest stable step falls like xi to a power within 0.2 of 1"),
        "16b": empirical(
            "under the scaling that L_inf attacks need (xi/d, eps/sqrt d) the largest stable step "
            "is below that of the l2 attack"
        ),
        "16c": identity(
            "the L_inf surrogate attack on theta = (1/d, ..., 1/d) is shrunk by 1/(1 + d xi)"
        ),
        "17a": empirical("with eps = 1/sqrt d the training loss of the interpolator falls with d"),
        "17b": empirical(
            "with eps = 1/sqrt d the adversarial risk of the interpolator comes nearer to v^2 as d "
            "grows"
        ),
        "17c": empirical(
            "in the largest dimension the training loss of the interpolator is below 1 % of v^2"
        ),
        "17d": empirical(
            "in the largest dimension the adversarial risk of the interpolator is within 5 % of v^2"
        ),
    },
)
NAME = "generalization/linf"
SLOPE = 0.2
WINDOW, ROUNDING = 50, 1e-10
NEAR_ZERO, NEAR_V2 = 0.01, 0.05


class Case(lab.Case):
    """`part` says what is measured; xi and radius are the attack's own, after any scaling."""

    part: Literal["steps", "shrink", "curve", "interpolation"]
    norm: Literal["l2", "linf"] = "linf"
    d: PositiveInt = 10
    n: PositiveInt = 1000
    radius: PositiveFloat = 1.0
    xi: PositiveFloat = 0.05
    lr: PositiveFloat = 0.01
    steps: PositiveInt = 400
    halvings: PositiveInt = 8

    @property
    def cost(self) -> float:
        if self.part == "steps":
            return self.replicates * self.steps * self.halvings / 1000
        return {"curve": self.replicates * self.steps / 1000, "interpolation": self.d / 5e3}.get(
            self.part, 0.1
        )


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    smoke = scale == "smoke"
    d, eps, xi = 10, 3.0, 0.05
    blocks = lab.blocks(seeds or {"smoke": 3, "laptop": 10, "paper": 50}[scale], 10)
    short = {"n": 100, "steps": 60, "halvings": 2} if smoke else {}
    attacks: list[tuple[Literal["l2", "linf"], float]] = [("l2", eps), ("linf", eps / d**0.5)]
    search = [
        Case(part="steps", norm=norm, radius=radius, xi=xi / shrunk, d=d, **short, **block)
        for norm, radius in attacks
        for shrunk in (1.0, d**0.5, d)
        for block in blocks
    ]
    shrink = [Case(part="shrink", d=dim, radius=dim**-0.5, n=1) for dim in (10, 100, 1000)]
    length = {"n": 100, "steps": 50} if smoke else {"steps": 300}
    curve = [
        Case(part="curve", radius=radius, xi=0.005, d=d, **length, **block)
        for radius in (0.03, 0.1, 0.2)
        for block in blocks
    ]
    many = lab.blocks(seeds or {"smoke": 3, "laptop": 30, "paper": 100}[scale], 10)
    interpolation = [
        Case(part="interpolation", d=dim, n=20, radius=c / dim**0.5, **block)
        for dim in ((200, 1000) if smoke else (1000, 5000, 20000))
        for c in (1.0, 0.1)
        for block in many
    ]
    return search + shrink + curve + interpolation


def compute(case: Case) -> pl.DataFrame:
    return {
        "steps": _largest_stable_step,
        "shrink": _shrink,
        "curve": _curve,
        "interpolation": _interpolation,
    }[case.part](case)


class OwnSteps(torch.optim.Optimizer):
    """Gradient descent in which replicate r takes steps of lr * rates[r]."""

    def __init__(self, weights: Iterable[Tensor], rates: Sequence[float], lr: float = 1.0):
        super().__init__(weights, {"lr": lr, "rates": list(rates)})

    @torch.no_grad()
    def step(self, closure=None) -> None:
        for group in self.param_groups:
            for w in group["params"]:
                rates = torch.tensor(group["rates"], dtype=w.dtype)
                w.sub_(group["lr"] * rates.reshape(-1, *[1] * (w.ndim - 1)) * w.grad)


def _largest_stable_step(case: Case) -> pl.DataFrame:
    """Bisection on a log scale, around the step that the Hessian at theta = 0 allows."""
    law = LinearModel(n=case.n, d=case.d)
    x, y = law.sample_stack(generators(NAME, "data", seeds=case.seeds))
    guess = theory.stable_eta(law.theta0_vector(), law.sigma2, case.radius, case.xi)
    low, high = (np.full(case.replicates, guess * factor) for factor in (0.25, 8.0))
    found = _stable(case, x, y, low) & ~_stable(case, x, y, high)
    for _ in range(case.halvings):
        middle = np.sqrt(low * high)
        good = _stable(case, x, y, middle)
        low, high = np.where(good, middle, low), np.where(good, high, middle)
    eta = [value if ok else None for value, ok in zip(low.tolist(), found, strict=True)]
    return pl.DataFrame({"seed": list(case.seeds), "eta": pl.Series(eta, dtype=pl.Float64)})


def _stable(case: Case, x: Tensor, y: Tensor, eta: np.ndarray) -> np.ndarray:
    start = torch.stack(
        [
            torch.randn(case.d, generator=rng, dtype=x.dtype)
            for rng in generators(NAME, "start", seeds=case.seeds)
        ]
    )
    start = 5 * case.xi * start / start.norm(dim=1, keepdim=True)
    run = fit(
        Stack([Linear(theta) for theta in start]),
        x,
        y,
        steps=case.steps,
        lr=1.0,
        objective=LinearAdversarial(
            loss="squared",
            ball=Ball(norm=case.norm, radius=case.radius),
            attack=Surrogate(xi=case.xi),
        ),
        optimizer=partial(OwnSteps, rates=eta.tolist()),
    )
    loss = run.log.losses()[-WINDOW - 1 :]
    # A loss that is not a number is no evidence of stability: the comparison is then false.
    return (loss.diff(dim=0) <= ROUNDING * loss[:-1]).all(0).numpy()


def _shrink(case: Case) -> pl.DataFrame:
    """|A_xi| / |A| as the attack itself has it, at theta = (1/d, ..., 1/d) and 2|r| = 1."""
    x = torch.zeros(1, case.d, dtype=torch.float64)
    model = Linear(torch.full((case.d,), 1 / case.d, dtype=torch.float64))
    loss = ModelLoss(model, torch.tensor([-0.5], dtype=torch.float64), squared)
    ball = Ball(norm=case.norm, radius=case.radius)
    sizes = [
        float(attack(loss, x, ball, rng=generator(NAME)).x.norm())
        for attack in (Surrogate(xi=case.xi), FGM())
    ]
    return pl.DataFrame(
        {"shrink": [sizes[0] / sizes[1]], "predicted": [1 / (1 + case.d * case.xi)]}
    )


def _curve(case: Case) -> pl.DataFrame:
    law = LinearModel(n=case.n, d=case.d)
    x, y = law.sample_stack(generators(NAME, "data", seeds=case.seeds))
    ball = Ball(norm="linf", radius=case.radius)
    every = max(case.steps // 50, 1)
    path = train(x, y, ball=ball, xi=case.xi, lr=case.lr, steps=case.steps, note_every=every)
    least = linear.optimal(law.theta0_vector(), law.sigma2, ball).risk
    return path.table(case.seeds, **risks(path, law)).with_columns(least=pl.lit(least))


def _interpolation(case: Case) -> pl.DataFrame:
    law = LinearModel(n=case.n, d=case.d, theta0=SparseVector(k=10))
    theta0, ball = law.theta0_vector(), Ball(norm="linf", radius=case.radius)
    rows = []
    for seed, rng in zip(
        case.seeds, generators(NAME, "interpolation", case.d, seeds=case.seeds), strict=True
    ):
        x, y = law.sample(rng)
        theta = linear.min_norm(x.numpy(), y.numpy())
        fitted = linear.empirical_risk(theta, x.numpy(), y.numpy(), ball)
        risk = linear.adversarial_risk(theta, theta0, law.sigma2, ball)
        rows.append({"seed": seed, "train_v2": fitted / law.v2, "test_v2": risk / law.v2})
    return pl.DataFrame(rows).with_columns(c=pl.lit(round(case.radius * case.d**0.5, 9)))


def figure(table: pl.DataFrame) -> AnyChart:
    search = _part(table, "steps").with_columns(
        attack=pl.when(pl.col("norm") == "l2").then(pl.lit("l2")).otherwise(pl.lit("linf, eps/√d"))
    )
    curve = _part(table, "curve").with_columns(eps=pl.col("radius").cast(pl.String))
    limits = curve.unique(["eps"], maintain_order=True).select("eps", test="least")
    steps = points(
        search,
        "xi",
        "eta",
        "attack",
        theory=_predicted(search),
        title="Largest stable step",
        x_title="xi",
        y_title="step size",
        log_x=True,
        log_y=True,
    )
    path = curves(
        curve,
        "step",
        "test",
        "eps",
        theory=limits,
        title="L_inf training, and R* (dashed)",
        x_title="iteration",
        y_title="adversarial risk",
    )
    return panels([steps, path, *_interpolation_panels(table)], columns=2)


def _predicted(search: pl.DataFrame) -> pl.DataFrame:
    """The l2 step from the Hessian at theta = 0."""
    law = LinearModel(n=1, d=int(search["d"][0]))
    rows = search.filter(norm="l2").unique(["xi"], maintain_order=True)
    eta = theory.stable_eta(
        law.theta0_vector(), law.sigma2, rows["radius"].to_numpy(), rows["xi"].to_numpy()
    )
    return rows.select("xi", "attack", eta=pl.Series(eta))


def _interpolation_panels(table: pl.DataFrame) -> list[AnyChart]:
    rows = _part(table, "interpolation").with_columns(
        eps=pl.format("{}/√d", pl.when(pl.col("c") == 1).then(pl.lit("1")).otherwise("c"))
    )
    shared = {"x_title": "dimension d", "log_x": True}
    return [
        points(
            rows,
            "d",
            "train_v2",
            "eps",
            title="L_inf interpolator, training",
            y_title="adversarial training loss / v²",
            log_y=True,
            **shared,
        ),
        points(
            rows,
            "d",
            "test_v2",
            "eps",
            theory=pl.DataFrame({"test_v2": [1.0]}),
            title="L_inf interpolator, test",
            y_title="adversarial risk / v²",
            **shared,
        ),
    ]


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    rows = _part(table, "interpolation").with_columns(away=(pl.col("test_v2") - 1).abs())
    strong = rows.filter(c=1.0)
    last = rows.filter(pl.col("d") == pl.col("d").max())
    claims = Claims(ABOUT.claims)
    return [
        *_step_verdicts(claims, _part(table, "steps")),
        claims.below(
            "16c",
            {
                f"d = {d}": off
                for d, off in _part(table, "shrink")
                .select("d", (pl.col("shrink") / pl.col("predicted") - 1).abs())
                .iter_rows()
            },
            1e-12,
            what="relative distance of the shrinking from 1/(1 + d xi)",
        ),
        claims.decreasing("17a", strong, "d", "train_v2", what="training loss / v^2"),
        claims.decreasing("17b", strong, "d", "away", what="|risk / v^2 - 1|"),
        claims.below(
            "17c", sample(last, "train_v2", by="c"), NEAR_ZERO, what="training loss / v^2"
        ),
        claims.below("17d", sample(last, "away", by="c"), NEAR_V2, what="|risk / v^2 - 1|"),
    ]


def _step_verdicts(claims: Claims, search: pl.DataFrame) -> list[Verdict]:
    slopes = {
        norm: [_slope(run["xi"].to_numpy(), run["eta"].to_numpy()) for run in _by_seed(rows)]
        for (norm,), rows in search.group_by("norm", maintain_order=True)
    }
    l2, linf = search.filter(norm="l2"), search.filter(norm="linf")
    pairs = linf.filter(pl.col("xi") == pl.col("xi").min()).join(
        l2.filter(pl.col("xi") == pl.col("xi").max()), on="seed", suffix=" l2"
    )
    pairs = pairs.with_columns(ratio=pl.col("eta") / pl.col("eta l2"))
    return [
        claims.equal("16a", slopes, 1.0, SLOPE, what="slope of log step in log xi"),
        claims.below(
            "16b",
            sample(pairs, "ratio"),
            1.0,
            what="largest stable step of linf at (xi/d, eps/sqrt d) / that of l2 at (xi, eps)",
        ),
    ]


def _by_seed(rows: pl.DataFrame) -> list[pl.DataFrame]:
    return rows.sort("seed", "xi").partition_by("seed", maintain_order=True)


def _slope(xi: np.ndarray, eta: np.ndarray) -> float:
    return float(np.polyfit(np.log(xi), np.log(eta), 1)[0]) if np.isfinite(eta).all() else np.nan


def _part(table: pl.DataFrame, part: str) -> pl.DataFrame:
    return table.filter(part=part)
