"""Results in, one HTML file out: it needs no network, and no JavaScript to be read."""

import base64
import json
import re
import struct
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ..core.errors import AdvlabError
from ..core.files import write_text
from ..core.progress import duration
from . import colours, figure, formatting, prose
from .bibliography import Paper
from .compact import addresses, by_place, rounded
from .continued import continued
from .findings import Finding
from .measured import measured
from .printed import Prints
from .result import Result
from .strip import strip
from .symbols import LETTERS, typeset
from .theme import CATEGORIES, DARK_CATEGORIES, DARK_QUIET, QUIET, theme
from .verdict import Outcome, Verdict

_LARGEST = 8_000_000
"""Bytes of a page; pictures that would make it larger are left out."""
_AROUND = 1000
"""Bytes that stand around a picture."""
OUTCOMES: tuple[str, ...] = get_args(Outcome)
KINDS: dict[str, str] = {
    "empirical": "a paper says so, and it can go either way",
    "theorem": "proved: it can fail by a bug or a wrong proof only",
    "identity": "true by algebra or by construction: a test of the code",
    "ours": "a question that the paper does not ask",
}
"""What the kinds of claims are, the ones that say most first."""


@dataclass(frozen=True)
class NoChart:
    """Why a result has no chart, and the picture that stands for it.

    Args:
        why: in words, without a full stop.
        picture: a PNG file, or nothing.
    """

    why: str
    picture: bytes = b""

    @property
    def address(self) -> str:
        """The picture for the page."""
        return "data:image/png;base64," + base64.b64encode(self.picture).decode()

    @property
    def size(self) -> tuple[int, int]:
        """Width and height on the page; the published pictures have 1.5 pixels for one of it."""
        width, height = struct.unpack(">II", self.picture[16:24])
        return round(width / 1.5), round(height / 1.5)


def write_report(
    results: Sequence[Result],
    path: Path,
    known: Mapping[str, Finding],
    papers: Mapping[str, Paper] | None = None,
    prints: Prints | None = None,
    undrawn: Mapping[str, NoChart] | None = None,
) -> None:
    """Write the page of these results; the arguments are those of `render`, and the file."""
    write_page(render(results, known, papers, prints, undrawn), path)


def write_page(page: str, path: Path) -> None:
    """Write a text; a reader sees the old file or the whole new one."""
    try:
        write_text(path, page)
    except OSError as error:
        came = f"{path}: {error.strerror}"
        raise AdvlabError("a place where the report can be written", came) from None


def render(
    results: Sequence[Result],
    known: Mapping[str, Finding],
    papers: Mapping[str, Paper] | None = None,
    prints: Prints | None = None,
    undrawn: Mapping[str, NoChart] | None = None,
) -> str:
    """The page as text, gathered by paper.

    Args:
        results: experiments; those that a paper names come in its order, others as given.
        known: findings by the name of their verdict.
        papers: by the short names that results have; others appear under their short name.
        prints: what the papers print, to stand beside what was measured.
        undrawn: by experiment, what stands for a chart that it has not.
    """
    gathered = _gathered(results, papers or {})
    charts = sum(bool(result.chart) for result in results)
    groups = [
        {
            "name": name,
            "anchor": f"paper-{_slug(name)}",
            "paper": paper,
            "entries": _entries(members, paper, known, prints or Prints(), undrawn or {}),
        }
        for name, paper, members in gathered
    ]
    for group in groups:
        cards = [card for entry in group["entries"] for card in entry["cards"]]
        group["printed"] = [card for card in cards if card["printed"]]
    heading = results[0].title if len(results) == 1 else "Claims and measurements"
    shown = {
        "results": results,
        "heading": heading,
        "papers": groups,
        "outcomes": OUTCOMES,
        "kinds": KINDS,
        "letters": LETTERS,
        "by_kind": counts_by_kind(results),
        "first": _first(groups),
        "total": {**counts(results), "charts": charts},
        "smoke": sum(result.scale == "smoke" for result in results),
        "finished": max((result.finished for result in results), default="")[:10],
        **frame("page.css", chart=bool(charts)),
    }
    template = environment().get_template("page.html")
    page = template.render(shown)
    entries = [entry for group in groups for entry in group["entries"]]
    return template.render(shown) if _put_pictures(entries, _LARGEST - len(page.encode())) else page


