"""Which data files a computation reads, by content, so that its result can name them.

    with recording() as read:
        compute(case)
    read  # {"mnist train": {"train-images-idx3-ubyte.gz": "440fcabf...", ...}}

Every reader of data says what it reads (`reading`), also when the data are in its cache. Each
recording gets what was read inside it and nothing else. This module imports no torch.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path

from .errors import AdvlabError
from .files import file_checksum

DataRead = dict[str, dict[str, str]]
"""For each request, such as "mnist train" or "file own.npz", its files by name and their sha256."""

OWN_FILE = "file "
_MOMENT = 2 * 10**9
"""Nanoseconds within which a file may be written twice and show the same time of change."""

_State = tuple[int, int, int, int]
_innermost: ContextVar[DataRead | None] = ContextVar("data files read", default=None)
_open: list[DataRead] = []
_known: dict[Path, tuple[_State, str]] = {}


@contextmanager
def recording() -> Iterator[DataRead]:
    """Collect the data files that are read inside the block.

    An inner recording keeps what it gets to itself; `record` hands it on. What a thread reads that
    was started inside the block, and so has no recording of its own, goes to all open ones.

    Returns:
        Requests with their files, complete when the block ends.
    """
    read: DataRead = {}
    token = _innermost.set(read)
    _open.append(read)
    try:
        yield read
    finally:
        _innermost.reset(token)
        # By identity: two recordings may hold the same.
        _open[:] = [one for one in _open if one is not read]


def record(read: Mapping[str, Mapping[str, str]]) -> None:
    """Tell the recording around this call what is read here, for example out of a cache.

    Args:
        read: requests with their files, as a recording gives them.
    """
    mine = _innermost.get()
    for request, files in read.items():
        for one in _open if mine is None else [mine]:
            one[request] = {**one.get(request, {}), **files}


@contextmanager
def reading(request: str, paths: Sequence[Path]) -> Iterator[None]:
    """Record the files that are read inside the block; they must not change meanwhile.

    Without a recording around it nothing is done.

    Args:
        request: what was asked for, from which the paths can be found again.
        paths: the files that hold it.

    Raises:
        AdvlabError: a file was changed while it was read.
        OSError: a file cannot be read.
    """
    if not _open:
        yield
        return
    states = {path: _state(path) for path in paths}
    files = {path.name: content(path) for path in paths}
    yield
    for path, state in states.items():
        if _state(path) != state:
            came = f"{path}, which was changed"
            raise AdvlabError("data files that stay while they are read", came, "run it again")
    record({request: files})


def content(path: Path) -> str:
    """The SHA-256 of a file; one that has not changed is hashed once per process.

    Args:
        path: the file.
    """
    place, state = path.absolute(), _state(path)
    known = _known.get(place)
    if known and known[0] == state:
        return known[1]
    found = file_checksum(path)
    if _state(path) == state and time.time_ns() - max(state[:2]) > _MOMENT:
        _known[place] = state, found
    return found


@dataclass(frozen=True)
class DataChanges:
    """Files with other content than a recording has, and requests whose files are not here."""

    changed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def data_changes(
    read: Mapping[str, Mapping[str, str]], locate: Callable[[str], Sequence[Path] | None]
) -> DataChanges:
    """Compare what was read with what the same requests would read now.

    Args:
        read: requests with their files, as a recording gives them.
        locate: the files of a request as they are now, wherever they are; None if there are none.
    """
    found = DataChanges()
    for request, were in read.items():
        try:
            paths = locate(request)
            now = None if paths is None else {path.name: content(path) for path in paths}
        except OSError:
            now = None
        if now is None:
            found.missing.append(request.removeprefix(OWN_FILE))
        else:
            found.changed.extend(
                name for name in {**were, **now} if were.get(name) != now.get(name)
            )
    return found


def _state(path: Path) -> _State:
    about = os.stat(path)
    return about.st_mtime_ns, about.st_ctime_ns, about.st_size, about.st_ino
