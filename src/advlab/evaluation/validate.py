"""What is refused before any work is done, each in one line that says what to do."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..attacks.base import check_threat
from ..core import inputs
from ..core.errors import AdvlabError
from ..core.inputs import Given, TensorLike
from ..losses import check_labels, evaluating, margin, outputs_of
from ..threats import Threat
from .evaluation import CheckWarning

FEW = 64


class ZeroGradient(nn.Module):
    """A model that lets no gradient through, as one whose gradient is zero."""

    def __init__(self, model: Callable[[Tensor], Tensor]):
        super().__init__()
        self.model = model

    def forward(self, x: Tensor) -> Tensor:
        with torch.no_grad():  # torch has no derivative of some operations, not even zero
            outputs = outputs_of(self.model, x)
        nothing = 0 * x.flatten(1).sum(1)
        return outputs + nothing.reshape(-1, *[1] * (outputs.ndim - 1))


class PlainScores(nn.Module):
    """A model that edits its inputs, or returns more than scores, as one that does neither."""

    def __init__(self, model: Callable[[Tensor], Tensor]):
        super().__init__()
        self.model = model
        # A new module is in train mode; this one has none of its own.
        self.training = getattr(model, "training", False)

    def forward(self, x: Tensor) -> Tensor:
        return outputs_of(self.model, x)


def validate(
    model: Given[Callable[[Tensor], Tensor]],
    x: Given[TensorLike],
    y: Given[TensorLike],
    ball: Given[Threat],
) -> tuple[Callable[[Tensor], Tensor], Tensor, Tensor, list[CheckWarning]]:
    """Refuse what cannot be evaluated; else the model and inputs ready for it.

    Args:
        model: maps inputs to scores; tried on a few rows in eval mode.
        x: the inputs, shape (n, ...), inside the box of the threat set.
        y: the labels, shape (n,).
        ball: the threat set.

    Returns:
        A model that can be attacked (its gradient is zero where it lets none through), the inputs
        in the type of its weights, the labels, and a warning if the inputs were cast.
    """
    if not callable(model):
        raise AdvlabError("a model that can be called", f"{model!r:.60}")
    check_threat(ball)
    inputs.check_weights(model)
    x, y = inputs.inputs(x, model).detach(), inputs.labels(y).detach()
    if x.ndim < 2 or len(x) == 0 or y.shape != x.shape[:1]:
        raise AdvlabError(
            "x of shape (n, ...) and y of shape (n,), n at least 1",
            f"x {tuple(x.shape)} and y {tuple(y.shape)}",
        )
    ball.check_center(x)
    x, notes = _cast(model, x)
    outputs, plain = first_outputs(model, x[:FEW])
    model = model if plain else PlainScores(model)
    _check_outputs(outputs, x[:FEW])
    if outputs.ndim == 2 and outputs.shape[1] > 1:
        _check_classes(outputs, y)
    else:
        margin(outputs, y[: len(outputs)])  # refuses other labels than -1 and +1
    return (model if _connected(model, x[:1]) else ZeroGradient(model)), x, y, notes


def first_outputs(model: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, bool]:
    """The scores in eval mode, and whether the model gives them plainly and leaves x alone.

    A model that cannot take such inputs is told apart from a bug.
    """
    with torch.no_grad(), evaluating(model):
        own = x.clone()
        try:
            outputs = model(own)
        except AdvlabError:
            raise
        except inputs.TROUBLES as error:
            raise AdvlabError(
                f"a model that takes inputs of shape {tuple(x.shape)} and {x.dtype}",
                inputs.whole_line(error),
            ) from error
    return inputs.scores(outputs), isinstance(outputs, Tensor) and own._version == 0


def _cast(model: Callable[[Tensor], Tensor], x: Tensor) -> tuple[Tensor, list[CheckWarning]]:
    wanted = inputs.dtype_of(model)
    if wanted is None or wanted == x.dtype:
        return x, []
    text = f"inputs are {x.dtype}, the model's weights {wanted}: the inputs were cast"
    return x.to(wanted), [CheckWarning("dtype", text)]


def _check_outputs(outputs: Tensor, x: Tensor) -> None:
    if outputs.ndim not in (1, 2) or len(outputs) != len(x):
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


def _check_classes(outputs: Tensor, y: Tensor) -> None:
    classes = outputs.shape[1]
    if not y.is_floating_point() and int(y.min()) == 1 and int(y.max()) == classes:
        raise AdvlabError(
            f"labels must be 0 .. {classes - 1}, one for each output",
            f"labels from 1 to {classes}",
            "they count from one: use y - 1",
        )
    check_labels(outputs[:1].expand(len(y), -1), y)


def _connected(model: Callable[[Tensor], Tensor], x: Tensor) -> bool:
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
