"""Adversarial weight perturbation: the gradient at weights that were moved uphill first."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Float
from pydantic import NonNegativeInt, PositiveFloat, SerializeAsAny, model_validator
from torch import Tensor, nn

from ..attacks import Attack
from ..core.errors import AdvlabError
from ..core.randomness import Rng
from ..models import Stack
from ..threats import Threat
from .objectives import Objective, StepContext

if TYPE_CHECKING:
    from .hooks import Hook


class AWP(Objective):
    """The value and the gradient of another objective at w + v (Wu et al. 2020, Algorithm 1):

        v = gamma |w| g / |g|   in each layer, g the gradient of the objective at w

    with the same attacked inputs for both gradients. The weights themselves come back to the last
    bit. Arrays of one dimension (biases, BatchNorm) are not perturbed, as in the paper. Statistics
    of BatchNorm see the pass at w + v only.

    Args:
        objective: any objective.
        gamma: the size of the perturbation relative to the layer.
        warmup: steps at the start without perturbation.
        loss: that of the objective.

    Example:
        from advlab.training import AWP, TRADES, fit
        fit(net, x, y, steps=500, lr=0.1, objective=AWP(objective=TRADES(ball=ball), gamma=0.005))
    """

    objective: SerializeAsAny[Objective]
    gamma: PositiveFloat = 0.005
    warmup: NonNegativeInt = 0

    @model_validator(mode="before")
    @classmethod
    def _same_loss(cls, settings: Any) -> Any:
        inner = settings.get("objective") if isinstance(settings, dict) else None
        if not isinstance(inner, Objective):
            return settings
        if settings.get("loss", inner.loss) != inner.loss:
            raise AdvlabError("the loss in the objective", f"another beside it, {settings['loss']}")
        return {**settings, "loss": inner.loss}

    def per_example(self, context: StepContext) -> Float[Tensor, " rows"]:
        return self.objective.per_example(context)

    def value_and_grad(
        self, context: StepContext, weights: Sequence[Tensor]
    ) -> tuple[Float[Tensor, " replicates"], Sequence[Tensor]]:
        if context.step < self.warmup:
            return self.objective.value_and_grad(context, weights)
        with _buffers_kept(context.model):
            _, uphill = self.objective.value_and_grad(context, weights)
        before = [w.detach().clone() for w in weights]
        blocks = context.replicates if isinstance(context.model, Stack) else None
        try:
            with torch.no_grad():
                for w, grad in zip(weights, uphill, strict=True):
                    w.add_(_perturbation(w, grad, self.gamma, blocks))
            torch.clear_autocast_cache()  # copies of the weights that moved
            return self.objective.value_and_grad(context, weights)
        finally:
            with torch.no_grad():
                for w, kept in zip(weights, before, strict=True):
                    w.copy_(kept)
            torch.clear_autocast_cache()

    def context(
        self,
        model: Callable[[Tensor], Tensor],
        x: Tensor,
        y: Tensor,
        rng: Rng,
        replicates: int = 1,
        step: int = 0,
        lr: float = 0.0,
    ) -> StepContext:
        return self.objective.context(model, x, y, rng, replicates, step, lr)

    def adversary(self, step: int) -> tuple[Attack, Threat]:
        return self.objective.adversary(step)

    @property
    def replays(self) -> int:
        return self.objective.replays

    def companions(self) -> tuple["Hook", ...]:
        return self.objective.companions()


def _perturbation(w: Tensor, grad: Tensor, gamma: float, blocks: int | None) -> Tensor:
    """gamma |w| grad / |grad| of one layer; a stack's replicates have layers of their own."""
    if w.ndim - (blocks is not None) <= 1:
        return torch.zeros_like(w)
    rows, uphill = w.reshape(blocks or 1, -1), grad.reshape(blocks or 1, -1)
    size = uphill.norm(dim=1, keepdim=True)
    reach = gamma * rows.norm(dim=1, keepdim=True)
    # Where the gradient is zero, or none at all, there is no way uphill.
    known = torch.isfinite(size) & (size > 0)
    return (
        torch.where(known, reach / size, 0.0).mul(torch.where(known, uphill, 0.0)).reshape(w.shape)
    )


@contextmanager
def _buffers_kept(model: Callable[[Tensor], Tensor]) -> Iterator[None]:
    """The statistics of the model as they were, afterwards."""
    buffers = list(model.buffers()) if isinstance(model, nn.Module) else []
    before = [one.clone() for one in buffers]
    try:
        yield
    finally:
        with torch.no_grad():
            for one, kept in zip(buffers, before, strict=True):
                one.copy_(kept)
