"""An experiment from its file to its result: verdicts, chart, settings, and what failed."""

import errno
import os
import re
import shutil
from pathlib import Path

import filelock
import polars as pl
import pytest
import toy_experiment as toy

from advlab import lab
from advlab.core.errors import AdvlabError
from advlab.core.files import file_checksum
from advlab.lab import provenance
from advlab.lab import store as store_module
from advlab.lab.loader import name
from advlab.lab.origin import Origin, own_folder, read_origin
from advlab.report import Result

TOY = str(Path(toy.__file__))


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def result(out):
    return lab.run(TOY, scale="laptop", jobs=1, out=out)


def failing_at(size: int, experiment: lab.Experiment) -> lab.Experiment:
    def compute(case):
        if case.size == size:
            raise ArithmeticError("diverged")
        return experiment.compute(case)

    return lab.Experiment(**{**vars(experiment), "compute": compute, "source": None})


def test_the_result_says_what_was_run(result):
    table = pl.concat([toy.compute(case).table for case in toy.recipe("laptop")])
    (verdict,) = result.verdicts
    assert verdict.outcome == "supported"
    assert verdict.measured == pytest.approx(table["square"].mean(), rel=1e-12)
    assert (result.paper, result.item, result.title) == ("toy", "Figure 0", "Mean squares")
    assert result.about.startswith("Toy figure")
    assert (result.scale, result.seeds, result.cases) == ("laptop", 4, 4)
    assert result.settings == {"size": [200, 300]}
    assert result.failed == []
    assert 0 < result.cpu < result.seconds + 1
    assert 10e6 < result.memory < 100e9
    assert result.versions["polars"] == pl.__version__
    assert result.chart["mark"]["type"] == "point"
    assert sum(len(rows) for rows in result.chart["datasets"].values()) == 8


def test_the_result_is_on_disk(result, out):
    path = out / result.experiment / "result-laptop.json"
    assert Result.read(path.read_bytes()) == result


def test_the_result_names_its_runs_and_what_made_them(out, result):
    folder = out / result.experiment
    keys = [case.key() for case in toy.recipe("laptop")]
    assert result.runs == {key: file_checksum(folder / key / "run.json") for key in keys}
    (maker,) = result.made_by
    assert (maker.versions, maker.commit) == (provenance.versions(), provenance.commit())
    assert (maker.code, maker.runs) == (lab.load(TOY).code("laptop"), 4)


def test_runs_of_another_version_keep_their_stamp(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(provenance, "versions", lambda: {"advlab": "0.0.1"})
        patch.setattr(provenance, "commit", lambda: "an older one")
        lab.run(TOY, scale="smoke", seeds=2, jobs=1, out=tmp_path)
    result = lab.run(TOY, scale="smoke", seeds=4, jobs=1, out=tmp_path)
    assert result.versions == provenance.versions()
    stamps = [(maker.versions["advlab"], maker.commit, maker.runs) for maker in result.made_by]
    today = (provenance.versions()["advlab"], provenance.commit(), 2)
    assert sorted(stamps) == sorted([("0.0.1", "an older one", 2), today])


def test_a_complete_store_on_a_read_only_disk_gives_its_result(tmp_path, monkeypatch, capsys):
    first = lab.run(TOY, scale="smoke", jobs=1, out=tmp_path)

    def refused(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")}
    for place, call in [
        (Path, "mkdir"), (Path, "unlink"), (filelock.FileLock, "acquire"), (os, "rename"),
        (os, "replace"), (store_module, "write_synced"),
    ]:  # fmt: skip
        monkeypatch.setattr(place, call, refused)
    again = lab.run(TOY, scale="smoke", jobs=1, out=tmp_path)
    assert (again.verdicts, again.runs, again.chart) == (first.verdicts, first.runs, first.chart)
    assert "read-only: nothing was written" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*")} == before
    with pytest.raises(AdvlabError, match="Read-only file system"):
        lab.run(TOY, scale="smoke", seeds=6, jobs=1, out=tmp_path)


def test_two_files_of_one_name_give_their_own_numbers(tmp_path):
    text = Path(TOY).read_text()
    for folder, size in (("a", 40), ("b", 50)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "fig.py").write_text(text.replace("(40, 60)", f"({size}, 60)"))
    results = [
        lab.run(str(tmp_path / folder / "fig.py"), scale="smoke", jobs=1, out=tmp_path / "runs")
        for folder in ("a", "b", "a")
    ]
    assert [result.settings["size"][0] for result in results] == [40, 50, 40]
    assert results[0].verdicts == results[2].verdicts != results[1].verdicts
    assert results[0].runs == results[2].runs
    assert len({result.experiment for result in results}) == 2
    assert len(list((tmp_path / "runs").glob("fig-*"))) == 2


def test_one_name_run_from_two_folders_has_two_stores(tmp_path, monkeypatch, capsys):
    text = Path(TOY).read_text()
    results = []
    for folder, size in (("a", 40), ("b", 50), ("a", 40), ("b", 50)):
        (tmp_path / folder).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / folder)
        Path("fig.py").write_text(text.replace("(40, 60)", f"({size}, 60)"))
        results.append(lab.run("fig.py", scale="smoke", jobs=1, out=tmp_path / "runs"))
    assert [result.settings["size"][0] for result in results] == [40, 50, 40, 50]
    assert results[0].runs == results[2].runs
    assert results[1].runs == results[3].runs
    assert results[0].experiment == "fig"
    assert re.fullmatch("fig-[0-9a-f]{8}", results[1].experiment)
    assert results[1].experiment == results[3].experiment
    said = capsys.readouterr().err
    assert "holds runs of another source; these are in fig-" in said
    assert "other code" not in said
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"fig", results[1].experiment}


