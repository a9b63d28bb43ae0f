"""The only training loop: attack, descend, project, note (DESIGN section 1)."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from ..attacks import Attack, Identity
from ..core.config import Config
from ..core.errors import AdvlabError
from ..core.randomness import Rng, generator
from ..losses import PerExample, resolve
from ..models import Stack
from ..threats import Ball, Threat
from ..threats.base import check_finite
from . import checkpoints
from .batches import Batches
from .log import Log
from .objectives import Adversarial, Clean, Objective, Scene
from .optimizers import SGD, Optimizer
from .penalties import Penalty
from .progress import training_bar
from .projections import Projection
from .schedules import Constant, Schedule

Probe = Callable[[nn.Module], Tensor | float]
"""What to measure of the model at a step: a number or an array; of a stack, one a replicate."""


@dataclass(frozen=True)
class Moment:
    """One step as a watcher sees it, before the weights move; the last has no move after it."""

    scene: Scene
    values: Tensor
    """The objective, one a replicate."""
    grads: Sequence[Tensor]
    """Its gradient in each trained array, without the penalty's."""
    last: bool


Watch = Callable[[Moment], None]
Prepare = Callable[[nn.Module, int], None]
"""Sets what a network has schedules for (a bias, a noise) before step t. A function of model and
step alone, so that a run that continues agrees with one that never stopped."""


@dataclass(frozen=True)
class Fit:
    """A finished run. `diverged_at` has, for each replicate, the step whose loss was not finite."""

    model: nn.Module
    log: Log
    status: Literal["finished", "diverged"]
    steps: int
    diverged_at: list[int | None]


class Settings(Config):
    """All that decides a run besides model and data; a checkpoint fits only the same settings."""

    steps: int
    batch: int | None
    schedule: dict
    objective: dict
    optimizer: dict
    penalty: dict | None
    projection: dict | None
    attack: dict
    ball: dict | None
    warmup: int
    rows: list[int]


def fit(
    model: nn.Module,
    x: Tensor,
    y: Tensor,
    *,
    steps: int,
    lr: float | Schedule,
    loss: str | PerExample = "cross_entropy",
    ball: Threat | None = None,
    attack: Attack | None = None,
    objective: Objective | None = None,
    batch: int | None = None,
    optimizer: Optimizer | None = None,
    penalty: Penalty | None = None,
    projection: Projection | None = None,
    probes: Mapping[str, Probe] | None = None,
    probe_at: int | Collection[int] = 1,
    watch: Watch | None = None,
    prepare: Prepare | None = None,
    warmup: int = 0,
    rng: Rng | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int = 1000,
    progress: bool = False,
) -> Fit:
    """Train in place: W <- Proj(W - lr * grad[objective(W; x, x~, y) + penalty(W)]).

    One model takes x (n, ...) and y (n,), a Stack of R takes x (R, n, ...) and y (R, n): whole, or
    in mini-batches of `batch` rows each. With a `ball` the objective is adversarial by default, and
    the radius grows linearly over the first `warmup` steps.
    Probes see the weights before each step in `probe_at` (every k steps, or a set of steps) and
    after the last; `watch` sees every step with its attacked inputs and gradients (`Moment`). With
    `checkpoint` a run that was stopped continues with the same bits.
    """
    if watch is not None and checkpoint is not None:
        raise AdvlabError(
            "watch or checkpoint, not both", "both", "a continued run would hide its first steps"
        )
    run = _Run(
        model=model,
        data=_rows(model, x, y),
        replicates=model.replicates if isinstance(model, Stack) else 1,
        steps=steps,
        schedule=lr if isinstance(lr, Schedule) else Constant(lr=lr),
        loss=resolve(loss),
        ball=ball or Ball(norm="l2", radius=0.0),
        attack=attack or _default_attack(ball),
        objective=objective or (Clean() if ball is None else Adversarial()),
        batch=batch,
        optimizer=optimizer or SGD(),
        penalty=penalty,
        projection=projection,
        probes=dict(probes or {}),
        probe_at=probe_at,
        watch=watch,
        prepare=prepare,
        warmup=warmup,
        rng=generator("fit") if rng is None else rng,
    )
    return run.go(Path(checkpoint) if checkpoint else None, checkpoint_every, progress)


