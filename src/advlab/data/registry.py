"""Data sets by name: a function of `directory` and `split` that gives `Arrays`."""

from collections.abc import Callable
from pathlib import Path

from ..core.registry import Registry
from . import cifar10, cifar100, mnist
from .arrays import Arrays
from .directory import Split

DATA: Registry[Callable[..., Arrays]] = Registry(
    "advlab.data",
    None,
    {"mnist": mnist.load, "cifar10": cifar10.load, "cifar100": cifar100.load},
)


def located(name: str, split: Split) -> list[Path]:
    """The files of a data set that comes with advlab, or an error that says how to get them.

    Args:
        name: mnist, cifar10 or cifar100.
        split: "train" or "test".

    Example:
        located("cifar10", "test")
    """
    return {"mnist": mnist, "cifar10": cifar10, "cifar100": cifar100}[name].located(split)
