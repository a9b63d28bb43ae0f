"""Data however they are named: a set, a file, a folder of images, or an object of one's own."""

import inspect
from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, Subset

from ..core import inputs
from ..core.datafiles import OWN_FILE, reading
from ..core.errors import AdvlabError
from ..core.imports import imported
from ..core.inputs import Given
from ..core.nearest import nearest
from ..core.randomness import generator
from .arrays import KEYS, Arrays, Keys, from_arrays, load_any
from .images import ImageFolder
from .loaders import batches
from .published import SETS
from .registry import DATA

Part = Literal["train", "validation", "test"]
NAMES: dict[Part, tuple[str, ...]] = {
    "train": ("train", "training"),
    "validation": ("validation", "val", "valid"),
    "test": ("test",),
}
"""What files and folders call a part."""
KINDS = "an .npz file, a folder of images, module:object, or one of " + ", ".join(DATA)
PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".joblib", ".dill")


def resolve(
    source: Given[Any],
    *,
    split: Given[Part] = "train",
    directory: Given[str | PathLike[str] | None] = None,
    limit: Given[int | None] = None,
) -> Arrays:
    """The examples of one part of any data, in memory.

    Args:
        source: a name of `DATA`; an .npz file with x and y, or with x_train, y_train, x_test,
            y_test; a folder of images with one folder per class, or with such folders in train/,
            val/ and test/; `module:object` or `file.py:object`; or an object: `Arrays`, a pair, a
            `Dataset`, a `DataLoader`, a dict of parts, or a function that gives one of these, which
            is handed the name of the part if it takes an argument (and gives None for a part that
            there is not).
        split: "train", "validation" or "test". What has no parts is a training set.
        directory: the folder of data sets by name; None for the user's own.
        limit: the first so many examples; of a folder of images, so many at random.

    Returns:
        Inputs in their own units, one answer per example, and the names of classes if there are
        any. Words as labels become classes in alphabetical order.

    Example:
        from advlab.data import resolve
        train = resolve("cifar10", split="train", limit=1000)
        test = resolve("my_data:load", split="test")
    """
    if split not in NAMES:
        raise AdvlabError("split as train, validation or test", f"{split!r:.40}")
    if limit is not None:
        inputs.count("limit", limit)
    if isinstance(source, str | PathLike):
        found = _by_name(str(source), split, directory, limit)
    else:
        found = from_object(source, split)
    return found if limit is None else found.limit(limit)


def published(name: str, directory: str | PathLike[str] | None, split: Any) -> Arrays:
    """A data set by name, of ours or of an installed package.

    Args:
        name: one of `DATA`.
        directory: where to look, None for the data directory of the user.
        split: the part of it.
    """
    if name in SETS and split not in ("train", "test"):
        raise AdvlabError(
            f"the train or test part of {name}",
            repr(split),
            "split(data, validation=0.1) sets examples of the training part aside",
        )
    found = DATA[name](directory=directory, split=split)
    if not isinstance(found, Arrays):
        raise AdvlabError(f"Arrays from the data set {name}", type(found).__name__)
    return found


def npz_keys(split: Part, *, required: bool) -> Keys:
    """The names that inputs and targets of a part may have in an .npz file.

    Args:
        split: the part.
        required: whether a file without parts is a training set and nothing else.
    """
    own = tuple((f"x_{name}", f"y_{name}") for name in NAMES[split])
    return own if required and split != "train" else (*own, *KEYS)


def refused(source: str, kinds: str = KINDS) -> AdvlabError:
    """The error for a name that is no data.

    Args:
        source: what came.
        kinds: what is taken, where it came.
    """
    if Path(source).suffix in PICKLES:
        return AdvlabError(
            kinds,
            f"{source}, a pickle",
            "a pickle can run any code when it is read. In Python, where you trust the file, load "
            "it and write np.savez('data.npz', x=x, y=y)",
        )
    near = nearest(source, DATA.names())
    return AdvlabError(kinds, repr(source), near or "write np.savez('data.npz', x=x, y=y)")


def _by_name(
    source: str, split: Part, directory: str | PathLike[str] | None, limit: int | None
) -> Arrays:
    path = Path(source)
    if source in DATA:
        return published(source, directory, split)
    if path.is_dir():
        return _images(folder_part(path, split, required=True), limit)
    if path.suffix == ".npz":
        return _with_classes(*load_any(path, npz_keys(split, required=True)))
    if ":" in source and path.suffix not in PICKLES:
        return from_object(imported(source), split)
    raise refused(source)


