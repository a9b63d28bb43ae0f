"""Stored evaluations: what made them, and whether they are whole and that is still so."""

import json
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from ..core.datafiles import DataRead
from ..core.files import check_sealed, sha256
from ..core.fingerprint import code_fingerprint
from ..core.seal import unseal
from .checked import (
    Checked,
    Problem,
    attempt,
    check_data,
    compare_checksums,
    names_in,
    not_checked,
)
from .installed import source_identity

EVALUATE = "advlab.evaluation.evaluate:evaluate"


def evaluation_origin(models: Iterable[str], data: DataRead) -> dict[str, Any]:
    """What an evaluation is made by, to be stored with it.

    Args:
        models: the models, architectures and attacks of the user's own as they were named: files,
            or module:object.
        data: the data files that were read, as `core.datafiles.recording` gives them.

    Returns:
        The fingerprint of advlab's code that evaluates, what tells each model from another one of
        its name, and the data files with their checksums.
    """
    known = {source: source_identity(source) or "" for source in models}
    return {"code": code_fingerprint(EVALUATE), "models": known, "data": data}


def check_evaluation(place: Path, name: str, files: list[str]) -> Checked:
    """Check the folder that `advlab attack` left.

    Args:
        place: the folder.
        name: its name in what is said.
        files: the names of its files.
    """
    checked = Checked(name)
    label = f"{name}/evaluation.json"
    about = attempt(
        checked, label, lambda: json.loads(unseal((place / "evaluation.json").read_bytes()))
    )
    if about is None:
        return checked
    wanted = about.get("sha256", {})
    compare_checksums(wanted, place, checked, name)
    there = {*files, *(f"batches/{file}" for file in names_in(place / "batches"))}
    checked.notes += not_checked(place, sorted(there - {*wanted, "evaluation.json"}))
    checked.results += 1
    checked.whole += not checked.problems
    made_by = about.get("made_by", {})
    _check_code(str(made_by.get("code", "")), checked, label)
    for source, was in made_by.get("models", {}).items():
        now = source_identity(source)
        if now is None:
            checked.notes.append(f"{label}: {source} is not here, so it is not checked")
        elif now != was:
            why = f"made with another model or attack: {source} changed"
            checked.problems.append(Problem("stale", label, why))
    check_data(made_by.get("data", {}), checked, label, "an evaluation")
    return checked


def is_batches(files: list[str]) -> bool:
    """Are these the files of an evaluation that goes on, or was stopped?"""
    return "about.json" in files and any(map(_is_batch, files))


def check_batches(place: Path, name: str, files: list[str]) -> Checked:
    """Check the batches of an evaluation that was not finished.

    Args:
        place: the folder.
        name: its name in what is said.
        files: the names of its files.
    """
    checked = Checked(name)
    about = attempt(checked, f"{name}/about.json", lambda: _about(place / "about.json"))
    batches = [file for file in files if _is_batch(file)]
    for file in batches:
        whole = attempt(checked, f"{name}/{file}", partial(_whole, place / file))
        checked.whole += bool(whole)
    others = [file for file in files if file not in {*batches, "about.json"}]
    checked.notes += not_checked(place, others)
    if about is not None:
        _check_code(str(about.get("code", "")), checked, f"{name}/about.json")
    return checked


def _check_code(code: str, checked: Checked, label: str) -> None:
    installed = code_fingerprint(EVALUATE)
    if code != installed:
        why = f"evaluated by other code ({code or 'not recorded'}, installed: {installed})"
        checked.problems.append(Problem("stale", label, why))


def _about(path: Path) -> dict[str, Any]:
    about = json.loads(path.read_bytes())
    wanted = about.pop("sha256")
    if sha256(json.dumps(about, sort_keys=True).encode()) != wanted:
        raise ValueError("not what was written")
    return about


def _whole(path: Path) -> bool:
    check_sealed(path)
    return True


def _is_batch(file: str) -> bool:
    return file.startswith("batch-") and file.endswith(".safetensors")
