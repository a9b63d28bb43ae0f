"""The nonlinear operations of a network, each with its image of intervals."""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from .graph import Interval, Nonlinear, Shape
from .lines import image
from .pooling import windows
from .scalar_functions import ScalarFunction


@dataclass(frozen=True, eq=False)
class Relu(Nonlinear):
    """max(z, slope z) with 0 <= slope <= 1."""

    slope: float
    by_sign: ClassVar[bool] = True

    def apply(self, *values: Tensor) -> Tensor:
        return F.leaky_relu(values[0], self.slope)

    def image(self, *boxes: Interval) -> Interval:
        return self.apply(boxes[0][0]), self.apply(boxes[0][1])

    def lipschitz(self, order: float) -> float:
        return 1.0


@dataclass(frozen=True, eq=False)
class Elementwise(Nonlinear):
    """A function of one number, entry by entry."""

    function: ScalarFunction

    def apply(self, *values: Tensor) -> Tensor:
        return self.function.value(values[0])

    def image(self, *boxes: Interval) -> Interval:
        return image(self.function, boxes[0])

    def lipschitz(self, order: float) -> float | None:
        return self.function.lipschitz if math.isfinite(self.function.lipschitz) else None


@dataclass(frozen=True, eq=False)
class Maximum(Nonlinear):
    """The largest number of each window of an example, for any windows."""

    source: Shape
    windows_of: Tensor
    """For each output, the places of its window in the flattened example; -1 for none."""

    def apply(self, *values: Tensor) -> Tensor:
        return self.windows(values[0]).amax(-1)

    def image(self, *boxes: Interval) -> Interval:
        # It never falls when an input rises.
        return self.apply(boxes[0][0]), self.apply(boxes[0][1])

    def windows(self, x: Tensor) -> Tensor:
        """Every window's values on a last axis of their own, -inf where there is none."""
        found = x.reshape(len(x), -1)[:, self.windows_of.clamp(min=0)]
        return found.masked_fill(self.windows_of < 0, -torch.inf)

    @property
    def places(self) -> Tensor:
        """The same windows, by the places of their entries in the flattened example."""
        return self.windows_of

    @property
    def overlap(self) -> int:
        """How many windows a number can be in."""
        used = self.windows_of[self.windows_of >= 0]
        return int(used.bincount().max())

    def lipschitz(self, order: float) -> float:
        return self.overlap ** (1 / order)


@dataclass(frozen=True, eq=False)
class MaxPool(Maximum):
    """Max pooling of images, whose windows need no table."""

    kernel: list[int]
    stride: list[int]
    padding: list[int]
    dilation: list[int]
    by_sign: ClassVar[bool] = True

    def apply(self, *values: Tensor) -> Tensor:
        return F.max_pool2d(values[0], self.kernel, self.stride, self.padding, self.dilation)

    def windows(self, x: Tensor) -> Tensor:
        return windows(x, self.kernel, self.stride, self.padding, self.dilation)

    @cached_property
    def places(self) -> Tensor:
        numbers = torch.arange(math.prod(self.source), device=self.windows_of.device)
        marks = self.windows(numbers.reshape(1, *self.source).double())[0]
        return marks.clamp(min=-1).long()

    @property
    def overlap(self) -> int:
        spans = zip(self.kernel, self.stride, self.dilation, strict=True)
        return math.prod(math.ceil(k / s) if d == 1 else k for k, s, d in spans)


@dataclass(frozen=True, eq=False)
class ElementwiseProduct(Nonlinear):
    """x y, entry by entry."""

    def apply(self, *values: Tensor) -> Tensor:
        return values[0] * values[1]

    def image(self, *boxes: Interval) -> Interval:
        (a, b), (c, d) = boxes
        corners = torch.stack([a * c, a * d, b * c, b * d])
        return widened(corners.amin(0), corners.amax(0))


