"""Runs record the data files that they rest on, and are computed again when these change."""

import json
import shutil
import struct
import threading
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from advlab import lab
from advlab.core import datafiles
from advlab.core.datafiles import DataChanges, content, recording
from advlab.core.errors import AdvlabError
from advlab.data import arrays, cached, cifar10, mnist, recorded, zeros_and_ones
from advlab.data.recorded import changes

EXPERIMENT = """
import altair as alt, polars as pl
from advlab import lab
from advlab.data import mnist
from advlab.report import Claims

ABOUT = lab.About(paper="own", item="0", title="Pixels", seconds={"laptop": 1},
                  claims={"dark": "pixels are dark"})

def recipe(scale, seeds=None):
    return [lab.Case(seed=seed) for seed in range(2)]

def compute(case):
    return pl.DataFrame({"mean": [float(mnist.load(split="test").x.mean())]})

def figure(table):
    return alt.Chart(table).mark_point().encode(x="mean:Q")

def verdicts(table):
    return [Claims(ABOUT.claims).below("dark", float(table["mean"].max()), 0.5, what="mean")]
"""
IMAGES, LABELS = "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"
AGAIN = "computed again (--reuse keeps them)"


def write_mnist(folder: Path, value: int, prefixes=("t10k",)) -> Path:
    (folder / "mnist").mkdir(parents=True, exist_ok=True)
    for prefix in prefixes:
        for kind, array in (
            ("images-idx3", np.full((4, 28, 28), value, np.uint8)),
            ("labels-idx1", np.arange(4, dtype=np.uint8) % 2),
        ):
            header = struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
            (folder / "mnist" / f"{prefix}-{kind}-ubyte").write_bytes(header + array.tobytes())
    return folder


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("ADVLAB_DATA", str(write_mnist(tmp_path / "data", 51)))
    monkeypatch.chdir(tmp_path)
    Path("pixels.py").write_text(EXPERIMENT)
    return tmp_path


def mean(jobs=1, **more) -> float:
    result = lab.run("pixels.py", jobs=jobs, out="runs", **more)
    assert result.failed == []
    return result.verdicts[0].measured


@pytest.mark.parametrize("jobs", [1, 2])
def test_other_data_are_said_and_computed_again_unless_runs_are_kept(place, capsys, jobs):
    assert mean(jobs) == pytest.approx(0.2)
    assert mean(jobs) == pytest.approx(0.2)
    assert "data" not in capsys.readouterr().err
    write_mnist(place / "data", 102)
    told = f"pixels: made from other data: {IMAGES} changed: 2 runs, "
    assert mean(jobs, reuse=True) == pytest.approx(0.2)
    assert f"{told}kept, as --reuse asks" in capsys.readouterr().err.splitlines()
    assert mean(jobs) == pytest.approx(0.4)
    assert told + AGAIN in capsys.readouterr().err.splitlines()
    assert mean(jobs) == pytest.approx(0.4)
    assert "other data" not in capsys.readouterr().err


def test_runs_and_results_list_their_data_by_content(place):
    result = lab.run("pixels.py", jobs=1, out="runs")
    folder = place / "data" / "mnist"
    read = {"mnist test": {name: content(folder / name) for name in (IMAGES, LABELS)}}
    assert [maker.data for maker in result.made_by] == [read]
    (run, _) = Path("runs/pixels").glob("*/run.json")
    assert json.loads(run.read_text())["data"] == read


def test_the_same_data_at_another_place_are_the_same(place, capsys, monkeypatch):
    mean()
    shutil.copytree("data", "copy")
    shutil.rmtree("data")
    monkeypatch.setenv("ADVLAB_DATA", str(place / "copy"))
    assert mean() == pytest.approx(0.2)
    assert "data" not in capsys.readouterr().err
    # Files that come before those that were read count too.
    write_mnist(place / "first", 102)
    for name in (IMAGES, LABELS):
        shutil.move(f"copy/mnist/{name}", f"copy/{name}")
    assert mean() == pytest.approx(0.2)
    shutil.copytree("first/mnist", "copy/mnist", dirs_exist_ok=True)
    assert mean() == pytest.approx(0.4)


def test_without_the_data_runs_are_read_and_kept(place, capsys):
    mean()
    shutil.rmtree("data")
    assert mean() == pytest.approx(0.2)
    line = "pixels: made from data that are not here now (mnist test): 2 runs, kept"
    assert line in capsys.readouterr().err.splitlines()


def test_two_experiments_in_one_process_do_not_blame_each_other(place, capsys):
    np.savez("own.npz", x=np.ones((3, 2)), y=np.arange(3))

    def one(case):
        return pl.DataFrame({"n": [len(mnist.load(split="test").y)]})

    def other(case):
        return pl.DataFrame({"n": [len(arrays.load("own.npz").y)]})

    for _ in range(2):
        lab.sweep([lab.Case()], one, "one", jobs=1)
        second = lab.sweep([lab.Case()], other, "other", jobs=1)
    (maker,) = second.made_by
    assert maker.data == {"file own.npz": {"own.npz": content(Path("own.npz"))}}
    write_mnist(place / "data", 102)
    capsys.readouterr()
    lab.sweep([lab.Case()], other, "other", jobs=1)
    assert "other data" not in capsys.readouterr().err
    np.savez("own.npz", x=np.zeros((3, 2)), y=np.arange(3))
    lab.sweep([lab.Case()], other, "other", jobs=1)
    assert f"made from other data: own.npz changed: 1 run, {AGAIN}" in capsys.readouterr().err
    lab.sweep([lab.Case()], one, "one", jobs=1)
    assert f"made from other data: {IMAGES} changed: 1 run, {AGAIN}" in capsys.readouterr().err


