"""A user's own arrays, checked once at the door."""

import zipfile
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Integer, Shaped, UInt8
from torch import Tensor

from ..core.datafiles import OWN_FILE, reading
from ..core.errors import AdvlabError
from ..core.inputs import count, tensor

Keys = tuple[tuple[str, str], ...]
KEYS: Keys = (("x", "y"), ("images", "labels"))
SMALL, RATIO = 2**30, 50
"""Below this many bytes nothing is refused; above it, archives packed tighter than this are."""


class _Pair(NamedTuple):
    x: Float[Tensor, "n *shape"]
    y: Shaped[Tensor, " n"]


class Arrays(_Pair):
    """Inputs x in natural units and one answer y per example: a class (int64) or a real number.

    A pair, `x, y = arrays`, that also knows the names of its classes where they have any.

    Args:
        x: the inputs.
        y: the answers.
        classes: the names of classes 0, 1, ..., in order.

    Example:
        from advlab.data import cifar10
        cifar10.load(split="test").limit(100).classes[3]  # "cat"
    """

    classes: tuple[str, ...] | None = None

    def __new__(cls, x: Tensor, y: Tensor, classes: tuple[str, ...] | None = None) -> "Arrays":
        pair = super().__new__(cls, x, y)
        pair.classes = classes
        return pair

    def take(self, rows: Integer[Tensor, " k"]) -> "Arrays":
        """The examples of some rows, in the order of `rows`.

        Args:
            rows: their places.
        """
        return Arrays(self.x[rows], self.y[rows], self.classes)

    def limit(self, n: int) -> "Arrays":
        """The first n examples; all of them where there are fewer.

        Args:
            n: how many, at least one.
        """
        return Arrays(self.x[: count("limit", n)], self.y[:n], self.classes)


def from_arrays(
    x: Any,
    y: Any,
    *,
    classes: int | None = None,
    box: tuple[float, float] | None = None,
    names: Sequence[str] | None = None,
) -> Arrays:
    """Tensors or array-likes as checked tensors: finite, of one length, in the box, known classes.

    Real inputs keep 64 bits if they have them; whole-number inputs become float32 unscaled.

    Args:
        x: inputs, one row per example.
        y: one answer per example.
        classes: how many classes there are: y holds whole numbers from 0 to classes - 1.
        box: the smallest and largest value that inputs may have.
        names: the names of the classes, as many as there are.
    """
    x, y = _tensor("x", x), _tensor("y", y)
    x = x if x.dtype in (torch.float32, torch.float64) else x.to(torch.float32)
    _check_shapes(x, y)
    _check_finite("x", x)
    _check_finite("y", y)
    if box is not None:
        _check_box(x, box)
    if names is not None and classes is None:
        classes = len(names)
    if classes is not None:
        _check_classes(y, classes)
    return Arrays(x, y, None if names is None else tuple(names))


def load(
    path: str | PathLike[str],
    *,
    classes: int | None = None,
    box: tuple[float, float] | None = None,
) -> Arrays:
    """The checked arrays of an .npz file with keys x and y, or images and labels."""
    return from_arrays(*_recorded_npz(Path(path)), classes=classes, box=box)


def load_any(path: str | PathLike[str], keys: Keys = KEYS) -> tuple[Tensor, Tensor | np.ndarray]:
    """The inputs and targets of an .npz file, as `load`, where targets may be of other kinds too.

    Args:
        path: the file. Targets may be words, or a row of numbers per example.
        keys: the names of inputs and targets in the file, the first pair that is there counts.

    Returns:
        Inputs as `load` gives them; targets as a tensor, or words as an array.
    """
    x, y = _recorded_npz(Path(path), keys)
    if y.dtype.kind == "U" and y.ndim == 1:
        return from_arrays(x, np.zeros(len(y))).x, y
    if y.ndim == 2 and len(y) == len(x):
        targets = _tensor("y", y)
        _check_finite("y", targets)
        return from_arrays(x, np.zeros(len(y))).x, targets
    return from_arrays(x, y)


def from_bytes(
    x: UInt8[np.ndarray, "all *shape"],
    y: Integer[np.ndarray, " all"],
    n: int | None,
    rng: torch.Generator | None,
    classes: tuple[str, ...] | None = None,
) -> Arrays:
    """The first n images, or n different ones at random where a generator is given, in [0, 1]."""
    if n is not None and not 1 <= n <= len(y):
        raise AdvlabError(f"n from 1 to {len(y)}, the number of examples there are", n)
    order = torch.arange(len(y)) if rng is None else torch.randperm(len(y), generator=rng)
    keep = order[:n].numpy()
    return Arrays(
        torch.from_numpy(x[keep]).to(torch.float32) / 255,
        torch.from_numpy(y[keep].astype(np.int64)),
        classes,
    )