def _first(groups: Sequence[dict[str, Any]]) -> dict[tuple[str, str], str]:
    """Where the first card of each kind and outcome is, for links that need no script."""
    found: dict[tuple[str, str], str] = {}
    for entry in (entry for group in groups for entry in group["entries"]):
        for card in entry["cards"] if entry["result"].scale != "smoke" else ():
            found.setdefault((card["verdict"].kind, card["verdict"].outcome), card["anchor"])
    return found


def _put_pictures(entries: Sequence[dict[str, Any]], room: float) -> int:
    """Give entries their pictures, the smallest first, while they fit; how many those are.

    Args:
        entries: those without a chart may have a picture.
        room: bytes of the page that are free.
    """
    left = [entry for entry in entries if entry["undrawn"] and entry["undrawn"].picture]
    put = 0
    for entry in sorted(left, key=lambda entry: len(entry["undrawn"].picture)):
        room -= len(entry["undrawn"].address) + _AROUND
        if room >= 0:
            entry["picture"], put = True, put + 1
    return put


def frame(*sheets: str, chart: bool) -> dict[str, Any]:
    """What every page needs: style, scripts, the look of charts, and the version."""
    return {
        "version": version("advlab"),
        "themes": {
            "light": theme(),
            "dark": theme(dark=True),
            "lifted": dict(zip([*CATEGORIES, QUIET], [*DARK_CATEGORIES, DARK_QUIET], strict=True)),
        },
        "bundle": bundle() if chart else "",
        "css": Markup("").join(asset(sheet) for sheet in sheets),
        "js": Markup("").join(map(asset, ("page.js", "search.js"))),
    }


def chart_part(spec: Mapping[str, Any], name: str, label: str) -> dict[str, Any]:
    """A chart for the template: drawing, data for the script, and where its numbers are.

    Args:
        spec: a Vega-Lite specification.
        name: of the files that a reader saves.
        label: what a screen reader says.
    """
    chart = rounded(typeset(colours.said_once(spec)))
    tables = [[one.title, one.data, one.columns] for one in figure.tables(chart)]
    drawing = figure.drawing(spec, name, label)
    drawn = addresses(drawing.markup) if drawing else ()
    return {
        "name": name,
        "label": label,
        "drawing": drawing,
        "tables": tables,
        "packed": figure.packed({"spec": by_place(chart, drawn), "tables": tables}),
    }


def counts(results: Sequence[Result]) -> dict[str, int]:
    """How many verdicts came out each way, how many there are, and how many cases failed."""
    verdicts = _decided(results)
    found = {name: sum(one.outcome == name for one in verdicts) for name in OUTCOMES}
    failed = sum(len(result.failed) for result in results)
    return {**found, "verdicts": len(verdicts), "failed": failed}


def counts_by_kind(results: Sequence[Result]) -> dict[str, dict[str, int]]:
    """Of each kind of claim that there is, how many verdicts came out each way."""
    verdicts = _decided(results)
    return {
        kind: {
            name: sum(one.kind == kind and one.outcome == name for one in verdicts)
            for name in OUTCOMES
        }
        for kind in KINDS
        if any(one.kind == kind for one in verdicts)
    }


def _decided(results: Sequence[Result]) -> list[Verdict]:
    """The verdicts that count: smoke scale decides nothing."""
    return [one for result in results if result.scale != "smoke" for one in result.verdicts]


def _gathered(
    results: Sequence[Result], papers: Mapping[str, Paper]
) -> list[tuple[str, Paper, list[Result]]]:
    """Papers in their own order, then those that nobody introduced, each with its results."""
    names = dict.fromkeys([*papers, *(result.paper for result in results)])
    gathered = []
    for name in names:
        paper = papers.get(name) or Paper(title=name)
        place = {one: number for number, one in enumerate(paper.experiments)}
        members = [result for result in results if result.paper == name]
        members.sort(key=lambda result: place.get(result.experiment, len(place)))
        if members:
            gathered.append((name, paper, members))
    return gathered


