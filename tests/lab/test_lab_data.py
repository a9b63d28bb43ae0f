"""Runs record the data files that they rest on, and are computed again when these change."""

import os
import struct
from pathlib import Path

import numpy as np
import pytest

from advlab import lab
from advlab.core.files import DATA_READ

EXPERIMENT = """
import altair as alt, polars as pl
from advlab import lab
from advlab.data import mnist
from advlab.report import Claims

ABOUT = lab.About(paper="own", item="0", title="Pixels", seconds={"laptop": 1},
                  claims={"dark": "pixels are dark"})

def recipe(scale, seeds=None):
    return [lab.Case()]

def compute(case):
    return pl.DataFrame({"seed": [0], "mean": [float(mnist.load(split="test").x.mean())]})

def figure(table):
    return alt.Chart(table).mark_point().encode(x="mean:Q")

def verdicts(table):
    return [Claims(ABOUT.claims).below("dark", float(table["mean"][0]), 0.5, what="mean")]
"""


def write_mnist(folder: Path, value: int) -> None:
    for kind, array in (
        ("images-idx3", np.full((4, 28, 28), value, np.uint8)),
        ("labels-idx1", np.arange(4, dtype=np.uint8)),
    ):
        header = struct.pack(f">4B{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
        (folder / f"t10k-{kind}-ubyte").write_bytes(header + array.tobytes())


@pytest.fixture
def place(tmp_path, monkeypatch) -> Path:
    (tmp_path / "data" / "mnist").mkdir(parents=True)
    monkeypatch.setenv("ADVLAB_DATA", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    kept = dict(DATA_READ)
    DATA_READ.clear()
    write_mnist(tmp_path / "data" / "mnist", 51)
    Path("pixels.py").write_text(EXPERIMENT)
    yield tmp_path
    DATA_READ.clear()
    DATA_READ.update(kept)


def test_other_data_are_said_and_computed_again_unless_runs_are_kept(place, capsys):
    def mean(**more) -> float:
        result = lab.run("pixels.py", scale="laptop", jobs=1, out=place / "runs", **more)
        (maker,) = result.made_by
        assert set(maker.data) == {
            "mnist/t10k-images-idx3-ubyte",
            "mnist/t10k-labels-idx1-ubyte",
        }
        return result.verdicts[0].measured

    assert mean() == pytest.approx(0.2)
    assert mean() == pytest.approx(0.2)
    assert "other data" not in capsys.readouterr().err
    write_mnist(place / "data" / "mnist", 102)
    os.utime(place / "data" / "mnist" / "t10k-images-idx3-ubyte", (1, 1))
    assert mean(reuse=True) == pytest.approx(0.2)
    assert "computed from other data: 1 run, kept" in capsys.readouterr().err
    assert mean() == pytest.approx(0.4)
    assert "computed from other data: 1 run, computed again" in capsys.readouterr().err


def test_data_that_are_gone_are_other_data(place, capsys):
    lab.run("pixels.py", scale="laptop", jobs=1, out=place / "runs")
    for path in (place / "data" / "mnist").iterdir():
        path.unlink()
    capsys.readouterr()
    result = lab.run("pixels.py", scale="laptop", jobs=1, out=place / "runs")
    assert "computed from other data: 1 run" in capsys.readouterr().err
    assert len(result.failed) == 1
