"""What every threat set can do."""

from abc import abstractmethod
from typing import Literal

import torch
from jaxtyping import Bool, Float, Shaped
from pydantic import NonNegativeFloat
from torch import Tensor

from ..core.config import Config
from ..core.errors import AdvlabError
from ..core.randomness import Rng

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
