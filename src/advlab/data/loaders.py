"""Any data as batches of inputs and targets: read once, in order, a batch at a time."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from ..core import inputs
from ..core.errors import AdvlabError
from .arrays import load_any
from .images import ImageFolder, pixels

INPUTS = ("x", "image", "images", "img", "input", "inputs", "pixel_values", "features", "data")
TARGETS = ("y", "label", "labels", "target", "targets", "fine_label", "class")
"""Names under which dicts keep inputs and targets, the first that is there counts."""
AT_ONCE = 64
"""Examples of a data set that are stacked to a batch."""
FORMS = (
    "data as a Dataset, a DataLoader, an iterable of batches (pairs or dicts), a folder of images "
    "with one folder per class, or an .npz file"
)

Batch = tuple[Any, Any]
"""Inputs and targets, one row per example, as they came."""


@dataclass
class DataBatches:
    """DataBatches of inputs and targets, to be read once.

    `whole` has all rows where they are in memory already; `rows` says how many there are, where
    that is known before they are read.
    """

    read: Callable[[], Iterator[Batch]]
    whole: Batch | None = None
    rows: int | None = None

    def __iter__(self) -> Iterator[Batch]:
        return self.read()

    def first(self) -> Batch:
        """The first batch, which comes again when all are read."""
        stream = self.read()
        batch = next(stream, None)
        if batch is None:
            raise AdvlabError("data with at least one example", "none", "was it read before?")
        self.read = lambda: chain([batch], stream)
        return batch


def batches(x: Any, y: Any = None) -> DataBatches:
    """Any data as batches.

    Args:
        x: inputs as a tensor, an array or lists; or, where y is left out, what brings both: a
            `Dataset`, a `DataLoader`, an iterable of batches or of single examples (pairs, longer
            tuples that start with the pair, or dicts with keys such as "image" and "label"), a
            pair of arrays, a folder of images, or an .npz file.
        y: the targets, one row per example.

    Example:
        from torch.utils.data import DataLoader
        from advlab.data import batches
        for x, y in batches(DataLoader(dataset, batch_size=100)):
            ...
    """
    if y is not None and isinstance(x, Dataset | DataLoader):
        raise AdvlabError("y left out, where x brings its own targets", f"y and {type(x).__name__}")
    if y is not None or isinstance(x, Tensor | np.ndarray) or x is None:
        return in_memory(x, y)
    if isinstance(x, str | PathLike):
        return _file(Path(x))
    if isinstance(x, TensorDataset) and len(x.tensors) >= 2:
        return in_memory(x.tensors[0], x.tensors[1])
    if isinstance(x, DataLoader):
        return DataBatches(lambda: map(pair, x), rows=_rows(x))
    if isinstance(x, IterableDataset):
        return DataBatches(lambda: _stacked(iter(x)))
    if isinstance(x, Dataset):
        return _dataset(x)
    if isinstance(x, dict):
        return in_memory(*pair(x))
    if isinstance(x, tuple) and len(x) == 2 and not any(isinstance(one, tuple) for one in x):
        return in_memory(*x)
    if isinstance(x, list) and not (x and _is_item(x[0])):
        return in_memory(x, None)
    if not isinstance(x, Iterable):
        raise AdvlabError(FORMS, f"{type(x).__name__}", "or give x and y as tensors or arrays")
    return DataBatches(lambda: map(pair, x))


def in_memory(x: Any, y: Any) -> DataBatches:
    """Inputs and targets that are all there.

    Args:
        x: the inputs.
        y: the targets.
    """
    return DataBatches(lambda: iter([(x, y)]), whole=(x, y))


def pair(item: Any) -> Batch:
    """The inputs and targets of a batch; a single example is a batch of one row.

    Args:
        item: a tuple or list that starts with both, or a dict with names as in INPUTS and TARGETS.
    """
    x, y = _two(item)
    if _is_one(y):
        return _picture(x)[None], [y]
    if isinstance(x, tuple | list) and x and _is_picture(x[0]):
        return torch.stack([pixels(one) for one in x]), y
    return x, y


def _two(item: Any) -> Batch:
    if isinstance(item, tuple | list) and len(item) >= 2:
        return item[0], item[1]
    named: Any = item
    if hasattr(named, "keys"):
        x, y = ([named[key] for key in keys if key in named] for keys in (INPUTS, TARGETS))
        if x and y:
            return x[0], y[0]
        came = f"a dict with {', '.join(map(str, named.keys()))}"
        raise AdvlabError(
            f"a batch with inputs ({', '.join(INPUTS)}) and targets ({', '.join(TARGETS)})", came
        )
    raise AdvlabError("a batch as a pair or a dict of inputs and targets", type(item).__name__)


def _is_one(y: Any) -> bool:
    """Whether targets are those of one example: a number or a word."""
    return isinstance(y, str) or np.ndim(y) == 0


def _is_item(value: Any) -> bool:
    """Whether the first of a list is a batch or an example, and no row of numbers."""
    if isinstance(value, tuple | list) and len(value) >= 2:
        return not isinstance(value[0], int | float)
    return hasattr(value, "keys")


def _picture(x: Any) -> Tensor:
    """One input as a tensor; images of Pillow's in [0, 1], the channels first."""
    return pixels(x) if _is_picture(x) else inputs.inputs(x)


def _is_picture(x: Any) -> bool:
    return hasattr(x, "convert") and hasattr(x, "getbands")


def _stacked(items: Iterable[Any]) -> Iterator[Batch]:
    """Single examples, stacked to batches."""
    rest = iter(items)
    while some := [_two(item) for item in islice(rest, AT_ONCE)]:
        rows = [_picture(x) for x, _ in some]
        if len({row.shape for row in rows}) > 1:
            shapes = sorted({tuple(row.shape) for row in rows})
            raise AdvlabError("inputs of one shape", f"shapes {shapes[0]} and {shapes[1]}")
        yield torch.stack(rows), _targets([y for _, y in some])


def _targets(values: list[Any]) -> Any:
    return torch.stack(values) if isinstance(values[0], Tensor) else np.asarray(values)


def _dataset(source: Any) -> DataBatches:
    if not hasattr(source, "__len__"):
        raise AdvlabError(FORMS, f"{type(source).__name__} without a length")
    rows = len(source)
    return DataBatches(lambda: _stacked(source[row] for row in range(rows)), rows=rows)


def _rows(loader: DataLoader) -> int | None:
    """How many rows a loader gives, where it knows that."""
    if isinstance(loader.dataset, IterableDataset) or loader.batch_size is None:
        return None
    return min(len(loader.sampler), len(loader) * loader.batch_size)  # type: ignore[arg-type]


def _file(path: Path) -> DataBatches:
    if path.is_dir():
        return _dataset(ImageFolder(path))
    if path.suffix == ".npz":
        return in_memory(*load_any(path))
    raise AdvlabError(FORMS, f"{str(path)!r:.60}, which is neither such a folder nor such a file")
