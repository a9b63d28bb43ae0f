"""What every threat set can do."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Shaped
from pydantic import NonNegativeFloat
from torch import Tensor

from ..core.config import ExactConfig
from ..core.errors import AdvlabError
from ..core.randomness import Rng, normal, uniform
from .hyperplane import Box, nearest_plane, onto_plane
from .norms import Norm, dual_order

STATED = (
    "support",
    "support_bound",
    "interval",
    "within_radius",
    "ball_norm",
    "box_and_ball",
    "meeting_radius",
)
"""What holds for a set as a whole: a subclass that changes the set does not inherit these."""


class Threat(ExactConfig):
    """The points an adversary may move a center to: a closed set around each center.

    A set writes the abstract methods; attacks need no more. With `support` it can be certified.
    The members listed in STATED are trusted by certificates and closed forms without looking, so
    they are not inherited by a subclass that changes its parent in any other member: those that it
    does not define itself fall back to what is true of every set. A ball that is made larger by
    overriding `contains` and `project` thus has no support function until it states one.

    Args:
        radius: How far the set reaches from its center, at least zero and finite.

    Example:
        >>> from advlab.threats import Ball
        >>> class Slab(Ball):                        # moves along the first coordinate only
        ...     def project(self, point, center): ...
        ...     def contains(self, point, center, slack=None): ...
        ...     def support(self, direction, center):
        ...         along = (direction * center).flatten(1).sum(1)
        ...         return along + self.radius * direction.flatten(1)[:, 0].abs()
    """

    radius: NonNegativeFloat
    arguments: ClassVar[tuple[str, ...]] = ("radius",)
    """The settings that may be given by position, in this order."""

    def __init__(self, *values: Any, **settings: Any):
        names = type(self).arguments
        if len(values) > len(names):
            raise AdvlabError(f"at most {len(names)} settings ({', '.join(names)})", len(values))
        twice = [name for name in names[: len(values)] if name in settings]
        if twice:
            raise AdvlabError(f"{type(self).__name__}: one value for {twice[0]}", "two")
        super().__init__(**dict(zip(names, values, strict=False)), **settings)

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        for name in STATED:
            parents = cls.__mro__[: cls.__mro__.index(_owner(cls, name))]
            if any(_changes(parent, cls) for parent in parents):
                setattr(cls, name, vars(Threat)[name])

    @abstractmethod
    def project(
        self, point: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, "batch *shape"]:
        """The point of the set nearest to `point` in Euclidean distance."""

    @abstractmethod
    def maximiser(
        self, grad: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, "batch *shape"]:
        """The point of the set where the linear function with this gradient is largest."""

    @abstractmethod
    def steepest(self, grad: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        """The direction of unit norm that raises a function with this gradient fastest."""

    @abstractmethod
    def sample(
        self, center: Float[Tensor, "batch *shape"], *, rng: Rng
    ) -> Float[Tensor, "batch *shape"]:
        """One uniform draw from the set around each center."""

    @abstractmethod
    def contains(
        self, point: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Bool[Tensor, " batch"]:
        """Whether each point is in the set, up to the rounding of its dtype."""

    @abstractmethod
    def check_center(self, center: Tensor) -> None:
        """Refuse centers around which the set makes no sense, with the reason."""

    def support(
        self, direction: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, " batch"]:
        """The support function: max of <direction, x> over the points x of each center's set.

        Args:
            direction: One linear function per row.
            center: The center of the set of each row.

        Returns:
            One value per row, exact up to rounding. Without a definition of its own a set refuses.
        """
        raise AdvlabError("a set that states its support function", type(self).__name__)

    @property
    def states_support(self) -> bool:
        """Whether the support function is stated, for exactly this set (see the class)."""
        return type(self).support is not Threat.support

    def support_bound(
        self, direction: Float[Tensor, "batch *shape"], center: Float[Tensor, "rows *shape"]
    ) -> Float[Tensor, " batch"]:
        """At least the support function, where a set has a cheaper bound than the exact value.

        Args:
            direction: One linear function per row.
            center: The center of the set of each row, or one center for all rows.
        """
        return self.support(direction, center.expand_as(direction))

    def interval(
        self, center: Float[Tensor, "batch *shape"]
    ) -> tuple[Float[Tensor, "batch *shape"], Float[Tensor, "batch *shape"]]:
        """The least and the largest value of every coordinate over each set.

        By default the support function in the directions of the axes, an example at a time.
        """
        ends = []
        for one in center:
            axes = torch.eye(one.numel(), dtype=one.dtype, device=one.device)
            axes, centers = axes.reshape(-1, *one.shape), one.expand(one.numel(), *one.shape)
            ends.append((-self.support(-axes, centers), self.support(axes, centers)))
        low, high = (
            torch.stack(end).reshape(center.shape) if ends else center.clone()
            for end in (zip(*ends, strict=True) if ends else ((), ()))
        )
        return low, high

    @property
    def within_radius(self) -> bool:
        """Whether all points are within `radius` of their center in the norm of `order`."""
        return False

    @property
    def ball_norm(self) -> Norm | None:
        """The norm in which the set is all that is within `radius`, and nothing else, if any."""
        return None

    def box_and_ball(
        self, center: Float[Tensor, "batch *shape"]
    ) -> tuple[tuple[Tensor, Tensor] | None, float | None] | None:
        """The set as {low <= x <= high} and {||x - center||_2 <= radius} together, where it is one.

        Returns:
            The interval and the Euclidean radius, each None if the set is not cut by it; None for
            sets that are not of this kind.
        """
        return None

    def meeting_radius(
        self, x: Float[Tensor, "n *shape"], other: Float[Tensor, "m *shape"]
    ) -> Float[Tensor, "n m"]:
        """The least radius at which the sets around each pair of centers have a point in common."""
        raise AdvlabError("a set that states when two of them meet", type(self).__name__)

    @property
    def order(self) -> float:
        """The p of the norm that moves are measured in: 1, 2 or infinity."""
        return 2.0

    def norm_of(self, move: Float[Tensor, "batch *shape"]) -> Float[Tensor, " batch"]:
        """The norm of each row."""
        return torch.linalg.vector_norm(move.flatten(1), self.order, dim=1)

    def dual_norm(self, w: Float[Tensor, "*batch_and_shape"]) -> Float[Tensor, "*batch"]:
        """max of <w, move> over the unit ball: rows of a batch, or one number for one vector."""
        rows = w[None] if w.ndim == 1 else w.flatten(1)
        dual = torch.linalg.vector_norm(rows, dual_order(self.order), dim=1)
        return dual[0] if w.ndim == 1 else dual

    def with_radius(self, radius: float) -> "Threat":
        """The same kind of set with another radius."""
        return type(self)(**{**dict(self), "radius": radius})

    # What attacks ask of a set. The answers here suit any set whose moves have Euclidean lengths.

    @property
    def sparse(self) -> bool:
        """Whether the steepest move changes one coordinate only."""
        return self.order == 1

    @property
    def convex(self) -> bool:
        """Whether a point between the center and another point of the set is in the set."""
        return False

    @property
    def isotropic(self) -> bool:
        """Whether the set is all that is within `radius` in the norm of `order`, and in `limits`:
        then a search that keeps to both needs no projection."""
        return False

    @property
    def gaps(self) -> bool:
        """Whether a point may have no others of the set around it, so that a search must jump.

        `steepest` then gives moves long enough for a tenth of the radius to cross a gap.
        """
        return False

    def unit_moves(self, like: Tensor) -> Float[Tensor, "moves *shape"] | None:
        """Moves of one unit each (another category, a whole step) for a search that goes unit by
        unit: with `project` they lead from point to point. None for sets that have no units.

        Args:
            like: Inputs, of which the shape of one, dtype and device matter.
        """
        return None

    def points(self, center: Float[Tensor, "batch *shape"], most: int) -> Iterator[Tensor] | None:
        """All points of each set, some perhaps twice, if they are at most `most`; otherwise None.

        Args:
            center: The centers.
            most: How many points per center to give at most.
        """
        return None

    @property
    def limits(self) -> Box:
        """The lower and upper end of every coordinate of an input; None where there are none."""
        return None

    def ends(self, center: Tensor) -> tuple[Tensor, Tensor] | None:
        """The ends of each coordinate, if the set is a product of intervals; otherwise None."""
        return None

    def projector(self, center: Tensor) -> Callable[[Tensor], Tensor]:
        """`project` around these centers, for many calls: what only the centers say is kept."""
        ends = self.ends(center)
        if ends is None:
            return partial(self.project, center=center)
        return partial(torch.clamp, min=ends[0], max=ends[1])

    def to_domain(self, point: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        """The point brought back to where inputs can lie, however far from any center."""
        return point if self.limits is None else point.clamp(*self.limits)

    def onto_plane(
        self,
        slope: Float[Tensor, "batch d"],
        rise: Float[Tensor, " batch"],
        start: Float[Tensor, "batch d"],
    ) -> tuple[Float[Tensor, "batch d"], Bool[Tensor, " batch"]]:
        """The shortest legal move with <slope, move> = rise, and whether there is one."""
        return onto_plane(self.order, slope, rise, start, self.limits)

    def nearest_plane(
        self,
        values: Float[Tensor, "batch planes"],
        slopes: Float[Tensor, "batch planes d"],
        start: Float[Tensor, "batch d"],
    ) -> tuple[Float[Tensor, "batch d"], Float[Tensor, "batch d"], Float[Tensor, " batch"]]:
        """The shortest legal move onto one of the planes values + <slopes, move> = 0.

        Returns the move, and the slope and value of its plane.
        """
        return nearest_plane(self.order, values, slopes, start, self.limits)

    def uniform_move(self, like: Float[Tensor, "batch *shape"], *, rng: Rng) -> Tensor:
        """One uniform draw per row from all moves of length at most one, whatever the set."""
        flat = like.flatten(1)
        length = uniform(flat[:, :1], rng) ** (1.0 / flat.shape[1])
        return (unit_l2(normal(flat, rng)) * length).reshape(like.shape)

    def grid(self, center: Float[Tensor, "batch d"], points: int) -> Iterator[Tensor]:
        """About `points` points per row, spread over the set: for a few dimensions."""
        d = center.shape[1]
        axis = torch.linspace(-1, 1, max(2, math.ceil(points ** (1 / d))), dtype=center.dtype)
        for offset in torch.cartesian_prod(*[axis] * d).reshape(-1, d):
            yield self.project(center + self.radius * offset.to(center), center)


def _owner(cls: type, name: str) -> type:
    return next(parent for parent in cls.__mro__ if name in vars(parent))


def _changes(parent: type, cls: type) -> bool:
    """Whether a class gives a new meaning to a member of the classes after it."""
    after = cls.__mro__[cls.__mro__.index(parent) + 1 :]
    own = (name for name in vars(parent) if not name.startswith(("__", "_abc", "model_")))
    return any(name in vars(other) for name in own if name != "arguments" for other in after)


def check_finite(values: Tensor, what: str) -> None:
    if not values.is_floating_point():
        raise AdvlabError(
            f"{what} must be floating point", str(values.dtype), "convert with .float()"
        )
    # One pass where all is well: a sum that is finite has no other terms. It may overflow.
    if not torch.isfinite(values.sum()) and not torch.isfinite(values).all():
        bad = (~torch.isfinite(values.flatten(1) if values.ndim > 1 else values[:, None])).any(1)
        first = int(bad.nonzero()[0])
        raise AdvlabError(
            f"{what} must be finite",
            f"NaN or infinity in {int(bad.sum())} of {len(values)} rows, the first is row {first}",
            "drop or mend those rows",
        )


def per_example(values: Shaped[Tensor, " batch"], like: Tensor) -> Tensor:
    """Shape (batch,) to (batch, 1, ..., 1), so that it multiplies rows of `like`."""
    return values.reshape(-1, *[1] * (like.ndim - 1))


def unit_l2(vectors: Float[Tensor, "batch d"]) -> Float[Tensor, "batch d"]:
    """Each row over its length, right for rows as small as the dtype goes; zero stays zero."""
    length = vectors.norm(dim=1, keepdim=True)
    enough = length > torch.finfo(vectors.dtype).tiny ** 0.5 * 1e3
    if enough.is_cpu and bool(enough.all()):
        return vectors / length
    if not enough.is_cpu:
        return torch.where(enough, vectors / length, _unit_of_small(vectors))
    rows = (~enough[:, 0]).nonzero()[:, 0]
    return (vectors / length).index_copy_(0, rows, _unit_of_small(vectors[rows]))


def _unit_of_small(vectors: Float[Tensor, "batch d"]) -> Float[Tensor, "batch d"]:
    """The same where squares would underflow: entries are scaled up first."""
    largest = vectors.abs().amax(1, keepdim=True)
    scaled = torch.where(largest > 0, vectors / largest, 0.0)
    return torch.where(largest > 0, scaled / scaled.norm(dim=1, keepdim=True), 0.0)


def distances(
    a: Float[Tensor, "n d"], b: Float[Tensor, "m d"], order: float
) -> Float[Tensor, "n m"]:
    """The p-norm distance of every pair of rows, with all its digits for rows that are close."""
    return torch.cdist(a, b, p=order, compute_mode="donot_use_mm_for_euclid_dist")
