"""Numbers in sentences are those of the stored results that their comments name."""

import importlib
from pathlib import Path

import pytest

from advlab.lab import summary
from advlab.papers import EXPERIMENTS
from advlab.report import findings

ROOT = Path(__file__).parents[1]
CLAIM = "generalization/fig1/7b"


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("prose_numbers")


def test_every_tied_number_is_that_of_its_source(script):
    count = 0
    for page in script.pages():
        found = list(script.numbers(page.read_text(encoding="utf-8")))
        count += len(found)
        moved = [f"line {one.line}: {one.text}, not {one.now}" for one in found
                 if one.text != one.now]  # fmt: skip
        assert moved == [], f"{page.name}: python scripts/prose_numbers.py"
    assert count > 60


def test_a_wrong_number_is_found_and_mended(script):
    text = f"In 13<!-- = hits from {CLAIM} --> of 20<!-- = n from {CLAIM} --> runs.\n"
    first, second = script.numbers(text)
    assert (first.text, first.now, second.now) == ("13", "14", "20")
    assert script.written(text) == text.replace("13", "14")
    assert script.plain(text) == "In 13 of 20 runs.\n"


def test_a_number_of_a_table_is_asked_for_in_sql(script):
    name = "benign/fig2"
    table = summary.read(ROOT / "results" / f"{name}.parquet").table
    mean = table.filter(mu_norm=6.0, d=1000, step=table["step"].max())["clean_error"].mean()
    last = table["step"].max()
    what = f"avg(clean_error) from {name} where mu_norm = 6 and d = 1000 and step = {last}"
    assert script.value(what) == pytest.approx(mean)


@pytest.mark.parametrize(
    ("number", "like", "unit", "text"),
    [
        (0.5525, "55", " %", "55"),
        (0.5525, "55.2", " %", "55.2"),
        (0.5525, "0.6", None, "0.6"),
        (12345.6, "9,999", None, "12,346"),
        (-0.004, "0.00", None, "0.00"),
        (-0.51, "−0.5", None, "−0.5"),
        (3.2e-7, "1.1e-6", None, "3.2e-7"),
    ],
)
def test_a_number_keeps_the_digits_of_the_text(script, number, like, unit, text):
    assert script.rounded(number, like, unit) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("1<!-- = generalization/fig1/99 -->", "no stored verdict"),
        ("1<!-- = generalization/fig99/1 -->", "neither a claim"),
        ("1<!-- = generalization/fig6 -->", "which number"),
        ("1<!-- = something -->", "neither a claim"),
        ("1<!-- = avg(no_column) from benign/fig2 -->", "no_column"),
        ("1<!-- = d from benign/fig2 -->", "fig2"),
        ("many<!-- = generalization/fig1/7b -->", "no number stands"),
    ],
)
def test_a_source_that_is_not_there_is_an_error(script, text, why):
    with pytest.raises(script.NoSource, match=why):
        list(script.numbers(text))


def test_a_table_that_is_not_kept_whole_is_refused(script):
    files = {name: ROOT / "results" / f"{name}.parquet" for name in EXPERIMENTS}
    thin = next(name for name, file in files.items()
                if file.exists() and summary.read(file).every > 1)  # fmt: skip
    with pytest.raises(script.NoSource, match="row of its table"):
        script.value(f"count(*) from {thin}")


def test_comments_of_numbers_reach_neither_the_report_nor_the_site(script):
    page = ROOT / "docs" / "findings.md"
    known = findings.load(ROOT / "src" / "advlab" / "papers" / "findings.toml", page)
    assert any("<!-- =" in line for line in page.read_text(encoding="utf-8").splitlines())
    assert not any("<!--" in one.text for one in known.values())
    assert "<!-- =" not in script.plain(page.read_text(encoding="utf-8"))
