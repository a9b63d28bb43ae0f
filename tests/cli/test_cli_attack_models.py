"""Every way to name a model gives the same outputs; pickles are refused."""

import pickle
import warnings
from pathlib import Path

import evaluated_nets as nets
import pytest
import torch
from safetensors.torch import save_file

import advlab
from advlab.cli.models import load_model
from advlab.core.errors import AdvlabError
from advlab.training import Checkpoint

X, Y = nets.blobs(10)


def outputs(source: object, architecture: str | None = None) -> torch.Tensor:
    model, _ = load_model(str(source), architecture)
    return model(X)


@pytest.fixture
def expected() -> torch.Tensor:
    return nets.trained()(X)


def exported(path: Path, dynamic: bool) -> Path:
    shapes = ({0: torch.export.Dim("n")},) if dynamic else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.export.export(nets.trained(), (X[:4],), dynamic_shapes=shapes)
        torch.export.save(program, path)
    return path


def test_importable_objects(expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("own_nets.py").write_text(
        "import evaluated_nets\nnet = evaluated_nets.trained()\n"
        "def scores(x):\n    return net(x)\n"
        "class box:\n    inner = net\n"
    )
    for name in ("evaluated_nets:trained", "own_nets:net", "own_nets:scores", "own_nets.py:net",
                 "own_nets:box.inner"):  # fmt: skip
        torch.testing.assert_close(outputs(name), expected)


def test_an_exported_program(expected, tmp_path):
    path = exported(tmp_path / "net.pt2", dynamic=True)
    (note,) = load_model(str(path))[1]
    assert "sandboxed" in note
    torch.testing.assert_close(outputs(path), expected)
    trusted, notes = load_model(str(path), trust=True)
    assert notes == []
    torch.testing.assert_close(trusted(X), expected)


def test_an_exported_program_of_a_fixed_batch_is_fed_so_and_says_so(expected, tmp_path):
    path = exported(tmp_path / "net.pt2", dynamic=False)
    model, (_, note) = load_model(str(path))
    assert "takes exactly 4 rows" in note
    assert "dynamic_shapes" in note
    torch.testing.assert_close(model(X), expected)
    x = X.clone().requires_grad_()
    (slope,) = torch.autograd.grad(model(x).sum(), x)
    (own,) = torch.autograd.grad(nets.trained()(x).sum(), x)
    torch.testing.assert_close(slope, own)


@pytest.mark.parametrize("kind", ["fixed", "script"])
def test_programs_can_be_evaluated(tmp_path, kind):
    path = tmp_path / "net.pt2"
    model, _ = load_model(str(exported(path, dynamic=False) if kind == "fixed" else script(path)))
    ball = advlab.threats.Ball(norm="linf", radius=0.1)
    x, y = nets.blobs(30)
    found, own = (
        advlab.evaluate(one, x, y, ball, "fast", checks=False, certificates=())
        for one in (model, nets.trained())
    )
    assert found.broken_by == own.broken_by
    assert found.members[0].forwards


def script(path: Path) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.jit.save(torch.jit.trace(nets.trained(), X), path.with_suffix(".pt"))
    return path.with_suffix(".pt")


def test_torchscript(expected, tmp_path):
    torch.testing.assert_close(outputs(script(tmp_path / "net")), expected)


def test_weights_of_our_checkpoints_and_of_others(expected, tmp_path):
    plain, ours = tmp_path / "plain.safetensors", tmp_path / "ours.safetensors"
    save_file(nets.trained().state_dict(), plain)
    net = nets.trained()
    advlab.fit(net, *nets.blobs(30), steps=2, lr=0.1, hooks=[Checkpoint(ours, every=2)])
    torch.testing.assert_close(outputs(plain, "evaluated_nets:bare"), expected)
    torch.testing.assert_close(outputs(ours, "evaluated_nets:bare"), net(X))
    with pytest.raises(AdvlabError, match="--architecture module:factory"):
        load_model(str(plain))
    with pytest.raises(AdvlabError, match=r"weights of .* that fit evaluated_nets:wide"):
        load_model(str(plain), "evaluated_nets:wide")


class Bomb:
    """What unpickling would do."""

    def __reduce__(self):
        return (Path.touch, (Path("exploded"),))


def test_pickles_are_refused_unread(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save(nets.trained(), "whole.pt")
    torch.save(Bomb(), "bomb.pth")
    Path("bomb.pkl").write_bytes(pickle.dumps(Bomb()))
    Path("old.pt").write_bytes(pickle.dumps(Bomb()))
    for name in ("whole.pt", "bomb.pth", "bomb.pkl", "old.pt"):
        with pytest.raises(AdvlabError, match=r"a pickle; .*safetensors\.torch\.save_file"):
            load_model(name)
    assert not Path("exploded").exists()


def test_a_plain_state_dict_is_read_and_nothing_else(expected, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save(nets.trained().state_dict(), "state.pt")
    torch.save({"state_dict": nets.trained().state_dict(), "epoch": 3}, "lightning.ckpt")
    for name in ("state.pt", "lightning.ckpt"):
        torch.testing.assert_close(outputs(name, "evaluated_nets:bare"), expected)
    torch.save({"weight": Bomb()}, "bomb.pt")
    torch.save([1, 2], "list.pt")
    for name in ("bomb.pt", "list.pt"):
        with pytest.raises(AdvlabError, match="a pickle can run any code"):
            load_model(name, "evaluated_nets:bare")
    assert not Path("exploded").exists()


def test_damaged_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("net.pt2").write_bytes(b"nothing")
    Path("net.txt").write_text("nothing")
    Path("net.safetensors").write_bytes(b"nothing")
    for name in ("net.pt2", "net.txt", "net.safetensors"):
        with pytest.raises(AdvlabError):
            load_model(name, "evaluated_nets:bare" if name.endswith("tensors") else None)
