"""advlab run and advlab list, from arguments to what they print and leave on disk."""

import json
from pathlib import Path

import pytest
import toy_experiment as toy
import toy_numpy

from advlab import lab
from advlab.cli import main

TOY = str(Path(toy.__file__))


def called(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return stop.value.code or 0


def test_run_json_is_one_line_an_experiment(tmp_path, capsys):
    numpy_toy = toy_numpy.__file__
    assert (
        called("run", TOY, numpy_toy, "--seeds", 2, "--jobs", 1, "--out", tmp_path, "--json") == 0
    )
    captured = capsys.readouterr()
    first, second = map(json.loads, captured.out.splitlines())
    assert set(first) == {"experiment", "verdicts"}
    assert first["experiment"].endswith("toy_experiment")
    assert second["experiment"].endswith("toy_numpy")
    (verdict,) = first["verdicts"]
    assert set(verdict) == {
        *("id", "claim", "kind", "outcome", "measured", "low", "high", "rule", "scope")
    }
    assert verdict["id"].endswith("toy_experiment/mean")
    assert verdict["outcome"] == "supported"
    assert "takes about 10 s" in captured.err


def test_run_prints_a_table(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert called("run", TOY, "--scale", "smoke", "--jobs", 1, "--out", tmp_path) == 0
    text = capsys.readouterr().out
    for part in (
        "Mean squares",
        "mean square of normal",
        "undecided",
        "smoke scale decides nothing",
    ):
        assert part in text


def test_failed_cases_are_named_retried_and_make_the_exit_code_3(tmp_path, capsys, monkeypatch):
    arguments = ("run", toy_numpy.__file__, "--seeds", 2, "--jobs", 1, "--out", tmp_path, "--json")
    monkeypatch.setenv("TOY_FAIL", "200")
    assert called(*arguments) == 3
    captured = capsys.readouterr()
    assert "size 200 is told to fail" in captured.err
    assert len(captured.out.splitlines()) == 1
    monkeypatch.delenv("TOY_FAIL")
    assert called(*arguments) == 0
    assert "fail" not in capsys.readouterr().err


def test_fresh_forgets(tmp_path, capsys, monkeypatch):
    arguments = ("run", toy_numpy.__file__, "--seeds", 2, "--jobs", 1, "--out", tmp_path)
    log = tmp_path / "log"
    monkeypatch.setenv("TOY_LOG", str(log))
    for options, computed in (((), 3), ((), 3), (("--fresh",), 6)):
        assert called(*arguments, *options) == 0
        assert len(log.read_text().split()) == computed


def test_an_out_that_is_a_file(tmp_path, capsys):
    (tmp_path / "runs").write_text("mine")
    assert called("run", TOY, "--scale", "smoke", "--out", tmp_path / "runs") == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert str(tmp_path / "runs") in line


def test_ctrl_c_is_130(tmp_path, capsys, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(lab, "run", stop)
    assert called("run", TOY, "--out", tmp_path) == 130


def test_list(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert called("list", TOY) == 0
    text = capsys.readouterr().out
    for part in ("toy_experiment", "Figure 0", "laptop 20 s", "the mean square of normal"):
        assert part in text


def test_list_json(capsys):
    assert called("list", TOY, "--json") == 0
    (entry,) = json.loads(capsys.readouterr().out)
    assert entry == {
        "name": entry["name"],
        "paper": "toy",
        "item": "Figure 0",
        "title": "Mean squares",
        "scales": ["smoke", "laptop"],
        "seconds": {"smoke": 1.0, "laptop": 20.0},
        "claims": {
            f"{entry['name']}/mean": {
                "claim": "the mean square of normal numbers is 1",
                "kind": "ours",
            }
        },
    }
