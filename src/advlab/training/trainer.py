"""The trainer: a recipe on real data, with validation, the best weights, logs and checkpoints."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import polars as pl
import torch
from torch import Tensor, nn

from ..attacks import Attack
from ..core import inputs
from ..core.display import html_table
from ..core.errors import AdvlabError
from ..core.inputs import Given
from ..core.randomness import Rng, generator
from ..data.augment import augmentation
from ..data.loaders import batches as read_batches
from ..losses import classes_of
from ..models import Stack
from ..threats import Threat
from .averaging import AverageWeights
from .batches import ArrayBatches, Batches, checked_batches, is_dataset
from .checkpoints import read_state
from .clipping import ClipGradient
from .epoch_bar import EpochBar
from .epoch_log import EpochLog, EpochMeasure, KeepBest
from .errors_of import USUAL, ErrorsOf
from .examples import Rows, check_examples, first_rows
from .fabric import placed
from .hooks import Checkpoint, Hook
from .loop import fit
from .objectives import NOT_ATTACKED
from .processes import present
from .recipes import Recipe, Stage, recipe

WATCHED = 1000
"""How many examples, at most, errors are measured on after each epoch."""


@dataclass(frozen=True)
class TrainedModel:
    """The result of `train`."""

    model: nn.Module
    """The model that was given, with the weights of the best epoch, in eval mode."""
    log: pl.DataFrame
    """A row per epoch: see `EpochLog`. Robust errors are those of one attack: lower bounds."""
    best: dict[str, Any] | None
    """The row of the epoch whose weights were kept; None if those of the end were."""
    status: Literal["finished", "stopped", "diverged"]
    reason: str | None
    """Why the run ended before its time."""
    recipe: Recipe

    def _repr_html_(self) -> str:
        """What notebooks show."""
        rows: dict[str, object] = {**self.recipe.describe(), "status": self.status}
        if self.reason:
            rows["reason"] = self.reason
        if self.best is not None:
            shown = {k: v for k, v in self.best.items() if k.endswith("_error") or k == "epoch"}
            rows |= {key: f"{value:.4g}" for key, value in shown.items()}
        return html_table("TrainedModel", rows)


def train(
    model: Given[nn.Module],
    x: Given[Any],
    y: Given[Any] = None,
    *,
    recipe: Given[str | PathLike[str] | Recipe] = "pgd",
    ball: Given[Threat | None] = None,
    validation: Given[Any] = None,
    epochs: Given[float | None] = None,
    batch: Given[int | None] = None,
    augment: Given[str | Callable[..., Tensor] | None] = None,
    rng: Given[int] = 0,
    out: Given[str | PathLike[str] | None] = None,
    attack: Given[Attack | None] = None,
    measures: Given[Mapping[str, EpochMeasure] | None] = None,
    accumulate: Given[int | None] = None,
    channels_last: bool = True,
    tensorboard: bool = False,
    compile: bool = False,
    fabric: Any = None,
    progress: bool = True,
    reuse: bool = False,
) -> TrainedModel:
    """Train a network in place by a published recipe, and keep the weights of the best epoch.

        trained = train(net, DataLoader(dataset, 128, shuffle=True), recipe="trades", epochs=30,
                        ball=Ball("linf", 8 / 255, box=(0, 1)), validation=(xv, yv), out="run")

    Args:
        model: the network. It is trained in place, and left in eval mode.
        x: inputs (n, ...); or, with y left out, a DataLoader, a Dataset, or other data that bring
            both (see `data.loaders.batches`).
        y: labels (n,); or shares of classes (n, k), for a recipe with loss="soft_cross_entropy".
        recipe: a name of `recipes.RECIPES`, a TOML file, or a `Recipe` with settings of your own.
        ball: the threat set around each input; none for clean training.
        validation: inputs and labels (a pair, a Dataset or a loader) on which clean and robust
            error are measured after each epoch, the first 1,000 of them. Of the last stage, the
            weights of the epoch with the smallest robust error are kept (clean error, if nothing is
            attacked); without it, those of the end.
        epochs: passes over the data; the recipe's own by default.
        batch: rows per step; the recipe's own by default. Loaders have theirs.
        augment: a name of `data.augment.AUGMENTATIONS`, or a function of inputs and generator; the
            recipe's own by default.
        rng: the seed of the run. The start of the weights is the model's own.
        out: a folder for checkpoints, from which the same call goes on with the same bits, and for
            log.csv; None keeps nothing.
        attack: measures robust error after each epoch; ten steps of PGD by default.
        measures: more to measure after each epoch: functions of the model, by name.
        accumulate: parts that each batch is cut into, which processes share; one per process by
            default (see `fit`). A number of your own lets a run go on with fewer or more of them.
        channels_last: images pixel by pixel in memory, which is faster on most devices.
        tensorboard: also write TensorBoard's files to out/tensorboard.
        compile: run the network through torch.compile.
        fabric: a `lightning_fabric.Fabric` that was launched: its device, precision ("bf16-mixed")
            and processes. Under plain torchrun none is needed, but a process group.
        progress: a bar on stderr.
        reuse: whether to go on from checkpoints of another run too, with a warning.

    Returns:
        A `TrainedModel`: the model, the log of epochs, the best of them, and how the run ended.
    """
    inputs.instance("a model that is a torch.nn.Module", model, nn.Module, "")
    if isinstance(model, Stack):
        raise AdvlabError("a single model", "a stack", "train stacks with advlab.fit")
    inputs.check_weights(model)
    chosen = _chosen(recipe, epochs, batch)
    folder = None if out is None else inputs.path("out", out)
    if tensorboard and folder is None:
        raise AdvlabError("out, a folder for TensorBoard's files", "none")
    trains = [(weight, weight.requires_grad) for weight in model.parameters()]
    with placed(model, fabric):
        arranged = Arranged.of(model, _augmentation(augment, chosen), channels_last)
        size = chosen.batch if _in_rows(x, y) else None
        data = checked_batches(model, x, y, size)
        if data.per_epoch is None:
            raise AdvlabError("data that know how many batches they have", f"{type(x).__name__}")
        held_out = None if validation is None else first_rows(validation, WATCHED)
        held_out = check_examples(
            model, data.first(), held_out, ball, chosen.loss, isinstance(data, ArrayBatches)
        )
        stages = chosen.stages(ball, data.per_epoch)
        log = _log(chosen, data, ball, attack, held_out, measures or {}, folder, tensorboard)
        if compile:
            model.compile()
        try:
            ended, best, start = None, None, {}
            for number, stage in enumerate(stages):
                if stage.prepare is not None:
                    stage.prepare(model, generator("train", "prepare", rng, number))
                log.stage, best = stage.name, _judge(chosen, stage, log, held_out, ball)
                start = {name: one.detach().clone() for name, one in model.state_dict().items()}
                ended = fit(
                    model,
                    x,
                    y,
                    epochs=stage.epochs,
                    lr=stage.schedule,
                    batch=size,
                    objective=stage.objective,
                    optimizer=stage.optimizer,
                    hooks=_hooks(chosen, stage, number, data, log, best, folder, progress),
                    rng=generator("train", rng, number),
                    transform=arranged,
                    accumulate=accumulate,
                    reuse=reuse,
                )
                if ended.status == "diverged":
                    break
        finally:
            for weight, trained in trains:
                weight.requires_grad_(trained)
    if ended is None:
        raise AdvlabError("a recipe with at least one stage", "none")
    kept = _keep(model, log, best, ended.status, _file(folder, stages, log.stage), start)
    reason = ended.reason
    if ended.status == "diverged":
        per_epoch = data.per_epoch * stages[0].objective.replays
        where = f"step {ended.steps} of stage {log.stage} (epoch {ended.steps / per_epoch:.2f})"
        reason = f"the loss was not finite at {where}, and training stopped there: {kept}; lower lr"
        warnings.warn(reason, stacklevel=2)
    row = best.row if best is not None else None
    return TrainedModel(model.eval(), log.table(), row, ended.status, reason, chosen)


@dataclass(frozen=True)
class Arranged:
    """What is done to the inputs of a batch: augmentation, and the order of memory."""

    augment: Callable[..., Tensor] | None
    channels_last: bool

    @classmethod
    def of(
        cls, model: nn.Module, augment: Callable[..., Tensor] | None, channels_last: bool
    ) -> "Arranged":
        """Also lays out the weights of a network that convolves."""
        convolves = any(isinstance(module, nn.Conv2d) for module in model.modules())
        if channels_last and convolves:
            model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        return cls(augment, channels_last and convolves)

    def __call__(self, x: Tensor, rng: Rng) -> Tensor:
        if self.augment is not None:
            x = self.augment(x, rng=rng)
        if self.channels_last and x.ndim == 4:
            x = x.to(memory_format=torch.channels_last)
        return x


def _chosen(given: Any, epochs: Any, batch: Any) -> Recipe:
    settings = {"epochs": epochs, "batch": batch}
    changed = {name: value for name, value in settings.items() if value is not None}
    if "epochs" in changed:
        changed["epochs"] = float(changed["epochs"])
    return recipe(given, **changed)


def _augmentation(given: Any, chosen: Recipe) -> Callable[..., Tensor] | None:
    if given is not None and not isinstance(given, str):
        return given
    name = chosen.augment if given is None else given
    return None if name == "none" else augmentation(name)


def _in_rows(x: Any, y: Any) -> bool:
    """Whether the data come as rows, from which batches are ours to make."""
    return y is not None or is_dataset(x) or read_batches(x).whole is not None


def _log(
    chosen: Recipe,
    data: Batches,
    ball: Threat | None,
    attack: Attack | None,
    held_out: Rows | None,
    measures: Mapping[str, EpochMeasure],
    folder: Path | None,
    tensorboard: bool,
) -> EpochLog:
    """The log of epochs: errors on training and validation examples, and what else is wanted."""
    how = attack or USUAL
    x, y = data.first()
    y = classes_of(y)
    watched = {}
    if y.ndim == 1 and not y.is_floating_point():
        rows = WATCHED if held_out is None else len(held_out[1])
        watched["train"] = ErrorsOf(x[:rows], y[:rows], ball, how, chosen.loss)
    if held_out is not None:
        watched["validation"] = ErrorsOf(*held_out, ball, how, chosen.loss)
    average = None
    if chosen.average is not None:
        start = chosen.swa_start if chosen.average == "swa" else 0.0
        average = AverageWeights(chosen.average, decay=chosen.ema_decay, start=start)
    return EpochLog(
        {**watched, **measures},
        examples=data.examples,
        average=average,
        csv=folder / "log.csv" if folder else None,
        tensorboard=folder / "tensorboard" if folder and tensorboard else None,
    )


def _judge(
    chosen: Recipe, stage: Stage, log: EpochLog, held_out: Rows | None, ball: Threat | None
) -> KeepBest | None:
    """What keeps the best epoch of a stage: by clean error where the stage does not attack."""
    if held_out is None:
        return None
    attacked = stage.objective.adversary(0)[1] is not NOT_ATTACKED and ball is not None
    return KeepBest(log, f"validation_{'robust' if attacked else 'clean'}_error", chosen.patience)


def _hooks(
    chosen: Recipe,
    stage: Stage,
    number: int,
    data: Batches,
    log: EpochLog,
    best: KeepBest | None,
    folder: Path | None,
    progress: bool,
) -> list[Hook]:
    hooks: list[Hook] = list(stage.hooks)
    if chosen.clip is not None:
        hooks.append(ClipGradient(chosen.clip))
    if log.average is not None:
        hooks.append(log.average)
    hooks.append(log)
    if best is not None:
        hooks.append(best)
    if progress and present().first:
        hooks.append(EpochBar(log, stage.name))
    if folder is not None:
        every = (data.per_epoch or 1) * stage.objective.replays
        hooks.append(Checkpoint(_name(folder, number, stage), every=every, seconds=60.0))
    return hooks


def _name(folder: Path, number: int, stage: Stage) -> Path:
    return folder / f"checkpoint-{number + 1}-{stage.name}.safetensors"


def _file(folder: Path | None, stages: list[Stage], name: str) -> Path | None:
    """The last checkpoint of the stage that ended, if there is one."""
    places = [
        _name(folder, number, stage)
        for number, stage in enumerate(stages)
        if folder is not None and stage.name == name
    ]
    return next((place for place in places if place.is_file()), None)


def _keep(
    model: nn.Module,
    log: EpochLog,
    best: KeepBest | None,
    status: str,
    checkpoint: Path | None,
    start: Mapping[str, Tensor],
) -> str:
    """Put the weights that the run is for into the model: the best, or averaged ones; after a loss
    that was not finite those of the last checkpoint, or of the stage's start. Says which."""
    kept = ""
    if best is not None and best.row is not None:
        model.load_state_dict(best.weights)
        kept = f"the weights of epoch {best.row['epoch']:g} are kept"
    elif status == "diverged" and checkpoint is not None:
        state = read_state(checkpoint)
        model.load_state_dict(state["model"])
        kept = f"the weights of step {state['step']} are kept"
    elif status == "diverged":
        model.load_state_dict(start)
        kept = "the weights are those from before the stage"
    elif log.average is not None and log.average.model is not None:
        model.load_state_dict(log.average.model.state_dict())
    model.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    return kept
