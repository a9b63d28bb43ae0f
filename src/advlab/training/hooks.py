"""What happens at the moments of a run: one protocol, and the hooks that most runs want.

    fit(net, x, y, steps=500, lr=0.1, ball=ball,
        hooks=[Probe({"risk": risk}, every=10), Project(WholeBall(radius=3.0)), ProgressBar()])

Hooks run in the order in which they are given.
"""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path

import torch
from torch import Tensor, nn

from ..core.checks import whole
from ..core.errors import AdvlabError
from ..core.files import check_writable
from ..models import Stack
from . import checkpoints
from .freed_memory import Room
from .objectives import StepInfo
from .penalties import Penalty
from .progress import training_bar
from .projections import Projection
from .run import Run

ProbeFunction = Callable[[nn.Module], Tensor | float]
"""What to measure of the model: a number or an array; of a stack, one per replicate."""
OLD = 600.0
"""Seconds after which an unfinished file is nobody's."""


class Hook:
    """Something done at the moments of a run. Every method does nothing unless it is overridden.

    A hook with state gives it in `state_dict`, so that a run that continues from a checkpoint
    agrees with one that never stopped.
    """

    def during(self, run: Run) -> AbstractContextManager:
        """Entered before the first step and left after the last, also when the run fails."""
        return nullcontext()

    def before_step(self, run: Run) -> None:
        """Before the batch is drawn and attacked; `run.step` steps have been taken."""

    def after_gradient(self, run: Run, info: StepInfo) -> None:
        """Before the weights move. The last time, at the final weights, no move follows."""

    def after_step(self, run: Run) -> None:
        """After the weights moved; `run.step` counts the step just taken."""

    def settings(self) -> object:
        """What identifies the hook in a checkpoint besides its code: values, functions, objects.

        None: it is no part of what is computed, and a run may continue with or without it.
        """
        return {}

    def state_dict(self) -> dict:
        """Tensors, numbers, text, and lists and dicts of them."""
        return {}

    def load_state_dict(self, state: dict) -> None:
        """Take up the state of another run."""


class Probe(Hook):
    """Measures the model before some steps and after the last; `Fit.log` has the values.

    Args:
        measures: functions of the model by name, called without gradients.
        every: at steps 0, every, 2 every, ...
        at: at these steps instead.
    """

    def __init__(
        self,
        measures: Mapping[str, ProbeFunction],
        *,
        every: int = 1,
        at: Collection[int] | None = None,
    ):
        self.measures = dict(measures)
        self._times = every if at is None else sorted(at)
        self._due = _due(every, at)
        self._rooms: dict[str, Room] = {}

    @contextmanager
    def during(self, run: Run) -> Iterator[None]:
        twice = set(self.measures) & set(run.log.probes)
        if twice:
            raise AdvlabError("probes with names of their own", f"{sorted(twice)} twice")
        run.log.probes |= {name: [] for name in self.measures}
        run.log.steps |= {name: [] for name in self.measures}
        yield

    @torch.no_grad()
    def after_gradient(self, run: Run, info: StepInfo) -> None:
        if not (self._due(run.step) or info.last):
            return
        for name, measure in self.measures.items():
            value = torch.as_tensor(measure(run.model)).detach().cpu()
            value = value if isinstance(run.model, Stack) else value[None]
            run.log.probes[name].append(self._rooms.setdefault(name, Room()).keep(value))
            run.log.steps[name].append(run.step)

    def settings(self) -> object:
        return self.measures, self._times


class StopWhen(Hook):
    """Ends the run when a condition on the model holds.

    Args:
        condition: a function of the model, called without gradients.
        every: asked at steps 0, every, 2 every, ... and at the last.
        reason: what `Fit.reason` says.
    """

    def __init__(
        self,
        condition: Callable[[nn.Module], bool],
        *,
        every: int = 1,
        reason: str = "the condition held",
    ):
        self.condition, self.reason = condition, reason
        self.every, self._due = every, _due(every, None)

    @torch.no_grad()
    def after_gradient(self, run: Run, info: StepInfo) -> None:
        if (self._due(run.step) or info.last) and self.condition(run.model):
            run.stop(self.reason)

    def settings(self) -> object:
        return self.condition, self.every, self.reason


class Penalize(Hook):
    """Adds a penalty to the objective, on all weights but biases: grad[objective + penalty].

    Its gradient is added in `after_gradient` (hooks given before see the objective's alone), its
    proximal step, if it has one, is taken after the optimizer's.
    """

    def __init__(self, penalty: Penalty):
        self.penalty = penalty

    @torch.no_grad()
    def after_gradient(self, run: Run, info: StepInfo) -> None:
        for grad, w, due in zip(info.grads, run.stacked, _penalised(run), strict=True):
            if due:
                grad.add_(self.penalty.gradient(w).reshape(grad.shape))

    @torch.no_grad()
    def after_step(self, run: Run) -> None:
        for w, due in zip(run.stacked, _penalised(run), strict=True):
            shrunk = self.penalty.shrink(w, run.lr) if due else None
            if shrunk is not None:
                w.copy_(shrunk)

    def settings(self) -> object:
        return self.penalty


