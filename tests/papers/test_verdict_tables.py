"""The tables of verdicts in the papers' pages come from stored results: nobody typed a number."""

import importlib
from pathlib import Path

import pytest

from advlab import lab
from advlab.cli.report import printed
from advlab.papers import EXPERIMENTS
from advlab.report import Result, Verdict

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def script():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "scripts"))
        yield importlib.import_module("verdict_tables")


def test_every_page_is_as_its_stored_verdicts_say(script):
    for path, text in script.pages().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: scripts/verdict_tables.py"


def test_every_paper_has_both_tables(script):
    for paper in script.papers():
        text = (script.PAPERS / paper / "README.md").read_text(encoding="utf-8")
        assert "<!-- verdicts -->" in text
        assert "<!-- changes -->" in text


@pytest.fixture(scope="module")
def known():
    return {
        f"{name}/{label}": claim
        for name in EXPERIMENTS
        for label, claim in lab.load(name).about.claims.items()
    }


def test_numbers_that_papers_print_stand_beside_claims_that_exist(known):
    prints = printed()
    assert set(prints.numbers) <= set(known)
    assert set(prints.tables) <= set(EXPERIMENTS)
    papers = {name.partition("/")[0] for name in (*prints.numbers, *prints.tables)}
    assert papers >= {"benign", "cgro", "generalization", "purification"}


def test_stored_verdicts_are_of_claims_that_exist(script, known):
    for paper in script.papers():
        for id, verdict in script.verdicts(paper).items():
            assert (verdict.claim, verdict.kind) == (known[id].words, known[id].kind), id


def test_results_of_a_folder_are_taken_without_charts(script, tmp_path, monkeypatch):
    monkeypatch.setattr(script, "PAPERS", tmp_path / "papers")
    for paper in script.papers():
        (tmp_path / "papers" / paper).mkdir(parents=True)
    verdict = Verdict(id="5E", claim="a | b", kind="empirical", outcome="refuted", measured=0.5,
                      low=0.4, high=0.6, rule="r")  # fmt: skip
    result = Result(experiment="benign/fig1", paper="benign", item="i", title="t", about="",
                    scale="laptop", seeds=3, cases=1, seconds=1.0, verdicts=[verdict],
                    chart={"mark": "point"})  # fmt: skip
    smoke = result.model_copy(update={"scale": "smoke", "experiment": "benign/fig2"})
    for one in (result, smoke):
        folder = tmp_path / "runs" / one.experiment
        folder.mkdir(parents=True)
        (folder / f"result-{one.scale}.json").write_text(one.sealed())
    script.take(tmp_path / "runs")
    (kept,) = script.stored("benign")
    assert "chart" not in kept
    assert script.verdicts("benign") == {"benign/fig1/5E": verdict}
    row = "| `5E` | empirical | a \\| b | 0.5 [0.4, 0.6]<br><sub>r</sub> | **refuted** |"
    assert row in script.table("benign")


def test_outcomes_that_moved_stand_before_rules_that_changed(script, monkeypatch):
    before = ["refuted, 0.1", "supported, 1", "none", "supported, 0.2", "outside", "supported"]
    after = ["supported", "supported at this size", "refuted", script.GONE, script.WAITS,
             "undecided"]  # fmt: skip
    ids = list("abcdef")
    stored = {id: {"before": one, "why": "a | b"} for id, one in zip(ids, before, strict=True)}
    monkeypatch.setattr(script, "changes", lambda paper: stored)
    monkeypatch.setattr(script, "now", lambda paper: dict(zip(ids, after, strict=True)))
    monkeypatch.setattr(script, "verdicts", lambda paper: {})
    first, second = script.changed("cgro").split(script.SAME)
    assert [line[3] for line in first.splitlines() if line.startswith("| `")] == list("acdf")
    assert [line[3] for line in second.splitlines() if line.startswith("| `")] == list("be")
    assert "| `a` | refuted, 0.1 | supported | a \\| b |" in first
    monkeypatch.setattr(script, "papers", lambda: ["cgro"])
    assert script.listed().splitlines() == [
        "- cgro, reasons in src/advlab/papers/cgro/README.md; the rules of 2 more changed, "
        "their outcomes did not:",
        "  - `a`: refuted -> supported",
        "  - `c`: none -> refuted",
        "  - `d`: supported -> withdrawn",
        "  - `f`: supported -> undecided",
    ]
