"""Model folders: what is loaded is what was saved, no code of the folder runs, damage is named."""

import json
import shutil

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

import advlab
from advlab.cli.models import load_model as load_for_cli
from advlab.core.errors import AdvlabError
from advlab.core.files import file_checksum, write_tensors
from advlab.core.randomness import generator
from advlab.core.seal import seal, unseal
from advlab.models import NETWORKS, NetworkDescription, Normalised, read_description, save_model

SMALL = {
    "lenet5": {},
    "small_cnn": {"width": 2, "hidden": 3, "activation": "relu_softplus"},
    "resnet9": {"width": 2},
    "alexnet": {"width": 2},
    "preact_resnet14": {"width": 2},
    "preact_resnet18": {"width": 2},
    "wide_resnet": {"depth": 10, "widen": 2, "width": 2},
}


def about(name="small_cnn", **more):
    own = {"channels": 1, "side": 28, "classes": 3, "mean": (0.5,), "std": (0.25,), **more}
    return NetworkDescription(network=name, **{"settings": SMALL.get(name, {}), **own})


def images():
    return torch.rand(3, 1, 28, 28, generator=generator("images"))


class Own(nn.Module):
    """A network of a user's own."""

    def __init__(self, width: int = 4):
        super().__init__()
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(784, width), nn.Linear(width, 3))

    def forward(self, x):
        return self.layers(x)


@pytest.mark.parametrize("name", SMALL)
def test_what_is_loaded_is_what_was_saved(name, tmp_path):
    net = about(name).build(rng=0)
    net(images())  # BatchNorm has seen something
    names = ("a", "b", "c")
    save_model(tmp_path / "run", net, about(name, class_names=names), {"epochs": 2})
    again = advlab.load(tmp_path / "run")
    assert not again.training
    assert torch.equal(again(images()), net.eval()(images()))
    assert all(weight.requires_grad for weight in again.parameters())
    told = read_description(tmp_path / "run")
    assert told.network.class_names == names
    assert told.notes == {"epochs": 2}
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "model.json",
        "model.safetensors",
    ]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_types_are_kept(dtype, tmp_path):
    net = about().build(rng=0).to(dtype)
    save_model(tmp_path, net, about())
    assert {weight.dtype for weight in advlab.load(tmp_path).state_dict().values()} == {dtype}


def test_the_command_line_takes_a_folder(tmp_path):
    net = about().build(rng=0)
    save_model(tmp_path, net, about())
    model, notes = load_for_cli(str(tmp_path))
    assert notes == []
    assert torch.equal(model(images()), net(images()))


def test_a_network_of_the_users_own_is_loaded_with_its_class_only(tmp_path):
    with torch.random.fork_rng():
        net = Normalised(Own(), (0.5,), (0.25,))
    save_model(tmp_path, net, about("somewhere.nets:Own"))
    with pytest.raises(AdvlabError, match=r"somewhere\.nets:Own, which is not one of advlab's own"):
        advlab.load(tmp_path)
    with torch.random.fork_rng():
        again = advlab.load(tmp_path, network=Own)
        assert torch.equal(again(images()), net(images()))
        with pytest.raises(AdvlabError, match=r"layers.1.weight \(4, 784\) in place of \(5, 784\)"):
            advlab.load(tmp_path, network=lambda: Own(5))
    with pytest.raises(AdvlabError, match="function without arguments"):
        advlab.load(tmp_path, network=nn.Linear)
    with pytest.raises(AdvlabError, match=r"torch\.nn\.Module from network"):
        advlab.load(tmp_path, network=lambda: 3)


