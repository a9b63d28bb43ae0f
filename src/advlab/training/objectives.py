"""What a step descends: clean loss, adversarial loss, or a combination (PGD-AT, TRADES, MART)."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from pydantic import Field, NonNegativeFloat, NonNegativeInt, SerializeAsAny, field_validator
from torch import Tensor

from ..attacks import PGD, Attack, Identity, Loss
from ..core import inputs
from ..core.config import Config
from ..core.errors import AdvlabError
from ..core.inputs import Given
from ..core.randomness import Rng
from ..losses import ModelLoss, PerExample, check_labels, evaluating, margin, outputs_of, resolve
from ..threats import Ball, Threat

if TYPE_CHECKING:
    from .hooks import Hook

NOT_ATTACKED = Ball(norm="l2", radius=0.0)


@dataclass(frozen=True)
class StepContext:
    """The material of one step: the model, the rows of its batch (R equal blocks), the adversary.

    Args:
        model: the network or stack, with the weights before the step.
        x: inputs of the batch. y: their labels.
        loss: one value per example, from outputs and labels.
        attack: who moves the inputs. ball: the threat set of this step.
        rng: where randomness comes from.
        replicates: R, the number of equal blocks of rows.
        step: the number of steps taken before. lr: the rate of the update that follows.
    """

    model: Callable[[Tensor], Tensor]
    x: Tensor
    y: Tensor
    loss: PerExample
    attack: Attack
    ball: Threat
    rng: Rng
    replicates: int = 1
    step: int = 0
    lr: float = 0.0
    _kept: dict[str, Tensor] = field(default_factory=dict)

    def attacked(self, loss: Loss | None = None) -> Tensor:
        """x~ = A(f_W, x, y), found in eval mode and then held fixed: once, whoever asks.

        `loss` is what the first caller has the attack climb: another function than the model's
        loss, or a faster way to it. All later callers get the same points.
        """
        climbed = loss or ModelLoss(self.model, self.y, self.loss)
        return self.once(
            "attacked", lambda: self.attack.perturb(climbed, self.x, self.ball, rng=self.rng)
        )

    def once(self, name: str, compute: Callable[[], Tensor]) -> Tensor:
        """What `compute` gives, the first time in this step; later callers get the same."""
        if name not in self._kept:
            self._kept[name] = compute()
        return self._kept[name]

    def outputs(self, x: Tensor) -> Tensor:
        """The model's scores in the mode in which it is; it cannot edit the inputs."""
        return outputs_of(self.model, x)

    def losses(self, outputs: Tensor) -> Float[Tensor, " rows"]:
        """The loss of each example at these outputs."""
        return one_per_example(self.loss(outputs, self.y), self.x)

    def per_replicate(self, values: Float[Tensor, " rows"]) -> Float[Tensor, " replicates"]:
        """The mean over the rows of each replicate."""
        return values.reshape(self.replicates, -1).mean(1)


@dataclass(frozen=True)
class StepInfo:
    """What a step has found before the weights move: hooks get it in `after_gradient`."""

    context: StepContext
    values: Tensor
    """The objective, one value per replicate."""
    grads: list[Tensor]
    """Its gradient in each trained array; hooks may change it in place."""
    last: bool
    """Whether no move follows."""


