"""Is a folder of runs what was written there, and by the code that is installed now?

Everything is read and nothing is written; no experiment is imported, so neither is torch.
"""

import hashlib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

from ..core.errors import AdvlabError
from ..core.files import file_checksum, sha256
from ..core.fingerprint import code_fingerprint
from ..core.reachable import defines
from ..core.seal import unseal
from ..report import Result
from .loader import dotted, find_here
from .origin import FILE as ORIGIN
from .origin import read_origin

Kind = Literal["damaged", "foreign", "stale"]

_KEY = re.compile(r"[0-9a-f]{16}")
_RESULT = re.compile(r"result-\w+\.json")
_OURS = re.compile(f"{_KEY.pattern}|{_RESULT.pattern}")
_DAMAGE = (OSError, ValueError, KeyError, TypeError, AttributeError)
_SET_ASIDE = ("corrupt", "failed")
_TRIES = 20


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


def verify(folder: Path | str) -> list[Checked]:
    """Check every experiment and every evaluation below a folder; nothing is written.

    A run is whole if every byte of its files is as written and its settings belong to its key. It
    is stale if other code than the installed one computed it, as far as that code can be found; a
    result is stale if runs that it rests on changed or are gone.

    Args:
        folder: the folder of all runs, or one below it.

    Returns:
        One entry per experiment and evaluation.

    Raises:
        AdvlabError: there is nothing to check.

    Example:
        [problem for checked in verify("runs") for problem in checked.problems]
    """
    root = Path(folder)
    if not root.is_dir():
        raise AdvlabError("a folder of runs", f"{root}, which is no folder")
    found = list(_below(root))
    if all(one.is_empty for one in found):
        raise AdvlabError(f"runs or evaluations in {root}", "none")
    return found


def folders(root: Path) -> Iterator[tuple[Path, list[str], list[str]]]:
    """Each folder below a root that can hold results, with the names of its folders and files.

    Runs are not entered. Folders that come or go meanwhile, as beside a sweep, do not matter.

    Args:
        root: where to begin.
    """
    for place, inner, files in os.walk(root):
        yield Path(place), sorted(inner), sorted(files)
        aside = _SET_ASIDE if _is_store(inner, files) else ()
        inner[:] = sorted(
            name
            for name in inner
            if not (name.startswith(".") or name in aside or _KEY.fullmatch(name))
        )


def _is_store(inner: list[str], files: list[str]) -> bool:
    return ".locks" in inner or any(map(_OURS.fullmatch, [*inner, *files]))


def _below(root: Path) -> Iterator[Checked]:
    for place, inner, files in folders(root):
        name = place.relative_to(root).as_posix()
        if "evaluation.json" in files:
            yield _evaluation(place, name, files)
        elif place.name == "batches" and (place.parent / "evaluation.json").exists():
            continue
        elif "run.json" in files:
            checked = Checked(name)
            _run(place.resolve(), checked, name)
            yield checked
        elif _is_store(inner, files):
            yield _store(place, name, inner, files)
        else:
            yield Checked(name, notes=_not_checked(place, files))


def _store(place: Path, name: str, inner: list[str], files: list[str]) -> Checked:
    checked = Checked(name)
    runs: dict[str, tuple[str, str]] = {}
    for key in filter(_KEY.fullmatch, [*inner, *files]):  # a link in a circle counts as a file
        run = _run(place / key, checked, f"{name}/{key}")
        if run:
            runs[key] = run
    names = [name]
    for file in files:
        path, label = place / file, f"{name}/{file}"
        if _RESULT.fullmatch(file):
            result = _attempt(checked, label, partial(_result, path))
            if result:
                checked.results += 1
                names += [result.experiment, result.source]
                _rests(result, file, runs, checked, label)
        elif file == ORIGIN:
            origin = _attempt(checked, label, partial(read_origin, place))
            names += [origin.source] if origin else []
        elif not (file.startswith(".partial-") or _KEY.fullmatch(file)):
            checked.problems.append(Problem("foreign", label, "unknown file in a folder of runs"))
    _failures(place / "failed", checked, f"{name}/failed")
    aside = _names(place / "corrupt")
    if aside:
        checked.notes.append(f"{name}: set aside in corrupt/, not in use: {len(aside)}")
    _code(names[::-1], place, runs, checked)
    return checked


def _result(path: Path) -> Result:
    return Result.model_validate_json(unseal(path.read_bytes()))


def _run(folder: Path, checked: Checked, label: str) -> tuple[str, str] | None:
    """The checksum of a run's run.json and the code that computed it; None if it is not whole."""
    earlier, found, state = len(checked.problems), None, _state(folder)
    for _ in range(_TRIES):  # again where a sweep replaced the run meanwhile
        del checked.problems[earlier:]
        found = _run_once(folder, checked, label)
        before, state = state, _state(folder)
        if len(checked.problems) == earlier or before == state:
            break
    if state is None:
        del checked.problems[earlier:]
        return None
    checked.whole += len(checked.problems) == earlier
    return found


def _state(folder: Path) -> tuple[int, int] | None:
    """What tells a run from the one that takes its place; None if there is none."""
    try:
        about = os.lstat(folder)
    except OSError:
        return None
    return about.st_ino, about.st_ctime_ns


