"""What the site makes of our Markdown: formulas typed plainly, findings with their verdicts."""

import re
from pathlib import Path

import pytest

markdown = pytest.importorskip("markdown", reason="the site's packages are not installed")
ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _site(monkeypatch):
    for folder in ("scripts", "scripts/site"):
        monkeypatch.syspath_prepend(str(ROOT / folder))


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("M w*, the atoms; w* again", "M w*, the atoms; w* again"),
        ("R*(eps) and *really* theta*", "R*(eps) and <em>really</em> theta*"),
        ("L_A - L_*(W_*) <= eps", "L_A - L_*(W_*) &lt;= eps"),
        ("**`fig1`** and <w*, z> *so\nit is*", None),
        ("`a * b*` *c*", "<code>a * b*</code> <em>c</em>"),
    ],
)
def test_stars_of_formulas_are_letters_and_those_around_words_are_emphasis(text, html):
    from markdown_parts import Readable

    found = markdown.Markdown(extensions=[Readable()]).convert(text)
    if html is None:
        html = "<strong><code>fig1</code></strong> and &lt;w*, z&gt; <em>so\nit is</em>"
    assert found == f"<p>{html}</p>"


def test_a_list_with_stars_is_a_list():
    from markdown_parts import Readable

    found = markdown.Markdown(extensions=[Readable()]).convert("* w* is\n* one")
    assert re.findall("<li>(.*)</li>", found) == ["w* is", "one"]


def test_every_claim_that_a_finding_cites_exists_and_stands_below_it():
    import finding_tables

    page = (ROOT / "docs" / "findings.md").read_text(encoding="utf-8")
    made = finding_tables.with_tables(page)
    cited = list(finding_tables.cited(page))
    assert len(cited) > 100
    assert made.count("| [`") >= 0.9 * len(set(cited))
    assert (
        re.sub(r'\n<div class="verdicts".*?</div>\n', "", made, flags=re.DOTALL).split()
        == page.split()
    )


@pytest.mark.parametrize(
    ("group", "claims"),
    [
        ("[`cgro/phases/5a`, `5c`]", ["cgro/phases/5a", "cgro/phases/5c"]),
        ("[`cgro/race/8c`-`8e`]", ["cgro/race/8c", "cgro/race/8d", "cgro/race/8e"]),
        ("[`purification/radius_curves/6`]", ["random", "wide_margin"]),
        ("[a link](there.md) and `cgro/phases/5a`", []),
    ],
)
def test_citations_are_read_as_they_are_written(group, claims):
    import finding_tables

    found = list(finding_tables.cited(group))
    if claims and "/" not in claims[0]:
        claims = [f"purification/radius_curves/6/{one}" for one in claims]
    assert found == claims


def test_a_citation_of_no_claim_is_an_error():
    import finding_tables

    with pytest.raises(finding_tables.UnknownClaim, match=r"cgro/phases/99`; cgro/phases has"):
        list(finding_tables.cited("[`cgro/phases/99`]"))
