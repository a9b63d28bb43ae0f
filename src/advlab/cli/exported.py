"""Programs in files: what torch.export, TorchScript and ONNX exporters write."""

import logging
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..core.errors import AdvlabError
from ..models.fixed_batch import FixedBatch
from ..models.sandboxed import Kind, SandboxedModel

DYNAMIC = (
    "export it with torch.export.export(model, (x,), dynamic_shapes=({0: torch.export.Dim('n')},)) "
    "to let it take any number"
)
SANDBOXED = (
    "{path} runs in a sandboxed process, where its layers cannot be certified; add --trust if you "
    "know who made it"
)
BLACK_BOX = "{path} gives scores without gradients: attacks that only ask for scores count"


class Program(nn.Module):
    """A program inside a plain module, which can be watched and put into eval mode."""

    def __init__(self, program: Callable[[Tensor], Tensor]):
        super().__init__()
        self.program = program

    def forward(self, x: Tensor) -> Tensor:
        return self.program(x)


def load_program(path: Path, kind: Kind, trust: bool) -> tuple[nn.Module, list[str]]:
    """The program of a file and what should be said about it.

    Args:
        path: the file.
        kind: what wrote it: torch.export, TorchScript, or ONNX.
        trust: run it in this process, where it can do whatever it likes, and certificates can read
            its layers; otherwise it runs in a sandbox. ONNX files always do: there is nothing to
            gain outside.

    Returns:
        the module, which takes any number of rows, and notes for the user.
    """
    if trust and kind != "onnx":
        program, size = _export(path) if kind == "export" else (_script(path), None)
        notes = []
    else:
        program = SandboxedModel(path, kind)
        size = program.rows
        notes = [SANDBOXED.format(path=path)] if kind != "onnx" else [BLACK_BOX.format(path=path)]
    if size is None:
        return program, notes
    notes.append(f"{path} takes exactly {size} rows at a time and is fed so; {DYNAMIC}")
    return FixedBatch(program, size), notes


def _export(path: Path) -> tuple[nn.Module, int | None]:
    log = logging.getLogger("torch.export")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        exported = torch.export.load(str(path))
    except (RuntimeError, ValueError, KeyError, AssertionError, zipfile.BadZipFile) as error:
        raise _unreadable(path, error) from None
    finally:
        log.setLevel(level)
    return exported.module(), _batch(exported)


def _script(path: Path) -> nn.Module:
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


def _unreadable(path: Path, error: Exception) -> AdvlabError:
    said = " ".join(str(error).split())
    return AdvlabError(f"{path} as torch wrote it", f"{type(error).__name__}: {said:.200}")
