"""Data as the command line names them: an .npz file, a folder of images, or a set by name."""

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Subset

from ..core.datafiles import OWN_FILE, reading
from ..core.errors import AdvlabError
from ..core.imports import imported
from ..core.randomness import generator
from ..data import DATA, ImageFolder
from ..data.arrays import load_any
from ..data.published import SETS
from ..data.resolve import PICKLES, folder_part, from_object, npz_keys, published, refused

Box = tuple[float, float]


@dataclass(frozen=True)
class Sample:
    """The examples to attack and their places in the whole data.

    `data` are the arguments of `evaluate`: inputs and targets, or a folder that brings both.
    """

    data: tuple[Any, ...]
    rows: Tensor
    total: int
    limits: tuple[float, float] | None = None
    """The smallest and largest input, where they are in memory."""

    @property
    def y(self) -> Tensor | None:
        """The targets, where they are numbers in memory."""
        given = self.data[1] if len(self.data) > 1 else None
        return given if isinstance(given, Tensor) else None


def sample(
    source: str, n: int | None, seed: int, directory: Path | None, split: Literal["train", "test"]
) -> Sample:
    """n examples at random, in their order; all of them if n is None."""
    if Path(source).is_dir():
        return _images(ImageFolder(folder_part(Path(source), split, required=False)), n, seed)
    return rows_of(*_arrays(source, directory, split), n, seed)


def rows_of(x: Tensor, y: Tensor | np.ndarray, n: int | None, seed: int) -> Sample:
    """n examples of arrays at random, in their order; all of them if n is None."""
    rows = _rows(len(y), n, seed)
    chosen = x[rows], y[rows if isinstance(y, Tensor) else rows.numpy()]
    limits = float(chosen[0].min()), float(chosen[0].max())
    return Sample(chosen, rows, len(y), limits)


def _rows(total: int, n: int | None, seed: int) -> Tensor:
    if n is None or n >= total:
        return torch.arange(total)
    mixed = torch.randperm(total, generator=generator("attack", "examples", seed))
    return mixed[:n].sort().values


def _images(folder: ImageFolder, n: int | None, seed: int) -> Sample:
    """Images are read when they are attacked; what they are is noted here."""
    rows = _rows(len(folder), n, seed)
    for row in rows.tolist():
        file = folder.files[row]
        with reading(f"{OWN_FILE}{file}", [file]):
            pass
    return Sample((Subset(folder, rows.tolist()),), rows, len(folder))


def number(text: str, what: str) -> float:
    """A number such as 0.03 or 8/255, not below zero."""
    try:
        value = _end(text.replace(" ", ""))
    except (ValueError, ArithmeticError):
        raise AdvlabError(f"{what} as a number such as 0.03 or 8/255", repr(text)) from None
    if not 0 <= value < float("inf"):
        raise AdvlabError(f"{what} of at least 0, and finite", text)
    return value


def _end(text: str) -> float:
    # Plain numbers first: as a fraction 1e999999999 would be written out digit by digit.
    try:
        return float(text)
    except ValueError:
        return float(Fraction(text))


def box(text: str) -> Box | None:
    """The ends of "0,1"; "none" is no box."""
    if text == "none":
        return None
    try:
        low, high = (_end(end.strip()) for end in text.split(","))
    except (ValueError, ArithmeticError):
        raise AdvlabError("a box as LOW,HIGH such as 0,1, or none", repr(text)) from None
    if not -math.inf < low < high < math.inf:
        raise AdvlabError("a finite box whose low end is below its high end", text)
    return low, high


def labels(text: str) -> tuple[int | str, ...]:
    """The labels of "cat,dog", or of "3,7" as numbers."""
    words = [word.strip() for word in text.split(",")]
    return tuple(int(word) if word.lstrip("-").isdigit() else word for word in words)


def usual_box(source: str) -> Box | None:
    """Images by name and those of a folder are in [0, 1]; nothing is known of other data."""
    return (0.0, 1.0) if source in SETS or Path(source).is_dir() else None


def _arrays(
    source: str, directory: Path | None, split: Literal["train", "test"]
) -> tuple[Tensor, Tensor | np.ndarray]:
    if source in DATA:
        return published(source, directory, split)
    if Path(source).suffix == ".npz":
        return load_any(source, npz_keys(split, required=False))
    if ":" in source and Path(source).suffix not in PICKLES:
        return from_object(imported(source), split, required=False)
    raise refused(source)
