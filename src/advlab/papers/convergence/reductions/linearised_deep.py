"""Deep networks linearised at their start, and their least robust loss in B(R) by cutting planes.

f(W0, z) + sum_h <grad_h f(W0, z), D_h> is a forward pass of the start with one of its derivative
beside it: with the start's masks p_h' = W0_h x_{h-1}' + D_h x_{h-1} and x_h' = 1[p_h > 0] p_h'.
It jumps in z where a unit of the start turns, so that the worst z of a cap is searched for, not
solved for.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from ....attacks import Grid
from ....core.checks import Array
from ....core.randomness import Rng
from ....losses import ModelLoss, pseudo_huber
from ....threats import Cap
from ..models import DeepReLU
from ..theory.linearised_optimum import linearised_optimum
from .low_rank_deep import LowRankDeep

ROUNDS, TOLERANCE = 12, 2e-4
"""Of the cutting planes, and the loss of an example that is worth another point."""


class LinearisedDeep:
    """The networks of `runs`, linear in their moves from the start; call it on rows of all runs.

    Args:
        runs: whose starts and moves are taken, as they are when it is called.

    Example:
        from advlab.losses import ModelLoss, pseudo_huber
        from advlab.papers.convergence.reductions.linearised_deep import LinearisedDeep
        loss = ModelLoss(LinearisedDeep(runs), y.flatten(), pseudo_huber)
    """

    def __init__(self, runs: LowRankDeep):
        self.runs = runs

    def __call__(self, x: Float[Tensor, "rows d"]) -> Float[Tensor, " rows"]:
        state = x.reshape(self.runs.replicates, -1, x.shape[-1])
        change = torch.zeros_like(state)
        for layer in self.runs.layers:
            seen = (state if layer.gram is None else state @ layer.gram) @ layer.right
            moved = (seen * layer.weights[:, None].to(seen)) @ layer.left.mT
            p, moved = _times(state, layer.start.mT), moved + _times(change, layer.start.mT)
            on = (p > 0).to(p)
            state, change = p * on, moved * on
        return _times(state + change, self.runs.top[:, :, None]).flatten()


def _times(rows: Float[Tensor, "B n k"], matrices: Float[Tensor, "S k m"]) -> Tensor:
    """Rows of all runs of a start times its matrix."""
    blocks = rows.reshape(len(matrices), -1, rows.shape[-1]) @ matrices
    return blocks.reshape(*rows.shape[:2], -1)


class RobustlyLinear(NamedTuple):
    """The linearised networks' least robust losses from both sides, and networks so moved.

    `least` is the optimum for finitely many points of each cap and `bound` what duality proves of
    it: both are below the optimum for whole caps. `found` is the robust loss that a search finds
    of the linearised network with that move.
    """

    least: Array
    bound: Array
    found: Array
    runs: LowRankDeep


def robustly_linear(
    starts: Sequence[DeepReLU], radii: Sequence[float], x: Float[Tensor, "B n d"],
    y: Float[Tensor, "B n"], cap: Cap, *, first: int, search: Grid, rng: Rng,
) -> RobustlyLinear:  # fmt: skip
    """min over B(R) of the linearised network's mean of max over caps of sqrt(1 + (f - y)^2) - 1.

    Solved for some points of each cap, to which the worst is added while it is worse than these.

    Args:
        starts, radii: as for `LowRankDeep`.
        x: inputs of each run. y: their labels.
        cap: around each input.
        first: points of each cap to begin with, beside its centre and its rim.
        search: for the worst point.
        rng: one generator per run, for the search.
    """
    flat, runs, n = x.flatten(0, 1), len(x), x.shape[1]
    points = torch.stack([flat, *cap.grid(flat, first)], 1).reshape(runs, -1, x.shape[2])
    owner = np.repeat(np.arange(n), points.shape[1] // n)
    used = np.ones(points.shape[:2], dtype=bool)
    coefficients = np.zeros((len(starts[0].hidden), *used.shape))
    least, bound, left = np.zeros(runs), np.zeros(runs), np.ones(runs, dtype=bool)
    for last in range(ROUNDS, 0, -1):
        net = LowRankDeep(starts, radii)
        with torch.no_grad():
            f, tangents = net.tangents(points.flatten(0, 1))
            grams = net.tangent_grams(tangents).numpy()
        for r in np.flatnonzero(left).tolist():
            z = np.flatnonzero(used[r])
            optimum = linearised_optimum(
                grams[:, r][:, z][:, :, z], f[r].double().numpy()[z], owner[z],
                y[r].double().numpy(), radii[r % len(radii)] / math.sqrt(net.width),
            )  # fmt: skip
            least[r], bound[r] = optimum.loss, optimum.bound
            coefficients[:, r] = 0.0
            coefficients[:, r, z] = optimum.coefficients
        net.move([torch.from_numpy(c) for c in coefficients], tangents)
        linear = ModelLoss(LinearisedDeep(net), y.flatten(), pseudo_huber)
        worst = search(linear, flat, cap, rng=rng)
        at = _largest(LinearisedDeep(net), points, y, owner, used)
        values = worst.loss.reshape(y.shape).double().numpy()
        worse = np.logical_and(values - at > TOLERANCE, left[:, None])
        left = np.any(worse, axis=1)
        if last == 1 or not left.any():
            break
        points = torch.cat([points, worst.x.reshape(x.shape)], 1)
        owner, used = np.r_[owner, np.arange(n)], np.concatenate([used, worse], 1)
        coefficients = np.pad(coefficients, ((0, 0), (0, 0), (0, n)))
    return RobustlyLinear(least, bound, np.maximum(values, at).mean(1), net)


def _largest(
    linear: LinearisedDeep, points: Float[Tensor, "B Z d"], y: Float[Tensor, "B n"],
    owner: np.ndarray, used: np.ndarray,
) -> Array:  # fmt: skip
    """The largest loss (B, n) over the points of each cap that are used."""
    with torch.no_grad():
        f = linear(points.flatten(0, 1)).reshape(points.shape[:2])
    losses = pseudo_huber(f.flatten(), y[:, owner].flatten()).reshape(f.shape).double().numpy()
    losses = np.where(used, losses, -np.inf)
    return np.stack([losses[:, owner == i].max(1) for i in range(y.shape[1])], 1)
