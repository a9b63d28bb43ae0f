"""Examples a batch at a time, on the device of the model."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from ...core import inputs
from ...core.devices import device_of
from ...core.errors import AdvlabError
from ...core.randomness import Rng, generator

Examples = tuple[Tensor, Tensor]
"""Inputs and their labels, one row per example."""


def batches(model: object, x: Any, y: Any, size: int | None) -> Iterator[Examples]:
    """Batches where the model is; all rows at once if no size is given.

    Args:
        model: a network, or a function, whose inputs stay where they are.
        x: inputs, one row per example.
        y: labels.
        size: rows per batch. A stack of replicates needs all its rows at once.
    """
    x, y = inputs.inputs(x, model), inputs.labels(y)
    if len(x) == 0 or x.shape[:1] != y.shape[:1]:
        raise AdvlabError(
            "inputs with one label each, at least one", f"{len(x)} inputs, {len(y)} labels"
        )
    place = device_of(model, x)
    rows = len(x) if size is None else inputs.count("batch", size)
    for some, labels in zip(x.split(rows), y.split(rows), strict=True):
        yield some.to(place), labels.to(place)


def input_batches(model: object, x: Any, size: int | None) -> Iterator[Tensor]:
    """The same for inputs without labels."""
    x = inputs.inputs(x, model)
    for some, _ in batches(model, x, torch.zeros(len(x), dtype=torch.int64), size):
        yield some


def randomness(rng: Any, name: str) -> Rng:
    """Generators, or whole numbers as seeds; where none came, the measure's own."""
    return generator(name) if rng is None else inputs.randomness(rng)


def checked_radii(radii: Any) -> tuple[float, ...]:
    """Radii in rising order, none below zero."""
    values = tuple(float(radius) for radius in radii)
    rising = all(a < b for a, b in pairwise(values))
    if not values or not rising or not values[0] >= 0 or values[-1] == float("inf"):
        raise AdvlabError("radii in rising order, the first at least 0", values)
    return values
