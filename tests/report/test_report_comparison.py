"""Two stores side by side: what moved, what did not, and the page and exit code."""

import pytest
import typer
from sample_results import convergence, lasso, quick

from advlab.cli import report as verb
from advlab.core.errors import AdvlabError
from advlab.report import Verdict
from advlab.report.comparison import (
    at_equal_scales,
    change,
    compared,
    counts,
    write_comparison,
)


def verdict(outcome="supported", measured=1.0, low=None, high=None) -> Verdict:
    return Verdict(
        id="a",
        claim="c",
        outcome=outcome,
        measured=measured,
        low=low,
        high=high,
        rule="x is above 0",
    )


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        (verdict(), verdict(), "none"),
        (verdict(), verdict(measured=1 + 1e-12), "none"),
        (verdict(), verdict(measured=1.001), "number"),
        (verdict(low=0.5, high=1.5), verdict(measured=2.0, low=1.4, high=2.6), "none"),
        (verdict(low=0.5, high=1.5), verdict(measured=2.0, low=1.6, high=2.6), "number"),
        (verdict(low=0.5, high=1.5), verdict("refuted", low=0.5, high=1.5), "outcome"),
        (verdict(measured=None), verdict(measured=None), "none"),
        (verdict(), None, "only in A"),
        (None, verdict(), "only in B"),
        (verdict(), verdict().model_copy(update={"rule": "x is above 1"}), "rule"),
        (verdict(), verdict().model_copy(update={"kind": "theorem"}), "rule"),
        (verdict(), verdict().model_copy(update={"claim": "C", "measured": 9.0}), "rule"),
        (verdict(), verdict("refuted").model_copy(update={"rule": "else"}), "outcome"),
    ],
)
def test_what_happened_to_a_claim(a, b, found):
    assert change(a, b) == found


def test_settings_that_differ_are_named():
    old = convergence()
    new = old.model_copy(update={"seeds": 40, "settings": {**old.settings, "xi": 0.5}})
    (pair,) = compared([old], [new])
    assert pair.differences == (("seeds", "20", "40"), ("xi", "0.1", "0.5"))
    assert counts([pair]) == {
        **dict.fromkeys(("outcome", "rule", "number", "only in A", "only in B"), 0),
        "none": 5,
    }


def test_the_verb_writes_a_page_and_fails_if_verdicts_changed(tmp_path, capsys):
    old = convergence()
    flipped = old.verdicts[0].model_copy(update={"outcome": "refuted"})
    made = {"commit": "abc", "machine": "Xeon, 8 cores"}
    new = old.model_copy(update={"verdicts": [flipped, *old.verdicts[1:]], **made})
    stores = {"before": [old, lasso()], "after": [new, quick()], "same": [old, lasso()]}
    for name, results in stores.items():
        for result in results:
            path = tmp_path / name / result.experiment / f"result-{result.scale}.json"
            path.parent.mkdir(parents=True)
            path.write_text(result.model_dump_json())
    folders, to = [tmp_path / "before", tmp_path / "after"], tmp_path / "page.html"
    with pytest.raises(typer.Exit) as stop:
        verb.report(folders, to=to)
    assert stop.value.exit_code == 1
    said = capsys.readouterr()
    assert "changed: generalization/fig5/4: supported -> refuted" in said.err
    page = to.read_text()
    assert "the verdict changed" in page
    assert "1 of 5 claims moved" in page
    assert "<td>f6fc3e6</td><td>abc, f6fc3e6</td>" in page
    assert "machine</th><td>none</td><td>Xeon, 8 cores</td>" in page
    verb.report([tmp_path / "before", tmp_path / "same"], to=to)
    with pytest.raises(AdvlabError, match="3 folders"):
        verb.report([*folders, tmp_path], to=to)


def test_results_are_compared_at_the_highest_scale_that_both_stores_have():
    laptop, smoke = convergence(), quick()
    small = laptop.model_copy(update={"scale": "smoke"})
    paper = laptop.model_copy(update={"scale": "paper"})
    other = smoke.model_copy(update={"scale": "paper"})
    a, b, apart = at_equal_scales([laptop, small, smoke], [small, paper, laptop, other, lasso()])
    assert [(one.experiment, one.scale) for one in a] == [(laptop.experiment, "laptop")]
    assert [one.scale for one in b] == ["laptop", "laptop"]
    assert apart == [smoke.experiment]


def test_a_smoke_run_changes_no_verdict_of_a_laptop_run(tmp_path, capsys):
    old = convergence()
    undecided = [one.model_copy(update={"outcome": "undecided"}) for one in old.verdicts]
    small = old.model_copy(update={"scale": "smoke", "verdicts": undecided})
    for name, results in {"a": [old, lasso()], "b": [small, lasso()]}.items():
        for result in results:
            path = tmp_path / name / result.experiment / f"result-{result.scale}.json"
            path.parent.mkdir(parents=True)
            path.write_text(result.model_dump_json())
    to = tmp_path / "page.html"
    verb.report([tmp_path / "a", tmp_path / "b"], to=to)
    said = capsys.readouterr()
    assert "    0 verdicts changed" in said.out
    assert f"not compared: {old.experiment} has no scale in both" in said.err
    assert "A and B have no scale in common: generalization/fig5" in to.read_text()


def test_the_page_names_the_rules_that_changed(tmp_path):
    old = convergence()
    first = old.verdicts[0].model_copy(update={"rule": "another rule"})
    new = old.model_copy(update={"verdicts": [first, *old.verdicts[1:]]})
    pairs = compared([old], [new])
    write_comparison(pairs, ("A", "B"), [], tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "→ another rule" in page
    assert "1 of 5 claims moved" in page
