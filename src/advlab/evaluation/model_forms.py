"""Whatever answers questions about inputs, as a model: maps tensors to a tensor of scores."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from ..core import inputs
from ..core.errors import AdvlabError
from ..losses import evaluating, outputs_of
from ..models.array_function import ArrayFunction, label_numbers
from ..models.estimator import Estimator
from ..models.labels_only import LabelsOnly
from ..models.onnx_file import onnx_model
from .output import Output, Targets

Model = Callable[[Tensor], Tensor]
FAR = (1e3, -1e3)
"""Multiples of the inputs at which outputs are looked at, to tell probabilities from numbers."""


class ZeroGradient(nn.Module):
    """A model that lets no gradient through, as one whose gradient is zero."""

    def __init__(self, model: Model):
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():  # torch has no derivative of some operations, not even zero
            outputs = outputs_of(self.model, x)
        nothing = 0 * x.flatten(1).sum(1)
        return outputs + nothing.reshape(-1, *[1] * (outputs.ndim - 1))


class PlainScores(nn.Module):
    """A model that edits its inputs, or returns more than scores, as one that does neither."""

    def __init__(self, model: Model):
        super().__init__()
        self.model = model
        # A new module is in train mode; this one has none of its own.
        self.training = getattr(model, "training", False)

    def forward(self, x: Tensor) -> Tensor:
        return outputs_of(self.model, x)


class Answering(NamedTuple):
    """A model that maps tensors to a tensor, its answers to the first rows, and what is known."""

    model: Model
    outputs: Tensor
    output: Output
    """What the user said of its outputs, with the classes that the model itself knows."""
    said: str = ""


def open_model(model: Any) -> Any:
    """What a path stands for; an ONNX file is opened, all else is left as it is."""
    if isinstance(model, str | PathLike) and Path(model).suffix == ".onnx":
        return onnx_model(model)
    if not callable(model) and not hasattr(model, "predict"):
        raise AdvlabError("a model that can be called", f"{model!r:.60}")
    return model


def answering(model: Any, x: Tensor, y: Targets, output: Output) -> Answering:
    """Any model, tried on some rows, as one that maps tensors to a tensor of scores.

    Args:
        model: a network, a function of tensors or arrays that gives scores or labels, or an
            estimator.
        x: the first rows.
        y: their targets, which name the classes of a function that gives labels under names.
        output: what the user says of the outputs.
    """
    if hasattr(model, "predict") and not callable(model):
        return _estimator(model, x, y, output)
    function: Any = model  # which has said by now that it can be called
    outputs, plain, takes_arrays = first_outputs(function, x)
    if _are_labels(outputs):
        return _labels_only(function, outputs, takes_arrays, x, y, output)
    if isinstance(outputs, np.ndarray | list) or takes_arrays:
        function = ArrayFunction(function, takes_arrays)
        with torch.no_grad():
            outputs = function(x)
    elif not plain:
        function = PlainScores(function)
    return Answering(function, inputs.scores(outputs), output)


def first_outputs(model: Model, x: Tensor) -> tuple[Any, bool, bool]:
    """Some answers in eval mode; whether they are plain and x was left alone; whether the function
    had to be given arrays.

    A model that cannot take such inputs is told apart from a bug.
    """
    with torch.no_grad(), evaluating(model):
        own = x.clone()
        try:
            outputs = model(own)
        except AdvlabError:
            raise
        except inputs.TROUBLES as error:
            outputs = _of_arrays(model, x)
            if outputs is not None:
                return outputs, False, True
            raise AdvlabError(
                f"a model that takes inputs of shape {tuple(x.shape)} and {x.dtype}",
                inputs.whole_line(error),
            ) from error
    if isinstance(outputs, list) and not (outputs and isinstance(outputs[0], Tensor)):
        outputs = np.asarray(outputs)
    if not isinstance(outputs, np.ndarray) and not _are_labels(outputs):
        return inputs.scores(outputs), isinstance(outputs, Tensor) and own._version == 0, False
    return outputs, False, False


def far_outputs(model: Model, x: Tensor) -> Callable[[], bool | None]:
    """Whether outputs stay in [0, 1] far from the data, asked when it must be known."""

    def stays() -> bool | None:
        with torch.no_grad(), evaluating(model):
            try:
                far = torch.cat([outputs_of(model, factor * x).flatten() for factor in FAR])
            except (AdvlabError, *inputs.TROUBLES):
                return None
        far = far[~far.isnan()]
        return bool(((far >= 0) & (far <= 1)).all()) if len(far) else None

    return stays


def connected(model: Model, x: Tensor) -> bool:
    """Whether outputs depend on inputs as far as autograd can see."""
    with torch.enable_grad(), evaluating(model):
        leaf = x.clone().requires_grad_()
        outputs = outputs_of(model, leaf)
        if not outputs.requires_grad:
            return False
        try:
            return torch.autograd.grad(outputs.sum(), leaf, allow_unused=True)[0] is not None
        except RuntimeError as error:
            if "derivative" in str(error):
                return False
            raise


def _of_arrays(model: Any, x: Tensor) -> Any:
    """The answers of a function of numpy arrays; None if that is not what it is."""
    if isinstance(model, nn.Module) or x.dtype == torch.bfloat16:
        return None
    try:
        outputs = model(x.detach().cpu().numpy().copy())
    except (AdvlabError, *inputs.TROUBLES):
        return None
    return outputs if isinstance(outputs, np.ndarray) else None


def _are_labels(outputs: Any) -> bool:
    """Whether answers are labels: whole numbers or words, one per row."""
    if isinstance(outputs, Tensor):
        return outputs.ndim == 1 and not outputs.is_floating_point() and not outputs.is_complex()
    return isinstance(outputs, np.ndarray) and outputs.ndim == 1 and outputs.dtype.kind in "biuUO"


def _estimator(estimator: Any, x: Tensor, y: Targets, output: Output) -> Answering:
    model = Estimator(estimator, x)
    if model.classes is not None and output.classes is None and not _plain(model.classes):
        output = Output(output.kind, model.classes, output.loss)
    if model.predicts:
        predicted = np.asarray(estimator.predict(x.detach().flatten(1).cpu().numpy()))
        if _are_labels(predicted):
            return _labels_only(estimator.predict, predicted, True, x.flatten(1), y, output)
        if output.kind == "auto":
            output = Output("regression", output.classes, output.loss)
    said = f"a black box: {type(estimator).__name__}.{model.method}"
    return Answering(model, model(x), output, said)


def _labels_only(
    model: Any, outputs: Any, takes_arrays: bool, x: Tensor, y: Targets, output: Output
) -> Answering:
    function = ArrayFunction(model, takes_arrays).answers
    seen = np.asarray(outputs)
    names = output.classes
    if names is None and not _plain(np.unique(seen).tolist()):
        both = np.concatenate([seen, np.asarray(y)]) if y.ndim == 1 else seen
        names = tuple(np.unique(both).tolist())
    if names is not None:
        only = LabelsOnly(label_numbers(function, names), classes=max(2, len(names)))
    else:
        most = [int(seen.max())] + ([int(y.max())] if isinstance(y, Tensor) else [])
        only = LabelsOnly(function, classes=max(2, *(one + 1 for one in most)))
    output = Output("scores" if output.kind == "auto" else output.kind, names, output.loss)
    return Answering(only, only(x), output, "a black box that gives labels only")


def _plain(names: Any) -> bool:
    """Whether labels are 0, 1, ...: whole numbers from zero."""
    return all(isinstance(one, int) and one >= 0 for one in names) and not (
        isinstance(names, tuple) and names != tuple(range(len(names)))
    )