def _entries(
    results: Sequence[Result],
    paper: Paper,
    known: Mapping[str, Finding],
    prints: Prints,
    undrawn: Mapping[str, NoChart],
) -> list[dict[str, Any]]:
    specs = colours.shared([result.chart for result in results], paper.colours)
    return [
        _entry(result, spec, known, prints)
        | {"undrawn": undrawn.get(result.experiment), "picture": False}
        for result, spec in zip(results, specs, strict=True)
    ]


def _entry(
    result: Result, spec: Mapping[str, Any], known: Mapping[str, Finding], prints: Prints
) -> dict[str, Any]:
    anchor = _slug(result.experiment)
    label = f"{result.item} of {result.paper}: {result.title}"
    cards = _cards(result, known, prints)
    return {
        "result": result,
        "anchor": anchor,
        "short": result.experiment.rpartition("/")[2],
        "counts": counts([result]),
        "command": command(result),
        "chart": chart_part(spec, anchor, label) if spec else None,
        "printed": prints.tables.get(result.experiment),
        "cards": cards,
        "scope": _shared_scope(cards),
    }


def _shared_scope(cards: Sequence[Mapping[str, Any]]) -> str:
    """The scope that several claims of an experiment have; empty if each has its own.

    An experiment's claims nearly always have the same one, which is long: said once, it leaves room
    in the page for figures.
    """
    scopes = Counter(card["scope"] for card in cards if card["scope"])
    scope, times = scopes.most_common(1)[0] if scopes else ("", 0)
    return scope if times > 1 else ""


def _cards(result: Result, known: Mapping[str, Finding], prints: Prints) -> list[dict[str, Any]]:
    cards = [
        {**_card(result, verdict, known, prints), "before": before}
        for verdict, before in zip(result.verdicts, continued(result.verdicts), strict=True)
    ]
    seen: Counter[str] = Counter()
    for card in cards:
        seen[card["name"]] += 1
        times = seen[card["name"]]
        # Someone's own experiment may decide a claim twice; a link leads to one place.
        card["anchor"] = card["name"] if times == 1 else f"{card['name']}-{times}"
    return cards


def _card(
    result: Result, verdict: Verdict, known: Mapping[str, Finding], prints: Prints
) -> dict[str, Any]:
    name = result.name(verdict)
    printed = prints.numbers.get(name)
    return {
        "name": name,
        "verdict": verdict,
        "strip": strip(verdict, printed.value if printed else None),
        "printed": printed,
        "measured": measured(verdict),
        "scope": "; ".join(filter(None, (formatting.scope(verdict), formatting.sizes(verdict)))),
        "finding": known.get(name),
    }


def command(result: Result) -> str:
    """What a reader types to make this result again."""
    named = result.source in ("", result.experiment) or result.source.startswith("/")
    name = result.experiment if named else result.source
    return f"advlab run {name} --scale {result.scale} --seeds {result.seeds}"


def environment() -> Environment:
    """Templates with our words and escapes."""
    environment = Environment(
        loader=PackageLoader("advlab.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"plural": formatting.plural, "interval": formatting.interval}
    environment.filters |= {
        "duration": duration,
        "markdown": prose.markdown,
        "number": _unbroken,
        "prose": prose.paragraphs,
        "words": prose.words,
        "setting": formatting.setting,
        "settings": formatting.settings,
        "script_json": _script_json,
    }
    return environment


def _unbroken(value: float | None) -> str:
    """A number that stays in one line."""
    return formatting.number(value).replace(" ", "\u00a0")


def bundle() -> str:
    """Vega, Vega-Lite and Vega-Embed, in the version that altair writes charts for; packed."""
    # The stub asks for a snippet, but only without one is the bundle ready-made.
    script = vl_convert.javascript_bundle(vl_version=figure.VEGA_LITE)  # pyright: ignore[reportCallIssue]
    return figure.packed(script)


def _script_json(value: object) -> Markup:
    # Within a script element only "<" can end the element or open a comment.
    return Markup(json.dumps(value, separators=(",", ":")).replace("<", "\\u003c"))


def asset(name: str) -> Markup:
    """A style sheet or script of ours, to stand in a page as it is."""
    text = (files("advlab.report") / "assets" / name).read_text(encoding="utf-8")
    return Markup(text)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
