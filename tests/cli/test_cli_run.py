"""advlab run and advlab list, from arguments to what they print and leave on disk."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
import toy_experiment as toy
import toy_numpy

from advlab import lab, papers
from advlab.cli import main
from advlab.core.errors import AdvlabError
from advlab.lab import provenance
from advlab.report import figure

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
    assert "take about 10 s" in captured.err


def test_a_run_leaves_figure_table_and_page_and_says_where(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    arguments = ("run", TOY, "--seeds", 2, "--jobs", 1, "--out", tmp_path)
    assert called(*arguments) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 6
    assert "Mean squares" in lines[0]
    assert lines[1].strip() == "1 claim: 1 supported"
    (drawing,) = (Path(line.split()[1]) for line in lines if line.split()[:1] == ["figure"])
    assert drawing.name == "figure.svg"
    assert drawing.read_text().startswith("<svg")
    assert drawing.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert "the mean square of normal numbers is 1" in drawing.with_name("report.html").read_text()
    numbers = pl.read_csv(drawing.with_name("table.csv"))
    assert numbers.height > 0
    assert numbers.columns[0] == "panel"
    # What is made to be looked at does not count as foreign.
    assert called("verify", tmp_path) == 0
    capsys.readouterr()
    assert called(*arguments, "--verbose") == 0
    assert "rule: " in capsys.readouterr().out
    assert called(*arguments, "--quiet") == 0
    assert tuple(capsys.readouterr()) == ("", "")
    assert called(*arguments, "--quiet", "--fresh") == 0
    assert tuple(capsys.readouterr()) == ("", "")
    assert called(*arguments, "--quiet", "--verbose") == 2


def test_a_time_is_said_of_what_is_missing_alone(tmp_path, capsys):
    arguments = ("run", TOY, "--jobs", 1, "--out", tmp_path)
    assert called(*arguments, "--seeds", 2) == 0
    assert "take about 10 s" in capsys.readouterr().err
    assert called(*arguments, "--seeds", 2) == 0
    assert "about" not in capsys.readouterr().err


@pytest.mark.parametrize(("place", "left"), [("svg", ()), ("png", ("figure.svg",))])
def test_a_figure_that_cannot_be_drawn_is_one_line_and_loses_no_result(
    tmp_path, capsys, monkeypatch, place, left
):
    arguments = ("run", TOY, "--seeds", 2, "--jobs", 1, "--out", tmp_path, "--json")
    assert called(*arguments) == 0
    capsys.readouterr()

    def fails(*_, **__):
        raise RuntimeError("SVG has an invalid size\nstack backtrace:\n  0: main")

    broken = {"svg": "vegalite_to_svg", "png": "svg_to_png"}[place]
    monkeypatch.setattr(figure.vl_convert, broken, fails)
    assert called(*arguments) == 4
    said = capsys.readouterr()
    assert json.loads(said.out)["verdicts"][0]["outcome"] == "supported"
    (line,) = [one for one in said.err.splitlines() if "no figure" in one]
    assert line.endswith("toy_experiment: the converter says: SVG has an invalid size")
    (page,) = tmp_path.rglob("report.html")
    names = {path.name for path in page.parent.iterdir() if path.suffix in (".svg", ".png", ".csv")}
    # A figure of the run before would be another's.
    assert names == {"table.csv", *left}


CLAIMS = """
import polars as pl
from advlab import lab
from advlab.report import Claims
from advlab.report.charts import points

ABOUT = lab.About(
    paper="toy", item="Figure 1", title="Words that go on",
    claims={"a": "Most numbers are positive", "b": "and more than 0.9 of them above 1",
            "c": "and none is above 9"},
    seconds={"smoke": 1, "laptop": 1},
)


class Case(lab.Case):
    pass


def recipe(scale, seeds=None):
    return [Case(**block) for block in lab.blocks(seeds or 4, 4)]


def compute(case):
    return pl.DataFrame({"seed": list(case.seeds), "x": [2.0] * case.replicates})


def figure(table):
    return points(table, "seed", "x")


def verdicts(table):
    claims = Claims(ABOUT.claims)
    return [
        claims.below("c", 2.0, 1, what="largest number"),
        claims.above("b", {"all": 0.2, "half": 0.1}, 0, what="what is left to the bound"),
        claims.above("a", 1.0, 0.5, what="share"),
    ]