class Objective(Config):
    """A per-example function of the model that training lowers on average.

    Args:
        loss: a name of `losses.LOSSES`, or a function of outputs and labels, one value per example.
    """

    loss: str | PerExample = "cross_entropy"

    @field_validator("loss")
    @classmethod
    def _known(cls, loss: str | PerExample) -> str | PerExample:
        resolve(loss)
        return loss

    @abstractmethod
    def per_example(self, context: StepContext) -> Float[Tensor, " rows"]:
        """One value per example, differentiable in the weights."""

    def value_and_grad(
        self, context: StepContext, weights: Sequence[Tensor]
    ) -> tuple[Float[Tensor, " replicates"], Sequence[Tensor]]:
        """Each replicate's mean, and its gradient in the weights (replicates do not mix)."""
        each = one_per_example(self.per_example(context), context.x)
        if not each.requires_grad:
            raise AdvlabError("a loss that depends on the weights", "one without a gradient")
        values = context.per_replicate(each)
        # A weight that the objective does not use has the gradient zero.
        grads = torch.autograd.grad(values.sum(), weights, materialize_grads=True)
        return values.detach(), [_laid_out(grad) for grad in grads]

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
        """The material of a step of this objective."""
        attack, ball = self.adversary(step)
        loss = resolve(self.loss)
        return StepContext(model, x, y, loss, attack, ball, rng, replicates, step, lr)

    def adversary(self, step: int) -> tuple[Attack, Threat]:
        """The attack of a step and the threat set it moves in: none, unless there is one."""
        return Identity(), NOT_ATTACKED

    @property
    def replays(self) -> int:
        """How many steps in a row see the same batch."""
        return 1

    def companions(self) -> tuple["Hook", ...]:
        """Hooks that a run of this objective needs besides: they carry what it keeps from one step
        to the next into checkpoints."""
        return ()


def _laid_out(grad: Tensor) -> Tensor:
    """The same numbers in the usual order in memory.

    The weight gradients of dense layers in a stack come transposed, replicate by replicate. Each
    pass of an optimizer or a penalty over them would take ten times as long. Copied one by one they
    take torch's path for transposed matrices; `contiguous` of them all does not.
    """
    if grad.is_contiguous() or grad.ndim != 3 or not grad.is_cpu:
        return grad
    laid_out = torch.empty_like(grad, memory_format=torch.contiguous_format)
    for one, transposed in zip(laid_out, grad, strict=True):
        one.copy_(transposed)
    return laid_out


def one_per_example(values: Given[Tensor], x: Tensor) -> Tensor:
    """The values, if a loss gave one per example.

    Args:
        values: what the loss gave.
        x: the inputs, one row per example.
    """
    inputs.instance("a loss that gives a tensor, one value per example", values, Tensor, "")
    if values.shape != x.shape[:1]:
        raise AdvlabError(
            f"the loss must give one value per example, shape {tuple(x.shape[:1])}",
            f"shape {tuple(values.shape)}",
            "do not average over the batch; outputs and labels must not broadcast",
        )
    return values


class AttackedObjective(Objective):
    """An objective with attacked inputs x~.

    Args:
        loss: as in `Objective`.
        ball: the threat set around each input.
        attack: how x~ is found.
        warmup: the radius grows linearly over the first `warmup` steps.
    """

    ball: SerializeAsAny[Threat]
    attack: SerializeAsAny[Attack] = PGD(steps=10, step_size=0.25)
    warmup: NonNegativeInt = 0

    def adversary(self, step: int) -> tuple[Attack, Threat]:
        if step >= self.warmup:
            return self.attack, self.ball
        return self.attack, self.ball.with_radius(self.ball.radius * (step + 1) / self.warmup)


class Clean(Objective):
    """loss(f(x), y): standard training."""

    def per_example(self, context: StepContext) -> Float[Tensor, " rows"]:
        return context.losses(context.outputs(context.x))


class Adversarial(AttackedObjective):
    """loss(f(x~), y) with x~ fixed: adversarial training. With PGD it is PGD-AT (Madry et al.
    2018), with the surrogate attack Algorithm 1 of the generalization paper."""

    def per_example(self, context: StepContext) -> Float[Tensor, " rows"]:
        return context.losses(context.outputs(context.attacked()))


class Mixed(AttackedObjective):
    """(1 - lam) * clean + lam * adversarial: the objective of the CGRO paper."""

    lam: float = Field(default=0.5, ge=0.0, le=1.0)

    def per_example(self, context: StepContext) -> Float[Tensor, " rows"]:
        clean = context.losses(context.outputs(context.x))
        attacked = context.losses(context.outputs(context.attacked()))
        return (1 - self.lam) * clean + self.lam * attacked


