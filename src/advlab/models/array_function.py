"""Functions of numpy arrays, or with answers in numpy arrays, as models."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..core.errors import AdvlabError
from ..core.inputs import tensor


class ArrayFunction(nn.Module):
    """A function that answers in numpy arrays or lists, as a model without gradients.

    Args:
        function: maps inputs (n, ...) to n answers: scores, or one number per row.
        takes_arrays: whether it wants numpy arrays, and not tensors.

    Example:
        from advlab.models import ArrayFunction
        model = ArrayFunction(lambda x: x @ weights, takes_arrays=True)
    """

    def __init__(self, function: Callable[[Any], Any], takes_arrays: bool = False):
        super().__init__()
        self.function, self.takes_arrays = function, takes_arrays

    def forward(self, x: Tensor) -> Tensor:
        if len(x) == 0:  # many functions cannot take no rows
            return self.forward(x.new_zeros(1, *x.shape[1:]))[:0]
        answers = self.answers(x)
        found = tensor("the model's answers", answers).to(x.device)
        if found.ndim == 0 or len(found) != len(x):
            raise AdvlabError(f"one answer per row, {len(x)}", f"shape {tuple(found.shape)}")
        return found.to(x.dtype)

    def answers(self, x: Tensor) -> Any:
        """What the function says, as it says it; it is not asked about no rows.

        Args:
            x: the inputs.
        """
        if len(x) == 0:
            return np.zeros(0, dtype=np.int64)
        with torch.no_grad():
            point = x.detach().clone()
            return self.function(point.cpu().numpy() if self.takes_arrays else point)


def label_numbers(function: Callable[[Tensor], Any], names: tuple[Any, ...]) -> Callable:
    """A function of labels under other names, as one of the numbers 0, 1, ... of these names.

    Args:
        function: maps inputs to n labels.
        names: all labels that there are, in the order of their numbers.
    """
    places = {name: place for place, name in enumerate(names)}

    def numbered(x: Tensor) -> np.ndarray:
        answers = np.asarray(function(x)).reshape(-1).tolist()
        strange = [one for one in answers if one not in places]
        if strange:
            raise AdvlabError(f"answers among {list(names)!r:.80}", repr(strange[0]))
        return np.array([places[one] for one in answers], dtype=np.int64)

    return numbered
