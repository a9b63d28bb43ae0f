"""CIFAR-10 from its original binary files, or from an .npz; nothing is unpickled."""

from os import PathLike
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8

from ..core.errors import AdvlabError
from .arrays import Arrays, from_bytes, read_npz
from .directory import Split, absent, data_root, find, reading_set

NAMES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
FILES: dict[Split, tuple[str, ...]] = {
    "train": tuple(f"data_batch_{batch}.bin" for batch in range(1, 6)),
    "test": ("test_batch.bin",),
}
SHAPE = (3, 32, 32)
RECORD = 1 + 3 * 32 * 32
"""One byte for the label, then the red, green and blue planes row by row."""


def load(
    n: int | None = None,
    directory: str | PathLike[str] | None = None,
    split: Split = "train",
    rng: torch.Generator | None = None,
) -> Arrays:
    """Images as float32 of shape (n, 3, 32, 32) in [0, 1], and their classes (`NAMES`) as int64.

    The binary files are read where there are any, else cifar10-train*.npz or cifar10-test*.npz.
    The first n come in the order of the files, or n at random where a generator is given.
    """
    if split not in FILES:
        raise AdvlabError("split as train or test", repr(split))
    x, y = _read(split, directory)
    if len(y) and not 0 <= y.min() <= y.max() <= 9:
        raise AdvlabError("labels from 0 to 9", f"labels from {y.min()} to {y.max()}")
    return from_bytes(x, y, n, rng)


def read_batch(path: Path) -> tuple[UInt8[np.ndarray, "n 3 32 32"], UInt8[np.ndarray, " n"]]:
    """Images and labels of one binary file."""
    records = np.fromfile(path, dtype=np.uint8)
    if records.size == 0 or records.size % RECORD:
        raise AdvlabError(
            f"a file of records of {RECORD} bytes",
            f"{path} of {records.size} bytes",
            "delete it and run `advlab data fetch cifar10`",
        )
    records = records.reshape(-1, RECORD)
    return records[:, 1:].reshape(-1, *SHAPE), records[:, 0].copy()


def located(split: Split, directory: str | PathLike[str] | None = None) -> list[Path]:
    """The files that `load` reads: the binary batches, or else one .npz.

    Args:
        split: "train" or "test".
        directory: where to look, None for the data directory of the user.
    """
    batches = [_batch(name, directory) for name in FILES[split]]
    found = [path for path in batches if path is not None]
    if not found:
        return [_npz(split, directory)]
    if len(found) < len(batches):
        missing = [n for n, path in zip(FILES[split], batches, strict=True) if path is None]
        raise AdvlabError(
            f"all of {', '.join(FILES[split])}",
            f"{found[0].parent} without {', '.join(missing)}",
            "run `advlab data fetch cifar10`",
        )
    return found


def _read(split: Split, directory: str | PathLike[str] | None) -> tuple[np.ndarray, np.ndarray]:
    found = located(split, directory)
    with reading_set("cifar10", split, directory, found):
        if found[0].suffix == ".npz":
            return _read_npz(found[0])
        parts = [read_batch(path) for path in found]
    x, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return x, y


def _batch(name: str, directory: str | PathLike[str] | None) -> Path | None:
    # The archive keeps its files in a folder; whoever unpacks it by hand has them there.
    inner = f"cifar-10-batches-bin/{name}"
    return find("cifar10", name, directory) or find("cifar10", inner, directory)


def _npz(split: Split, directory: str | PathLike[str] | None) -> Path:
    root = data_root(directory).path
    for folder in (root / "cifar10", root):
        files = sorted(folder.glob(f"cifar10-{split}*.npz"))
        if len(files) > 1:
            names = ", ".join(file.name for file in files)
            raise AdvlabError(f"one cifar10-{split}*.npz in {folder}", names, "keep one of them")
        if files:
            return files[0]
    raise absent("cifar10", FILES[split][0], directory)


def _read_npz(path: Path) -> tuple[np.ndarray, np.ndarray]:
    x, y = read_npz(path)
    fits = x.dtype == np.uint8 and x.shape[1:] == SHAPE and y.shape == x.shape[:1]
    if not fits or y.dtype.kind not in "iu":
        raise AdvlabError(
            "images as uint8 of shape (n, 3, 32, 32) and as many whole-number labels",
            f"{x.dtype} {x.shape} and {y.dtype} {y.shape} in {path}",
        )
    return x, y
