"""Categorical features: groups of columns of which exactly one is 1."""

import itertools
import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float, Int
from pydantic import NonNegativeFloat, field_validator, model_validator
from torch import Tensor

from ..core.errors import AdvlabError
from ..core.randomness import Rng, uniform
from .base import Threat, check_finite
from .hyperplane import nearest_plane, onto_plane

CROSS = 12.0
"""A tenth of this is more than 1, what the best swap of two categories has to gain to be made."""
FORCE = 4.0
"""Added to a column, it makes this category the nearest, before any that is set already."""


class OneHot(Threat):
    """At most `radius` of the groups hold another category than the center's.

    A group is a list of columns with exactly one 1 among zeros, and every point of the set is so
    too; columns in no group are frozen. The set is finite, a Hamming ball. All is exact: the points
    nearest to a given one and largest along a gradient take the best category of each group, and
    make the change in the groups where it gains most.

    Args:
        groups: The columns (counted in the flattened input) of each categorical feature.
        radius: How many groups may change; of 1.5 the whole part counts.
        allowed: The columns that a change may choose; all if left out. A center may lie elsewhere.

    Example:
        >>> import torch
        >>> from advlab.threats import OneHot
        >>> job_and_city = OneHot([[0, 1, 2], [3, 4]], radius=1)
        >>> x = torch.tensor([[1.0, 0.0, 0.0, 0.0, 1.0]])
        >>> job_and_city.maximiser(torch.tensor([[0.0, 3.0, 1.0, 2.0, 0.0]]), x)
        tensor([[0., 1., 0., 0., 1.]])
    """

    groups: tuple[tuple[int, ...], ...]
    radius: NonNegativeFloat = 1.0
    allowed: tuple[int, ...] | None = None
    arguments = ("groups", "radius", "allowed")

    if TYPE_CHECKING:

        def __init__(self, groups: Any, radius: float = 1.0, allowed: Any = None) -> None: ...

    @field_validator("groups", "allowed", mode="before")
    @classmethod
    def _lists(cls, value: Any) -> Any:
        if hasattr(value, "tolist"):
            return value.tolist()
        if isinstance(value, list | tuple):
            return [list(one) if isinstance(one, range) else one for one in value]
        return list(value) if isinstance(value, range) else value

    @model_validator(mode="after")
    def _fits(self) -> "OneHot":
        columns = [column for group in self.groups for column in group]
        if any(len(group) < 2 for group in self.groups) or not self.groups:
            raise AdvlabError("groups of two columns or more", self.groups)
        if len(set(columns)) < len(columns) or min(columns) < 0:
            raise AdvlabError("groups of different columns, counted from 0", self.groups)
        if not set(self.allowed or ()) <= set(columns):
            other = sorted(set(self.allowed or ()) - set(columns))
            raise AdvlabError("allowed columns among those of the groups", other)
        return self

    @property
    def changes(self) -> int:
        """How many groups may change: the whole part of the radius, at most all."""
        return min(math.floor(self.radius), len(self.groups))

    def project(
        self, point: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, "batch *shape"]:
        """The nearest point of the set: as all have the same length, the largest along `point`."""
        return self.maximiser(point, center)

    def maximiser(
        self, grad: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, "batch *shape"]:
        """The best category in the groups that gain most by it: exact."""
        columns, gain = self._best(grad, center)
        return self._changed(center, columns, self._chosen(gain))

    def steepest(self, grad: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        """The gradient in units of the best swap, so long that a tenth of the radius makes it."""
        values, real = self._gathered(grad)
        spread = torch.where(real, values, -math.inf).amax(2)
        spread = spread - torch.where(real, values, math.inf).amin(2)
        scale = spread.amax(1, keepdim=True)
        unit = torch.where(scale > 0, grad.flatten(1) / scale, 0.0) * self._free(grad)
        return (CROSS / max(self.radius, 1e-30) * unit).reshape(grad.shape)

    def sample(
        self, center: Float[Tensor, "batch *shape"], *, rng: Rng
    ) -> Float[Tensor, "batch *shape"]:
        """Groups at random, as many as may change, each with a category at random.

        Their own category is as likely as any other, so that fewer changes come up too. Uniform
        over the set where all groups may change or only one group is there.
        """
        values, may = self._gathered(center)[0], self._choices(center)
        order = uniform(values[:, :, 0].contiguous(), rng)
        category = torch.where(may, uniform(values, rng), -1.0).argmax(2)
        columns = self._columns(center)[0].expand(len(center), -1, -1)
        columns = columns.gather(2, category[:, :, None])[:, :, 0]
        return self._changed(center, columns, self._chosen(order + 1.0))

    def contains(
        self, point: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Bool[Tensor, " batch"]:
        return (
            torch.isclose(point, self.project(point, center), rtol=0.0, atol=1e-6).flatten(1).all(1)
        )

    def check_center(self, center: Tensor) -> None:
        check_finite(center, "inputs")
        if len(center) == 0:
            return
        most = max(column for group in self.groups for column in group)
        if most >= center[0].numel():
            raise AdvlabError(f"inputs of at least {most + 1} features", center[0].numel())
        values, real = self._gathered(center)
        wrong = real & (values != 0) & (values != 1)
        bad = wrong.any(2) | (torch.where(real, values, 0.0).sum(2) != 1)
        if bool(bad.any()):
            row, group = (int(place) for place in bad.nonzero()[0])
            came = [round(float(v), 4) for v in center.flatten(1)[row, list(self.groups[group])]]
            raise AdvlabError(
                f"exactly one 1 among zeros in columns {list(self.groups[group])}",
                f"{came} in row {row}",
                "encode categories as one-hot columns, without scaling them",
            )

    def support(
        self, direction: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, " batch"]:
        """<direction, center> and the largest gains, one per group that may change."""
        along = (direction * center).flatten(1).sum(1)
        gain = self._best(direction, center)[1]
        return along + gain.sort(dim=1, descending=True).values[:, : self.changes].sum(1)

    def interval(
        self, center: Float[Tensor, "batch *shape"]
    ) -> tuple[Float[Tensor, "batch *shape"], Float[Tensor, "batch *shape"]]:
        """0 to 1 for a column that can be chosen or left, else what it is."""
        if self.changes == 0:
            return center.clone(), center.clone()
        may = self._choices(center)
        several = (may.sum(2, keepdim=True) > 1) & may
        moves = self._scattered(center, several) > 0
        return torch.where(moves, 0.0, center), torch.where(moves, 1.0, center)

    def norm_of(self, move: Float[Tensor, "batch *shape"]) -> Float[Tensor, " batch"]:
        """Half the l1 norm: of a swap of two categories it is 1."""
        return move.abs().flatten(1).sum(1) / 2

    @property
    def gaps(self) -> bool:
        return True

    def to_domain(self, point: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        """The columns of the groups between 0 and 1."""
        free = self._free(point).reshape(1, *point.shape[1:]) > 0
        return torch.where(free, point.clamp(0.0, 1.0), point)

    def onto_plane(
        self,
        slope: Float[Tensor, "batch d"],
        rise: Float[Tensor, " batch"],
        start: Float[Tensor, "batch d"],
    ) -> tuple[Float[Tensor, "batch d"], Bool[Tensor, " batch"]]:
        """The shortest move in the columns of the groups, as if they were numbers."""
        return onto_plane(self.order, slope * self._free(start), rise, start)

    def nearest_plane(
        self,
        values: Float[Tensor, "batch planes"],
        slopes: Float[Tensor, "batch planes d"],
        start: Float[Tensor, "batch d"],
    ) -> tuple[Float[Tensor, "batch d"], Float[Tensor, "batch d"], Float[Tensor, " batch"]]:
        return nearest_plane(self.order, values, slopes * self._free(start)[:, None], start)

    def unit_moves(self, like: Tensor) -> Float[Tensor, "moves *shape"] | None:
        """Every category of every group."""
        columns = torch.tensor([c for group in self.groups for c in group], device=like.device)
        moves = like.new_zeros(len(columns), like.flatten(1).shape[1])
        return moves.scatter(1, columns[:, None], FORCE).reshape(-1, *like.shape[1:])

    def points(self, center: Float[Tensor, "batch *shape"], most: int) -> Iterator[Tensor] | None:
        """All choices of categories in all choices of groups, where these are few."""
        some = list(itertools.islice(itertools.combinations(self.groups, self.changes), most + 1))
        if sum(math.prod(len(group) for group in few) for few in some) > most:
            return None
        return self._all_points(center, some)

    def _all_points(self, center: Tensor, some: list[Any]) -> Iterator[Tensor]:
        for groups in some:
            for columns in itertools.product(*groups):
                point = center.flatten(1).clone()
                for group, column in zip(groups, columns, strict=True):
                    point[:, list(group)] = 0.0
                    point[:, column] = 1.0
                yield self.project(point.reshape(center.shape), center)

    def _columns(
        self, like: Tensor
    ) -> tuple[Int[Tensor, "1 groups size"], Bool[Tensor, "1 groups size"]]:
        """The groups as one table, and which of its places are real; short groups repeat."""
        size = max(map(len, self.groups))
        table = [[*group, *[group[0]] * (size - len(group))] for group in self.groups]
        real = [[True] * len(group) + [False] * (size - len(group)) for group in self.groups]
        return torch.tensor([table], device=like.device), torch.tensor([real], device=like.device)

    def _gathered(self, values: Tensor) -> tuple[Float[Tensor, "batch groups size"], Tensor]:
        columns, real = self._columns(values)
        rows = values.flatten(1)[:, columns.flatten()]
        return rows.reshape(len(values), *columns.shape[1:]), real.expand(len(values), -1, -1)

    def _choices(self, center: Tensor) -> Bool[Tensor, "batch groups size"]:
        """What each group may hold: the allowed columns, and the center's own."""
        held, real = self._gathered(center)
        if self.allowed is None:
            return real
        columns, _ = self._columns(center)
        allowed = torch.isin(
            columns, torch.tensor(self.allowed, device=center.device, dtype=torch.long)
        )
        return real & (allowed | (held > 0.5))

    def _best(
        self, grad: Tensor, center: Tensor
    ) -> tuple[Int[Tensor, "batch groups"], Float[Tensor, "batch groups"]]:
        """The column of the best category of each group, and what it gains over the center's."""
        slope, _ = self._gathered(grad)
        held, real = self._gathered(center)
        now = torch.where(real & (held > 0.5), slope, 0.0).sum(2)
        top = torch.where(self._choices(center), slope, -math.inf).max(2)
        columns = self._columns(center)[0].expand(len(center), -1, -1)
        gain = (top.values - now).clamp(min=0.0)
        return columns.gather(2, top.indices[:, :, None])[:, :, 0], gain

    def _chosen(self, gain: Float[Tensor, "batch groups"]) -> Bool[Tensor, "batch groups"]:
        """The groups that gain most, and anything, as many as may change."""
        first = gain.argsort(dim=1, descending=True, stable=True)[:, : self.changes]
        return torch.zeros_like(gain, dtype=torch.bool).scatter(1, first, True) & (gain > 0)

    def _changed(self, center: Tensor, columns: Tensor, chosen: Tensor) -> Tensor:
        """The center with these columns in the chosen groups."""
        every = chosen[:, :, None].expand_as(self._gathered(center)[1])
        cleared = self._scattered(center, every) > 0
        flat = torch.where(cleared.flatten(1), 0.0, center.flatten(1))
        one = torch.zeros_like(flat).scatter_add(1, columns, chosen.to(flat))
        return (flat + one).reshape(center.shape)

    def _scattered(self, like: Tensor, flags: Bool[Tensor, "batch groups size"]) -> Tensor:
        """1 at the columns that are flagged, in the shape of `like`."""
        columns, real = self._columns(like)
        flat = (flags & real).to(like).flatten(1)
        index = columns.flatten()[None].expand(len(like), -1)
        out = torch.zeros_like(like.flatten(1)).scatter_add(1, index, flat)
        return out.reshape(like.shape)

    def _free(self, like: Tensor) -> Float[Tensor, "1 d"]:
        columns = self._columns(like)[0].flatten()
        return like.new_zeros(1, like.flatten(1).shape[1]).scatter(1, columns[None], 1.0)
