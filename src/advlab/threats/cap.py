"""Caps of the unit sphere: the threat set of the convergence theory."""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from jaxtyping import Bool, Float
from pydantic import Field
from scipy.special import betainc, betaincinv
from torch import Tensor

from ..core.errors import AdvlabError
from ..core.randomness import Rng, normal, uniform
from .base import Threat, check_finite, distances, unit_l2


class Cap(Threat):
    """Every point of the unit sphere within Euclidean distance `radius` of the center.

    Args:
        radius: Between 0 and 2, at which the cap is the whole sphere.

    Example:
        >>> from advlab.threats import Cap
        >>> cap = Cap(0.1)
        >>> x = x / x.norm(dim=1, keepdim=True)      # centers lie on the unit sphere
        >>> attacked = cap.maximiser(gradient, x)
    """

    radius: float = Field(ge=0.0, le=2.0)

    if TYPE_CHECKING:

        def __init__(self, radius: float) -> None: ...

    def project(
        self, point: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, "batch *shape"]:
        """The nearest point of the cap: on the sphere, nearest is largest in inner product."""
        return self.maximiser(point, center)

    def maximiser(
        self, grad: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, "batch *shape"]:
        """The gradient's own direction if the cap holds it, else its rim in that direction."""
        if self.radius == 0:
            return center.clone()
        w, c = unit_l2(grad.flatten(1)), unit_l2(center.flatten(1))
        inside = ((w - c).norm(dim=1) <= self.radius) & (w != 0).any(1)
        if bool(inside.all()):
            return w.reshape(center.shape)
        rim = self._rim(unit_l2(_tangent(w, c)), c)
        best = torch.where(inside[:, None], w, rim)
        still = (w == 0).all(1)
        return torch.where(still[:, None], c, best).reshape(center.shape)

    def steepest(self, grad: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        """The Euclidean unit gradient; a step along it is brought back by project."""
        return unit_l2(grad.flatten(1)).reshape(grad.shape)

    def sample(
        self, center: Float[Tensor, "batch *shape"], *, rng: Rng
    ) -> Float[Tensor, "batch *shape"]:
        """One uniform draw from each cap, by the law of its height over the rim."""
        if self.radius == 0:
            return center.clone()
        c = unit_l2(center.flatten(1))
        around = unit_l2(_tangent(normal(c, rng), c))
        depth = _cap_depth(uniform(c[:, 0], rng), c.shape[1], self.radius)[:, None]
        # depth is (1 - cos angle) / 2.
        point = (1 - 2 * depth) * c + 2 * (depth * (1 - depth)).sqrt() * around
        return unit_l2(point).reshape(center.shape)

    def contains(
        self, point: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Bool[Tensor, " batch"]:
        flat = point.flatten(1)
        slack = 64 * torch.finfo(point.dtype).eps
        near = (flat - center.flatten(1)).norm(dim=1) <= self.radius + slack
        return near & ((flat.norm(dim=1) - 1).abs() <= slack)

    def support(
        self, direction: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, " batch"]:
        """max of <direction, x> over the cap: its value at the maximiser."""
        return (direction * self.maximiser(direction, center)).flatten(1).sum(1)

    def interval(
        self, center: Float[Tensor, "batch *shape"]
    ) -> tuple[Float[Tensor, "batch *shape"], Float[Tensor, "batch *shape"]]:
        """cos(max(angle to the axis - angle of the cap, 0)) for both directions of every axis."""
        return torch.minimum(-self._top(-center), center), torch.maximum(self._top(center), center)

    @property
    def within_radius(self) -> bool:
        return True

    def meeting_radius(
        self, x: Float[Tensor, "n *shape"], other: Float[Tensor, "m *shape"]
    ) -> Float[Tensor, "n m"]:
        """The chord to the point halfway along the great circle, in two dimensions or more."""
        x, other = x.flatten(1), other.flatten(1)
        # atan2 keeps its digits where points are close and where they are antipodes.
        angle = 2 * torch.atan2(distances(x, other, 2.0) / 2, distances(x, -other, 2.0) / 2)
        return 2 * (angle / 4).sin()

    def check_center(self, center: Tensor) -> None:
        check_finite(center, "inputs")
        away = (center.flatten(1).norm(dim=1) - 1).abs()
        if len(away) and float(away.max()) > 1e-5:
            row = int(away.argmax())
            raise AdvlabError(
                "inputs of a Cap must lie on the unit sphere",
                f"row {row} has norm {float(center.flatten(1)[row].norm()):.6g}",
                "divide each input by its norm",
            )

    def _top(self, center: Tensor) -> Tensor:
        """The largest value of each coordinate, from above where rounding hides how far it is."""
        cosine = 1 - self.radius**2 / 2
        sine = self.radius * math.sqrt(max(0.0, 1 - self.radius**2 / 4))
        c = unit_l2(center.flatten(1)).reshape(center.shape)
        rest = 1 - c.square() + 8 * torch.finfo(c.dtype).eps
        return torch.where(c >= cosine, 1.0, cosine * c + sine * rest.sqrt())

    def _rim(self, tangent: Tensor, c: Tensor) -> Tensor:
        cosine = 1 - self.radius**2 / 2
        sine = self.radius * math.sqrt(max(0.0, 1 - self.radius**2 / 4))
        return unit_l2(cosine * c + sine * tangent)

    def to_domain(self, point: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        """The nearest point of the unit sphere."""
        return unit_l2(point.flatten(1)).reshape(point.shape)

    def grid(self, center: Float[Tensor, "batch d"], points: int) -> Iterator[Tensor]:
        """Evenly spread over the cap of each center, and along its rim; up to three dimensions."""
        edge = 2 * math.asin(self.radius / 2)
        if center.shape[1] == 1:
            return
        if center.shape[1] == 2:
            across = torch.stack([-center[:, 1], center[:, 0]], 1)
            for angle in torch.linspace(-edge, edge, points).tolist():
                yield math.cos(angle) * center + math.sin(angle) * across
            return
        first = torch.zeros_like(center).scatter(1, center.abs().argmin(1, keepdim=True), 1.0)
        first = unit_l2(torch.linalg.cross(center, first))
        second = torch.linalg.cross(center, first)
        golden, rim = math.pi * (3 - math.sqrt(5)), 4 * math.ceil(math.sqrt(points))
        # The area of a cap is proportional to its depth, 1 - cos: equal steps of depth, golden
        # turns.
        inner = [
            (math.acos(1 - (k + 0.5) / points * self.radius**2 / 2), k * golden)
            for k in range(points)
        ]
        for angle, turn in [*inner, *((edge, 2 * math.pi * k / rim) for k in range(rim))]:
            side = math.cos(turn) * first + math.sin(turn) * second
            yield unit_l2(math.cos(angle) * center + math.sin(angle) * side)


def _tangent(w: Float[Tensor, "batch d"], c: Float[Tensor, "batch d"]) -> Float[Tensor, "batch d"]:
    """The part of w orthogonal to c; where w is parallel to c, any fixed orthogonal direction."""
    part = w - (w * c).sum(1, keepdim=True) * c
    part = part - (part * c).sum(1, keepdim=True) * c
    axis = torch.zeros_like(c).scatter(1, c.abs().argmin(1, keepdim=True), 1.0)
    spare = axis - (axis * c).sum(1, keepdim=True) * c
    parallel = part.norm(dim=1, keepdim=True) <= 1e-12 * w.norm(dim=1, keepdim=True)
    return torch.where(parallel, spare, part)


def _cap_depth(u: Float[Tensor, " batch"], d: int, radius: float) -> Float[Tensor, " batch"]:
    """Depth q = (1 - cos)/2 of a uniform point: density (q (1-q))^((d-3)/2) on [0, radius^2/4]."""
    a, edge = (d - 1) / 2, radius**2 / 4
    if edge < 1e-150:  # squares of such radii underflow; the cap is a flat disc there
        return edge * u ** (1 / a)
    mass = betainc(a, a, edge)
    if mass > 1e-280:
        q = betaincinv(a, a, u.cpu().double().numpy() * mass)
        return torch.as_tensor(q, dtype=u.dtype, device=u.device)
    # So deep in the tail the log density is a straight line over the depths that matter.
    slope = (a - 1) * (1 / edge - 1 / (1 - edge))
    return edge + torch.log1p(-u * (1 - math.exp(-slope * edge))) / slope
