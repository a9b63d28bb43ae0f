"""Gradients that are too long are shortened."""

import torch

from ..core.errors import AdvlabError
from .hooks import Hook
from .objectives import StepInfo
from .run import Run


class ClipGradient(Hook):
    """g <- g min(1, largest / |g|), where |g| is the norm over all weights of a replicate.

    Args:
        largest: the largest norm that stays as it is.
    """

    def __init__(self, largest: float):
        if not largest > 0:
            raise AdvlabError("a largest norm of a gradient above 0", largest)
        self.largest = largest

    @torch.no_grad()
    def after_gradient(self, run: Run, info: StepInfo) -> None:
        squares = [grad.square().reshape(run.replicates, -1).sum(1) for grad in info.grads]
        norm = torch.stack(squares).sum(0).sqrt()
        factor = (self.largest / norm.clamp(min=torch.finfo(norm.dtype).tiny)).clamp(max=1.0)
        # The gradient itself, in whatever order its memory is: a reshaped one may be a copy.
        for grad in info.grads:
            if run.replicates == 1:
                grad.mul_(factor)
            else:
                grad.mul_(factor.reshape(-1, *[1] * (grad.ndim - 1)))

    def settings(self) -> object:
        return self.largest
