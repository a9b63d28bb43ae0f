"""A stored run records the code that computed it: what other code computed is not taken for new."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from advlab import lab
from advlab.core.errors import AdvlabError
from advlab.core.seal import seal

EXPERIMENT = '''
"""Toy figure of a user, with a module beside it."""
import altair as alt
import polars as pl
from advlab import lab
from advlab.report import Verdict
from beside import factor

ABOUT = lab.About(
    paper="own", item="Figure 1", title="Squares", seconds={"laptop": 1}, claims={"a": "it is so"}
)
POWER = 2


class Case(lab.Case):
    x: int


def recipe(scale, seeds=None):
    return [Case(x=x) for x in (1, 2, 3)]


def compute(case):
    """One row."""
    return pl.DataFrame({"y": [factor() * case.x**POWER]})


def figure(table):
    return alt.Chart(table).mark_point().encode(x="x:Q", y="y:Q")


def verdicts(table):
    return [Verdict(id="a", claim="it is so", outcome="supported", measured=1.0, rule="always")]
'''


@pytest.fixture
def own(tmp_path):
    (tmp_path / "own.py").write_text(EXPERIMENT)
    (tmp_path / "beside.py").write_text("def factor():\n    return 10\n")
    return tmp_path


def run(folder: Path, *options: str) -> tuple[list[int], str]:
    """The numbers in the store after `advlab run`, and what was said."""
    command = [sys.executable, "-m", "advlab", "run", "own.py", "--jobs", "1", "--json", *options]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = {
        json.loads((path.parent / "case.json").read_text())["x"]: pl.read_parquet(path)["y"][0]
        for path in folder.glob("runs/own/*/metrics.parquet")
    }
    return [found[x] for x in sorted(found)], done.stderr


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_other_code_is_said_and_computed_again_unless_it_is_kept(own):
    assert run(own)[0] == [10, 40, 90]

    for old, new in [
        ('"""One row."""', '"""One row, told better."""  # with a comment'),
        ('y="y:Q"', 'y="y:Q", color="x:N"'),
        ('rule="always"', 'rule="always so"'),
        ('title="Squares"', 'title="Squares of numbers"'),
    ]:
        edit(own / "own.py", old, new)
    assert run(own) == ([10, 40, 90], "")

    edit(own / "own.py", "POWER = 2", "POWER = 3")
    numbers, said = run(own, "--reuse")
    assert numbers == [10, 40, 90]
    assert said == "own: computed by other code: 3 runs, kept, as --reuse asks\n"
    numbers, said = run(own)
    assert numbers == [10, 80, 270]
    assert "own: computed by other code: 3 runs, computed again (--reuse keeps them)" in said

    edit(own / "beside.py", "10", "100")
    numbers, said = run(own)
    assert numbers == [100, 800, 2700]
    assert "computed by other code: 3 runs" in said


class Point(lab.Case):
    x: float


def one(case: Point) -> pl.DataFrame:
    return pl.DataFrame({"y": [case.x]})


def two(case: Point) -> pl.DataFrame:
    return pl.DataFrame({"y": [2 * case.x]})


def fails(case: Point) -> pl.DataFrame:
    raise ArithmeticError("diverged")


POINTS = [Point(x=float(x)) for x in range(3)]


def test_a_run_without_a_recorded_code_counts_as_other_code(tmp_path, capsys):
    lab.sweep(POINTS, one, tmp_path, jobs=1)
    path = tmp_path / POINTS[1].key() / "run.json"
    record = json.loads(path.read_text())
    assert len(record.pop("code")) == 16
    del record["seal"]
    path.write_text(seal(json.dumps(record)))
    capsys.readouterr()
    assert lab.sweep(POINTS, one, tmp_path, jobs=1).table["y"].to_list() == [0.0, 1.0, 2.0]
    assert "computed by other code: 1 run, computed again" in capsys.readouterr().err
    assert json.loads(path.read_text())["code"] == json.loads(
        (tmp_path / POINTS[0].key() / "run.json").read_text()
    ).get("code")


def test_the_key_and_the_settings_do_not_depend_on_the_code(tmp_path):
    lab.sweep(POINTS, one, tmp_path / "one", jobs=1)
    lab.sweep(POINTS, two, tmp_path / "two", jobs=1)
    for case in POINTS:
        texts = [(tmp_path / n / case.key() / "case.json").read_text() for n in ("one", "two")]
        assert texts[0] == texts[1]


def test_new_code_that_fails_leaves_a_gap_and_the_old_run(tmp_path):
    lab.sweep(POINTS, one, tmp_path, jobs=1)
    swept = lab.sweep(POINTS, fails, tmp_path, jobs=1)
    assert swept.table.is_empty()
    assert {failure.reason for failure in swept.failed} == {"ArithmeticError: diverged"}
    kept = lab.sweep(POINTS, fails, tmp_path, jobs=1, reuse=True)
    assert kept.table["y"].to_list() == [0.0, 1.0, 2.0]
    assert kept.failed == []


def test_ctrl_c_counts_only_runs_of_this_code(tmp_path, capsys):
    def stopped(case: Point) -> pl.DataFrame:
        if case.x == 1.0:
            raise KeyboardInterrupt
        return two(case)

    lab.sweep(POINTS, one, tmp_path, jobs=1)
    with pytest.raises(KeyboardInterrupt):
        lab.sweep(POINTS, stopped, tmp_path, jobs=1)
    assert "1 of 3 cases are stored" in capsys.readouterr().err


def test_a_worker_with_newer_code_stops_the_sweep(own, monkeypatch):
    monkeypatch.chdir(own)
    monkeypatch.syspath_prepend(own)
    experiment = lab.load("own.py")
    cases = experiment.cases("laptop")

    def old(*sources: object) -> str:
        return "as it was when the sweep began"

    monkeypatch.setattr(sys.modules["advlab.lab.sweep"], "code_fingerprint", old)
    with pytest.raises(AdvlabError, match="code that was changed meanwhile"):
        lab.sweep(cases, experiment.compute, own / "runs", jobs=2, source=experiment.source)
    assert not list((own / "runs").glob("*/metrics.parquet"))
