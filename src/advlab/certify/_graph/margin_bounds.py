"""Upper bounds of margins: one specification a pair of example and rival class."""

from collections.abc import Iterator

import torch
from torch import Tensor

from ...core.errors import AdvlabError
from ...losses import check_labels, margin
from .backward import Cross, Pulled, pull, turns
from .graph import Graph
from .region import Region


def highest(
    graph: Graph, start: Pulled, rows: Tensor, region: Region, cross: Cross, tight: bool
) -> Tensor:
    """At least the maximum over the sets of these rows, rounding included.

    The slack is eps of the dtype times `graph.rounding` times the sum of absolute terms: a rule of
    thumb for rounding errors of random sign, many times larger than what is seen, but no proof. In
    float64 it is far below anything that matters.
    """
    pulled = pull(graph, start, rows, cross)
    bound, size = pulled.constant, pulled.size
    if 0 in pulled.waiting:
        value, terms = region.highest(pulled.waiting[0], rows, tight)
        bound, size = bound + value, size + terms
    return bound + torch.finfo(bound.dtype).eps * graph.rounding * size


def worst_margins(graph: Graph, region: Region, y: Tensor, cross: Cross) -> Tensor:
    """At least the largest margin in the set of each example, over all rival classes."""
    worst = torch.full_like(region.center.flatten(1)[:, 0], -torch.inf)
    for a, rows in specifications(graph, y, region.center):
        bound = highest(graph, Pulled.start(graph.output, a), rows, region, cross, tight=True)
        worst = worst.scatter_reduce(0, rows, bound, "amax")
    # A bound that is not a number certifies nothing.
    return torch.where(worst.isnan(), torch.inf, worst)


def specifications(graph: Graph, y: Tensor, like: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Rows of e_j - e_y for every rival j of every example (or -y for one output), in turns."""
    shape = graph.nodes[graph.output].shape
    check_specifications(shape, y)
    rows = torch.arange(len(y))
    if shape in ((), (1,)):
        yield -y.to(like.dtype).reshape(-1, *shape), rows
        return
    rows, rival = (torch.arange(shape[0]) != y[:, None]).nonzero(as_tuple=True)
    for part in turns(len(rows), graph.widest(graph.output)):
        own, other = rows[part], rival[part]
        a = torch.zeros(len(own), shape[0], dtype=like.dtype)
        a[torch.arange(len(own)), other] = 1
        a[torch.arange(len(own)), y[own]] = -1
        yield a, own


def check_specifications(shape: tuple[int, ...], y: Tensor) -> None:
    """Labels must fit the outputs, as they must for the margin itself."""
    if len(shape) > 1:
        raise AdvlabError("one row of scores an example", f"outputs of shape {shape}")
    outputs = torch.zeros(len(y), *shape)
    if shape in ((), (1,)):
        margin(outputs, y)
    else:
        check_labels(outputs, y)
