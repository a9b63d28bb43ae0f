"""Readers of nonlinear operations: activations, products, softmax, normalisation, maxima."""

import math
from typing import Any

import torch
from torch import Tensor

from . import scalar_functions as scalar
from .graph import AddMean, Rearrange
from .layouts import BATCH
from .nonlinear import (
    Elementwise,
    ElementwiseProduct,
    LogSoftmax,
    MatrixProduct,
    Maximum,
    MaxPool,
    NormalisedProduct,
    Relu,
)
from .readers import aligned, expanded, move, reshaped, scaled, summed, the_batch, the_value
from .scalar_functions import ScalarFunction
from .tracing import Found, Reader, Trace, UnsupportedNetwork


def applied(trace: Trace, found: Found, function: ScalarFunction) -> Found:
    place, layout = found
    return trace.add(Elementwise((place,), trace.shape(place), function)), layout


def elementwise(function: ScalarFunction) -> Reader:
    """The reader of an operation that is this function."""

    def read(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
        return applied(trace, the_value(trace, args), function)

    return read


def _settings(args: tuple, *defaults: Any) -> list:
    """The arguments after the first, or what they are if left out."""
    given = list(args[1 : len(defaults) + 1])
    return given + list(defaults[len(given) :])


def gelu(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    tanh = kwargs.get("approximate", "none") == "tanh"
    return applied(trace, the_value(trace, args), scalar.GELU_TANH if tanh else scalar.GELU)


def softplus(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    beta, threshold = _settings(args, 1, 20)
    if beta <= 0:
        raise UnsupportedNetwork(f"softplus with beta {beta:g}")
    return applied(trace, the_value(trace, args), scalar.softplus(float(beta), float(threshold)))


def elu(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    alpha, scale, input_scale = (float(value) for value in _settings(args, 1, 1, 1))
    if min(alpha, scale, input_scale) <= 0:
        raise UnsupportedNetwork("ELU with a negative setting")
    return applied(trace, the_value(trace, args), scalar.elu(alpha, scale, input_scale))


def celu(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    alpha = float(_settings(args, 1.0)[0])
    return elu(trace, func, (args[0], alpha, 1.0, 1 / alpha), kwargs, out)


def power(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    exponents: dict[float, ScalarFunction] = {
        0.5: scalar.SQRT,
        -0.5: scalar.RSQRT,
        -1.0: scalar.RECIPROCAL,
    }
    found, exponent = the_value(trace, args), args[1]
    if isinstance(exponent, Tensor):
        raise UnsupportedNetwork("a power by a tensor")
    if float(exponent) in exponents:
        return applied(trace, found, exponents[float(exponent)])
    if exponent != int(exponent) or exponent < 1:
        raise UnsupportedNetwork(f"the power {exponent:g}")
    return found if exponent == 1 else applied(trace, found, scalar.power(int(exponent)))


# ReLU, and what is made of it.


def relu_of(trace: Trace, found: Found, slope: float = 0.0) -> Found:
    place, layout = found
    return trace.add(Relu((place,), trace.shape(place), slope)), layout


def relu(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    return relu_of(trace, the_value(trace, args))


def leaky_relu(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    slope = float(_settings(args, 0.01)[0])
    if 0 <= slope <= 1:
        return relu_of(trace, the_value(trace, args), slope)
    return prelu(trace, func, (args[0], slope), kwargs, out)


def prelu(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    """slope x + (1 - slope) relu(x), for any slope."""
    found, slope = the_value(trace, args), args[1]
    straight = scaled(trace, found, slope, 0.0)
    bent = scaled(trace, relu_of(trace, found), 1 - slope, 0.0)
    return summed(trace, (straight[0], bent[0]), (1.0, 1.0)), found[1]


def clamp(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    """low + relu(x - low), and from above the same with the signs turned."""
    found = the_value(trace, args)
    named = {**dict(zip(("min", "max"), args[1:], strict=False)), **kwargs}
    low, high = named.get("min"), named.get("max")
    if low is not None and high is not None and bool((torch.as_tensor(low) > high).any()):
        raise UnsupportedNetwork("a clamp whose ends are the wrong way round")
    if low is not None:
        above = relu_of(trace, scaled(trace, found, 1.0, -low))
        found = above if high is not None else scaled(trace, above, 1.0, low)
    if high is None:
        return found
    # Between both ends: low + relu(x - low) - relu(x - high), without a second rounding of low.
    over = relu_of(trace, scaled(trace, the_value(trace, args), 1.0, -high))
    both = summed(trace, (found[0], over[0]), (1.0, -1.0)), found[1]
    return both if low is None else scaled(trace, both, 1.0, low)


def clamp_max(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    return clamp(trace, func, (args[0], None, args[1]), kwargs, out)


def hardtanh(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    return clamp(trace, func, (args[0], *_settings(args, -1.0, 1.0)), kwargs, out)


def hardsigmoid(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    third = scaled(trace, the_value(trace, args), 1 / 6, 0.5)
    over = relu_of(trace, scaled(trace, third, 1.0, -1.0))
    return summed(trace, (relu_of(trace, third)[0], over[0]), (1.0, -1.0)), third[1]


def absolute(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    found = the_value(trace, args)
    sides = (found, scaled(trace, found, -1.0, 0.0))
    return summed(trace, tuple(relu_of(trace, s)[0] for s in sides), (1.0, 1.0)), found[1]


def maximum(
    trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any, sign: float = 1.0
) -> Found:
    """a + relu(b - a), or a - relu(a - b) for the minimum."""
    left, right = trace.place(args[0]), trace.place(args[1])
    if left is None or right is None:
        value, other = args if right is None else args[::-1]
        bounds = (value, other) if sign > 0 else (value, None, other)
        return clamp(trace, func, bounds, {}, out)
    left, right, layout = aligned(trace, args[0], args[1])
    over = summed(trace, (right, left), (sign, -sign))
    rise = trace.add(Relu((over,), trace.shape(over), 0.0))
    return summed(trace, (left, rise), (1.0, sign)), layout


def minimum(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    return maximum(trace, func, args, kwargs, out, -1.0)


# Products.


def product(trace: Trace, left: int, right: Found) -> Found:
    """x y of one shape, which for y = x is a square."""
    place, layout = right
    if left == place:
        return applied(trace, right, scalar.power(2))
    return trace.add(ElementwiseProduct((left, place), trace.shape(left))), layout


def glu(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    """The first half of an axis times the sigmoid of the second."""
    axis = _settings(args, -1)[0]
    left, gate = (move(trace, args[0], lambda t, i=i: t.chunk(2, axis)[i]) for i in (0, 1))
    if left[1] != gate[1]:
        raise UnsupportedNetwork("a gate over the batch")
    return product(trace, left[0], applied(trace, gate, scalar.SIGMOID))


def matrix_product(trace: Trace, left: Tensor, right: Tensor) -> Found:
    """A batch of products of matrices, bmm."""
    (a, layout), (b, other) = (the_value(trace, (value,)) for value in (left, right))
    if layout != other or layout.axis != 0:
        raise UnsupportedNetwork("operations that mix examples")
    shape = (*trace.shape(a)[:-1], trace.shape(b)[-1])
    return trace.add(MatrixProduct((a, b), shape)), layout


# Softmax.


def log_softmax(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    place, layout = the_value(trace, args[:1])
    axis = layout.dim(args[1], args[0].ndim)
    if axis is None:
        raise UnsupportedNetwork("a softmax over the batch")
    shape = trace.shape(place)
    return trace.add(LogSoftmax((place,), shape, axis - 1 - len(shape))), layout


def softmax(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    return applied(trace, log_softmax(trace, func, args, kwargs, out), scalar.EXP)


# Normalisation.


def centered(trace: Trace, place: int, axes: tuple[int, ...]) -> int:
    """x - mean(x) over these axes, counted from the end."""
    shape = trace.shape(place)
    return trace.add(AddMean((place,), shape, shape, None, axes, 1.0, -1.0))


def normalised(trace: Trace, place: int, axes: tuple[int, ...], eps: float) -> int:
    """(x - mean) / sqrt(var + eps) over these axes, counted from the end."""
    shape = trace.shape(place)
    move = centered(trace, place, axes)
    square = trace.add(Elementwise((move,), shape, scalar.power(2)))
    inner = tuple(1 if i - len(shape) in axes else length for i, length in enumerate(shape))
    count = math.prod(shape) // max(1, math.prod(inner))

    def mean(t: Tensor) -> Tensor:
        return t.mean(axes, keepdim=True)

    variance = trace.add(Rearrange((square,), inner, shape, None, mean, count))
    spread, _ = scaled(trace, (variance, BATCH), 1.0, eps)
    rate = trace.add(Elementwise((spread,), inner, scalar.RSQRT))
    return trace.add(NormalisedProduct((move, expanded(trace, rate, shape)), shape, axes, eps))


def layer_norm(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    x, inner, weight, bias, eps = args[:5]
    place, layout = the_value(trace, (x, weight, bias))
    if layout.axis >= x.ndim - len(inner):
        raise UnsupportedNetwork("layer norm over the batch")
    axes = tuple(range(-len(inner), 0))
    found = normalised(trace, place, axes, eps), layout
    return scaled(trace, found, 1.0 if weight is None else weight, 0.0 if bias is None else bias)


def group_norm(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    x, weight, bias, _, channels, _, groups, eps = args[:8]
    place = the_batch(trace, (x, weight, bias))
    shape = trace.shape(place)
    grouped = reshaped(trace, place, (groups, math.prod(shape) // groups))
    found = reshaped(trace, normalised(trace, grouped, (-1,), eps), shape), BATCH
    spread = (channels, *[1] * (len(shape) - 1))
    factor, shift = (
        given if value is None else value.reshape(spread)
        for value, given in ((weight, 1.0), (bias, 0.0))
    )
    return scaled(trace, found, factor, shift)


def instance_norm(trace: Trace, args: tuple) -> Found:
    """Batch norm by the batch's statistics where the batch is one image of all examples' channels:
    so PyTorch runs instance norm."""
    x, weight, bias = args[:3]
    place, layout = the_value(trace, (x, weight, bias))
    if layout.axis != 1 or x.shape[0] != 1 or layout.pre != 1:
        raise UnsupportedNetwork("batch norm by the statistics of the batch")
    axes = tuple(range(2 - x.ndim, 0))
    found = normalised(trace, place, axes, args[7]), layout
    spread = (1, -1, *[1] * (x.ndim - 2))
    factor, shift = (
        given if value is None else value.reshape(spread)
        for value, given in ((weight, 1.0), (bias, 0.0))
    )
    return scaled(trace, found, factor, shift)


# Maxima.


def max_pool(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    place = the_batch(trace, args)
    kernel, *others = args[1:]
    stride, padding, dilation, ceil = (*others, *[None] * 4)[:4]
    if ceil or len(trace.shape(place)) != 3:
        raise UnsupportedNetwork("max pooling with ceil_mode, or without a batch")
    none = torch.zeros(0, dtype=torch.long, device=trace.like.device)
    node = MaxPool(
        (place,), tuple(out[0].shape[1:]), trace.shape(place), none, list(kernel),
        list(stride or kernel), list(padding or [0, 0]), list(dilation or [1, 1]),
    )  # fmt: skip
    return trace.add(node)


def adaptive_max_pool(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    """Windows from floor(i n / m) to ceil((i + 1) n / m)."""
    place = the_batch(trace, args)
    source, shape = trace.shape(place), tuple(out[0].shape[1:])
    if len(source) != 3:
        raise UnsupportedNetwork("adaptive max pooling without a batch")
    numbers = torch.arange(math.prod(source), device=trace.like.device).reshape(source)
    spans = [
        [(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]
        for n, m in zip(source[1:], shape[1:], strict=True)
    ]
    cells = [numbers[:, a:b, c:d].flatten(1) for a, b in spans[0] for c, d in spans[1]]
    widest = max(cell.shape[1] for cell in cells)
    padded = [torch.nn.functional.pad(c, (0, widest - c.shape[1]), value=-1) for c in cells]
    table = torch.stack(padded, 1).reshape(*shape, widest)
    return trace.add(Maximum((place,), shape, source, table))


def largest(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    """The maximum over one or more axes of an example: amax, max."""
    place, layout = the_value(trace, args)
    if layout != BATCH or len(args) < 2:
        raise UnsupportedNetwork("a maximum over the batch, or with examples on another axis")
    source, result = trace.shape(place), out[0] if isinstance(out, tuple) else out
    axes = args[1] if isinstance(args[1], list | tuple) else [args[1]]
    axes = [axis % args[0].ndim for axis in axes] or list(range(args[0].ndim))
    if 0 in axes:
        raise UnsupportedNetwork("a maximum over the batch")
    kept = [axis for axis in range(len(source)) if axis + 1 not in axes]
    numbers = torch.arange(math.prod(source), device=trace.like.device).reshape(source)
    table = numbers.permute(*kept, *(axis - 1 for axis in axes)).flatten(len(kept))
    shape = tuple(result.shape[1:])
    return trace.add(Maximum((place,), shape, source, table.reshape(*shape, -1))), BATCH
