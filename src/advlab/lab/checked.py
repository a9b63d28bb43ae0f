"""What a check of stored files finds: what is whole, and what is damaged, foreign or stale."""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from ..core.datafiles import DataRead
from ..core.files import check_sealed, file_checksum, is_ours

Kind = Literal["damaged", "foreign", "stale"]

_DAMAGE = (OSError, ValueError, KeyError, TypeError, AttributeError)


@dataclass(frozen=True)
class Problem:
    """What is wrong, with which file, and why."""

    kind: Kind
    path: str
    why: str


@dataclass
class Checked:
    """A folder of runs of one experiment, or of one evaluation: what is whole, what is not."""

    name: str
    whole: int = 0
    results: int = 0
    failed: int = 0
    problems: list[Problem] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        """Was there nothing to check?"""
        return not (self.whole or self.results or self.failed or self.problems)

    def count(self, kind: Kind) -> int:
        """How many problems of a kind there are."""
        return sum(problem.kind == kind for problem in self.problems)


def compare_checksums(wanted: dict[str, str], folder: Path, checked: Checked, label: str) -> None:
    """Compare files with their checksums.

    Args:
        wanted: checksums by name.
        folder: where the files are.
        checked: takes what is damaged.
        label: the folder's name in what is said.
    """

    def compare(name: str) -> None:
        if file_checksum(folder / name) != wanted[name]:
            raise ValueError("not what was written")

    for name in wanted:
        attempt(checked, f"{label}/{name}", partial(compare, name))


def check_data(read: DataRead, checked: Checked, label: str, what: str) -> None:
    """Compare the data files that something rests on with those that are here now.

    Args:
        read: its requests with their files.
        checked: takes a line if they differ, and a note where they are not here.
        label: its name in what is said.
        what: what rests on them, such as "3 runs".
    """
    if not read:
        return
    from ..data.recorded import changes  # it imports torch

    found = changes(read)
    if found.changed:
        why = f"{what} made from other data: {', '.join(found.changed)} changed"
        checked.problems.append(Problem("stale", label, why))
    elif found.missing:
        where = ", ".join(found.missing)
        checked.notes.append(f"{label}: data that are not here are not checked: {where}")


def attempt(
    checked: Checked, label: str, read: Callable[[], Any], may_go: Path | None = None
) -> Any:
    """What `read` gives; if it cannot, a line about damage and None.

    Args:
        checked: takes the line.
        label: the file's name in it.
        read: reads the file.
        may_go: the file, if it is no damage that it is gone meanwhile.
    """
    try:
        return read()
    except _DAMAGE as error:
        gone = isinstance(error, FileNotFoundError) and not (may_go and may_go.is_symlink())
        if may_go is None or not gone:
            why = _reason(error)
            checked.problems.append(Problem("damaged", label, why))
        return None


def _reason(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "missing"
    text = error.strerror if isinstance(error, OSError) else str(error)
    return " ".join(f"{text or type(error).__name__}".split())[:200]


def check_checkpoints(place: Path, name: str, files: list[str]) -> Checked:
    """Compare checkpoints of `fit` with their checksums; other files are named as not checked.

    Whether a checkpoint belongs to a model and to data is seen when a run goes on from it.

    Args:
        place: a folder.
        name: its name in what is said.
        files: the names of its files.
    """
    checked, others = Checked(name), []
    for file in files:
        path, label = place / file, f"{name}/{file}"
        if path.suffix != ".safetensors" or not quietly(partial(is_ours, path)):
            others.append(file)
            continue
        before = len(checked.problems)
        attempt(checked, label, partial(check_sealed, path), may_go=path)
        checked.whole += len(checked.problems) == before
    checked.notes += not_checked(place, others)
    return checked


def not_checked(place: Path, files: list[str]) -> list[str]:
    """A line about files that are of no known kind, if there are any."""
    shown = ", ".join(files[:3]) + (", ..." if len(files) > 3 else "")
    return [f"not checked, no file of a run: {shown} in {place}"] if files else []


def quietly(read: Callable[[], Any]) -> Any:
    """What `read` gives, None if it cannot."""
    try:
        return read()
    except _DAMAGE:
        return None


def names_in(folder: Path) -> set[str]:
    """The names in a folder; none where it is not there."""
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()
