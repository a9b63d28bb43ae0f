"""Where data sets are kept on this machine, what is known about each, and how they are fetched."""

import http.client
import os
import tarfile
import tempfile
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

from ..core.config import Config
from ..core.datafiles import content, reading
from ..core.errors import AdvlabError
from ..core.files import file_checksum

Split = Literal["train", "test"]

VARIABLE = "ADVLAB_DATA"
CHUNK = 1 << 16


class File(Config):
    """A file of a data set as its makers published it."""

    name: str
    size: int
    md5: str
    sha256: str


class DataSet(Config):
    """The published files of a data set; an archive is unpacked into `members`."""

    title: str
    terms: str
    files: tuple[File, ...]
    mirrors: tuple[str, ...]
    members: tuple[str, ...] = ()
    """The files wanted from the archive; none where the files are used as they come."""
    member_size: int = 0
    """The size of each of them, where `UNPACKED` does not say it."""

    patterns: tuple[str, ...]
    """The files that the reader of the set can read."""
    loose: bool = True
    """Whether its files have names that tell them apart outside a folder of their own."""


SETS: dict[str, DataSet] = {
    "mnist": DataSet(
        title="MNIST handwritten digits, 60,000 + 10,000 images of 28 x 28",
        terms="LeCun and Cortes, CC BY-SA 3.0",
        files=(
            File(
                name="train-images-idx3-ubyte.gz",
                size=9912422,
                md5="f68b3c2dcbeaaa9fbdd348bbdeb94873",
                sha256="440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            ),
            File(
                name="train-labels-idx1-ubyte.gz",
                size=28881,
                md5="d53e105ee54ea40749a09fcbcd1e9432",
                sha256="3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            ),
            File(
                name="t10k-images-idx3-ubyte.gz",
                size=1648877,
                md5="9fb629c4189551a2d022fa330f9573f3",
                sha256="8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            ),
            File(
                name="t10k-labels-idx1-ubyte.gz",
                size=4542,
                md5="ec29112dd5afa0611ce80d1b7f02629c",
                sha256="f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            ),
        ),
        mirrors=(
            "https://ossci-datasets.s3.amazonaws.com/mnist",
            "https://storage.googleapis.com/cvdf-datasets/mnist",
        ),
        patterns=("*-ubyte.gz", "*-ubyte", "mnist.npz"),
    ),
    "cifar10": DataSet(
        title="CIFAR-10 colour images, 50,000 + 10,000 images of 32 x 32, binary version",
        terms="Krizhevsky 2009, to be cited; no explicit licence is known",
        files=(
            File(
                name="cifar-10-binary.tar.gz",
                size=170052171,
                md5="c32a1d4ab5d03f1284b67883e8d87530",
                sha256="c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
            ),
        ),
        mirrors=("https://www.cs.toronto.edu/~kriz",),
        members=(
            "data_batch_1.bin",
            "data_batch_2.bin",
            "data_batch_3.bin",
            "data_batch_4.bin",
            "data_batch_5.bin",
            "test_batch.bin",
        ),
        patterns=("*_batch*.bin", "data_batch_[1-5]", "test_batch", "cifar10-*.npz"),
    ),
    "cifar100": DataSet(
        title="CIFAR-100 colour images, 50,000 + 10,000 images of 32 x 32, binary version",
        terms="Krizhevsky 2009, to be cited; no explicit licence is known",
        files=(
            File(
                name="cifar-100-binary.tar.gz",
                size=168513733,
                md5="03b5dce01913d631647c71ecec9e9cb8",
                sha256="58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
            ),
        ),
        mirrors=("https://www.cs.toronto.edu/~kriz",),
        members=("train.bin", "test.bin"),
        patterns=("train.bin", "test.bin", "train", "test", "cifar100-*.npz"),
        loose=False,
    ),
}


UNPACKED: dict[str, tuple[int, str]] = {
    "train-images-idx3-ubyte": (
        47040016, "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db"
    ),
    "train-labels-idx1-ubyte": (
        60008, "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5"
    ),
    "t10k-images-idx3-ubyte": (
        7840016, "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7"
    ),
    "t10k-labels-idx1-ubyte": (
        10008, "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"
    ),
    "data_batch_1.bin": (
        30730000, "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"
    ),
    "data_batch_2.bin": (
        30730000, "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"
    ),
    "data_batch_3.bin": (
        30730000, "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"
    ),
    "data_batch_4.bin": (
        30730000, "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"
    ),
    "data_batch_5.bin": (
        30730000, "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"
    ),
    "test_batch.bin": (
        30730000, "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"
    ),
    "train.bin": (
        153700000, "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29"
    ),
    "test.bin": (
        30740000, "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a"
    ),
}  # fmt: skip
"""Size and sha256 of published files once unpacked. Those of CIFAR are listed by the library
torchvision-ruby, whose first one of CIFAR-10 is that of the genuine images."""


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
    request = urllib.request.Request(url, headers={"User-Agent": "advlab"})
    try:
        with urllib.request.urlopen(request, timeout=30) as response, _progress() as progress:
            bar = progress.add_task(file.name, total=file.size)
            with target.open("wb") as out:
                # One byte more than expected is enough to know that the file is another one.
                while out.tell() <= file.size and (chunk := response.read(CHUNK)):
                    out.write(chunk)
                    progress.update(bar, completed=out.tell())
    except (OSError, http.client.HTTPException) as error:
        reason = str(error).removeprefix("<urlopen error ").removesuffix(">")
        return " ".join(reason.split()) or type(error).__name__
    return None


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
