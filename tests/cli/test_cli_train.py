"""advlab train: what it leaves, what it goes on from, what it refuses."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

import advlab
from advlab.cli import main
from advlab.cli.training_plan import TrainingPlan
from advlab.lab.verify import verify
from advlab.models.folder import read_description

NETS = """
from torch import nn


class Net(nn.Sequential):
    def __init__(self):
        super().__init__(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 3)
        )
"""


def images(n, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    x = rng.random((n, 1, 6, 6)).astype("float32") / 2
    x[np.arange(n), 0, :, 2 * y] += 0.5
    return x, y


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    """A folder with data and a network, in which commands run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    (x, y), (xt, yt) = images(90), images(30, seed=1)
    np.savez("toy.npz", x_train=x, y_train=y, x_test=xt, y_test=yt)
    np.savez("plain.npz", x=x, y=y)
    Path("toy_nets.py").write_text(NETS)
    return tmp_path


NET = ("--model", "toy_nets.py:Net", "--box", "0,1", "--batch", "30")
SHORT = (*NET, "--set", "lr=0.05", "--set", "attack.steps=2", "--epochs", "2")
TOY = ("--data", "toy.npz", "--eps", "0.1")


def called(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["train", *map(str, arguments)])
    return stop.value.code or 0


def error(capsys) -> str:
    """The one line that a mistake is told in."""
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1
    return lines[0]


def test_a_run_leaves_a_model_a_log_and_a_report_and_is_not_repeated(place, capsys):
    arguments = (*SHORT, *TOY, "--attack", "fast", "--n", "20", "--budget", "20s", "--out", "run")
    assert called(*arguments, "--sharpness", "--json") == 0
    about = json.loads(capsys.readouterr().out)
    assert about["status"] == "finished"
    found = about["evaluation"]
    assert 0 <= found["clean_error"] <= found["robust_error"] <= 1
    assert found["n"] == 20
    net = advlab.load("run", network=_network())
    x, y = images(30, seed=1)
    rows = found["rows"]
    errors = (net(torch.from_numpy(x[rows])).argmax(1).numpy() != y[rows]).mean()
    assert errors == pytest.approx(found["clean_error"])
    page = Path("run/report.html").read_text()
    assert "Sharpness on validation examples" in page
    assert read_description("run").notes["plan"]["resolved"]["recipe"] == "pgd"
    before = {file: file.stat().st_mtime_ns for file in Path("run/evaluation").rglob("*")}
    log = Path("run/log.csv").read_bytes()
    assert called("--resume", "run", "--json") == 0
    again = json.loads(capsys.readouterr().out)
    assert again["evaluation"]["robust_error"] == found["robust_error"]
    assert again["best"] == about["best"]
    assert log == Path("run/log.csv").read_bytes()
    assert before == {file: file.stat().st_mtime_ns for file in Path("run/evaluation").rglob("*")}
    assert not [one for one in verify(place / "run" / "evaluation") if one.problems]


def _network():
    space: dict = {}
    exec(NETS, space)
    return space["Net"]


def test_a_folder_of_another_plan_is_refused_with_the_difference(place, capsys):
    Path("mine.toml").write_text('recipe = "pgd"\nlr = 0.05\n[attack]\nsteps = 2\n')
    rest = (*NET, *TOY, "--epochs", "1", "--attack", "none", "--out", "run")
    assert called(*rest, "--recipe", "mine.toml") == 0
    capsys.readouterr()
    assert called(*rest, "--recipe", "mine.toml", "--seed", "1") == 2
    assert "seed 0 there, 1 here" in error(capsys)
    Path("mine.toml").write_text('recipe = "pgd"\nlr = 0.05\n[attack]\nsteps = 3\n')
    assert called(*rest, "--recipe", "mine.toml") == 2
    assert "attack.steps of the recipe 2 there, 3 here" in error(capsys)
    Path("mine.toml").unlink()
    assert called("--resume", "run") == 0  # the recipe is that of the folder
    assert TrainingPlan.read(Path("run")).made_recipe().attack.steps == 2
    text = Path("run/train.json").read_text()
    Path("run/train.json").write_text(text.replace('"seed": 0', '"seed": 7'))
    assert called("--resume", "run") == 2
    assert "train.json as it was written" in error(capsys)


def test_without_a_test_part_examples_are_set_aside_for_it(place, capsys):
    rest = ("--data", "plain.npz", "--eps", "0", "--recipe", "clean", "--set", "lr=0.05")
    short = (*NET, "--epochs", "1", "--attack", "fast", "--budget", "10s", "--out", "run")
    assert called(*short, *rest, "--validation", "1/9", "--json") == 0
    captured = capsys.readouterr()
    assert "no test part: 10 are set aside" in captured.err
    found = json.loads(captured.out)["evaluation"]
    assert found["n"] == 10
    assert found["robust_error"] == found["clean_error"]


