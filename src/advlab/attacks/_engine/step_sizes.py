"""The step sizes of APGD, which adapt row by row."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ...threats import Threat
from ...threats.base import per_example


def checkpoints(steps: int) -> list[int]:
    """The steps after which sizes are reconsidered: 22 % of all, then gaps shorter by 3 % each, at
    least 6 % (Croce & Hein 2020, section 4)."""
    gaps, found, at = 0.22, [], 0.0
    while (at := at + gaps) <= 1 + 1e-9:
        found.append(math.ceil(at * steps - 1e-9))
        gaps = max(gaps - 0.03, 0.06)
    return sorted(set(found))


@dataclass
class AscentState:
    """Where an ascent is: its points and gradients, and the best of each row so far."""

    point: Float[Tensor, "batch *shape"]
    value: Float[Tensor, " batch"]
    grad: Float[Tensor, "batch *shape"]
    previous: Float[Tensor, "batch *shape"]
    best: Float[Tensor, "batch *shape"]
    best_value: Float[Tensor, " batch"]
    best_grad: Float[Tensor, "batch *shape"]
    rose: Bool[Tensor, " batch"]
    """Whether the last step went up."""

    @classmethod
    def at(cls, point: Tensor, value: Tensor, grad: Tensor) -> "AscentState":
        """At its start."""
        best = point.clone(), value.clone(), grad.clone()
        return cls(point, value, grad, point, *best, torch.ones_like(value, dtype=torch.bool))

    def advance(self, point: Tensor, value: Tensor, grad: Tensor) -> None:
        """One step further, to this point with its value and gradient."""
        self.rose = value > self.value
        self.previous, self.point, self.value, self.grad = self.point, point, value, grad
        if not value.is_cpu:
            better = value > self.best_value
            wide = per_example(better, point)
            self.best = torch.where(wide, point, self.best)
            self.best_grad = torch.where(wide, grad, self.best_grad)
            self.best_value = torch.where(better, value, self.best_value)
            return
        better = (value > self.best_value).nonzero()[:, 0]
        self.best[better], self.best_value[better] = point[better], value[better]
        self.best_grad[better] = grad[better]

    def restart_from_best(self, rows: Bool[Tensor, " batch"]) -> None:
        """These rows start again from their best point, at rest."""
        wide = per_example(rows, self.point)
        self.point = torch.where(wide, self.best, self.point)
        self.previous = torch.where(wide, self.best, self.previous)
        self.grad = torch.where(wide, self.best_grad, self.grad)
        self.value = torch.where(rows, self.best_value, self.value)

    def keep_rows(self, kept: Tensor) -> None:
        """Forget all rows but these."""
        _keep_rows(self, kept)


class HalvingSteps:
    """Steps of twice the radius at first, halved at a checkpoint where fewer than 3/4 of the steps
    since the last one rose, or where neither size nor best value changed since (APGD, Algorithm 1).

    Momentum: 3/4 of the projected step and 1/4 of the move before.
    """

    momentum = 0.75

    def __init__(self, threat: Threat, rows: Tensor, steps: int):
        self.threat, self.checks = threat, set(checkpoints(steps))
        self.since = 0
        self.size = torch.full_like(rows, 2 * threat.radius)
        self.rises = torch.zeros_like(rows)
        self.mark = torch.full_like(rows, float("-inf"))
        self.halved = torch.ones_like(rows, dtype=torch.bool)

    def move(self, grad: Tensor) -> Tensor:
        """The next step along this gradient."""
        return per_example(self.size, grad) * self.threat.steepest(grad)

    def update(self, step: int, seen: AscentState) -> Bool[Tensor, " batch"] | None:
        """Count a step; at a checkpoint halve, and say which rows restart from their best."""
        self.rises += seen.rose
        self.since += 1
        if step not in self.checks:
            return None
        slow = self.rises < 0.75 * self.since
        stuck = ~self.halved & (seen.best_value <= self.mark)
        self.halved = slow | stuck
        self.size = torch.where(self.halved, self.size / 2, self.size)
        self.mark = seen.best_value.clone()
        self.rises, self.since = torch.zeros_like(self.size), 0
        return self.halved

    def keep_rows(self, kept: Tensor) -> None:
        """Forget all rows but these."""
        _keep_rows(self, kept)


class SparseSteps:
    """Steps in l1 along the signs of the largest entries of the gradient (Croce & Hein 2021).

    A fifth of all entries at first; then 2/3 of those that the best move uses, reconsidered every
    4 % of the steps. Where that number fell by 5 % the size is the radius again and the row goes
    back to its best, else the size shrinks by 1.5, down to a tenth of the radius. No momentum. The
    projection on ball and box is exact; the published runs at larger radii before are left out.
    """

    momentum = 1.0

    def __init__(self, threat: Threat, center: Tensor, steps: int):
        flat = center.flatten(1)
        self.threat, self.center, self.every = threat, center, max(int(0.04 * steps), 1)
        self.size = torch.full_like(flat[:, 0], threat.radius)
        self.used = torch.full_like(flat[:, 0], flat.shape[1])
        self.count = (0.2 * self.used).clamp(min=1)

    def move(self, grad: Tensor) -> Tensor:
        flat = grad.flatten(1)
        sizes = flat.abs().sort(dim=1, descending=True).values
        least = sizes.gather(1, self.count.long()[:, None] - 1)
        signs = torch.where(flat.abs() >= least, flat.sign(), 0.0)
        scale = self.size[:, None] / signs.abs().sum(1, keepdim=True).clamp(min=1)
        return (scale * signs).reshape(grad.shape)

    def update(self, step: int, seen: AscentState) -> Bool[Tensor, " batch"] | None:
        if step % self.every:
            return None
        used = (seen.best - self.center).flatten(1).count_nonzero(dim=1).to(self.used)
        sparser = used < 0.95 * self.used
        shorter = (self.size / 1.5).clamp(min=self.threat.radius / 10)
        self.size = torch.where(sparser, torch.full_like(shorter, self.threat.radius), shorter)
        self.count, self.used = (used / 1.5).floor().clamp(min=1), used
        return sparser

    def keep_rows(self, kept: Tensor) -> None:
        """Forget all rows but these."""
        _keep_rows(self, kept)


def step_rule(threat: Threat, center: Tensor, steps: int) -> HalvingSteps | SparseSteps:
    """The rule that suits the geometry."""
    if threat.sparse:
        return SparseSteps(threat, center, steps)
    return HalvingSteps(threat, center.flatten(1)[:, 0], steps)


def _keep_rows(state: object, kept: Tensor) -> None:
    """These rows of every tensor that a state holds, one row per example."""
    for name, value in vars(state).items():
        if isinstance(value, Tensor):
            setattr(state, name, value[kept])
