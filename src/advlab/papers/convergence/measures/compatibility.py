"""Whether a threat leaves labels their meaning: sets of differently labelled points must not meet.

The standing assumption of the convergence paper (section 3): if the closures of B(x_i) and B(x_j)
intersect then y_i = y_j. Otherwise some input has two labels, and no classifier is robust.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int, Shaped
from torch import Tensor

from ....core.errors import AdvlabError
from ....threats import Threat

ROWS = 1024
"""Distances are taken from so many points at a time."""


@dataclass(frozen=True)
class Compatibility:
    """Which sets of differently labelled points meet, and how far the nearest ones are apart."""

    radius: float
    """Of the threat that was asked about."""
    pairs: Int[Tensor, "pairs 2"]
    """The rows i < j of every such pair that meets; touching sets meet."""
    nearest: tuple[int, int] | None
    """The two differently labelled rows that meet first; None if all labels are equal."""
    slack: float
    """Twice what the radius may grow before two such sets meet, infinite if all labels are equal.

    For a Ball that is min ||x_i - x_j|| - 2 radius in its norm. For a Cap the points halfway
    between x_i and x_j are 2 sin(angle/4) from both, and slack is 2 (2 sin(angle/4) - radius).
    """

    @property
    def ok(self) -> bool:
        return len(self.pairs) == 0

    @property
    def largest_radius(self) -> float:
        """Every smaller radius is compatible, this one and every larger one is not."""
        return self.radius + self.slack / 2

    def require(self) -> None:
        """Refuse incompatible data, with the first pair and a radius that would do."""
        if self.ok:
            return
        i, j = self.pairs[0].tolist()
        count = f"{len(self.pairs)} pair{'s' if len(self.pairs) > 1 else ''}"
        cure = f"use a radius below {self.largest_radius:.4g}, or points further apart"
        if self.largest_radius <= 0:
            cure = f"rows {self.nearest} are one input with two labels: drop or relabel one"
        raise AdvlabError(
            f"threat sets of differently labelled points must not meet (radius {self.radius:g})",
            f"{count}, the first of rows {i} and {j} (slack {self.slack:.4g})",
            cure,
        )


def compatibility(
    x: Float[Tensor, "n *shape"], y: Shaped[Tensor, " labels"], threat: Threat
) -> Compatibility:
    """Compare the sets around all pairs of points whose labels differ.

    Sets that touch up to the rounding of the dtype count as meeting. A box changes nothing: the
    point halfway between two centers is in every box that holds them.

    Args:
        x: inputs.
        y: their labels.
        threat: a Ball, or a Cap of a sphere in two dimensions or more.

    Example:
        from advlab.papers.convergence.measures import compatibility
        from advlab.threats import Cap
        compatibility(x, y, Cap(radius=0.15)).require()
    """
    if len(x) != len(y):
        raise AdvlabError("one label per input", f"{len(x)} inputs and {len(y)} labels")
    threat.check_center(x)
    rounding = 16 * torch.finfo(x.dtype).eps
    found: list[Tensor] = []
    nearest, closest = None, math.inf
    for first, reach, size in _reaches(x.flatten(1), threat):
        row = torch.arange(first, first + len(reach))[:, None]
        rivals = (y[first : first + len(reach), None] != y) & (row < torch.arange(len(x)))
        meet = rivals & (reach <= threat.radius + rounding * (threat.radius + size))
        found.append(meet.nonzero() + torch.tensor([first, 0]))
        least = torch.where(rivals, reach, math.inf)
        if float(least.min()) < closest:
            closest = float(least.min())
            i, j = divmod(int(least.argmin()), len(x))
            nearest = (first + i, j)
    pairs = torch.cat(found) if found else torch.empty(0, 2, dtype=torch.long)
    return Compatibility(threat.radius, pairs, nearest, 2 * (closest - threat.radius))


def _reaches(
    x: Float[Tensor, "n d"], threat: Threat
) -> Iterator[tuple[int, Float[Tensor, "rows n"], float]]:
    """Blocks of the radii at which sets begin to meet: first row, radii, and the size of inputs."""
    sizes = threat.norm_of(x)
    for first in range(0, len(x), ROWS):
        yield first, threat.meeting_radius(x[first : first + ROWS], x), float(sizes.max())