"""


def test_a_refuted_claim_that_goes_on_stands_behind_the_ones_it_continues(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "250")
    (tmp_path / "goes_on.py").write_text(CLAIMS)
    arguments = ("run", tmp_path / "goes_on.py", "--jobs", 1, "--out", tmp_path / "runs")
    assert called(*arguments) == 0
    assert (
        "refuted c: and none is above 9 [continues a: Most numbers are positive; "
        "b: and more than 0.9 of them above 1]" in capsys.readouterr().out
    )
    assert called(*arguments, "--json") == 0
    (line,) = capsys.readouterr().out.splitlines()
    names = [one["id"].rpartition("/")[2] for one in json.loads(line)["verdicts"]]
    assert names == ["a", "b", "c"]  # as they are claimed, not as they were decided


def test_verbose_tells_the_quantity_of_the_claim(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "250")
    text = CLAIMS.replace('"all": 0.2, "half": 0.1', '"share, above 0.5": 0.2, "gap below 2": 1.1')
    (tmp_path / "own_unit.py").write_text(text)
    arguments = ("run", tmp_path / "own_unit.py", "--jobs", 1, "--out", tmp_path / "runs")
    assert called(*arguments, "--verbose") == 0
    said = capsys.readouterr().out
    assert "measured 0.7; rule: share is above 0.5, the worst of 2 such bounds" in said
    assert "what is left" not in said


def test_the_page_of_a_run_names_the_machine(tmp_path, capsys):
    assert called("run", TOY, "--seeds", 2, "--jobs", 1, "--out", tmp_path) == 0
    (page,) = tmp_path.rglob("report.html")
    assert f"<dt>machine</dt><dd>{provenance.machine()}</dd>" in page.read_text()
    assert re.fullmatch(r"\S.*, \d+ cores?, \S.*", provenance.machine())


def test_smoke_prints_no_verdicts(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    for more in ((), ("--verbose",)):
        assert called("run", TOY, "--scale", "smoke", "--jobs", 1, "--out", tmp_path, *more) == 0
        text = capsys.readouterr().out
        assert "smoke scale decides no claims" in text
        assert "undecided" not in text


def test_a_figure_of_several_papers_names_them_all(capsys):
    assert called("run", "fig5") == 2
    said = capsys.readouterr().err
    assert "benign/fig5 or generalization/fig5" in said
    assert called("run", "convergence/fig5x") == 2
    assert "generalization/fig5" in capsys.readouterr().err


def test_the_shell_completes_verbs_and_experiments(monkeypatch, capsys):
    monkeypatch.setenv("_ADVLAB_COMPLETE", "complete_bash")
    for typed, found in (("advlab ver", "verify"), ("advlab run benign/fi", "benign/fig1")):
        monkeypatch.setenv("COMP_WORDS", typed)
        monkeypatch.setenv("COMP_CWORD", str(len(typed.split()) - 1))
        called()
        assert found in capsys.readouterr().out.split()


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


@pytest.mark.parametrize("columns", [80, 250])
def test_list_shows_times_without_names(capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    names = ("generalization/fig1", "generalization/fig5")
    few = {name: papers.EXPERIMENTS[name] for name in names}
    monkeypatch.setattr(papers, "EXPERIMENTS", few)
    assert called("list") == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split()[-1] == "laptop"
    named = [line for line in lines if not line.startswith(" ")]
    assert [line.split()[0] for line in named] == [*few, "all"]
    times = [int(line.split()[-2]) for line in named]
    assert times[-1] == sum(times[:-1])
    assert all(line.rstrip().endswith(" s") for line in named)  # rows that go on have no times
    assert all(len(line.rstrip()) <= columns for line in lines)


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


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("cgro/ph", ["cgro/phases", "cgro/phase_times"]),
        ("gen", [name for name in ("generalization", *papers.EXPERIMENTS) if name[:3] == "gen"]),
        ("phas", ["phases", "phase_times"]),
        ("fig13", ["fig13"]),
        ("nothing", []),
    ],
)
def test_the_shell_completes_names_of_papers_and_of_items(typed, found):
    words = {"COMP_WORDS": f"advlab run {typed}", "COMP_CWORD": "2"}
    told = subprocess.run(
        [sys.executable, "-m", "advlab"],
        env={**os.environ, **words, "_ADVLAB_COMPLETE": "complete_bash"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.stdout.split() == found


def test_a_name_without_its_paper_is_enough_where_one_paper_has_it():
    assert papers.select("phases") == ["cgro/phases"]
    with pytest.raises(AdvlabError, match="generalization/fig13 or purification/fig13"):
        papers.select("fig13")
