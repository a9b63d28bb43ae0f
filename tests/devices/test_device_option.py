"""advlab attack --device: what is there, one line where it is not, and a whole run."""

import json

import evaluated_nets as nets
import numpy as np
import pytest
import torch
from pretend_device import PretendDevice

from advlab.cli import main
from advlab.core import devices
from advlab.core.errors import AdvlabError

QUICK = ("--eps", "0.1", "--box", "0,1", "--attack", "fgm", "--no-certificates", "--no-checks")


@pytest.fixture
def present(monkeypatch):
    """Says which accelerators this machine has."""

    def set_present(*names: str) -> None:
        monkeypatch.setattr(torch.cuda, "is_available", lambda: "cuda" in names)
        monkeypatch.setattr(torch.cuda, "device_count", lambda: 2 * ("cuda" in names))
        monkeypatch.setattr(torch.backends.mps, "is_available", lambda: "mps" in names)

    return set_present


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    x, y = nets.blobs(20)
    np.savez("data.npz", x=x.numpy(), y=y.numpy())
    return "data.npz"


def called(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["attack", *arguments])
    return stop.value.code or 0


def test_auto_takes_the_best_that_there_is(present):
    for names, best in (((), "cpu"), (("mps",), "mps"), (("mps", "cuda"), "cuda")):
        present(*names)
        assert devices.choose_device("auto") == torch.device(best)
        assert devices.choose_device("cpu") == torch.device("cpu")
    assert devices.choose_device("cuda:1") == torch.device("cuda", 1)


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "cuda:7", "mps:0", "cpu:0", "mps", "", "meta"])
def test_other_devices_are_refused(present, name):
    present("cuda")
    with pytest.raises(AdvlabError, match="a device"):
        devices.choose_device(name)


def test_a_device_that_is_not_there_is_told_in_one_line(present, data, capsys):
    present()
    assert called("evaluated_nets:trained", data, *QUICK, "--device", "cuda") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("error: a device of this machine, cpu; got cuda")


def test_float64_cannot_go_to_mps():
    with pytest.raises(AdvlabError, match=r"no float64.*\.float\(\)"):
        devices.moved(nets.trained().double(), torch.device("mps"))
    assert devices.moved(len, torch.device("mps")) is len


def saved():
    with np.load("adv.npz") as file:
        return file["x"]


def test_a_run_on_a_device_prints_what_the_cpu_prints(data, capsys, monkeypatch):
    options = ("evaluated_nets:trained", data, *QUICK, "--save", "adv.npz", "--json")
    assert called(*options, "--device", "cpu") == 0
    plain, points = json.loads(capsys.readouterr().out), saved()
    with PretendDevice() as device:
        monkeypatch.setattr(devices, "choose_device", lambda name: device.place)
        assert called(*options, "--transfer", "evaluated_nets:trained") == 0
    found = json.loads(capsys.readouterr().out)
    assert (plain["device"], found["device"]) == ("cpu", "lazy")
    for name in ("clean_error", "robust_error", "broken_by", "rows"):
        assert found[name] == plain[name]
    assert np.array_equal(saved(), points)
