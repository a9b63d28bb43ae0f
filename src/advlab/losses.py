"""Per-example losses, and the loss of a model's inputs as a function an attack can climb."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Shaped
from torch import Tensor, nn
from torch.utils.weak import WeakIdKeyDictionary

from .core import inputs
from .core.errors import AdvlabError

PerExample = Callable[[Tensor, Tensor], Tensor]
"""Outputs and targets, a row per example, to one value per example."""

HALF = (torch.float16, torch.bfloat16)
"""Types of scores, which autocast gives, that losses and margins take as float32."""

Outputs = Float[Tensor, "batch *k"]
Targets = Shaped[Tensor, "batch *targets"]
"""One label or number per example, or one per output: -1 and +1 where there are many labels."""
Values = Float[Tensor, " batch"]


def squared(outputs: Outputs, y: Targets) -> Values:
    """(f - y)^2, for one real output per example; with a target per output the sum over them."""
    if y.ndim == 2:
        return ((_alike(outputs, y) - y) ** 2).sum(1)
    return (_single(outputs) - y) ** 2


def absolute(outputs: Outputs, y: Targets) -> Values:
    """|f - y|, for one real output per example; with a target per output the sum over them."""
    if y.ndim == 2:
        return (_alike(outputs, y) - y).abs().sum(1)
    return (_single(outputs) - y).abs()


def logistic(outputs: Outputs, y: Targets) -> Values:
    """log(1 + exp(-y f)), for one real output per example and labels -1, +1."""
    return F.softplus(-_signs(y) * _single(outputs))


def pseudo_huber(outputs: Outputs, y: Targets) -> Values:
    """sqrt(1 + (f - y)^2) - 1, written so that small differences lose no digits."""
    u = _single(outputs) - y
    return u**2 / (1 + (1 + u**2).sqrt())


def huber(outputs: Outputs, y: Targets) -> Values:
    """(f - y)^2 / 2 up to a difference of 1, |f - y| - 1/2 beyond."""
    return F.huber_loss(_single(outputs), y.to(outputs), reduction="none")


def log_cosh(outputs: Outputs, y: Targets) -> Values:
    """log cosh(f - y), without overflow."""
    u = (_single(outputs) - y).abs()
    return u + F.softplus(-2 * u) - math.log(2)


def cross_entropy(outputs: Outputs, y: Targets) -> Values:
    """log(1 + sum over j != y of exp(z_j - z_y)).

    The usual log-softmax rounds 1 - p_y to zero for confident examples, in its value and in its
    gradient, which then points elsewhere (peers miss the worst case of a linear model by it). This
    form is accurate until exp itself underflows: a lead of 87 in float32, 700 in float64.

    With a sign per output (many labels) it is the sum of log(1 + exp(-y_j f_j)).
    """
    if y.ndim == 2:
        return F.softplus(-_signs(y) * _alike(outputs, y)).sum(1)
    check_labels(outputs, y)
    gaps = outputs - outputs.gather(1, y[:, None])
    return F.softplus(gaps.scatter(1, y[:, None], float("-inf")).logsumexp(dim=1))


def soft_cross_entropy(outputs: Outputs, y: Targets) -> Values:
    """-sum_c y_c log p_c, for shares of classes y (batch, k) that sum to 1 in each row.

    Labels (batch,) are rows that are all one class: then it is `cross_entropy`.
    """
    if y.ndim == 1:
        return cross_entropy(outputs, y)
    if not _fact(y, are_shares):
        raise AdvlabError(
            "shares of classes that are not negative and sum to 1 in each row",
            f"values from {float(y.min()):g} to {float(y.max()):g}",
        )
    return -(y.to(outputs) * F.log_softmax(_alike(outputs, y), dim=1)).sum(1)


def are_shares(y: Tensor) -> bool:
    """Whether targets are shares of classes: rows of numbers from 0 on that sum to 1.

    Args:
        y: targets of any kind.
    """
    if y.ndim != 2 or not y.is_floating_point() or y.shape[1] < 2:
        return False
    return bool((y >= 0).all()) and bool(((y.sum(1) - 1).abs() < 1e-3).all())


def classes_of(y: Tensor) -> Tensor:
    """The class with the largest share, where targets are shares; other targets as they are.

    Args:
        y: targets of any kind.
    """
    return y.argmax(1) if y.ndim == 2 and _fact(y, are_shares) else y


def margin(outputs: Outputs, y: Targets) -> Values:
    """The largest other score less the score of the label: positive where the model is wrong.

    One real output per example means labels -1, +1 and margin -y f. With a sign per output (many
    labels) the answer is wrong if one label is: the margin is the largest of -y_j f_j. Scores that
    are infinite decide nothing: the margin is then not a number, or infinite.
    """
    if y.ndim == 2:
        return _lead((-_signs(y) * _alike(outputs, y)).amax(1))
    if outputs.ndim == 1 or outputs.shape[1] == 1:
        return _lead(-_signs(y) * _single(outputs))
    check_labels(outputs, y)
    own = outputs.gather(1, y[:, None])[:, 0]
    return _lead(outputs.masked_fill(_one_hot(outputs, y), float("-inf")).amax(1) - own)


def _lead(margins: Values) -> Values:
    """An infinite lead of the label is an overflow, not the safest of answers."""
    return margins.masked_fill(margins == float("-inf"), float("nan"))


def is_error(margins: Float[Tensor, "*batch"]) -> Bool[Tensor, "*batch"]:
    """Whether examples with these margins (see `margin`) are errors: where the margin is not < 0.

    The one rule of the package for ties. Scores that tie (margin 0) leave the answer to the order
    of the classes, so a tie is an error, as is a margin that is not a number; a certificate must
    prove a margin strictly below zero.

    Args:
        margins: the largest other score less the score of the label, one value per example.
    """
    return ~(margins < 0)


def dlr(outputs: Outputs, y: Targets) -> Values:
    """Difference of logits ratio (Croce & Hein 2020): margin / (z_1 - z_3), scores sorted down.

    As published for three classes or more. No ratio of two scores, or of one real output with
    labels -1, +1, knows more than its sign once scale and shift are taken away, and a sign has no
    gradient: there this is the margin itself. Attacks that normalise their gradients or only
    compare values do not see the scale anyway. The same holds for many labels.
    """
    lead = margin(outputs, y)
    if y.ndim == 2 or outputs.ndim == 1 or outputs.shape[1] < 3:
        return lead
    top = outputs.topk(3, dim=1).values
    return lead / _spread(top[:, 0] - top[:, 2])


def targeted_dlr(outputs: Outputs, y: Targets, target: Targets) -> Values:
    """(z_t - z_y) / (z_1 - (z_3 + z_4) / 2), scores sorted down: high where t has overtaken y.

    As published for four classes or more. Of three scores every ratio that knows neither scale nor
    shift is an angle: to climb it turns t past the third class before it turns it past y, and with
    z_1 - z_3 below it stands still while t is last. So for two and three classes this is the
    difference itself, z_t - z_y.
    """
    check_labels(outputs, y)
    check_labels(outputs, target)
    lead = (outputs.gather(1, target[:, None]) - outputs.gather(1, y[:, None]))[:, 0]
    if outputs.shape[1] < 4:
        return lead
    top = outputs.topk(4, dim=1).values
    return lead / _spread(top[:, 0] - top[:, 2:].mean(1))


def _spread(width: Values) -> Values:
    """The width, or 1 where scores tie: the ratio is then the difference, never NaN."""
    return torch.where(width > torch.finfo(width.dtype).tiny ** 0.5, width, 1.0)


@dataclass(frozen=True)
class LabelSmoothing:
    """Cross entropy against (1 - smoothing) * one-hot + smoothing / classes (Szegedy et al. 2016):

        cross_entropy(z, y) + smoothing * (z_y - mean of all z)

    which is the same sum, written so that smoothing 0 is `cross_entropy` to the last bit.

    Args:
        smoothing: the share of the target that is spread over all classes, in [0, 1).

    Example:
        from advlab.losses import LabelSmoothing
        from advlab.training import fit
        fit(net, x, y, steps=100, lr=0.1, loss=LabelSmoothing(0.1))
    """

    smoothing: inputs.Given[float] = 0.1

    def __post_init__(self):
        number = isinstance(self.smoothing, float | int) and not isinstance(self.smoothing, bool)
        if not number or not 0 <= self.smoothing < 1:
            raise AdvlabError("smoothing as a number from 0 to below 1", f"{self.smoothing!r:.60}")

    def __call__(self, outputs: Outputs, y: Targets) -> Values:
        check_labels(outputs, y)
        value = cross_entropy(outputs, y)
        if self.smoothing == 0:
            return value
        lead = outputs.gather(1, y[:, None])[:, 0] - outputs.mean(1)
        return value + self.smoothing * lead


LOSSES: dict[str, PerExample] = {
    "squared": squared,
    "absolute": absolute,
    "logistic": logistic,
    "cross_entropy": cross_entropy,
    "soft_cross_entropy": soft_cross_entropy,
    "label_smoothing": LabelSmoothing(),
    "margin": margin,
    "dlr": dlr,
    "pseudo_huber": pseudo_huber,
    "huber": huber,
    "log_cosh": log_cosh,
}
LIPSCHITZ: dict[str, float] = {"logistic": 1.0, "pseudo_huber": 1.0, "huber": 1.0, "log_cosh": 1.0}
"""The Lipschitz constants in f of the losses that are smooth and convex in f (convergence paper,
Assumption 3.1; its l(y, y) = 0 fails for the logistic loss, which Theorem 5.2 leaves out)."""


def _pseudo_huber_slope(f: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    u = f - y
    root = (1 + u**2).sqrt()
    return u**2 / (1 + root), u / root


def _squared_slope(f: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    u = f - y
    return u**2, 2 * u


def _logistic_slope(f: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
    lead = _signs(y) * f
    return F.softplus(-lead), -y * torch.sigmoid(-lead)


_SLOPES: dict[PerExample, Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]] = {
    pseudo_huber: _pseudo_huber_slope,
    squared: _squared_slope,
    logistic: _logistic_slope,
}


def value_and_slope(loss: PerExample, f: Values, y: Targets) -> tuple[Values, Values]:
    """Each example's loss and its derivative in its one output, without autograd where known."""
    if loss in _SLOPES:
        return _SLOPES[loss](f, y)
    with torch.enable_grad():
        leaf = f.detach().requires_grad_()
        value = loss(leaf, y)
        (slope,) = torch.autograd.grad(value.sum(), leaf)
    return value.detach(), slope


