"""One training as the paper's figures do it (Section 5).

A two-layer ReLU network with PyTorch's initialisation, both layers and their biases trained by full
gradient descent on the logistic loss of PGD-attacked inputs, rate 0.1, divided by 10 every 500
steps. The paper gives PGD's strength and step in units of ||mu||; taken as absolute numbers its 20
steps could not leave a tenth of the ball, so both are read as multiples of ||mu||: radius alpha,
step alpha/5. Assumptions of the theorems do not hold here; lemmas are checked in `lemmas`.

Test errors are those against the noisy labels, under an attack that sees them, so the best possible
is beta. The robust one is what PGD found: a lower bound of the truth.
"""

from typing import Annotated, Any, NamedTuple

import polars as pl
import torch
from jaxtyping import Bool, Float
from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt
from torch import Tensor, nn

from ..... import lab
from .....attacks import PGD
from .....core.randomness import generators, uniform
from .....threats import Ball
from .....training import Constant, Drops, Probe, Schedule, fit
from ...data import Clusters, NoisyMixture
from ...reductions import TwoLayerAdversarial, attacked, mixture_law


class Case(lab.Case):
    """The paper's settings; alpha = ratio ||mu||."""

    mu_norm: PositiveFloat
    d: PositiveInt
    ratio: NonNegativeFloat
    beta: Annotated[float, Field(ge=0, lt=0.5)] = 0.1
    n: PositiveInt = 100
    width: PositiveInt = 1000
    steps: PositiveInt = 1000
    tested: PositiveInt = 2000
    measured_at: tuple[int, ...] = ()
    """Steps whose test errors are wanted, besides the last."""

    @property
    def cost(self) -> float:
        # A measurement attacks `tested` points as a step attacks n.
        attacks = self.steps + (1 + len(self.measured_at)) * self.tested / self.n
        return self.replicates * attacks * self.width**2 / 1e9

    @property
    def ball(self) -> Ball:
        return Ball(norm="l2", radius=self.ratio * self.mu_norm)

    @property
    def schedule(self) -> Schedule:
        drops = tuple(step / self.steps for step in range(500, self.steps, 500))
        return Drops(lr=0.1, at_shares=drops) if drops else Constant(lr=0.1)


ATTACK = PGD(steps=20, step_size=0.2, random_start=False, jump=False)
RELU: dict[str, Any] = {"activation": "relu", "init": "torch", "bias": True, "train_top": True}


class LabelledStack(NamedTuple):
    """Inputs and labels of R replicates."""

    x: Float[Tensor, "R n k"]
    y: Float[Tensor, "R n"]


def mixture(case: Case, name: str, network: dict[str, Any] = RELU) -> pl.DataFrame:
    """A run on the paper's synthetic data, drawn in the coordinates that training can reach.

    A seed has the same labels and flips in every setting of an experiment: how many are flipped,
    and how unbalanced they are, matters more than what the settings are compared for.
    """
    data = NoisyMixture(n=case.n, d=case.d, mu_norm=case.mu_norm, beta=case.beta)
    start = mixture_law.Start(width=case.width, **network)
    rngs = generators(name, case.d, seeds=case.seeds)
    drawn = mixture_law.draw_stack(data, start, rngs, tested=case.tested)
    coins = generators(name, "labels", seeds=case.seeds)
    train, test = (_labelled(data, part.noise, coins) for part in (drawn.train, drawn.test))
    samples = LabelledStack(train.x, train.y), LabelledStack(test.x, test.y)
    return trained(case, drawn.model, *samples, train.noisy)


def _labelled(
    data: NoisyMixture, noise: Float[Tensor, "R n k"], rngs: list[torch.Generator]
) -> Clusters:
    """Examples with this noise and labels of their own generators."""
    drawn = [
        data.around(one, uniform(one[:, 0], rng), rng) for one, rng in zip(noise, rngs, strict=True)
    ]
    return Clusters(*map(torch.stack, zip(*drawn, strict=True)))


def trained(
    case: Case,
    stack: nn.Module,
    train: LabelledStack,
    test: LabelledStack,
    flipped: Bool[Tensor, "R n"],
) -> pl.DataFrame:
    """One row per measured step and seed: the robust training loss `loss`, and errors.

    Robust errors of training points (`train_error`), of the flipped among them (`flipped_error`)
    and of test points (`robust_error`), and the clean test error (`clean_error`).
    """
    stack = stack.float()
    train, test = (LabelledStack(x.float(), y.float()) for x, y in (train, test))

    def flipped_error(model: nn.Module) -> Tensor:
        found = _fooled(case, model, train) & flipped
        return found.sum(1) / flipped.sum(1).clamp(min=1)

    def clean_error(model: nn.Module) -> Tensor:
        f = model(test.x.flatten(0, 1)).reshape(test.y.shape)
        return (f * test.y <= 0).double().mean(1)

    run = fit(
        stack,
        *train,
        steps=case.steps,
        lr=case.schedule,
        objective=TwoLayerAdversarial(loss="logistic", ball=case.ball, attack=ATTACK),
        hooks=[
            Probe(
                {
                    "train_error": lambda model: _fooled(case, model, train).double().mean(1),
                    "flipped_error": flipped_error,
                    "clean_error": clean_error,
                    "robust_error": lambda model: _fooled(case, model, test).double().mean(1),
                },
                at=set(case.measured_at),
            )
        ],
    )
    return run.log.table(case.seeds)


def _fooled(case: Case, model: nn.Module, data: LabelledStack) -> Bool[Tensor, "R n"]:
    """Which points PGD brings to the boundary or across it."""
    rows, labels = data.x.flatten(0, 1), data.y.flatten()
    found = attacked(model, rows, labels, case.ball, ATTACK, "margin")
    return (found.loss >= 0).reshape(data.y.shape)
