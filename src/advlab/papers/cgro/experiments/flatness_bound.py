r"""What the sharpness of the loss in its inputs says of robustness (Theorem E.1, Proposition E.2).

Two Gaussian clusters in D dimensions, y mu + N(0, I) with ||mu|| = 2; a linear and a two-layer tanh
network, adversarially trained on N = 50 points at radius 0.5 (linf: 0.5/sqrt(D)) and looked at on
fresh inputs at several steps and radii.

- The rise of the loss in a ball lies between $\delta E\|\nabla L\|$ (where the loss is convex in x)
  and $\delta G$, G the mean of the largest gradient in the ball. Both ends are exact for linear
  models. For the network G is a LOWER bound by search (`measure.sharpness`), so that delta G is if
  anything too small.
- The three-term form of Theorem E.1 for a fixed delta, with its standard errors: the robust loss of
  fresh less that of training data is at most (I) + (II) + delta G.

Both are true of every network (the mean value theorem, and sums of differences): what is tested
here are the searches and the code, which a G taken at the input alone, or a term left out, fails.

Left and middle: both bounds on fresh inputs at the end of training. The network is not convex in
x, so that its lower end is no bound; it is drawn all the same, and not judged. Right: how the gap
and its bound grow with training. Nearly all of the bound is delta G and (II).
"""

from typing import Literal

import numpy as np
import polars as pl
import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor, nn

from .... import lab
from ....attacks import PGD
from ....core.randomness import Rng, generators, normal, uniform
from ....losses import ModelLoss, logistic
from ....measure.sharpness import Sharpness, input_sharpness
from ....models import Linear, Stack
from ....report import Claims, Verdict, identity
from ....report.charts import AnyChart, curves, panels
from ....threats import Ball
from ....training import fit
from ..theory import flatness

ABOUT = lab.About(
    paper="cgro",
    item="Theorem E.1 and Proposition E.2",
    title="Sharp inputs bound the robust generalisation gap, term by term",
    seconds={"smoke": 8, "laptop": 34, "paper": 3000},
    looks=2,
    claims={
        "21a": identity("Where the loss is convex in the input, delta E||grad|| is below the rise"),
        "21b": identity("The rise of the loss in a ball is below delta G"),
        "21c": identity("The three-term bound on the robust generalisation gap holds"),
    },
)
NAME = "cgro/s8"
SHARES = (0.2, 0.5, 1.0, 2.0)
"""Radii looked at, as multiples of the training radius."""
ROWS = ("seed", "step", "delta", "lower", "rise", "upper", "gap", "smoothing", "sampling",
        "sharpness", "bound", "deviations")  # fmt: skip


class Case(lab.Case):
    model: Literal["linear", "network"]
    norm: Literal["l2", "linf"] = "l2"
    D: PositiveInt
    N: PositiveInt = 50
    fresh: PositiveInt = 500
    draws: PositiveInt = 20
    """Random points of each ball."""
    width: PositiveInt = 16
    lr: PositiveFloat = 0.3
    at: tuple[PositiveInt, ...] = (1, 30, 100, 300, 1000)
    restarts: PositiveInt = 3

    @property
    def radius(self) -> float:
        """Of training; the same l2 reach in both norms."""
        return 0.5 if self.norm == "l2" else 0.5 / self.D**0.5

    @property
    def cost(self) -> float:
        return float(self.replicates * self.at[-1] * (5 if self.model == "network" else 1))


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    usual, some = {
        "smoke": (2, {"fresh": 20, "draws": 3, "at": (1, 5), "restarts": 1}),
        "laptop": (10, {}),
        "paper": (50, {"fresh": 2000}),
    }[scale]
    return [
        Case(model=model, norm=norm, D=D, **some, **block)
        for model in ("linear", "network")
        for norm in ("l2", "linf")
        for D in (2, 5, 20)
        for block in lab.blocks(seeds or usual, 10)
    ]