def resolve(loss: inputs.Given[str | PerExample]) -> PerExample:
    """A loss by name, or the user's own function as it is."""
    if callable(loss):
        return loss
    if not isinstance(loss, str) or loss not in LOSSES:
        raise AdvlabError(f"loss must be one of {', '.join(LOSSES)}", repr(loss))
    return LOSSES[loss]


@dataclass(frozen=True)
class ModelLoss:
    """The loss of each input under a model, in eval mode, leaving the model as it was found."""

    model: inputs.Given[Callable[[Tensor], Tensor]]
    y: inputs.Given[Tensor]
    loss: inputs.Given[PerExample]

    def __post_init__(self):
        y = inputs.labels(self.y)
        if y is not self.y:
            object.__setattr__(self, "y", y)
        if not callable(self.loss):
            object.__setattr__(self, "loss", resolve(self.loss))
        if not callable(self.model):
            raise AdvlabError("a model that can be called", f"{self.model!r:.60}")

    def __call__(self, x: Tensor) -> inputs.Given[Tensor]:
        return self.loss(self.outputs(x), self.y)

    def outputs(self, x: Tensor) -> Tensor:
        """The model's scores in eval mode; it cannot edit the inputs."""
        with evaluating(self.model):
            if inputs.EDITS.get(id(self.model)) is not False or x.is_inference():
                return outputs_of(self.model, x)
            before, outputs = x._version, self.model(x)
        if x._version != before:
            raise inputs.edited()
        outputs = outputs if isinstance(outputs, Tensor) else inputs.scores(outputs)
        return outputs.float() if outputs.dtype in HALF else outputs

    def rows(self, index: Tensor) -> "ModelLoss":
        return ModelLoss(self.model, self.y[index], self.loss)

    def climbing(self, loss: PerExample) -> "ModelLoss":
        """The same model and labels under another loss, such as the one an attack prefers."""
        return ModelLoss(self.model, self.y, loss)

    def under(self, model: Callable[[Tensor], Tensor]) -> "ModelLoss":
        """The same examples and loss under another model."""
        return ModelLoss(model, self.y, self.loss)


