"""A classifier of which only the labels can be had, as a model with scores."""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from ..core import inputs
from ..core.errors import AdvlabError
from ..core.inputs import Given


class LabelsOnly(nn.Module):
    """The scores 1 for the label that a function gives and 0 for every other class.

    Margins are then -1 where the label is right and +1 where it is wrong, and the gradient is zero:
    attacks that climb scores find nothing to climb, those that ask for labels (HopSkipJump, RayS)
    work. `advlab.evaluate` chooses these by itself.

    Args:
        function: maps inputs (n, ...) to n whole-number labels 0, 1, ...: a tensor, an array or a
            list. It is given a detached copy and asked for no gradient.
        classes: how many classes there are at least; higher labels add columns as they are seen.

    Example:
        import advlab
        from advlab.models import LabelsOnly
        from advlab.threats import Ball
        model = LabelsOnly(lambda x: service.predict(x.numpy()), classes=10)
        advlab.evaluate(model, x, y, Ball("linf", 0.1, box=(0, 1)))
    """

    def __init__(self, function: Given[Callable[[Tensor], Any]], classes: Given[int | None] = None):
        super().__init__()
        if not callable(function):
            raise AdvlabError("a function from inputs to labels", f"{function!r:.60}")
        self.function = function
        self.classes = 2 if classes is None else inputs.count("classes", classes, least=2)

    def forward(self, x: Tensor) -> Float[Tensor, "n classes"]:
        with torch.no_grad():
            labels = inputs.labels(self.function(x.detach().clone())).to(x.device)
        if labels.shape != x.shape[:1] or labels.is_floating_point():
            raise AdvlabError(
                f"one whole-number label per input, shape ({len(x)},)",
                f"{labels.dtype} of shape {tuple(labels.shape)}",
            )
        if len(labels):
            if int(labels.min()) < 0:
                raise AdvlabError("labels 0, 1, ...", f"the label {int(labels.min())}")
            self.classes = max(self.classes, int(labels.max()) + 1)
        return F.one_hot(labels, self.classes).to(x.dtype)
