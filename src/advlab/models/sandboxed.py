"""A network from a file that nobody vouches for, in a process of its own that can do no harm."""

import importlib.util
import itertools
import json
import math
import os
import struct
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from ..core import sandbox
from ..core.errors import AdvlabError
from ..core.files import sha256

MEMORY = 16 * 2**30
"""Address space of the process, in bytes; torch alone maps about 3 GiB."""
_WORKER = Path(__file__).with_name("_sandboxed_worker.py")
_HEADER = struct.Struct("<QQ")
_DTYPES = ("float16", "bfloat16", "float32", "float64", "int64", "int32", "uint8", "bool")
_LONGEST = 2**33


Kind = Literal["export", "script", "onnx"]


class SandboxedModel(nn.Module):
    """Outputs and input gradients of a stranger's program; its code never runs in this process.

    The file is sent to a new process that first gives up the network, all writing outside a scratch
    folder that is deleted afterwards, new programs and signals (`core.sandbox`), and then reads it.
    Tensors come back as plain numbers and are checked. The program's layers cannot be seen, so
    certificates refuse it; attacks work, gradients included.

    Args:
        path: the file.
        kind: "export" for what torch.export.save wrote (.pt2), "script" for TorchScript, "onnx" for
            an ONNX file, which gives scores and no gradients.
        memory: address space of the process in bytes.

    Attributes:
        rows: the number of rows the program takes at a time, None if it takes any.

    Example:
        from advlab.models import SandboxedModel
        model = SandboxedModel("stranger.pt2", "export")
        scores = model(x)
    """

    def __init__(self, path: Path | str, kind: Kind, memory: int = MEMORY):
        super().__init__()
        why = sandbox.missing()
        if why is not None:
            raise AdvlabError(
                f"a sandbox to run {path} in",
                why,
                "a file that you trust can be run without one: add --trust",
            )
        if kind == "onnx" and importlib.util.find_spec("onnxruntime") is None:
            raise AdvlabError(
                "onnxruntime, to run an ONNX file",
                "it is not installed",
                'pip install "advlab[onnx]"',
            )
        self.path, self.kind = Path(path), kind
        content = self.path.read_bytes()
        self._checksum = sha256(content)
        self._channel = _Channel(kind, memory)
        try:
            answer, _ = self._channel.ask({"do": "load"}, content)
        except AdvlabError as error:
            self._channel.close()
            raise AdvlabError(f"{path} as torch wrote it", error) from None
        rows = answer.get("rows")
        self.rows = rows if isinstance(rows, int) and rows > 0 else None

    def forward(self, x: Tensor) -> Tensor:
        # A program without gradients gives answers that ask for none: a black box.
        return _Call.apply(x.detach() if self.kind == "onnx" else x, self._channel)

    def __fingerprint__(self) -> object:
        return self.kind, self._checksum  # its place and its process do not count

    def __deepcopy__(self, memo: dict) -> "SandboxedModel":
        return self  # one process serves all copies: nothing in it changes


class _Call(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, channel: "_Channel") -> Tensor:
        ctx.channel, ctx.key = channel, None
        if ctx.needs_input_grad[0]:
            ctx.key = next(channel.keys)
            # The other process keeps its graph for as long as this one could ask for a gradient.
            weakref.finalize(ctx, channel.dropped.append, ctx.key)
        ctx.place = x.shape, x.dtype, x.device
        outputs = channel.tensor({"do": "outputs", "keep": ctx.key}, x)
        if outputs.ndim == 0 or len(outputs) != len(x):
            raise AdvlabError(f"one answer per row, {len(x)}", f"shape {tuple(outputs.shape)}")
        return outputs.to(x.device)

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, weight: Tensor) -> tuple[Tensor, None]:
        shape, dtype, device = ctx.place
        found = ctx.channel.tensor({"do": "gradient", "kept": ctx.key}, weight)
        if found.shape != shape:
            raise AdvlabError(f"a gradient of shape {tuple(shape)}", tuple(found.shape))
        return found.to(device, dtype), None


class _Channel:
    """Length-prefixed JSON and raw bytes over two pipes; nothing that comes back is trusted."""

    def __init__(self, kind: str, memory: int):
        self.keys = itertools.count()
        self.dropped: list[int] = []
        self._scratch = tempfile.TemporaryDirectory(prefix="advlab-sandbox-")
        theirs_in, ours_out = os.pipe()
        ours_in, theirs_out = os.pipe()
        places = [str(Path(place).resolve()) for place in sys.path if place]
        command = [sys.executable, "-I", str(_WORKER), str(theirs_in), str(theirs_out)]
        command += [self._scratch.name, str(memory), kind, *places]
        try:
            self._process = subprocess.Popen(
                command,
                pass_fds=(theirs_in, theirs_out),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=self._scratch.name,
                env={"PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8"},
            )
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        self._in, self._out = os.fdopen(ours_in, "rb"), os.fdopen(ours_out, "wb")
        self.close = weakref.finalize(self, _end, self._process, self._in, self._out, self._scratch)

    def tensor(self, header: dict, x: Tensor) -> Tensor:
        x = x.detach().cpu().contiguous()
        kind = str(x.dtype).removeprefix("torch.")
        if kind not in _DTYPES:
            raise AdvlabError(f"a type among {', '.join(_DTYPES)}", kind)
        about = header | {"dtype": kind, "shape": list(x.shape)}
        answer, body = self.ask(about, x.flatten().view(torch.uint8).numpy().tobytes())
        return _unpacked(answer, body)

    def ask(self, header: dict, body: bytes) -> tuple[dict, bytes]:
        drop, self.dropped[:] = list(self.dropped), []
        text = json.dumps(header | {"drop": drop}).encode()
        try:
            self._out.write(_HEADER.pack(len(text), len(body)) + text)
            self._out.write(body)
            self._out.flush()
            sizes = self._in.read(_HEADER.size)
            if len(sizes) < _HEADER.size:
                raise BrokenPipeError
            words, rest = _HEADER.unpack(sizes)
            if words > 2**20 or rest > _LONGEST:
                raise AdvlabError("an answer of a size that fits", f"{words} and {rest} bytes")
            answer, body = json.loads(self._in.read(words)), self._in.read(rest)
        except (BrokenPipeError, ValueError, UnicodeDecodeError):
            code = self._process.poll()
            raise AdvlabError(
                "a program that answers", f"its process ended (exit {code})"
            ) from None
        if not isinstance(answer, dict) or len(body) < rest:
            raise AdvlabError("a whole answer from the sandboxed process", "a broken one")
        if "error" in answer:
            raise AdvlabError(str(answer["error"])[:600])
        return answer, body


def _unpacked(answer: dict, body: bytes) -> Tensor:
    shape, kind = answer.get("shape"), answer.get("dtype")
    if (
        kind not in _DTYPES
        or not isinstance(shape, list)
        or not all(type(n) is int and n >= 0 for n in shape)
    ):
        raise AdvlabError("a tensor from the sandboxed process", f"{str(answer)[:100]}")
    dtype = getattr(torch, kind)
    if len(body) != math.prod(shape) * dtype.itemsize:
        raise AdvlabError(f"{shape} numbers of type {kind}", f"{len(body)} bytes")
    if not body:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(bytearray(body), dtype=dtype).reshape(shape)


def _end(process: subprocess.Popen, *files: Any) -> None:
    process.kill()
    process.wait()
    for file in files[:-1]:
        try:
            file.close()
        except OSError:
            continue  # the other end is gone
    files[-1].cleanup()
