"""What each tensor operation is in a graph: one short reader per operation."""

import math
from typing import Any

import torch
from torch import Tensor

from .graph import Convolution, Dense, MaxPool, Rearrange, Relu, Scale, Sum
from .tracing import Reader, Trace, UnsupportedNetwork, flat


def _the_input(trace: Trace, args: tuple) -> int:
    """The place of the first argument, when no other argument comes from the inputs."""
    place = trace.place(args[0])
    if place is None or any(trace.tracked(other) for other in flat(args[1:])):
        raise UnsupportedNetwork("a product of two values that both depend on the input")
    return place


def _constant(trace: Trace, value: Any, ndim: int) -> Tensor:
    """A number or tensor without the batch axis, to be broadcast over examples."""
    constant = torch.as_tensor(value, dtype=trace.like.dtype, device=trace.like.device).detach()
    if constant.ndim == ndim:
        if len(constant) != 1:
            raise UnsupportedNetwork("a constant for each row of the batch")
        constant = constant[0]
    return constant


def _scaled(trace: Trace, place: int, factor: Any, shift: Any) -> int:
    shape = trace.shape(place)
    factor, shift = (_constant(trace, value, len(shape) + 1) for value in (factor, shift))
    bias = shift if bool((shift != 0).any()) else None
    return trace.add(Scale((place,), shape, shape, bias, factor))


def _weighted(trace: Trace, places: tuple[int, ...], weights: tuple[float, ...]) -> int:
    shapes = {trace.shape(place) for place in places}
    if len(shapes) > 1:
        raise UnsupportedNetwork("a sum of values of different shapes")
    return trace.add(Sum(places, shapes.pop(), weights))


def _add(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any, sign: float = 1.0) -> int:
    left, right, weight = trace.place(args[0]), trace.place(args[1]), sign * kwargs.get("alpha", 1)
    if left is not None and right is not None:
        return _weighted(trace, (left, right), (1.0, weight))
    if left is not None:
        return _scaled(trace, left, 1.0, weight * _number(args[1]))
    if right is None:
        raise UnsupportedNetwork("a sum without an input")
    return _scaled(trace, right, weight, _number(args[0]))


