"""A gallery per paper: an index of small pictures, then every experiment with its claims."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import groupby
from typing import Any

import claim_cells
import outcomes
import pictures
import verdict_tables as tables
from addresses import ROOT, relative
from known import known_findings, known_papers

from advlab import lab
from advlab.core.progress import duration
from advlab.lab import summary
from advlab.lab.installed import installed_code
from advlab.papers import ITEMS
from advlab.report import Scope, Verdict
from advlab.report.formatting import number, plural
from advlab.report.prose import paragraphs

_EMPHASIS = re.compile(r"(?<![\w*)])\*(\w[\w -]*\w)\*(?![\w*(])")
"""A word that a docstring stresses; a star behind a letter is a formula's."""
THUMB = (1.6, 360)
"""Width over height of a small picture, and its width in pixels."""


def pages() -> dict[str, str | bytes]:
    """The galleries and their small pictures."""
    made: dict[str, str | bytes] = {f"gallery/{paper}.md": gallery(paper) for paper in ITEMS}
    for paper, items in ITEMS.items():
        for item in items:
            picture = ROOT / "docs" / _picture(f"{paper}/{item}")
            if picture.exists():
                made[_thumb(f"{paper}/{item}")] = pictures.small(picture, *THUMB)
    return made


def gallery(paper: str) -> str:
    """Every experiment of a paper in the order of its story: figure, verdicts and findings."""
    about = known_papers()[paper]
    lines = [
        f"# Gallery: {about.title}",
        "",
        f"Every figure with its claims. [The paper in one page](../{paper}.md)",
        "",
        *outcomes.counts(paper, page=f"gallery/{paper}.md"),
        *_index(paper),
        claim_cells.LEGEND,
        "",
    ]
    for item in ITEMS[paper]:
        lines += _experiment(f"{paper}/{item}")
    if tables.changes(paper):
        changed = outcomes.in_rows(tables.changed(paper))
        lines += ["", "## Verdicts that changed", "", changed]
    return "\n".join(lines) + "\n"


def _index(paper: str) -> Iterator[str]:
    """Small pictures that lead to their experiments; figures of the paper, and what proves them."""
    for drawn, items in groupby(ITEMS[paper], lambda item: _is_figure(f"{paper}/{item}")):
        heading = "Figures and tables" if drawn else "Theorems, lemmas and questions"
        yield from (f'<p class="group">{heading}</p>', '<div class="thumbs" markdown="1">', "")
        for item in items:
            name = f"{paper}/{item}"
            about, result = lab.load(name).about, _stored(paper).get(name)
            there = (ROOT / "docs" / _picture(name)).exists()
            small = f"![](../{_thumb(name)}){{ loading=lazy }}" if there else "*no picture yet*"
            tally = outcomes.tally(result["verdicts"]) if result else "<small>not run anew</small>"
            words = f'<span class="what">{about.item}</span><span>{about.title}</span>{tally}'
            yield from (f"[{small}{words}](#{item}){{ .thumb }}", "")
        yield from ("</div>", "")


def _is_figure(name: str) -> bool:
    return lab.load(name).about.item.startswith(("Figure", "Table"))


def _experiment(name: str) -> Iterator[str]:
    known = lab.load(name)
    about, (paper, item) = known.about, name.split("/")
    result = _stored(paper).get(name)
    heading = about.title if about.title.startswith(about.item) else f"{about.item}: {about.title}"
    heading = heading[:1].upper() + heading[1:]
    text = _EMPHASIS.sub(r"<em>\1</em>", str(paragraphs(known.text)))
    first, end, rest = text.replace("\n\n", "\n").partition("</p>\n")
    yield from ("", f"## {heading} {{ #{item} }}", "", first + end, "")
    yield from _drawn(name, bool(result))
    yield from (rest, "")
    laptop = about.seconds.get("laptop")
    takes = f" (laptop scale, about {duration(laptop)} on two cores)" if laptop else ""
    yield from (f"`advlab run {name}`{takes}", "")
    if result:
        yield from _decided(result)
        yield from claim_cells.printed_table(name)
    else:
        yield from ("No run of laptop scale is stored for its present rules. Its claims:", "")
        yield from (f"- `{id}` ({claim.kind}): {claim.words}" for id, claim in about.claims.items())
        yield ""
    for id in about.claims:
        one = known_findings().get(f"{name}/{id}")
        if one:
            more = relative(one.docs.removeprefix("docs/"), f"gallery/{paper}.md")
            yield f"- Finding on `{id}`: {one.finding} [More]({more})"


def _decided(result: Mapping[str, Any]) -> Iterator[str]:
    """How the claims came out, and the claims themselves to be opened."""
    many = plural(len(result["verdicts"]), "claim")
    yield '<details class="claims" markdown="1">'
    yield f"<summary>{many} {outcomes.tally(result['verdicts'])}</summary>"
    yield from ("", f"The stored run: {tables.ran(result)}.", "")
    yield from _outdated(result["experiment"])
    yield from ('<div class="verdicts" markdown="1">', "", *_rows(result), "", "</div>", "")
    scope = list(_scope(Scope(**result["scope"])))
    if scope:
        yield from ("What the claims assume, and what the run reached:", "", *scope)
    yield from ("", "</details>", "")


def _scope(scope: Scope) -> Iterator[str]:
    """An assumption per line: whether it is met, what is asked, what was reached."""
    met = {True: "met", False: "not met", None: "unknown"}
    for one in scope.assumptions:
        reached = "" if one.reached is None else f" Reached: {number(one.reached)}."
        yield f"- *{met[one.holds]}*: {one.name}. Asked: {one.condition}.{reached}"
    if scope.reduced:
        yield f"- *reduced*: {scope.reduced}"
    if scope.looks:
        yield f"- {plural(scope.looks, 'earlier look')}, on other seeds"


def _outdated(name: str) -> Iterator[str]:
    """Whether the summary is of other cases than today's recipe, or by other code."""
    file = ROOT / "results" / f"{name}.parquet"
    if file.exists():
        cases = (case.key() for case in lab.load(name).cases("laptop"))
        found = summary.outdated(summary.read(file), cases, installed_code(name))
        yield from (f"- *{words}*" for words in found)
        yield ""


def _rows(result: Mapping[str, Any]) -> Iterator[str]:
    """The claims of one experiment: what was measured, and behind a click by which rule."""
    yield "| claim | kind | what is claimed | measured | outcome |"
    yield "|---|---|---|---|---|"
    for each in result["verdicts"]:
        one = Verdict(**{"scope": result["scope"], **each})
        id = f"{result['experiment']}/{one.id}"
        words = tables.claim(one, result) + claim_cells.rule(id, one)
        value, outcome = claim_cells.measured(id, one), outcomes.of_verdict(one)
        yield "| " + " | ".join((f"`{one.id}`", one.kind, words, value, outcome)) + " |"


def _drawn(name: str, decided: bool) -> list[str]:
    file = _picture(name)
    if not (ROOT / "docs" / file).exists():
        return ["*No picture of it is stored yet; a run leaves one in its folder.*", ""]
    same = (ROOT / "results" / f"{name}.parquet").exists()
    note = (
        "" if same or not decided else "*The picture is of an earlier run than the numbers below.*"
    )
    return [f"![{name}](../{file}){{ loading=lazy }}", "", note, ""]


@cache
def _stored(paper: str) -> dict[str, dict[str, Any]]:
    return {result["experiment"]: result for result in tables.stored(paper)}


def _picture(name: str) -> str:
    return f"images/{name.replace('/', '_')}.png"


def _thumb(name: str) -> str:
    return f"images/small/{name.replace('/', '_')}.png"
