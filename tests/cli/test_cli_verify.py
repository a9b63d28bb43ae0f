"""advlab verify: whole, damaged, foreign and stale stores; a flipped bit anywhere is found."""

import errno
import json
import os
import random
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from advlab import lab
from advlab.cli import main
from advlab.cli.report import _read as read
from advlab.core.datafiles import recording
from advlab.core.files import file_checksum
from advlab.core.seal import Unsealed, seal, unseal
from advlab.data import arrays
from advlab.evaluation import evaluate
from advlab.lab import evaluations
from advlab.lab.evaluations import evaluation_origin
from advlab.lab.installed import installed_code
from advlab.lab.verify import verify
from advlab.papers import EXPERIMENTS
from advlab.threats import Ball
from advlab.training import Checkpoint, fit

FLIPS = 600
SMALL = '''
"""Squares of small numbers."""
import altair as alt
import numpy as np
import polars as pl
from advlab import lab
from advlab.report import Verdict

ABOUT = lab.About(paper="toy", item="Figure 2", title="Squares", seconds={"laptop": 1}, claims={})

class Case(lab.Case):
    size: int

def recipe(scale, seeds=None):
    return [Case(size=size) for size in (1, 2, 3)]

def compute(case):
    if case.size == 3:
        raise ArithmeticError("three is told to fail")
    return lab.Computed(pl.DataFrame({"square": [case.size**2]}), {"x": np.arange(4.0)})

def figure(table):
    return alt.Chart(table).mark_point().encode(x="size:Q")

def verdicts(table):
    return [Verdict(id="a", claim="b", outcome="supported", measured=1.0, rule="c")]
'''


