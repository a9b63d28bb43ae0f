"""Data files that runs rest on: a user's own file, a cache that is recorded too, files as now."""

from collections.abc import Callable, Mapping
from functools import update_wrapper
from os import PathLike
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

from ..core.datafiles import (
    OWN_FILE,
    DataChanges,
    DataRead,
    data_changes,
    reading,
    record,
    recording,
)
from ..core.errors import AdvlabError
from . import cifar10, cifar100, mnist

P = ParamSpec("P")
T = TypeVar("T")
_READERS = {"mnist": mnist, "cifar10": cifar10, "cifar100": cifar100}


def recorded(path: str | PathLike[str]) -> Path:
    """Say that the run of this case rests on a file, which advlab's own readers do by themselves.

    Args:
        path: a file that is about to be read.

    Returns:
        The path.

    Example:
        import polars
        from advlab import data
        table = polars.read_csv(data.recorded("measured.csv"))
    """
    try:
        with reading(f"{OWN_FILE}{path}", [Path(path)]):
            return Path(path)
    except OSError as error:
        raise AdvlabError("a data file that can be read", f"{path} ({error.strerror})") from None


def cached(load: Callable[P, T]) -> "Cached[P, T]":
    """Keep what a function reads, as `functools.cache`, without losing what runs rest on.

    Each call records the files that the result came from, the first one and all others. If these
    files changed, or others take their place, the function is called again.

    Args:
        load: a function whose arguments are hashable, and whose readers record their files.

    Example:
        from advlab.data import Arrays, cached, mnist

        @cached
        def zeros() -> Arrays:
            return mnist.load([0])
    """
    return Cached(load)


class Cached(Generic[P, T]):
    """A function with a memory for what it read; `cached` makes it."""

    def __init__(self, load: Callable[P, T]):
        self._load = load
        self._kept: dict[Any, tuple[T, DataRead]] = {}
        update_wrapper(self, load)

    def __call__(self, *args: P.args, **more: P.kwargs) -> T:
        key = args, tuple(sorted(more.items()))
        value, read = self._kept.get(key, (None, None))
        if read is None or changes(read) != DataChanges():
            with recording() as read:
                value = self._load(*args, **more)
            self._kept[key] = value, read
        record(read)
        return value  # type: ignore[return-value]  # it is None only where `load` gave None

    def cache_clear(self) -> None:
        """Forget everything."""
        self._kept.clear()


def check_there(name: str) -> None:
    """Refuse, with advice, where the files of a published data set are not here.

    Args:
        name: "mnist", "cifar10" or "cifar100".
    """
    for split in mnist.FILES:
        _READERS[name].located(split)


def changes(read: Mapping[str, Mapping[str, str]]) -> DataChanges:
    """Compare the data files that a run rests on with those that it would read now.

    Args:
        read: its requests with their files, as a recording gives them.
    """
    return data_changes(read, _located)


def _located(request: str) -> list[Path] | None:
    if request.startswith(OWN_FILE):
        return [Path(request.removeprefix(OWN_FILE))]
    asked, _, directory = request.partition(" in ")
    name, _, split = asked.partition(" ")
    if name not in _READERS or split not in mnist.FILES:
        return None
    try:
        return _READERS[name].located(split, directory or None)
    except AdvlabError:
        return None
