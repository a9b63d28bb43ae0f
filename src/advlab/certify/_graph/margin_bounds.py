"""Upper bounds of margins: one specification per pair of example and rival class."""

from collections.abc import Iterator

import torch
from torch import Tensor

from ...core.errors import AdvlabError
from ...losses import check_labels, margin
from .backward import LinearBound, Relaxation, chunks, propagate_backward
from .graph import Graph
from .input_sets import InputSets

ROUNDING = 2
"""In units of eps: 6.9 standard deviations of what rounding can do to the network (`rounding.py`),
or 4.9 with the backward pass, which computes the same sums the other way round."""
STRAY = 16
"""What a point may be outside of its set, in units of eps (`Ball.contains`)."""


def upper_bound(
    graph: Graph,
    start: LinearBound,
    rows: Tensor,
    sets: InputSets,
    relaxation: Relaxation,
    exact: bool,
    errors: list[Tensor | None] | None = None,
) -> Tensor:
    """At least the maximum of linear functions over the sets of these rows, rounding included.

    With `errors` the slack for rounding is by standard deviations of what rounding does to the
    network and to this bound (`rounding.py`). Without them it is eps times `graph.rounding` times
    the sum of absolute terms, a rule of thumb that is cheaper and mostly larger. Neither is a
    proof; both are many times what is seen. In float64 they are far below anything that matters.

    Args:
        graph: The network.
        start: The linear functions of its values.
        rows: The example of each, or one example for all.
        sets: The threat sets.
        relaxation: Bounds the nonlinear operations.
        exact: Whether linear functions of the input are to be maximised exactly, see
            `InputSets.upper_bound`.
        errors: The rounding errors of every value.
    """
    back = propagate_backward(graph, start, rows, relaxation, errors)
    bound, terms = back.constant, torch.zeros_like(back.constant)
    if 0 in back.coefficients:
        value, terms = sets.upper_bound(back.coefficients[0], rows, exact)
        bound = bound + value
    if errors is None:
        slack = graph.rounding * (back.magnitude + terms)
    else:
        slack = ROUNDING * back.variance.sqrt() + STRAY * terms + 4 * back.magnitude
    return bound + torch.finfo(bound.dtype).eps * slack


def worst_margins(
    graph: Graph,
    sets: InputSets,
    y: Tensor,
    relaxation: Relaxation,
    errors: list[Tensor | None] | None = None,
) -> Tensor:
    """At least the largest margin in the set of each example, over all rival classes."""
    worst = torch.full_like(sets.center.flatten(1)[:, 0], -torch.inf)
    for a, rows in specifications(graph, y, sets.center):
        start = LinearBound.of(graph.output, a)
        bound = upper_bound(graph, start, rows, sets, relaxation, True, errors)
        worst = worst.scatter_reduce(0, rows, bound, "amax")
    # A bound that is not a number certifies nothing.
    return torch.where(worst.isnan(), torch.inf, worst)


def specifications(graph: Graph, y: Tensor, like: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Rows of e_j - e_y for every rival j of every example (or -y for one output), in chunks."""
    shape = graph.nodes[graph.output].shape
    check_specifications(shape, y)
    rows = torch.arange(len(y), device=y.device)
    if shape in ((), (1,)):
        yield -y.to(like.dtype).reshape(-1, *shape), rows
        return
    rows, rival = (torch.arange(shape[0], device=y.device) != y[:, None]).nonzero(as_tuple=True)
    for part in chunks(len(rows), graph.max_width(graph.output)):
        own, other = rows[part], rival[part]
        a = like.new_zeros(len(own), shape[0])
        a = a.scatter(1, other[:, None], 1.0).scatter(1, y[own][:, None], -1.0)
        yield a, own


def check_specifications(shape: tuple[int, ...], y: Tensor) -> None:
    """Labels must fit the outputs, as they must for the margin itself."""
    if len(shape) > 1:
        raise AdvlabError("one row of scores per example", f"outputs of shape {shape}")
    outputs = torch.zeros(len(y), *shape, device=y.device)
    if shape in ((), (1,)):
        margin(outputs, y)
    else:
        check_labels(outputs, y)