def test_what_a_cache_holds_is_recorded_for_every_case(place, monkeypatch):
    write_mnist(place / "data", 51, ("t10k", "train"))
    calls = []

    @cached
    def load(split):
        calls.append(split)
        return mnist.load(split=split).x.mean()

    def compute(case):
        return pl.DataFrame({"mean": [float(load("test"))]})

    swept = lab.sweep([lab.Case(seed=seed) for seed in range(3)], compute, "cached", jobs=1)
    (maker,) = swept.made_by
    assert (maker.runs, list(maker.data), calls) == (3, ["mnist test"], ["test"])
    write_mnist(place / "data", 102, ("t10k",))
    assert float(load("test")) == pytest.approx(0.4)
    write_mnist(place / "elsewhere", 153)
    monkeypatch.setenv("ADVLAB_DATA", str(place / "elsewhere"))
    assert float(load("test")) == pytest.approx(0.6)
    assert len(calls) == 3
    load.cache_clear()
    load("test")
    assert (len(calls), load.__name__) == (4, "load")


def test_zeros_and_ones_are_recorded_from_the_cache_too(place):
    write_mnist(place / "data", 51, ("t10k", "train"))
    for _ in range(2):
        with recording() as read:
            zeros_and_ones.digits("train")
        assert list(read) == ["mnist train"]


def test_a_given_directory_and_other_sets_are_found_again(place):
    with recording() as read:
        mnist.load(directory=write_mnist(place / "mine", 102), split="test")
        x, y = np.zeros((4, 3, 32, 32), np.uint8), np.arange(4)
        np.savez(place / "data" / "cifar10-test-4.npz", images=x, labels=y)
        cifar10.load(split="test")
    assert list(read) == [f"mnist test in {place / 'mine'}", "cifar10 test"]
    assert changes(read) == DataChanges()
    np.savez(place / "data" / "cifar10-test-4.npz", images=x + 1, labels=y)
    shutil.rmtree("mine")
    assert changes(read) == DataChanges(["cifar10-test-4.npz"], [f"mnist test in {place / 'mine'}"])
    (place / "data" / "cifar10-test-4.npz").unlink()
    assert len(changes(read).missing) == 2
    assert changes({"of a later version": {}}).missing == ["of a later version"]


def test_a_file_read_by_own_code_is_recorded(place):
    Path("own.csv").write_text("a\n1\n")
    with recording() as read:
        assert recorded("own.csv") == Path("own.csv")
    assert read == {"file own.csv": {"own.csv": content(Path("own.csv"))}}
    with recording(), pytest.raises(AdvlabError, match=r"can be read; got gone.csv"):
        recorded("gone.csv")


def test_threads_inside_a_recording_are_recorded(place):
    with recording() as read:
        thread = threading.Thread(target=lambda: mnist.load(split="test"))
        thread.start()
        thread.join()
    assert list(read) == ["mnist test"]


def test_a_file_that_changes_while_it_is_read_is_refused(place, monkeypatch):
    def meanwhile(path, *keys):
        np.savez(path, x=np.zeros((3, 2)), y=np.arange(3))
        return real(path, *keys)

    real = arrays.read_npz
    np.savez("own.npz", x=np.ones((3, 2)), y=np.arange(3))
    monkeypatch.setattr(arrays, "read_npz", meanwhile)
    with recording(), pytest.raises(AdvlabError, match=r"own.npz, which was changed"):
        arrays.load("own.npz")


def test_a_file_is_hashed_once(place, monkeypatch):
    hashed = []
    checksum = datafiles.file_checksum

    def counted(path):
        hashed.append(path)
        return checksum(path)

    monkeypatch.setattr(datafiles, "file_checksum", counted)
    monkeypatch.setattr(datafiles, "_MOMENT", -1)
    for _ in range(3):
        with recording():
            mnist.load(split="test")
    assert len(hashed) == 2
    monkeypatch.setattr(datafiles, "_MOMENT", 2 * 10**9)
    Path("fresh").write_text("1")
    content(Path("fresh"))
    content(Path("fresh"))  # it may have been written again within the clock's tick
    assert len(hashed) == 4


def test_data_that_change_during_the_sweep_leave_no_number(place):
    def compute(case):
        found = float(mnist.load(split="test").x.mean())
        write_mnist(place / "data", 102)
        return pl.DataFrame({"mean": [found]})

    swept = lab.sweep([lab.Case()], compute, "changing", jobs=1)
    assert [one.reason for one in swept.failed] == [
        "its data files were changed while the sweep went on"
    ]
