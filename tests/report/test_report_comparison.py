"""Two stores side by side: what moved, what did not, and the page and exit code."""

import pytest
import typer
from sample_results import convergence, lasso, quick

from advlab.cli import report as verb
from advlab.core.errors import AdvlabError
from advlab.report import Verdict
from advlab.report.comparison import change, compared, counts


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
        **dict.fromkeys(("outcome", "number", "only in A", "only in B"), 0),
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
