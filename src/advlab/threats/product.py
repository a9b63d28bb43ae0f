"""Products of sets over groups of features, all of them changed or only a few."""

import itertools
import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from jaxtyping import Bool, Float
from pydantic import NonNegativeInt, field_serializer, model_validator
from torch import Tensor

from ..core.errors import AdvlabError
from ..core.randomness import Rng, uniform
from .base import Threat, check_finite
from .feature_ball import FeatureBall
from .hyperplane import nearest_plane, onto_plane
from .nested import described, scaled
from .sampling import split


class Product(Threat):
    """Each group of features in a set of its own; at most `changes` of the groups changed at all.

    This is how a table becomes one threat set: numbers in a ball, counts in whole steps, categories
    by swaps. Features in no group are frozen. With `changes` the set is the union, over all choices
    of so many groups, of the products in which the others stay: a budget over groups.

    Groups share nothing but the budget, so projection, maximiser and support function are those of
    the parts, made in the groups where that saves (or gains) most: as exact as the parts are.

    Args:
        parts: Pairs of columns (a range or a list, counted in the flattened input) and the threat
            set of these columns, which sees them as rows of their own.
        changes: How many groups may differ from the center; all if left out.
        radius: The largest radius of the parts. Another value scales all of them, as `with_radius`
            does.

    Example:
        >>> from advlab.threats import Ball, FeatureBall, Integers, OneHot, Product
        >>> table = Product([
        ...     (range(0, 5), FeatureBall("l2", [0.5, 0.5, 1.0, 0.0, 0.2])),
        ...     ([5], Integers(2.0, low=0.0)),
        ...     (range(6, 12), OneHot([[0, 1, 2], [3, 4, 5]], radius=1)),
        ... ])
        >>> one_sensor = Product([(range(4 * k, 4 * k + 4), Ball("linf", 1.0)) for k in range(5)],
        ...                      changes=1)
    """

    columns: tuple[tuple[int, ...], ...]
    parts: tuple[Threat, ...]
    changes: NonNegativeInt | None = None
    arguments = ("parts", "changes", "radius")

    if TYPE_CHECKING:

        def __init__(
            self, parts: Any, changes: int | None = None, radius: float | None = None
        ) -> None: ...

    @model_validator(mode="before")
    @classmethod
    def _pairs(cls, data: Any) -> Any:
        if not isinstance(data, dict) or "parts" not in data:
            return data
        parts, columns = data["parts"], data.get("columns")
        if columns is None:
            columns, parts = _unzipped(parts)
        if not all(isinstance(one, Threat) for one in parts):
            other = next(one for one in parts if not isinstance(one, Threat))
            raise AdvlabError("parts that are threat sets", f"{other!r:.60}")
        parts, radius = scaled(parts, data.get("radius"))
        return {**data, "columns": columns, "parts": parts, "radius": radius}

    @model_validator(mode="after")
    def _disjoint(self) -> "Product":
        every = [column for group in self.columns for column in group]
        if not self.parts or len(self.parts) != len(self.columns):
            raise AdvlabError("one threat set per group of columns", len(self.parts))
        if any(not group for group in self.columns) or min(every) < 0:
            raise AdvlabError("groups of columns, counted from 0", f"{self.columns!r:.60}")
        if len(set(every)) < len(every):
            twice = next(column for column in every if every.count(column) > 1)
            raise AdvlabError("groups without a column in common", f"column {twice} twice")
        return self

    @field_serializer("parts")
    def _with_their_kinds(self, parts: tuple[Threat, ...]) -> list[dict[str, Any]]:
        return described(parts)

    def project(
        self, point: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, "batch *shape"]:
        """Each group to its nearest point, in the groups where that is nearest by most."""
        given, middles = self._split(point), self._split(center)
        nearest = [
            part.project(p, c) for part, p, c in zip(self.parts, given, middles, strict=True)
        ]
        saved = [
            ((p - c).square() - (p - q).square()).sum(1)
            for p, c, q in zip(given, middles, nearest, strict=True)
        ]
        return self._joined(center, middles, nearest, saved)

    def maximiser(
        self, grad: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, "batch *shape"]:
        """Each group at its own maximiser, in the groups that gain most."""
        slopes, middles = self._split(grad), self._split(center)
        best = [
            part.maximiser(g, c) for part, g, c in zip(self.parts, slopes, middles, strict=True)
        ]
        gains = [(g * (b - c)).sum(1) for g, b, c in zip(slopes, best, middles, strict=True)]
        return self._joined(center, middles, best, gains)

    def steepest(self, grad: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        """The steepest direction of each group, as long as its part of the largest radius."""
        each = zip(self.parts, self._split(grad), self._shares(), strict=True)
        return self._merged(torch.zeros_like(grad), [s * part.steepest(g) for part, g, s in each])

    def sample(
        self, center: Float[Tensor, "batch *shape"], *, rng: Rng
    ) -> Float[Tensor, "batch *shape"]:
        """A draw of each part; with `changes`, in that many groups, chosen at random."""
        middles = self._split(center)
        each = zip(self.parts, middles, split(rng, len(self.parts)), strict=True)
        drawn = [part.sample(c, rng=own) for part, c, own in each]
        if self._few is None:
            return self._merged(center, drawn)
        order = uniform(center.new_empty(len(center), len(self.parts)), rng) + 1.0
        return self._joined(center, middles, drawn, list(order.unbind(1)))

    def contains(
        self, point: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Bool[Tensor, " batch"]:
        """Whether every group is in its set, and no more of them changed than may.

        A group that moved by no more than rounding has not changed.
        """
        flat, middle = point.flatten(1), center.flatten(1)
        edge = 16 * torch.finfo(point.dtype).eps * (self.radius + middle.abs())
        moved = (flat - middle).abs() > edge
        inside = ~(moved & ~self._covered(center)).any(1)
        each = zip(self.parts, self._split(point), self._split(center), strict=True)
        for part, p, c in each:
            inside &= part.contains(p, c)
        if self._few is not None:
            changed = torch.stack([one.any(1) for one in self._split(moved)], 1)
            inside &= changed.sum(1) <= self._few
        return inside

    def check_center(self, center: Tensor) -> None:
        check_finite(center, "inputs")
        if len(center) == 0:
            return
        most = max(column for group in self.columns for column in group)
        if most >= center[0].numel():
            raise AdvlabError(f"inputs of at least {most + 1} features", center[0].numel())
        for columns, part, c in zip(self.columns, self.parts, self._split(center), strict=True):
            try:
                part.check_center(c)
            except AdvlabError as error:
                raise AdvlabError(f"in columns {_short(columns)}: {error}") from None

    def support(
        self, direction: Float[Tensor, "batch *shape"], center: Float[Tensor, "batch *shape"]
    ) -> Float[Tensor, " batch"]:
        """The sum over all features of the center, and of the largest gains of the parts."""
        return self._largest("support", direction, center)

    def support_bound(
        self, direction: Float[Tensor, "batch *shape"], center: Float[Tensor, "rows *shape"]
    ) -> Float[Tensor, " batch"]:
        """The same of the bounds of the parts."""
        return self._largest("support_bound", direction, center.expand_as(direction))

    @property
    def states_support(self) -> bool:
        """Where all parts do."""
        return super().states_support and all(part.states_support for part in self.parts)

    def interval(
        self, center: Float[Tensor, "batch *shape"]
    ) -> tuple[Float[Tensor, "batch *shape"], Float[Tensor, "batch *shape"]]:
        """The intervals of the parts."""
        if self._few == 0:
            return center.clone(), center.clone()
        each = zip(self.parts, self._split(center), strict=True)
        low, high = zip(*(part.interval(c) for part, c in each), strict=True)
        return self._merged(center, list(low)), self._merged(center, list(high))

    def norm_of(self, move: Float[Tensor, "batch *shape"]) -> Float[Tensor, " batch"]:
        """The largest of the parts' norms over their radii, times the largest radius."""
        each = zip(self.parts, self._split(move), self._shares(), strict=True)
        norms = [
            part.norm_of(m) / s if s > 0 else torch.where((m == 0).all(1), 0.0, math.inf)
            for part, m, s in each
        ]
        frozen = ((move.flatten(1) != 0) & ~self._covered(move)).any(1)
        return torch.where(frozen, math.inf, torch.stack(norms).amax(0))

    def dual_norm(self, w: Float[Tensor, "*batch_and_shape"]) -> Float[Tensor, "*batch"]:
        """max of <w, move> over moves of norm 1: the sum over the parts."""
        rows = w[None] if w.ndim == 1 else w
        each = zip(self.parts, self._split(rows), self._shares(), strict=True)
        dual = torch.stack([s * part.dual_norm(one) for part, one, s in each]).sum(0)
        return dual[0] if w.ndim == 1 else dual

    @property
    def convex(self) -> bool:
        """Where all parts are, and all may change."""
        return self._few is None and all(part.convex for part in self.parts)

    @property
    def gaps(self) -> bool:
        """A budget over groups leaves gaps, and so do parts that have some."""
        return self._few is not None or any(part.gaps for part in self.parts)

    def ends(self, center: Tensor) -> tuple[Tensor, Tensor] | None:
        """The ends of the parts, where all have some and all may change."""
        if self._few is not None:
            return None
        each = zip(self.parts, self._split(center), strict=True)
        found = [ends for part, c in each if (ends := part.ends(c)) is not None]
        if len(found) < len(self.parts):
            return None
        low, high = zip(*found, strict=True)
        return self._merged(center, list(low)), self._merged(center, list(high))

    def to_domain(self, point: Float[Tensor, "batch *shape"]) -> Float[Tensor, "batch *shape"]:
        each = zip(self.parts, self._split(point), strict=True)
        return self._merged(point, [part.to_domain(p) for part, p in each])

    def onto_plane(
        self,
        slope: Float[Tensor, "batch d"],
        rise: Float[Tensor, " batch"],
        start: Float[Tensor, "batch d"],
    ) -> tuple[Float[Tensor, "batch d"], Bool[Tensor, " batch"]]:
        """The shortest move in units of the radii; limits of the parts are left to `to_domain`."""
        reach = self._reach(start)
        move, reached = onto_plane(self.order, slope * reach, rise, start)
        return reach * move, reached

    def nearest_plane(
        self,
        values: Float[Tensor, "batch planes"],
        slopes: Float[Tensor, "batch planes d"],
        start: Float[Tensor, "batch d"],
    ) -> tuple[Float[Tensor, "batch d"], Float[Tensor, "batch d"], Float[Tensor, " batch"]]:
        reach = self._reach(start)
        move, slope, value = nearest_plane(self.order, values, slopes * reach[:, None], start)
        unit = torch.where(reach > 0, reach, 1.0)
        return reach * move, slope / unit, value

    def unit_moves(self, like: Tensor) -> Float[Tensor, "moves *shape"] | None:
        """Those of the parts."""
        wide = like.flatten(1)
        found = []
        for columns, part, one in zip(self.columns, self.parts, self._split(like), strict=True):
            moves = part.unit_moves(one)
            if moves is not None:
                place = torch.tensor(columns, device=like.device)
                found.append(wide.new_zeros(len(moves), wide.shape[1]).index_copy(1, place, moves))
        return torch.cat(found).reshape(-1, *like.shape[1:]) if found else None

    def points(self, center: Float[Tensor, "batch *shape"], most: int) -> Iterator[Tensor] | None:
        """All combinations of the points of the parts, where all have few."""
        lists = []
        for part, c in zip(self.parts, self._split(center), strict=True):
            found = part.points(c, most)
            if found is None:
                return None
            lists.append(list(found))
        if math.prod(map(len, lists)) > most:
            return None
        every = itertools.product(*lists)
        return (self.project(self._merged(center, list(one)), center) for one in every)

    @property
    def _few(self) -> int | None:
        """How many groups may change, if not all of them."""
        every = self.changes is None or self.changes >= len(self.parts)
        return None if every else self.changes

    def _shares(self) -> list[float]:
        return [part.radius / self.radius if self.radius else 0.0 for part in self.parts]

    def _split(self, values: Tensor) -> list[Tensor]:
        flat = values.flatten(1)
        return [flat[:, torch.tensor(group, device=flat.device)] for group in self.columns]

    def _merged(self, rest: Tensor, parts: list[Tensor]) -> Tensor:
        """The parts in their columns, the rest elsewhere."""
        out = rest.flatten(1).clone()
        for group, part in zip(self.columns, parts, strict=True):
            out[:, torch.tensor(group, device=out.device)] = part
        return out.reshape(rest.shape)

    def _joined(
        self, center: Tensor, middles: list[Tensor], moved: list[Tensor], worth: list[Tensor]
    ) -> Tensor:
        """The moved parts in the groups worth most, the center elsewhere."""
        if self._few is None:
            return self._merged(center, moved)
        rank = torch.stack(worth, 1).argsort(dim=1, descending=True, stable=True)[:, : self._few]
        chosen = torch.zeros_like(torch.stack(worth, 1), dtype=torch.bool).scatter(1, rank, True)
        each = zip(moved, middles, chosen.unbind(1), strict=True)
        return self._merged(center, [torch.where(on[:, None], m, c) for m, c, on in each])

    def _largest(self, name: str, direction: Tensor, center: Tensor) -> Float[Tensor, " batch"]:
        along = (direction * center).flatten(1).sum(1)
        each = zip(self.parts, self._split(direction), self._split(center), strict=True)
        supports: list[tuple[Callable, Tensor, Tensor]] = [
            (getattr(part, name), a, c) for part, a, c in each
        ]
        gains = torch.stack([of(a, c) - (a * c).sum(1) for of, a, c in supports], 1)
        if self._few is not None:
            gains = gains.sort(dim=1, descending=True).values[:, : self._few]
        return along + gains.sum(1)

    def _covered(self, like: Tensor) -> Bool[Tensor, "1 d"]:
        wide = like.flatten(1)
        every = [column for group in self.columns for column in group]
        covered = torch.zeros(1, wide.shape[1], dtype=torch.bool, device=like.device)
        covered[:, every] = True
        return covered

    def _reach(self, like: Tensor) -> Float[Tensor, "1 d"]:
        """How far each feature goes beside the furthest, as far as the parts say; 0 if frozen."""
        reach = []
        for part, share, one in zip(self.parts, self._shares(), self._split(like), strict=True):
            own = one.new_ones(1, one.shape[1])
            reach.append(
                share * (part._weights(one) * own if isinstance(part, FeatureBall) else own)
            )
        return self._merged(like.new_zeros(1, like.shape[1]), reach)


def _unzipped(pairs: Any) -> tuple[list[Any], list[Any]]:
    try:
        both = [(columns, part) for columns, part in pairs]
    except (TypeError, ValueError):
        raise AdvlabError("parts as pairs of columns and a threat set", f"{pairs!r:.60}") from None
    lists = []
    for columns, _ in both:
        columns = columns.tolist() if hasattr(columns, "tolist") else columns
        if not isinstance(columns, range | list | tuple):
            raise AdvlabError("columns as a range or a list of numbers", f"{columns!r:.60}")
        lists.append(tuple(columns))
    return lists, [part for _, part in both]


def _short(columns: tuple[int, ...]) -> str:
    return ", ".join(map(str, columns[:6])) + (", ..." if len(columns) > 6 else "")
