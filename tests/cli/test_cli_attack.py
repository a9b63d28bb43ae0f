"""advlab attack, from arguments to what it prints, writes and refuses."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import evaluated_nets as nets
import numpy as np
import pytest

import advlab
from advlab.cli import main
from advlab.cli.attack import _name
from advlab.lab.verify import verify

MODEL = "evaluated_nets:trained"
QUICK = ("--eps", "0.1", "--box", "0,1", "--attack", "fast", "--no-certificates")
TIMES = {
    "sha256",
    "seal",
    "seconds",
    "certifying_seconds",
    "certificates_tried",
    "finished",
    "folder",
    "members",
    "commit",
}


def called(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stop:
        main(["attack", *(str(argument) for argument in arguments)])
    return stop.value.code or 0


@pytest.fixture
def data(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    x, y = nets.blobs(60)
    np.savez(tmp_path / "data.npz", x=x.numpy(), y=y.numpy())
    return tmp_path / "data.npz"


def error(capsys) -> str:
    """The one line that a mistake is told in."""
    captured = capsys.readouterr()
    assert captured.out == ""
    lines = [line for line in captured.err.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1
    assert lines[0].startswith("error: ")
    return lines[0]


def test_a_bracket_is_printed_and_a_report_is_left(data, capsys):
    options = ("--eps", "1/10", "--box", "0,1", "--attack", "fast", "--n", 30)
    assert called(MODEL, data, *options) == 0
    text = capsys.readouterr().out
    assert "robust error   at least" in text
    assert "at most" in text
    folder = Path("runs/attack/evaluated_nets_trained-data-linf-1_10")
    assert {path.name for path in folder.iterdir()} == {"evaluation.json", "report.html", "batches"}
    about = json.loads((folder / "evaluation.json").read_text())
    assert about["clean_error"] <= about["robust_error"] <= about["certified_error"]
    assert (about["norm"], about["eps"], about["box"]) == ("linf", 0.1, [0.0, 1.0])
    assert len(about["broken_by"]) == len(about["rows"]) == about["n"] == 30
    page = (folder / "report.html").read_text()
    assert "Robust error between" in page
    assert "No warnings" in page
    (found,) = verify(folder)
    assert (found.whole, found.problems, found.notes) == (1, [], [])
    (folder / "report.html").write_text(page.replace("No warnings", "No warnings!"))
    (problem,) = verify("runs")[-1].problems
    assert (problem.kind, f"runs/{problem.path}") == ("damaged", f"{folder}/report.html")


def test_json_is_one_line_and_seeds_draw_the_examples(data, capsys):
    rows = []
    for seed in (0, 0, 1):
        assert called(MODEL, data, *QUICK, "--n", 20, "--seed", seed, "--json", "--no-checks") == 0
        captured = capsys.readouterr()
        (line,) = captured.out.splitlines()
        rows.append(json.loads(line)["rows"])
        assert "20 of 60 examples" in captured.err
    assert rows[0] == rows[1] != rows[2]
    assert len(set(rows[0])) == 20


def test_files_of_one_name_have_folders_of_their_own(data, monkeypatch):
    places = ["a/data.npz", "b/data.npz", "a/net.pt2", "nets.py"]
    for place in places:
        Path(place).parent.mkdir(exist_ok=True)
        Path(place).touch()
    names = [_name("my.nets:net", place, "l2", "8/255") for place in ("data.npz", *places[:2])]
    assert names == ["my.nets_net-data-l2-8_255"] + [
        f"my.nets_net-{folder}_data-l2-8_255" for folder in ("a", "b")
    ]
    assert _name("a/net.pt2", "mnist", "l2", "1") == "a_net.pt2-mnist-l2-1"
    assert _name("nets.py:Net.small", "mnist", "l2", "1") == "nets_Net.small-mnist-l2-1"
    monkeypatch.chdir("b")
    outside = _name("../a/net.pt2", "mnist", "l2", "1")
    assert re.fullmatch(r"net_[0-9a-f]{8}\.pt2-mnist-l2-1", outside)


def test_a_masked_model_is_warned_of(data, capsys):
    assert called("evaluated_nets:rounded", data, *QUICK) == 0
    captured = capsys.readouterr()
    assert "warning: 100 % of gradients are exactly zero" in captured.out
    assert "exactly zero" in captured.err  # told at once, not only at the end
    assert (
        "zero_gradient"
        in Path("runs/attack/evaluated_nets_rounded-data-linf-0.1/report.html").read_text()
    )


def test_a_named_set_has_its_box(small_mnist, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "from torch import nn\ndef net():\n"
        "    return nn.Sequential(nn.Flatten(), nn.Linear(784, 10)).eval()\n"
    )
    arguments = ("mine.py:net", "mnist", "--eps", "8/255", "--data-dir", small_mnist)
    assert called(*arguments, "--attack", "pgd", "--json", "--no-checks") == 0
    about = json.loads(capsys.readouterr().out)
    assert about["box"] == [0.0, 1.0]
    assert about["attack"] == "PGD"
    assert about["eps"] == 8 / 255


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--eps", "-0.1"), "eps of at least 0"),
        (("--eps", "8/0"), "a number such as 0.03 or 8/255"),
        (("--eps", "eight"), "a number such as 0.03 or 8/255"),
        (("--norm", "l3", "--eps", "1"), "l3"),
        ((), "eps"),
        (("--eps", "0.1", "--box", "1,0"), "low end is below"),
        (("--eps", "0.1", "--box", "wide"), "LOW,HIGH"),
        (("--eps", "0.1", "--box", "0,0.5"), "declared box"),
        (("--eps", "0.1", "--attack", "magic"), "there are fast, standard"),
        (
            ("--eps", "0.1", "--architecture", "a:b"),
            "only with a model's folder or a file of weights",
        ),
    ],
)
def test_mistaken_options(data, capsys, options, message):
    assert called(MODEL, data, *options) == 2
    assert message in error(capsys)
    assert not list(Path("runs").rglob("*.json")) if Path("runs").exists() else True


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("evaluated_nets:nan", "NaN or infinity from the model for 60 of 60 inputs"),
        ("evaluated_nets:absent", "an object 'absent' in evaluated_nets"),
        ("no_such_module:net", "no module 'no_such_module'"),
        ("evaluated_nets:D", "a model or a function that makes one"),
        ("absent.pt2", "which is no file"),
    ],
)
def test_models_that_cannot_be_had(data, capsys, model, message):
    assert called(model, data, *QUICK) == 2
    assert message in error(capsys)


def test_data_that_cannot_be_had(data, capsys):
    x, y = nets.blobs(30)
    np.savez("labels.npz", x=x.numpy(), y=y.numpy() + 1)
    np.savez("many.npz", x=x.numpy(), y=y.numpy() + 7)
    np.savez("empty.npz", x=x.numpy()[:0], y=y.numpy()[:0])
    np.savez("narrow.npz", x=x.numpy()[:, :5], y=y.numpy())
    np.savez("pickled.npz", x=np.array([{}, {}], dtype=object), y=y.numpy()[:2])
    Path("data.pkl").write_bytes(b"\x80\x04N.")
    for name, message in {
        "labels.npz": "count from one",
        "many.npz": "labels must be 0 .. 2",
        "empty.npz": "at least one example",
        "narrow.npz": "a model that takes inputs of shape (30, 5)",
        "pickled.npz": "plain numbers",
        "data.pkl": "np.savez('data.npz', x=x, y=y)",
        "absent.npz": "does not exist",
        "imagenet": "one of mnist, cifar10",
    }.items():
        assert called(MODEL, name, *QUICK) == 2
        assert message in error(capsys), name


def same(folder: Path) -> dict:
    about = json.loads((folder / "evaluation.json").read_text())
    return {key: value for key, value in about.items() if key not in TIMES}


SLOW = ("evaluated_nets:slow", "data.npz", "--eps", "0.1", "--attack", "pgd", "--batch", "15",
        "--no-checks", "--no-certificates")  # fmt: skip


def start(folder: Path) -> subprocess.Popen:
    command = [sys.executable, "-m", "advlab", "attack", *SLOW, "--out", str(folder)]
    places = (Path(__file__).parents[1] / "helpers", Path(advlab.__file__).parents[1])
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, places))}
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=env, text=True, **pipes)


@pytest.mark.parametrize("kill", [signal.SIGKILL, signal.SIGINT])
def test_a_killed_run_goes_on_to_the_same_result(data, tmp_path, kill):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    process = start(broken)
    while not list(broken.rglob("batch-*")) and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(kill)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == (130 if kill == signal.SIGINT else -kill)
    if kill == signal.SIGINT:
        assert "--resume goes on" in errors
        assert "Traceback" not in errors
    assert {path.name for path in broken.iterdir()} == {"batches"}
    assert 1 <= len(list(broken.rglob("batch-*"))) < 4
    for folder, options in ((broken, ["--resume"]), (whole, [])):
        assert called(*SLOW, "--out", folder, *options) == 0
    assert same(broken) == same(whole)


def test_perturbed_inputs_are_saved_with_their_rows_and_labels(data, capsys):
    assert called(MODEL, data, *QUICK, "--n", 30, "--save", "adv.npz", "--json") == 0
    about = json.loads(capsys.readouterr().out)
    with np.load("adv.npz") as saved, np.load(data) as inputs:
        kept, whole = dict(saved), dict(inputs)
    assert sorted(kept) == ["broken", "loss", "rows", "x", "y"]
    assert kept["rows"].tolist() == about["rows"]
    assert kept["broken"].mean() == pytest.approx(about["robust_error"])
    clean = whole["x"][kept["rows"]]
    assert np.abs(kept["x"] - clean).max() <= 0.1 + 1e-6
    assert np.array_equal(kept["y"], whole["y"][kept["rows"]])


def test_an_attack_of_ones_own_is_named_by_module_or_file(data, capsys):
    Path("mine.py").write_text(
        "from advlab.attacks import Attack, PGD\n"
        "class Nothing(Attack):\n"
        "    def search(self, best, threat, rng):\n"
        "        best.value(best.x)\n"
        "strong = PGD(steps=3)\n"
    )
    quick = [word for word in QUICK if word not in ("--attack", "fast")]
    for name, words in (("mine.py:Nothing", "by Nothing"), ("mine.py:strong", "by PGD(steps=3)")):
        assert called(MODEL, data, *quick, "--no-checks", "--attack", name) == 0
        assert words in capsys.readouterr().out
    assert called(MODEL, data, *quick, "--attack", "mine.py:Attack.search") == 2
    assert "error: " in capsys.readouterr().err


def test_an_edited_attack_is_not_reused_and_makes_the_evaluation_stale(data):
    text = (
        "from advlab.attacks import Attack\n"
        "class Mine(Attack):\n"
        "    def search(self, best, threat, rng):\n"
        "        best.value({})\n"
    )
    Path("own_attack.py").write_text(text.format("best.x"))
    quick = [word for word in QUICK if word not in ("--attack", "fast")]
    options = (*quick, "--no-checks", "--attack", "own_attack.py:Mine", "--out", "out")
    assert called(MODEL, data, *options) == 0
    assert [one.problems for one in verify("out")] == [[]]
    Path("own_attack.py").write_text(text.format("threat.sample(best.x, rng=rng)"))
    (problem,) = verify("out")[0].problems
    assert (problem.kind, "own_attack.py:Mine changed" in problem.why) == ("stale", True)
    # As a new command: this process has the module of before.
    command = [sys.executable, "-m", "advlab", "attack", MODEL, str(data), *options, "--resume"]
    helpers = {**os.environ, "PYTHONPATH": str(Path(nets.__file__).parent)}
    done = subprocess.run(command, capture_output=True, text=True, env=helpers, check=False)
    assert done.returncode == 2
    assert "made by other code: search of Mine changed" in done.stderr