def folder_part(path: Path, split: Part, *, required: bool) -> Path:
    """The folder of a part: train/, val/ or test/ in it, or the folder itself.

    Args:
        path: the folder.
        split: the part.
        required: whether a folder without parts is a training set and nothing else.
    """
    found = {
        part: [path / name for name in names if (path / name).is_dir()]
        for part, names in NAMES.items()
    }
    if found[split]:
        return found[split][0]
    # A class may be called test: without train/ beside it, it is no part.
    if not found["train"] and (split == "train" or not required):
        return path
    there = ", ".join(folder.name for folders in found.values() for folder in folders)
    raise AdvlabError(f"a folder {NAMES[split][0]} in {path}", there or "folders of classes only")


def _images(folder: Path, limit: int | None) -> Arrays:
    images = ImageFolder(folder)
    rows = torch.arange(len(images))
    if limit is not None and limit < len(rows):
        # The files come class by class: the first ones would all be of one class.
        mixed = torch.randperm(len(rows), generator=generator("data", "limit"))
        rows = mixed[:limit].sort().values
    for row in rows.tolist():
        file = images.files[row]
        with reading(f"{OWN_FILE}{file}", [file]):
            pass
    x, y = _all(Subset(images, rows.tolist()))
    return _with_classes(x, y, images.classes)


def from_object(found: Any, split: Part, *, required: bool = True) -> Arrays:
    """The examples of one part of an object, or of what a function gives.

    Args:
        found: the object, see `resolve`.
        split: the part.
        required: whether an object without parts is a training set and nothing else.
    """
    has_parts = False
    if is_function(found):
        found, has_parts = called(found, split)
    if found is None:
        raise AdvlabError(f"data with a {split} part", "none")
    if has_parts_by_name(found):
        names = [name for name in NAMES[split] if name in found]
        if not names:
            raise AdvlabError(f"a {split} part", f"parts {', '.join(map(str, found))}")
        found, has_parts = found[names[0]], True
    if split != "train" and not has_parts and required:
        raise AdvlabError(
            f"data with a {split} part",
            f"{type(found).__name__}, which is one set",
            "give a function of split, or a dict with train, validation and test",
        )
    if isinstance(found, Arrays):
        return from_arrays(found.x, found.y, names=found.classes)
    return _with_classes(*_all(found), getattr(found, "classes", None))


def is_function(found: Any) -> bool:
    """Whether an object gives data when it is called."""
    return callable(found) and not isinstance(found, Dataset | DataLoader)


def has_parts_by_name(found: Any) -> bool:
    """Whether an object is a dict of parts."""
    return isinstance(found, Mapping) and any(name in found for name in ("train", "test"))


def called(function: Callable[..., Any], split: Part) -> tuple[Any, bool]:
    """What a user's function gives, and whether it was told which part is wanted.

    Args:
        function: takes the name of a part, or nothing.
        split: the part.
    """
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        parameters = {}
    starred = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [p.name for p in parameters.values() if p.default is p.empty and p.kind not in starred]
    if len(needed) > 1 or (needed and "split" in parameters and needed != ["split"]):
        raise AdvlabError(
            "a function of split that gives data", f"one that needs {', '.join(needed)}"
        )
    try:
        if "split" in parameters:
            return function(split=split), True
        return (function(split), True) if needed else (function(), False)
    except AdvlabError:
        raise
    except (OSError, *inputs.TROUBLES) as error:
        advice = "" if split == "train" else f"return None if there is no {split} part"
        raise AdvlabError(f"data for {split!r}", inputs.whole_line(error), advice) from error


def _all(source: Any) -> tuple[Tensor, Tensor | np.ndarray]:
    """Every row of any data, read once."""
    x, y = [], []
    for inner, targets in batches(source):
        if targets is None:
            raise AdvlabError("inputs and targets", "inputs alone")
        x.append(inputs.inputs(inner))
        words = not isinstance(targets, Tensor) and np.asarray(targets).dtype.kind == "U"
        y.append(np.asarray(targets) if words else inputs.labels(targets))
    if not x:
        raise AdvlabError("data with at least one example", "none", "was it read before?")
    if any(isinstance(one, np.ndarray) for one in y):
        return torch.cat(x), np.concatenate([np.asarray(one) for one in y])
    return torch.cat(x), torch.cat(y)


def _with_classes(x: Tensor, y: Tensor | np.ndarray, names: Any = None) -> Arrays:
    """Checked arrays; words as labels are numbered in alphabetical order."""
    if isinstance(y, np.ndarray):
        words, numbers = np.unique(y, return_inverse=True)
        return from_arrays(x, numbers.reshape(-1), names=[str(word) for word in words])
    told = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    return from_arrays(x, y, names=names if told and names and not y.is_floating_point() else None)
