"""Square: random search over windows, without any gradient."""

import math
from typing import ClassVar

import torch
from jaxtyping import Float
from pydantic import Field, PositiveInt
from torch import Tensor

from ..core.randomness import Rng, uniform
from ..threats import Threat
from ._engine.queries import Query, clip
from ._engine.square_windows import Groups, Squares, windows
from .base import Attack, BestSoFar

HALVINGS = (0.001, 0.005, 0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8)
"""After these fractions of the queries the windows cover half as much."""

BEYOND = 4.0
"""Up to so many times the way to another draw is gone, in sets with gaps."""


class Square(Attack):
    """Change a random window, keep the change where it helps (Andriushchenko et al. 2020).

    In linf every coordinate is at one end of what ball and box allow, and a window is set to random
    ends. In l2 and l1 the move in a second window is given to the first, with what is left of the
    radius: all of it, as in the paper, or a random part, without which the search cannot settle.
    Windows shrink on a schedule. In inputs of shape (channels, height, width) they are squares; in
    all others (or with `squares` off) they are random groups of coordinates, which is the same
    search for inputs whose coordinates have no places.

    It climbs the margin of a classifier, and rows leave once that is positive; other losses, or all
    with `climb_margin` off, are climbed themselves. Around a Cap the search is that of l2, brought
    back to the sphere. In sets with gaps a window is taken from a fresh draw of the set.

    Args:
        queries: How many points are tried per row and restart.
        share: The part of the input that the first windows cover.
        restarts: How many searches.
        squares: Windows are squares of images, not groups of coordinates.
        climb_margin: Climb the margin where the loss is about classes.

    Example:
        >>> from advlab.attacks import Square
        >>> from advlab.losses import ModelLoss, margin
        >>> found = Square(queries=1000)(ModelLoss(model, y, margin), x, ball, rng=rng)
        >>> broken = found.loss >= 0
    """

    uses_gradient: ClassVar[bool] = False
    queries: PositiveInt = 5000
    share: float = Field(default=0.8, gt=0, le=1)
    restarts: PositiveInt = 1
    squares: bool = True
    climb_margin: bool = True

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        query = Query(best, rng, self.climb_margin)
        window = windows(tuple(best.x.shape[1:]), self.squares)
        for _ in range(self.restarts):
            if len(query.rows):
                self._run(query, _points(query, threat), window)
            # After a restart `best`, not the last run, knows the worst.
            best.value(threat.project(query.found.reshape(best.x.shape), best.x))

    def _run(
        self, query: Query, points: "_Corners | _Moves | _Draws", window: Squares | Groups
    ) -> None:
        points.begin(window)
        value = query.value(points.candidate)
        for k in range(1, self.queries):
            kept = query.drop_broken(value, points.candidate)
            if kept is not None:
                value = value[kept]
                points.keep_rows(kept)
            if len(query.rows) == 0:
                return
            points.change(window, window.size(self.share_after(k)))
            tried = query.value(points.candidate)
            better = tried > value
            value = torch.where(better, tried, value)
            points.undo(~better)
        kept = query.drop_broken(value, points.candidate)
        if kept is not None:
            points.keep_rows(kept)
        query.store(points.candidate)

    def share_after(self, queries: int) -> float:
        """The part of the input that a window covers after so many queries."""
        return self.share / 2 ** sum(queries > h * self.queries for h in HALVINGS)


def _points(query: Query, threat: Threat) -> "_Corners | _Moves | _Draws":
    if threat.gaps:
        return _Draws(query, threat)
    ends = threat.ends(query.best.x)
    return _Moves(query, threat) if ends is None else _Corners(query, *ends)


class _Corners:
    """Corners of a product of intervals; one window of them can be changed and undone."""

    def __init__(self, query: Query, low: Tensor, high: Tensor):
        self.query = query
        self.low, self.high = low.flatten(1)[query.rows], high.flatten(1)[query.rows]

    def begin(self, window: Squares | Groups) -> None:
        self.candidate = torch.where(window.stripes(self.query) > 0, self.high, self.low)

    def change(self, window: Squares | Groups, size: int) -> None:
        index, sign = window.draw(self.query, size)
        self.index, sign = index.flatten(1), sign.expand(index.shape).flatten(1)
        self.old = self.candidate.gather(1, self.index)
        low, high = self.low.gather(1, self.index), self.high.gather(1, self.index)
        new = torch.where(sign > 0, high, low)
        # A window that would stay as it is goes to the other ends: no query is wasted.
        same = (new == self.old).all(1, keepdim=True)
        new = torch.where(same, torch.where(sign > 0, low, high), new)
        self.candidate.scatter_(1, self.index, new)

    def undo(self, rows: Tensor) -> None:
        new = self.candidate.gather(1, self.index)
        self.candidate.scatter_(1, self.index, torch.where(rows[:, None], self.old, new))

    def keep_rows(self, kept: Tensor) -> None:
        self.low, self.high, self.candidate = (
            t[kept] for t in (self.low, self.high, self.candidate)
        )


