"""Runs on disk: each appears by one rename when whole, and is checked whenever it is read."""

import errno
import io
import json
import os
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import filelock
import numpy as np
import polars as pl
import safetensors
import safetensors.numpy

from ..core.datafiles import DataRead
from ..core.errors import AdvlabError
from ..core.files import remove, sha256, sync_folder, write_synced
from ..core.seal import Unsealed, seal, unseal
from . import provenance
from .case import Case, Computed

_PARTIAL = ".partial-"


class Corrupt(AdvlabError):
    """A run that is there but cannot be trusted."""


class ReadOnly(AdvlabError):
    """A store in which nothing may be written."""


@dataclass(frozen=True)
class Stored:
    """A run as read back from disk: its rows and arrays, the time it took, and what made it.

    `seconds` passed on the clock and `cpu` seconds were computed; `memory` is the most that the
    process ever held, in bytes. Both are 0 where they are not recorded.
    `code` is the fingerprint of the code that computed the run, empty where none is recorded;
    `versions` and `commit` are those of that time. `data` are the data files that it read, with
    their checksums (`core.datafiles`). `sha256` is the checksum of its run.json, which holds the
    checksums of all its other files.
    """

    table: pl.DataFrame
    arrays: dict[str, np.ndarray]
    seconds: float
    cpu: float = 0.0
    memory: int = 0
    code: str = ""
    versions: dict[str, str] = field(default_factory=dict)
    commit: str = ""
    data: DataRead = field(default_factory=dict)
    sha256: str = ""


def encode(computed: object) -> dict[str, bytes]:
    """The files of a result, in memory; a result that cannot be stored fails here, not on disk."""
    if isinstance(computed, pl.DataFrame):
        computed = Computed(computed)
    if not isinstance(computed, Computed):
        raise AdvlabError("compute gives a polars DataFrame or lab.Computed", type(computed))
    if computed.table.is_empty():
        raise AdvlabError("compute gives at least one row", "an empty table")
    buffer = io.BytesIO()
    computed.table.write_parquet(buffer)
    files = {"metrics.parquet": buffer.getvalue()}
    if computed.arrays:
        arrays = {name: np.asarray(array, order="C") for name, array in computed.arrays.items()}
        files["arrays.safetensors"] = safetensors.numpy.save(arrays)
    return files


