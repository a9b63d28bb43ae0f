"""Data as the command line names them: an .npz file, or a data set by name."""

import math
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from ..core.errors import AdvlabError
from ..core.randomness import generator
from ..data import DATA
from ..data.arrays import Arrays, load
from ..data.directory import SETS

PICKLES = (".pkl", ".pickle", ".pt", ".pth", ".joblib", ".dill")
Box = tuple[float, float]


@dataclass(frozen=True)
class Sample:
    """The examples to attack and their places in the whole data."""

    x: Tensor
    y: Tensor
    rows: Tensor
    total: int


def sample(
    source: str, n: int | None, seed: int, directory: Path | None, split: Literal["train", "test"]
) -> Sample:
    """n examples at random, in their order; all of them if n is None."""
    data = _arrays(source, directory, split)
    if n is None or n >= len(data.y):
        rows = torch.arange(len(data.y))
    else:
        mixed = torch.randperm(len(data.y), generator=generator("attack", "examples", seed))
        rows = mixed[:n].sort().values
    return Sample(data.x[rows], data.y[rows], rows, len(data.y))


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


def usual_box(source: str) -> Box | None:
    """Images by name are in [0, 1]; nothing is known of other data."""
    return (0.0, 1.0) if source in SETS else None


def _arrays(source: str, directory: Path | None, split: Literal["train", "test"]) -> Arrays:
    if source in DATA:
        return _by_name(source, directory, split)
    path = Path(source)
    if path.suffix in PICKLES:
        raise AdvlabError(
            "an .npz file with x and y, or one of " + ", ".join(SETS),
            f"{path}, a pickle",
            "a pickle can run any code when it is read. In Python, where you trust the file, load "
            "it and write np.savez('data.npz', x=x, y=y)",
        )
    if path.suffix != ".npz":
        raise AdvlabError(
            "an .npz file with x and y, or one of " + ", ".join(SETS),
            repr(source),
            "write np.savez('data.npz', x=x, y=y)",
        )
    return load(path)


def _by_name(source: str, directory: Path | None, split: Literal["train", "test"]) -> Arrays:
    """A data set of ours, or of an installed package."""
    found = DATA[source](directory=directory, split=split)
    if not isinstance(found, Arrays):
        raise AdvlabError(f"Arrays from the data set {source}", type(found).__name__)
    return found
