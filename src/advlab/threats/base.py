"""What every threat set can do."""

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator
from functools import partial
from typing import Literal

import torch
from jaxtyping import Bool, Float, Shaped
from pydantic import NonNegativeFloat
from torch import Tensor

from ..core.config import Config
from ..core.errors import AdvlabError
from ..core.randomness import Rng, normal, uniform
from .hyperplane import Box, nearest_plane, onto_plane

Norm = Literal["l1", "l2", "linf"]


class Threat(Config):
    """The points an adversary may move a center to: a closed set around each center."""

    radius: NonNegativeFloat

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

    def with_radius(self, radius: float) -> "Threat":
        return type(self)(**{**self.model_dump(), "radius": radius})

    # What attacks ask of a set. The answers here suit any set whose moves have Euclidean lengths.

    @property
    def order(self) -> float:
        """The order p of the norm in which moves are measured."""
        return 2.0

    @property
    def sparse(self) -> bool:
        """Whether the steepest move changes one coordinate only."""
        return self.order == 1

    @property
    def convex(self) -> bool:
        """Whether a point between the center and another point of the set is in the set."""
        return False

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

    def norm_of(self, move: Float[Tensor, "batch *shape"]) -> Float[Tensor, " batch"]:
        """The length of each row's move."""
        return torch.linalg.vector_norm(move.flatten(1), self.order, dim=1)

    def dual_norm(self, w: Float[Tensor, "*batch_and_shape"]) -> Float[Tensor, "*batch"]:
        """max of <w, move> over moves of length one: rows of a batch, or one vector."""
        return w.norm() if w.ndim == 1 else w.flatten(1).norm(dim=1)

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


def check_finite(values: Tensor, what: str) -> None:
    if not values.is_floating_point():
        raise AdvlabError(
            f"{what} must be floating point", str(values.dtype), "convert with .float()"
        )
    if not torch.isfinite(values).all():
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
    if length.numel() and bool(length.amin() > torch.finfo(vectors.dtype).tiny ** 0.5 * 1e3):
        return vectors / length
    # Squares of smaller entries would underflow, so those are scaled up first.
    largest = vectors.abs().amax(1, keepdim=True)
    scaled = torch.where(largest > 0, vectors / largest, 0.0)
    return torch.where(largest > 0, scaled / scaled.norm(dim=1, keepdim=True), 0.0)
