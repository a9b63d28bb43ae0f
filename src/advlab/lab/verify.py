"""Is a folder of runs what was written there, and by the code that is installed now?

Everything is read and nothing is written; no experiment is imported. torch is imported only where
runs rest on data files, to find these.
"""

import json
import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from ..core.datafiles import DataRead
from ..core.errors import AdvlabError
from ..core.files import sha256
from ..core.seal import unseal
from ..report import Result
from ..report.result import FILES
from .checked import (
    Checked,
    Problem,
    attempt,
    check_checkpoints,
    check_data,
    compare_checksums,
    names_in,
    quietly,
)
from .evaluations import check_batches, check_evaluation, is_batches
from .installed import installed_code
from .origin import FILE as ORIGIN
from .origin import read_origin

_KEY = re.compile(r"[0-9a-f]{16}")
_RESULT = re.compile(r"result-\w+\.json")
_OURS = re.compile(f"{_KEY.pattern}|{_RESULT.pattern}")
_SHOWN = frozenset(FILES)
"""Made from the result, so nothing rests on them."""
_SET_ASIDE = ("corrupt", "failed")
_TRIES = 20


class _Run(NamedTuple):
    """The checksum of its run.json, the code that computed it, and the data files it read."""

    checksum: str
    code: str
    data: DataRead


def verify(folder: Path | str) -> list[Checked]:
    """Check every experiment, evaluation and checkpoint below a folder; nothing is written.

    A run is whole if every byte of its files is as written and its settings belong to its key. It
    is stale if other code than the installed one computed it, as far as that code can be found, or
    if data files that it read have other content now; a result is stale if runs that it rests on
    changed or are gone; an evaluation is stale if other code of advlab made it, or if its model or
    its data changed.

    Args:
        folder: the folder of all runs, or one below it.

    Returns:
        One entry per experiment and evaluation.

    Raises:
        AdvlabError: there is nothing to check.

    Example:
        from advlab.lab.verify import verify
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
            yield check_evaluation(place, name, files)
        elif place.name == "batches" and (place.parent / "evaluation.json").exists():
            continue
        elif is_batches(files):
            yield check_batches(place, name, files)
        elif "run.json" in files:
            checked = Checked(name)
            _run(place.resolve(), checked, name)
            yield checked
        elif _is_store(inner, files):
            yield _store(place, name, inner, files)
        else:
            yield check_checkpoints(place, name, files)


def _store(place: Path, name: str, inner: list[str], files: list[str]) -> Checked:
    checked = Checked(name)
    runs: dict[str, _Run] = {}
    for key in filter(_KEY.fullmatch, [*inner, *files]):  # a link in a circle counts as a file
        run = _run(place / key, checked, f"{name}/{key}")
        if run:
            runs[key] = run
    names = [name]
    for file in files:
        path, label = place / file, f"{name}/{file}"
        if _RESULT.fullmatch(file):
            result = attempt(checked, label, partial(_result, path))
            if result:
                checked.results += 1
                names += [result.experiment, result.source]
                _rests(result, file, runs, checked, label)
        elif file == ORIGIN:
            origin = attempt(checked, label, partial(read_origin, place))
            names += [origin.source] if origin else []
        elif not (file.startswith(".partial-") or file in _SHOWN or _KEY.fullmatch(file)):
            checked.problems.append(Problem("foreign", label, "unknown file in a folder of runs"))
    _failures(place / "failed", checked, f"{name}/failed")
    aside = names_in(place / "corrupt")
    if aside:
        checked.notes.append(f"{name}: set aside in corrupt/, not in use: {len(aside)}")
    _code(names[::-1], place, runs, checked)
    _data(runs, checked)
    return checked


def _result(path: Path) -> Result:
    return Result.model_validate_json(unseal(path.read_bytes()))


def _run(folder: Path, checked: Checked, label: str) -> _Run | None:
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


def _run_once(folder: Path, checked: Checked, label: str) -> _Run | None:
    found = attempt(checked, f"{label}/run.json", lambda: _record(folder / "run.json"))
    if found is None:
        return None
    run, checksum = found
    compare_checksums(run["sha256"], folder, checked, label)
    for name in sorted(names_in(folder) - {*run["sha256"], "run.json"}):
        checked.problems.append(Problem("foreign", f"{label}/{name}", "unknown file in a run"))
    case = quietly(lambda: json.loads((folder / "case.json").read_bytes()))
    if case is not None and _key(case) != folder.name:
        why = f"these settings belong to {_key(case)}, not to {folder.name}"
        checked.problems.append(Problem("foreign", f"{label}/case.json", why))
    return _Run(checksum, str(run.get("code", "")), run.get("data", {}))


def _record(path: Path) -> tuple[dict[str, Any], str]:
    data = path.read_bytes()
    run = json.loads(unseal(data))
    if "case.json" not in run["sha256"]:
        raise ValueError("no checksum of case.json")
    return run, sha256(data)


def _key(case: object) -> str:
    """The key that these settings have; as in `core.config.Config.key`."""
    text = json.dumps(case, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode())[:16]


def _rests(result: Result, file: str, runs: dict[str, _Run], checked: Checked, label: str) -> None:
    if file != f"result-{result.scale}.json":
        why = f"holds a result of {result.scale} scale"
        checked.problems.append(Problem("foreign", label, why))
    gone = [key for key in result.runs if key not in runs]
    other = [key for key in result.runs if key in runs and runs[key].checksum != result.runs[key]]
    for keys, what in ((gone, "are not here or damaged"), (other, "changed since")):
        if keys:
            why = f"{len(keys)} of the {len(result.runs)} runs it rests on {what}: {keys[0]}"
            more = ", ..." if len(keys) > 1 else ""
            checked.problems.append(Problem("stale", label, why + more))


def _failures(folder: Path, checked: Checked, label: str) -> None:
    for name in sorted(names_in(folder)):
        record = attempt(
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


def _code(names: list[str], place: Path, runs: dict[str, _Run], checked: Checked) -> None:
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
    for key, run in runs.items():
        if run.code != installed:
            by_code.setdefault(run.code, []).append(key)
    for code, keys in by_code.items():
        count = f"{len(keys)} run{'' if len(keys) == 1 else 's'}"
        why = f"{count} computed by other code ({code or 'not recorded'}, installed: {installed})"
        more = ", ..." if len(keys) > 1 else ""
        checked.problems.append(Problem("stale", f"{checked.name}/{keys[0]}{more}", why))


def _data(runs: dict[str, _Run], checked: Checked) -> None:
    """Name the runs that were made from other data than those that are here."""
    by_data: dict[str, list[str]] = {}
    for key, run in runs.items():
        by_data.setdefault(json.dumps(run.data, sort_keys=True), []).append(key)
    for data, keys in by_data.items():
        count = f"{len(keys)} run{'' if len(keys) == 1 else 's'}"
        more = ", ..." if len(keys) > 1 else ""
        check_data(json.loads(data), checked, f"{checked.name}/{keys[0]}{more}", count)
