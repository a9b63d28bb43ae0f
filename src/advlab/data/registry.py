"""Data sets by name: a function of `directory` and `split` that gives `Arrays`."""

from collections.abc import Callable

from ..core.registry import Registry
from . import cifar10, cifar100, mnist
from .arrays import Arrays

DATA: Registry[Callable[..., Arrays]] = Registry(
    "advlab.data",
    None,
    {"mnist": mnist.load, "cifar10": cifar10.load, "cifar100": cifar100.load},
)
