"""Backward linear relaxation: CROWN (Zhang et al. 2018) and CROWN-IBP (Zhang et al. 2020)."""

import math
from collections.abc import Callable, Iterator

import torch
from pydantic import PositiveFloat
from torch import Tensor

from ..threats import Ball
from ._graph.backward import Cross, Crossing, Pulled, pull, turns, units
from ._graph.graph import Graph, Sum
from ._graph.interval import over_intervals, propagate
from ._graph.margin_bounds import highest, worst_margins
from ._graph.region import Region
from ._graph.relaxations import Interval, lines
from .base import Certificate

ALONE = 2**16
"""Coefficients of one example from which it is done alone."""


class CrownIBP(Certificate):
    """Margins pulled back to the input through lines above and below each ReLU.

    The lines come from interval bounds, so the cost is that of one backward pass a class. Never
    looser than IBP, whose bound is taken where it is smaller.
    """

    name = "crown_ibp"

    def bound(self, graph: Graph, region: Region, y: Tensor) -> Tensor:
        return _relaxed(graph, region, y, propagate(graph, region))


class Crown(Certificate):
    """The same, with the bounds of every hidden number found by pulling it back as well.

    Never looser than CROWN-IBP, whose bound is taken where it is smaller. Hidden numbers whose sign
    the intervals settle are left alone, and the others are done in turns, so memory stays flat.
    """

    name = "crown"

    work: PositiveFloat = 3e10
    """Multiplications an example at most; a larger network is refused."""

    def objection(self, graph: Graph, ball: Ball) -> str | None:
        asked = {i for k in graph.nonlinear() for i in graph.nodes[k].inputs}
        need = sum(
            2 * math.prod(graph.nodes[i].shape) * graph.work(i) for i in asked if graph.crossed[i]
        )
        if need <= self.work:
            return None
        return (
            f"it may take {need:.2g} multiplications an example, more than work={self.work:.2g}; "
            "crown_ibp is cheaper"
        )

    def bound(self, graph: Graph, region: Region, y: Tensor) -> Tensor:
        loose = propagate(graph, region)
        tight = tightened(graph, region)
        return torch.minimum(_relaxed(graph, region, y, loose), _relaxed(graph, region, y, tight))


def _relaxed(graph: Graph, region: Region, y: Tensor, found: list[Interval]) -> Tensor:
    """The better of relaxation and intervals, both from the same hidden bounds."""
    return torch.minimum(
        worst_margins(graph, region, y, over_lines(graph, found)),
        worst_margins(graph, region, y, over_intervals(found)),
    )


def over_lines(graph: Graph, found: list[Interval]) -> Cross:
    """The crossing of linear relaxation, the lines made from these bounds of all inputs."""
    known = {}

    def cross(k: int, a: Tensor, rows: Tensor) -> Crossing:
        if k not in known:
            node = graph.nodes[k]
            known[k] = lines(node, found[node.inputs[0]])
        return known[k].cross(a, rows)

    return cross


def tightened(graph: Graph, region: Region) -> list[Interval]:
    """Intervals of all values, those of unsettled hidden numbers by linear relaxation."""
    crosses: list[Callable[[int, Tensor, Tensor], Crossing]] = []

    def refine(k: int, found: list[Interval], box: Interval) -> Interval:
        if not graph.crossed[k] and (region.ball.norm != "linf" or _is_one_layer(graph, k)):
            return box
        if not crosses:
            # The list grows as the network is passed, and the lines are made when first needed.
            crosses.append(over_lines(graph, found))
        return _pulled_back(graph, k, region, crosses[0], box)

    return propagate(graph, region, refine)


def _is_one_layer(graph: Graph, target: int) -> bool:
    """Whether intervals are exact already: at most one layer that mixes numbers."""
    mixing = [graph.nodes[k] for k in graph.behind(target) if k > 0]
    mixing = [node for node in mixing if isinstance(node, Sum) or node.fan > 1]  # type: ignore[attr-defined]
    return len(mixing) <= 1


def _pulled_back(
    graph: Graph, target: int, region: Region, cross: Cross, box: Interval
) -> Interval:
    """Both ends for the numbers whose sign is open, by pairs of number and example.

    Up to the last nonlinear operation before them, all examples share the coefficients.
    """
    low, high = (end.reshape(len(end), -1).clone() for end in box)
    places, rows = ((low < 0) & (high > 0)).T.nonzero(as_tuple=True)
    open_places, which = places.unique_consecutive(return_inverse=True)
    shape, width = graph.nodes[target].shape, graph.widest(target)
    for few in turns(len(open_places), width):
        a = units(open_places[few], shape, region.center)
        shared = pull(graph, Pulled.start(target, a), rows, None)
        pairs = ((which >= few.start) & (which < few.stop)).nonzero()[:, 0]
        for p, r in _jobs(pairs, rows, width):
            own, i = which[p] - few.start, places[p]
            high[r, i] = highest(graph, shared.rows(own), r, region, cross, tight=False)
            low[r, i] = -highest(graph, shared.rows(own, -1.0), r, region, cross, tight=False)
    return low.reshape(box[0].shape), high.reshape(box[0].shape)


def _jobs(pairs: Tensor, rows: Tensor, width: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Pairs to be done at once and their rows: one example at a time where that is work enough.

    A single row is broadcast over its pairs, which saves a copy of its lines for each.
    """
    if len(pairs) * width < len(rows.unique()) * ALONE:
        for part in turns(len(pairs), width):
            yield pairs[part], rows[pairs[part]]
        return
    ordered = pairs[rows[pairs].argsort(stable=True)]
    for same in ordered.split(rows[ordered].unique_consecutive(return_counts=True)[1].tolist()):
        for part in turns(len(same), width):
            yield same[part], rows[same[:1]]
