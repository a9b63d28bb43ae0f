"""Files that are whole or not there: atomic writes of text, bytes and tensors, and checksums.

torch is imported by the functions for tensors only, so that everything else stays light.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from .errors import AdvlabError

if TYPE_CHECKING:
    from torch import Tensor


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new name beside `path` to write to, which takes the place of `path` when the block ends.

    Readers see the old file or the whole new one. The folder is made if it is missing. If the block
    raises, `path` is left as it was and nothing is left behind.

    Args:
        path: the file to replace or to make.

    Example:
        with replacing(Path("table.csv")) as part:
            part.write_text("x,y")
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}-{uuid4().hex}.part")
    try:
        yield part
        os.replace(part, path)
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8, all of it or nothing.

    Args:
        path: the file to replace or to make; its folder is made if it is missing.
        text: what the file will hold.
    """
    with replacing(path) as part:
        part.write_text(text, encoding="utf-8")


def write_synced(path: Path, data: bytes) -> None:
    """Write a new file and wait until it is on the disk; it must not be there before.

    Args:
        path: the file to make, in a folder that is there.
        data: what the file will hold.
    """
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, for example after a rename."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def remove(path: Path) -> None:
    """Remove a file, a link or a folder with all that is in it, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def sha256(data: bytes) -> str:
    """The SHA-256 checksum of some bytes, as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def file_checksum(path: Path, algorithm: str = "sha256") -> str:
    """The checksum of a file, read in pieces.

    Args:
        path: the file to read.
        algorithm: a name that hashlib knows, such as "sha256" or "md5".

    Returns:
        Hexadecimal digits.
    """
    fresh = partial(hashlib.new, algorithm, usedforsecurity=False)
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, fresh).hexdigest()


def write_tensors(path: Path, tensors: "Mapping[str, Tensor]", metadata: dict[str, str]) -> None:
    """Write a safetensors file, all of it or nothing.

    Args:
        path: the file to replace or to make; its folder is made if it is missing.
        tensors: the tensors by name.
        metadata: notes to keep beside them.
    """
    from safetensors.torch import save_file

    with replacing(path) as part:
        save_file({k: v.detach().contiguous() for k, v in tensors.items()}, part, metadata)


def read_tensors(path: Path) -> "tuple[dict[str, Tensor], dict[str, str]]":
    """Every tensor of a safetensors file and its notes. No code runs.

    Args:
        path: a file that `write_tensors` or another program wrote.

    Returns:
        The tensors by name, on the CPU, and the notes.

    Raises:
        AdvlabError: the file is not there, or damaged.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            names: Any = list(file.keys())
            return {name: file.get_tensor(name) for name in names}, file.metadata() or {}
    except (SafetensorError, OSError) as error:
        raise AdvlabError(
            f"{path} must be a whole safetensors file",
            str(error),
            "delete it, or restore it from a copy",
        ) from None
