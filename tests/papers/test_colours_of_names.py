"""In all figures of a paper a name has one colour, also where each is drawn alone."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from advlab.cli.report import bibliography
from advlab.core.errors import AdvlabError
from advlab.lab import summary
from advlab.lab.loader import find
from advlab.report.colours import shared
from advlab.report.theme import CATEGORIES

RESULTS = Path(__file__).parents[2] / "results"
PAPERS = sorted(path.name for path in RESULTS.iterdir() if path.is_dir())


def named(spec: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Names, not numbers, with the colours that Vega draws them in."""
    encodings = spec.get("encoding") or {}
    for channel in ("color", "fill", "stroke"):
        found = encodings.get(channel)
        if isinstance(found, dict) and found.get("type") == "nominal":
            scale = found.get("scale") or {}
            names = scale.get("domain") or found.get("sort") or []
            colours = scale.get("range") or CATEGORIES
            yield from ((one, colour) for one, colour in zip(names, colours) if not number(one))  # noqa: B905
    for inner in ("layer", "concat", "hconcat", "vconcat"):
        for part in spec.get(inner) or []:
            yield from named(part)


def number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def figures(paper: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Those that today's code draws from tables that are kept whole; others wait for a new run."""
    for path in sorted((RESULTS / paper).glob("*.parquet")):
        kept = summary.read(path)
        if kept.every > 1:
            continue
        try:
            chart = find(kept.result.experiment).figure(kept.table).to_dict()
        except (pl.exceptions.ColumnNotFoundError, AdvlabError):
            continue
        yield path.stem, shared([chart], bibliography()[paper].colours)[0]


def several(charts: Iterator[tuple[str, dict[str, Any]]]) -> dict[str, dict[str, list[str]]]:
    """Names that have several colours: each with the figures that it has there."""
    seen: dict[str, dict[str, list[str]]] = {}
    for item, chart in charts:
        for name, colour in set(named(chart)):
            seen.setdefault(name, {}).setdefault(colour, []).append(item)
    return {name: colours for name, colours in seen.items() if len(colours) > 1}


@pytest.mark.parametrize("paper", PAPERS)
def test_a_name_has_one_colour_in_all_figures_of_a_paper(paper):
    drawn = list(figures(paper))
    assert len(drawn) > 1
    assert several(iter(drawn)) == {}


def test_two_colours_of_a_name_are_seen_also_in_stacked_panels():
    color = {"type": "nominal", "sort": ["ReLU", "tanh"], "title": "network"}
    left = {"mark": "line", "encoding": {"color": color}}
    right = {"mark": "line", "encoding": {"color": color | {"sort": ["tanh", "ReLU", "3"]}}}
    found = several(iter([("a", left), ("b", {"vconcat": [{"concat": [right]}]})]))
    blue, orange = CATEGORIES[:2]
    assert found["ReLU"] == {blue: ["a"], orange: ["b"]}
    assert set(found) == {"ReLU", "tanh"}


@pytest.mark.parametrize(
    "names",
    [
        ("clean", "clean training", "clean network", "perturbations of clean"),
        ("adversarial", "adversarial training", "adversarial network", "against FGM",
         "then against FGM", "perturbations of adversarial", "adversarial, from clean"),
        ("control", "more clean steps", "perturbations of control"),
    ],
)  # fmt: skip
def test_names_of_one_network_of_purification_have_its_colour(names):
    colours = bibliography()["purification"].colours
    assert len({colours[name] for name in names}) == 1
