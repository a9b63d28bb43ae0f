"""Where data sets are kept on this machine, and which of their files are there."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from ..core.datafiles import content, reading
from ..core.errors import AdvlabError
from .published import SETS, UNPACKED, DataSet

Split = Literal["train", "test"]

VARIABLE = "ADVLAB_DATA"


class Root(NamedTuple):
    """The directory that holds one folder per data set, and why it is this one."""

    path: Path
    reason: str


def data_root(directory: str | os.PathLike[str] | None = None) -> Root:
    """The directory given, else the one ADVLAB_DATA names, else the user's cache."""
    if directory is not None:
        return Root(Path(directory).expanduser(), "it was given")
    if named := os.environ.get(VARIABLE):
        return Root(Path(named).expanduser(), f"the environment variable {VARIABLE} names it")
    # The XDG rule: a relative path in the variable is to be ignored.
    cache = Path(os.environ.get("XDG_CACHE_HOME", ""))
    cache = cache if cache.is_absolute() else Path.home() / ".cache"
    return Root(cache / "advlab" / "data", f"the per-user cache, as {VARIABLE} is not set")


def data_set(name: str) -> DataSet:
    """What is known about a data set that can be fetched."""
    if name not in SETS:
        raise AdvlabError(f"a data set among {', '.join(SETS)}", repr(name))
    return SETS[name]


def find(name: str, file: str, directory: str | os.PathLike[str] | None = None) -> Path | None:
    """A file of a data set, in its folder under the data directory or in that directory itself."""
    root = data_root(directory).path
    return next((path for path in (root / name / file, root / file) if path.is_file()), None)


def check_published(name: str, path: Path) -> None:
    """Refuse a file with the name and the size of a published one, and other content.

    Files of other sizes, such as a small set of the same format, are the user's own.

    Args:
        name: the data set.
        path: the file that is about to be read.
    """
    published = {file.name: (file.size, file.sha256) for file in SETS[name].files} | UNPACKED
    size, expected = published.get(path.name, (-1, ""))
    try:
        if path.stat().st_size != size:
            return
        came = content(path)
    except OSError as error:
        raise AdvlabError(f"{path} can be read", error.strerror) from None
    if came != expected:
        raise AdvlabError(
            f"{path.name} as it was published (sha256 {expected[:12]}...)",
            f"{path} of the same size with sha256 {came[:12]}...",
            f"delete it and run `advlab data fetch {name}`, or give your own data another name",
        )


@contextmanager
def reading_set(
    name: str, split: Split, directory: str | os.PathLike[str] | None, paths: Sequence[Path]
) -> Iterator[None]:
    """Check files of a data set, and record that they are read inside the block.

    Args:
        name: the data set.
        split: the part of it.
        directory: where it was sought, None for the data directory of the user.
        paths: the files of this part.
    """
    for path in paths:
        check_published(name, path)
    with reading(f"{name} {split}" + ("" if directory is None else f" in {directory}"), paths):
        yield


def present(name: str, directory: str | os.PathLike[str] | None = None) -> list[Path]:
    """The files of a data set that are in the data directory."""
    root = data_root(directory).path
    found = {
        path
        for pattern in data_set(name).patterns
        for path in (*root.glob(f"{name}/{pattern}"), *root.glob(f"{name}/[!.]*/{pattern}"))
    }
    patterns = data_set(name).patterns if data_set(name).loose else ()
    loose = {path for pattern in patterns for path in root.glob(pattern)}
    return sorted(path for path in found | loose if path.is_file())


def absent(name: str, file: str, directory: str | os.PathLike[str] | None = None) -> AdvlabError:
    """The error to raise when a data set is not there: where it was sought and what to do."""
    root = data_root(directory)
    return AdvlabError(
        f"{name} needs {file} in {root.path / name} ({root.reason}), which is not there",
        advice=f"run `advlab data fetch {name}`, or set {VARIABLE} to a directory that has {name}/",
    )
