"""The worst margin itself of small networks with one hidden layer, by branch and bound."""

import heapq
import itertools
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from ..threats import Threat
from ._graph.convex_program import ConcaveRelaxation
from ._graph.graph import Graph
from ._graph.input_sets import InputSets
from ._graph.margin_bounds import specifications
from ._graph.nonlinear import Relu
from ._graph.one_hidden_layer import OneHiddenLayer, Score
from .base import Certificate


@dataclass(frozen=True)
class Solved:
    """The worst margin of each example lies between `lower`, which some point of its set has, and
    `upper`; where `exact`, the two meet to the tolerance."""

    upper: Float[Tensor, " batch"]
    lower: Float[Tensor, " batch"]
    exact: Bool[Tensor, " batch"]
    nodes: Int[Tensor, " batch"]
    """Relaxations that were solved."""


class BranchAndBound(Certificate):
    """The worst margin of f(x) = C relu(W x + b) + S x + c in linf and l2, with or without a box.

    For sets that are a box and a Euclidean ball (`Threat.box_and_ball`).

    For a rival class the margin is a sum of units with a positive weight, convex, and of units with
    a negative one, concave. The latter stay as they are. The former are put under their chords,
    which leaves a concave problem (a linear or second-order cone program), and the set is split at
    the unit that lost most by it, until bound and best point meet or `nodes` are spent.

    Args:
        nodes: Relaxations per example at most; then the bound so far is given, still a bound.
        weights: The largest hidden layer, units times inputs.
        tolerance: The gap, relative to 1 + |margin|, at which bound and best point meet.
        only_sign: Stop as soon as it is known whether the margin can reach zero.

    Example:
        >>> from advlab.certify import BranchAndBound
        >>> from advlab.threats import Ball
        >>> BranchAndBound(nodes=5000).worst_margin(two_layer, x, y, Ball("l2", 0.3))
    """

    name = "exact"

    nodes: PositiveInt = 1000
    weights: PositiveInt = 20_000
    tolerance: PositiveFloat = 1e-6
    only_sign: bool = False

    def for_sign(self) -> "BranchAndBound":
        return self.model_copy(update={"only_sign": True})

    def unsupported(self, graph: Graph, ball: Threat) -> str | None:
        places, ancestors = graph.nonlinear(), graph.nonlinear_ancestors
        if any(not isinstance(graph.nodes[k], Relu) or len(ancestors[k]) > 1 for k in places):
            return "the network has more than one hidden layer of ReLU"
        if ball.box_and_ball(torch.zeros(1, *graph.nodes[0].shape)) is None:
            return f"{ball!r} is not a box, a Euclidean ball, or both"
        inputs = int(np.prod(graph.nodes[0].shape))
        size = sum(int(np.prod(graph.nodes[k].shape)) for k in places) * inputs
        if size > self.weights:
            return f"the hidden layer has {size} weights, more than weights={self.weights}"
        return None

    def bound(self, graph: Graph, sets: InputSets, y: Tensor) -> Tensor:
        return self.solve(graph, sets, y).upper

    def solve(self, graph: Graph, sets: InputSets, y: Tensor) -> Solved:
        """Bounds from both sides, and whether they meet."""
        layer = OneHiddenLayer.of(graph, sets)
        scores: list[list[Score]] = [[] for _ in range(len(sets))]
        for a, rows in specifications(graph, y, sets.center):
            for row, score in zip(rows.tolist(), layer.scores(graph, a, rows), strict=True):
                scores[row].append(score)
        found = [
            self._search([ConcaveRelaxation(score, one) for score in few])
            for one, few in zip(layer.example_sets(), scores, strict=True)
        ]
        upper, lower, exact, nodes = zip(*found, strict=True)
        slack = [max(score.slack for score in few) for few in scores]
        made = sets.center.new_tensor
        return Solved(
            made(upper) + made(slack), made(lower),
            made(exact, dtype=torch.bool), made(nodes, dtype=torch.int64),
        )  # fmt: skip

    def _search(self, problems: list[ConcaveRelaxation]) -> tuple[float, float, bool, int]:
        """Upper bound, lower bound, whether they meet, and nodes, over all rivals of an example."""
        best = max(problem.score.value(problem.threat.center) for problem in problems)
        order = itertools.count()
        heap = [(-np.inf, next(order), problem, {}) for problem in problems]
        closed, count = -np.inf, 0
        slack = max(problem.score.slack for problem in problems)
        while heap and count < self.nodes and -heap[0][0] > best + self._gap(best):
            if self.only_sign and (best >= 0 or max(closed, -heap[0][0]) < -slack):
                break
            parent, _, problem, signs = heapq.heappop(heap)
            node = problem.solve(signs)
            count, best, bound = count + 1, max(best, node.value), min(node.bound, -parent)
            if node.split is None or bound <= best + self._gap(best):
                closed = max(closed, bound)
                continue
            for sign in (True, False):
                child = {**signs, node.split: sign}
                heapq.heappush(heap, (-bound, next(order), problem, child))
        upper = max(best, closed, -heap[0][0] if heap else -np.inf)
        return float(upper), float(best), bool(upper <= best + self._gap(best)), count

    def _gap(self, value: float) -> float:
        return self.tolerance * (1 + abs(value))