class Store:
    """The runs of one experiment, in one folder that several processes may share.

    `<key>/` holds a whole run; `failed/<key>.json` says why a case has none; `corrupt/` keeps what
    was found damaged; `.locks/` holds one empty file per case. A case is written only under its
    lock, which the system releases when its holder dies.

    A run's folder has `case.json` (its settings), `metrics.parquet` (its rows),
    `arrays.safetensors` (its arrays, if it has any) and `run.json`: time and memory it took, the
    fingerprint of the code that computed it, versions, the commit, the data files that it read
    with their checksums, the time, the checksums of the other files and its own.
    `result-<scale>.json` carries its own checksum too.

    Args:
        root: the folder; `open` makes it.

    Example:
        from pathlib import Path
        from advlab.lab import Store
        Store(Path("runs/generalization/fig5")).read(case).table
    """

    def __init__(self, root: Path):
        self.root = root

    def open(self) -> None:
        """Make the folder, and remove what killed processes left half-written."""
        with self._writing():
            (self.root / ".locks").mkdir(parents=True, exist_ok=True)
        self.clean()

    def clean(self, timeout: float = 0.0) -> None:
        """Remove partial runs whose writer is dead, that is, whose lock can be had."""
        for part in self.root.glob(f"{_PARTIAL}*"):
            key = part.name.removeprefix(_PARTIAL).rsplit("-", 1)[0]
            with self.lock(key, timeout) as mine:
                if mine:
                    remove(part)

    @contextmanager
    def lock(self, key: str, timeout: float) -> Iterator[bool]:
        """Hold the lock of a case, or yield False if it cannot be had in time (-1: wait)."""
        with self._writing():
            lock = filelock.FileLock(self.root / ".locks" / f"{key}.lock", timeout=timeout)
            try:
                lock.acquire()
                mine = True
            except filelock.Timeout:
                mine = False
        try:
            yield mine
        finally:
            if mine:
                lock.release()

    def has(self, case: Case) -> bool:
        """Is there a run, whole as far as its name tells?"""
        return os.path.lexists(self.root / case.key())

    def code(self, case: Case) -> str | None:
        """The fingerprint of the code that computed the run of a case; None without a run."""
        try:
            return _text(read_record(_read(self.root / case.key() / "run.json")), "code")
        except _DAMAGE:
            return None

    def read(self, case: Case, arrays: bool = True) -> Stored | None:
        """The run of a case, None if there is none.

        Args:
            case: the settings.
            arrays: False leaves the arrays out, which saves memory; their file is still checked.

        Raises:
            Corrupt: the run is damaged, or belongs to other settings.
            AdvlabError: the system does not let us read it now.
        """
        folder = self.root / case.key()
        if not self.has(case):
            return None
        try:
            record = _read(folder / "run.json")
            run = read_record(record)
            files = {name: _read(folder / name) for name in run["sha256"]}
            for file, data in files.items():
                if sha256(data) != run["sha256"][file]:
                    raise ValueError(f"{file} is not what was written")
            if json.loads(files["case.json"]) != json.loads(case.canonical()):
                raise ValueError("case.json holds other settings")
            table = pl.read_parquet(io.BytesIO(files["metrics.parquet"]))
            saved = files.get("arrays.safetensors") if arrays else None
            return Stored(
                table,
                safetensors.numpy.load(saved) if saved is not None else {},
                seconds=float(run["seconds"]),
                cpu=float(run.get("cpu", 0.0)),
                memory=int(run.get("memory", 0)),
                code=_text(run, "code"),
                versions=dict(run.get("versions", {})),
                commit=_text(run, "commit"),
                data={request: dict(files) for request, files in run.get("data", {}).items()},
                sha256=sha256(record),
            )
        except _DAMAGE as error:
            if isinstance(error, OSError) and error.errno in _NO_DAMAGE:
                raise AdvlabError(f"{folder} can be read", error.strerror) from error
            raise Corrupt(f"a whole run in {folder}", _one_line(error)) from error

    def write(
        self,
        case: Case,
        files: Mapping[str, bytes],
        seconds: float,
        code: str = "",
        data: DataRead | None = None,
        cpu: float = 0.0,
        memory: int = 0,
    ) -> None:
        """Store a run (its lock is held), all of it or nothing; it replaces an earlier one.

        Args:
            case: the settings, which are stored with it.
            files: what `encode` made of the result.
            seconds: the time it took.
            code: the fingerprint of the code that computed it.
            data: the data files that it read, with their checksums.
            cpu: the seconds of computing among these.
            memory: the most that its process held, in bytes.
        """
        settings = json.dumps(case.model_dump(mode="json"), indent=2).encode()
        whole = {"case.json": settings, **files}
        about = {
            "seconds": round(seconds, 3),
            "cpu": round(cpu, 3),
            "memory": memory,
            "code": code,
            "versions": provenance.versions(),
            "commit": provenance.commit(),
            "data": data or {},
            "finished": provenance.now(),
            "sha256": {name: sha256(body) for name, body in whole.items()},
        }
        whole["run.json"] = seal(json.dumps(about, indent=2)).encode()
        self._put(case, whole)

    def _put(self, case: Case, files: Mapping[str, bytes]) -> None:
        """Make these files the run of a case (its lock is held), by one rename."""
        key = case.key()
        with self._writing(), self._partial(key) as part:
            part.mkdir()
            for name, body in files.items():
                write_synced(part / name, body)
            sync_folder(part)
            if self.has(case):
                with self._partial(key) as old:
                    os.rename(self.root / key, old)
            os.rename(part, self.root / key)
            sync_folder(self.root)
        self.forget_failure(case)

    def set_aside(self, case: Case) -> None:
        """Move a damaged run (its lock is held) to corrupt/<key>-<n>."""
        with self._writing():
            aside = self.root / "corrupt"
            aside.mkdir(exist_ok=True)
            n = 0
            while os.path.lexists(aside / f"{case.key()}-{n}"):
                n += 1
            os.rename(self.root / case.key(), aside / f"{case.key()}-{n}")

    def discard(self, case: Case) -> None:
        """Forget the run of a case, unless another process is computing it right now."""
        with self.lock(case.key(), 0.0) as mine:
            if mine and self.has(case):
                with self._writing(), self._partial(case.key()) as part:
                    os.rename(self.root / case.key(), part)

    def write_failure(self, case: Case, error: Exception) -> None:
        """Store why a case (its lock is held) has no run."""
        about = {
            "case": case.model_dump(mode="json"),
            "reason": _one_line(error),
            "traceback": "".join(traceback.format_exception(error)).splitlines()[-20:],
            "finished": provenance.now(),
        }
        self.write_json(case.key(), Path("failed") / f"{case.key()}.json", seal(json.dumps(about)))

    def failure(self, case: Case) -> str | None:
        """Why a case has no run, None if nothing is known."""
        try:
            record = (self.root / "failed" / f"{case.key()}.json").read_bytes()
            return str(read_record(record)["reason"])
        except FileNotFoundError:
            return None
        except _DAMAGE:
            return "the record of the failure is damaged"

    def forget_failure(self, case: Case) -> None:
        """Drop the failure of a case that has a run now."""
        record = self.root / "failed" / f"{case.key()}.json"
        if os.path.lexists(record):  # a read-only disk refuses even to remove what is not there
            with self._writing(), suppress(FileNotFoundError):
                record.unlink()

    def write_json(self, key: str, place: Path, text: str) -> None:
        """Put a text in its place under the root at once; the lock of `key` is held."""
        with self._writing(), self._partial(key) as part:
            (self.root / place).parent.mkdir(exist_ok=True)
            write_synced(part, text.encode())
            os.replace(part, self.root / place)

    @contextmanager
    def _partial(self, key: str) -> Iterator[Path]:
        part = self.root / f"{_PARTIAL}{key}-{uuid4().hex}"
        try:
            yield part
        finally:
            remove(part)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            kind = ReadOnly if error.errno in _REFUSED else AdvlabError
            raise kind(
                f"{self.root} takes new files",
                error.strerror or error,
                "whole runs are untouched; make room there or choose another --out",
            ) from error


_REFUSED = (errno.EROFS, errno.EACCES, errno.EPERM)
_NO_DAMAGE = (errno.EACCES, errno.EPERM, errno.EMFILE, errno.ENFILE, errno.ENOMEM)
_DAMAGE = (
    ValueError,  # also JSON, Unicode
    KeyError,
    TypeError,
    AttributeError,
    OSError,  # also links in a circle, folders in place of files
    pl.exceptions.PolarsError,
    safetensors.SafetensorError,
)
_BEFORE_SEALS = {"seconds", "code", "versions", "commit", "finished", "sha256"} | {
    "case", "reason", "traceback"
}  # fmt: skip


def read_record(data: bytes) -> dict[str, Any]:
    """What run.json or the record of a failure says; those from before seals have no checksum.

    Args:
        data: what the file holds.

    Raises:
        ValueError: it is damaged.
    """
    try:
        return json.loads(unseal(data))
    except Unsealed:
        record = json.loads(data)
        if not set(record) <= _BEFORE_SEALS:
            raise
        return record


def _one_line(error: Exception) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"{path.name} is missing") from None


def _text(record: dict[str, Any], name: str) -> str:
    return str(record.get(name, ""))
