"""Programs of strangers: right answers, and nothing that they try outside their sandbox works."""

import contextlib
import io
import json
import os
import pickle
import socket
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import evaluated_nets as nets
import numpy as np
import pytest
import torch

import advlab
from advlab.attacks import Square
from advlab.core import sandbox
from advlab.core.errors import AdvlabError
from advlab.models import SandboxedModel
from advlab.threats import Ball

pytestmark = pytest.mark.skipif(sandbox.missing() is not None, reason=str(sandbox.missing()))
X, Y = nets.blobs(10)


@pytest.fixture(scope="module")
def program(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("program") / "net.pt2"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = ({0: torch.export.Dim("n")},)
        torch.export.save(torch.export.export(nets.trained(), (X,), dynamic_shapes=rows), path)
    return path


TRIES = """
import json, os, socket, subprocess, sys, threading
from pathlib import Path
sys.path[:] = json.loads(sys.argv[4])
from advlab.core import sandbox
outside, scratch, port = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
sandbox.enter([Path(p) for p in (*sys.path, sys.base_prefix, "/usr/lib", "/lib")], scratch, 2**34)

def works(act):
    try:
        act()
        return True
    except (OSError, MemoryError):
        return False

def connect():
    with socket.create_connection(("127.0.0.1", port), 1): pass

def child():
    if os.fork() == 0: os._exit(0)

done = []
thread = threading.Thread(target=lambda: done.append(works(lambda: (outside / "t").touch())))
thread.start(); thread.join()
print(json.dumps({
    "write": works(lambda: (outside / "new").write_text("x")),
    "append": works(lambda: (outside / "mine.txt").open("a").write("x")),
    "truncate": works(lambda: os.truncate(outside / "mine.txt", 0)),
    "read": works(lambda: (outside / "mine.txt").read_text()),
    "remove": works(lambda: (outside / "mine.txt").unlink()),
    "rename": works(lambda: os.rename(outside / "mine.txt", scratch / "stolen")),
    "link": works(lambda: os.link(outside / "mine.txt", scratch / "linked")),
    "mode": works(lambda: os.chmod(outside / "mine.txt", 0o777)),
    "times": works(lambda: os.utime(outside / "mine.txt", (0, 0))),
    "passwords": works(lambda: Path("/etc/passwd").read_text()),
    "environment": works(lambda: Path(f"/proc/{os.getppid()}/environ").read_bytes()),
    "connect": works(connect),
    "socket": works(lambda: socket.socket(socket.AF_UNIX)),
    "program": works(lambda: subprocess.run(["true"])),
    "replace": works(lambda: os.execv("/bin/true", ["true"])),
    "fork": works(child),
    "signal": works(lambda: os.kill(os.getppid(), 0)),
    "thread": done[0],
    "memory": works(lambda: bytearray(2**35)),
    "scratch": works(lambda: (scratch / "own").write_text("x")),
}))
"""


def test_every_wall_stands_and_the_scratch_folder_can_be_used(tmp_path):
    outside, scratch = tmp_path / "outside", tmp_path / "scratch"
    outside.mkdir(), scratch.mkdir()
    (outside / "mine.txt").write_text("mine")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        places = json.dumps([place for place in sys.path if place])
        command = [sys.executable, "-I", "-c", TRIES, str(outside), str(scratch), port, places]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    worked = json.loads(ran.stdout)
    assert [name for name, did in worked.items() if did] == ["scratch"]
    assert [path.name for path in outside.iterdir()] == ["mine.txt"]
    assert (outside / "mine.txt").read_text() == "mine"


def test_the_same_tries_work_without_walls(tmp_path):
    """A test that cannot fail would pass above too."""
    outside, scratch = tmp_path / "outside", tmp_path / "scratch"
    outside.mkdir(), scratch.mkdir()
    (outside / "mine.txt").write_text("mine")
    free = TRIES.replace("sandbox.enter(", "(lambda *a: None)(")
    free = free.replace('"replace": works(lambda: os.execv("/bin/true", ["true"])),', "")
    free = free.replace('"memory": works(lambda: bytearray(2**35)),', "")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        places = json.dumps([place for place in sys.path if place])
        command = [sys.executable, "-I", "-c", free, str(outside), str(scratch), port, places]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    worked = json.loads(ran.stdout.splitlines()[-1])
    gone = {"rename", "link", "mode", "times"}  # the file was removed before
    assert {name for name, did in worked.items() if not did} <= gone


def test_outputs_and_gradients_are_those_of_the_network(program):
    model, own = SandboxedModel(program, "export"), nets.trained()
    torch.testing.assert_close(model(X), own(X))
    for weight in (torch.ones(len(X)), torch.arange(len(X)).float()):
        x, z = X.clone().requires_grad_(), X.clone().requires_grad_()
        kept = [model(x) for _ in range(20)]  # none is forgotten before its gradient was asked for
        (weight @ sum(kept)[:, 0].to(weight)).backward()
        (20 * weight @ own(z)[:, 0].to(weight)).backward()
        torch.testing.assert_close(x.grad, z.grad, rtol=1e-4, atol=1e-4)
    assert model(X[:0]).shape == own(X[:0]).shape


def test_a_sandboxed_model_is_evaluated_like_the_network_itself(program):
    ball = advlab.threats.Ball(norm="linf", radius=0.1)
    found, own = (
        advlab.evaluate(one, X, Y, ball, "fast", checks=False, certificates=())
        for one in (SandboxedModel(program, "export"), nets.trained())
    )
    assert found.robust_error == own.robust_error


class Bomb:
    """What unpickling would do in this process."""

    def __init__(self, target: Path):
        self.target = target

    def __reduce__(self):
        return (os.system, (f"touch {self.target}",))


class Writer:
    def __init__(self, target: Path):
        self.target = target

    def __reduce__(self):
        return (Path.write_text, (self.target, "written"))


def crafted(sound: Path, bad: Path, bomb: object, part: str) -> Path:
    """The program with one part that does harm when it is unpickled."""
    buffer = io.BytesIO()
    torch.save(bomb, buffer)
    with zipfile.ZipFile(sound) as source, zipfile.ZipFile(bad, "w") as target:
        for name in source.namelist():
            data = source.read(name)
            if part == "sample_inputs" and "/sample_inputs/" in name:
                data = buffer.getvalue()
            if part == "weights" and name.endswith("/weight_0"):
                data = buffer.getvalue()
            if part == "weights" and name.endswith("weights_config.json"):
                data = data.replace(b'"use_pickle": false', b'"use_pickle": 1', 1)
            if part == "opaque" and name.endswith("constants_config.json"):
                entry = {"path_name": "opaque_obj_0", "is_param": False, "use_pickle": False}
                data = json.dumps({"config": {"c": entry | {"tensor_meta": None}}}).encode()
            target.writestr(name, data)
        if part == "opaque":
            folder = source.namelist()[0].split("/")[0]
            target.writestr(f"{folder}/data/constants/opaque_obj_0", pickle.dumps(bomb))
    return bad


@pytest.mark.parametrize(
    ("part", "kind"), [("sample_inputs", Bomb), ("weights", Writer), ("opaque", Bomb)]
)
def test_code_in_a_program_does_nothing_outside(program, tmp_path, part, kind):
    mark = tmp_path / "exploded"
    bad = crafted(program, tmp_path / "bad.pt2", kind(mark), part)
    with contextlib.suppress(AdvlabError):
        SandboxedModel(bad, "export")(X)
    assert not mark.exists()
    if part != "opaque":
        # The same file does explode where it is trusted: the wall is what held it.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with contextlib.suppress(Exception):
                torch.export.load(str(bad))
        assert mark.exists()


def test_a_killed_process_is_one_line(program):
    model = SandboxedModel(program, "export")
    model._channel._process.kill()
    model._channel._process.wait()
    with pytest.raises(AdvlabError, match="its process ended") as caught:
        model(X)
    assert len(str(caught.value).splitlines()) == 1


def test_the_process_and_its_folder_go_with_the_model(program):
    model = SandboxedModel(program, "export")
    process, scratch = model._channel._process, Path(model._channel._scratch.name)
    assert scratch.is_dir()
    assert process.poll() is None
    del model
    assert process.poll() is not None
    assert not scratch.exists()


def test_an_onnx_file_is_a_black_box(tmp_path):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    weight = torch.randn(3, X.shape[1], generator=torch.Generator().manual_seed(0))
    helper, number = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)],
        "net",
        [helper.make_tensor_value_info("x", number, ["n", X.shape[1]])],
        [helper.make_tensor_value_info("y", number, ["n", 3])],
        [helper.make_tensor("w", number, weight.shape, weight.flatten().tolist())],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(made, tmp_path / "net.onnx")
    model = SandboxedModel(tmp_path / "net.onnx", "onnx")
    x = X.float().requires_grad_()
    torch.testing.assert_close(model(x), x.detach() @ weight.T)
    assert not model(x).requires_grad
    (tmp_path / "bad.onnx").write_bytes(b"nothing")
    with pytest.raises(AdvlabError, match="as torch wrote it"):
        SandboxedModel(tmp_path / "bad.onnx", "onnx")


