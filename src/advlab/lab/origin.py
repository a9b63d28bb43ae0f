"""Whose runs a folder holds: each source has a folder of its own, and `source.json` names it.

Two files called fig.py may be run into one `--out` from two current folders, by the same name. The
first gets the folder `fig`, the second one `fig-<hash of its path>`.
"""

import hashlib
import importlib.util
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from ..core.seal import seal, unseal
from ..report import Result
from .loader import BUILT_IN, dotted
from .store import ReadOnly, Store

FILE = "source.json"
_HERE = Path(__file__).parent.parent


@dataclass(frozen=True)
class Origin:
    """The file that runs come from, with the object in it where one was named.

    `relative` is its path as seen from the folder of all runs: where both are moved together it
    stays as it is.
    """

    source: str
    relative: str

    @property
    def file(self) -> Path:
        """The file without the object."""
        place, object_follows, _ = self.source.partition(".py:")
        return Path(f"{place}.py" if object_follows else place)


def own_folder(out: Path, name: str, source: str | None) -> str:
    """The folder below `out` for the runs of a source, which is marked as its own.

    Args:
        out: the folder of all runs.
        name: the experiment's name (`loader.name`).
        source: a registered name, a module, an object of a module or a file; None for none of
            these, which gets the folder of its name.

    Returns:
        The name, with a hash of the source's path behind it if that folder is another one's.
    """
    if source is None or (not source.endswith(".py") and dotted(source).startswith(BUILT_IN)):
        return name
    mine = _origin(source, out)
    hashed = f"{name}-{hashlib.sha256(mine.source.encode()).hexdigest()[:8]}"
    if _is_registered(name) or not _claims(out / name, mine):
        print(f"{out / name} holds runs of another source; these are in {hashed}", file=sys.stderr)
        _claims(out / hashed, mine)
        return hashed
    return name


def read_origin(folder: Path) -> Origin | None:
    """What `source.json` in a folder of runs says; None if there is none.

    Args:
        folder: the folder of one experiment.

    Raises:
        ValueError: it is damaged.
        OSError: it cannot be read.
    """
    try:
        found = json.loads(unseal((folder / FILE).read_bytes()))
    except FileNotFoundError:
        return None
    return Origin(str(found["source"]), str(found["relative"]))


def _origin(source: str, out: Path) -> Origin:
    if source.endswith(".py"):
        place, colon, inner = str(Path(source).resolve()), "", ""
    else:
        module, colon, inner = source.partition(":")
        spec = importlib.util.find_spec(module)
        place = str(Path(spec.origin).resolve()) if spec and spec.origin else module
    relative = os.path.relpath(place, out.resolve()) if os.path.isabs(place) else place
    return Origin(f"{place}{colon}{inner}", f"{relative}{colon}{inner}")


def _is_registered(name: str) -> bool:
    paper, _, item = name.partition("/")
    return bool(item) and (_HERE / "papers" / paper / "experiments" / f"{item}.py").is_file()


def _claims(folder: Path, mine: Origin) -> bool:
    """Is a folder this source's? One that is nobody's becomes so."""
    store = Store(folder)
    try:
        store.open()
        with store.lock("source", -1.0):
            theirs = _theirs(folder)
            if theirs == mine:
                return True
            if theirs is not None and not _moved(theirs, mine):
                return False
            text = json.dumps({"source": mine.source, "relative": mine.relative}, indent=1)
            store.write_json("source", Path(FILE), seal(text))
            return True
    except ReadOnly:  # what is complete there can still be read
        theirs = _theirs(folder)
        return theirs is None or _moved(theirs, mine)


def _moved(theirs: Origin, mine: Origin) -> bool:
    """Is it the same source, where it or the folder of all runs has another place now?"""
    if theirs.source == mine.source:
        return True
    return theirs.relative == mine.relative and not theirs.file.exists()


def _theirs(folder: Path) -> Origin | None:
    try:
        if found := read_origin(folder):
            return found
    except (OSError, ValueError, KeyError, TypeError):
        print(f"{folder / FILE} is damaged and written anew", file=sys.stderr)
    for path in sorted(folder.glob("result-*.json")):  # from before there was a source.json
        try:
            source = Result.read(path.read_bytes()).source
        except (OSError, ValueError):
            continue
        if source.endswith(".py"):
            return Origin(source, os.path.relpath(source, folder))
    return None
