"""Examples that a training is to see: whether model, labels and threat set fit them."""

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from ..core import inputs
from ..core.devices import device_of
from ..core.errors import AdvlabError
from ..data.loaders import batches as read_batches
from ..losses import are_shares, check_labels, classes_of, evaluating, outputs_of
from ..threats import Threat

Rows = tuple[Tensor, Tensor]
"""Inputs and labels."""
LOOKED_AT = 50
"""Examples whose threat sets are compared."""


def first_rows(data: Any, most: int) -> Rows:
    """The first examples of any data, in memory.

    Args:
        data: a pair, a Dataset, a loader: see `data.loaders.batches`.
        most: how many at most.
    """
    xs: list[Tensor] = []
    ys: list[Tensor] = []
    for x, y in read_batches(data):
        if y is None:
            raise AdvlabError("validation data with labels", "inputs alone")
        xs.append(inputs.inputs(x))
        ys.append(classes_of(inputs.labels(y)))
        if len(xs[-1]) != len(ys[-1]):
            raise AdvlabError(
                "a label for each validation example", f"{len(ys[-1])} for {len(xs[-1])}"
            )
        if sum(map(len, ys)) >= most:
            break
    if sum(map(len, ys)) == 0:
        raise AdvlabError("validation data with at least one example", "none")
    return torch.cat(xs)[:most], torch.cat(ys)[:most]


def check_examples(
    model: nn.Module,
    train: Rows,
    held_out: Rows | None,
    ball: Threat | None,
    loss: str,
    whole: bool,
) -> Rows | None:
    """Refuse before the first step what could only fail later, or teach nothing.

    Args:
        model: the network.
        train: training examples.
        held_out: validation examples, if there are some.
        ball: the threat set, if there is one.
        loss: the name of the recipe's loss.
        whole: whether these are all training examples there are.

    Returns:
        The validation examples in the floating-point type of the training examples.
    """
    x, y = train
    if held_out is not None:
        if held_out[0].shape[1:] != x.shape[1:]:
            raise AdvlabError(
                f"validation inputs of shape {tuple(x.shape[1:])}, as those to train on",
                tuple(held_out[0].shape[1:]),
            )
        held_out = held_out[0].to(x.dtype), held_out[1]
    outputs = _outputs(model, x)
    if are_shares(y) and loss == "cross_entropy":
        raise AdvlabError(
            "labels (n,), or a loss for shares of classes",
            f"shares {tuple(y.shape)} with cross_entropy",
            'use recipe(..., loss="soft_cross_entropy")',
        )
    if outputs.ndim == 2 and outputs.shape[1] > 1:
        for labels in (y,) if held_out is None else (y, held_out[1]):
            if labels.ndim == 1 and not labels.is_floating_point():
                check_labels(outputs.expand(len(labels), -1), labels)
        if whole and y.ndim == 1 and not y.is_floating_point():
            _check_present(y, outputs.shape[1])
    if ball is not None:
        check_radius(ball, x, y)
    return held_out


def check_radius(ball: Threat, x: Tensor, y: Tensor) -> None:
    """Refuse a threat set that holds every example of every class, such as one in units of 0-255.

    Args:
        ball: the threat set around each input.
        x: some inputs. y: their labels.
    """
    x, y = x[:LOOKED_AT], classes_of(y[:LOOKED_AT])
    if y.ndim != 1 or len(y.unique()) < 2:
        return
    for center in x:
        if not bool(ball.contains(x, center.expand_as(x)).all()):
            return
    raise AdvlabError(
        "a threat set that leaves classes apart",
        f"a radius of {ball.radius}, at which it holds every example of the others too",
        "inputs and radius have the same units: for images in [0, 1] divide by 255",
    )


def _check_present(y: Tensor, classes: int) -> None:
    """Warn where classes that the network has a score for have no example to learn from."""
    missing = sorted(set(range(classes)) - set(y.unique().tolist()))
    if missing:
        warnings.warn(f"no example to train on of classes {missing[:5]}", stacklevel=3)


def _outputs(model: nn.Module, x: Tensor) -> Tensor:
    """The scores of the first example, or one line that says why there are none."""
    one = x[:1].to(device_of(model, x))
    try:
        with torch.no_grad(), evaluating(model):
            return outputs_of(model, one).cpu()
    except AdvlabError:
        raise
    except inputs.TROUBLES as error:
        raise AdvlabError(
            f"a model that takes inputs of shape {tuple(one.shape)} and {one.dtype}",
            inputs.whole_line(error),
        ) from error
