"""Unions of threat sets: the adversary chooses one of them."""

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float
from pydantic import field_serializer, model_validator
from torch import Tensor

from ..core.errors import AdvlabError
from ..core.randomness import Rng, uniform
from .base import Threat, check_finite, per_example
from .nested import described, scaled
from .sampling import split


class Union(Threat):
    """The points of any of several sets around the same center.

    Projection (the nearest of the members' nearest points), maximiser and support function (the
    largest of the members') are as exact as the members'. Each call costs as much as all members.

    Args:
        sets: The members.
        radius: The largest radius of the members. Another value scales all of them, as
            `with_radius` does.

    Example:
        >>> from advlab.threats import Ball, FeatureBall, Union
        >>> either = Union([Ball("linf", 0.03, box=(0, 1)), Ball("l2", 0.5, box=(0, 1))])
        >>> age_or_income = Union([FeatureBall("linf", [5, 0]), FeatureBall("linf", [0, 2000])])
    """

    sets: tuple[Threat, ...]
    arguments = ("sets", "radius")

    if TYPE_CHECKING:

        def __init__(self, sets: Any, radius: float | None = None) -> None: ...

    @model_validator(mode="before")
    @classmethod
    def _largest_radius(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "sets" not in data:
            return data
        sets = data["sets"]
        if not isinstance(sets, list | tuple) or not all(isinstance(s, Threat) for s in sets):
            raise AdvlabError("a list of threat sets", f"{sets!r:.60}")
        if not sets:
            raise AdvlabError("at least one threat set", "none")
        sets, radius = scaled(sets, data.get("radius"))
        return {**data, "sets": sets, "radius": radius}

    @field_serializer("sets")
    def _with_their_kinds(self, sets: tuple[Threat, ...]) -> list[dict[str, Any]]:
        return described(sets)

    def project(
        self, point: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, "batch *shape"]:
        """The nearest of the nearest points of the members."""
        nearest = [one.project(point, center) for one in self.sets]
        return _first(nearest, [-(q - point).flatten(1).norm(dim=1) for q in nearest])

    def maximiser(
        self, grad: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, "batch *shape"]:
        """The best of the maximisers of the members."""
        best = [one.maximiser(grad, center) for one in self.sets]
        return _first(best, [(grad * (b - center)).flatten(1).sum(1) for b in best])

    def steepest(self, grad: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        """That of the member in which the gradient rises most by a whole move."""
        shares = [one.radius / self.radius if self.radius else 0.0 for one in self.sets]
        steps = [s * one.steepest(grad) for s, one in zip(shares, self.sets, strict=True)]
        rises = [s * one.dual_norm(grad) for s, one in zip(shares, self.sets, strict=True)]
        return _first(steps, rises)

    def sample(
        self, center: Float[Tensor, "batch *shape"], *, rng: Rng
    ) -> Float[Tensor, "batch *shape"]:
        """A draw of one member, each of them as likely."""
        streams = split(rng, len(self.sets))
        drawn = [one.sample(center, rng=own) for one, own in zip(self.sets, streams, strict=True)]
        order = uniform(center.new_empty(len(center), len(self.sets)), rng)
        return _first(drawn, list(order.unbind(1)))

    def contains(
        self, point: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Bool[Tensor, " batch"]:
        return torch.stack([one.contains(point, center) for one in self.sets]).any(0)

    def check_center(self, center: Tensor) -> None:
        check_finite(center, "inputs")
        for one in self.sets:
            one.check_center(center)

    def support(
        self, direction: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, " batch"]:
        """The largest of the members'."""
        return torch.stack([one.support(direction, center) for one in self.sets]).amax(0)

    def support_bound(
        self, direction: Float[Tensor, "batch *shape"], center: Float[Tensor, "rows *shape"]
    ) -> Float[Tensor, " batch"]:
        return torch.stack([one.support_bound(direction, center) for one in self.sets]).amax(0)

    @property
    def states_support(self) -> bool:
        """Where all members do."""
        return super().states_support and all(one.states_support for one in self.sets)

    def interval(
        self, center: Float[Tensor, "batch *shape"]
    ) -> tuple[Float[Tensor, "batch *shape"], Float[Tensor, "batch *shape"]]:
        """From the least to the largest end of the members."""
        low, high = zip(*(one.interval(center) for one in self.sets), strict=True)
        return torch.stack(low).amin(0), torch.stack(high).amax(0)

    def norm_of(self, move: Float[Tensor, "batch *shape"]) -> Float[Tensor, " batch"]:
        """The least of the members' norms over their radii, times the largest radius."""
        norms = [
            one.norm_of(move) * (self.radius / one.radius) for one in self.sets if one.radius > 0
        ]
        return torch.stack(norms).amin(0) if norms else super().norm_of(move)

    def dual_norm(self, w: Float[Tensor, "*batch_and_shape"]) -> Float[Tensor, "*batch"]:
        """The largest of the members', each times its share of the radius."""
        shares = [one.radius / self.radius if self.radius else 0.0 for one in self.sets]
        duals = [s * one.dual_norm(w) for s, one in zip(shares, self.sets, strict=True)]
        return torch.stack(duals).amax(0)

    @property
    def gaps(self) -> bool:
        """Between two members there may be nothing."""
        return True

    def to_domain(self, point: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        """Where inputs of the first member lie."""
        return self.sets[0].to_domain(point)

    def unit_moves(self, like: Tensor) -> Float[Tensor, "moves *shape"] | None:
        """Those of the members that have any."""
        found = [moves for one in self.sets if (moves := one.unit_moves(like)) is not None]
        return torch.cat(found) if found else None

    def points(self, center: Float[Tensor, "batch *shape"], most: int) -> Iterator[Tensor] | None:
        """All points of all members, where these are few."""
        lists = []
        for one in self.sets:
            found = one.points(center, most)
            if found is None:
                return None
            lists.append(list(found))
        return None if sum(map(len, lists)) > most else itertools.chain(*lists)


def _first(candidates: list[Tensor], worth: list[Tensor]) -> Tensor:
    """Of each row the candidate that is worth most."""
    best, most = candidates[0], worth[0]
    for candidate, value in zip(candidates[1:], worth[1:], strict=True):
        better = value > most
        best = torch.where(per_example(better, best), candidate, best)
        most = torch.where(better, value, most)
    return best
