"""Algorithm 1 for the linear model, as a stack of replicates, with everything the figures plot."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import torch
from torch import Tensor

from ..... import linear
from .....attacks import Surrogate
from .....core.randomness import generators
from .....models import Linear, Stack
from .....threats import Ball
from .....training import Probe, fit
from ... import theory
from ...data import LinearModel
from ...reductions import LinearAdversarial


@dataclass(frozen=True)
class Trajectory:
    """A stack's weights at the noted steps, with its data: enough to measure anything later."""

    steps: list[int]
    theta: Tensor
    """(noted steps, replicates, d)"""
    loss: Tensor
    """(noted steps, replicates): the surrogate training loss, which the algorithm sees."""
    x: Tensor
    y: Tensor
    ball: Ball

    def residuals(self) -> Tensor:
        """(noted steps, replicates, n)"""
        return torch.einsum("rnd,trd->trn", self.x, self.theta) - self.y

    def exact_loss(self) -> Tensor:
        """The training loss under the exact attack, (|r| + radius * dual norm)^2 on average."""
        push = self.ball.radius * self.ball.dual_norm(self.theta.flatten(0, 1))
        push = push.reshape(*self.theta.shape[:2], 1)
        return ((self.residuals().abs() + push) ** 2).mean(2)

    def potential(self, xi: float) -> Tensor:
        """The sample version of R~ (proof of Theorem 2)."""
        r, a = self.residuals(), self.theta.norm(dim=2, keepdim=True)
        eps, smooth = self.ball.radius, float(theory.xi_eff(xi))
        return (r**2 + 2 * eps * (r**2 * a**2 + smooth**2).sqrt() + (eps * a) ** 2).mean(2)

    def table(self, seeds: Sequence[int], **columns: np.ndarray | Tensor) -> pl.DataFrame:
        """One row per noted step and replicate; columns are arrays (noted steps, replicates)."""
        return pl.DataFrame(
            {
                "step": np.repeat(self.steps, len(seeds)),
                "seed": np.tile(np.asarray(seeds), len(self.steps)),
                "train": self.loss.flatten().numpy(),
                **{name: np.asarray(values).ravel() for name, values in columns.items()},
            }
        )


def draw(data: LinearModel, experiment: str, seeds: Sequence[int]) -> tuple[Tensor, Tensor]:
    """Each seed's data set: the same for every attack strength and xi, as in the paper."""
    return data.sample_stack(generators(experiment, "data", seeds=seeds))


def train(
    x: Tensor,
    y: Tensor,
    *,
    ball: Ball,
    xi: float,
    lr: float,
    steps: int,
    start: Tensor | None = None,
    note_every: int = 1,
) -> Trajectory:
    """Surrogate adversarial gradient descent from `start` (zero by default), in closed form."""
    replicates, _, d = x.shape
    start = torch.zeros(replicates, d, dtype=x.dtype) if start is None else start
    run = fit(
        Stack([Linear(theta) for theta in start]),
        x,
        y,
        steps=steps,
        lr=lr,
        objective=LinearAdversarial(loss="squared", ball=ball, attack=Surrogate(xi=xi)),
        hooks=[Probe({"theta": lambda stack: stack.get_parameter("theta")}, every=note_every)],
    )
    noted = run.log.probe_steps
    return Trajectory(noted, run.log.probe("theta"), run.log.losses()[noted], x, y, ball)


def gradients(path: Trajectory, xi: float) -> tuple[Tensor, Tensor]:
    """The gradients of adversarial and of standard training at the noted weights."""
    both = []
    for ball in (path.ball, Ball(norm="l2", radius=0.0)):
        rows = []
        for theta in path.theta:
            stack = Stack([Linear(one) for one in theta])
            weights = [stack.get_parameter("theta")]
            objective = LinearAdversarial(loss="squared", ball=ball, attack=Surrogate(xi=xi))
            context = objective.context(
                stack, path.x.flatten(0, 1), path.y.flatten(), [], len(theta)
            )
            rows.append(objective.value_and_grad(context, weights)[1][0])
        both.append(torch.stack(rows))
    return both[0], both[1]


def risks(path: Trajectory, data: LinearModel) -> dict[str, np.ndarray]:
    """Adversarial and standard test risk in closed form (eq. 5), the identity as covariance."""
    theta, theta0 = path.theta.numpy(), data.theta0_vector()
    return {
        "test": linear.adversarial_risk(theta, theta0, data.sigma2, path.ball),
        "standard": linear.standard_risk(theta, theta0, data.sigma2),
    }
