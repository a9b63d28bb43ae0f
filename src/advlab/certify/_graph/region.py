"""The inputs that a certificate must answer for: a ball, cut by its box."""

import torch
from torch import Tensor

from ...threats import Ball
from .backward import total


class Region:
    """The threat sets of a batch of examples."""

    def __init__(self, center: Tensor, ball: Ball):
        self.center, self.ball = center, ball
        low, high = center - ball.radius, center + ball.radius
        if ball.box is not None:
            # A center a rounding outside the box is still inside its own set.
            low = torch.minimum(low.clamp(min=ball.box[0]), center)
            high = torch.maximum(high.clamp(max=ball.box[1]), center)
        self.low, self.high = low, high
        self.size = ball.radius + ball.norm_of(center)

    def __len__(self) -> int:
        return len(self.center)

    def highest(self, a: Tensor, rows: Tensor, tight: bool) -> tuple[Tensor, Tensor]:
        """max of <a, x> over the sets of these rows, and at least |<a, x>| anywhere in them.

        Exact for linf and without a box. A box that cuts an l1 or l2 ball takes a sort for the
        exact value; unless it has to be tight, the ball's own maximum or that of its bounding box
        serves, the smaller.
        """
        dual = self.ball.dual_norm(a)
        size = dual * self.size[rows]
        if self.ball.norm == "linf" and self.ball.box is not None:
            return self._over_the_interval(a, rows), size
        if tight and self.ball.box is not None:
            return total(a * self.ball.maximiser(a, self.center[rows])), size
        highest = total(a * self.center[rows]) + self.ball.radius * dual
        if self.ball.box is not None:
            highest = torch.minimum(highest, self._over_the_interval(a, rows))
        return highest, size

    def _over_the_interval(self, a: Tensor, rows: Tensor) -> Tensor:
        return total(a * torch.where(a > 0, self.high[rows], self.low[rows]))