def _run_once(folder: Path, checked: Checked, label: str) -> tuple[str, str] | None:
    found = _attempt(checked, f"{label}/run.json", lambda: _record(folder / "run.json"))
    if found is None:
        return None
    run, checksum = found
    _same(run["sha256"], folder, checked, label)
    for name in sorted(_names(folder) - {*run["sha256"], "run.json"}):
        checked.problems.append(Problem("foreign", f"{label}/{name}", "unknown file in a run"))
    case = _quietly(lambda: json.loads((folder / "case.json").read_bytes()))
    if case is not None and _key(case) != folder.name:
        why = f"these settings belong to {_key(case)}, not to {folder.name}"
        checked.problems.append(Problem("foreign", f"{label}/case.json", why))
    return checksum, str(run.get("code", ""))


def _record(path: Path) -> tuple[dict[str, Any], str]:
    data = path.read_bytes()
    run = json.loads(unseal(data))
    if "case.json" not in run["sha256"]:
        raise ValueError("no checksum of case.json")
    return run, sha256(data)


def _same(wanted: dict[str, str], folder: Path, checked: Checked, label: str) -> None:
    """Compare files with their checksums."""

    def compare(name: str) -> None:
        if file_checksum(folder / name) != wanted[name]:
            raise ValueError("not what was written")

    for name in wanted:
        _attempt(checked, f"{label}/{name}", partial(compare, name))


def _key(case: object) -> str:
    """The key that these settings have; as in `core.config.Config.key`."""
    text = json.dumps(case, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode())[:16]


def _rests(
    result: Result, file: str, runs: dict[str, tuple[str, str]], checked: Checked, label: str
) -> None:
    if file != f"result-{result.scale}.json":
        why = f"holds a result of {result.scale} scale"
        checked.problems.append(Problem("foreign", label, why))
    gone = [key for key in result.runs if key not in runs]
    other = [key for key in result.runs if key in runs and runs[key][0] != result.runs[key]]
    for keys, what in ((gone, "are not here or damaged"), (other, "changed since")):
        if keys:
            why = f"{len(keys)} of the {len(result.runs)} runs it rests on {what}: {keys[0]}"
            more = ", ..." if len(keys) > 1 else ""
            checked.problems.append(Problem("stale", label, why + more))


def _failures(folder: Path, checked: Checked, label: str) -> None:
    for name in sorted(_names(folder)):
        record = _attempt(
            checked,
            f"{label}/{name}",
            lambda name=name: dict(json.loads(unseal((folder / name).read_bytes()))),
            may_go=folder / name,
        )
        if record is None:
            continue
        checked.failed += 1
        if f"{_key(record.get('case'))}.json" != name:
            why = "the failure of other settings"
            checked.problems.append(Problem("foreign", f"{label}/{name}", why))


def _evaluation(place: Path, name: str, files: list[str]) -> Checked:
    checked = Checked(name)
    about = _attempt(
        checked,
        f"{name}/evaluation.json",
        lambda: json.loads(unseal((place / "evaluation.json").read_bytes())),
    )
    if about is None:
        return checked
    wanted = about.get("sha256", {})
    _same(wanted, place, checked, name)
    there = {*files, *(f"batches/{file}" for file in _names(place / "batches"))}
    checked.notes += _not_checked(place, sorted(there - {*wanted, "evaluation.json"}))
    checked.results += 1
    checked.whole += not checked.problems
    return checked


def _code(
    names: list[str], place: Path, runs: dict[str, tuple[str, str]], checked: Checked
) -> None:
    """Name the runs that other code than the installed one computed."""
    if not runs:
        return
    whole = place.resolve()
    names = [*names, "/".join(whole.parts[-2:]), whole.name]
    installed = next(filter(None, map(installed_code, dict.fromkeys(names))), None)
    if installed is None:
        checked.notes.append(f"{checked.name}: no source to read, so its code is not checked")
        return
    by_code: dict[str, list[str]] = {}
    for key, (_, code) in runs.items():
        if code != installed:
            by_code.setdefault(code, []).append(key)
    for code, keys in by_code.items():
        count = f"{len(keys)} run{'' if len(keys) == 1 else 's'}"
        why = f"{count} computed by other code ({code or 'not recorded'}, installed: {installed})"
        more = ", ..." if len(keys) > 1 else ""
        checked.problems.append(Problem("stale", f"{checked.name}/{keys[0]}{more}", why))


def installed_code(name: str) -> str | None:
    """The fingerprint of the code that would compute an experiment now; None if it is not here.

    It is read from the sources and not imported. The cases' classes count too, since they stand in
    the same file or are named by `compute`.

    Args:
        name: the experiment's name, which is a registered one, a module, or a file with or without
            its ".py".
    """
    file = Path(name if name.endswith(".py") else f"{name}.py")
    module = _read_only_module(file.resolve()) if file.is_file() else dotted(name)
    find_here()
    return code_fingerprint(f"{module}:compute") if defines(module, "compute") else None


def _read_only_module(path: Path) -> str:
    """A name under which the reader of sources finds a file that is not imported."""
    data = str(path).encode() + path.read_bytes()
    name = f"advlab_source_{hashlib.sha256(data).hexdigest()[:12]}"
    stand_in = ModuleType(name)
    stand_in.__file__ = str(path)
    sys.modules.setdefault(name, stand_in)
    return name


def _attempt(
    checked: Checked, label: str, read: Callable[[], Any], may_go: Path | None = None
) -> Any:
    """What `read` gives; if it cannot, a line about damage and None."""
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


def _not_checked(place: Path, files: list[str]) -> list[str]:
    shown = ", ".join(files[:3]) + (", ..." if len(files) > 3 else "")
    return [f"not checked, no file of a run: {shown} in {place}"] if files else []


def _quietly(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except _DAMAGE:
        return None


def _names(folder: Path) -> set[str]:
    try:
        return set(os.listdir(folder))
    except OSError:
        return set()