def test_a_folder_belongs_to_its_source_wherever_both_are_moved(tmp_path, monkeypatch, capsys):
    home, out = tmp_path / "home", tmp_path / "home" / "runs"
    home.mkdir()
    shutil.copy(TOY, home / "fig.py")
    assert own_folder(out, "fig", str(home / "fig.py")) == "fig"
    assert own_folder(out, "fig", str(home / "fig.py")) == "fig"
    origin = read_origin(out / "fig")
    assert origin == Origin(str(home / "fig.py"), "../fig.py")
    home.rename(tmp_path / "moved")
    moved = tmp_path / "moved"
    assert own_folder(moved / "runs", "fig", str(moved / "fig.py")) == "fig"
    assert read_origin(moved / "runs" / "fig").source == str(moved / "fig.py")
    (moved / "runs").rename(tmp_path / "archive")
    assert own_folder(tmp_path / "archive", "fig", str(moved / "fig.py")) == "fig"
    assert capsys.readouterr().err == ""
    # The names of experiments that come with advlab are theirs.
    assert own_folder(out, "generalization/fig5", "generalization/fig5") == "generalization/fig5"
    other = own_folder(out, "generalization/fig5", str(moved / "fig.py"))
    assert re.fullmatch(r"generalization/fig5-[0-9a-f]{8}", other)
    # A module is known by its file.
    assert own_folder(tmp_path / "archive", "toy_experiment", "toy_experiment") == "toy_experiment"
    module = read_origin(tmp_path / "archive" / "toy_experiment")
    assert module.source == str(Path(TOY).resolve())
    assert own_folder(tmp_path / "archive", "toy_experiment", "toy_numpy") != "toy_experiment"


def test_a_folder_from_before_it_was_marked_and_a_damaged_mark(tmp_path, capsys):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        shutil.copy(TOY, tmp_path / folder / "fig.py")
    out, one, two = tmp_path / "runs", *(str(tmp_path / place / "fig.py") for place in "ab")
    result = lab.run(one, scale="smoke", jobs=1, out=out)
    mark = out / result.experiment / "source.json"
    mark.unlink()
    assert own_folder(out, result.experiment, two) != result.experiment
    assert own_folder(out, result.experiment, one) == result.experiment
    data = mark.read_bytes()
    mark.write_bytes(data.replace(b"fig", b"fog"))
    assert own_folder(out, result.experiment, one) == result.experiment
    assert "source.json is damaged and written anew" in capsys.readouterr().err
    assert mark.read_bytes() == data


def test_a_second_run_computes_nothing_and_says_the_same(result, out):
    def compute(case):
        raise AssertionError("nothing is left to compute")

    still = lab.Experiment(**{**vars(lab.load(TOY)), "compute": compute, "source": None})
    again = lab.run(still, scale="laptop", jobs=1, out=out, reuse=True)
    assert again.verdicts == result.verdicts
    assert again.seconds == result.seconds


def test_smoke_decides_nothing(out):
    (verdict,) = lab.run(TOY, scale="smoke", jobs=1, out=out).verdicts
    assert verdict.outcome == "undecided"
    assert verdict.measured is not None
    assert "smoke" in verdict.note


