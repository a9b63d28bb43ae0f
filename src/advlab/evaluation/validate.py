"""What is refused before any work is done, each in one line that says what to do."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from ..attacks.base import check_threat
from ..core import inputs
from ..core.devices import device_of
from ..core.errors import AdvlabError
from ..core.inputs import Given
from ..data.loaders import DataBatches, batches
from ..models.in_precision import HALF, InPrecision
from ..threats import Threat
from .evaluation import CheckWarning
from .examples import Examples
from .model_forms import Model, ZeroGradient, answering, connected, far_outputs, open_model
from .output import Output, Reading, Targets, joined, read_output, target_values

FEW = 64
PEEK = 256
"""Rows of a stream that are looked at before the work begins."""


@dataclass(frozen=True)
class Task:
    """What is to be attacked: a model with outputs that losses know, and its examples."""

    model: Model
    examples: Examples
    reading: Reading
    warnings: list[CheckWarning] = field(default_factory=list)
    said: str = ""
    """How the model and its outputs are taken, where that is not plain."""


def validate(
    model: Given[Any], x: Given[Any], y: Given[Any], ball: Given[Threat],
    output: Given[Output | str] = "auto",
) -> Task:  # fmt: skip
    """Refuse what cannot be evaluated; else the model and examples ready for it.

    Args:
        model: maps inputs to scores; tried on a few rows in eval mode.
        x: the inputs, shape (n, ...), inside the box of the threat set; or data with both.
        y: the targets, one row per example; None if x brings them.
        ball: the threat set.
        output: what the model's outputs mean.

    Returns:
        A model that can be attacked (its gradient is zero where it lets none through), the examples
        in the type of its weights, how outputs are read, and a warning if inputs were cast.
    """
    model = open_model(model)
    check_threat(ball)
    inputs.check_weights(model)
    wanted, source = Output.of(output), x if isinstance(x, DataBatches) else batches(x, y)
    first, later = _first(model, source)
    rows, targets = torch.cat([one for one, _ in first]), joined([one for _, one in first])
    ball.check_center(rows)
    model, rows, warnings = _cast(model, rows)
    few = rows[:FEW].to(device_of(model, rows))
    found = answering(model, few, targets, wanted)
    model = found.model
    _check_outputs(found.outputs, few)
    outputs = found.outputs.cpu()
    reading = read_output(found.output, outputs, targets, far_outputs(model, few))
    model = reading.model(model)
    model = model if connected(model, few[:1]) else ZeroGradient(model)
    ready = _Ready(ball, reading, rows.dtype, rows.device)
    rest = None if source.whole is not None else (ready(*one) for one in later)
    examples = Examples(rows, reading.targets(targets, rows), rest, source.rows)
    said = "; ".join(part for part in (found.said, reading.said) if part)
    return Task(model, examples, reading, warnings, said)


def _first(
    model: Any, source: DataBatches
) -> tuple[list[tuple[Tensor, Targets]], Iterator[tuple[Tensor, Targets]]]:
    """The first batches, enough to look at (all that are in memory), and an iterator of others."""
    stream = ((inputs.inputs(x, model).detach(), target_values(y)) for x, y in source)
    first: list[tuple[Tensor, Targets]] = []
    for x, y in stream:
        _check_rows(x, y)
        if first and first[0][0].shape[1:] != x.shape[1:]:
            shapes = f"{tuple(first[0][0].shape[1:])} and {tuple(x.shape[1:])}"
            raise AdvlabError("inputs of one shape in all batches", shapes)
        first.append((x, y))
        if sum(len(one) for one, _ in first) >= PEEK:
            break
    if not first:
        raise AdvlabError("data with at least one example", "none", "was it read before?")
    return first, stream


@dataclass(frozen=True)
class _Ready:
    """Checks and casts later batches as the first ones were."""

    ball: Threat
    reading: Reading
    dtype: torch.dtype
    device: torch.device

    def __call__(self, x: Tensor, y: Targets) -> tuple[Tensor, Tensor]:
        _check_rows(x, y)
        self.ball.check_center(x)
        x = x.to(self.device, self.dtype)
        return x, self.reading.targets(y, x)


def _check_rows(x: Tensor, y: Targets) -> None:
    if x.ndim < 2 or len(x) == 0 or y.ndim == 0 or len(y) != len(x):
        raise AdvlabError(
            "x of shape (n, ...) and y of shape (n,), n at least 1",
            f"x {tuple(x.shape)} and y {tuple(y.shape)}",
        )


def _cast(model: Any, x: Tensor) -> tuple[Any, Tensor, list[CheckWarning]]:
    """The model and inputs in a type that both compute in: float32 for half precision."""
    wanted = inputs.dtype_of(model) or x.dtype
    if wanted in HALF and not hasattr(model, "predict"):
        name = str(wanted).removeprefix("torch.")
        text = (
            f"the model computes in {name}: perturbations are float32 and in the threat set, and "
            f"are judged after rounding to {name}, which may leave the set by that rounding"
        )
        return InPrecision(model, wanted), x.to(torch.float32), [CheckWarning("dtype", text)]
    if wanted == x.dtype:
        return model, x, []
    text = f"inputs are {x.dtype}, the model's weights {wanted}: the inputs were cast"
    return model, x.to(wanted), [CheckWarning("dtype", text)]


def _check_outputs(outputs: Tensor, x: Tensor) -> None:
    if outputs.ndim not in (1, 2) or len(outputs) != len(x) or outputs[:1].numel() == 0:
        raise AdvlabError(
            f"one row of scores per example, shape ({len(x)}, classes)",
            f"outputs of shape {tuple(outputs.shape)}",
            "flatten what the model returns to (n, classes)",
        )
    if not torch.isfinite(outputs).all():
        bad = ~torch.isfinite(outputs).reshape(len(outputs), -1).all(1)
        raise AdvlabError(
            "finite outputs",
            f"NaN or infinity from the model for {int(bad.sum())} of {len(bad)} inputs",
            "its weights may be damaged, or its inputs in other units than it was trained on",
        )
