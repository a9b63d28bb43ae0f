"""Files that are whole or not there: atomic writes of text, bytes and tensors, and checksums.

torch is imported by the functions for tensors only, so that everything else stays light.
"""

import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from .errors import AdvlabError

if TYPE_CHECKING:
    from torch import Tensor

_SEAL = "sha256"
_TYPES = {
    "F64": "torch.float64", "F32": "torch.float32", "F16": "torch.float16",
    "BF16": "torch.bfloat16", "I64": "torch.int64", "I32": "torch.int32", "I16": "torch.int16",
    "I8": "torch.int8", "U8": "torch.uint8", "BOOL": "torch.bool",
}  # fmt: skip


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A new name beside `path` to write to, which takes the place of `path` when the block ends.

    Readers see the old file or the whole new one. The folder is made if it is missing. If the block
    raises, `path` is left as it was and nothing is left behind.

    Args:
        path: the file to replace or to make.

    Example:
        from pathlib import Path
        from advlab.core.files import replacing
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


def check_writable(path: Path) -> None:
    """Find out whether a file could be made or replaced, and leave everything as it is.

    Args:
        path: the file; its folder is made if it is missing.

    Raises:
        OSError: it could not.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, "it is a folder", str(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=path.parent):
        pass


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
    """Write a safetensors file, all of it or nothing, with a checksum over all that it holds.

    Args:
        path: the file to replace or to make; its folder is made if it is missing.
        tensors: the tensors by name; several may share their memory.
        metadata: notes to keep beside them.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    whole, seen = {}, set()
    for name, value in tensors.items():
        plain = value.detach().cpu().contiguous()
        place = plain.untyped_storage().data_ptr()
        whole[name] = plain.clone() if place in seen else plain
        seen.add(place)
    with replacing(path) as part:
        try:
            save_file(whole, part, {**metadata, _SEAL: _seal(whole, metadata)})
        except SafetensorError as error:  # of a full disk, for one
            raise OSError(str(error)) from None
        _sort_notes(part)


def _sort_notes(path: Path) -> None:
    """Put the notes of a safetensors file in order: they are written in a random one, and the same
    tensors and notes should be the same bytes."""
    with path.open("r+b") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
        text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        if len(text) <= length:  # spaces at the end are part of the format
            file.seek(8)
            file.write(text.ljust(length))


def read_tensors(path: Path, sealed: bool = False) -> "tuple[dict[str, Tensor], dict[str, str]]":
    """Every tensor of a safetensors file and its notes. No code runs.

    Args:
        path: a file that `write_tensors` or another program wrote.
        sealed: whether to refuse a file without a checksum. One that is there is always checked.

    Returns:
        The tensors by name, on the CPU, and the notes.

    Raises:
        AdvlabError: the file is not there, or damaged.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            names: Any = list(file.keys())
            tensors = {name: file.get_tensor(name) for name in names}
            notes = dict(file.metadata() or {})
    except (SafetensorError, OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
        raise _damaged(path, " ".join(str(error).split())) from None
    seal = notes.pop(_SEAL, None)
    if seal is None and sealed:
        raise _damaged(path, "a file without its checksum")
    if seal is not None and seal != _seal(tensors, notes):
        raise _damaged(path, "a file that does not match its checksum")
    return tensors, notes


def check_sealed(path: Path) -> None:
    """Compare a file that `write_tensors` wrote with its checksum, without torch.

    Args:
        path: the file.

    Raises:
        ValueError: it is damaged, or has no checksum.
    """
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    if start > len(data):
        raise ValueError("its header is not whole")
    header = json.loads(data[8:start])
    notes = header.pop("__metadata__", {})
    seal = notes.pop(_SEAL, None)
    found = hashlib.sha256(repr(sorted(notes.items())).encode())
    end = 0
    for about in header.values():  # one after the other, those without numbers too
        if about["data_offsets"][0] != end:
            raise ValueError("not what was written")
        end = about["data_offsets"][1]
    for name, about in sorted(header.items()):
        first, last = about["data_offsets"]
        found.update(f"{name!r} {_TYPES[about['dtype']]} {tuple(about['shape'])}".encode())
        found.update(data[start + first : start + last])
    if seal != found.hexdigest() or start + end != len(data):
        raise ValueError("not what was written")


_HEAD = 1 << 22


def is_ours(path: Path) -> bool:
    """Whether `write_tensors` wrote a file, as far as its first bytes tell, damaged or not.

    It has two marks, so that a flipped bit leaves one of them.

    Args:
        path: a safetensors file.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD)
    return f'"{_SEAL}"'.encode() in head or b'"advlab"' in head


def _damaged(path: Path, came: str) -> AdvlabError:
    advice = "delete it, or restore it from a copy"
    return AdvlabError(f"{path} must be a whole safetensors file", came, advice)


def _seal(tensors: "Mapping[str, Tensor]", notes: Mapping[str, str]) -> str:
    """A checksum over names, types, shapes, numbers and notes."""
    import torch

    found = hashlib.sha256(repr(sorted(notes.items())).encode())
    for name, value in sorted(tensors.items()):
        found.update(f"{name!r} {value.dtype} {tuple(value.shape)}".encode())
        found.update(value.cpu().flatten().view(torch.uint8).numpy().data)
    return found.hexdigest()
