"""CIFAR-10 from its binary or Python version, or from an .npz; nothing is unpickled."""

from os import PathLike
from pathlib import Path

import torch

from .arrays import Arrays
from .cifar_files import CifarFiles
from .directory import Split

NAMES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
FILES = CifarFiles(
    name="cifar10",
    classes=NAMES,
    binary={
        "train": tuple(f"data_batch_{batch}.bin" for batch in range(1, 6)),
        "test": ("test_batch.bin",),
    },
    binary_folder="cifar-10-batches-bin",
    pickled={
        "train": tuple(f"data_batch_{batch}" for batch in range(1, 6)),
        "test": ("test_batch",),
    },
    pickled_folder="cifar-10-batches-py",
    labels=1,
    key="labels",
    loose=True,
)


def load(
    n: int | None = None,
    directory: str | PathLike[str] | None = None,
    split: Split = "train",
    rng: torch.Generator | None = None,
) -> Arrays:
    """Images as float32 of shape (n, 3, 32, 32) in [0, 1], and their classes (`NAMES`) as int64.

    The binary files are read where there are any, else the pickles of the Python version (as data:
    they are not executed), else cifar10-train*.npz or cifar10-test*.npz.

    Args:
        n: how many; None for all.
        directory: where to look, None for the data directory of the user.
        split: "train" or "test".
        rng: which n, at random; without it the first ones in the order of the files.
    """
    return FILES.load(n, directory, split, rng)


def located(split: Split, directory: str | PathLike[str] | None = None) -> list[Path]:
    """The files that `load` reads.

    Args:
        split: "train" or "test".
        directory: where to look, None for the data directory of the user.
    """
    return FILES.located(split, directory)
