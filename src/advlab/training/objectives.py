"""What a step descends: clean loss, adversarial loss, or a combination (PGD-AT, TRADES, MART)."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from pydantic import Field, NonNegativeFloat
from torch import Tensor

from ..attacks import Attack, Loss
from ..core.config import Config
from ..core.randomness import Rng
from ..losses import ModelLoss, PerExample, check_labels, evaluating, margin
from ..threats import Threat


@dataclass(frozen=True)
class Scene:
    """One step's material: the model, the rows of its batch (R equal blocks), and the adversary."""

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
    """The rate of the update that follows, for objectives that look ahead."""
    _kept: dict[str, Tensor] = field(default_factory=dict)

    def attacked(self, loss: Loss | None = None) -> Tensor:
        """x~ = A(f_W, x, y), found in eval mode and then held fixed: once, whoever asks.

        `loss` is what the first caller has the attack climb: another function than the model's
        loss, or a faster way to it. All later callers get the same points.
        """
        if "attacked" not in self._kept:
            loss = loss or ModelLoss(self.model, self.y, self.loss)
            self._kept["attacked"] = self.attack(loss, self.x, self.ball, rng=self.rng).x
        return self._kept["attacked"]

    def per_replicate(self, values: Float[Tensor, " rows"]) -> Float[Tensor, " replicates"]:
        return values.reshape(self.replicates, -1).mean(1)


class Objective(Config):
    """A per-example function of the model that training lowers on average."""

    @abstractmethod
    def per_example(self, scene: Scene) -> Float[Tensor, " rows"]:
        """One value an example, differentiable in the weights."""

    def value_and_grad(
        self, scene: Scene, weights: Sequence[Tensor]
    ) -> tuple[Float[Tensor, " replicates"], Sequence[Tensor]]:
        """Each replicate's mean, and its gradient in the weights (replicates do not mix)."""
        values = scene.per_replicate(self.per_example(scene))
        grads = torch.autograd.grad(values.sum(), weights)
        return values.detach(), grads


class Clean(Objective):
    """loss(f(x), y): standard training."""

    def per_example(self, scene: Scene) -> Float[Tensor, " rows"]:
        return scene.loss(scene.model(scene.x), scene.y)


class Adversarial(Objective):
    """loss(f(x~), y) with x~ fixed: adversarial training. With PGD it is PGD-AT (Madry et al.
    2018), with the surrogate attack Algorithm 1 of the generalization paper."""

    def per_example(self, scene: Scene) -> Float[Tensor, " rows"]:
        return scene.loss(scene.model(scene.attacked()), scene.y)


class Mixed(Objective):
    """(1 - lam) * clean + lam * adversarial: the objective of the CGRO paper."""

    lam: float = Field(default=0.5, ge=0.0, le=1.0)

    def per_example(self, scene: Scene) -> Float[Tensor, " rows"]:
        clean = scene.loss(scene.model(scene.x), scene.y)
        attacked = scene.loss(scene.model(scene.attacked()), scene.y)
        return (1 - self.lam) * clean + self.lam * attacked


class TRADES(Objective):
    """loss(f(x), y) + beta KL(p(x) || p(x~)), where the attack climbs that KL (Zhang et al. 2019).

    p are the model's probabilities, of two classes where it has one output. The KL is flat at the
    clean input: an attack must start elsewhere, as PGD does unless told otherwise.
    """

    beta: NonNegativeFloat = 6.0

    def per_example(self, scene: Scene) -> Float[Tensor, " rows"]:
        with torch.no_grad(), evaluating(scene.model):
            fixed = _scores(scene.model(scene.x))
        attacked = scene.attacked(ModelLoss(scene.model, fixed, _divergence))
        clean = scene.model(scene.x)
        _labels(clean, scene.y)
        divergence = _divergence(scene.model(attacked), _scores(clean))
        return scene.loss(clean, scene.y) + self.beta * divergence


class MART(Objective):
    """BCE(p(x~), y) + beta KL(p(x) || p(x~)) (1 - p_y(x)) (Wang et al. 2020).

    The boosted cross entropy is BCE(p, y) = -log p_y - log(1 - max_{k != y} p_k). The attack climbs
    the loss, as in PGD-AT; the loss itself appears nowhere else.
    """

    beta: NonNegativeFloat = 5.0

    def per_example(self, scene: Scene) -> Float[Tensor, " rows"]:
        outputs = scene.model(scene.attacked())
        moved, clean = _scores(outputs), _scores(scene.model(scene.x))
        y = _labels(outputs, scene.y)
        rival = moved.scatter(1, y[:, None], float("-inf")).argmax(1)
        boosted = -_log_share(moved, y) - _log_rest(moved, rival)
        return boosted + self.beta * _kl(clean, moved) * _log_rest(clean, y).exp()


def _scores(outputs: Tensor) -> Float[Tensor, "rows k"]:
    """One score a class; a single output f is the two scores (0, f)."""
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
