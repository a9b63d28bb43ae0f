"""Branch and bound for ReLU networks of any depth.

S. Wang, H. Zhang, K. Xu, X. Lin, S. Jana, C.-J. Hsieh, J. Z. Kolter: Beta-CROWN: efficient bound
propagation with per-neuron split constraints (NeurIPS 2021), arXiv:2103.06624.

R. Bunel, J. Lu, I. Turkaslan, P. H. S. Torr, P. Kohli, M. P. Kumar: Branch and bound for piecewise
linear neural network verification (JMLR 2020), arXiv:1909.06588.

The bound of one part of the threat set is in `_graph/split_bounds.py`.
"""

import time
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from ..threats import Threat
from ._graph.graph import Graph
from ._graph.input_sets import InputSets
from ._graph.margin_bounds import specifications
from ._graph.nonlinear import Relu
from ._graph.split_bounds import SplitBounds, SplitPart
from .base import Certificate
from .crown import Crown, crown_intervals


@dataclass(frozen=True)
class Searched:
    """The worst margin of each example lies between `lower`, which some point of its set has, and
    `upper`; where `exact`, the two meet to the tolerance."""

    upper: Float[Tensor, " batch"]
    lower: Float[Tensor, " batch"]
    exact: Bool[Tensor, " batch"]
    nodes: Int[Tensor, " batch"]
    """Parts of the set that were bounded."""


class BetaCrown(Certificate):
    """The worst margin of a ReLU network, by splitting the threat set at the signs of neurons.

    In a part of the set the signs of some neurons are decided. The others are relaxed as by CROWN,
    with the slopes of the lines below chosen by gradient descent, and the decided signs enter by
    Lagrange multipliers beta >= 0: adding beta z where z >= 0 never lowers an upper bound. The part
    with the largest bound is split at the neuron whose relaxation costs most, until bound and best
    point meet or the budget is spent; then the bound so far is given, still a bound. A part in
    which all signs are decided is a linear or second-order cone program, and is solved as one for
    sets that are a box and a Euclidean ball (`Threat.box_and_ball`).

    Args:
        nodes: Parts per example at most.
        seconds: Time for all examples of one call at most; None for no limit.
        at_once: Parts that are bounded together.
        steps: Steps of gradient descent for the bound of a part.
        tolerance: The gap, relative to 1 + |margin|, at which bound and best point meet.
        only_sign: Stop as soon as it is known whether the margin can reach zero.

    Example:
        >>> from advlab.certify import BetaCrown
        >>> from advlab.threats import Ball
        >>> BetaCrown(seconds=60).worst_margin(network, x, y, Ball("linf", 0.02, box=(0, 1)))
    """

    name = "beta_crown"
    needs_deadline = True

    nodes: PositiveInt = 2000
    seconds: PositiveFloat | None = None
    at_once: PositiveInt = 64
    steps: PositiveInt = 15
    tolerance: PositiveFloat = 1e-4
    only_sign: bool = False

    def for_sign(self) -> "BetaCrown":
        return self.model_copy(update={"only_sign": True})

    def until(self, deadline: float) -> "BetaCrown":
        left = max(1e-3, deadline - time.monotonic())
        least = left if self.seconds is None else min(left, self.seconds)
        return self.model_copy(update={"seconds": least})

    def unsupported(self, graph: Graph, ball: Threat) -> str | None:
        kinds = {type(graph.nodes[k]).__name__ for k in graph.nonlinear()}
        others = sorted(kinds - {Relu.__name__})
        if others:
            return f"branching is for ReLU, and the network has {', '.join(others)}"
        return Crown().unsupported(graph, ball)

    def bound(self, graph: Graph, sets: InputSets, y: Tensor) -> Tensor:
        return self.solve(graph, sets, y).upper

    def solve(self, graph: Graph, sets: InputSets, y: Tensor) -> Searched:
        """Bounds from both sides, and whether they meet."""
        end = None if self.seconds is None else time.monotonic() + self.seconds
        with torch.no_grad():
            bounds = SplitBounds(graph, sets, crown_intervals(graph, sets), self.steps)
            specs = [pair for a, rows in specifications(graph, y, sets.center)
                     for pair in zip(a, rows.tolist(), strict=True)]  # fmt: skip
            tree = _Tree(len(sets), sets.center.new_full((len(sets),), -torch.inf).tolist())
            roots = [SplitPart.root(row, a, bounds.places) for a, row in specs]
            for first in range(0, len(roots), self.at_once):
                tree.add(bounds.solve(roots[first : first + self.at_once]), self)
            while (chosen := tree.choose(self)) and (end is None or time.monotonic() < end):
                children = [half for part in chosen for half in part.halves()]
                tree.add(bounds.solve(children), self)
        upper, lower = sets.center.new_tensor(tree.upper()), sets.center.new_tensor(tree.best)
        gap = self.tolerance * (1 + lower.abs())
        return Searched(upper, lower, upper <= lower + gap, torch.tensor(tree.count))


class _Tree:
    """The parts that are still open, and the best point of each example."""

    def __init__(self, examples: int, best: list[float]):
        self.open: list[list[SplitPart]] = [[] for _ in range(examples)]
        self.closed = [-float("inf")] * examples
        self.best, self.count = best, [0] * examples

    def add(self, parts: list[SplitPart], settings: BetaCrown) -> None:
        for part in parts:
            self.count[part.row] += 1
            self.best[part.row] = max(self.best[part.row], part.value)
        for part in parts:
            best = self.best[part.row]
            done = part.bound <= best + settings.tolerance * (1 + abs(best))
            if done or part.split is None or (settings.only_sign and part.bound < 0):
                self.closed[part.row] = max(self.closed[part.row], part.bound)
            else:
                self.open[part.row].append(part)

    def choose(self, settings: BetaCrown) -> list[SplitPart]:
        """The parts with the largest bounds, of examples that are not decided."""
        half, waiting = max(1, settings.at_once // 2), []
        for row, parts in enumerate(self.open):
            best, room = self.best[row], (settings.nodes - self.count[row]) // 2
            if settings.only_sign and (best >= 0 or self.closed[row] >= 0):
                continue
            limit = best + settings.tolerance * (1 + abs(best))
            found = sorted((part for part in parts if part.bound > limit), key=_by_bound)
            waiting += found[: max(0, room)]
        chosen = sorted(waiting, key=_by_bound)[:half]
        for part in chosen:
            self.open[part.row].remove(part)
        return chosen

    def upper(self) -> list[float]:
        return [
            max([closed, best, *(part.bound for part in parts)])
            for closed, best, parts in zip(self.closed, self.best, self.open, strict=True)
        ]


def _by_bound(part: SplitPart) -> float:
    return -part.bound
