"""All parts that data have of their own: a training set, and perhaps validation and test sets."""

from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ..core.errors import AdvlabError
from ..core.imports import imported
from ..core.inputs import Given
from .arrays import Arrays
from .registry import DATA
from .resolve import NAMES, PICKLES, Part, called, has_parts_by_name, is_function, resolve
from .splits import Parts

OTHERS: tuple[Part, ...] = ("validation", "test")


def all_parts(
    source: Given[Any],
    *,
    directory: Given[str | PathLike[str] | None] = None,
    limit: Given[int | None] = None,
) -> Parts:
    """The parts of any data, with the same shape of inputs and the same classes.

    A part that is there and cannot be read is an error; one that is not there is None.

    Args:
        source: as in `resolve`.
        directory: the folder of data sets by name; None for the user's own.
        limit: the first so many examples of the training part.

    Example:
        from advlab.data import all_parts
        train, validation, test = all_parts("photos")  # a folder with train/ and val/: test is None
    """
    train = resolve(source, split="train", directory=directory, limit=limit)
    found = {
        part: _alike(train, resolve(source, split=part, directory=directory), part)
        for part in OTHERS
        if _has(source, part)
    }
    return Parts(train, **found)


def _has(source: Any, part: Part) -> bool:
    """Whether data have a part, without reading it; a function has to be asked."""
    if not isinstance(source, str | PathLike):
        return _object_has(source, part)
    path = Path(source)
    if str(source) in DATA:
        return part == "test"
    if path.is_dir():
        there = {name for names in NAMES.values() for name in names if (path / name).is_dir()}
        # A class may be called test: without train/ beside it, it is no part.
        return bool(there & {*NAMES["train"]}) and bool(there & {*NAMES[part]})
    if path.suffix == ".npz":
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            names = set(file.files)
        return any(f"{kind}_{name}" in names for name in NAMES[part] for kind in "xy")
    return path.suffix not in PICKLES and _object_has(imported(str(source)), part)


def _object_has(found: Any, part: Part) -> bool:
    if is_function(found):
        found, told = called(found, part)
        if told:
            return found is not None
    return has_parts_by_name(found) and any(found.get(name) is not None for name in NAMES[part])


def _alike(train: Arrays, other: Arrays, part: Part) -> Arrays:
    """The part with the numbers that classes have in the training part."""
    if other.x.shape[1:] != train.x.shape[1:]:
        raise AdvlabError(
            f"{part} inputs of shape {tuple(train.x.shape[1:])}, as those to train on",
            tuple(other.x.shape[1:]),
        )
    x, y = other.x.to(train.x.dtype), other.y
    if train.y.is_floating_point() or y.is_floating_point():
        if train.y.is_floating_point() != y.is_floating_point():
            raise AdvlabError(f"{part} labels of {train.y.dtype}", f"{y.dtype}")
        return Arrays(x, y)
    if train.classes is not None and other.classes is not None and train.classes != other.classes:
        unknown = [name for name in other.classes if name not in train.classes]
        if unknown:
            raise AdvlabError(
                f"{part} classes among those to train on: {', '.join(train.classes)}", unknown[0]
            )
        y = torch.tensor([train.classes.index(name) for name in other.classes])[y]
    known = len(train.classes) if train.classes else int(train.y.max()) + 1
    if not 0 <= int(y.min()) <= int(y.max()) < known:
        came = f"labels from {int(y.min())} to {int(y.max())}"
        raise AdvlabError(f"{part} labels from 0 to {known - 1}, as those to train on", came)
    return Arrays(x, y, train.classes)
