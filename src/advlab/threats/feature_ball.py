"""A ball with a radius, and limits, of its own for every feature; frozen where the radius is 0."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float
from pydantic import model_validator
from torch import Tensor

from ..core.errors import AdvlabError
from ..core.randomness import Rng
from .base import Threat, check_finite, unit_l2
from .hyperplane import nearest_plane, onto_plane
from .norms import ORDER, Norm, dual_order
from .sampling import uniform_in_ball
from .solve import fill_l1, stretch_to_l2

ROUNDS = 200
"""Halvings of the interval of a multiplier: beyond the digits of float64 for any scale."""


class FeatureBall(Threat):
    """Points with ||(x - center) / weights||_p <= radius and low <= x <= high, feature by feature.

    With "linf" feature i moves by at most radius_i. With "l2" and "l1" the features share a budget,
    which a move of radius_i in feature i alone uses up. Features of radius 0 are frozen, so a mask
    is a radius that is 0 outside it. Projection, maximiser and support function are exact (weighted
    projections by bisection, to rounding).

    Args:
        norm: "l1", "l2" or "linf".
        radius: One number, or one per feature (flattened, or nested as the features are).
        low: The least value, one number or one per feature; None for no limit.
        high: The largest value.
        mask: Which features may move, one flag each; all of them if left out.

    Example:
        >>> from advlab.threats import FeatureBall
        >>> age_income_sex = FeatureBall("linf", [5.0, 2000.0, 0.0], low=0.0)
        >>> patch = FeatureBall("linf", 0.3, low=0.0, high=1.0, mask=mask)   # (28, 28) of flags
    """

    norm: Norm
    weights: tuple[float, ...] | None = None
    """Each feature's radius over the largest; None where all are equal."""
    low: float | tuple[float, ...] | None = None
    high: float | tuple[float, ...] | None = None
    arguments = ("norm", "radius", "low", "high", "mask")

    if TYPE_CHECKING:

        def __init__(
            self, norm: Norm, radius: Any, low: Any = None, high: Any = None, mask: Any = None
        ) -> None: ...

    @model_validator(mode="before")
    @classmethod
    def _per_feature(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        found = {name: _flat(name, value) for name, value in data.items() if name != "mask"}
        radius, mask = found.get("radius"), data.get("mask")
        if isinstance(radius, tuple):
            if found.get("weights") is not None:
                raise AdvlabError("radii or weights, not both", "both")
            largest = max(radius, default=0.0)
            found["radius"] = largest
            found["weights"] = tuple(one / largest if largest else 0.0 for one in radius)
        if mask is not None:
            free = _flags(mask)
            weights = found.get("weights") or (1.0,) * len(free)
            if len(weights) != len(free):
                raise AdvlabError(f"a mask of {len(weights)} features", len(free))
            found["weights"] = tuple(
                w if keep else 0.0 for w, keep in zip(weights, free, strict=True)
            )
        return found

    @model_validator(mode="after")
    def _fits(self) -> "FeatureBall":
        sizes = {len(one) for one in (self.weights, self.low, self.high) if isinstance(one, tuple)}
        if len(sizes) > 1:
            raise AdvlabError("radius, low, high and mask of as many features", sorted(sizes))
        if any(one < 0 for one in self.weights or ()):
            raise AdvlabError("radii of at least 0", min(self.weights or (0.0,)))
        low, high = (_list(one) for one in (self.low, self.high))
        pairs = zip(low * max(len(high), 1), high * max(len(low), 1), strict=False)
        if any(a > b for a, b in pairs):
            raise AdvlabError("low at most high", "a feature whose low is above its high")
        return self

    @property
    def order(self) -> float:
        """The p of the norm."""
        return ORDER[self.norm]

    def project(
        self, point: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, "batch *shape"]:
        """The point of the set nearest to `point` in Euclidean distance: exact."""
        low, high = self._bounds(center)
        if self.norm == "linf" or self.radius == 0:
            return torch.minimum(torch.maximum(point, low), high)
        inside = self.contains(point, center, slack=0.0)
        move = (point - center).flatten(1)
        room = torch.where(move > 0, (high - center).flatten(1), (center - low).flatten(1))
        size = _shrink(move.abs(), room, self._weights(center), self.radius, self.order)
        moved = center + (move.sign() * size).reshape(center.shape)
        moved = torch.minimum(torch.maximum(moved, low), high)
        return torch.where(inside.reshape(-1, *[1] * (point.ndim - 1)), point, moved)

    def maximiser(
        self, grad: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, "batch *shape"]:
        """The point of the set where the linear function with this gradient is largest."""
        low, high = self._bounds(center)
        if self.norm == "linf" or self.radius == 0:
            moved = torch.where(grad > 0, high, low)
            return torch.where(grad == 0, center, moved)
        gain, weights = grad.flatten(1), self._weights(center)
        room = torch.where(gain > 0, (high - center).flatten(1), (center - low).flatten(1))
        free = weights > 0
        unit = torch.where(free, weights, 1.0)
        fill = stretch_to_l2 if self.norm == "l2" else fill_l1
        # In units of its own weight every feature moves in one plain ball.
        size = fill(gain.abs() * weights, torch.where(free, room / unit, 0.0), self.radius)
        moved = center + (gain.sign() * weights * size).reshape(center.shape)
        return torch.minimum(torch.maximum(moved, low), high)

    def steepest(self, grad: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        """The direction of unit norm, in units of the weights, that raises the function fastest."""
        weights = self._weights(grad)
        scaled = grad.flatten(1) * weights
        if self.norm == "linf":
            unit = scaled.sign()
        elif self.norm == "l2":
            unit = unit_l2(scaled)
        else:
            largest = scaled.abs().argmax(1, keepdim=True)
            unit = torch.zeros_like(scaled).scatter(1, largest, scaled.gather(1, largest).sign())
        return (weights * unit).reshape(grad.shape)

    def sample(
        self, center: Float[Tensor, "batch *shape"], *, rng: Rng
    ) -> Float[Tensor, "batch *shape"]:
        """One uniform draw from the set around each center, as exact as `Ball.sample` is."""
        low, high = self._bounds(center)
        weights = self._weights(center)
        free = (weights > 0).expand_as(center.flatten(1))
        unit = torch.where(weights > 0, weights, 1.0)
        down, up = ((end - center).flatten(1) / unit for end in (low, high))
        move = torch.zeros_like(down)
        if self.radius > 0 and bool(free.any()):
            some = free[0]
            move[:, some] = uniform_in_ball(self.norm, self.radius, down[:, some], up[:, some], rng)
        moved = center + (weights * move).reshape(center.shape)
        return torch.minimum(torch.maximum(moved, low), high)

    def contains(
        self,
        point: Float[Tensor, "batch *shape"],
        center: Float[Tensor, "batch *shape"],
        slack: float | None = None,
    ) -> Bool[Tensor, " batch"]:
        """Whether each point is in the set, up to the rounding of its dtype (or `slack`)."""
        flat = center.flatten(1)
        if slack is None:
            scale = self.radius + torch.linalg.vector_norm(flat, self.order, dim=1)
            edge = (16 * torch.finfo(point.dtype).eps * scale)[:, None]
        else:
            edge = torch.full_like(flat[:, :1], slack)
        weights, move = self._weights(center), (point - center).flatten(1)
        free = weights > 0
        # Rounding of a small weight's feature is rounding of x, not of x / weight.
        spare = (move.abs() - edge).clamp(min=0.0) / torch.where(free, weights, 1.0)
        used = torch.where(free, spare, 0.0)
        inside = torch.linalg.vector_norm(used, self.order, dim=1) <= self.radius + edge[:, 0]
        inside &= (free | (move.abs() <= edge)).all(1)
        low, high = self._limits(center)
        moved = point.flatten(1)
        return inside & ((moved >= low - edge) & (moved <= high + edge)).all(1)

    def check_center(self, center: Tensor) -> None:
        check_finite(center, "inputs")
        features = center[0].numel() if len(center) else 0
        for one in (self.weights, self.low, self.high):
            if isinstance(one, tuple) and len(center) and len(one) != features:
                raise AdvlabError(f"inputs of {len(one)} features, as the set has", features)
        low, high = self._limits(center)
        flat = center.flatten(1)
        spread = torch.where(torch.isfinite(high - low), high - low, 1.0)
        out = (flat < low - 1e-6 * spread) | (flat > high + 1e-6 * spread)
        if bool(out.any()):
            row, feature = (int(place) for place in out.nonzero()[0])
            ends = low.expand_as(flat)[row, feature], high.expand_as(flat)[row, feature]
            raise AdvlabError(
                f"feature {feature} between {float(ends[0]):.4g} and {float(ends[1]):.4g}",
                f"{float(flat[row, feature]):.4g} in row {row}",
                "declare the limits of your data",
            )

    def interval(
        self, center: Float[Tensor, "batch *shape"]
    ) -> tuple[Float[Tensor, "batch *shape"], Float[Tensor, "batch *shape"]]:
        """The least and the largest value of every feature over the set."""
        return self._bounds(center)

    def _bounds(self, center: Tensor) -> tuple[Tensor, Tensor]:
        """The interval, for what a subclass inherits although it is another set."""
        flat, reach = center.flatten(1), self.radius * self._weights(center)
        low, high = self._limits(center)
        # A center a rounding outside the limits must still be inside its own set.
        least = torch.minimum(torch.maximum(flat - reach, low), flat)
        most = torch.maximum(torch.minimum(flat + reach, high), flat)
        return least.reshape(center.shape), most.reshape(center.shape)

    def support(
        self, direction: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, " batch"]:
        """max of <direction, x> over the set: exact for every norm."""
        if self.low is None and self.high is None:
            along = (direction * center).flatten(1).sum(1)
            return along + self.radius * self.dual_norm(direction)
        return (direction * self.maximiser(direction, center)).flatten(1).sum(1)

    @property
    def within_radius(self) -> bool:
        """Weights are at most 1, so that plain norms are at most weighted ones."""
        return True

    @property
    def convex(self) -> bool:
        return True

    def ends(self, center: Tensor) -> tuple[Tensor, Tensor] | None:
        """The ends of each feature in linf; balls of other norms are no products."""
        return self._bounds(center) if self.norm == "linf" else None

    def box_and_ball(
        self, center: Float[Tensor, "batch *shape"]
    ) -> tuple[tuple[Tensor, Tensor] | None, float | None] | None:
        """For linf, and for l2 where features that move have equal weights."""
        if self.norm == "linf":
            return self._bounds(center), None
        equal = set(self.weights or (1.0,)) <= {0.0, 1.0}
        return (self._bounds(center), self.radius) if self.norm == "l2" and equal else None

    def dual_norm(self, w: Float[Tensor, "*batch_and_shape"]) -> Float[Tensor, "*batch"]:
        """max of <w, move> over moves of weighted norm 1."""
        rows = w[None] if w.ndim == 1 else w.flatten(1)
        scaled = rows * self._weights(rows)
        dual = torch.linalg.vector_norm(scaled, dual_order(self.order), dim=1)
        return dual[0] if w.ndim == 1 else dual

    def norm_of(self, move: Float[Tensor, "batch *shape"]) -> Float[Tensor, " batch"]:
        """The weighted norm of each row; infinite where a frozen feature moves."""
        flat, weights = move.flatten(1), self._weights(move)
        frozen = torch.where(flat == 0, 0.0, float("inf"))
        unit = torch.where(weights > 0, weights, 1.0)
        used = torch.where(weights > 0, flat / unit, frozen)
        return torch.linalg.vector_norm(used, self.order, dim=1)

    def to_domain(self, point: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        low, high = self._limits(point)
        return torch.minimum(torch.maximum(point.flatten(1), low), high).reshape(point.shape)

    def onto_plane(
        self,
        slope: Float[Tensor, "batch d"],
        rise: Float[Tensor, " batch"],
        start: Float[Tensor, "batch d"],
    ) -> tuple[Float[Tensor, "batch d"], Bool[Tensor, " batch"]]:
        weights, unit, box = self._in_units(start)
        move, reached = onto_plane(self.order, slope * weights, rise, start / unit, box)
        return weights * move, reached

    def nearest_plane(
        self,
        values: Float[Tensor, "batch planes"],
        slopes: Float[Tensor, "batch planes d"],
        start: Float[Tensor, "batch d"],
    ) -> tuple[Float[Tensor, "batch d"], Float[Tensor, "batch d"], Float[Tensor, " batch"]]:
        weights, unit, box = self._in_units(start)
        scaled = slopes * weights[:, None]
        move, slope, value = nearest_plane(self.order, values, scaled, start / unit, box)
        return weights * move, torch.where(weights > 0, slope / unit, 0.0), value

    def uniform_move(self, like: Float[Tensor, "batch *shape"], *, rng: Rng) -> Tensor:
        """One uniform draw per row from all moves of weighted norm at most one."""
        ones = torch.ones_like(like).flatten(1)
        unit = uniform_in_ball(self.norm, 1.0, -ones, ones, rng)
        return (self._weights(like) * unit).reshape(like.shape)

    def _weights(self, like: Tensor) -> Float[Tensor, "1 d"]:
        if self.weights is None:
            return like.new_ones(1, like.flatten(1).shape[1])
        return torch.tensor([self.weights], dtype=like.dtype, device=like.device)

    def _limits(self, like: Tensor) -> tuple[Tensor, Tensor]:
        """The ends of all features, or of each, as a row."""
        ends = []
        for end, none in ((self.low, -math.inf), (self.high, math.inf)):
            values = [none] if end is None else _list(end)
            ends.append(torch.tensor([values], dtype=like.dtype, device=like.device))
        return ends[0], ends[1]

    def _in_units(self, start: Tensor) -> tuple[Tensor, Tensor, Any]:
        """Weights, divisors that are never 0, and limits in units of the weights."""
        weights, (low, high) = self._weights(start), self._limits(start)
        unit = torch.where(weights > 0, weights, 1.0)
        box = None if self.low is None and self.high is None else (low / unit, high / unit)
        return weights, unit, box


def _shrink(
    size: Float[Tensor, "batch d"], room: Tensor, weights: Tensor, radius: float, order: float
) -> Float[Tensor, "batch d"]:
    """Nearest to `size` with 0 <= z <= room and ||z / weights|| <= radius, p = 1 or 2.

    By the KKT conditions z = clip(size - t / weights, 0, room) for p = 1 and
    z = min(size / (1 + t / weights^2), room) for p = 2, with the least multiplier t >= 0 that
    meets the budget, which falls in t.
    """
    free = weights > 0
    unit = torch.where(free, weights, 1.0)
    size = torch.where(free, size, 0.0)

    def moved(t: Tensor) -> Tensor:
        z = (size - t / unit).clamp(min=0.0) if order == 1 else size / (1 + t / unit**2)
        return torch.minimum(z, room)

    def used(z: Tensor) -> Tensor:
        return torch.linalg.vector_norm(z / unit, order, dim=1, keepdim=True)

    small = torch.zeros_like(size[:, :1])
    if order == 1:
        large = (size * unit).amax(1, keepdim=True)
    else:
        large = torch.linalg.vector_norm(size * unit, dim=1, keepdim=True) / radius
    # Rows that fit as they are would have their root at 0, which halving never reaches.
    free_of = used(moved(small)) <= radius
    large = torch.where(free_of, small, large)
    for _ in range(ROUNDS):
        middle = (small + large) / 2
        if bool(((middle == small) | (middle == large)).all()):
            break
        fits = used(moved(middle)) <= radius
        small, large = torch.where(fits, small, middle), torch.where(fits, middle, large)
    z = moved(large)
    total = used(z).clamp(min=max(radius, torch.finfo(z.dtype).tiny))
    return z * (radius / total).clamp(max=1.0)


def _list(one: float | Sequence[float] | None) -> list[float]:
    if one is None:
        return []
    return [one] if isinstance(one, int | float) else list(one)


def _flat(name: str, value: Any) -> Any:
    """Arrays, tensors and nested lists as one tuple; everything else as it is."""
    if isinstance(value, str | bytes | int | float) or value is None:
        return value
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, list | tuple):
        return value
    return tuple(_leaves(value))


def _leaves(value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        return [value]
    return [leaf for one in value for leaf in _leaves(one)]


def _flags(mask: Any) -> list[bool]:
    values = mask.tolist() if hasattr(mask, "tolist") else mask
    flags = _leaves(values)
    if not all(isinstance(one, bool) or one in (0, 1) for one in flags):
        raise AdvlabError("a mask of flags, one per feature", f"{mask!r:.60}")
    return [bool(one) for one in flags]
