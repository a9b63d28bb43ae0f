"""The trainer: a recipe on real data, with validation, the best weights, logs and checkpoints."""

import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
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
from ..models import Stack
from ..threats import Threat
from .averaging import AverageWeights
from .batches import Batches, checked_batches, is_dataset
from .clipping import ClipGradient
from .epoch_bar import EpochBar
from .epoch_log import EpochLog, EpochMeasure, KeepBest
from .errors_of import USUAL, ErrorsOf
from .freed_memory import keep_freed_memory
from .hooks import Checkpoint, Hook
from .loop import fit
from .processes import present
from .recipes import Recipe, Stage, recipe

WATCHED = 1000
"""How many examples, at most, errors are measured on after each epoch."""


@dataclass(frozen=True)
class Trained:
    """The result of `train`."""

    model: nn.Module
    """The model that was given, with the weights of the best epoch, in eval mode."""
    log: pl.DataFrame
    """A row per epoch: see `EpochLog`. Robust errors are those of one attack: lower bounds."""
    best: dict[str, Any] | None
    """The row of the epoch whose weights were kept; None without validation: those of the last."""
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
        return html_table("Trained", rows)


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
    accumulate: Given[int] = 1,
    channels_last: bool = True,
    tensorboard: bool = False,
    compile: bool = False,
    fabric: Any = None,
    progress: bool = True,
    reuse: bool = False,
) -> Trained:
    """Train a network in place by a published recipe, and keep the weights of the best epoch.

        trained = train(net, DataLoader(dataset, 128, shuffle=True), recipe="trades", epochs=30,
                        ball=Ball("linf", 8 / 255, box=(0, 1)), validation=(xv, yv), out="run")

    Args:
        model: the network. It is trained in place, and left in eval mode.
        x: inputs (n, ...); or, with y left out, a DataLoader, a Dataset, or other data that bring
            both (see `data.loaders.batches`).
        y: labels.
        recipe: a name of `recipes.RECIPES`, a TOML file, or a `Recipe` with settings of your own.
        ball: the threat set around each input; none for clean training.
        validation: inputs and labels (a pair, a Dataset or a loader) on which clean and robust
            error are measured after each epoch, the first 1,000 of them. The weights of the epoch
            with the smallest robust error are kept; without it, those of the end.
        epochs: passes over the data; the recipe's own by default.
        batch: rows per step; the recipe's own by default. Loaders have theirs.
        augment: a name of `data.augment.AUGMENTATIONS`, or a function of inputs and generator; the
            recipe's own by default.
        rng: the seed of the run. The start of the weights is the model's own.
        out: a folder for checkpoints, from which the same call goes on with the same bits, and for
            log.csv; None keeps nothing.
        attack: measures robust error after each epoch; ten steps of PGD by default.
        measures: more to measure after each epoch: functions of the model, by name.
        accumulate: parts that each batch is cut into (see `fit`); several processes share them.
        channels_last: images pixel by pixel in memory, which is faster on most devices.
        tensorboard: also write TensorBoard's files to out/tensorboard.
        compile: run the network through torch.compile.
        fabric: a `lightning_fabric.Fabric` that was launched: its device, precision and processes.
        progress: a bar on stderr.
        reuse: whether to go on from checkpoints of another run too, with a warning.

    Returns:
        A `Trained`: the model, the log of epochs, the best of them, and how the run ended.
    """
    inputs.instance("a model that is a torch.nn.Module", model, nn.Module, "")
    if isinstance(model, Stack):
        raise AdvlabError("a single model", "a stack", "train stacks with advlab.fit")
    inputs.check_weights(model)
    keep_freed_memory()
    chosen = _chosen(recipe, epochs, batch)
    if fabric is not None:
        model.to(fabric.device)
    arranged = Arranged.of(model, _augmentation(augment, chosen), channels_last)
    size = chosen.batch if _in_rows(x, y) else None
    data = checked_batches(model, x, y, size)
    if data.per_epoch is None:
        raise AdvlabError("data that know how many batches they have", f"{type(x).__name__}")
    stages = chosen.stages(ball, data.per_epoch)
    folder = None if out is None else inputs.path("out", out)
    log, best = _log(chosen, data, ball, attack, validation, measures or {}, folder, tensorboard)
    if compile:
        model.compile()
    ended = None
    with fabric.autocast() if fabric is not None else nullcontext():
        for number, stage in enumerate(stages):
            if stage.prepare is not None:
                stage.prepare(model, generator("train", "prepare", rng, number))
            log.stage = stage.name
            ended = fit(
                model,
                x,
                y,
                epochs=stage.epochs,
                lr=stage.schedule,
                batch=size,
                objective=stage.objective,
                optimizer=stage.optimizer,
                hooks=_hooks(chosen, stage, number, data.per_epoch, log, best, folder, progress),
                rng=generator("train", rng, number),
                transform=arranged,
                accumulate=accumulate,
                reuse=reuse,
            )
            if ended.status == "diverged":
                break
    if ended is None:
        raise AdvlabError("a recipe with at least one stage", "none")
    reason = ended.reason
    if ended.status == "diverged":
        reason = _divergence(ended.steps, data.per_epoch, best)
        warnings.warn(reason, stacklevel=2)
    _keep(model, log, best)
    return Trained(model.eval(), log.table(), best and best.row, ended.status, reason, chosen)


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
    validation: Any,
    measures: Mapping[str, EpochMeasure],
    folder: Path | None,
    tensorboard: bool,
) -> tuple[EpochLog, KeepBest | None]:
    """The log of epochs, and what keeps the best of them if there is something to judge by."""
    how = attack or USUAL
    x, y = data.first()
    watched = {}
    held_out = None if validation is None else _first_rows(validation, x.dtype)
    if y.ndim == 1 and not y.is_floating_point():
        rows = WATCHED if held_out is None else len(held_out[1])
        watched["train"] = ErrorsOf(x[:rows], y[:rows], ball, how, chosen.loss)
    if held_out is not None:
        watched["validation"] = ErrorsOf(*held_out, ball, how, chosen.loss)
    average = None
    if chosen.average is not None:
        start = chosen.swa_start if chosen.average == "swa" else 0.0
        average = AverageWeights(chosen.average, decay=chosen.ema_decay, start=start)
    log = EpochLog(
        {**watched, **measures},
        examples=(data.per_epoch or 0) * chosen.batch,
        average=average,
        csv=folder / "log.csv" if folder else None,
        tensorboard=folder / "tensorboard" if folder and tensorboard else None,
    )
    if held_out is None:
        return log, None
    column = "validation_clean_error" if ball is None else "validation_robust_error"
    return log, KeepBest(log, column, chosen.patience)


