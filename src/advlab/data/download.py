"""Download the published files of a data set by pooch, checked before they appear."""

import os
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO
from urllib.parse import urlsplit

import pooch
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from urllib3.exceptions import HTTPError

from ..core.datafiles import content
from ..core.errors import AdvlabError
from ..core.files import file_checksum
from .directory import VARIABLE, data_root, data_set
from .published import UNPACKED, DataSet, File

CHUNK = 1 << 16


def fetch(
    name: str,
    directory: str | os.PathLike[str] | None = None,
    mirrors: Sequence[str] | None = None,
) -> Path:
    """Download what is missing of a data set, check it, and give the folder it is in.

    A file appears under its name only when it is whole and both its checksums agree.
    """
    known = data_set(name)
    folder = data_root(directory).path / name
    if mirrors is not None:
        for mirror in mirrors:
            _check_url(mirror)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".partial-") as scratch:
            for file in known.files:
                if not _have(known, file, folder):
                    _fetch_file(known, file, folder, Path(scratch), mirrors or known.mirrors)
    except OSError as error:
        raise AdvlabError(
            f"a data directory that can be written, not {folder} ({error.strerror or error})",
            advice=f"give another with --data or {VARIABLE}",
        ) from None
    return folder


def _have(known: DataSet, file: File, folder: Path) -> bool:
    if known.members:
        return all(_have_member(known, folder / name) for name in known.members)
    path = folder / file.name
    return path.is_file() and _fault(file, path) is None


def _have_member(known: DataSet, path: Path) -> bool:
    if known.member_size:
        return path.is_file() and path.stat().st_size == known.member_size
    size, expected = UNPACKED[path.name]
    return path.is_file() and path.stat().st_size == size and content(path) == expected


def _fetch_file(
    known: DataSet, file: File, folder: Path, scratch: Path, mirrors: Sequence[str]
) -> None:
    failures = []
    for mirror in mirrors:
        part = scratch / file.name
        fault = _download(f"{mirror.rstrip('/')}/{file.name}", part, file) or _fault(file, part)
        if fault is None:
            return _place(known, part, folder)
        failures.append(f"{mirror}: {fault}")
    by_hand = ", ".join(f"{f.name} (md5 {f.md5})" for f in known.files)
    unpacked = f" and unpack {', '.join(known.members)} there" if known.members else ""
    raise AdvlabError(
        f"{file.name} could not be fetched ({'; '.join(failures)})",
        advice=f"to do it by hand, put {by_hand} into {folder}{unpacked}",
    )


def _download(url: str, target: Path, file: File) -> str | None:
    """What went wrong, or None."""
    # A server that packs what it sends would change the bytes that the checksum is about.
    headers = {"User-Agent": "advlab", "Accept-Encoding": "identity"}
    get = pooch.HTTPDownloader(progressbar=False, chunk_size=CHUNK, timeout=30, headers=headers)
    try:
        with target.open("wb") as out, _progress() as progress:
            get(url, _Limited(out, file, progress), None)
    except _TooLong:
        return None  # its size says it
    except (OSError, HTTPError) as error:  # what requests raises is an OSError
        return " ".join(str(error).split()) or type(error).__name__
    return None


class _TooLong(Exception):
    """More bytes came than the file has."""


class _Limited:
    """A file to write to that shows how far it is, and ends a download that is too long."""

    def __init__(self, out: BinaryIO, file: File, progress: Progress):
        self.out, self.size, self.progress = out, file.size, progress
        self.bar = progress.add_task(file.name, total=file.size)

    def write(self, chunk: bytes) -> None:
        # One byte more than expected is enough to know that the file is another one.
        self.out.write(chunk[: self.size + 1 - self.out.tell()])
        self.progress.update(self.bar, completed=self.out.tell())
        if self.out.tell() > self.size:
            raise _TooLong

    def flush(self) -> None:
        self.out.flush()


def _fault(file: File, path: Path) -> str | None:
    """How a file differs from the published one, or None."""
    size = path.stat().st_size
    if size < file.size:
        return f"truncated, {size} of {file.size} bytes"
    if size > file.size:
        return f"too long, more than {file.size} bytes"
    for algorithm, expected in (("sha256", file.sha256), ("md5", file.md5)):
        came = file_checksum(path, algorithm)
        if came != expected:
            return f"wrong checksum, {algorithm} {came} where {expected} was expected"
    return None


def _place(known: DataSet, part: Path, folder: Path) -> None:
    if not known.members:
        os.replace(part, folder / part.name)
        return
    inside = part.parent / "unpacked"
    try:
        with tarfile.open(part) as archive:
            archive.extractall(inside, filter="data")
    except tarfile.TarError as error:
        raise AdvlabError("an archive that can be unpacked", f"{part.name} ({error})") from None
    found = {path.name: path for path in inside.rglob("*") if path.is_file()}
    missing = [name for name in known.members if name not in found]
    if missing:
        raise AdvlabError(f"the archive {part.name} with {', '.join(missing)}", "one without")
    for name in known.members:
        os.replace(found[name], folder / name)


def _check_url(url: str) -> None:
    try:
        fine = urlsplit(url).scheme in ("http", "https") and bool(urlsplit(url).hostname)
    except ValueError:
        fine = False
    if not fine:
        raise AdvlabError("a mirror as an http or https address of a folder", repr(url))


def _progress() -> Progress:
    console = Console(stderr=True)
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        console=console,
        disable=not console.is_terminal,
    )
