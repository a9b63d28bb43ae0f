"""Every kind of threat set with centers that suit it: for the laws and single tests."""

from collections.abc import Callable

import numpy as np
import torch

from advlab.threats import Ball, Cap, FeatureBall, Integers, OneHot, Patch, Product, Threat, Union

NORMS = ("l1", "l2", "linf")


def one_hot(rng: np.random.Generator, rows: int, *sizes: int) -> np.ndarray:
    return np.concatenate([np.eye(size)[rng.integers(0, size, rows)] for size in sizes], 1)


def _ball(rng):
    box = (0.0, 1.0) if rng.random() < 0.5 else None
    shape = [(3,), (2, 2), (1, 3, 2), (20,)][rng.integers(4)]
    ball = Ball(NORMS[rng.integers(3)], float(rng.choice([0.0, 1e-3, 0.3, 2.0])), box)
    center = rng.random((5, *shape))
    return ball, np.round(center) if rng.random() < 0.3 else center


def _cap(rng):
    center = rng.normal(size=(5, 6))
    return Cap(float(rng.uniform(0, 2))), center / np.linalg.norm(center, axis=1, keepdims=True)


def _feature_ball(rng):
    radius = rng.uniform(0.05, 2.0, 6) * (rng.random(6) < 0.8)
    low = rng.uniform(-1, 0, 6) if rng.random() < 0.5 else None
    high = rng.uniform(0, 1, 6) if rng.random() < 0.5 else None
    center = rng.uniform(-1 if low is None else low, 1 if high is None else high, (5, 6))
    return FeatureBall(NORMS[rng.integers(3)], radius, low=low, high=high), center


def _integers(rng):
    step = rng.uniform(0.1, 1.0, 3)
    radius = step * rng.integers(0, 3, 3)
    center = rng.integers(0, 5, (5, 3)) * step
    return Integers(radius, step, low=0.0 if rng.random() < 0.5 else None), center


def _one_hot(rng):
    allowed = [0, 1, 3, 5, 6] if rng.random() < 0.5 else None
    groups, center = [[0, 1, 2], [3, 4], [5, 6, 7]], one_hot(rng, 5, 3, 2, 3)
    extra = rng.random((5, 1))
    return OneHot(groups, int(rng.integers(0, 4)), allowed), np.concatenate([center, extra], 1)


def _table(rng):
    parts = [
        (range(0, 3), Ball(NORMS[rng.integers(3)], 0.3)),
        ([4], Integers(1.0, 0.5)),
        (range(6, 11), OneHot([[0, 1, 2], [3, 4]])),
    ]
    center = np.concatenate([rng.random((5, 6)), one_hot(rng, 5, 3, 2)], 1)
    return Product(parts, [None, 0, 1, 2][rng.integers(4)]), center


def _boxes(rng):
    parts = [(range(0, 2), Ball("linf", 0.3, (0, 1))), ([3], FeatureBall("linf", 0.5))]
    return Product(parts), rng.random((4, 5))


def _few_steps(rng):
    parts = [([k], Integers(1.0, 0.5)) for k in range(4)]
    return Product(parts, changes=int(rng.integers(1, 4))), rng.random((5, 6))


def _union(rng):
    if rng.random() < 0.5:
        return Union([Ball("linf", 0.1, (0, 1)), Ball("l2", 0.2, (0, 1))]), rng.random((5, 6))
    first = FeatureBall("l1", [0.1, 0.2, 0, 0, 0, 0])
    return Union([first, Integers([0, 0, 0, 1.0, 1.0, 0])]), rng.random((5, 6))


def _patch(rng):
    size = (int(rng.integers(1, 4)), int(rng.integers(1, 5)))
    patch = Patch(size, (2, 4, 5), float(rng.choice([0.2, 1.0])))
    return patch, rng.random((4, 2, 4, 5))


KINDS: dict[str, Callable] = {
    "ball": _ball,
    "cap": _cap,
    "feature_ball": _feature_ball,
    "integers": _integers,
    "one_hot": _one_hot,
    "table": _table,
    "boxes": _boxes,
    "few_steps": _few_steps,
    "union": _union,
    "patch": _patch,
}


def threat_and_center(kind: str, seed: int) -> tuple[Threat, torch.Tensor]:
    """A random set of a kind, and centers of it."""
    threat, center = KINDS[kind](np.random.default_rng([seed, len(kind)]))
    return threat, torch.tensor(center)
