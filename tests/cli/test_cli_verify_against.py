"""advlab verify --against: which verdicts and numbers of a new run are not those of a summary."""

import json
import shutil

import polars as pl
import pytest

from advlab import lab
from advlab.cli import main
from advlab.lab import summary
from advlab.report import Result

TOY = '''
"""Squares of small numbers."""
import altair as alt
import polars as pl
from advlab import lab
from advlab.report import Verdict

ABOUT = lab.About(paper="toy", item="Figure 2", title="Squares", seconds={"laptop": 1},
                  claims={"a": "squares are large", "b": "squares are even"})

class Case(lab.Case):
    size: int

def recipe(scale, seeds=None):
    return [Case(size=size) for size in (1, 2, 3)]

def compute(case):
    return pl.DataFrame({"square": [float(case.size**2)], "name": [f"n{case.size}"]})

def figure(table):
    return alt.Chart(table).mark_point().encode(x="size:Q")

def verdicts(table):
    return [Verdict(id=id, claim=claim, outcome=outcome, measured=value,
                    rule="is above 1")
            for id, claim, outcome, value in (
                ("a", "squares are large", "supported", table["square"].max()),
                ("b", "squares are even", "refuted", 0.5))]
'''


@pytest.fixture
def store(tmp_path, monkeypatch):
    """A store with one result, and its summary in `published`."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.py").write_text(TOY)
    lab.run("toy.py", out="runs", jobs=1)
    for result, folder in summary.results(tmp_path / "runs"):
        summary.write(
            result,
            summary.table(result, folder),
            tmp_path / f"published/{result.experiment}.parquet",
        )
    return tmp_path


def verify(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["verify", "runs", "--against", "published", *arguments])
    return int(ended.value.code or 0)


def plant(store, **changed):
    """Another verdict a in the stored result."""
    (path,) = store.rglob("result-laptop.json")
    result = Result.read(path.read_bytes())
    first = result.verdicts[0].model_copy(update=changed)
    moved = result.model_copy(update={"verdicts": [first, *result.verdicts[1:]]})
    path.write_text(moved.sealed())


def test_the_same_run_moved_nothing(store, capsys):
    assert verify() == 0
    said = capsys.readouterr().out
    assert "verdicts that moved: none" in said
    assert "the same" in said


def test_a_planted_verdict_is_found(store, capsys):
    plant(store, outcome="refuted")
    assert verify() == 1
    said = capsys.readouterr().out
    assert "toy/a: supported (9) -> refuted (9)" in said
    assert "verdicts that moved: 1" in said


def test_a_number_that_moved_is_told_and_is_no_failure(store, capsys):
    plant(store, measured=9.5)
    assert verify("--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["compared"]
    assert (found["verdicts_moved"], found["numbers_moved"]) == (0, 1)
    assert found["columns"] == {}


def test_a_claim_that_is_gone_counts_as_moved(store):
    (path,) = store.rglob("result-laptop.json")
    result = Result.read(path.read_bytes())
    path.write_text(result.model_copy(update={"verdicts": result.verdicts[1:]}).sealed())
    assert verify() == 1


def test_a_cell_that_moved_is_told(store, capsys):
    (file,) = store.glob("published/*.parquet")
    old = summary.read(file)
    moved = pl.when(pl.col("size") == 2).then(4.001).otherwise(pl.col("square"))
    summary.write(old.result, old.table.with_columns(square=moved), file)
    assert verify("--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["compared"]
    assert found["columns"]["square"]["share"] == pytest.approx(1 / 3)
    assert found["columns"]["square"]["largest"] == pytest.approx(0.001 / 4.001)


def test_what_cannot_be_compared_is_one_line(store, capsys):
    shutil.rmtree(store / "published")
    assert verify() == 2
    assert "a folder; got published, which is none" in capsys.readouterr().err
    (store / "published").mkdir()
    assert verify() == 2
    assert "laptop-scale results that published knows; got only toy" in capsys.readouterr().err


def test_a_damaged_run_is_named(store, capsys):
    next(store.rglob("metrics.parquet")).write_bytes(b"nothing")
    assert verify() == 2
    assert "metrics.parquet is not what was written" in capsys.readouterr().err


@pytest.mark.parametrize(("old", "new"), [(8.33e-16, 8.05e-16), (0.0, 4e-13), (-1e-13, 1e-13)])
def test_what_is_left_of_an_identity_is_rounding(store, capsys, old, new):
    (file,) = store.glob("published/*.parquet")
    known = summary.read(file)
    small = known.table.with_columns(square=pl.lit(new))
    plant(store, measured=new, low=new, high=new)
    (path,) = store.rglob("result-laptop.json")
    first, *rest = known.result.verdicts
    planted = first.model_copy(update={"measured": old, "low": old, "high": old})
    verdicts = {"verdicts": [planted, *rest]}
    summary.write(
        known.result.model_copy(update=verdicts), small.with_columns(square=pl.lit(old)), file
    )
    moved = summary.compare(summary.read(file), Result.read(path.read_bytes()), small)
    assert (moved.numbers, moved.different) == (0, {})
    assert verify() == 0
    assert "toy/a" not in capsys.readouterr().out


@pytest.mark.parametrize(("old", "new"), [(1e-11, 2e-11), (0.0, 1e-6), (1.0, 1.0 + 1e-8)])
def test_what_is_more_than_rounding_has_moved(store, old, new):
    (file,) = store.glob("published/*.parquet")
    known = summary.read(file)
    first, *rest = known.result.verdicts
    before, after = (
        known.result.model_copy(
            update={"verdicts": [first.model_copy(update={"measured": one}), *rest]}
        )
        for one in (old, new)
    )
    summary.write(before, known.table.with_columns(square=pl.lit(old)), file)
    moved = summary.compare(summary.read(file), after, known.table.with_columns(square=pl.lit(new)))
    assert moved.numbers == 1
    assert list(moved.different) == ["square"]


def test_other_cases_and_other_code_are_told(store, capsys):
    (file,) = store.glob("published/*.parquet")
    old = summary.read(file)
    assert len(old.cases) == 3
    assert len(old.code) == 1
    assert verify() == 0
    assert "note" not in capsys.readouterr().out
    ((result, folder),) = summary.results(store / "runs")
    first, *others = result.runs
    maker = result.made_by[0].model_copy(update={"code": "0" * 16})
    changed = {"runs": {"f" * 16: "", **dict.fromkeys(others, "")}, "made_by": [maker]}
    summary.write(result.model_copy(update=changed), summary.table(result, folder), file)
    assert first not in summary.read(file).cases
    assert verify("--json") == 0
    (found,) = json.loads(capsys.readouterr().out)["compared"]
    assert found["made_otherwise"] == [
        "other cases: 2 of the summary's 3, and 1 more",
        f"computed by other code: {'0' * 16} in the summary, {min(old.code)} here",
    ]
    assert verify() == 0
    assert "note: toy: other cases: 2 of the summary's 3, and 1 more" in capsys.readouterr().out


def test_a_summary_says_whether_todays_recipe_made_it(store):
    (file,) = store.glob("published/*.parquet")
    toy, old = lab.load("toy.py"), summary.read(file)
    keys = [case.key() for case in toy.cases("laptop")]
    assert summary.outdated(old, keys, toy.code("laptop")) == []
    assert summary.outdated(old, keys, None) == []
    assert summary.outdated(old, keys[1:], None) == [
        "other cases: 2 of the summary's 3, and 0 more"
    ]
    assert len(summary.outdated(old, keys[1:], "0" * 16)) == 2
    summary.write(old.result, old.table, file)  # as those from before this was recorded
    assert summary.outdated(summary.read(file), keys, None) == [
        "not recorded: of which cases the summary is, and by which code"
    ]
