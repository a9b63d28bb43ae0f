"""`advlab report`: which results it takes, what it says, and its exit codes."""

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
import typer
from sample_results import convergence, lasso, quick

from advlab.cli import report as verb
from advlab.core.errors import AdvlabError
from advlab.lab import summary
from advlab.report import Result

RESULTS = Path(__file__).parents[2] / "results"


def store(out, result: Result) -> None:
    path = out / result.experiment / f"result-{result.scale}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(result.model_dump_json())


def call(place: dict, **options) -> int:
    try:
        verb.report(**place, **options)
    except typer.Exit as stop:
        return stop.exit_code
    return 0


@pytest.fixture
def place(tmp_path):
    return {"out": tmp_path / "runs", "to": tmp_path / "report.html"}


def test_a_refuted_claim_is_named_and_fails(tmp_path, place, capsys):
    store(tmp_path / "runs", convergence())
    assert call(place) == 1
    said = capsys.readouterr()
    assert "refuted: generalization/fig5/5: Adversarial training hurts" in said.err
    assert str(tmp_path / "report.html") in said.out.replace("\n", "")
    assert "Adversarial training hurts" in (tmp_path / "report.html").read_text()


def test_a_known_finding_does_not_fail(tmp_path, place, monkeypatch):
    store(tmp_path / "runs", convergence())
    papers = tmp_path / "advlab" / "papers"
    papers.mkdir(parents=True)
    text = 'finding = "A factor of two."\ndocs = "docs/findings.md#a"\n'
    (papers / "findings.toml").write_text(f'["generalization/fig5/5"]\n{text}')
    monkeypatch.setattr(verb, "__file__", str(tmp_path / "advlab" / "cli" / "report.py"))
    assert call(place) == 0
    assert "A factor of two." in (tmp_path / "report.html").read_text()
    # The same id in another experiment is another verdict.
    (papers / "findings.toml").write_text(f'["generalization/fig6/5"]\n{text}')
    assert call(place) == 1


def test_undecided_claims_and_failed_cases_do_not_fail(tmp_path, place):
    store(tmp_path / "runs", lasso())
    store(tmp_path / "runs", quick())
    assert call(place) == 0


def test_no_results_say_what_to_run(tmp_path, place):
    with pytest.raises(AdvlabError, match="got none; compute some first, for example: advlab run"):
        call(place)
    assert not (tmp_path / "report.html").exists()


def test_the_highest_scale_is_shown_unless_one_is_asked_for(tmp_path, place):
    for scale in ("paper", "smoke", "laptop"):
        store(
            tmp_path / "runs", lasso().model_copy(update={"scale": scale, "title": f"at {scale}"})
        )
    store(tmp_path / "runs", quick())
    page = tmp_path / "report.html"
    call(place)
    assert "at paper" in page.read_text()
    assert "A quick look" in page.read_text()
    call(place, scale="laptop")
    assert "at laptop" in page.read_text()
    assert "A quick look" not in page.read_text()


def test_a_broken_result_is_named_and_skipped(tmp_path, place, capsys):
    store(tmp_path / "runs", quick())
    folder = tmp_path / "runs" / "generalization" / "fig9"
    folder.mkdir(parents=True)
    for text in (
        "{",
        '{"experiment": "a"}',
        quick().model_dump_json().replace('"smoke"', '"vast"'),
    ):
        (folder / "result-laptop.json").write_text(text)
        assert call(place) == 0
        assert "fig9/result-laptop.json is not a result" in capsys.readouterr().err
    assert "A quick look" in (tmp_path / "report.html").read_text()


def test_experiments_are_in_the_order_of_the_story_and_strangers_last(tmp_path, place):
    names = ("closed_forms", "lasso", "fig10", "fig3", "fig99", "fig1")
    for name in names:
        changes = {"experiment": f"generalization/{name}", "chart": {}}
        store(tmp_path / "runs", lasso().model_copy(update=changes))
    call(place)
    text = (tmp_path / "report.html").read_text()
    positions = [
        text.index(f'id="generalization-{item}"')
        for item in ("fig1", "fig3", "fig10", "lasso", "closed_forms".replace("_", "-"), "fig99")
    ]
    assert positions == sorted(positions)
    assert "Yue Xing, Qifan Song and Guang Cheng" in text


def test_a_report_starts_without_torch(tmp_path):
    store(tmp_path / "runs", quick())
    code = """
import sys, advlab.cli
try:
    advlab.cli.main(["report", "--out", "runs", "--to", "a/b.html"])
except SystemExit as stop:
    sys.exit(stop.code or 10 * ("torch" in sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=False)
    assert done.returncode == 0
    assert (tmp_path / "a" / "b.html").exists()


def test_summaries_are_shown_without_a_run(tmp_path, place):
    folder = tmp_path / "results"
    folder.mkdir()
    shutil.copy(RESULTS / "purification" / "fig3.parquet", folder / "fig3.parquet")
    assert call({"stores": [folder], "to": place["to"]}) == 0
    page = place["to"].read_text()
    kept = summary.read(folder / "fig3.parquet").result
    assert kept.title in page
    assert "<svg" in page
    assert "purification/fig3/zero" in page
    # Two such folders are the same.
    assert call({"stores": [folder, folder], "to": place["to"]}) == 0


def test_a_summary_never_says_what_is_imported(tmp_path, place, monkeypatch):
    (tmp_path / "intruder.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "results"
    foreign = quick().model_copy(update={"experiment": "intruder", "verdicts": []})
    summary.write(foreign, pl.DataFrame({"x": [1.0]}), folder / "a.parquet")
    assert call({"stores": [folder], "to": place["to"]}) == 0
    assert foreign.title in place["to"].read_text()


def test_where_a_summary_has_no_figure_the_page_says_why_to_a_reader():
    kept = summary.read(RESULTS / "purification" / "fig3.parquet")
    assert verb._drawn(kept)[0].chart
    told = [
        verb._drawn(replace(kept, every=2, rows=4321)),
        verb._drawn(replace(kept, every=41, rows=4321)),
        verb._drawn(replace(kept, table=kept.table.select("seed"))),
    ]
    assert [why for _, why in told] == [
        "The summary of its run keeps half of its 4,321 rows, too few",
        "The summary of its run keeps one in 41 of its 4,321 rows, too few",
        "The summary of its run leaves out what the figure shows",
    ]
    assert not any(result.chart for result, _ in told)


def test_a_run_at_smoke_scale_is_named_and_not_counted(tmp_path, place, capsys):
    for result in (quick(), convergence()):
        store(tmp_path / "runs", result)
    call(place)
    said = capsys.readouterr().out
    assert "Smoke scale decides nothing: 1 claim not counted, of benign/fig1." in said
    (total,) = [line for line in said.splitlines() if line.startswith("all ")]
    assert total.split()[-4:] == ["2", "1", "2", "0"]