class TRADES(AttackedObjective):
    """loss(f(x), y) + beta KL(p(x) || p(x~)), where the attack climbs that KL (Zhang et al. 2019).

    p are the model's probabilities, of two classes where it has one output. The KL is flat at the
    clean input: an attack must start elsewhere, as PGD does unless told otherwise.
    """

    beta: NonNegativeFloat = 6.0

    def per_example(self, context: StepContext) -> Float[Tensor, " rows"]:
        with torch.no_grad(), evaluating(context.model):
            fixed = _scores(context.outputs(context.x))
        attacked = context.attacked(ModelLoss(context.model, fixed, _divergence))
        clean = context.outputs(context.x)
        if context.y.ndim == 1:  # shares of classes are the loss's to check
            _labels(clean, context.y)
        divergence = _divergence(context.outputs(attacked), _scores(clean))
        return context.losses(clean) + self.beta * divergence


class MART(AttackedObjective):
    """BCE(p(x~), y) + beta KL(p(x) || p(x~)) (1 - p_y(x)) (Wang et al. 2020).

    The boosted cross entropy is BCE(p, y) = -log p_y - log(1 - max_{k != y} p_k). The attack climbs
    the loss, as in PGD-AT; the loss itself appears nowhere else.
    """

    beta: NonNegativeFloat = 5.0

    def per_example(self, context: StepContext) -> Float[Tensor, " rows"]:
        outputs = context.outputs(context.attacked())
        moved, clean = _scores(outputs), _scores(context.outputs(context.x))
        y = _labels(outputs, context.y)
        rival = moved.scatter(1, y[:, None], float("-inf")).argmax(1)
        boosted = -_log_share(moved, y) - _log_rest(moved, rival)
        return boosted + self.beta * _kl(clean, moved) * _log_rest(clean, y).exp()


def _scores(outputs: Tensor) -> Float[Tensor, "rows k"]:
    """One score per class; a single output f is the two scores (0, f)."""
    if outputs.ndim == 2 and outputs.shape[1] > 1:
        return outputs
    f = outputs.reshape(-1)
    return torch.stack([torch.zeros_like(f), f], 1)


def _labels(outputs: Tensor, y: Tensor) -> Int[Tensor, " rows"]:
    """Labels 0, 1, ... of the scores; where there is one output, they were -1 and +1."""
    if outputs.ndim == 2 and outputs.shape[1] > 1:
        check_labels(outputs, y)
        return y
    margin(outputs, y)  # refuses other labels
    return (y > 0).long()


def _divergence(outputs: Tensor, scores: Tensor) -> Tensor:
    """KL(p(x) || p(x~)) from the outputs at x~ and the scores at x."""
    return _kl(scores, _scores(outputs))


def _kl(p: Float[Tensor, "rows k"], q: Float[Tensor, "rows k"]) -> Float[Tensor, " rows"]:
    """KL(softmax p || softmax q)."""
    log_p, log_q = F.log_softmax(p, 1), F.log_softmax(q, 1)
    return (log_p.exp() * (log_p - log_q)).sum(1)


def _log_share(scores: Float[Tensor, "rows k"], of: Int[Tensor, " rows"]) -> Tensor:
    """log p_of, accurate where it is near 0."""
    return -F.softplus(_lead_of_rest(scores, of))


def _log_rest(scores: Float[Tensor, "rows k"], of: Int[Tensor, " rows"]) -> Tensor:
    """log(1 - p_of), accurate where p_of is near 0."""
    return -F.softplus(-_lead_of_rest(scores, of))


def _lead_of_rest(scores: Float[Tensor, "rows k"], of: Int[Tensor, " rows"]) -> Tensor:
    """log((1 - p_of) / p_of)"""
    rest = scores.scatter(1, of[:, None], float("-inf")).logsumexp(1)
    return rest - scores.gather(1, of[:, None])[:, 0]
