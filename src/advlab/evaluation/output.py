"""How outputs and targets are read: classes, one probability, many labels, or numbers."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from ..core import inputs
from ..core.errors import AdvlabError
from ..losses import PerExample, absolute, check_labels, margin, squared

Kind = Literal["scores", "logit", "probability", "multilabel", "regression"]
KINDS = ("auto", "scores", "logit", "probability", "multilabel", "regression")
REGRESSION: dict[str, PerExample] = {"squared": squared, "absolute": absolute}
Targets = Tensor | np.ndarray
"""Numbers as a tensor, or words as an array."""


@dataclass(frozen=True)
class Output:
    """What a model's outputs mean; "auto" looks at some outputs and the targets.

    Args:
        kind: "scores": one score per class, the largest is the answer. "logit": one number, whose
            sign is the answer. "probability": one number, judged at 0.5. "multilabel": one logit,
            or probability, per label, of which any number can be true: an example is an error if
            one label is wrong. "regression": numbers, which have a loss and no errors.
        classes: the labels in the order of the scores (of one number: the negative one first),
            where they are not 0, 1, ...: Output("scores", classes=("cat", "dog")).
        loss: the loss of a regression, "squared" or "absolute".

    Example:
        import advlab
        from advlab.evaluation import Output
        advlab.evaluate(model, x, y, ball, output=Output("regression", loss="absolute"))
    """

    kind: str = "auto"
    classes: tuple[Any, ...] | None = None
    loss: str = "squared"

    def __post_init__(self):
        if self.kind not in KINDS:
            raise AdvlabError(f"output as one of {', '.join(KINDS)}", f"{self.kind!r:.60}")
        if self.loss not in REGRESSION:
            raise AdvlabError(f"loss as one of {', '.join(REGRESSION)}", f"{self.loss!r:.60}")
        if self.classes is not None:
            names = tuple(self.classes)
            if len(set(names)) != len(names) or len(names) < 2:
                raise AdvlabError("classes as two or more different labels", f"{names!r:.80}")
            object.__setattr__(self, "classes", names)

    @classmethod
    def of(cls, value: Any) -> "Output":
        """An Output, or the name of its kind."""
        if isinstance(value, str):
            return cls(value)
        inputs.instance("output as text or an Output", value, cls, 'such as "probability"')
        return value


@dataclass(frozen=True)
class Reading:
    """How outputs and targets of one model and one data set are read.

    `said` tells what was found out and is not plain; "" where labels are 0, 1, ... for as many
    scores, or -1 and +1 for the sign of one number.
    """

    kind: Kind
    columns: int
    loss: PerExample = margin
    names: tuple[Any, ...] | None = None
    """The labels by class, where they are not 0, 1, ... or -1 and +1."""
    threshold: float = 0.0
    """Where the answer of an output changes."""
    said: str = ""

    @property
    def classifies(self) -> bool:
        """Whether an example is right or wrong; if not it has a loss."""
        return self.kind != "regression"

    def model(self, model: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        """The model with outputs of which 0 is the threshold."""
        return Above(model, self.threshold) if self.threshold else model

    def targets(self, y: Targets, like: Tensor) -> Tensor:
        """Targets as losses want them: classes, signs or numbers.

        Args:
            y: one row per example, as `target_values` gives them.
            like: the inputs, for the type of real targets.
        """
        y = _column(y, self.columns)
        if self.kind == "regression":
            return _numbers(y).to(like.dtype)
        if self.kind == "multilabel":
            return _signs(_numbers(y))
        if self.names is not None:
            places = _places(y, self.names)
            return places if self.kind == "scores" else 2 * places - 1
        numbers = _numbers(y)
        if self.kind == "scores":
            check_labels(numbers.new_zeros(()).expand(len(numbers), self.columns), numbers)
            return numbers
        return _signs(numbers)


class Above(nn.Module):
    """A model's outputs less a threshold, so that their signs are the answers."""

    def __init__(self, model: Callable[[Tensor], Tensor], threshold: float):
        super().__init__()
        self.model, self.threshold = model, threshold
        # A new module is in train mode; this one has none of its own.
        self.training = getattr(model, "training", False)

    def forward(self, x: Tensor) -> Tensor:
        return self.model(x) - self.threshold


def target_values(y: Any) -> Targets:
    """Targets as a tensor, or words as an array."""
    if not isinstance(y, Tensor) and not (isinstance(y, list | tuple) and _tensors(y)):
        try:
            array = np.asarray(y)
        except (ValueError, TypeError, RuntimeError):
            array = np.empty(0)
        if array.dtype.kind == "U" and array.ndim == 1:
            return array
        if array.dtype.kind == "O" and array.ndim == 1 and all(isinstance(v, str) for v in array):
            return array.astype(str)
    return inputs.labels(y).detach()


