"""What each tensor operation is in a graph: readers of affine operations, and the table of all."""

import math
from typing import Any, cast

import torch
from torch import Tensor

from . import read_nonlinear as nonlinear
from . import scalar_functions as scalar
from .graph import Convolution, Dense, Rearrange
from .layouts import BATCH, Layout
from .readers import aligned, constant, move, reshaped, scaled, summed, the_batch, the_value
from .tracing import Found, Reader, Trace, UnsupportedNetwork


def _add(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any, sign: float = 1.0) -> Found:
    left, right, weight = trace.found(args[0]), trace.found(args[1]), sign * kwargs.get("alpha", 1)
    if left is not None and right is not None:
        a, b, layout = aligned(trace, args[0], args[1])
        return summed(trace, (a, b), (1.0, weight)), layout
    if left is not None:
        return scaled(trace, left, 1.0, weight * _number(args[1]))
    if right is None:
        raise UnsupportedNetwork("a sum without an input")
    return scaled(trace, right, weight, _number(args[0]))


def _sub(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    return _add(trace, func, args, kwargs, out, -1.0)


def _rsub(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    return scaled(trace, the_value(trace, args), -1.0, _number(args[1]))


def _mul(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    left, right = trace.found(args[0]), trace.found(args[1])
    if left is not None and right is not None:
        a, b, layout = aligned(trace, args[0], args[1])
        return nonlinear.product(trace, a, (b, layout))
    both = args if left is not None else (args[1], args[0])
    return scaled(trace, the_value(trace, both), both[1], 0.0)


def _div(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    if kwargs.get("rounding_mode") is not None:
        raise UnsupportedNetwork("a division that rounds")
    left, right = trace.found(args[0]), trace.found(args[1])
    if right is None:
        return scaled(trace, the_value(trace, args), 1 / _number(args[1]), 0.0)
    if left is None:
        turned = nonlinear.applied(trace, right, scalar.RECIPROCAL)
        return scaled(trace, turned, _number(args[0]), 0.0)
    a, b, layout = aligned(trace, args[0], args[1])
    return nonlinear.product(trace, a, nonlinear.applied(trace, (b, layout), scalar.RECIPROCAL))


def _neg(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    return scaled(trace, the_value(trace, args), -1.0, 0.0)


def _number(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value


def _where(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    """With a condition that does not depend on the input, each number is one of two values."""
    condition, yes, no = args
    if trace.tracked(condition):
        raise UnsupportedNetwork("the operation where, by a condition that depends on the input")
    parts, shift = [], torch.zeros_like(trace.like[0, ..., :0].sum())
    for value, chosen in ((yes, condition), (no, ~condition)):
        found = trace.found(value)
        if found is None:
            shift = shift + torch.where(chosen, value, 0)
        else:
            parts.append((found, chosen.to(trace.like.dtype)))
    if len(parts) == 2 and parts[0][0] == parts[1][0]:
        return parts[0][0]
    if len(parts) == 2:
        raise UnsupportedNetwork("the operation where, between two values that depend on the input")
    return scaled(trace, parts[0][0], parts[0][1], shift)


def _addmm(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    if trace.tracked(args[0]):
        raise UnsupportedNetwork("a bias that depends on the input")
    place, layout = _dense(trace, args[1:3], kwargs.get("alpha", 1))
    node = cast(Dense, trace.nodes[place])
    shift = constant(trace, kwargs.get("beta", 1) * args[0], place, layout)
    trace.nodes[place] = Dense(node.inputs, node.shape, node.source, shift, node.weight)
    return place, layout


def _mm(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    return _dense(trace, args, 1)


def _mv(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    place, layout = _dense(trace, (args[0], args[1][:, None]), 1)
    if layout != BATCH:
        raise UnsupportedNetwork("a product with a vector that mixes examples")
    return reshaped(trace, place, ())


def _dense(trace: Trace, args: tuple, alpha: float) -> Found:
    if trace.tracked(args[1]):
        raise UnsupportedNetwork("operations that mix examples: a product of two batches")
    place, layout = the_value(trace, args)
    if layout.axis == args[0].ndim - 1:
        raise UnsupportedNetwork("a dense layer over the batch")
    weight = args[1].detach().T if alpha == 1 else alpha * args[1].detach().T
    source = trace.shape(place)
    return trace.add(Dense((place,), (*source[:-1], len(weight)), source, None, weight)), layout


def _bmm(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    if trace.found(args[0]) is not None and trace.found(args[1]) is not None:
        return nonlinear.matrix_product(trace, args[0], args[1])
    if trace.found(args[0]) is None:
        raise UnsupportedNetwork("a batch of matrices times values that depend on the input")
    if not bool((args[1] == args[1][:1]).all()):
        raise UnsupportedNetwork("a batch of different matrices")
    return _dense(trace, (args[0], args[1][0]), 1)


def _convolution(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    x, weight, bias, stride, padding, dilation, transposed, _, groups = args[:9]
    if transposed:
        raise UnsupportedNetwork("a transposed convolution")
    place = the_batch(trace, (x, weight, bias))
    spread = [1] * (weight.ndim - 2)
    bias = None if bias is None else bias.detach().reshape(-1, *spread)
    node = Convolution(
        (place,), tuple(out.shape[1:]), trace.shape(place), bias, weight.detach(),
        list(stride), list(padding), list(dilation), groups,
    )  # fmt: skip
    return trace.add(node)


def _batch_norm(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    """(x - mean) / sqrt(var + eps) weight + bias with the running statistics: a Scale."""
    x, weight, bias, mean, var = args[:5]
    if mean is None or (isinstance(args[5], bool) and args[5]):
        return nonlinear.instance_norm(trace, args)
    factor = (var + args[-1]).rsqrt() * (1.0 if weight is None else weight)
    shift = (0.0 if bias is None else bias) - mean * factor
    spread = (-1, *[1] * (x.ndim - 2))
    place = the_batch(trace, args)
    return scaled(trace, (place, BATCH), factor.reshape(spread), shift.reshape(spread))


def _same(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    if out.dtype != trace.like.dtype:
        raise UnsupportedNetwork(f"a change of type to {out.dtype}")
    return the_value(trace, args)


# Moves, and linear functions without negative entries.


def _view(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    place, layout = the_value(trace, args)
    if layout == BATCH and out.ndim and len(out) == len(trace.like):
        return reshaped(trace, place, tuple(out.shape[1:])), BATCH
    return _moved(trace, func, args, kwargs, out)


def _moved(
    trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any, native: bool = False
) -> Any:
    the_value(trace, args)
    if isinstance(out, tuple | list):
        return [
            move(trace, args[0], lambda t, i=i: func(t, *args[1:], **kwargs)[i], native=native)
            for i in range(len(out))
        ]
    return move(trace, args[0], lambda t: func(t, *args[1:], **kwargs), native=native)


def _cut(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Any:
    """Moves whose arguments do not hold the number of examples."""
    return _moved(trace, func, args, kwargs, out, native=True)


def _averaged(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    """Linear functions of each channel with no negative entry: pooling, interpolation, padding."""
    place = the_batch(trace, args)
    source, shape = trace.shape(place), tuple(out.shape[1:])
    # At most so many numbers go into one output, or four neighbours; only rounding asks.
    terms = max(4, math.prod(source) // max(1, math.prod(shape)))

    def function(t: Tensor) -> Tensor:
        return func(t, *args[1:], **kwargs)

    return trace.add(Rearrange((place,), shape, source, None, function, terms))


def _average(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    if len(args) > 6 and args[6] is not None and args[6] < 0:
        raise UnsupportedNetwork("average pooling with a negative divisor")
    return _averaged(trace, func, args, kwargs, out)


def _reduced(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    """A sum or mean over axes of an example."""
    x, mean = args[0], func.overloadpacket.__name__ == "mean"
    place, layout = the_value(trace, args)
    dims = [*args[1:], None][0] or list(range(x.ndim))
    dims = [dim % x.ndim for dim in (dims if isinstance(dims, list | tuple) else [dims])]
    keep = bool([*args[2:], kwargs.get("keepdim", False)][0])
    axes = [layout.dim(dim, x.ndim) for dim in dims]
    if layout.axis in dims or None in axes:
        raise UnsupportedNetwork(f"a {'mean' if mean else 'sum'} over the batch")
    axes = [axis for axis in axes if axis is not None]
    source = trace.shape(place)
    count = math.prod(source[axis - 1] for axis in axes)

    def function(t: Tensor) -> Tensor:
        return t.mean(axes, keepdim=keep) if mean else t.sum(axes, keepdim=keep)

    shape = tuple(
        1 if i + 1 in axes else length
        for i, length in enumerate(source)
        if keep or i + 1 not in axes
    )
    after = layout.axis - (0 if keep else sum(dim < layout.axis for dim in dims))
    node = Rearrange((place,), shape, source, None, function, max(1, count))
    return trace.add(node), Layout(after, layout.pre, layout.post)


def _variance(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    """The mean of squares about the mean, times k / (k - correction)."""
    x, dims = args[0], args[1] if len(args) > 1 else None
    place, layout = the_value(trace, args)
    dims = [dim % x.ndim for dim in (dims or range(x.ndim))]
    if layout != BATCH or 0 in dims:
        raise UnsupportedNetwork("a variance over the batch, or with examples on another axis")
    shape = trace.shape(place)
    axes = tuple(dim - x.ndim for dim in dims)
    count = math.prod(shape[axis] for axis in axes)
    correction = kwargs.get("correction", 1)
    rest = count - (1 if correction is None else correction)
    if rest <= 0:
        raise UnsupportedNetwork("a variance of one number")
    square = nonlinear.applied(
        trace, (nonlinear.centered(trace, place, axes), BATCH), scalar.power(2)
    )
    keep = bool(kwargs.get("keepdim", False))
    inner = Rearrange(
        (square[0],), tuple(out.shape[1:]), shape, None, lambda t: t.mean(axes, keepdim=keep), count
    )
    return scaled(trace, (trace.add(inner), BATCH), count / rest, 0.0)


def _deviation(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    return nonlinear.applied(trace, _variance(trace, func, args, kwargs, out), scalar.SQRT)


def _pad(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> int:
    sides, value = [*args[1:], 0][:2]
    if value != 0 or min(sides) < 0:
        raise UnsupportedNetwork("padding by other numbers than zero")
    return _averaged(trace, func, args, kwargs, out)


def _cat(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    """A sum of the parts, each surrounded by zeros; constants are a shift."""
    parts, dim = args[0], int([*args, 0][1]) % out.ndim
    if dim == 0 or any(found[1] != BATCH for part in parts if (found := trace.found(part))):
        raise UnsupportedNetwork("joining along the batch, or with examples on another axis")
    shape = tuple(out.shape[1:])
    padded, first, shift = [], 0, trace.like.new_zeros(shape)
    for part in parts:
        place, last = trace.place(part), first + part.shape[dim]
        edges = [0, 0] * (out.ndim - 1 - dim) + [first, out.shape[dim] - last]
        if place is None:
            if not bool((part == part[:1]).all()):
                raise UnsupportedNetwork("a constant for each row of the batch")
            shift = shift + torch.constant_pad_nd(part[0].detach(), edges)
        else:
            source, function = tuple(part.shape[1:]), _padding(edges)
            padded.append(trace.add(Rearrange((place,), shape, source, None, function)))
        first = last
    return scaled(trace, (summed(trace, tuple(padded), (1.0,) * len(padded)), BATCH), 1.0, shift)


def _padding(edges: list[int]):
    return lambda t: torch.constant_pad_nd(t, edges)


def _stack(trace: Trace, func: Any, args: tuple, kwargs: dict, out: Any) -> Found:
    """Joins values along a new axis."""
    dim = int([*args, 0][1]) % out.ndim
    parts = []
    for part in args[0]:
        wide = part.unsqueeze(dim)
        if trace.tracked(part):
            trace._track(wide, move(trace, part, lambda t: t.unsqueeze(dim)))
        parts.append(wide)
    return _cat(trace, func, (parts, dim), {}, out)


_ELEMENTWISE = {
    "sigmoid": scalar.SIGMOID,
    "tanh": scalar.TANH,
    "erf": scalar.ERF,
    "atan": scalar.ATAN,
    "silu": scalar.SILU,
    "mish": scalar.MISH,
    "hardswish": scalar.HARDSWISH,
    "exp": scalar.EXP,
    "expm1": scalar.EXPM1,
    "log": scalar.LOG,
    "log1p": scalar.LOG1P,
    "sqrt": scalar.SQRT,
    "rsqrt": scalar.RSQRT,
    "reciprocal": scalar.RECIPROCAL,
    "square": scalar.power(2),
    "log_sigmoid_forward": scalar.LOG_SIGMOID,
}
_CUTS = ["permute", "transpose", "slice", "select", "split", "split_with_sizes", "unbind", "flip"]
_MOVES = ["index", "expand", "repeat", "roll", "unfold", "t", "diagonal", "squeeze"]
_MOVES += ["unsqueeze", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle", "index_select"]
_MOVES += [f"{kind}_pad{d}d" for kind in ("reflection", "replication") for d in (1, 2, 3)]

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
    "bmm": _bmm,
    "convolution": _convolution,
    "_convolution": _convolution,
    "native_batch_norm": _batch_norm,
    "_native_batch_norm_legit": _batch_norm,
    "_native_batch_norm_legit_no_training": _batch_norm,
    "native_layer_norm": nonlinear.layer_norm,
    "native_group_norm": nonlinear.group_norm,
    "relu": nonlinear.relu,
    "leaky_relu": nonlinear.leaky_relu,
    "_prelu_kernel": nonlinear.prelu,
    "clamp": nonlinear.clamp,
    "clamp_min": nonlinear.clamp,
    "clamp_max": nonlinear.clamp_max,
    "hardtanh": nonlinear.hardtanh,
    "hardsigmoid": nonlinear.hardsigmoid,
    "abs": nonlinear.absolute,
    "maximum": nonlinear.maximum,
    "minimum": nonlinear.minimum,
    "glu": nonlinear.glu,
    "gelu": nonlinear.gelu,
    "softplus": nonlinear.softplus,
    "elu": nonlinear.elu,
    "celu": nonlinear.celu,
    "pow": nonlinear.power,
    "_softmax": nonlinear.softmax,
    "_safe_softmax": nonlinear.softmax,
    "_log_softmax": nonlinear.log_softmax,
    "max_pool2d_with_indices": nonlinear.max_pool,
    "adaptive_max_pool2d": nonlinear.adaptive_max_pool,
    "amax": nonlinear.largest,
    "max": nonlinear.largest,
    "avg_pool2d": _average,
    "avg_pool3d": _average,
    "_adaptive_avg_pool2d": _averaged,
    "mean": _reduced,
    "sum": _reduced,
    "var": _variance,
    "std": _deviation,
    "view": _view,
    "_unsafe_view": _view,
    "_reshape_alias": _view,
    "clone": _same,
    "detach": _same,
    "alias": _same,
    "_to_copy": _same,
    "lift_fresh": _same,
    "constant_pad_nd": _pad,
    "cat": _cat,
    "stack": _stack,
    **{name: nonlinear.elementwise(function) for name, function in _ELEMENTWISE.items()},
    **dict.fromkeys(["upsample_nearest1d", "upsample_nearest2d"], _averaged),
    **dict.fromkeys(["upsample_linear1d", "upsample_bilinear2d"], _averaged),
    **dict.fromkeys(_CUTS, _cut),
    **dict.fromkeys(_MOVES, _moved),
}
