"""The pages that the site makes: galleries, the home page's pictures, the command line, tables."""

import io
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from PIL import Image, ImageDraw

from advlab.papers import ITEMS

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _site(monkeypatch):
    for folder in ("scripts", "scripts/site"):
        monkeypatch.syspath_prepend(str(ROOT / folder))


def picture(*boxes):
    """Frames on white."""
    image = Image.new("RGB", (1000, 700), "white")
    for box in boxes:
        ImageDraw.Draw(image).rectangle(box, outline="black")
    return image


def test_panels_are_found_row_by_row_and_a_legend_is_none():
    from pictures import panels

    legend, below = (20, 10, 900, 30), [(20, 400, 980, 690)]
    above = [(20, 50, 460, 350), (500, 50, 980, 350)]
    found = panels(picture(legend, *above, *below))
    assert found == [(a, b, c + 1, d + 1) for a, b, c, d in [*above, *below]]
    assert panels(picture()) == []
    assert panels(picture(legend)) == []


def test_a_tile_has_its_shape_whatever_is_cut(tmp_path):
    from pictures import NoPanel, tile

    file = tmp_path / "two.png"
    picture((20, 50, 460, 350), (500, 50, 980, 350)).save(file)
    for chosen in ((1,), (1, 2), ()):
        made = Image.open(io.BytesIO(tile(file, chosen, 1.75, 700)))
        assert made.width / made.height == pytest.approx(1.75, abs=0.01)
        assert made.width <= 700
    with pytest.raises(NoPanel, match=r"panel 3 of two\.png, which has 2"):
        tile(file, (1, 3), 1.75, 700)


def test_tiles_of_the_home_page_have_one_shape_and_nothing_is_cut_through():
    import home_page

    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    made = home_page.pictures()
    assert len(made) == page.count("<figure")
    assert all(place in home_page.with_tiles(page) for place in made)
    for place, data in made.items():
        image = Image.open(io.BytesIO(data)).convert("L")
        assert image.width / image.height == pytest.approx(1.75, abs=0.01), place
        dark = np.asarray(image) < 200
        rim = (dark[0], dark[-1], dark[:, 0], dark[:, -1])
        assert not any(side.any() for side in rim), place


@pytest.mark.parametrize("paper", ITEMS)
def test_a_gallery_has_the_paper_s_title_and_an_index_to_every_experiment(paper):
    import gallery_pages
    from known import known_papers

    page = gallery_pages.gallery(paper)
    assert page.startswith(f"# Gallery: {known_papers()[paper].title}\n")
    index, *rest = re.split(r"^## ", page, flags=re.MULTILINE)
    there = re.findall(r"\]\(#(\w+)\)\{ \.thumb \}", index)
    assert sorted(there) == sorted(ITEMS[paper])
    assert [re.search(r"\{ #(\w+) \}", one)[1] for one in rest if "{ #" in one] == list(
        ITEMS[paper]
    )


def test_outcomes_are_words_on_their_colour_in_every_table():
    import gallery_pages
    from finding_tables import with_tables
    from outcomes import in_rows

    from advlab.report.page import OUTCOMES

    css = (ROOT / "docs/assets/site.css").read_text(encoding="utf-8")
    pages = [gallery_pages.gallery(paper) for paper in ITEMS]
    pages += [with_tables((ROOT / "docs/findings.md").read_text(encoding="utf-8"))]
    plain = re.compile(rf"^\|.*\| [*]*({'|'.join(OUTCOMES)})\b.*\|$", re.MULTILINE)
    for page in pages:
        assert 'class="badge' in page
        assert plain.findall(page) == []
    for name in OUTCOMES:
        assert f".badge.{name} " in css
        assert css.count(f"--{name}-ground:") == 2, "in light and in dark"
    assert in_rows("| `a` | refuted, 3 | supported |").count("badge") == 2


def test_counts_say_in_each_cell_what_they_count():
    from outcomes import counts

    from advlab.report.page import OUTCOMES

    table = counts("cgro", page="cgro.md")[0]
    rows = re.findall(r"<tr><th scope=\"row\">.*?</tr>", table)
    assert len(rows) == 4
    for row in rows:
        assert re.findall(r'data-label="(\w+)"', row) == list(OUTCOMES)


def test_every_column_of_the_command_line_s_tables_has_a_name_and_options_are_code():
    import cli_page

    page = cli_page.page()
    heads = re.findall(r"^(\|.*\|)\n\|---", page, re.MULTILINE)
    assert len(heads) > 8
    assert not any("| |" in head for head in heads)
    assert "| `--seeds` *int, at least 1* |" in page
    assert "range*" not in page
    prose = re.sub(r"^    .*$|`[^`]*`|^\|--.*$", "", page, flags=re.MULTILINE)
    assert re.findall(r"(?<![\w-])--?[a-z][\w-]*", prose) == []


def test_a_frame_is_a_table_as_markdown_has_them():
    from notebook_pages import table

    frame = pl.DataFrame({"M w*": ["a|b"], "error": [0.123456], "n": [1234567]})
    assert table(frame) == [
        "| M w* | error | n |",
        "| --- | ---: | ---: |",
        "| a\\|b | 0.1235 | 1234567 |",
    ]


@pytest.mark.parametrize("paper", ITEMS)
def test_a_paper_s_page_begins_with_the_paper_and_its_statements(paper):
    import paper_pages

    own = (ROOT / "docs" / f"{paper}.md").read_text(encoding="utf-8")
    page = paper_pages.page(paper, own)
    headings = re.findall(r"^## (.*)$", page, re.MULTILINE)
    assert headings[0] == "The paper in one page"
    assert headings[1] in ("From the paper to the code", "Where each statement is")
    assert headings[2] == "Symbols"
    assert headings[3] == "Findings"
    assert page.count('<div class="stacked" markdown="1">') == 2
    readme = (ROOT / f"src/advlab/papers/{paper}/README.md").read_text(encoding="utf-8")
    assert {*re.findall(r"^## (.*)$", own, re.MULTILINE)} <= {*headings}
    left = {*re.findall(r"^## (.*)$", readme, re.MULTILINE)} - {*headings}
    assert left <= {"Verdicts", "Verdicts that changed", "What a laptop run decides"}
    assert ".stacked tbody td { display: block" in (ROOT / "docs/assets/site.css").read_text(
        "utf-8"
    )


def test_every_count_leads_to_as_many_claims():
    import claims_pages
    from outcomes import counts

    from advlab.report.page import OUTCOMES

    assert {*claims_pages.ORDER} == {*OUTCOMES}
    page = claims_pages.page()
    parts = re.findall(r"^##+ [^\n]*\{ #(\S+) \}$(.*?)(?=^##|\Z)", page, re.M | re.S)
    sections = dict(parts)
    for paper in ITEMS:
        (table, _) = counts(paper, page=f"gallery/{paper}.md")
        cells = re.findall(r'href="\.\./claims\.html#(\S+)">(\d+)</a>', table)
        assert cells
        for anchor, count in cells:
            assert sections[anchor].count("\n- [") == int(count), anchor
    (table, _) = counts(*ITEMS, page="index.md")
    for anchor, count in re.findall(r'href="claims\.html#(\S+)">(\d+)</a>', table):
        assert f"## {anchor.replace('-', ', ')}: {count} {{ #{anchor} }}" in page


def test_a_gallery_says_what_was_asked_and_reached_of_assumptions():
    import gallery_pages

    page = gallery_pages.gallery("benign")
    assert "- *not met*: Assumption 1. Asked: C >= 10" in page
    assert "): not met" not in page