def joined(parts: list[Targets]) -> Targets:
    """Targets of several batches as one."""
    if all(isinstance(part, Tensor) for part in parts):
        return torch.cat(parts)  # type: ignore[arg-type]
    return np.concatenate([np.asarray(part) for part in parts])


def read_output(
    output: Output, outputs: Tensor, y: Targets, stays: Callable[[], bool | None]
) -> Reading:
    """How to read these outputs of the first rows and these targets, or a refusal.

    Args:
        output: what the user says of them.
        outputs: the model's answers to the first rows, shape (n,) or (n, k).
        y: the targets, of these rows first.
        stays: whether outputs stay in [0, 1] far away from the data; None if that is not known.
    """
    columns = 1 if outputs.ndim == 1 else outputs.shape[1]
    y = _column(y, columns)
    kind = output.kind if output.kind != "auto" else _kind(columns, y)
    if kind == "regression":
        return _regression(output, outputs, columns, y)
    if output.loss != "squared":
        raise AdvlabError("a loss only for a regression", f"{output.loss!r} for {kind}")
    if kind == "multilabel":
        return _multilabel(outputs, columns, y, stays)
    if y.ndim != 1:
        raise AdvlabError(
            "x of shape (n, ...) and y of shape (n,), n at least 1",
            f"y {tuple(y.shape)}",
            "take y.argmax(1) of one-hot labels, or output='multilabel' for many labels",
        )
    if kind == "scores":
        return _scores(output, columns, y)
    return _sign(output, kind, outputs, columns, y, stays)


def _kind(columns: int, y: Targets) -> str:
    if not isinstance(y, Tensor):
        return "sign" if columns == 1 else "scores"
    if y.ndim == 2:
        if y.is_floating_point() and not _whole(y):
            return "regression"
        one_hot = bool((y.ne(0).sum(1) == 1).all()) and bool((y >= 0).all())
        return "scores" if one_hot or not _in(y, (-1, 0, 1)) else "multilabel"
    if columns > 1:
        return "scores"
    few = len(y.unique()) <= 2
    return "regression" if y.is_floating_point() and not (few and _whole(y)) else "sign"


def _regression(output: Output, outputs: Tensor, columns: int, y: Targets) -> Reading:
    width = 1 if y.ndim == 1 else y.shape[1]
    if not isinstance(y, Tensor) or width != columns:
        came = "words" if not isinstance(y, Tensor) else f"targets {tuple(y.shape)}"
        raise AdvlabError(
            "one number to come close to per output", f"outputs {tuple(outputs.shape)}, {came}"
        )
    if not bool(torch.isfinite(y).all()):
        raise AdvlabError("targets y must be finite", "NaN or infinity")
    said = f"a regression: {output.loss} loss of {columns} output{'s' * (columns > 1)}"
    return Reading("regression", columns, REGRESSION[output.loss], said=said)


def _multilabel(
    outputs: Tensor, columns: int, y: Targets, stays: Callable[[], bool | None]
) -> Reading:
    if not isinstance(y, Tensor) or y.ndim != 2 or y.shape[1] != columns or columns == 1:
        raise AdvlabError(
            f"many labels as y of shape (n, {columns}) with 0 and 1, one column per output",
            f"outputs {tuple(outputs.shape)}, y {tuple(y.shape)}",
        )
    _signs(y)
    probable = _unit(outputs) and bool(stays())
    how = "probabilities, judged at 0.5" if probable else "logits, judged at 0"
    said = f"{columns} labels per example, {how}; an example is an error if one label is wrong"
    return Reading("multilabel", columns, threshold=0.5 * probable, said=said)


def _scores(output: Output, columns: int, y: Targets) -> Reading:
    names = output.classes
    if names is not None and len(names) != columns:
        raise AdvlabError(f"one class per score, {columns}", f"{len(names)} classes")
    if names is None:
        if isinstance(y, Tensor) and y.is_floating_point():
            raise AdvlabError(
                "whole-number labels and outputs of shape (batch, classes)",
                f"labels {y.dtype}, outputs with {columns} columns",
                "y.long() are whole numbers; output='regression' takes one target per output",
            )
        names = _other_names(columns, y)
    said = "" if names is None or output.classes is not None else _mapping(names)
    reading = Reading("scores", columns, names=names, said=said)
    if names is None and isinstance(y, Tensor):
        low, high = int(y.min()), int(y.max())
        if low == 1 and high == columns:
            raise AdvlabError(
                f"labels must be 0 .. {columns - 1}, one for each output",
                f"labels from 1 to {columns}",
                "they count from one: use y - 1",
            )
    return reading


def _other_names(columns: int, y: Targets) -> tuple[Any, ...] | None:
    """The labels by class where they are words, or two other numbers; None for 0, 1, ..."""
    if isinstance(y, Tensor):
        found = y.unique().tolist()
        if columns != 2 or all(one in (0, 1) for one in found):
            return None
        if all(one in (-1, 1) for one in found):
            return (-1, 1)
    else:
        found = np.unique(y).tolist()
    if len(found) != columns:
        raise AdvlabError(
            f"labels of {columns} classes, one for each output",
            f"{len(found)} different ones, {found!r:.80}",
            "name all in the order of the outputs: output=Output('scores', classes=(...))",
        )
    return tuple(found)


