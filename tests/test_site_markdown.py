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
        ("| a |\n|---|\n| `\\|\\|w\\|\\|` |", "table"),
    ],
)
def test_stars_of_formulas_are_letters_and_those_around_words_are_emphasis(text, html):
    from markdown_parts import Readable

    found = markdown.Markdown(extensions=[Readable(), "tables"]).convert(text)
    if html == "table":  # the bars that GitHub wants escaped in code
        assert "<code>||w||</code>" in found
        return
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


@pytest.mark.parametrize(
    "text", ["$L_A \\le L^* + \\epsilon$, a*", "$$\\min_{B(R)} L^*$$", "$w^*$ and *b*"]
)
def test_stars_between_dollars_stay_those_of_the_formula(text):
    from built_checks import unread
    from markdown_parts import Readable

    found = markdown.Markdown(extensions=[Readable()]).convert(text)
    assert "<math" in found
    assert "<mo>*</mo>" in found or "⋆" in found
    assert unread(found) == []


def test_what_a_display_ranges_over_stands_below_it():
    from markdown_parts import Readable

    read = markdown.Markdown(extensions=[Readable()]).convert
    assert "<munder><mo>min</mo><mi>W</mi></munder>" in read("$$\\min_W \\max_{x \\in B} f$$")
    assert "<munder>" not in read("$\\min_W f$")


def test_raw_formulas_and_dead_links_of_built_pages_are_found(tmp_path):
    from built_checks import problems

    page = "<html><body><article>{}</article></body></html>"
    good = '<h2 id="a">b</h2><code>$x \\y$</code><a href="other.html#c">d</a><a href="#a">e</a>'
    (tmp_path / "index.html").write_text(page.format(good))
    (tmp_path / "other.html").write_text(
        page.format('<p id="c">text</p><a href="index.html">f</a>')
    )
    assert problems(tmp_path) == []
    (tmp_path / "index.html").write_text(page.format(good + "min L\\* and $y = \\theta$"))
    assert len(problems(tmp_path)) == 1
    wrong = '<a href="other.html#gone">a</a><a href="no.html">b</a><img src="https://x.org/a.png">'
    (tmp_path / "index.html").write_text(page.format(wrong))
    found = problems(tmp_path)
    assert found == [
        "index.html loads from a network",
        "index.html: a link to nothing: other.html#gone",
        "index.html: a link to nothing: no.html",
    ]