def called(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return stop.value.code or 0


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with a small experiment, its runs, and an evaluation."""
    here = tmp_path_factory.mktemp("here")
    (here / "small.py").write_text(SMALL)
    lab.run(str(here / "small.py"), jobs=1, out=here / "runs")
    evaluation = here / "runs" / "attack" / "net-0.1"
    (evaluation / "batches").mkdir(parents=True)
    files = {"report.html": "<p>0.25</p>", "batches/batch-0.safetensors": "a batch"}
    for name, text in files.items():
        (evaluation / name).write_text(text)
    sums = {name: file_checksum(evaluation / name) for name in files}
    made_by = evaluation_origin([], {})
    about = json.dumps({"robust_error": 0.25, "made_by": made_by, "sha256": sums}, indent=1)
    (evaluation / "evaluation.json").write_text(seal(about))
    return here


@pytest.fixture
def runs(made, tmp_path):
    shutil.copytree(made / "runs", tmp_path / "runs")
    return tmp_path / "runs"


def problems(folder):
    return [(one.kind, one.path) for found in verify(folder) for one in found.problems]


def the_store(runs):
    (store,) = runs.glob("small-*")
    return store


def a_run(runs):
    return min(path for path in the_store(runs).iterdir() if (path / "run.json").exists())


def test_a_seal_holds_the_text_and_nothing_else():
    text = json.dumps({"a": [1, "é"], "b": {}}, indent=1)
    assert json.loads(unseal(seal(text).encode())) == json.loads(text)
    assert list(json.loads(seal(text))) == ["a", "b", "seal"]
    with pytest.raises(Unsealed):
        unseal(text.encode())
    with pytest.raises(ValueError, match="not what was written"):
        unseal(seal(text).replace("1", "2", 1).encode())


def test_a_whole_folder_is_whole(runs, capsys):
    assert called("verify", runs) == 0
    text = capsys.readouterr().out
    assert the_store(runs).name in text
    assert "attack/net-0.1" in text
    assert called("verify", runs, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["whole"]
    assert (found["problems"], found["notes"]) == ([], [])
    rows = {one["name"]: one for one in found["checked"]}
    store = rows[the_store(runs).name]
    assert (store["whole"], store["results"], store["failed"]) == (2, 1, 1)
    assert rows["attack/net-0.1"]["whole"] == 1


@pytest.mark.parametrize("part", ["store", "run", "attack/net-0.1"])
def test_a_part_of_the_folder_can_be_checked(runs, part):
    place = {"store": the_store(runs), "run": a_run(runs)}.get(part, runs / part)
    (found,) = verify(place)
    assert found.problems == []
    assert found.whole == (2 if part == "store" else 1)


def test_every_flipped_bit_is_found(runs):
    draw = random.Random(0)
    files = [path for path in sorted(runs.rglob("*")) if path.is_file() and path.stat().st_size]
    kinds = {path.name for path in files}
    assert {"run.json", "case.json", "metrics.parquet", "arrays.safetensors"} < kinds
    assert {"result-laptop.json", "evaluation.json", "report.html"} < kinds
    silent = []
    for n in range(FLIPS):
        path = files[n % len(files)]
        whole = path.read_bytes()
        bit = draw.randrange(8 * len(whole))
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        label = path.relative_to(runs).as_posix()
        if ("damaged", label) not in problems(runs):
            silent.append((label, bit))
        path.write_bytes(whole)
    assert silent == []
    assert problems(runs) == []


def test_what_is_damaged_is_named_in_one_line(runs, capsys):
    path = a_run(runs) / "metrics.parquet"
    path.unlink()
    assert called("verify", runs) == 1
    lines = capsys.readouterr().out.splitlines()
    place = path.relative_to(runs).as_posix()
    assert [line for line in lines if line.startswith("damaged")] == [f"damaged: {place}: missing"]


@pytest.mark.parametrize("damage", ["loop", "empty", "folder", "list", "unsealed"])
def test_odd_damage_is_damage_and_no_traceback(runs, damage):
    path = a_run(runs) / "run.json"
    record = json.loads(path.read_bytes())
    path.unlink()
    if damage == "loop":
        path.symlink_to(path)
    elif damage == "folder":
        path.mkdir()
    else:
        del record["seal"]
        texts = {"empty": "", "list": "[]", "unsealed": json.dumps(record)}
        path.write_text(texts[damage])
    assert ("damaged", path.relative_to(runs).as_posix()) in problems(runs)


def test_a_run_that_is_a_link_in_a_circle_is_damaged(runs):
    link = the_store(runs) / "0123456789abcdef"
    link.symlink_to(link)
    assert problems(runs) == [("damaged", f"{the_store(runs).name}/{link.name}/run.json")]


def test_foreign_files_are_named(runs):
    store, run = the_store(runs), a_run(runs)
    other = store / "0123456789abcdef"
    shutil.copytree(run, other)
    (run / "notes.txt").write_text("mine")
    (store / "notes.txt").write_text("mine")
    shutil.copy(store / "result-laptop.json", store / "result-paper.json")
    (runs / "report.html").write_text("a page")
    found = verify(runs)
    foreign = {problem.path for one in found for problem in one.problems}
    assert foreign == {
        f"{store.name}/{place}"
        for place in (
            f"{other.name}/case.json",
            f"{run.name}/notes.txt",
            "notes.txt",
            "result-paper.json",
        )
    }
    assert {problem.kind for one in found for problem in one.problems} == {"foreign"}
    assert any("report.html" in note for one in found for note in one.notes)


def test_what_was_set_aside_is_a_note_and_a_figure_may_be_called_failed(runs):
    store = the_store(runs)
    (store / "corrupt").mkdir()
    shutil.copytree(a_run(runs), store / "corrupt" / f"{a_run(runs).name}-0")
    shutil.copytree(store, runs / "failed")
    found = {one.name: one for one in verify(runs)}
    assert [found[name].whole for name in (store.name, "failed")] == [2, 2]
    assert any("not in use: 1" in note for note in found[store.name].notes)
    assert problems(runs) == []


def test_a_result_whose_runs_are_gone_or_changed_is_stale(runs, capsys):
    store, run = the_store(runs), a_run(runs)
    record = json.loads(unseal((run / "run.json").read_bytes()))
    (run / "run.json").write_text(seal(json.dumps({**record, "seconds": 9.0})))
    assert problems(runs) == [("stale", f"{store.name}/result-laptop.json")]
    shutil.rmtree(run)
    assert called("verify", runs) == 1
    assert "1 of the 2 runs it rests on are not here" in capsys.readouterr().out


def test_runs_of_other_code_are_stale(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "mine" / "small.py"
    file.parent.mkdir()
    file.write_text(SMALL)
    lab.run("mine/small.py", jobs=1)
    assert called("verify") == 0
    file.write_text(SMALL.replace("size**2", "size**3"))
    assert called("verify") == 1
    text = capsys.readouterr().out
    assert text.count("stale: ") == 1
    assert "2 runs computed by other code" in text
    file.write_text(SMALL.replace("size**2", "size ** 2"))
    assert called("verify") == 0
    file.unlink()
    capsys.readouterr()
    assert called("verify") == 0
    assert "code is not checked" in capsys.readouterr().out


def test_the_code_is_that_of_the_imported_experiment():
    assert all(map(installed_code, EXPERIMENTS))
    for name in ("benign/fig4", "generalization/fig5"):  # one imports its compute, one defines it
        assert installed_code(name) == lab.load(name).code("smoke")
    assert installed_code("no/such") is None
    assert installed_code("json") is None


def test_verify_imports_no_torch(runs):
    lines = (
        "import sys; from advlab.lab.verify import installed_code, verify",
        f"verify({str(runs)!r}); installed_code('benign/fig4')",
        "print('torch' in sys.modules)",
    )
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_verify_and_report_write_nothing_into_a_read_only_store(runs, tmp_path, monkeypatch):
    before = {path: path.stat().st_mtime_ns for path in runs.rglob("*")}
    assert called("report", "--out", runs, "--to", tmp_path / "page.html") == 0

    def refused(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    for place, call in [(Path, "mkdir"), (Path, "unlink"), (os, "rename"), (os, "replace")]:
        monkeypatch.setattr(place, call, refused)
    assert called("verify", runs) == 0
    assert {path: path.stat().st_mtime_ns for path in runs.rglob("*")} == before


@pytest.mark.skipif(not shutil.which("unshare"), reason="needs namespaces")
@pytest.mark.parametrize("failing", [3, 4])
def test_a_disk_that_is_really_read_only_is_enough(tmp_path, failing):
    file, runs = tmp_path / "fine.py", tmp_path / "runs"
    file.write_text(SMALL.replace("case.size == 3", f"case.size == {failing}"))
    lab.run(str(file), jobs=1, out=runs)
    lines = (
        "from advlab import lab; from advlab.lab.verify import verify",
        f"result = lab.run({str(file)!r}, jobs=1, out={str(runs)!r})",
        f"problems = [problem for one in verify({str(runs)!r}) for problem in one.problems]",
        "print(len(result.runs), len(result.failed), problems)",
    )
    script = 'mount --bind "$1" "$1" && mount -o remount,bind,ro "$1" || exit 77; exec "$2" -c "$3"'
    command = ["unshare", "-rm", "sh", "-c", script, "sh", runs, sys.executable, "\n".join(lines)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 77 or done.stderr.startswith("unshare"):
        pytest.skip("no namespaces here")
    assert done.stdout == ("2 1 []\n" if failing == 3 else "3 0 []\n")
    assert "read-only: nothing was written" in done.stderr


@pytest.mark.parametrize("folder", ["nothing", "empty"])
def test_nothing_to_check_is_a_mistake_in_one_line(tmp_path, folder, capsys):
    (tmp_path / "empty").mkdir()
    assert called("verify", tmp_path / folder) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert folder in line


def test_report_names_a_damaged_result_and_goes_on(runs, tmp_path, capsys):
    store = the_store(runs)
    other = runs / "other"
    other.mkdir()
    text = (store / "result-laptop.json").read_text()
    (other / "result-laptop.json").write_text(text.replace("supported", "refuted"))
    assert called("report", "--out", runs, "--to", tmp_path / "page.html") == 0
    captured = capsys.readouterr()
    (line,) = captured.err.splitlines()
    assert "other/result-laptop.json is not a result (not what was written)" in line
    assert "refuted" not in (tmp_path / "page.html").read_text().split("Squares")[-1][:2000]


class Small(lab.Case):
    size: int = 1


def test_report_and_verify_beside_a_running_sweep_never_fail(runs, tmp_path):
    store = lab.Store(the_store(runs))
    cases = [Small(size=size) for size in range(10, 14)]
    files = lab.store.encode(pl.DataFrame({"square": [1.0]}))
    result = (store.root / "result-laptop.json").read_text()
    over, errors = threading.Event(), []

    def work():
        while not over.is_set():
            for case in cases:
                with store.lock(case.key(), -1.0):
                    store.write(case, files, seconds=0.0)
                    store.write_failure(Small(size=9), ArithmeticError("no"))
                    store.forget_failure(Small(size=9))
                store.write_json("result-laptop", Path("result-laptop.json"), result)
                store.discard(case)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(150):
            assert len(read(runs, None)) == 1
            errors += [one for one in problems(runs) if one[0] in ("damaged", "foreign")]
    finally:
        over.set()
        thread.join()
    assert errors == []


NET = """
from torch import nn

def net():
    return nn.Linear(2, {classes})
"""


def stored_evaluation(place, models, read):
    place.mkdir()
    about = {"made_by": evaluation_origin(models, read), "sha256": {}}
    (place / "evaluation.json").write_text(seal(json.dumps(about)))


def stale(folder):
    return [(one.kind, one.why) for found in verify(folder) for one in found.problems]


def test_an_evaluation_of_other_code_another_model_or_other_data_is_stale(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("nets.py").write_text(NET.format(classes=2))
    Path("weights.safetensors").write_bytes(b"weights")
    np.savez("data.npz", x=np.ones((3, 2)), y=np.arange(3))
    with recording() as read:
        arrays.load("data.npz")
    stored_evaluation(tmp_path / "attack", ["weights.safetensors", "nets.py:net"], read)
    assert stale(tmp_path) == []
    Path("nets.py").write_text(NET.format(classes=2) + "# a comment\n")
    assert stale(tmp_path) == []
    Path("nets.py").write_text(NET.format(classes=3))
    assert stale(tmp_path) == [("stale", "made with another model or attack: nets.py:net changed")]
    Path("weights.safetensors").write_bytes(b"others")
    np.savez("data.npz", x=np.zeros((3, 2)), y=np.arange(3))
    assert [why for _, why in stale(tmp_path)] == [
        "made with another model or attack: weights.safetensors changed",
        "made with another model or attack: nets.py:net changed",
        "an evaluation made from other data: data.npz changed",
    ]
    for name in ("nets.py", "weights.safetensors", "data.npz"):
        Path(name).unlink()
    (checked,) = [one for one in verify(tmp_path) if one.results]
    assert checked.problems == []
    assert len(checked.notes) == 3
    monkeypatch.setattr(evaluations, "EVALUATE", "advlab.evaluation.suites:plan")
    ((kind, why),) = stale(tmp_path)
    assert kind == "stale"
    assert why.startswith("evaluated by other code (")


def test_a_stopped_evaluation_is_checked(tmp_path, monkeypatch):
    x, y = torch.rand(6, 2), torch.arange(6) % 2
    store = tmp_path / "batches"
    evaluate(nn.Linear(2, 2), x, y, Ball("linf", 0.1), "pgd", batch=3, store=store, checks=False)
    (checked,) = verify(tmp_path)[-1:]
    assert (checked.whole, checked.problems) == (2, [])
    batch = max(store.glob("batch-*"))
    whole = batch.read_bytes()
    random.seed(0)
    for _ in range(200):
        place = random.randrange(len(whole))
        flipped = whole[place] ^ (1 << random.randrange(8))
        batch.write_bytes(whole[:place] + bytes([flipped]) + whole[place + 1 :])
        assert [kind for kind, _ in stale(tmp_path)] == ["damaged"]
    batch.write_bytes(whole[:-1])
    assert [kind for kind, _ in stale(tmp_path)] == ["damaged"]
    batch.write_bytes(whole)
    monkeypatch.setattr(evaluations, "EVALUATE", "advlab.evaluation.suites:plan")
    assert [why[:23] for _, why in stale(tmp_path)] == ["evaluated by other code"]


def test_runs_made_from_other_data_are_stale(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("own.npz", x=np.ones((3, 2)), y=np.arange(3))

    def compute(case):
        return pl.DataFrame({"n": [len(arrays.load("own.npz").y)]})

    lab.sweep([Small(size=size) for size in (1, 2)], compute, "runs", jobs=1)
    assert problems("runs") == []
    np.savez("own.npz", x=np.zeros((3, 2)), y=np.arange(3))
    ((kind, why),) = stale("runs")
    assert (kind, why) == ("stale", "2 runs made from other data: own.npz changed")
    Path("own.npz").unlink()
    assert problems("runs") == []
    assert any("own.npz" in note for one in verify("runs") for note in one.notes)


def test_checkpoints_are_checked_and_other_tensors_are_left_alone(tmp_path):
    net = nn.Linear(3, 2)
    x, y = torch.randn(8, 3), torch.zeros(8).long()
    fit(net, x, y, steps=2, lr=0.1, hooks=[Checkpoint(tmp_path / "run.safetensors", every=1)])
    save_file({"w": torch.zeros(3)}, tmp_path / "mine.safetensors")
    (found,) = verify(tmp_path)
    assert (found.whole, found.problems) == (1, [])
    assert "not checked, no file of a run: mine.safetensors" in found.notes[0]
    whole = (tmp_path / "run.safetensors").read_bytes()
    rng = np.random.default_rng(0)
    for place in [*rng.integers(len(whole), size=60), 0, 9, 12]:
        flipped = bytearray(whole)
        flipped[place] ^= 1 << int(rng.integers(8))
        (tmp_path / "run.safetensors").write_bytes(bytes(flipped))
        (found,) = verify(tmp_path)
        assert [problem.kind for problem in found.problems] == ["damaged"], place
