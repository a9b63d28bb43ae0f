"""Programs in files: what torch.export and TorchScript write."""

import io
import json
import logging
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..core.errors import AdvlabError

CHECKED = (2, 13)
"""The version of torch whose reader of .pt2 files `_check_archive` knows."""

DYNAMIC = (
    "export it with torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim('n')},)) "
    "to let it take any number"
)


class FixedBatch(nn.Module):
    """A program that takes exactly `size` rows at a time, as one that takes any number.

    Rows are cut in pieces of that size and the last is filled up with copies, whose answers are
    dropped.
    """

    def __init__(self, program: nn.Module, size: int):
        super().__init__()
        self.program, self.size = program, size

    def forward(self, x: Tensor) -> Tensor:
        missing = -len(x) % self.size
        filled = torch.cat([x, x[:1].expand(missing, *x.shape[1:])]) if missing else x
        return torch.cat([self.program(part) for part in filled.split(self.size)])[: len(x)]


class Program(nn.Module):
    """A program inside a plain module, which can be watched and put into eval mode."""

    def __init__(self, program: Callable[[Tensor], Tensor]):
        super().__init__()
        self.program = program

    def forward(self, x: Tensor) -> Tensor:
        return self.program(x)


def from_export(path: Path) -> tuple[nn.Module, list[str]]:
    """The program of a .pt2 file; one with a fixed number of rows is fed just so many."""
    _check_archive(path)
    log = logging.getLogger("torch.export")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        exported = torch.export.load(str(path))
    except (RuntimeError, ValueError, KeyError, AssertionError, zipfile.BadZipFile) as error:
        raise _unreadable(path, error) from None
    finally:
        log.setLevel(level)
    size = _batch(exported)
    program = exported.module()
    if size is None:
        return program, []
    note = f"{path} takes exactly {size} rows at a time and is fed so; {DYNAMIC}"
    return FixedBatch(program, size), [note]


def from_script(path: Path) -> nn.Module:
    """The module of a TorchScript file, in eval mode."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            return Program(torch.jit.load(str(path), map_location="cpu").eval())
        except (RuntimeError, ValueError) as error:
            raise _unreadable(path, error) from None


def _batch(exported: Any) -> int | None:
    """The number of rows that the program asks for, None if it takes any."""
    names = exported.graph_signature.user_inputs
    inputs = [n for n in exported.graph.nodes if n.op == "placeholder" and n.name in names]
    if len(inputs) != 1:
        raise AdvlabError("a program of one input", f"one of {len(inputs)} inputs")
    rows = inputs[0].meta["val"].shape[0]
    return rows if isinstance(rows, int) else None


def _check_archive(path: Path) -> None:
    """Refuse archives of which a part could only be had by unpickling freely.

    torch.export.load falls back on that for odd weights, custom objects, sample inputs, and for all
    parts of the format before torch 2.8.
    """
    if _release() < CHECKED:
        raise AdvlabError(
            f"torch {'.'.join(map(str, CHECKED))} or newer to read .pt2 files",
            torch.__version__,
            "older versions unpickle parts of them; use a .safetensors file with --architecture",
        )
    try:
        with zipfile.ZipFile(path) as archive:
            names = [name.lower() for name in archive.namelist()]
            if len(set(names)) < len(names):  # readers differ in which one they take
                raise _pickle_inside(path, "one of two files of the same name")
            old = [name for name in names if name == "version" or name.startswith("serialized_")]
            if old:
                raise _pickle_inside(path, f"{old[0]}, in the format before torch 2.8")
            for name in archive.namelist():
                data = archive.read(name)
                if name.lower().endswith("_config.json") and _pickled(json.loads(data)):
                    raise _pickle_inside(path, name)
                if "/sample_inputs/" in name.lower() and data:
                    _check_plain(path, name, data)
    except (zipfile.BadZipFile, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise _unreadable(path, error) from None


def _release() -> tuple[int, int]:
    """The version of torch, such as (2, 13)."""
    major, minor = torch.__version__.split(".")[:2]
    return int(major), int(minor)


def _pickled(config: Any) -> bool:
    if isinstance(config, dict):
        return config.get("use_pickle") is True or any(map(_pickled, config.values()))
    return isinstance(config, list) and any(map(_pickled, config))


def _check_plain(path: Path, name: str, data: bytes) -> None:
    try:
        torch.load(io.BytesIO(data), weights_only=True)  # knows tensors and containers, no code
    except (RuntimeError, ValueError, EOFError, TypeError, AttributeError) as error:
        raise _pickle_inside(path, name) from error
    except Exception as error:
        if type(error).__name__ != "UnpicklingError":
            raise
        raise _pickle_inside(path, name) from error


def _pickle_inside(path: Path, name: str) -> AdvlabError:
    return AdvlabError(
        "a .pt2 file of plain tensors",
        f"{path} with a pickle in {name}",
        "a pickle can run any code when it is read; export the model again from plain tensors",
    )


def _unreadable(path: Path, error: Exception) -> AdvlabError:
    said = " ".join(str(error).split())
    return AdvlabError(f"{path} as torch wrote it", f"{type(error).__name__}: {said:.200}")
