"""What CIFAR-10 and CIFAR-100 share: binary files, pickles read as data, or an .npz."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np
import torch
from jaxtyping import UInt8

from ..core.errors import AdvlabError
from .arrays import Arrays, from_bytes, read_npz
from .directory import Split, absent, data_root, reading_set
from .pickled_batch import read_pickled

SHAPE = (3, 32, 32)
PIXELS = 3 * 32 * 32


@dataclass(frozen=True)
class CifarFiles:
    """Where a set has its images and labels.

    Args:
        name: of the set, and of its folder and its .npz files.
        classes: their names, in order.
        binary: the binary files of each split, and the folder in which the archive keeps them.
        pickled: the same of the Python version.
        labels: bytes of labels before the pixels of a binary record, of which the last counts.
        key: the name of the labels in a pickle.
        loose: whether files may lie in the data directory itself, which common names must not.
    """

    name: str
    classes: tuple[str, ...]
    binary: dict[Split, tuple[str, ...]]
    binary_folder: str
    pickled: dict[Split, tuple[str, ...]]
    pickled_folder: str
    labels: int
    key: str
    loose: bool

    def load(
        self,
        n: int | None,
        directory: str | PathLike[str] | None,
        split: Split,
        rng: torch.Generator | None,
    ) -> Arrays:
        """Images in [0, 1] and classes; the arguments are those of `cifar10.load`."""
        if split not in self.binary:
            raise AdvlabError("split as train or test", repr(split))
        x, y = self._read(split, directory)
        if len(y) and not 0 <= y.min() <= y.max() < len(self.classes):
            raise AdvlabError(
                f"labels from 0 to {len(self.classes) - 1}", f"labels from {y.min()} to {y.max()}"
            )
        return from_bytes(x, y, n, rng, self.classes)

    def located(self, split: Split, directory: str | PathLike[str] | None = None) -> list[Path]:
        """The files that `load` reads: the binary ones, else the pickled ones, else one .npz."""
        for names, folder in (
            (self.binary[split], self.binary_folder),
            (self.pickled[split], self.pickled_folder),
        ):
            places = [self._find(name, folder, directory) for name in names]
            found = [path for path in places if path is not None]
            if not found:
                continue
            if len(found) < len(places):
                missing = [n for n, path in zip(names, places, strict=True) if path is None]
                raise AdvlabError(
                    f"all of {', '.join(names)}",
                    f"{found[0].parent} without {', '.join(missing)}",
                    f"run `advlab data fetch {self.name}`",
                )
            return found
        return [self._npz(split, directory)]

    def read_binary(
        self, path: Path
    ) -> tuple[UInt8[np.ndarray, "n 3 32 32"], UInt8[np.ndarray, " n"]]:
        """Images and labels of one binary file.

        Args:
            path: the file: records of labels, then the red, green and blue planes row by row.
        """
        size = self.labels + PIXELS
        records = np.fromfile(path, dtype=np.uint8)
        if records.size == 0 or records.size % size:
            raise AdvlabError(
                f"a file of records of {size} bytes",
                f"{path} of {records.size} bytes",
                f"delete it and run `advlab data fetch {self.name}`",
            )
        records = records.reshape(-1, size)
        return records[:, self.labels :].reshape(-1, *SHAPE), records[:, self.labels - 1].copy()

    def read_pickle(
        self, path: Path
    ) -> tuple[UInt8[np.ndarray, "n 3 32 32"], UInt8[np.ndarray, " n"]]:
        """Images and labels of one file of the Python version, which is not executed.

        Args:
            path: the file.
        """
        found = read_pickled(path)
        x, y = found.get("data"), found.get(self.key)
        wanted = f"bytes of shape (n, {PIXELS}) under data and n classes under {self.key}"
        if not isinstance(x, np.ndarray) or not isinstance(y, list):
            names = " ".join(", ".join(map(str, found)).split())  # a damaged name may break a line
            raise AdvlabError(wanted, f"{path} with {names or 'nothing'}")
        fits = x.ndim == 2 and x.shape[1] == PIXELS and len(y) == len(x) > 0
        if not fits or not all(type(one) is int and 0 <= one < 256 for one in y):
            raise AdvlabError(wanted, f"{x.shape} and {len(y)} labels in {path}")
        return x.reshape(-1, *SHAPE), np.array(y, dtype=np.uint8)

    def _read(
        self, split: Split, directory: str | PathLike[str] | None
    ) -> tuple[np.ndarray, np.ndarray]:
        found = self.located(split, directory)
        with reading_set(self.name, split, directory, found):
            if found[0].suffix == ".npz":
                return _read_npz(found[0])
            read = self.read_binary if found[0].suffix == ".bin" else self.read_pickle
            parts = [read(path) for path in found]
        x, y = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return x, y

    def _find(self, name: str, folder: str, directory: str | PathLike[str] | None) -> Path | None:
        # The archive keeps its files in a folder; whoever unpacks it by hand has them there.
        root = data_root(directory).path
        places = [root / self.name / name, root / self.name / folder / name, root / folder / name]
        places += [root / name] if self.loose else []
        return next((path for path in places if path.is_file()), None)

    def _npz(self, split: Split, directory: str | PathLike[str] | None) -> Path:
        root = data_root(directory).path
        for folder in (root / self.name, root):
            files = sorted(folder.glob(f"{self.name}-{split}*.npz"))
            if len(files) > 1:
                names = ", ".join(file.name for file in files)
                wanted = f"one {self.name}-{split}*.npz in {folder}"
                raise AdvlabError(wanted, names, "keep one of them")
            if files:
                return files[0]
        raise absent(self.name, self.binary[split][0], directory)


def _read_npz(path: Path) -> tuple[np.ndarray, np.ndarray]:
    x, y = read_npz(path)
    fits = x.dtype == np.uint8 and x.shape[1:] == SHAPE and y.shape == x.shape[:1]
    if not fits or y.dtype.kind not in "iu":
        raise AdvlabError(
            "images as uint8 of shape (n, 3, 32, 32) and as many whole-number labels",
            f"{x.dtype} {x.shape} and {y.dtype} {y.shape} in {path}",
        )
    return x, y