def compute(case: Case) -> pl.DataFrame:
    """Rows of one setting, seed, step and radius."""
    x, y = _clusters(case, "train", case.N)
    model = Stack.draw(lambda rng: _start(case, rng), _rngs(case, "start"))
    rngs, rows, before = _rngs(case, "run"), [], 0
    for step in case.at:
        ball, walk = Ball(norm=case.norm, radius=case.radius), PGD(steps=5, step_size=0.4)
        fit(model, x, y, steps=step - before, lr=case.lr, loss="logistic", ball=ball, attack=walk,
            rng=rngs)  # fmt: skip
        before = step
        rows += [row for share in SHARES for row in _measure(case, model, step, share)]
    return pl.DataFrame(rows, schema=ROWS, orient="row").with_columns(steps=case.at[-1])


def _measure(case: Case, model: Stack, step: int, share: float) -> list[tuple]:
    """The model on its training inputs and on fresh ones, one row per seed."""
    ball = Ball(norm=case.norm, radius=share * case.radius)
    train, fresh = (
        _Measured(case, model, ball, name, n, step)
        for name, n in (("train", case.N), ("fresh", case.fresh))
    )
    rows = []
    for r, seed in enumerate(case.seeds):
        bounds = flatness.rise_bounds(fresh.slope[r], fresh.rise[r], fresh.steepest[r], ball.radius)
        terms = flatness.three_terms(
            worst=fresh.loss[r] + fresh.rise[r],
            worst_train=train.loss[r] + train.rise[r],
            clean=fresh.loss[r],
            noisy=fresh.noisy[r],
            noisy_train=train.noisy[r],
            steepest=fresh.steepest[r],
            radius=ball.radius,
        )
        means = [float(part.mean()) for part in (bounds.lower, bounds.rise, bounds.upper)]
        rows.append((seed, step, ball.radius, *means, terms.gap, terms.smoothing, terms.sampling,
                     terms.sharpness, terms.bound, terms.deviations))  # fmt: skip
    return rows


class _Measured:
    """Losses, slopes and rises of a sample, as arrays (R, n); losses at random points of the balls
    as (R, n, draws)."""

    def __init__(self, case: Case, model: Stack, ball: Ball, sample: str, n: int, step: int):
        x, y = (part.flatten(0, 1) for part in _clusters(case, sample, n))
        rngs = _rngs(case, "look", sample, step, ball.radius)
        found = _sharpness(case, model, x, y, ball, rngs)
        shape = (case.replicates, n)
        self.loss, self.slope, self.steepest, self.rise = (
            part.detach().reshape(shape).numpy()
            for part in (found.loss, found.slope, found.steepest, found.rise)
        )
        loss = ModelLoss(model, y, logistic)
        with torch.no_grad():
            seen = [loss(ball.sample(x, rng=rngs)) for _ in range(case.draws)]
        self.noisy = torch.stack(seen, 1).reshape(*shape, case.draws).numpy()


def _sharpness(case: Case, model: Stack, x: Tensor, y: Tensor, ball: Ball, rng: Rng) -> Sharpness:
    """By PGD; of linear models in closed form."""
    walk = PGD(steps=10, step_size=0.25, restarts=case.restarts)
    if case.model == "network":
        return input_sharpness(
            model, x, y, ball, loss=logistic, attack=walk, draws=12, starts=2, climb=8, rng=rng
        )
    theta = model.get_parameter("theta").detach().numpy()
    inputs, labels = (part.chunk(case.replicates) for part in (x, y))
    exact = [
        flatness.linear_logistic(w, at.numpy(), signs.numpy(), case.norm, ball.radius)
        for w, at, signs in zip(theta, inputs, labels, strict=True)
    ]
    lower, rise, upper = (
        torch.from_numpy(np.concatenate([getattr(one, name) for one in exact]))
        for name in ("lower", "rise", "upper")
    )
    with torch.no_grad():
        loss = ModelLoss(model, y, logistic)(x)
    return Sharpness(loss, lower / ball.radius, upper / ball.radius, rise)


