"""Sharpness over radii: how steep a loss is around an input, the farther one looks.

Figure 2 of the CGRO paper: within the radius of training a trained network should be flat, beyond
it steep; over the epochs its training data should grow flatter and fresh data sharper.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from ..core.randomness import Rng
from ..losses import PerExample
from ..threats import Ball
from ._parts.batches import batches, checked_radii, randomness
from .sharpness import Values, input_sharpness


@dataclass(frozen=True)
class SharpnessCurve:
    """Of each input at each radius, on the CPU; see `Sharpness` for what is a bound of what."""

    radii: tuple[float, ...]
    loss: Values
    low: Float[Tensor, "radii batch"]
    """`sharp` of the paper, from below."""
    rise: Float[Tensor, "radii batch"]
    """`dloss` of the paper, from below."""
    high: Float[Tensor, "radii batch"] | None
    """`sharp` from above."""


def sharpness_over_radii(
    model: Callable[[Tensor], Tensor],
    x: Tensor,
    y: Tensor,
    ball: Ball,
    radii: Sequence[float],
    *,
    loss: str | PerExample = "cross_entropy",
    bound: bool = True,
    batch: int | None = None,
    rng: Rng | int | None = None,
    **settings: Any,
) -> SharpnessCurve:
    """`input_sharpness` at each radius (CGRO, Figure 2).

    What is found within a radius lies within every larger one, and what bounds the gradients of a
    larger set bounds those of a smaller: `low`, `rise` and `high` never fall as the radius grows.

    Args:
        model: the network, judged in eval mode.
        x: inputs, one row per example.
        y: labels, as the loss wants them.
        ball: the kind of set; its radius does not count.
        radii: in rising order.
        loss: a name or a function of outputs and labels, one value per example.
        bound: whether to look for the upper end too. It takes a second per image and radius or
            more where layers are convolutions.
        batch: rows at a time; all at once if left out.
        rng: where random points come from; a whole number is a seed.
        settings: of `input_sharpness`: the attack with its restarts, how many draws, starts and
            steps of a climb.

    Example:
        from advlab.measure.sharpness_curve import sharpness_over_radii
        from advlab.threats import Ball
        curve = sharpness_over_radii(model, x, y, Ball("linf", 0.1), [0.05, 0.1, 0.2], draws=8)
        curve.low.mean(1)  # one number per radius, as in the figure
    """
    radii, rng = checked_radii(radii), randomness(rng, "input_sharpness")
    settings |= {"loss": loss, "bound": bound}
    rows = [
        [input_sharpness(model, some, labels, ball.with_radius(r), rng=rng, **settings)  # type: ignore[arg-type]
         for r in radii]
        for some, labels in batches(model, x, y, batch)
    ]  # fmt: skip

    def values(name: str) -> Tensor:
        parts = [torch.stack([getattr(one, name) for one in row]).cpu() for row in rows]
        return torch.cat(parts, 1)

    unknown = any(one.steepest_bound is None for row in rows for one in row)
    high = None if unknown else values("steepest_bound").flip(0).cummin(0).values.flip(0)
    low, rise = (values(name).cummax(0).values for name in ("steepest", "rise"))
    return SharpnessCurve(radii, values("loss")[0], low, rise, high)