class _Draws:
    """Points of a set with gaps: a window is taken from another draw, and projected."""

    def __init__(self, query: Query, threat: Threat):
        self.query, self.threat = query, threat
        self.whole = query.best.x.flatten(1)
        self.x = self.whole[query.rows]

    def begin(self, window: Squares | Groups) -> None:
        self.candidate = self._draw()

    def change(self, window: Squares | Groups, size: int) -> None:
        index = window.draw(self.query, size)[0].flatten(1)
        self.before = self.candidate
        old = self.candidate.gather(1, index)
        # Beyond the draw, or a new category would not outweigh the old one.
        far = BEYOND * self.query.draw(uniform, 1)
        mixed = old + far * (self._draw().gather(1, index) - old)
        self.candidate = self.threat.project(self.candidate.scatter(1, index, mixed), self.x)

    def undo(self, rows: Tensor) -> None:
        self.candidate = torch.where(rows[:, None], self.before, self.candidate)

    def keep_rows(self, kept: Tensor) -> None:
        self.x, self.candidate = self.x[kept], self.candidate[kept]

    def _draw(self) -> Tensor:
        def drawn(like: Tensor, rng: Rng) -> Tensor:
            center = self.x if len(like) == len(self.x) else self.whole
            return self.threat.sample(center, rng=rng)

        return self.query.draw(drawn, self.x.shape[1])


class _Moves:
    """Points of any other set: the radius, to the power of the norm, is dealt out over windows."""

    def __init__(self, query: Query, threat: Threat):
        self.query, self.threat = query, threat
        self.order = threat.order
        self.x = query.best.x.flatten(1)[query.rows]

    def begin(self, window: Squares | Groups) -> None:
        """Bumps at random places until about everything is covered, scaled to the radius."""
        move, size = torch.zeros_like(self.x), window.size(0.04)
        for _ in range(25):
            index, bump = self._bump(window, size)
            move.scatter_add_(1, index.flatten(1), bump.flatten(1))
        self.point = clip(self.x + self.threat.radius * self._scaled(move), self.threat)
        self.mass = self._mass(self.point - self.x)
        self._show()

    def change(self, window: Squares | Groups, size: int) -> None:
        """The move of the second window goes to the first, which gets a bump as well."""
        (index, bump), (other, _) = self._bump(window, size), window.draw(self.query, size)
        one, two = index.flatten(1), other.flatten(1)
        self.index = torch.cat([one, two], 1)
        self.before = self.point.gather(1, self.index), self.mass, self.candidate
        part = (2 * self.query.draw(uniform, 1)).clamp(max=1.0)
        first = self._taken(one, torch.ones_like(part), index.shape)
        second = self._taken(two, part, index.shape)
        spare = (self.threat.radius**self.order - self.mass).clamp(min=0.0)
        freed = self._mass(first) + part * self._mass(second)
        budget = freed + spare[:, None]
        mixed = self._scaled(bump) + self._scaled(first)
        mixed = torch.where(self._mass(mixed)[..., None] > 1e-12, mixed, bump)
        move = (self._scaled(mixed) * self._length(budget)).flatten(1)
        center = self.x.gather(1, one)
        there = clip(center + move, self.threat)
        self.point.scatter_(1, one, there)
        self.mass = self.mass - freed.sum(1) + self._mass(there - center)
        self._show()

    def undo(self, rows: Tensor) -> None:
        old, mass, candidate = self.before
        window = torch.where(rows[:, None], old, self.point.gather(1, self.index))
        self.point.scatter_(1, self.index, window)
        self.mass = torch.where(rows, mass, self.mass)
        if self.candidate is not self.point:
            self.candidate = torch.where(rows[:, None], candidate, self.candidate)

    def keep_rows(self, kept: Tensor) -> None:
        self.x, self.point, self.mass = (t[kept] for t in (self.x, self.point, self.mass))
        self._show()

    def _show(self) -> None:
        # The search stays inside a ball of the norm, and inside the limits of inputs.
        inside = self.threat.isotropic
        self.candidate = self.point if inside else self.threat.project(self.point, self.x)

    def _bump(self, window: Squares | Groups, size: int) -> tuple[Tensor, Tensor]:
        """The window as one channel; a bump in it, of its own size and sign in each channel."""
        index, sign = window.draw(self.query, size)
        height = self.query.draw(uniform, index.shape[1], 1)
        bump = (window.bump(self.query, size) * sign * height).expand(index.shape)
        return index.flatten(1)[:, None], bump.flatten(1)[:, None]

    def _taken(
        self, index: Tensor, part: Float[Tensor, "rows 1"], shape: torch.Size
    ) -> Float[Tensor, "rows c k"]:
        """The move in a window, from which this part of its mass is taken away."""
        center = self.x.gather(1, index)
        move = self.point.gather(1, index) - center
        left = self._length(1 - part)[..., 0] * move
        self.point.scatter_(1, index, center + left)
        return move.reshape(shape)

    def _mass(self, move: Tensor) -> Tensor:
        """The norm to its own power, over the last axis: it adds up over windows."""
        return move.abs().pow(self.order).sum(-1)

    def _length(self, mass: Tensor) -> Tensor:
        return mass.pow(1 / self.order)[..., None]

    def _scaled(self, move: Tensor) -> Tensor:
        tiny = math.sqrt(torch.finfo(move.dtype).tiny)
        return move / self._length(self._mass(move)).clamp(min=tiny)
