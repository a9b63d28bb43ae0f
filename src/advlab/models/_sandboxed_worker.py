"""The other end of `SandboxedModel`: a process that shuts itself in, loads one file and answers.

Run as a script: `python -I _sandboxed_worker.py READ WRITE SCRATCH MEMORY KIND PATH...`, where READ
and WRITE are file descriptors and PATH... is where Python finds its modules. Nothing heavy is
imported before the walls stand: they do not hold for threads that run already.
"""

import io
import json
import os
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_HEADER = struct.Struct("<QQ")


def main() -> None:
    read, write, scratch, memory, kind, *places = sys.argv[1:]
    sys.path[:] = places
    os.environ.update(HOME=scratch, TMPDIR=scratch, XDG_CACHE_HOME=scratch, OMP_NUM_THREADS="1")
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = scratch
    os.chdir(scratch)
    channel = os.fdopen(int(read), "rb"), os.fdopen(int(write), "wb")
    from advlab.core import sandbox

    system = ("/usr/lib", "/lib", "/lib64", "/usr/local/lib", "/usr/share/zoneinfo", "/proc/self")
    devices = ("/dev/null", "/dev/urandom", "/proc/cpuinfo", "/proc/meminfo", "/sys/devices")
    own = (sys.prefix, sys.base_prefix, sys.exec_prefix, "/etc/ld.so.cache", "/etc/localtime")
    readable = [Path(place) for place in (*places, *system, *devices, *own)]
    try:
        sandbox.enter(readable, Path(scratch), int(memory))
    except OSError as error:
        send(channel, {"error": f"no sandbox: {error}"})
        return
    Server(channel, kind).serve()


def receive(channel) -> tuple[dict, bytes]:
    header, body = _HEADER.unpack(_exactly(channel[0], _HEADER.size))
    return json.loads(_exactly(channel[0], header)), _exactly(channel[0], body)


def send(channel, header: dict, body: bytes = b"") -> None:
    text = json.dumps(header).encode()
    channel[1].write(_HEADER.pack(len(text), len(body)) + text + body)
    channel[1].flush()


def _exactly(stream, size: int) -> bytes:
    data = stream.read(size)
    if len(data) < size:
        sys.exit(0)  # the parent is gone
    return data


class Server:
    """Answers "load", "outputs" and "gradient", one at a time."""

    def __init__(self, channel, kind: str):
        self.channel, self.kind = channel, kind
        self.model: Callable[[Any], Any] = lambda x: x
        self.graphs = {}

    def serve(self) -> None:
        while True:
            header, body = receive(self.channel)
            for key in header["drop"]:
                self.graphs.pop(key, None)
            try:
                answer, numbers = getattr(self, "on_" + header["do"])(header, body)
            except BaseException as error:
                words = " ".join(str(error).split())[:500]
                answer, numbers = {"error": f"{type(error).__name__}: {words}"}, b""
            send(self.channel, answer, numbers)

    def on_load(self, header: dict, body: bytes) -> tuple[dict, bytes]:
        import logging
        import warnings

        import torch

        warnings.simplefilter("ignore")
        logging.getLogger("torch.export").setLevel(logging.CRITICAL)
        size = None
        if self.kind == "onnx":
            self.model, size = _onnx(body)
        elif self.kind == "export":
            exported = torch.export.load(io.BytesIO(body))
            names = exported.graph_signature.user_inputs
            inputs = [n for n in exported.graph.nodes if n.op == "placeholder" and n.name in names]
            if len(inputs) != 1:
                raise ValueError(f"a program of one input is needed, this has {len(inputs)}")
            rows = inputs[0].meta["val"].shape[0]
            size = rows if isinstance(rows, int) else None
            self.model = exported.module()
        else:
            self.model = torch.jit.load(io.BytesIO(body), map_location="cpu").eval()
        return {"rows": size}, b""

    def on_outputs(self, header: dict, body: bytes) -> tuple[dict, bytes]:
        import torch

        x = _tensor(header, body)
        if header["keep"] is None:
            with torch.no_grad():
                return _packed(self.model(x))
        leaf = x.requires_grad_()
        outputs = self.model(leaf)
        self.graphs[header["keep"]] = leaf, outputs
        return _packed(outputs.detach())

    def on_gradient(self, header: dict, body: bytes) -> tuple[dict, bytes]:
        import torch

        leaf, outputs = self.graphs[header["kept"]]
        if not outputs.requires_grad:
            return _packed(torch.zeros_like(leaf))
        weight = _tensor(header, body)
        found = torch.autograd.grad(
            outputs, leaf, weight, retain_graph=True, materialize_grads=True
        )[0]
        return _packed(found)


def _onnx(body: bytes):
    """An ONNX program as a function of tensors, and the rows it asks for (None: any)."""
    import onnxruntime
    import torch

    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = settings.inter_op_num_threads = 1
    settings.log_severity_level = 4
    session = onnxruntime.InferenceSession(body, settings, providers=["CPUExecutionProvider"])
    inputs, outputs = session.get_inputs(), session.get_outputs()
    if len(inputs) != 1:
        raise ValueError(f"a program of one input is needed, this has {len(inputs)}")
    kinds = {"tensor(float)": torch.float32, "tensor(double)": torch.float64}
    if inputs[0].type not in kinds:
        raise ValueError(f"an input of floating numbers is needed, this is {inputs[0].type}")
    rows = inputs[0].shape[0] if inputs[0].shape else None

    def scores(x):
        x = x.detach().to(kinds[inputs[0].type])
        return torch.from_numpy(session.run([outputs[0].name], {inputs[0].name: x.numpy()})[0])

    return scores, rows if isinstance(rows, int) else None


def _tensor(header: dict, body: bytes):
    import torch

    kind = getattr(torch, header["dtype"])
    if not body:
        return torch.empty(header["shape"], dtype=kind)
    return torch.frombuffer(bytearray(body), dtype=kind).reshape(header["shape"])


def _packed(tensor) -> tuple[dict, bytes]:
    import torch

    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"one tensor of outputs is needed, got {type(tensor).__name__}")
    tensor = tensor.detach().cpu().contiguous()
    header = {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape)}
    return header, tensor.flatten().view(torch.uint8).numpy().tobytes()


if __name__ == "__main__":
    main()
