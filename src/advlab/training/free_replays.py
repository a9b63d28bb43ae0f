"""Free adversarial training: one backward pass for the weights and the perturbation."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float
from pydantic import PositiveFloat, PositiveInt, PrivateAttr, SerializeAsAny
from torch import Tensor

from ..attacks import Attack, Identity
from ..threats import Threat
from .hooks import Hook
from .objectives import AttackedObjective, StepContext, one_per_example

if TYPE_CHECKING:
    from .run import Run


class Perturbation:
    """delta, kept from step to step: (replicates, rows of a batch, ...), or None at the start."""

    def __init__(self) -> None:
        self.delta: Tensor | None = None

    def of(self, context: StepContext) -> Tensor:
        """The perturbation of each row of the batch; a smaller batch takes the first rows."""
        x = context.x
        wanted = x.reshape(context.replicates, -1, *x.shape[1:])
        if self.delta is None or context.step == 0:
            self.delta = torch.zeros_like(wanted)
        kept, missing = self.delta.to(wanted), wanted.shape[1] - self.delta.shape[1]
        if missing > 0:
            kept = torch.cat([kept, torch.zeros_like(wanted[:, :missing])], 1)
            self.delta = kept
        return kept[:, : wanted.shape[1]].reshape(x.shape)

    def put(self, context: StepContext, delta: Tensor) -> None:
        """Remember the perturbation of the rows of the batch."""
        if self.delta is None:
            return
        blocks = delta.reshape(context.replicates, -1, *delta.shape[1:])
        self.delta = self.delta.to(blocks).clone()
        self.delta[:, : blocks.shape[1]] = blocks


class Free(AttackedObjective):
    """loss(f(x + delta), y), where the backward pass of the step also moves delta
    (Shafahi et al. 2019, Algorithm 1):

        delta <- project(delta + step_size * radius * steepest(gradient in x + delta))

    Each batch is replayed m times; delta stays from replay to replay and from batch to batch. The
    point is brought back to the threat set of each new row. Give a run its `companions()` as hooks:
    they keep delta in checkpoints.

    Args:
        loss, ball, warmup: as in `AttackedObjective`.
        m: how many steps in a row see the same batch.
        step_size: the move of delta, as a fraction of the radius.

    Example:
        from advlab.training import Free, fit
        free = Free(ball=ball, m=8)
        fit(net, x, y, steps=800, lr=0.1, batch=128, objective=free, hooks=free.companions())
    """

    attack: SerializeAsAny[Attack] = Identity()
    m: PositiveInt = 8
    step_size: PositiveFloat = 1.0
    _kept: Perturbation = PrivateAttr(default_factory=Perturbation)

    def per_example(self, context: StepContext) -> Float[Tensor, " rows"]:
        return context.losses(context.outputs(self._point(context)))

    def value_and_grad(
        self, context: StepContext, weights: Sequence[Tensor]
    ) -> tuple[Float[Tensor, " replicates"], Sequence[Tensor]]:
        ball: Threat = context.ball
        leaf = self._point(context).detach().requires_grad_()
        each = one_per_example(context.losses(context.outputs(leaf)), context.x)
        values = context.per_replicate(each)
        *grads, uphill = torch.autograd.grad(values.sum(), [*weights, leaf], materialize_grads=True)
        with torch.no_grad():
            moved = leaf + self.step_size * ball.radius * ball.steepest(uphill)
            self._kept.put(context, ball.project(moved, context.x) - context.x)
        return values.detach(), grads

    @property
    def replays(self) -> int:
        return self.m

    def companions(self) -> tuple[Hook, ...]:
        return (KeepPerturbation(self._kept),)

    def _point(self, context: StepContext) -> Tensor:
        """x + delta, in the threat set: the same for all who ask in one step."""
        return context.once(
            "attacked",
            lambda: context.ball.project(context.x + self._kept.of(context), context.x),
        )


class KeepPerturbation(Hook):
    """Carries the perturbation of a `Free` objective into checkpoints; each run starts from zero.

    Args:
        kept: what the objective holds.
    """

    def __init__(self, kept: Perturbation):
        self.kept = kept

    @contextmanager
    def during(self, run: "Run") -> Iterator[None]:
        self.kept.delta = None
        yield

    def state_dict(self) -> dict:
        return {"delta": self.kept.delta}

    def load_state_dict(self, state: dict) -> None:
        self.kept.delta = state["delta"]