@dataclass(frozen=True, eq=False)
class NormalisedProduct(ElementwiseProduct):
    """c times s = 1 / sqrt(mean(c^2) + eps) over some axes: the last step of layer norm.

    Given the squares R of the others, c_i / sqrt((c_i^2 + R) / k + eps) rises in c_i, which bounds
    it better than the intervals of c and s do.
    """

    axes: tuple[int, ...]
    eps: float

    def image(self, *boxes: Interval) -> Interval:
        low, high = boxes[0]
        k = math.prod(self.shape[axis] for axis in self.axes)
        far = torch.maximum(low.abs(), high.abs()) ** 2
        near = torch.where((low < 0) & (high > 0), 0.0, torch.minimum(low.abs(), high.abs()) ** 2)
        least, most = (
            (square.sum(self.axes, keepdim=True) - square).clamp(min=0) for square in (near, far)
        )
        unit = 4 * k * torch.finfo(low.dtype).eps

        def end(c: Tensor, small: Tensor, large: Tensor) -> Tensor:
            return c * ((c * c + torch.where(c > 0, small, large)) / k + self.eps).rsqrt()

        slack = unit * far.sum(self.axes, keepdim=True)
        least, most = (least - slack).clamp(min=0), most + slack
        own = widened(end(low, most, least), end(high, least, most))
        by_corners = super().image(*boxes)
        return torch.maximum(own[0], by_corners[0]), torch.minimum(own[1], by_corners[1])


@dataclass(frozen=True, eq=False)
class MatrixProduct(Nonlinear):
    """X Y for matrices that both depend on the input, as in attention."""

    def apply(self, *values: Tensor) -> Tensor:
        return values[0] @ values[1]

    def image(self, *boxes: Interval) -> Interval:
        (a, b), (c, d) = boxes
        xm, xr, ym, yr = (a + b) / 2, (b - a) / 2, (c + d) / 2, (d - c) / 2
        center = xm @ ym
        radius = xm.abs() @ yr + xr @ ym.abs() + xr @ yr
        unit = 2 * a.shape[-1] * torch.finfo(a.dtype).eps
        radius = radius + unit * (xm.abs() @ ym.abs() + radius)
        low, high = center - radius, center + radius
        if bool((a >= 0).all()):
            # Weights that are not negative, such as attention's: each end has its own sign.
            most = b @ d.clamp(min=0) + a @ d.clamp(max=0)
            least = a @ c.clamp(min=0) + b @ c.clamp(max=0)
            slack = unit * (b @ torch.maximum(c.abs(), d.abs()))
            low, high = torch.maximum(low, least - slack), torch.minimum(high, most + slack)
        return low, high


@dataclass(frozen=True, eq=False)
class LogSoftmax(Nonlinear):
    """x_i - log sum_j exp(x_j) along one axis; softmax is its exponential."""

    axis: int
    """Counted from the end."""

    def apply(self, *values: Tensor) -> Tensor:
        return values[0].log_softmax(self.axis)

    def image(self, *boxes: Interval) -> Interval:
        """It rises in x_i and falls in the others: -log(1 + sum of exp(x_j - x_i), j not i)."""
        low, high = boxes[0]
        finite = (low.isfinite() & high.isfinite()).all(self.axis, keepdim=True)
        ends = self._end(low, high), self._end(high, low)
        unit = 8 * low.shape[self.axis] * torch.finfo(low.dtype).eps
        size = 1 + torch.maximum(low.abs(), high.abs()).amax(self.axis, keepdim=True)
        return (
            torch.where(finite, ends[0] - unit * size, -torch.inf),
            torch.where(finite, (ends[1] + unit * size).clamp(max=0), torch.inf),
        )

    def _end(self, own: Tensor, others: Tensor) -> Tensor:
        """log sigmoid(x_i - log sum over j not i of exp(x_j)), without any difference of sums."""
        others = others.movedim(self.axis, -1)
        none = torch.full_like(others[..., :1], -torch.inf)
        before = torch.cat([none, others.logcumsumexp(-1)[..., :-1]], -1)
        after = torch.cat([none, others.flip(-1).logcumsumexp(-1)[..., :-1]], -1).flip(-1)
        return F.logsigmoid(own - torch.logaddexp(before, after).movedim(-1, self.axis))


def widened(low: Tensor, high: Tensor) -> Interval:
    """A few roundings more on both sides."""
    slack = 8 * torch.finfo(low.dtype).eps * torch.maximum(low.abs(), high.abs())
    return low - slack, high + slack
