"""What readers of operations share: arguments, constants, and the commonest nodes."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .graph import Rearrange, Scale, Sum
from .layouts import BATCH, Layout, moved, numbered
from .tracing import Found, Trace, UnsupportedNetwork, flat


def the_value(trace: Trace, args: tuple) -> Found:
    """The first argument, when no other argument comes from the inputs."""
    found = trace.found(args[0])
    if found is None or any(trace.tracked(other) for other in flat(args[1:])):
        raise UnsupportedNetwork("arguments that depend on the input where none may")
    return found


def the_batch(trace: Trace, args: tuple) -> int:
    """The same, for operations that are read only where examples come first."""
    place, layout = the_value(trace, args)
    if layout != BATCH:
        raise UnsupportedNetwork("examples on another axis than the first")
    return place


def constant(trace: Trace, value: Any, place: int, layout: Layout = BATCH) -> Tensor:
    """A number or tensor as it meets one example of a value, to be broadcast over examples."""
    like, shape = trace.like, trace.shape(place)
    found = torch.as_tensor(value, dtype=like.dtype, device=like.device).detach()
    if not bool(found.isfinite().all()):
        raise UnsupportedNetwork("a constant that is not finite, such as a mask by -inf")
    if layout == BATCH:
        if found.ndim <= len(shape):
            return found
        rows = found
    elif found.ndim == 0:
        return found
    else:
        real = layout.as_it_was(like.new_empty(1, *shape).expand(len(like), *shape)).shape
        rows = layout.by_example(found.expand(real), len(like))
    if not bool((rows == rows[:1]).all()):
        raise UnsupportedNetwork("a constant for each row of the batch")
    return rows[0]


def scaled(trace: Trace, found: Found, factor: Any, shift: Any) -> Found:
    """factor x + shift, entry by entry."""
    place, layout = found
    shape = trace.shape(place)
    factor, shift = (constant(trace, value, place, layout) for value in (factor, shift))
    if max(factor.ndim, shift.ndim) > 0:
        full = np.broadcast_shapes(shape, factor.shape, shift.shape)
        place = expanded(trace, place, tuple(full))
        shape = trace.shape(place)
    bias = shift if bool((shift != 0).any()) else None
    if bias is None and factor.ndim == 0 and float(factor) == 1:
        return place, layout
    return trace.add(Scale((place,), shape, shape, bias, factor)), layout


def expanded(trace: Trace, place: int, shape: tuple[int, ...]) -> int:
    """One example broadcast to a shape."""
    source = trace.shape(place)
    if source == shape:
        return place
    padded = (1,) * (len(shape) - len(source)) + source

    def function(t: Tensor) -> Tensor:
        return t.reshape(len(t), *padded).expand(len(t), *shape)

    wide = tuple(1 + i for i, (m, k) in enumerate(zip(shape, padded, strict=True)) if m != k)

    def total(a: Tensor) -> Tensor:
        return a.sum(wide).reshape(len(a), *source)

    return trace.add(Rearrange((place,), shape, source, None, function, 1, total))


def summed(trace: Trace, places: tuple[int, ...], weights: tuple[float, ...]) -> int:
    shapes = {trace.shape(place) for place in places}
    if len(shapes) > 1:
        raise UnsupportedNetwork("a sum of values of different shapes")
    return trace.add(Sum(places, shapes.pop(), weights))


def aligned(trace: Trace, left: Tensor, right: Tensor) -> tuple[int, int, Layout]:
    """Two values broadcast against each other."""
    shape = np.broadcast_shapes(left.shape, right.shape)
    found = [move(trace, value, lambda t: t.expand(shape)) for value in (left, right)]
    (a, where), (b, other) = found
    if where != other or trace.shape(a) != trace.shape(b):
        raise UnsupportedNetwork("operations that mix examples")
    return a, b, where


def move(
    trace: Trace, value: Tensor, function: Callable[[Tensor], Tensor], *, native: bool = False
) -> Found:
    """A function that only moves, drops or repeats numbers, read from what it does to numbers that
    count: so it does not matter on which axis the examples are.

    Args:
        trace: The trace.
        value: What is moved.
        function: How.
        native: Whether the graph may run the function itself, which is faster than gathering, where
            examples come first before and after and it does the same to one of them alone.
    """
    found = trace.found(value)
    if found is None:
        raise UnsupportedNetwork("a value that is not computed from the input")
    place, before = found
    source, n = trace.shape(place), len(trace.like)
    size = max(1, math.prod(source))
    numbers = _laid_out_as(value, numbered(before, source, trace.like))
    marks = function(numbers)
    where = moved(marks, n, size)
    if where is None:
        raise UnsupportedNetwork(f"operations that mix examples, into {tuple(marks.shape)}")
    layout, origin = where
    shape, flat_origin = tuple(origin.shape), origin.reshape(-1)
    if torch.equal(flat_origin, torch.arange(size, device=origin.device)):
        return reshaped(trace, place, shape), layout

    def gather(t: Tensor) -> Tensor:
        return t.reshape(len(t), -1)[:, flat_origin].reshape(len(t), *shape)

    def scatter(a: Tensor) -> Tensor:
        back = a.new_zeros(len(a), size).index_add_(1, flat_origin, a.reshape(len(a), -1))
        return back.reshape(len(a), *source)

    run = gather
    if native and before == layout == BATCH and torch.equal(function(numbers[:1])[0], origin):
        run = function
    return trace.add(Rearrange((place,), shape, source, None, run, 1, scatter)), layout


def _laid_out_as(value: Tensor, numbers: Tensor) -> Tensor:
    """The same strides, where every number has a place of its own: what a view asks for."""
    if 0 in value.stride():
        return numbers.contiguous()
    return torch.empty_strided(
        value.shape, value.stride(), dtype=numbers.dtype, device=numbers.device
    ).copy_(numbers)


def reshaped(trace: Trace, place: int, shape: tuple[int, ...]) -> int:
    source = trace.shape(place)
    if math.prod(source) != math.prod(shape):
        raise UnsupportedNetwork(f"a reshape that mixes examples, from {source} to {shape}")
    if source == shape:
        return place
    node = Rearrange(
        (place,), shape, source, None, lambda t: t.reshape(len(t), *shape), 1,
        lambda a: a.reshape(len(a), *source),
    )  # fmt: skip
    return trace.add(node)
