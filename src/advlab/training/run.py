"""A training run: what it is made of, how it takes a step, and all that a checkpoint holds."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn

from ..core.devices import device_of
from ..core.display import html_table
from ..core.errors import AdvlabError
from ..core.randomness import Rng
from ..models import Stack
from .batches import Batches
from .cut_batches import Cut
from .global_randomness import global_randomness
from .log import Log
from .objectives import Objective, StepContext, StepInfo
from .processes import ALONE, Processes
from .resume import run_parts, take_up
from .schedules import Schedule

if TYPE_CHECKING:
    from .hooks import Hook

OptimizerFactory = Callable[..., torch.optim.Optimizer]
"""Called with the trained weights and `lr=`: `torch.optim.Adam`, or a `functools.partial` of it."""

Transform = Callable[[Tensor, Rng], Tensor]
"""Called with the inputs of a batch and the generator of the run."""

NOT_ELEMENTWISE = ("Adafactor", "LBFGS", "Muon")
"""Optimizers of torch whose update of one weight depends on others: replicates would mix."""


@dataclass(frozen=True)
class Fit:
    """The result of `fit`."""

    model: nn.Module
    """The model that was given, trained in place."""
    log: Log
    """The loss at every step, and what `Probe` hooks measured."""
    status: Literal["finished", "diverged", "stopped"]
    """Diverged: the loss of a replicate was not finite. Stopped: a hook ended the run."""
    steps: int
    """How many steps were taken."""
    diverged_at: list[int | None]
    """For each replicate the first step whose loss was not finite, or None."""
    reason: str | None = None
    """What the hook that stopped the run said."""

    def _repr_html_(self) -> str:
        """What notebooks show."""
        rows: dict[str, object] = {"status": self.status, "steps": self.steps}
        if self.reason:
            rows["reason"] = self.reason
        if self.log.loss:
            first, last = (float(self.log.loss[place].mean()) for place in (0, -1))
            rows["loss"] = f"{first:.4g} at first, {last:.4g} at the end"
        return html_table("Fit", rows)


@dataclass(eq=False)
class Run:
    """A run of `fit` as its hooks see it.

    Hooks may read everything, change the weights of `model`, call `stop`, and change the gradients
    of a step in place. `state_dict` has all that a fresh run needs to go on with the same bits.
    """

    model: nn.Module
    batches: Batches
    """The examples of each step."""
    objective: Objective
    optimizer: torch.optim.Optimizer
    schedule: Schedule | None
    """None: the optimizer keeps its own rates."""
    steps: int
    """How many steps to take."""
    batch: int | None
    hooks: Sequence["Hook"]
    rng: Rng
    transform: Transform | None = None
    """What is done to the inputs of each batch before they are attacked: augmentation, layout."""
    parts_of_batch: int = 1
    """Into how many parts each batch is cut: one after the other, or on several processes."""
    processes: Processes = ALONE
    """Who else trains the same model."""
    step: int = 0
    """How many steps were taken."""
    lr: float = 0.0
    """The rate of the present step; in `after_step`, of the step just taken."""
    reuse: bool = False
    """Whether to go on from the checkpoint of another run too."""
    stopped: str | None = None
    """Why a hook stopped the run."""
    log: Log = field(default_factory=Log)

    def __post_init__(self):
        self.replicates = self.model.replicates if isinstance(self.model, Stack) else 1
        self.names, self.weights = trained_weights(self.model)
        # A view with a replicate axis in front, so that penalties and projections see one shape.
        alone = not isinstance(self.model, Stack)
        self.stacked = [w.data[None] if alone else w.data for w in self.weights]
        self.replays: int = self.objective.replays
        self.diverged_at: list[int | None] = [None] * self.replicates
        self._losses = torch.empty(self.steps + 1, self.replicates, dtype=self.weights[0].dtype)
        self.device = device_of(self.model, self.weights[0])
        self.batches.to(self.device)
        # Whoever made the model drew its start on each process: all go on from the first one's.
        self.processes.share([*self.model.parameters(), *self.model.buffers()])
        self.cut = Cut(self) if self.parts_of_batch > 1 or self.processes.count > 1 else None
        self._same: tuple[Tensor, Tensor] | None = None

    @property
    def last(self) -> bool:
        """Whether no step follows: the gradient is only looked at."""
        return self.step == self.steps or self.stopped is not None

    @property
    def over(self) -> bool:
        """Whether to end: the last step was taken, a hook said so, or every replicate diverged."""
        return self.last or all(at is not None for at in self.diverged_at)

    def stop(self, reason: str) -> None:
        """End the run before its next step; `Fit.reason` keeps the reason."""
        self.stopped = reason

    def agree(self) -> None:
        """Stop on every process if one of them stops."""
        if self.processes.count > 1 and self.processes.any(self.stopped is not None):
            self.stopped = self.stopped or "another process stopped the run"

    @property
    def steps_per_epoch(self) -> int:
        """How many steps one pass over the data takes."""
        if self.batches.per_epoch is None:
            raise AdvlabError("data that know how many batches they have", "a loader without len")
        return self.batches.per_epoch * self.replays

    @property
    def epoch(self) -> float:
        """How many passes over the data were made."""
        return self.step / self.steps_per_epoch

    def gradient(self) -> StepInfo:
        """The objective and its gradient at the present weights, on the next batch."""
        context = self.context()
        if self.cut is not None:
            return self.cut.gradient(context)
        values, grads = self.objective.value_and_grad(context, self.weights)
        return StepInfo(context, values, list(grads), last=self.last)

    def context(self) -> StepContext:
        """The material of the present step, with the rows of its batch."""
        if self.schedule is not None:
            self.lr = self.schedule.at(self.step, self.steps)
            for group in self.optimizer.param_groups:
                group["lr"] = self.lr
        else:
            self.lr = float(self.optimizer.param_groups[0]["lr"])
        x, y = self._next_batch()
        return self.objective.context(
            self.model, x, y, self.rng, self.replicates, self.step, self.lr
        )

    def _next_batch(self) -> tuple[Tensor, Tensor]:
        """A new batch, or the same one again where the objective replays it."""
        if self._same is None or self.step % self.replays == 0:
            x, y = self.batches.next(self.rng)
            x, y = x.to(self.device), y.to(self.device)
            if self.transform is not None:
                x = self.transform(x, self.rng)
            self._same = (x, y)
        batch = self._same
        if self.replays == 1:
            self._same = None
        return batch

    def record(self, values: Tensor) -> None:
        """Log the losses of the step, on the CPU, and which replicates have diverged."""
        values = values.detach().cpu()
        # Into room made beforehand: a small piece kept from each step, among large ones that are
        # freed, would cut the heap into bits and let it grow from step to step.
        self._losses[self.step] = values
        self.log.loss.append(self._losses[self.step])
        finite = torch.isfinite(values)
        if not bool(finite.all()):
            for r in (~finite).nonzero().flatten().tolist():
                if self.diverged_at[r] is None:
                    self.diverged_at[r] = self.step

    def descend(self, grads: Sequence[Tensor]) -> None:
        """One step of the optimizer along these gradients."""
        for w, grad in zip(self.weights, grads, strict=True):
            w.grad = grad
        self.optimizer.step()
        for w in self.weights:
            w.grad = None
        torch.clear_autocast_cache()  # inside the caller's autocast: copies of weights that moved
        self.step += 1

    def result(self) -> Fit:
        diverged = any(at is not None for at in self.diverged_at)
        status = "diverged" if diverged else "stopped" if self.stopped else "finished"
        return Fit(self.model, self.log, status, self.step, self.diverged_at, self.stopped)

    def state_dict(self) -> dict:
        """The whole state: what the run is made of, model, optimizer, randomness, log, hooks."""
        return {
            "parts": self.parts,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "rng": [rng.get_state() for rng in self.generators()],
            "global": global_randomness(),
            "batches": self.batches.state_dict(),
            "same": None if self._same is None else list(self._same),
            "cut": None if self.cut is None else self.cut.state_dict(),
            "log": self.log.state_dict(),
            "hooks": [hook.state_dict() for hook in self.part_of_run()],
            "step": self.step,
            "diverged_at": self.diverged_at,
            "stopped": self.stopped,
        }

    def load_state_dict(self, state: dict, reuse: bool = False) -> None:
        """Put a fresh run to where the state was taken; of another run only if `reuse` says so."""
        take_up(self, state, reuse or self.reuse)

    @cached_property
    def parts(self) -> dict[str, str]:
        """What decides the run, by name. It is to be asked for before the first step."""
        return run_parts(self)

    def part_of_run(self) -> list["Hook"]:
        """The hooks that may change what is computed."""
        return [hook for hook in self.hooks if hook.settings() is not None]

    def generators(self) -> list[torch.Generator]:
        """The generators of the run: one, or one per replicate."""
        return [self.rng] if isinstance(self.rng, torch.Generator) else list(self.rng)


def trained_weights(model: nn.Module) -> tuple[list[str], list[nn.Parameter]]:
    """Names and weights of what trains."""
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    if not trained:
        raise AdvlabError("the model must have weights that train", "none that require grad")
    return [name for name, _ in trained], [p for _, p in trained]


def make_optimizer(
    model: nn.Module,
    optimizer: torch.optim.Optimizer | OptimizerFactory | None,
    schedule: Schedule | None,
    steps: int,
) -> torch.optim.Optimizer:
    """The optimizer of the model's trained weights; plain gradient descent by default."""
    _, weights = trained_weights(model)
    if isinstance(optimizer, torch.optim.Optimizer):
        made = optimizer
        held = {id(p) for group in made.param_groups for p in group["params"]}
        if held != {id(w) for w in weights}:
            raise AdvlabError(
                "an optimizer of exactly the weights that train",
                f"{len(held)} arrays for {len(weights)}",
                "give it (p for p in model.parameters() if p.requires_grad)",
            )
    elif schedule is None:
        raise AdvlabError("lr, or an optimizer that was made with its rate", "neither")
    else:
        made = (optimizer or torch.optim.SGD)(weights, lr=schedule.at(0, steps))
    name = type(made).__name__
    if name == "LBFGS" or (name in NOT_ELEMENTWISE and isinstance(model, Stack)):
        raise AdvlabError(
            "an optimizer that updates each weight by itself, from one gradient per step", name
        )
    return made
