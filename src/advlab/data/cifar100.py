"""CIFAR-100 from its binary or Python version, or from an .npz; nothing is unpickled."""

from os import PathLike
from pathlib import Path

import torch

from .arrays import Arrays
from .cifar_files import CifarFiles
from .directory import Split

NAMES = (
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle",
    "bottle", "bowl", "boy", "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar",
    "cattle", "chair", "chimpanzee", "clock", "cloud", "cockroach", "couch", "crab", "crocodile",
    "cup", "dinosaur", "dolphin", "elephant", "flatfish", "forest", "fox", "girl", "hamster",
    "house", "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion", "lizard", "lobster",
    "man", "maple_tree", "motorcycle", "mountain", "mouse", "mushroom", "oak_tree", "orange",
    "orchid", "otter", "palm_tree", "pear", "pickup_truck", "pine_tree", "plain", "plate", "poppy",
    "porcupine", "possum", "rabbit", "raccoon", "ray", "road", "rocket", "rose", "sea", "seal",
    "shark", "shrew", "skunk", "skyscraper", "snail", "snake", "spider", "squirrel", "streetcar",
    "sunflower", "sweet_pepper", "table", "tank", "telephone", "television", "tiger", "tractor",
    "train", "trout", "tulip", "turtle", "wardrobe", "whale", "willow_tree", "wolf", "woman",
    "worm",
)  # fmt: skip
FILES = CifarFiles(
    name="cifar100",
    classes=NAMES,
    binary={"train": ("train.bin",), "test": ("test.bin",)},
    binary_folder="cifar-100-binary",
    pickled={"train": ("train",), "test": ("test",)},
    pickled_folder="cifar-100-python",
    labels=2,  # the superclass, then the class
    key="fine_labels",
    loose=False,
)


def load(
    n: int | None = None,
    directory: str | PathLike[str] | None = None,
    split: Split = "train",
    rng: torch.Generator | None = None,
) -> Arrays:
    """Images as float32 of shape (n, 3, 32, 32) in [0, 1], and their classes (`NAMES`) as int64.

    The 100 classes, not the 20 superclasses. Files are sought as those of `cifar10.load`.

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