def _sub(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    return _add(trace, func, args, kwargs, out, -1.0)


def _rsub(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    return _scaled(trace, _the_input(trace, args), -1.0, _number(args[1]))


def _mul(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    both = args if trace.place(args[0]) is not None else (args[1], args[0])
    return _scaled(trace, _the_input(trace, both), both[1], 0.0)


def _div(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    return _scaled(trace, _the_input(trace, args), 1 / _number(args[1]), 0.0)


def _neg(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    return _scaled(trace, _the_input(trace, args), -1.0, 0.0)


def _number(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value


def _where(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    """With a condition that does not depend on the input, each number is one of two values."""
    condition, yes, no = args
    if trace.tracked(condition):
        raise UnsupportedNetwork("the operation where, by a condition that depends on the input")
    parts, shift = [], torch.zeros_like(trace.like[0, ..., :0].sum())
    for value, chosen in ((yes, condition), (no, ~condition)):
        place = trace.place(value)
        if place is None:
            shift = shift + torch.where(chosen, value, 0)
        else:
            parts.append((place, chosen.to(trace.like.dtype)))
    if len(parts) == 2 and parts[0][0] == parts[1][0]:
        return parts[0][0]
    if len(parts) == 2:
        raise UnsupportedNetwork("the operation where, between two values that depend on the input")
    return _scaled(trace, parts[0][0], parts[0][1], shift)


def _addmm(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    bias = kwargs.get("beta", 1) * _constant(trace, args[0], 2)
    return _dense(trace, args[1:3], kwargs.get("alpha", 1), bias)


def _mm(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    return _dense(trace, args, 1, None)


def _mv(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    return _reshaped(trace, _dense(trace, (args[0], args[1][:, None]), 1, None), ())


def _dense(trace: Trace, args: tuple, alpha: float, bias: Tensor | None) -> int:
    place = _the_input(trace, args)
    weight = alpha * args[1].detach().T
    source = trace.shape(place)
    return trace.add(Dense((place,), (len(weight),), source, bias, weight))


def _convolution(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    x, weight, bias, stride, padding, dilation, transposed, _, groups = args[:9]
    if transposed:
        raise UnsupportedNetwork("a transposed convolution")
    place = _the_input(trace, (x, weight, bias))
    spread = [1] * (weight.ndim - 2)
    bias = None if bias is None else bias.detach().reshape(-1, *spread)
    node = Convolution(
        (place,), tuple(out.shape[1:]), trace.shape(place), bias, weight.detach(),
        list(stride), list(padding), list(dilation), groups,
    )  # fmt: skip
    return trace.add(node)


def _batch_norm(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    """(x - mean) / sqrt(var + eps) weight + bias with the running statistics: a Scale."""
    x, weight, bias, mean, var = args[:5]
    if mean is None or (isinstance(args[5], bool) and args[5]):
        raise UnsupportedNetwork("batch norm by the statistics of the batch")
    factor = (var + args[-1]).rsqrt() * (1.0 if weight is None else weight)
    shift = (0.0 if bias is None else bias) - mean * factor
    spread = (-1, *[1] * (x.ndim - 2))
    return _scaled(
        trace, _the_input(trace, args), factor.reshape(1, *spread), shift.reshape(1, *spread)
    )


def _relu(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    slope = float(args[1]) if len(args) > 1 else 0.0
    place = _the_input(trace, args)
    if not 0 <= slope <= 1:
        raise UnsupportedNetwork(f"a leaky ReLU with slope {slope:g}")
    return trace.add(Relu((place,), trace.shape(place), slope))


def _leaky_relu(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    return _relu(trace, func, (*args, 0.01)[:2], kwargs, out)


def _clamp(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    """low + relu(x - low) - relu(x - high), or relu alone."""
    place = _the_input(trace, args)
    low, high = ([*args[1:], None, None])[:2]
    shape = trace.shape(place)

    def above(level: Any) -> int:
        shifted = place if level == 0 else _scaled(trace, place, 1.0, -level)
        return trace.add(Relu((shifted,), shape, 0.0))

    if isinstance(low, Tensor) or isinstance(high, Tensor):
        raise UnsupportedNetwork("a clamp by tensors")
    parts = place if low is None else above(low)
    if high is not None:
        parts = _weighted(trace, (parts, above(high)), (1.0, -1.0))
    return parts if not low else _scaled(trace, parts, 1.0, low)


def _hardtanh(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    return _clamp(trace, func, args if args[1:] else (*args, -1.0, 1.0), kwargs, out)


def _abs(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    place = _the_input(trace, args)
    shape = trace.shape(place)
    sides = (place, _scaled(trace, place, -1.0, 0.0))
    return _weighted(trace, tuple(trace.add(Relu((s,), shape, 0.0)) for s in sides), (1.0, 1.0))  # type: ignore[arg-type]


def _maximum(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    """a + relu(b - a)."""
    left, right = trace.place(args[0]), trace.place(args[1])
    if left is None or right is None:
        raise UnsupportedNetwork("a maximum with a constant")
    over = _weighted(trace, (right, left), (1.0, -1.0))
    return _weighted(trace, (left, trace.add(Relu((over,), trace.shape(over), 0.0))), (1.0, 1.0))


def _max_pool(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    place = _the_input(trace, args)
    kernel, *others = args[1:]
    stride, padding, dilation, ceil = (*others, *[None] * 4)[:4]
    if ceil or len(trace.shape(place)) != 3:
        raise UnsupportedNetwork("max pooling with ceil_mode, or without a batch")
    node = MaxPool(
        (place,), tuple(out[0].shape[1:]), list(kernel), list(stride or kernel),
        list(padding or [0, 0]), list(dilation or [1, 1]), trace.shape(place),
    )  # fmt: skip
    return trace.add(node)


def _reshaped(trace: Trace, place: int, shape: tuple[int, ...]) -> int:
    source = trace.shape(place)
    if math.prod(source) != math.prod(shape):
        raise UnsupportedNetwork(f"a reshape that mixes examples, from {source} to {shape}")
    if source == shape:
        return place
    return trace.add(Rearrange((place,), shape, source, None, lambda t: t.reshape(len(t), *shape)))


def _view(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    if len(out) != len(trace.like):
        raise UnsupportedNetwork(f"a reshape that mixes examples, to {tuple(out.shape)}")
    return _reshaped(trace, _the_input(trace, args), tuple(out.shape[1:]))


def _same(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    if out.dtype != trace.like.dtype:
        raise UnsupportedNetwork(f"a change of type to {out.dtype}")
    return _the_input(trace, args)


def _rearranged(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Any:
    place = _the_input(trace, args)
    source = trace.shape(place)
    many = isinstance(out, tuple | list)

    def node(i: int | None) -> int:
        def function(t: Tensor) -> Tensor:
            result = func(t, *args[1:], **kwargs)
            return result if i is None else result[i]

        shape = tuple((out if i is None else out[i]).shape[1:])
        # At most so many numbers go into one output; it only matters for the rounding.
        terms = max(1, math.prod(source) // max(1, math.prod(shape)))
        return trace.add(Rearrange((place,), shape, source, None, function, terms))

    return [node(i) for i in range(len(out))] if many else node(None)


def _average(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    if len(args) > 6 and args[6] is not None and args[6] < 0:
        raise UnsupportedNetwork("average pooling with a negative divisor")
    return _rearranged(trace, func, args, kwargs, out)


def _pad(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    sides, value = [*args[1:], 0][:2]
    if value != 0 or min(sides) < 0:
        raise UnsupportedNetwork("padding by other numbers than zero")
    return _rearranged(trace, func, args, kwargs, out)


def _cat(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    """A sum of the parts, each surrounded by zeros."""
    parts, dim = args[0], int([*args, 0][1]) % out.ndim
    places = [place for part in parts if (place := trace.place(part)) is not None]
    if dim == 0 or len(places) < len(parts):
        raise UnsupportedNetwork("joining along the batch, or with constants")
    padded, first, shape = [], 0, tuple(out.shape[1:])
    for part, place in zip(parts, places, strict=True):
        edges = [0, 0] * (out.ndim - 1 - dim) + [first, out.shape[dim] - first - part.shape[dim]]
        first += part.shape[dim]
        function = lambda t, edges=edges: torch.constant_pad_nd(t, edges)  # noqa: E731
        padded.append(trace.add(Rearrange((place,), shape, tuple(part.shape[1:]), None, function)))
    return _weighted(trace, tuple(padded), (1.0,) * len(padded))


OPERATIONS: dict[str, Reader] = {
    "add": _add,
    "sub": _sub,
    "rsub": _rsub,
    "mul": _mul,
    "div": _div,
    "neg": _neg,
    "where": _where,
    "addmm": _addmm,
    "mm": _mm,
    "mv": _mv,
    "convolution": _convolution,
    "_convolution": _convolution,
    "native_batch_norm": _batch_norm,
    "_native_batch_norm_legit_no_training": _batch_norm,
    "relu": _relu,
    "leaky_relu": _leaky_relu,
    "clamp": _clamp,
    "clamp_min": _clamp,
    "hardtanh": _hardtanh,
    "abs": _abs,
    "maximum": _maximum,
    "max_pool2d_with_indices": _max_pool,
    "avg_pool2d": _average,
    "view": _view,
    "_unsafe_view": _view,
    "clone": _same,
    "detach": _same,
    "alias": _same,
    "_to_copy": _same,
    "lift_fresh": _same,
    "constant_pad_nd": _pad,
    "cat": _cat,
    **dict.fromkeys(
        [
            "_adaptive_avg_pool2d",
            "mean",
            "sum",
            "permute",
            "transpose",
            "unsqueeze",
            "squeeze",
            "slice",
            "select",
            "index",
            "split",
            "split_with_sizes",
        ],
        _rearranged,
    ),
}
