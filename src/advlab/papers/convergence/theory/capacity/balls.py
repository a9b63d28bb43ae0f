"""Theorem 6.1: n disjoint balls realise every labelling of floor(n/2) d points.

So a class of functions that fits n separated balls robustly, whatever their labels, has VC
dimension at least floor(n/2) d.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist, pdist

from .....core.checks import Array, Scalar, length, signs, stack, whole
from .....core.errors import AdvlabError
from .shattering import cluster_points, require_feasible, tau_interval


@dataclass(frozen=True)
class Balls:
    """n centres with a label each, the radius of their balls, and the points they shatter."""

    centres: Array
    signs: Array
    delta: float
    points: Array
    labels: Array

    @property
    def least_distance(self) -> float:
        """Between two centres; more than 2 delta where the balls are disjoint."""
        return float(pdist(self.centres).min())

    @property
    def farthest_own(self) -> float:
        """The largest distance of a point to the nearest centre of its label: at most delta."""
        return float(self._distances(same=True).min(axis=1).max())

    @property
    def nearest_other(self) -> float:
        """The least distance of a point to a centre of the other label: more than delta."""
        return float(self._distances(same=False).min())

    @property
    def holds(self) -> bool:
        """Disjoint balls; each point in a ball of its own label and in none of the other."""
        return (
            self.least_distance > 2 * self.delta
            and self.farthest_own <= self.delta
            and self.nearest_other > self.delta
        )

    def classify(self, x: Any) -> Array:
        """The label of the nearest centre.

        It is constant on each of the n disjoint balls, so it fits them robustly; and it gives the
        shattered points their labels.
        """
        rows = stack("x", x, self.centres.shape[1])
        near = cdist(rows.reshape(-1, rows.shape[-1]), self.centres).argmin(axis=1)
        return self.signs[near].reshape(rows.shape[:-1])

    def _distances(self, *, same: bool) -> Array:
        alike = self.labels[:, None] == self.signs
        return np.where(alike == same, cdist(self.points, self.centres), np.inf)


def shatter(n: int, d: int, delta: Scalar, eps: Scalar, labels: Any) -> Balls:
    """The n balls that realise labels of the floor(n/2) d points of `cluster_points`.

    tau is the middle of its interval. Balls without a use go far away: the second one of a cluster
    of one label, and the last of an odd n.

    Args:
        n: the number of balls.
        d: the dimension.
        delta: their radius.
        eps: the spread of a cluster.
        labels: +1 or -1, in the points' order.
    """
    points = cluster_points(n, d, delta, eps)
    clusters, radius, spread = len(points), length("delta", delta), length("eps", eps)
    wanted = signs(labels, points[..., 0].size).reshape(clusters, -1)
    if clusters > 1 and spread >= radius:
        raise AdvlabError(
            "clusters at distance 6 delta keep apart for eps below delta",
            f"eps = {spread:.6g} and delta = {radius:.6g}",
        )
    placed = [_pair(y, radius, spread) for y in wanted]
    corners = points - spread * np.eye(points.shape[-1])
    centres = [z + c[0] for pair, c in zip(placed, corners, strict=True) for z, _ in pair]
    kinds = [kind for pair in placed for _, kind in pair]
    for spare in range(whole("n", n, 2) - len(centres)):
        far = np.zeros(points.shape[-1])
        far[0] = -6 * radius * (spare + 1)
        centres.append(far)
        # The label that a cluster of one label does not have, or any.
        kinds.append(-kinds[-1])
    return Balls(
        np.array(centres),
        np.array(kinds),
        radius,
        points.reshape(-1, points.shape[-1]),
        wanted.ravel(),
    )


def _pair(y: Array, delta: float, eps: float) -> list[tuple[Array, float]]:
    """Centres, relative to c, and labels of the balls of one cluster; one ball for one label."""
    d, k = len(y), int((y > 0).sum())
    require_feasible(d, k, delta, eps)
    if k in (0, d):
        return [(np.zeros(d), float(y[0]))]
    balls = []
    for sign in (1.0, -1.0):
        members = y == sign
        low, high = tau_interval(d, int(members.sum()), delta, eps)
        tau = (low + high) / 2
        balls.append((eps * members / members.sum() + sign * tau * y / np.sqrt(d), sign))
    return balls
