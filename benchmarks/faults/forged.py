"""Files that strangers could send: none of them runs code, and each is refused in one line."""

import io
import os
import pickle
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from . import Fault

MARK = "exploded"


class Bomb:
    """What reading it as a pickle would do."""

    def __init__(self, command: str = f"touch {MARK}"):
        self.command = command

    def __reduce__(self):
        return (os.system, (self.command,))


def forge(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """(name, arguments of `advlab attack`) of each crafted file."""
    import torch

    sound = _program(folder / "sound.pt2")
    np.savez(folder / "data.npz", x=np.zeros((4, 6), np.float32), y=np.zeros(4, int))
    code = "from torch import nn\ndef net():\n    return nn.Linear(6, 2)\n"
    (folder / "arch.py").write_text(code)
    weights = ["--architecture", "arch:net"]
    torch.save(torch.nn.Linear(6, 2), folder / "whole.pt")
    torch.save({"weight": Bomb()}, folder / "state.pt")
    for name in ("bomb.pkl", "bomb.pt", "bomb.ckpt", "bomb.bin", "bomb.joblib"):
        (folder / name).write_bytes(pickle.dumps(Bomb()))
    yield "pickle as model", ["bomb.pkl", "data.npz"]
    yield "pickle as .pt", ["bomb.pt", "data.npz"]
    yield "pickle as .bin", ["bomb.bin", "data.npz"]
    yield "pickle as joblib", ["bomb.joblib", "data.npz"]
    yield "whole model by torch.save", ["whole.pt", "data.npz"]
    yield "state dict with a bomb", ["state.pt", "data.npz", *weights]
    yield "pickle as checkpoint", ["bomb.ckpt", "data.npz", *weights]
    for part in ("sample_inputs", "weights", "legacy"):
        _crafted(sound, folder / f"{part}.pt2", part)
        yield f".pt2 with code in {part}", [f"{part}.pt2", "data.npz"]
    (folder / "noise.pt2").write_bytes(os.urandom(500))
    yield "noise as .pt2", ["noise.pt2", "data.npz"]
    (folder / "noise.onnx").write_bytes(os.urandom(500))
    yield "noise as .onnx", ["noise.onnx", "data.npz"]
    (folder / "noise.safetensors").write_bytes(os.urandom(500))
    yield "noise as .safetensors", ["noise.safetensors", "data.npz", *weights]
    (folder / "long.safetensors").write_bytes((2**62).to_bytes(8, "little") + b"{}")
    yield "a safetensors header of 2^62 bytes", ["long.safetensors", "data.npz", *weights]
    np.savez(folder / "objects.npz", x=np.array([Bomb()], object), y=np.zeros(1, int))
    yield "objects in .npz", ["arch:net", "objects.npz"]
    (folder / "noise.npz").write_bytes(os.urandom(500))
    yield "noise as .npz", ["arch:net", "noise.npz"]
    _bomb_npz(folder / "bomb.npz")
    yield "an .npz that unpacks to 6 GB", ["arch:net", "bomb.npz"]
    (folder / "data.pkl").write_bytes(pickle.dumps(Bomb()))
    yield "pickle as data", ["arch:net", "data.pkl"]
    (folder / "text.npz").write_text("not an archive")
    yield "text as .npz", ["arch:net", "text.npz"]
    (folder / "link.npz").symlink_to("link.npz")
    yield "a link to itself", ["arch:net", "link.npz"]


def crafted_files() -> Fault:
    """Give each to `advlab attack`: exit code 2, one line, and nothing happened."""
    trials = refused = harmed = 0
    with tempfile.TemporaryDirectory() as root:
        folder = Path(root)
        for name, arguments in forge(folder):
            trials += 1
            command = [sys.executable, "-m", "advlab", "attack", *arguments, "--eps", "0.1"]
            ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
            errors = [line for line in ran.stderr.splitlines() if not line.startswith("note:")]
            told = ran.returncode == 2 and len(errors) == 1
            exploded = (folder / MARK).exists()
            (folder / MARK).unlink(missing_ok=True)
            refused, harmed = refused + told, harmed + exploded
            if exploded or not told:
                print(f"  {name}: exit {ran.returncode}, {ran.stderr.strip()[-300:]}")
    return Fault("crafted model and data files", trials, refused, trials - harmed, harmed)


def _program(path: Path) -> Path:
    import torch

    rows = ({0: torch.export.Dim("n")},)
    program = torch.export.export(torch.nn.Linear(6, 2), (torch.zeros(3, 6),), dynamic_shapes=rows)
    torch.export.save(program, path)
    return path


def _crafted(sound: Path, bad: Path, part: str) -> None:
    import torch

    buffer = io.BytesIO()
    torch.save(Bomb(f"touch {bad.parent / MARK}"), buffer)
    with zipfile.ZipFile(sound) as source, zipfile.ZipFile(bad, "w") as target:
        if part == "legacy":
            target.writestr("version", "8.7")
            target.writestr("serialized_exported_program.json", b"{}")
            for name in ("state_dict", "constants", "example_inputs"):
                target.writestr(f"serialized_{name}.pt", buffer.getvalue())
            return
        for name in source.namelist():
            data = source.read(name)
            if part == "sample_inputs" and "/sample_inputs/" in name:
                data = buffer.getvalue()
            if part == "weights" and name.endswith("/weight_0"):
                data = buffer.getvalue()
            if part == "weights" and name.endswith("weights_config.json"):
                data = data.replace(b'"use_pickle": false', b'"use_pickle": 1', 1)
            target.writestr(name, data)


def _bomb_npz(path: Path) -> None:
    """About 6 MB of zeros that claim to be 6 GB."""
    header = io.BytesIO()
    shape = (1_500_000_000,)
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f4", "fortran_order": False, "shape": shape}
    )
    block = bytes(2**24)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("x.npy", "y.npy"):
            with archive.open(name, "w", force_zip64=True) as file:
                file.write(header.getvalue())
                for _ in range(360 if name == "x.npy" else 1):
                    file.write(block)