def test_where_there_is_no_sandbox_trust_is_asked_for(program, monkeypatch):
    monkeypatch.setattr(sandbox, "missing", lambda: "no sandbox on this planet")
    with pytest.raises(AdvlabError, match=r"on this planet; .*--trust"):
        SandboxedModel(program, "export")


def test_an_onnx_file_is_attacked_by_its_path(tmp_path):
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    weights = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    helper, number = onnx.helper, onnx.TensorProto.FLOAT
    for rows, name in ((None, "net.onnx"), (5, "five.onnx")):
        graph = helper.make_graph(
            [helper.make_node("MatMul", ["x", "w"], ["z"])],
            "net",
            [helper.make_tensor_value_info("x", number, [rows, 4])],
            [helper.make_tensor_value_info("z", number, [rows, 3])],
            [onnx.numpy_helper.from_array(weights, "w")],
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)
        onnx.save(made, tmp_path / name)
        x = torch.rand(12, 4, generator=torch.Generator().manual_seed(0))
        y = (x @ torch.from_numpy(weights)).argmax(1)
        found = advlab.evaluate(
            str(tmp_path / name), x, y, Ball("linf", 0.2), Square(queries=40), checks=False
        )
        assert found.clean_error == 0
        assert found.robust_error > 0
    with pytest.raises(AdvlabError, match=r"an ONNX file; got .*gone\.onnx, which does not exist"):
        advlab.evaluate(tmp_path / "gone.onnx", x, y, Ball("linf", 0.2))