def _sign(
    output: Output, kind: str, outputs: Tensor, columns: int, y: Targets,
    stays: Callable[[], bool | None],
) -> Reading:  # fmt: skip
    if columns != 1:
        raise AdvlabError(f"one number per example for output={kind!r}", tuple(outputs.shape))
    names = output.classes
    if names is not None and len(names) != 2:
        raise AdvlabError("two classes for one number", f"{len(names)} classes")
    if names is None and not (isinstance(y, Tensor) and _in(y, (-1, 0, 1))):
        found = (y.unique() if isinstance(y, Tensor) else np.unique(y)).tolist()
        if len(found) != 2 or (isinstance(y, Tensor) and y.is_floating_point()):
            raise AdvlabError(
                "labels must be -1 or +1, or 0 or 1, where a model has one output",
                f"{len(found)} different ones, {found!r:.80}",
                "numbers to come close to are output='regression'",
            )
        names = tuple(found)
    plain = Reading("logit", 1, names=names)
    signs = plain.targets(y, outputs)[: len(outputs)]
    if kind == "sign":
        kind = "probability" if _is_probability(outputs.flatten(), signs, stays) else "logit"
    said = _mapping(names) if names is not None and output.classes is None else ""
    if kind == "probability":
        told = "one probability per example, judged at 0.5"
        said = f"{told}; {said}" if said else told
        return Reading("probability", 1, names=names, threshold=0.5, said=said)
    if names is None and isinstance(y, Tensor) and bool((y == 0).any()):
        said = "one logit per example, judged at 0, for labels 0 and 1"
    return Reading("logit", 1, names=names, said=said)


def _is_probability(outputs: Tensor, signs: Tensor, stays: Callable[[], bool | None]) -> bool:
    """Whether one number is a probability: in [0, 1] on the data and also far from them.

    Numbers that only happen to lie in [0, 1] here are logits, unless they are right more often
    when judged at 0.5, or the model cannot be asked far from the data: then nobody can tell.
    """
    if not _unit(outputs):
        return False
    far = stays()
    if far:
        return True
    right = [int((((outputs > t).long() * 2 - 1) == signs).sum()) for t in (0.0, 0.5)]
    if far is None or right[1] > right[0]:
        raise AdvlabError(
            "outputs that can be told: logits are judged at 0, probabilities at 0.5",
            f"numbers from {float(outputs.min()):.3g} to {float(outputs.max()):.3g}, of which "
            f"{right[0]} and {right[1]} of {len(signs)} are right",
            "say output='logit' or output='probability'",
        )
    return False


def _column(y: Targets, columns: int) -> Targets:
    """One target per example, where they are a column beside one output."""
    return y[:, 0] if columns == 1 and y.ndim == 2 and y.shape[1] == 1 else y


def _unit(outputs: Tensor) -> bool:
    return bool(((outputs >= 0) & (outputs <= 1)).all())


def _whole(y: Tensor) -> bool:
    return bool((y == y.round()).all())


def _in(y: Tensor, values: tuple[int, ...]) -> bool:
    found = y.unique().tolist()
    return all(one in values for one in found) and not {-1, 0} <= set(found)


def _numbers(y: Targets) -> Tensor:
    if not isinstance(y, Tensor):
        raise AdvlabError("numbers as targets", f"words such as {str(y[0])!r:.40}")
    return y


def _signs(y: Tensor) -> Tensor:
    """-1 and +1 of labels 0 and 1, or -1 and +1."""
    if not _in(y, (-1, 0, 1)):
        raise AdvlabError(
            "labels 0 and 1, or -1 and +1",
            f"values from {float(y.min()):g} to {float(y.max()):g}",
            "other labels need output=Output(..., classes=(...))",
        )
    return torch.where(y > 0, 1, -1).to(y.dtype) if bool((y == 0).any()) else y


def _places(y: Targets, names: tuple[Any, ...]) -> Tensor:
    """The class of each label by name."""
    place = {name: n for n, name in enumerate(names)}
    found = y.tolist()
    strange = [one for one in found if one not in place]
    if strange:
        raise AdvlabError(
            f"labels among {list(names)!r:.80}",
            repr(strange[0]),
            "name all classes in the order of the outputs: output=Output(..., classes=(...))",
        )
    device = y.device if isinstance(y, Tensor) else None
    return torch.tensor([place[one] for one in found], dtype=torch.int64, device=device)


def _mapping(names: tuple[Any, ...]) -> str:
    return "labels " + ", ".join(f"{name!r} is class {n}" for n, name in enumerate(names))[:120]


def _tensors(y: list | tuple) -> bool:
    return len(y) > 0 and isinstance(y[0], Tensor)
