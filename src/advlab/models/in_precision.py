"""Networks in half precision, for attacks that compute in a finer type."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from ..losses import HALF as HALF


class InPrecision(nn.Module):
    """A model that is given its inputs in another floating-point type.

    An attack moves float32 points, which keep to the threat set to float32's own rounding; the
    model sees each of them rounded to its type, and its answer there is what counts. So the input
    that was judged is the point after that rounding: it may lie outside the set by half a unit in
    the last place of `dtype` (2^-9 of a value in bfloat16, 2^-12 in float16).

    Args:
        model: the network or function.
        dtype: the type that it takes.

    Example:
        import torch
        from advlab.models.in_precision import InPrecision
        scores = InPrecision(net.bfloat16(), torch.bfloat16)(x)  # float32 in, float32 out
    """

    def __init__(self, model: Callable[[Tensor], Tensor], dtype: torch.dtype):
        super().__init__()
        self.model, self.dtype = model, dtype
        # A new module is in train mode; this one has none of its own.
        self.training = getattr(model, "training", False)

    def forward(self, x: Tensor) -> Tensor:
        return self.model(x.to(self.dtype)).to(x.dtype)