@dataclass
class _Run:
    model: nn.Module
    data: tuple[Tensor, Tensor]
    replicates: int
    steps: int
    schedule: Schedule
    loss: PerExample
    ball: Threat
    attack: Attack
    objective: Objective
    batch: int | None
    optimizer: Optimizer
    penalty: Penalty | None
    projection: Projection | None
    probes: dict[str, Probe]
    probe_at: int | Collection[int]
    watch: Watch | None
    prepare: Prepare | None
    warmup: int
    rng: Rng

    def __post_init__(self):
        if self.steps < 0 or self.warmup < 0:
            raise AdvlabError(
                "steps and warmup must be 0 or more", f"{self.steps} and {self.warmup}"
            )
        self.names, self.weights = map(list, zip(*self._trained(), strict=True))
        self.penalised = [not name.endswith("bias") for name in self.names]
        # A view with a replicate axis in front, so that penalties and projections see one shape.
        alone = not isinstance(self.model, Stack)
        self.stacked = [w.data[None] if alone else w.data for w in self.weights]
        self.start = [w.clone() for w in self.stacked] if self.projection else []
        self.state = self.optimizer.start(self.weights)
        self.kept = self.data[0].new_empty(self.steps + 1, self.replicates)
        self.log = Log(probes={name: [] for name in self.probes})
        self.batches = Batches(len(self.data[1]), self.batch, self.replicates)
        self.diverged: list[int | None] = [None] * self.replicates
        self.step = 0

    def _trained(self) -> list[tuple[str, nn.Parameter]]:
        trained = [(name, p) for name, p in self.model.named_parameters() if p.requires_grad]
        if not trained:
            raise AdvlabError("the model must have weights that train", "none that require grad")
        return trained

    def go(self, path: Path | None, every: int, progress: bool) -> Fit:
        settings = self._settings()
        if path is not None and path.exists():
            checkpoints.load(path, self, settings)
        self.model.train()
        with training_bar(progress, self.steps, self.step) as advance:
            while True:
                values, grads = self._evaluate()
                self._note(values)
                if self.step == self.steps or all(at is not None for at in self.diverged):
                    break
                self._descend(grads)
                self.step += 1
                advance(self.step, values)
                if path is not None and self.step % every == 0:
                    checkpoints.save(path, self, settings)
        status = "diverged" if any(at is not None for at in self.diverged) else "finished"
        return Fit(self.model, self.log, status, self.step, self.diverged)

    def _evaluate(self) -> tuple[Tensor, list[Tensor]]:
        if self.prepare is not None:
            self.prepare(self.model, self.step)
        x, y = self.batches.next(*self.data, rng=self.rng)
        lr = self.schedule.at(self.step, self.steps)
        scene = Scene(
            self.model, x, y, self.loss, self.attack, self._ball(), self.rng,
            self.replicates, self.step, lr,
        )  # fmt: skip
        values, grads = self.objective.value_and_grad(scene, self.weights)
        if self.watch is not None:
            self.watch(Moment(scene, values, grads, last=self.step == self.steps))
        return values, list(grads)

    def _ball(self) -> Threat:
        if self.step >= self.warmup:
            return self.ball
        return self.ball.with_radius(self.ball.radius * (self.step + 1) / self.warmup)

    def _note(self, values: Tensor) -> None:
        # Into room made beforehand: a small piece kept from each step, among large ones that are
        # freed, would cut the heap into bits and let it grow from step to step.
        self.kept[self.step] = values
        self.log.loss.append(self.kept[self.step])
        finite = torch.isfinite(values)
        if not bool(finite.all()):
            for r in (~finite).nonzero().flatten().tolist():
                self.diverged[r] = self.step if self.diverged[r] is None else self.diverged[r]
        at = self.probe_at
        due = self.step % at == 0 if isinstance(at, int) else self.step in at
        if self.probes is not None and (due or self.step == self.steps):
            self.log.probe_steps.append(self.step)
            with torch.no_grad():
                for name, probe in self.probes.items():
                    measured = torch.as_tensor(probe(self.model)).detach().clone()
                    alone = not isinstance(self.model, Stack)
                    self.log.probes[name].append(measured[None] if alone else measured)

    @torch.no_grad()
    def _descend(self, grads: list[Tensor]) -> None:
        lr = self.schedule.at(self.step, self.steps)
        if self.penalty is not None:
            for grad, w, due in zip(grads, self.stacked, self.penalised, strict=True):
                if due:
                    grad.add_(self.penalty.gradient(w).reshape(grad.shape))
        self.optimizer.step(self.weights, grads, self.state, lr, self.step + 1)
        if self.penalty is not None:
            for w, due in zip(self.stacked, self.penalised, strict=True):
                shrunk = self.penalty.shrink(w, lr) if due else None
                if shrunk is not None:
                    w.copy_(shrunk)
        if self.projection is not None:
            self.projection.apply(self.stacked, self.start)

    def _settings(self) -> Settings:
        def plain(part: Config | None) -> dict | None:
            return None if part is None else {type(part).__name__: part.model_dump(mode="json")}

        return Settings(
            steps=self.steps,
            batch=self.batch,
            schedule=plain(self.schedule) or {},
            objective=plain(self.objective) or {},
            optimizer=plain(self.optimizer) or {},
            penalty=plain(self.penalty),
            projection=plain(self.projection),
            attack=plain(self.attack) or {},
            ball=plain(self.ball),
            warmup=self.warmup,
            rows=list(self.data[0].shape),
        )


def _default_attack(ball: Threat | None) -> Attack:
    from ..attacks import PGD

    return Identity() if ball is None else PGD(steps=10, step_size=0.25)


def _rows(model: nn.Module, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    """Check the data, and lay a stack's (R, n, ...) out as R blocks of rows."""
    check_finite(x, "inputs")
    if y.is_floating_point():
        check_finite(y, "targets")
    kept = next(model.parameters()).dtype
    if x.dtype != kept:
        raise AdvlabError(f"inputs of the model's own type, {kept}", x.dtype, f"use x.to({kept})")
    if isinstance(model, Stack):
        wanted = f"x of shape (R, n, ...) and y of shape (R, n) with R = {model.replicates}"
        if x.ndim < 2 or x.shape[:2] != y.shape or len(x) != model.replicates:
            raise AdvlabError(wanted, f"x {tuple(x.shape)} and y {tuple(y.shape)}")
        return x.flatten(0, 1), y.flatten()
    if x.shape[:1] != y.shape or len(x) == 0:
        raise AdvlabError(
            "x of shape (n, ...) and y of shape (n,), n at least 1",
            f"x {tuple(x.shape)} and y {tuple(y.shape)}",
        )
    return x, y
