"""Where the weights are kept after each step."""

import math
from abc import abstractmethod
from collections.abc import Sequence

import torch
from pydantic import PositiveFloat, PositiveInt
from torch import Tensor

from ..core.config import Config


class Projection(Config):
    """A closed convex set around the initial weights; every replicate has its own."""

    radius: PositiveFloat

    @abstractmethod
    def factors(self, moves: Sequence[Tensor]) -> Sequence[Tensor]:
        """By how much (at most 1) each replicate's move from its start must shrink, per array."""

    def apply(self, weights: Sequence[Tensor], start: Sequence[Tensor]) -> None:
        """Bring weights, each (replicates, ...), back to the set in place: nearest points."""
        moves = [w - w0 for w, w0 in zip(weights, start, strict=True)]
        for w, w0, move, factor in zip(weights, start, moves, self.factors(moves), strict=True):
            # Replicates inside the set keep their bits, and cost nothing.
            for r in (factor < 1).nonzero().flatten().tolist():
                torch.add(w0[r], move[r].mul_(factor[r]), out=w[r])


class LayerBalls(Projection):
    """B(R) of the convergence paper for deep nets: Frobenius radius R / sqrt(m) in each layer.

    Args:
        radius: R.
        width: m, at least 1; there is none by default, as R alone is another set.
    """

    width: PositiveInt

    def factors(self, moves: Sequence[Tensor]) -> Sequence[Tensor]:
        limit = self.radius / math.sqrt(self.width)
        return [_shrink(move.flatten(1).norm(dim=1), limit) for move in moves]


class WholeBall(Projection):
    """One Frobenius ball around the start for all weights together."""

    def factors(self, moves: Sequence[Tensor]) -> Sequence[Tensor]:
        total = torch.stack([(move**2).flatten(1).sum(1) for move in moves]).sum(0).sqrt()
        return [_shrink(total, self.radius)] * len(moves)


class NeuronCap(Projection):
    """No neuron (row of a weight matrix) longer than the radius, wherever it started.

    The finite presets of the purification paper have it in place of the cubic regulariser.
    """

    def factors(self, moves: Sequence[Tensor]) -> Sequence[Tensor]:
        return [_shrink(move.norm(dim=-1, keepdim=True), self.radius) for move in moves]

    def apply(self, weights: Sequence[Tensor], start: Sequence[Tensor]) -> None:
        for w, factor in zip(weights, self.factors(weights), strict=True):
            w.mul_(factor)


def _shrink(length: Tensor, limit: float) -> Tensor:
    return (limit / length.clamp(min=torch.finfo(length.dtype).tiny)).clamp(max=1.0)