def read_npz(path: Path, keys: Keys = KEYS) -> tuple[np.ndarray, np.ndarray]:
    """The two arrays of an .npz file, under x and y or images and labels; nothing is unpickled.

    Args:
        path: the file.
        keys: the names of inputs and targets in the file, the first pair that is there counts.
    """
    try:
        # Opened here, not by numpy, which leaves the file of a damaged archive open.
        _check_unpacked(path)
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
            names = set(getattr(file, "files", ()))
            for one, other in keys:
                if names.issuperset((one, other)):
                    return file[one], file[other]
    except FileNotFoundError:
        raise AdvlabError("an .npz file", f"{path}, which does not exist") from None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, TypeError) as error:
        raise AdvlabError(
            "an .npz file of plain numbers",
            f"{path} ({' '.join(str(error).split())})",
            "write it with np.savez(path, x=x, y=y) from arrays that are not of dtype object",
        ) from None
    plain_first = sorted(keys, key=lambda pair: len(pair[0]))
    raise AdvlabError(
        f"an .npz file with keys {', or '.join(' and '.join(pair) for pair in plain_first)}",
        f"{path} with {', '.join(sorted(names)) or 'no keys'}",
    )


def _recorded_npz(path: Path, keys: Keys = KEYS) -> tuple[np.ndarray, np.ndarray]:
    try:
        with reading(f"{OWN_FILE}{path}", [path]):
            return read_npz(path, keys)
    except OSError:  # it could not be hashed: the reader says why
        return read_npz(path, keys)


def _check_unpacked(path: Path) -> None:
    """Refuse an archive that grows out of all proportion before anything of it is unpacked."""
    if not zipfile.is_zipfile(path):
        return
    with zipfile.ZipFile(path) as archive:
        unpacked = sum(entry.file_size for entry in archive.infolist())
    packed = path.stat().st_size
    if unpacked > max(SMALL, RATIO * packed):
        raise AdvlabError(
            f"an .npz file that unpacks to at most {RATIO} times its size",
            f"{path}: {packed:,} bytes that claim to be {unpacked:,}",
            "write it anew with np.savez, uncompressed, if you trust it",
        )


def _tensor(name: str, values: Any) -> Tensor:
    found = tensor(name, values).detach()
    if not found.is_floating_point():
        return found.to(torch.int64)
    return found if found.dtype == torch.float64 else found.to(torch.float32)


def _check_shapes(x: Tensor, y: Tensor) -> None:
    if x.ndim < 2:
        raise AdvlabError(
            "x of shape (examples, features...)", tuple(x.shape), "reshape it to (-1, 1)"
        )
    if y.ndim != 1:
        raise AdvlabError(
            "one answer per example, y of shape (examples,)",
            tuple(y.shape),
            "take the argmax of one-hot labels, and flatten a column",
        )
    if len(x) != len(y):
        raise AdvlabError("as many answers as inputs", f"{len(x)} inputs and {len(y)} answers")
    if x.numel() == 0:
        raise AdvlabError("at least one example with at least one feature", tuple(x.shape))


def _check_finite(name: str, values: Tensor) -> None:
    bad = ~values.isfinite()
    if bad.any():
        first = tuple(bad.nonzero()[0].tolist())
        raise AdvlabError(
            f"finite numbers in {name}", f"{int(bad.sum())} NaN or infinite, the first at {first}"
        )


def _check_box(x: Tensor, box: tuple[float, float]) -> None:
    low, high = float(x.min()), float(x.max())
    if not box[0] < box[1]:
        raise AdvlabError("a box (low, high) with low < high", box)
    if low < box[0] or high > box[1]:
        raise AdvlabError(
            f"x inside the box [{box[0]:g}, {box[1]:g}]",
            f"values from {low:g} to {high:g}",
            "give the box of your inputs; normalisation is a layer of the model",
        )


def _check_classes(y: Tensor, classes: int) -> None:
    if y.is_floating_point():
        raise AdvlabError("whole numbers as labels", f"dtype {y.dtype}", "convert y to integers")
    low, high = int(y.min()), int(y.max())
    if low < 0 or high >= classes:
        raise AdvlabError(f"labels from 0 to {classes - 1}", f"labels from {low} to {high}")
