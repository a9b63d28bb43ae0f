"""The worst margin itself of small networks with one hidden layer, by branch and bound."""

import heapq
import itertools
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from ..threats import Ball
from ._graph.convex_program import Relaxation
from ._graph.graph import Graph, Relu
from ._graph.margin_bounds import specifications
from ._graph.one_hidden_layer import Hidden, Score
from ._graph.region import Region
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

    For a rival class the margin is a sum of units with a positive weight, convex, and of units with
    a negative one, concave. The latter stay as they are. The former are put under their chords,
    which leaves a concave problem (a linear or second-order cone program), and the set is split at
    the unit that lost most by it, until bound and best point meet or `nodes` are spent.
    """

    name = "exact"

    nodes: PositiveInt = 1000
    """Relaxations an example at most; then the bound so far is given, which is still a bound."""
    weights: PositiveInt = 20_000
    """The largest hidden layer, units times inputs."""
    tolerance: PositiveFloat = 1e-6
    """The gap, relative to 1 + |margin|, at which the two meet."""

    only_sign: bool = False
    """Stop as soon as it is known whether the margin can reach zero."""

    def for_sign(self) -> "BranchAndBound":
        return self.model_copy(update={"only_sign": True})

    def objection(self, graph: Graph, ball: Ball) -> str | None:
        places = graph.nonlinear()
        if any(not isinstance(graph.nodes[k], Relu) or len(graph.crossed[k]) > 1 for k in places):
            return "the network has more than one hidden layer of ReLU"
        if ball.norm == "l1":
            return "the norm is l1, and the exact search is for l2 and linf"
        inputs = int(np.prod(graph.nodes[0].shape))
        size = sum(int(np.prod(graph.nodes[k].shape)) for k in places) * inputs
        if size > self.weights:
            return f"the hidden layer has {size} weights, more than weights={self.weights}"
        return None

    def bound(self, graph: Graph, region: Region, y: Tensor) -> Tensor:
        return self.solve(graph, region, y).upper

    def solve(self, graph: Graph, region: Region, y: Tensor) -> Solved:
        hidden = Hidden.of(graph, region)
        scores: list[list[Score]] = [[] for _ in range(len(region))]
        for a, rows in specifications(graph, y, region.center):
            for row, score in zip(rows.tolist(), hidden.scores(graph, a, rows), strict=True):
                scores[row].append(score)
        found = [
            self._search([Relaxation(score, hidden.threat(row)) for score in few])
            for row, few in enumerate(scores)
        ]
        upper, lower, exact, nodes = zip(*found, strict=True)
        slack = [max(score.slack for score in few) for few in scores]
        dtype = region.center.dtype
        return Solved(
            torch.tensor(upper, dtype=dtype) + torch.tensor(slack, dtype=dtype),
            torch.tensor(lower, dtype=dtype), torch.tensor(exact), torch.tensor(nodes),
        )  # fmt: skip

    def _search(self, problems: list[Relaxation]) -> tuple[float, float, bool, int]:
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