class Project(Hook):
    """Brings the weights back to a convex set around their start after each step."""

    def __init__(self, projection: Projection):
        self.projection = projection
        self._start: list[Tensor] = []

    @contextmanager
    def during(self, run: Run) -> Iterator[None]:
        self._start = [w.clone() for w in run.stacked]
        yield

    @torch.no_grad()
    def after_step(self, run: Run) -> None:
        self.projection.apply(run.stacked, self._start)

    def settings(self) -> object:
        return self.projection

    def state_dict(self) -> dict:
        return {"start": self._start}

    def load_state_dict(self, state: dict) -> None:
        places = [w.device for w in self._start]
        self._start = [w.to(place) for w, place in zip(state["start"], places, strict=True)]


class ModelSchedule(Hook):
    """Sets what a network has schedules for (a bias, a noise) before each step.

    Args:
        change: called with the model and the number of steps taken. A function of these alone, so
            that a run that continues agrees with one that never stopped.
    """

    def __init__(self, change: Callable[[nn.Module, int], None]):
        self.change = change

    def before_step(self, run: Run) -> None:
        self.change(run.model, run.step)

    def settings(self) -> object:
        return self.change


class Checkpoint(Hook):
    """Stores the run every so many steps, and continues from the file if there is one.

    The file is taken up only if it was made by the same code, from the same initial weights, with
    the same data, settings, generators and versions; else the error says what differs. It comes
    last among the hooks, so that it stores what the others left.

    Args:
        path: a safetensors file with a checksum; it is replaced as a whole.
        every: steps from one checkpoint to the next; there is one at the end, too.
        seconds: a checkpoint also when so much time has passed since the last.
        reuse: whether to go on from the checkpoint of another run too, with a warning; its weights
            must fit the model.
    """

    def __init__(
        self,
        path: str | Path,
        every: int = 1000,
        reuse: bool = False,
        seconds: float | None = None,
    ):
        self.path, self.every, self.reuse = Path(path), whole("every", every), reuse
        self.seconds, self._written = seconds, time.monotonic()

    @contextmanager
    def during(self, run: Run) -> Iterator[None]:
        if run.hooks[-1] is not self:
            raise AdvlabError(
                "Checkpoint as the last of the hooks", [type(hook).__name__ for hook in run.hooks]
            )
        with _writing(self.path):
            check_writable(self.path)
        if run.processes.first:
            _remove_parts(self.path)
        _ = run.parts  # of the run before its first step
        if run.processes.any(self.path.exists()):
            run.load_state_dict(checkpoints.read_state(self.path), self.reuse)
        yield

    def after_step(self, run: Run) -> None:
        if self._is_due(run) and all(bool(w.isfinite().all()) for w in run.stacked):
            state = run.state_dict()
            if run.processes.first:
                with _writing(self.path):
                    checkpoints.write_state(self.path, state)
            self._written = time.monotonic()

    def _is_due(self, run: Run) -> bool:
        if run.step % self.every == 0 or run.step == run.steps or run.stopped:
            return True
        # Clocks differ: processes that write together go by steps alone.
        late = self.seconds is not None and time.monotonic() - self._written > self.seconds
        return late and run.processes.count == 1

    def settings(self) -> object:
        return None


class ProgressBar(Hook):
    """A bar on stderr with the step, the mean loss and the time left."""

    @contextmanager
    def during(self, run: Run) -> Iterator[None]:
        with training_bar(True, run.steps, run.step) as self._advance:
            yield

    def after_step(self, run: Run) -> None:
        self._advance(run.step, run.log.loss[-1])

    def settings(self) -> object:
        return None


def _due(every: int, at: Collection[int] | None) -> Callable[[int], bool]:
    whole("every", every)
    return (lambda step: step % every == 0) if at is None else (lambda step: step in at)


def _penalised(run: Run) -> list[bool]:
    return [not name.endswith("bias") for name in run.names]


def _remove_parts(path: Path) -> None:
    """Forget what a run that was killed while it wrote has left, if it is old enough."""
    for part in path.parent.glob(f".{path.name}-*.part"):
        with suppress(OSError):
            if time.time() - part.stat().st_mtime > OLD:
                part.unlink()


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise AdvlabError(
            f"{path} must be a file that can be written",
            error.strerror or error,
            "choose another place for the checkpoint, or make room",
        ) from None
