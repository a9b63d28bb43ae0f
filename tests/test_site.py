"""What the site is made of: every page is in the menu, every picture is there, the README is short.

`make docs` itself is run by .ci/run: it checks links and runs the notebooks.
"""

import ast
import json
import re
import tomllib
from pathlib import Path

import polars as pl
import pytest

from advlab import lab
from advlab.lab import summary
from advlab.papers import EXPERIMENTS, ITEMS

ROOT = Path(__file__).parents[1]
MENU = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.py"))
SUMMARIES = sorted((ROOT / "results").rglob("*.parquet"))


def test_every_page_is_in_the_menu():
    pages = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")]
    assert pages
    assert [str(page) for page in pages if not re.search(rf"[\s\[]{page}\b", MENU)] == []


def test_the_readme_is_short_and_has_three_pictures():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 120
    pictures = re.findall(r"!\[.+\]\((docs/images/\S+)\)", text)
    assert len(pictures) == 3
    assert all((ROOT / picture).is_file() for picture in pictures)


def test_no_page_loads_from_a_network():
    assert "font: false" in MENU
    for file in (ROOT / "docs" / "assets").iterdir():
        assert not re.search(r"(url\(|src=|import\s)[\"']?https?:", file.read_text("utf-8")), file


def test_the_demo_shows_decided_claims_of_every_paper_in_three_minutes():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    runs = re.findall(r"advlab run (.*) --out demo$", makefile, re.MULTILINE)
    names = " ".join(runs).split()
    assert sorted(name.split("/")[0] for name in names) == sorted(ITEMS)
    assert sum(lab.load(name).about.seconds["laptop"] for name in names) <= 170
    for name in names:
        assert re.search(rf'echo "  {name} +\w', makefile), f"{name}: what to look at"
        path = ROOT / "src/advlab/papers" / name.split("/")[0] / "verdicts.json"
        stored = {one["experiment"]: one for one in json.loads(path.read_text("utf-8"))}
        verdicts = [one["outcome"] for one in stored[name]["verdicts"]]
        decided = sum(one in ("supported", "refuted") for one in verdicts)
        assert decided > 0.8 * len(verdicts), name


def test_there_are_five_notebooks_in_the_menu():
    assert len(NOTEBOOKS) == 5
    for notebook in NOTEBOOKS:
        ast.parse(notebook.read_text(encoding="utf-8"))
        assert f"notebooks/{notebook.stem}.md" in MENU


@pytest.mark.parametrize("file", SUMMARIES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_summary_is_of_an_experiment_and_its_picture_is_there(file):
    name = f"{file.parent.name}/{file.stem}"
    found = summary.read(file)
    assert found.result.experiment == name
    assert name in EXPERIMENTS
    assert found.table.height == -(-found.rows // found.every)
    assert (ROOT / "docs" / "images" / f"{name.replace('/', '_')}.png").is_file()


@pytest.mark.parametrize("file", SUMMARIES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_summary_is_of_the_cases_of_todays_recipe(file):
    """Files from before their cases were recorded are let through; `results.py take` records."""
    known = summary.read(file)
    cases = {case.key() for case in lab.load(known.result.experiment).cases("laptop")}
    assert known.cases in (frozenset(), cases), summary.outdated(known, cases, None)


def test_summaries_are_small_and_have_the_verdicts_of_the_tables():
    assert SUMMARIES
    assert sum(file.stat().st_size for file in SUMMARIES) < 8_000_000
    stored = {}
    for paper in {file.parent.name for file in SUMMARIES}:
        path = ROOT / "src" / "advlab" / "papers" / paper / "verdicts.json"
        stored |= {one["experiment"]: one for one in json.loads(path.read_text("utf-8"))}
    for file in SUMMARIES:
        result = summary.read(file).result
        kept = summary.whole_result(stored[result.experiment])
        assert {one.id: one.outcome for one in kept.verdicts} == {
            one.id: one.outcome for one in result.verdicts
        }, result.experiment


def test_a_long_table_is_thinned_and_still_compared(tmp_path):
    file = tmp_path / "long.parquet"
    found = summary.read(SUMMARIES[0]).result
    noise = pl.Series("x", range(40_000)).hash().cast(pl.Float64)
    summary.write(found, pl.DataFrame({"x": noise, "picture": ["a" * 300] * 40_000}), file)
    old = summary.read(file)
    assert old.every > 1
    assert old.table.columns == ["x"]
    same = summary.compare(old, found, pl.DataFrame({"x": noise}))
    assert (same.different, same.verdicts, same.numbers) == ({}, 0, 0)
    other = summary.compare(old, found, pl.DataFrame({"x": noise * (1 + 1e-6)}))
    share, largest = other.different["x"]
    assert share == 1.0
    assert largest == pytest.approx(1e-6, rel=1e-3)


def test_every_published_refutation_is_explained():
    known = tomllib.loads((ROOT / "src/advlab/papers/findings.toml").read_text(encoding="utf-8"))
    stored = [
        (f"{result['experiment']}/{one['id']}", one["outcome"])
        for file in (ROOT / "src/advlab/papers").glob("*/verdicts.json")
        for result in json.loads(file.read_text(encoding="utf-8"))
        for one in result["verdicts"]
    ]
    refuted = [name for name, outcome in stored if outcome == "refuted"]
    assert refuted
    assert [name for name in refuted if name not in known] == []
    page = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    sections = re.findall("^### (.*)$", page, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in sections}
    gone = {one["docs"] for one in known.values()} - {f"docs/findings.md#{one}" for one in anchors}
    assert gone == set()


def test_findings_stand_below_the_name_of_their_paper():
    page = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    assert re.findall("^## (.*)$", page, re.MULTILINE) == [
        "Benign overfitting",
        "Convergence",
        "Clean generalization, robust overfitting",
        "Generalization",
        "Feature purification",
        "Withdrawn",
    ], "a finding has a heading of its own with ###, among those of its paper"
