"""A page and a gallery per paper, from its README, papers.toml, verdicts and pictures."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import claim_cells
import verdict_tables as tables
from addresses import PACKAGE, ROOT, experiment_anchor, paths_linked, relative, relinked
from prose_numbers import plain

from advlab import lab
from advlab.core.progress import duration
from advlab.papers import EXPERIMENTS, ITEMS
from advlab.report import Verdict, bibliography, findings
from advlab.report.prose import paragraphs

PAPERS = PACKAGE / "papers"
_TABLES = re.compile(r"^(.*?)<!-- (verdicts|changes) -->\n.*?<!-- /\2 -->\n?", re.DOTALL)
_ELSEWHERE = re.compile(r"<!-- elsewhere -->.*?<!-- /elsewhere -->\n*", re.DOTALL)


@cache
def known_papers() -> dict[str, bibliography.Paper]:
    """The papers, by their short names."""
    return bibliography.load(PAPERS / "papers.toml", ITEMS)


@cache
def known_findings() -> dict[str, findings.Finding]:
    """Findings by the name of their verdict."""
    return findings.load(PAPERS / "findings.toml", ROOT / "docs" / "findings.md")


def page(paper: str, own: str) -> str:
    """The page of a paper.

    Args:
        paper: its short name.
        own: what docs/<paper>.md says, whose title and pictures come first.
    """
    about, uri = known_papers()[paper], f"{paper}.md"
    title, _, rest = _ELSEWHERE.sub("", own).partition("\n")
    lines = [
        title,
        "",
        f"{about.by}. *{about.title}*. {about.venue}. [{about.url}]({about.url})",
        "",
    ]
    lines += [about.story.strip(), "", *_counts(paper), "", rest.strip("\n"), ""]
    for heading, text in _sections(paper):
        lines += [f"## {heading}", "", text, ""]
    found = list(_findings(paper, uri))
    lines += (
        ["## Findings", "", "Where measurement and paper disagree, and why.", "", *found]
        if found
        else []
    )
    readme = paths_linked("\n".join(lines), PAPERS / paper, uri, ITEMS[paper])
    return readme + "\n"


def _counts(paper: str) -> list[str]:
    gallery = f"[gallery](gallery/{paper}.md)"
    return [
        f"What runs decided; every figure with its claims is in the {gallery}.",
        "",
        *tables.counts(paper),
    ]


def _sections(paper: str) -> Iterator[tuple[str, str]]:
    """The sections of its README; what a table of verdicts stands in is left to the gallery."""
    source = PAPERS / paper / "README.md"
    text = plain(source.read_text(encoding="utf-8"))
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        heading, _, body = section.partition("\n")
        found = _TABLES.match(body)
        if found:
            intro = found[1].strip()
            if found[2] == "changes" or not intro:
                continue
            there = f"The verdicts stand beside their figures in the [gallery](gallery/{paper}.md)."
            yield heading, f"{relinked(intro, source, f'{paper}.md')}\n\n{there}"
            continue
        yield heading, relinked(body.strip(), source, f"{paper}.md")


def _findings(paper: str, uri: str) -> Iterator[str]:
    by_page: dict[tuple[str, str], list[str]] = {}
    for name, one in known_findings().items():
        if name.startswith(f"{paper}/"):
            by_page.setdefault((one.finding, one.docs), []).append(name)
    for (words, docs), names in by_page.items():
        claims = ", ".join(f"[`{one.partition('/')[2]}`]({_anchor(one, uri)})" for one in names)
        yield f"- {words} ({claims}; [more]({relative(docs.removeprefix('docs/'), uri)}))"


def _anchor(claim: str, uri: str) -> str:
    name = next(
        one for one in sorted(EXPERIMENTS, key=len, reverse=True) if claim.startswith(one + "/")
    )
    return relative(experiment_anchor(name), uri)


def gallery(paper: str) -> str:
    """Every experiment of a paper in the order of its story: figure, verdicts and findings."""
    about, uri = known_papers()[paper], f"gallery/{paper}.md"
    stored = {result["experiment"]: result for result in tables.stored(paper)}
    lines = [
        f"# Gallery: {paper}",
        "",
        f"*{about.title}*: [the paper in one page](../{paper}.md)",
        "",
    ]
    lines += [*tables.counts(paper), "", claim_cells.LEGEND, ""]
    for item in ITEMS[paper]:
        lines += _experiment(f"{paper}/{item}", stored.get(f"{paper}/{item}"), uri)
    changed = tables.changed(paper) if tables.changes(paper) else ""
    if changed:
        lines += ["", "## Verdicts that changed", "", changed]
    return "\n".join(lines) + "\n"


def _experiment(name: str, result: Mapping[str, Any] | None, uri: str) -> list[str]:
    known = lab.load(name)
    about, item = known.about, name.partition("/")[2]
    heading = about.title if about.title.startswith(about.item) else f"{about.item}: {about.title}"
    heading = heading[:1].upper() + heading[1:]
    lines = [
        "",
        f"## {heading} {{ #{item} }}",
        "",
        str(paragraphs(known.text)).replace("\n\n", "\n"),
        "",
    ]
    lines += _picture(name, bool(result))
    laptop = about.seconds.get("laptop")
    takes = f" (laptop scale, about {duration(laptop)} on two cores)" if laptop else ""
    lines += [f"`advlab run {name}`{takes}", ""]
    if result:
        lines += [f"The claims of the stored run ({tables.ran(result)}):", ""]
        lines += ['<div class="verdicts" markdown="1">', "", *_rows(result), "", "</div>", ""]
        lines += _scope(tables.reached(result))
        lines += claim_cells.printed_table(name)
    else:
        lines += ["No run of laptop scale is stored for its present rules. Its claims:", ""]
        lines += [f"- `{id}` ({claim.kind}): {claim.words}" for id, claim in about.claims.items()]
        lines += [""]
    for id in about.claims:
        one = known_findings().get(f"{name}/{id}")
        if one:
            more = relative(one.docs.removeprefix("docs/"), uri)
            lines += [f"- Finding on `{id}`: {one.finding} [More]({more})"]
    return lines


def _rows(result: Mapping[str, Any]) -> Iterator[str]:
    """The claims of one experiment: what was measured, and behind a click by which rule."""
    yield "| claim | kind | what is claimed | measured | outcome |"
    yield "|---|---|---|---|---|"
    for each in result["verdicts"]:
        one = Verdict(**{"scope": result["scope"], **each})
        id = f"{result['experiment']}/{one.id}"
        words = tables.claim(one, result) + claim_cells.rule(id, one)
        cells = (f"`{one.id}`", one.kind, words, claim_cells.measured(id, one), tables.outcome(one))
        yield "| " + " | ".join(cells) + " |"


def _scope(parts: list[str]) -> list[str]:
    """What the run assumed and reached, to be opened."""
    if not parts:
        return []
    head = '<details markdown="1"><summary>What the run assumes, and what it reached</summary>'
    return [head, "", *(f"- {part}" for part in parts), "", "</details>", ""]


def _picture(name: str, decided: bool) -> list[str]:
    file = f"images/{name.replace('/', '_')}.png"
    if not (ROOT / "docs" / file).exists():
        return ["*No picture of it is stored yet; a run leaves one in its folder.*", ""]
    same = (ROOT / "results" / f"{name}.parquet").exists()
    note = (
        "" if same or not decided else "*The picture is of an earlier run than the numbers below.*"
    )
    return [f"![{name}](../{file}){{ loading=lazy }}", "", note, ""]


def totals() -> str:
    """All papers' claims by kind and outcome, for the home page."""
    return "\n".join(tables.counts(*ITEMS))