def outputs_of(model: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """The scores of a model in the mode in which it is, for inputs that it cannot edit.

    Args:
        model: returns a tensor, or a tuple, dict or object with one (see `core.inputs.scores`).
        x: the inputs, one row per example.
    """
    outputs = inputs.scores(inputs.call(model, x))
    return outputs.float() if outputs.dtype in HALF else outputs


@contextmanager
def evaluating(model: object) -> Iterator[None]:
    """Eval mode inside, each module's own mode back afterwards (BatchNorm statistics stay put)."""
    training = [m for m in model.modules() if m.training] if isinstance(model, nn.Module) else []
    for module in training:
        module.training = False
    try:
        yield
    finally:
        for module in training:
            module.training = True


def check_labels(outputs: Tensor, y: Tensor) -> None:
    """Labels must be whole numbers that the outputs have a column for."""
    if y.is_floating_point() or outputs.ndim != 2:
        raise AdvlabError(
            "whole-number labels and outputs of shape (batch, classes)",
            f"labels {y.dtype}, outputs {tuple(outputs.shape)}",
        )
    if y.shape != outputs.shape[:1]:
        raise AdvlabError(
            f"one label per row of scores, shape ({len(outputs)},)", f"labels {tuple(y.shape)}"
        )
    low, high = _fact(y, _ends) if len(y) else (0, 0)
    if not 0 <= low <= high < outputs.shape[1]:
        raise AdvlabError(
            f"labels must be 0 .. {outputs.shape[1] - 1}, one for each output",
            f"labels from {low} to {high}",
        )


def _single(outputs: Tensor) -> Tensor:
    if outputs.ndim == 2 and outputs.shape[1] == 1:
        return outputs[:, 0]
    if outputs.ndim != 1:
        raise AdvlabError(
            "this loss needs one output per example",
            f"outputs of shape {tuple(outputs.shape)}",
            "use cross_entropy for several outputs",
        )
    return outputs


def _alike(outputs: Tensor, y: Tensor) -> Tensor:
    if outputs.shape != y.shape:
        raise AdvlabError(
            "one label or target per output",
            f"outputs {tuple(outputs.shape)}, targets {tuple(y.shape)}",
        )
    return outputs


def _signs(y: Tensor) -> Tensor:
    if not _fact(y, _are_signs):
        raise AdvlabError(
            "labels must be -1 or +1 where a model has one output, or one per label",
            f"values from {float(y.min()):g} to {float(y.max()):g}",
            "use 2 * y - 1 for labels 0 and 1",
        )
    return y


_FACTS = WeakIdKeyDictionary()
"""What was found out about label tensors, with the version of the tensor that it is about."""


def _fact(y: Tensor, find: Callable[[Tensor], Any]) -> Any:
    """What `find` says of the labels, which are looked at once: each look waits for the device."""
    if y.is_inference():  # has no version
        return find(y)
    version, found = _FACTS.get(y) or (-1, {})
    if version != y._version:
        found = {}
        _FACTS[y] = y._version, found
    if find not in found:
        found[find] = find(y)
    return found[find]


def _ends(y: Tensor) -> tuple[int, int]:
    return int(y.min()), int(y.max())


def _are_signs(y: Tensor) -> bool:
    return bool((y.abs() == 1).all())


def _one_hot(outputs: Tensor, y: Tensor) -> Tensor:
    return torch.zeros_like(outputs, dtype=torch.bool).scatter(1, y[:, None], True)