def change(**arrays):
    with np.load("toy.npz") as saved:
        whole = dict(saved)
    np.savez("toy.npz", **{**whole, **arrays})


def truncated():
    Path("toy.npz").write_bytes(Path("toy.npz").read_bytes()[:-200])


X, Y = images(90)
BAD = {
    "no data": (("--data", "none.npz"), None, "none.npz, which does not exist"),
    "units": (("--eps", "8"), None, "write --eps 8/255"),
    "no gpu": (("--device", "cuda"), None, "a device of this machine"),
    "setting": (("--set", "lrr=0.1"), None, "did you mean lr"),
    "validation": (("--validation", "many"), None, "--validation as a number"),
    "no validation": (("--validation", "0"), None, "a validation part of 1 to"),
    "all validation": (("--validation", "90"), None, "a validation part of 1 to"),
    "network": (("--model", "resnet99"), None, "resnet9"),
    "truncated": ((), truncated, "toy.npz"),
    "labels": ((), lambda: change(y_train=Y[:-1]), "as many answers as inputs"),
    "test labels": ((), lambda: change(y_test=np.arange(30) % 4), "test labels from 0 to 2"),
    "test shape": ((), lambda: change(x_test=X[:30, :, :5]), "test inputs of shape"),
    "class missing": ((), lambda: change(y_train=2 * (Y > 0)), "none of class 1"),
    "half a part": ((), lambda: change(x_val=X), "x_val"),
    "damaged part": ((), lambda: change(x_val=X[:3], y_val=Y[:2]), "as many answers"),
    "outside the box": ((), lambda: change(x_train=X * 255), "inputs in the box"),
    "no images": ((), lambda: change(x_train=X[:, 0], x_test=X[:30, 0]), "images of shape"),
}


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_line(place, capsys, name):
    more, prepare, words = BAD[name]
    if prepare is not None:
        prepare()
    assert called(*SHORT, *TOY, "--out", "run", *more) == 2
    assert words in error(capsys)
    assert not list(Path().glob("run/checkpoint*"))


def test_a_loss_that_is_not_finite_is_said_and_a_model_is_kept(place, capsys):
    rest = (*NET, *TOY, "--epochs", "3", "--set", "lr=1e25", "--attack", "none", "--out", "run")
    assert called(*rest) == 2
    assert "not finite at step" in error(capsys)
    weights = advlab.load("run", network=_network()).state_dict().values()
    assert all(bool(value.isfinite().all()) for value in weights)


KILLED = """
import os, signal, sys, time
from pathlib import Path
import torch
import torch._dynamo  # optimizers import it: once, and not in every child
import advlab.cli.training_run
import advlab.report.training
from advlab.cli import main

ARGUMENTS = sys.argv[1:]


def start(out):
    child = os.fork()  # before torch has computed anything here
    if child == 0:
        try:
            torch.set_num_threads(1)
            main(["train", *ARGUMENTS, "--out", out])
        except SystemExit as stop:
            os._exit(stop.code or 0)
        os._exit(3)
    return child


def end(child):
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


codes = [end(start("whole"))]
rows = 0
for kill in range(2):
    child = start("cut")
    log = Path("cut/log.csv")
    while len(log.read_text().splitlines() if log.exists() else []) <= rows + 1:
        time.sleep(0.002)
        if os.waitpid(child, os.WNOHANG)[0]:
            print("too fast")
            sys.exit(1)
    time.sleep(0.005 * kill)
    os.kill(child, signal.SIGKILL)
    codes.append(end(child))
    rows = len(log.read_text().splitlines()) - 1
codes.append(end(start("cut")))
print(codes)
"""


@pytest.mark.timeout(600)
def test_killed_at_any_moment_it_goes_on_with_the_same_bits(place):
    """kill -9, twice, soon after an epoch was logged, before or in its checkpoint."""
    Path("killed.py").write_text(KILLED)
    rest = (*NET, *TOY, "--set", "average=ema", "--set", "lr=0.05", "--recipe", "fast")
    arguments = (*rest, "--epochs", "12", "--attack", "none", "--augment", "crop_flip")
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "killed.py", *arguments],
        capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[-1] == "[0, -9, -9, 0]", done.stderr[-2000:]
    whole, cut = (load_file(f"{name}/model.safetensors") for name in ("whole", "cut"))
    assert list(whole) == list(cut)
    assert all(torch.equal(whole[name], cut[name]) for name in whole)
