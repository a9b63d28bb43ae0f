"""Results in, one HTML file out: it needs no network, and its tables need no JavaScript."""

import json
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any, get_args

import vl_convert
from altair import SCHEMA_VERSION
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ..core.errors import AdvlabError
from ..core.files import write_text
from ..core.progress import duration
from . import formatting
from .findings import Finding
from .result import Result
from .theme import theme
from .verdict import Outcome

OUTCOMES: tuple[str, ...] = get_args(Outcome)
KINDS: dict[str, str] = {
    "empirical": "a paper says so, and it can go either way",
    "theorem": "proved: it can fail by a bug or a wrong proof only",
    "identity": "true by algebra or by construction: a test of the code",
    "ours": "a question that the paper does not ask",
}
"""What the kinds of claims are, the ones that say most first."""


def write_report(results: Sequence[Result], path: Path, known: Mapping[str, Finding]) -> None:
    """Write the page of these results."""
    write_page(render(results, known), path)


def write_page(page: str, path: Path) -> None:
    """Write a text; a reader sees the old file or the whole new one."""
    try:
        write_text(path, page)
    except OSError as error:
        came = f"{path}: {error.strerror}"
        raise AdvlabError("a place where the report can be written", came) from None


def render(results: Sequence[Result], known: Mapping[str, Finding]) -> str:
    """The page as text, experiments in the order given and gathered by paper."""
    papers: dict[str, list[dict[str, Any]]] = {}
    for result in results:
        entry = {
            "result": result,
            "anchor": _anchor(result),
            "counts": counts([result]),
            "scope": formatting.shared_scope(result.verdicts),
        }
        papers.setdefault(result.paper, []).append(entry)
    charts = sum(bool(result.chart) for result in results)
    return (
        environment()
        .get_template("page.html")
        .render(
            results=results,
            papers=papers,
            known=known,
            outcomes=OUTCOMES,
            kinds=KINDS,
            by_kind=counts_by_kind(results),
            total={**counts(results), "charts": charts},
            finished=max((result.finished for result in results), default="")[:10],
            version=version("advlab"),
            themes={"light": theme(), "dark": theme(dark=True)},
            bundle=bundle() if charts else "",
            css=asset("page.css"),
            js=asset("page.js"),
        )
    )


def counts(results: Sequence[Result]) -> dict[str, int]:
    """How many verdicts came out each way, how many there are, and how many cases failed."""
    verdicts = [verdict for result in results for verdict in result.verdicts]
    found = {name: sum(one.outcome == name for one in verdicts) for name in OUTCOMES}
    failed = sum(len(result.failed) for result in results)
    return {**found, "verdicts": len(verdicts), "failed": failed}


def counts_by_kind(results: Sequence[Result]) -> dict[str, dict[str, int]]:
    """Of each kind of claim that there is, how many verdicts came out each way."""
    verdicts = [verdict for result in results for verdict in result.verdicts]
    return {
        kind: {
            name: sum(one.kind == kind and one.outcome == name for one in verdicts)
            for name in OUTCOMES
        }
        for kind in KINDS
        if any(one.kind == kind for one in verdicts)
    }


def environment() -> Environment:
    """Templates with our words and escapes."""
    environment = Environment(
        loader=PackageLoader("advlab.report", "assets"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["plural"] = formatting.plural
    environment.filters |= {
        "duration": duration,
        "interval": formatting.interval,
        "number": formatting.number,
        "prose": formatting.prose,
        "scope": formatting.scope,
        "setting": formatting.setting,
        "settings": formatting.settings,
        "script_json": _script_json,
    }
    return environment


def bundle() -> Markup:
    """Vega, Vega-Lite and Vega-Embed, in the version that altair writes charts for."""
    version = ".".join(SCHEMA_VERSION.split(".")[:2])
    # The stub asks for a snippet, but only without one is the bundle ready-made.
    script = vl_convert.javascript_bundle(vl_version=version)  # pyright: ignore[reportCallIssue]
    return Markup(_inline(script))


def _inline(script: str) -> str:
    """A script that cannot end its own element early."""
    return re.sub(r"</(?=script)", r"<\\/", script, flags=re.IGNORECASE)


def _script_json(value: object) -> Markup:
    # Within a script element only "<" can end the element or open a comment.
    return Markup(json.dumps(value, separators=(",", ":")).replace("<", "\\u003c"))


def asset(name: str) -> Markup:
    """A style sheet or script of ours, to stand in a page as it is."""
    text = (files("advlab.report") / "assets" / name).read_text(encoding="utf-8")
    return Markup(text)


def _anchor(result: Result) -> str:
    return re.sub(r"[^a-z0-9]+", "-", result.experiment.lower()).strip("-")