def test_failed_cases_are_in_the_result_and_in_the_note(tmp_path):
    experiment = failing_at(300, lab.load(TOY))
    result = lab.run(experiment, scale="laptop", jobs=1, out=tmp_path)
    assert [failure.case["size"] for failure in result.failed] == [300, 300]
    assert {failure.reason for failure in result.failed} == {"ArithmeticError: diverged"}
    assert "2 cases failed" in result.verdicts[0].note


def test_nothing_is_decided_without_runs(tmp_path):
    experiment = failing_at(300, lab.load(TOY))
    cases = [case for case in toy.recipe("laptop") if case.size == 300]
    only = lab.Experiment(**{**vars(experiment), "recipe": lambda scale, seeds: cases})
    result = lab.run(only, scale="laptop", jobs=1, out=tmp_path)
    assert [verdict.outcome for verdict in result.verdicts] == ["undecided"]
    assert result.chart == {}


def test_a_mistake_in_the_verdicts_shows(out):
    def verdicts(table):
        raise KeyError("no such column")

    wrong = lab.Experiment(**{**vars(lab.load(TOY)), "verdicts": verdicts})
    with pytest.raises(KeyError):
        lab.run(wrong, scale="laptop", jobs=1, out=out)


def test_more_seeds_keep_the_earlier_runs(result, out):
    computed = []
    experiment = lab.load(TOY)

    def compute(case):
        computed.append(case)
        return experiment.compute(case)

    watched = lab.Experiment(**{**vars(experiment), "compute": compute, "source": None})
    more = lab.run(watched, scale="laptop", seeds=6, jobs=1, out=out, reuse=True)
    assert more.seeds == 6
    assert sorted((case.size, case.seed) for case in computed) == [(200, 4), (300, 4)]
    assert experiment.estimate("laptop", 6) == pytest.approx(30)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"scale": "paper"}, "smoke, laptop"), ({"seeds": 0}, "at least one seed")],
)
def test_a_scale_or_seeds_that_cannot_be(tmp_path, settings, message):
    with pytest.raises(AdvlabError, match=message):
        lab.run(TOY, **{"scale": "laptop", "out": tmp_path, **settings})


def test_sources_and_their_names(monkeypatch):
    folder = Path(toy.__file__).parent
    monkeypatch.chdir(folder)
    assert name("toy_experiment.py") == "toy_experiment"
    assert name(str(folder / "toy_experiment.py")) == "toy_experiment"
    assert name("../helpers/toy_experiment.py") == "toy_experiment"
    elsewhere = [name(f"/{place}/my_figure.py") for place in ("here", "there", "here")]
    assert all(re.fullmatch("my_figure-[0-9a-f]{8}", one) for one in elsewhere)
    assert elsewhere[0] == elsewhere[2] != elsewhere[1]
    assert name("generalization/fig5") == "generalization/fig5"
    assert name("advlab.papers.generalization.experiments.fig5") == "generalization/fig5"
    assert name("my_package.my_figure") == "my_package.my_figure"
    assert lab.load("toy_experiment").about == toy.ABOUT
    assert lab.load("toy_experiment.py").about.title == toy.ABOUT.title


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("no_such_module", "no module no_such_module"),
        ("advlab.no_such_module", "no module advlab.no_such_module"),
        ("generalization/no_such_item", "no_such_item"),
        ("no/such/file.py", "does not exist"),
        ("advlab.core.errors", "without ABOUT, recipe, compute, figure, verdicts"),
        ("advlab.core.errors:Nothing", "an object 'Nothing'"),
        ("not a name", "not a module's name"),
        (".hidden", "not a module's name"),
    ],
)
def test_a_source_that_is_no_experiment(source, message):
    with pytest.raises(AdvlabError, match=message):
        lab.load(source)


def test_an_object_of_a_module_and_a_file_with_a_mistake(tmp_path, monkeypatch):
    (tmp_path / "holder_of_one.py").write_text("import toy_experiment as inside\n")
    (tmp_path / "broken.py").write_text("import a_library_that_is_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert lab.load("holder_of_one:inside").about == toy.ABOUT
    for source in ("broken", str(tmp_path / "broken.py")):
        with pytest.raises(ModuleNotFoundError, match="a_library_that_is_not_there"):
            lab.load(source)


def test_the_commit_is_of_this_source():
    assert len(provenance.commit().removesuffix("-dirty")) in (0, 40)
