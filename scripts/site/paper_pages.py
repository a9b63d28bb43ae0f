"""A page per paper, from docs/<paper>.md, its README, papers.toml and verdicts."""

import re
from collections.abc import Iterator

import outcomes
from addresses import experiment_anchor, paths_linked, relative, relinked
from known import PAPERS, known_findings, known_papers
from prose_numbers import plain

from advlab.papers import EXPERIMENTS, ITEMS

SYMBOLS = "Symbols"
DISAGREE = "Where measurement and paper disagree, and why."
LEADING = 2
"""So many sections of a README come first: the paper in one page, and where its statements are."""
_TABLES = re.compile(r"^(.*?)<!-- (verdicts|changes) -->\n.*?<!-- /\2 -->\n?", re.DOTALL)
_ELSEWHERE = re.compile(r"<!-- elsewhere -->.*?<!-- /elsewhere -->\n*", re.DOTALL)


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
    opening, own_sections = _parts(rest)
    lines += [about.story.strip(), "", *_counts(paper, uri), "", opening.strip("\n"), ""]
    sections, found = list(_sections(paper)), list(_findings(paper, uri))
    # First what the paper says and where it is in the code; its symbols when these are known.
    sections[LEADING:LEADING] = [
        *[one for one in own_sections if one[0] == SYMBOLS],
        *([("Findings", "\n".join([DISAGREE, "", *found]))] if found else []),
        *[one for one in own_sections if one[0] != SYMBOLS],
    ]
    for place, (heading, text) in enumerate(sections):
        is_table = place == LEADING - 1 or heading == SYMBOLS
        lines += [f"## {heading}", "", stacked(text) if is_table else text, ""]
    readme = paths_linked("\n".join(lines), PAPERS / paper, uri, ITEMS[paper])
    return readme + "\n"


def stacked(text: str) -> str:
    """A section whose table stands as cards on a narrow screen."""
    return f'<div class="stacked" markdown="1">\n\n{text}\n\n</div>'


def _parts(text: str) -> tuple[str, list[tuple[str, str]]]:
    """What stands before the first section, and the sections by their headings."""
    opening, *rest = re.split(r"^## ", text, flags=re.MULTILINE)
    sections = (one.partition("\n") for one in rest)
    return opening, [(heading, body.strip()) for heading, _, body in sections]


def _counts(paper: str, uri: str) -> list[str]:
    gallery = f"[gallery](gallery/{paper}.md)"
    return [
        f"What runs decided; every figure with its claims is in the {gallery}.",
        "",
        *outcomes.counts(paper, page=uri),
    ]


def _sections(paper: str) -> Iterator[tuple[str, str]]:
    """The sections of its README; what a table of verdicts stands in is left to the gallery."""
    source = PAPERS / paper / "README.md"
    text = plain(source.read_text(encoding="utf-8"))
    for heading, body in _parts(text)[1]:
        found = _TABLES.match(body)
        if found:
            intro = found[1].strip()
            if found[2] == "changes" or not intro:
                continue
            there = f"The verdicts stand beside their figures in the [gallery](gallery/{paper}.md)."
            yield heading, f"{relinked(intro, source, f'{paper}.md')}\n\n{there}"
            continue
        yield heading, relinked(body, source, f"{paper}.md")


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


def totals() -> str:
    """All papers' claims by kind and outcome, for the home page."""
    return "\n".join(outcomes.counts(*ITEMS, page="index.md"))