def _first_rows(validation: Any, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """The first examples of the validation set, in memory."""
    xs: list[Tensor] = []
    ys: list[Tensor] = []
    for x, y in read_batches(validation):
        xs.append(inputs.inputs(x).to(dtype))
        ys.append(inputs.labels(y))
        if sum(map(len, ys)) >= WATCHED:
            break
    if not ys or sum(map(len, ys)) == 0:
        raise AdvlabError("validation data with at least one example", "none")
    return torch.cat(xs)[:WATCHED], torch.cat(ys)[:WATCHED]


def _hooks(
    chosen: Recipe,
    stage: Stage,
    number: int,
    per_epoch: int,
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
        file = folder / f"checkpoint-{number + 1}-{stage.name}.safetensors"
        hooks.append(Checkpoint(file, every=per_epoch * stage.objective.replays, seconds=60.0))
    return hooks


def _divergence(steps: int, per_epoch: int, best: KeepBest | None) -> str:
    where = f"step {steps} (epoch {steps / per_epoch:.2f})"
    kept = "the weights are those before it"
    if best is not None and best.row is not None:
        kept = f"the weights of epoch {best.row['epoch']:g} are kept"
    return f"the loss was not finite at {where}, and training stopped there: {kept}; lower lr"


def _keep(model: nn.Module, log: EpochLog, best: KeepBest | None) -> None:
    """Put the weights that the run is for into the model: the best, or averaged ones."""
    if best is not None and best.weights:
        model.load_state_dict(best.weights)
    elif log.average is not None and log.average.model is not None:
        model.load_state_dict(log.average.model.state_dict())
    model.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