def test_the_folder_cannot_have_anything_imported(tmp_path, monkeypatch):
    net = about().build(rng=0)
    save_model(tmp_path / "m", net, about())
    marker = tmp_path / "ran"
    (tmp_path / "evil.py").write_text(f"open({str(marker)!r}, 'w')\ndef Net(): pass\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("evil:Net", "evil.Net", "evil.py:Net", "evil"):
        edited(tmp_path / "m", lambda found, name=name: found["network"].update(network=name))
        with pytest.raises(AdvlabError):
            advlab.load(tmp_path / "m")
    assert not marker.exists()


def test_an_installed_network_is_not_imported_for_a_folder(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(type(NETWORKS), "__missing__", lambda self, name: asked.append(name))
    net = about().build(rng=0)
    save_model(tmp_path, net, about())
    edited(tmp_path, lambda found: found["network"].update(network="theirs"))
    with pytest.raises(AdvlabError, match="with a network among"):
        advlab.load(tmp_path)
    assert asked == []


def edited(folder, change):
    """A description that somebody changed and sealed anew."""
    file = folder / "model.json"
    found = json.loads(unseal(file.read_bytes()))
    change(found)
    file.write_text(seal(json.dumps(found)))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "m"
    return save_model(folder, about().build(rng=0), about())


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_every_flipped_byte_and_every_truncation_is_noticed(saved, tmp_path, data):
    folder = tmp_path / "copy"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(saved, folder)
    file = folder / data.draw(st.sampled_from(["model.json", "model.safetensors"]))
    body = bytearray(file.read_bytes())
    place = data.draw(st.integers(0, len(body) - 1))
    if data.draw(st.booleans()):
        body[place] ^= data.draw(st.integers(1, 255))
    else:
        del body[place:]
    file.write_bytes(body)
    with pytest.raises(AdvlabError) as refused:
        advlab.load(folder)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda d: d.update(format=2), "format 2, where this version reads 1"),
        (lambda d: d.update(more=1), "more"),
        (lambda d: d["network"].update(more=1), "more: unknown setting"),
        (lambda d: d["network"].update(channels="1"), "channels: "),
        (lambda d: d["network"].update(channels=1.0), "channels: "),
        (lambda d: d["network"].update(settings={"width": 3}), "of other shape"),
        (lambda d: d["network"].update(settings={"wdth": 3}), "did you mean width"),
        (lambda d: d["network"].update(settings={"width": [3]}), "width as a number"),
        (lambda d: d["network"].update(network="lenet5", settings={}), "weights of lenet5"),
        (lambda d: d["network"].update(classes=4), r"\(3, 3\) in place of \(4, 3\)"),
        (lambda d: d["network"].update(class_names=["a"]), "names of 3 classes"),
        (lambda d: d["network"].update(mean=[0.4]), r"mean \(0.4,\)"),
        (lambda d: d["network"].update(mean=None, std=None), "unknown"),
        (lambda d: d.update(dtype="float64"), "weights of float64"),
        (lambda d: d.update(sha256="0" * 64), "edited file"),
        (lambda d: d.update(sha256="0"), "sha256"),
        (lambda d: d["network"].update(side=10**12), "small_cnn"),
    ],
)  # fmt: skip
def test_another_description_is_refused(saved, tmp_path, change, says):
    shutil.copytree(saved, tmp_path / "m")
    edited(tmp_path / "m", change)
    with pytest.raises(AdvlabError, match=says) as refused:
        advlab.load(tmp_path / "m")
    assert "\n" not in str(refused.value)


def test_missing_files_and_other_weights_are_refused(saved, tmp_path):
    with pytest.raises(AdvlabError, match=r"model\.json"):
        advlab.load(tmp_path)
    shutil.copytree(saved, tmp_path / "m")
    weights = tmp_path / "m" / "model.safetensors"
    weights.unlink()
    with pytest.raises(AdvlabError, match="without it"):
        advlab.load(tmp_path / "m")
    net = about().build(rng=1)
    write_tensors(weights, net.state_dict(), {})
    with pytest.raises(AdvlabError, match="that of another model"):
        advlab.load(tmp_path / "m")
    mixed = {**net.state_dict(), "mean": torch.zeros(1, dtype=torch.float64)}
    write_tensors(weights, mixed, {})
    edited(tmp_path / "m", lambda found: found.update(sha256=file_checksum(weights)))
    with pytest.raises(AdvlabError, match="mean"):
        advlab.load(tmp_path / "m")


def test_a_model_that_is_not_the_one_described_is_not_saved(tmp_path):
    net = about().build(rng=0)
    for other in (about(classes=4), about("lenet5"), about(mean=None, std=None)):
        with pytest.raises(AdvlabError, match="the model with the weights of"):
            save_model(tmp_path / "m", net, other)
    with pytest.raises(AdvlabError, match="mean"):
        save_model(tmp_path / "m", net, about(mean=(0.1,)))
    with pytest.raises(AdvlabError, match="Normalised in front"):
        save_model(tmp_path / "m", net.model, about("my:Own"))
    with pytest.raises(AdvlabError, match="notes of numbers"):
        save_model(tmp_path / "m", net, about(), {"a": object()})
    with pytest.raises(AdvlabError, match=r"torch\.nn\.Module"):
        save_model(tmp_path / "m", 3, about())
    assert not (tmp_path / "m" / "model.json").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(AdvlabError, match="can be written"):
        save_model(tmp_path / "file", net, about())