def _start(case: Case, rng: torch.Generator) -> nn.Module:
    if case.model == "linear":
        return Linear.zero(case.D)
    layers = nn.Linear(case.D, case.width), nn.Linear(case.width, 1)
    for layer in layers:
        layer.double()
        with torch.no_grad():
            layer.weight.normal_(generator=rng).div_(layer.in_features**0.5)
            layer.bias.zero_()
    return nn.Sequential(layers[0], nn.Tanh(), layers[1], nn.Flatten(0))


def _clusters(case: Case, sample: str, n: int) -> tuple[Tensor, Tensor]:
    """x (R, n, D) and y (R, n); mu is along the diagonal."""
    rngs = _rngs(case, "data", sample)
    noise = torch.empty(case.replicates * n, case.D, dtype=torch.float64)
    y = 2 * (uniform(noise[:, 0], rngs) < 0.5).double() - 1
    x = normal(noise, rngs) + 2 / case.D**0.5 * y[:, None]
    return x.reshape(case.replicates, n, -1), y.reshape(case.replicates, n)


def _rngs(case: Case, *name: object) -> list[torch.Generator]:
    return generators(NAME, *name, case.D, seeds=case.seeds)


def figure(table: pl.DataFrame) -> AnyChart:
    charts = []
    for D in (2, 20):
        rows = table.filter(norm="l2", D=D)
        last = rows.filter(pl.col("step") == pl.col("steps"))
        charts += [_sides(last.filter(model=m), f"{m}, D = {D}") for m in ("linear", "network")]
        charts.append(
            _parts(rows.filter(model="network", delta=0.5), f"network, D = {D}, delta = 0.5")
        )
    return panels(charts, columns=3)


def _sides(table: pl.DataFrame, title: str) -> AnyChart:
    names = {"upper": "delta G", "rise": "rise of the loss", "lower": "delta times the mean slope"}
    return curves(
        _long(table, "delta", names), "delta", "value", "line", title=title,
        x_title="radius delta", y_title="loss", log_x=True, log_y=True,
    )  # fmt: skip


def _parts(table: pl.DataFrame, title: str) -> AnyChart:
    names = {
        "gap": "robust generalisation gap",
        "bound": "(I) + (II) + delta G",
        "sharpness": "delta G",
        "sampling": "(II)",
        "smoothing": "(I)",
    }
    return curves(
        _long(table, "step", names), "step", "value", "line", title=title,
        x_title="step", y_title="loss", log_x=True,
    )  # fmt: skip


def _long(table: pl.DataFrame, x: str, names: dict[str, str]) -> pl.DataFrame:
    long = table.unpivot(list(names), index=[x, "seed"], variable_name="line")
    return long.with_columns(pl.col("line").replace_strict(names))


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    """Exact inequalities: one violation refutes, and rounding is forgiven."""
    claims = Claims(ABOUT.claims)
    looks = f"of {table.height} looks at {table.n_unique(['model', 'norm', 'D', 'seed'])} models"
    models = {
        f"{model} models": rows
        for (model,), rows in table.partition_by("model", as_dict=True).items()
    }
    below = _least(table.filter(model="linear"), pl.col("rise") - pl.col("lower"))
    beyond = {name: _least(rows, pl.col("upper") - pl.col("rise")) for name, rows in models.items()}
    slacks = {name: _least(rows, pl.col("deviations")) for name, rows in models.items()}
    return [
        claims.above("21a", below, -1e-12,
            what=f"smallest rise less delta E||grad|| {looks}, the linear ones,"),
        claims.above("21b", beyond, -1e-12, what=f"smallest delta G less rise {looks}"),
        claims.above("21c", slacks, -3,
            what=f"smallest slack of the bound, in standard errors, {looks}"),
    ]  # fmt: skip


def _least(table: pl.DataFrame, value: pl.Expr) -> float:
    return float(table.select(value).to_numpy().min())
