"""advlab compare, and the curve of advlab attack: what they print, write and refuse."""

import json
from pathlib import Path

import evaluated_nets as nets
import numpy as np
import polars as pl
import pytest

from advlab.cli import main
from advlab.lab.verify import verify

MODEL = "evaluated_nets:trained"
QUICK = ("--eps", "0.1", "--box", "0,1", "--attack", "fast")


def called(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return stop.value.code or 0


@pytest.fixture
def data(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    x, y = nets.blobs(40)
    np.savez(tmp_path / "data.npz", x=x.numpy(), y=y.numpy())
    return tmp_path / "data.npz"


def test_two_folders_are_compared_row_by_row(data, capsys):
    for place in ("a", "b"):
        assert called("attack", MODEL, data, *QUICK, "--no-checks", "--out", place) == 0
    capsys.readouterr()
    assert called("compare", "a", "b") == 0
    shown = capsys.readouterr().out
    assert "A: evaluated_nets:trained, robust error at least" in shown
    assert "these examples do not tell the two apart" in shown
    assert called("compare", "a", "b", "--json") == 0
    numbers = json.loads(capsys.readouterr().out)
    assert numbers["difference"] == 0
    assert numbers["only_a"] == []


def test_two_models_are_attacked_in_the_same_way_first(data, capsys):
    assert called("compare", MODEL, MODEL, data, *QUICK, "--n", 20, "--json") == 0
    assert json.loads(capsys.readouterr().out)["n"] == 20


def test_what_cannot_be_compared_is_refused_in_a_line(data, capsys):
    assert called("attack", MODEL, data, *QUICK, "--no-checks", "--out", "a") == 0
    other = ("--eps", "0.2", *QUICK[2:])
    assert called("attack", MODEL, data, *other, "--no-checks", "--out", "b") == 0
    capsys.readouterr()
    assert called("compare", "a", "b") == 2
    assert "same threat set" in capsys.readouterr().err
    assert called("compare", "a", "nowhere") == 2
    assert "evaluation.json" in capsys.readouterr().err
    Path("b/evaluation.json").write_text("{}")
    assert called("compare", "a", "b") == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_curve_leaves_a_table_and_a_figure_and_is_verified(data, capsys):
    options = ("--curve", "--no-checks", "--budget", "60s", "--out", "out")
    assert called("attack", MODEL, data, *QUICK, *options) == 0
    assert "curve: out/curve.csv" in capsys.readouterr().out
    table = pl.read_csv("out/curve.csv")
    assert table.columns == ["eps", "at_least", "at_most", "low", "high"]
    assert (table["at_least"] <= table["at_most"]).all()
    assert Path("out/curve.svg").read_text().startswith("<svg")
    assert Path("out/curve.png").read_bytes()[:4] == b"\x89PNG"
    about = json.loads(Path("out/evaluation.json").read_text())
    assert len(about["robustness_curve"]["broken_at"]) == 40
    assert about["budget"] == 60
    assert "Robust error of 40 examples" in Path("out/report.html").read_text()
    assert [one.problems for one in verify("out")] == [[]]
    Path("out/curve.csv").write_text("eps\n1\n")
    assert verify("out")[0].problems


def test_a_budget_that_is_no_time_is_refused(data, capsys):
    assert called("attack", MODEL, data, *QUICK, "--budget", "soon") == 2
    assert "budget" in capsys.readouterr().err
