"""What the figures of lazy networks share: one trained stack, its exact reduction, its risks."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import polars as pl
import torch
from jaxtyping import Float
from pydantic import NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt
from torch import Tensor, nn

from ..... import lab
from .....attacks import FGM, Surrogate
from .....core.randomness import generators, normal
from .....linear import adversarial_risk
from .....models import ACTIVATIONS, Stack
from .....report import charts
from .....threats import Ball
from .....training import Fit, Probe, fit
from ...data import LinearModel, Regression, SparseVector
from ...measures.lazy_terms import weighted
from ...models import LazyNet
from ...reductions import LazyAdversarial, Subspace, single_neuron

Net = Literal["linear", "sigmoid", "relu"]
NETS: tuple[Net, ...] = ("linear", "sigmoid", "relu")
RATES = {"linear": 1.0, "sigmoid": 1.0, "relu": 4.0}
"""ReLU has half the slope on average, so four times the step gives the same speed (Theorem 4)."""


DTYPE = torch.float32
"""Training and risks; the losses here are far above its rounding, and it halves the time."""

DRAWN = 1000
"""The dimension of the figures; in others only the end of training is of interest."""

UNIT = 1 / math.sqrt(10)
"""The entries of theta0 with |theta0| = 1: the printed ten ones contradict a test loss near 1."""


class NetCase(lab.Case):
    """A stack of lazy networks trained against the surrogate attack in an l2 ball."""

    activation: Net = "sigmoid"
    n: PositiveInt = 100
    width: PositiveInt = 50
    radius: NonNegativeFloat = 0.3
    xi: PositiveFloat = 0.01
    lr: PositiveFloat = 0.2
    """Of the linear network; the others have `RATES` times it."""
    steps: PositiveInt = 4000
    tests: NonNegativeInt = 10_000
    """Fresh points that estimate a risk; 0 where no risk is asked for."""

    @property
    def cost(self) -> float:
        width = 1 if self.activation == "linear" else self.width
        return self.replicates * self.steps * (20 * width + self.n * width) / 5000


@dataclass(frozen=True)
class LazyProblem:
    """R data sets, networks and test sets in the coordinates that training can reach.

    Nothing leaves span{x_i, theta_j(0), theta0}, and a fresh x ~ N(0, I) enters a network and its
    answer only through its coordinates there, which are again N(0, I): exact, in few dimensions.
    """

    train: Regression
    nets: list[LazyNet]
    test: Regression
    theta0: Float[Tensor, "R k"]
    sigma2: float

    @classmethod
    def draw(cls, name: str, law: LinearModel, case: NetCase, delta: float | None) -> "LazyProblem":
        """The same data, start and test points for every radius and activation of a seed."""
        x, y = law.sample_stack(generators(name, "data", seeds=case.seeds))
        rngs = generators(name, "network", seeds=case.seeds)
        nets = [LazyNet.draw(law.d, case.width, case.activation, rng, delta) for rng in rngs]
        theta0 = torch.from_numpy(law.theta0_vector())
        start = torch.stack([net.theta.detach() for net in nets])
        space = Subspace.of(torch.cat([x, start], dim=1), theta0)
        inside = space.into(theta0.expand(len(x), -1))
        small = [
            LazyNet(theta, net.top, case.activation)
            for theta, net in zip(space.into(start), nets, strict=True)
        ]
        test = _fresh(inside, law.sigma2, case.tests, generators(name, "test", seeds=case.seeds))
        return cls(
            Regression(space.into(x).to(DTYPE), y.to(DTYPE)),
            [net.to(DTYPE) for net in small],
            Regression(test.x.to(DTYPE), test.y.to(DTYPE)),
            inside.to(DTYPE),
            law.sigma2,
        )

    def stack(self) -> Stack:
        linear = self.nets[0].activation == "linear"
        return Stack([single_neuron(net) for net in self.nets] if linear else self.nets)

    def fit(self, case: NetCase, probe_at: Collection[int] = (), radii: dict | None = None) -> Fit:
        """Algorithm 1 with the surrogate attack; probes estimate the risk at each of `radii`."""
        risks = {name: partial(self.risk, radius=r) for name, r in (radii or {}).items()}
        return fit(
            self.stack(),
            *self.train,
            steps=case.steps,
            lr=case.lr * RATES[case.activation],
            objective=LazyAdversarial(
                loss="squared",
                ball=Ball(norm="l2", radius=case.radius),
                attack=Surrogate(xi=case.xi),
            ),
            hooks=[Probe(risks, at=probe_at)],
        )

    @torch.no_grad()
    def risk(self, net: nn.Module, radius: float) -> Float[Tensor, " R"]:
        """The risk under FGM: the mean loss on the test points, corrected by that of the net's
        linear part on the same points, whose true mean is known (eq. 5).

        For a linear network the two losses are the same and this is eq. 5 itself.
        """
        x, y = self.test
        ball, rows = Ball(norm="l2", radius=radius), (x.flatten(0, 1), y.flatten())
        objective = LazyAdversarial(loss="squared", ball=ball, attack=FGM())
        context = objective.context(net, *rows, torch.Generator(), len(x))
        loss = objective.per_example(context).reshape(y.shape)
        beta = linear_parts(net)
        residual = (x @ beta[:, :, None])[:, :, 0] - y
        known = (residual.abs() + radius * beta.norm(dim=1, keepdim=True)) ** 2
        centred = known - known.mean(1, keepdim=True)
        weight = (loss * centred).sum(1) / (centred**2).sum(1)
        exact = [
            float(adversarial_risk(one.numpy(), truth.numpy(), self.sigma2, ball))
            for one, truth in zip(beta, self.theta0, strict=True)
        ]
        return loss.mean(1) + weight * (loss.new_tensor(exact) - known.mean(1))


class HighDimensionCase(NetCase):
    """Far more dimensions than data (section A.4.2). theta0 has ten equal entries, then zeros."""

    n: PositiveInt = 20
    d: PositiveInt = 1000
    entry: PositiveFloat = UNIT
    xi: PositiveFloat = 0.1
    steps: PositiveInt = 100

    @property
    def law(self) -> LinearModel:
        theta0 = SparseVector(k=10, value=self.entry)
        return LinearModel(n=self.n, d=self.d, theta0=theta0, sigma2=0.1)

    @property
    def delta(self) -> float:
        """h^delta = d^0.6"""
        return 0.6 * math.log(self.d) / math.log(self.width)


def high_dimension_recipe(
    scale: str, seeds: int, *, block: int, tests: int, settings: Sequence[tuple[int, float]]
) -> list[HighDimensionCase]:
    """Three networks and radii for each of `settings`, a dimension and an entry of theta0."""
    steps = 10 if scale == "smoke" else 100
    return [
        # The largest eigenvalue of X'X/n grows like d/n, so the step falls like 1/d.
        HighDimensionCase(activation=net, radius=radius, d=d, entry=entry, lr=160 / d, steps=steps,
                 tests=tests, **some)
        for d, entry in settings
        for net in NETS
        for radius in (0.0, 0.01, 0.1)
        for some in lab.blocks(seeds, block)
    ]  # fmt: skip


def high_dimension_compute(case: HighDimensionCase) -> pl.DataFrame:
    """The training loss at every step, and the test risk at some."""
    problem = LazyProblem.draw("generalization/high decisive", case.law, case, case.delta)
    at = {0, 1, 2, 5, 10, 20, 40, 70} if case.d == DRAWN else set()
    run = problem.fit(case, at, {"risk": case.radius} if case.tests else {})
    losses = run.log.losses()
    table = pl.DataFrame(
        {
            "step": torch.arange(case.steps + 1).repeat_interleave(case.replicates).numpy(),
            "seed": list(case.seeds) * (case.steps + 1),
            "loss": losses.flatten().numpy(),
        }
    ).with_columns(v2=pl.lit(case.law.v2))
    if not case.tests:
        return table
    risks = run.log.table(case.seeds).select("step", "seed", "risk")
    return table.join(risks, on=["step", "seed"], how="left", maintain_order="left")


def high_dimension_panels(
    table: pl.DataFrame, value: str, title: str, level: str | None = None, log_x: bool = False
):
    """One panel per network, one row per theta0; v^2 dashed if asked for."""
    rows = table.filter(pl.col("d") == DRAWN, pl.col(value).is_not_null())
    rows = rows.rename({"radius": "eps"}).sort("entry", maintain_order=True)
    parts = rows.partition_by("entry", "activation", as_dict=True, maintain_order=True)
    return charts.panels(
        [
            charts.curves(
                part,
                "step",
                value,
                "eps",
                theory=None if level is None else part.select(pl.col(level).alias(value)).head(1),
                title=f"{'ReLU' if net == 'relu' else net}, v² = {part['v2'][0]:g}",
                x_title="iteration",
                y_title=title,
                log_x=log_x,
                apart=True,
            )
            for (_, net), part in parts.items()
        ],
        columns=3,
    )


def linear_parts(net: nn.Module) -> Float[Tensor, "R k"]:
    """Each network's linear part (`LazyNet.linear_part`), of a stack."""
    theta, top = net.get_parameter("theta").detach(), net.get_buffer("top")
    return ACTIVATIONS[net.skeleton.activation].slope * weighted(theta, top)  # type: ignore


def _fresh(theta0: Tensor, sigma2: float, m: int, rngs: list[torch.Generator]) -> Regression:
    replicates, k = theta0.shape
    x = normal(theta0.new_empty(replicates * m, k), rngs).reshape(replicates, m, k)
    noise = normal(theta0.new_empty(replicates * m), rngs).reshape(replicates, m)
    return Regression(x, (x @ theta0[:, :, None])[:, :, 0] + sigma2**0.5 * noise)
