"""How robust is this model: a bracket from below by attack and, where it can be had, from above."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import torch
from scipy import stats
from torch import Tensor, nn

from ..attacks import PGD, Attack
from ..attacks.base import Scout
from ..errors import AdvlabError
from ..losses import ModelLoss, check_labels, evaluating, margin
from ..models import Linear
from ..randomness import Rng, generator
from ..threats import Ball, Threat

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Evaluation:
    """Errors over n examples, each with an interval for the population they were drawn from.

    `robust_error` counts what the attack broke: a LOWER bound of the robust error. The truth lies
    between it and `certified_error`, an upper bound that only some models allow (else None).
    """

    n: int
    clean_error: float
    robust_error: float
    certified_error: float | None
    attack: str
    threat: str
    intervals: dict[str, tuple[float, float]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        upper = "1 (no certificate for this model)"
        if self.certified_error is not None:
            ends = _shown(self.intervals["certified_error"])
            upper = f"{self.certified_error:.4f}  {ends}  by certificate"
        lines = [
            f"{self.n} examples, {self.threat}",
            f"clean error    {self.clean_error:.4f}  {_shown(self.intervals['clean_error'])}",
            f"robust error   at least {self.robust_error:.4f}  "
            f"{_shown(self.intervals['robust_error'])}  by {self.attack}",
            f"               at most {upper}",
        ]
        return "\n".join(lines + [f"warning: {warning}" for warning in self.warnings])


def evaluate(
    model: Callable[[Tensor], Tensor],
    x: Tensor,
    y: Tensor,
    ball: Threat,
    attack: Attack | None = None,
    *,
    rng: Rng | None = None,
    batch: int = 512,
) -> Evaluation:
    """Clean error, robust error from below by an attack, and from above where it can be had.

    Outputs are (n, classes) with labels 0, 1, ..., or one number with labels -1, +1. The attack
    climbs the margin, which does not saturate; by default PGD with 40 steps and 2 starts.
    """
    attack = attack or PGD(steps=40, step_size=0.1, restarts=2)
    rng = generator("evaluate") if rng is None else rng
    warnings = _doubts(model, x, y, ball)
    clean, robust = [], []
    for rows in _batches(len(x), batch):
        loss = ModelLoss(model, y[rows], margin)
        with torch.no_grad():
            clean.append(loss(x[rows]) >= 0)
        # An attack that does not ascend may leave a mistake for a right answer; it stays a mistake.
        robust.append(clean[-1] | (attack(loss, x[rows], ball, rng=rng).loss >= 0))
    broken = {"clean_error": torch.cat(clean), "robust_error": torch.cat(robust)}
    certified = linear_worst_margin(model, x, y, ball)
    if certified is not None:
        broken["certified_error"] = certified >= 0
    errors = {name: float(wrong.double().mean()) for name, wrong in broken.items()}
    return Evaluation(
        n=len(x),
        clean_error=errors["clean_error"],
        robust_error=errors["robust_error"],
        certified_error=errors.get("certified_error"),
        attack=repr(attack),
        threat=repr(ball),
        intervals={name: interval(wrong) for name, wrong in broken.items()},
        warnings=warnings,
    )


def linear_worst_margin(model: object, x: Tensor, y: Tensor, ball: Threat) -> Tensor | None:
    """The exact worst margin of a linear model over the threat set; None for other models.

    Each class j is a linear score z_j - z_y, largest at the set's own maximiser: no search.
    """
    if not isinstance(ball, Ball):
        return None
    weight, bias = _linear_scores(model)
    if weight is None or bias is None:
        return None
    with torch.no_grad():
        flat = x.flatten(1)
        if len(weight) == 1:
            gains = -y.to(x.dtype)[:, None, None] * weight
            offsets = -y.to(x.dtype)[:, None] * bias
        else:
            gains = weight - weight[y][:, None]
            offsets = bias - bias[y][:, None]
        worst = torch.full_like(flat[:, 0], float("-inf"))
        for j in range(gains.shape[1]):
            point = ball.maximiser(gains[:, j], flat)
            score = (gains[:, j] * point).sum(1) + offsets[:, j]
            own = (y == j) if len(weight) > 1 else torch.zeros_like(y, dtype=torch.bool)
            worst = torch.where(own, worst, torch.maximum(worst, score))
        return worst


def interval(wrong: Tensor) -> tuple[float, float]:
    """Clopper and Pearson's exact interval for the share of wrong answers."""
    test = stats.binomtest(int(wrong.sum()), len(wrong))
    found = test.proportion_ci(CONFIDENCE, method="exact")
    return float(found.low), float(found.high)


def _linear_scores(model: object) -> tuple[Tensor | None, Tensor | None]:
    if isinstance(model, Linear):
        return model.theta.detach()[None], torch.zeros_like(model.theta[:1]).detach()
    layers = [model] if isinstance(model, nn.Linear) else []
    if isinstance(model, nn.Sequential):
        layers = [layer for layer in model if not isinstance(layer, nn.Flatten)]
    if len(layers) == 1 and isinstance(layers[0], nn.Linear):
        only = layers[0]
        bias = torch.zeros(len(only.weight)) if only.bias is None else only.bias
        return only.weight.detach(), bias.detach().to(only.weight)
    return None, None


def _doubts(model: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, ball: Threat) -> list[str]:
    """Refuse what makes no sense, and list what makes the result doubtful."""
    if x.ndim < 2 or len(x) == 0 or y.shape != x.shape[:1]:
        raise AdvlabError(
            "x of shape (n, ...) and y of shape (n,), n at least 1",
            f"x {tuple(x.shape)} and y {tuple(y.shape)}",
        )
    ball.check_center(x)
    few = x[:64]
    with torch.no_grad(), evaluating(model):
        once, again = model(few), model(few)
    if once.ndim == 2 and once.shape[1] > 1:
        check_labels(once, y)
    found = []
    if not torch.isfinite(once).all():
        raise AdvlabError("finite outputs", "NaN or infinity from the model")
    if not torch.equal(once, again):
        found.append("the model is random in eval mode: the attack saw other models than this one")
    if isinstance(model, nn.Module) and any(m.training for m in model.modules() if _moody(m)):
        found.append("the model was in train mode; it was evaluated in eval mode and put back")
    scout = Scout(ModelLoss(model, y[: len(few)], margin), few)
    still = float((scout.clean_gradient.flatten(1) == 0).all(1).double().mean())
    if still > 0.1:
        found.append(
            f"{100 * still:.0f} % of gradients are exactly zero: the attack is blind there, and "
            "the robust error may be far above this lower bound"
        )
    return found


def _moody(module: nn.Module) -> bool:
    """Does the module compute something else in train mode?"""
    kinds = (nn.modules.batchnorm._NormBase, nn.modules.dropout._DropoutNd)
    return isinstance(module, kinds)


def _batches(rows: int, size: int) -> Iterator[slice]:
    return (slice(first, first + size) for first in range(0, rows, size))


def _shown(ends: tuple[float, float]) -> str:
    return f"({ends[0]:.4f} to {ends[1]:.4f})"
