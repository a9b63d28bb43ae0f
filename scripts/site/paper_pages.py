"""A page per paper, from docs/<paper>.md, its README, papers.toml and verdicts."""

import re
from collections.abc import Iterator

import outcomes
from addresses import experiment_anchor, paths_linked, relative, relinked
from known import PAPERS, known_findings, known_papers
from prose_numbers import plain

from advlab.papers import EXPERIMENTS, ITEMS

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
        *outcomes.counts(paper),
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


def totals() -> str:
    """All papers' claims by kind and outcome, for the home page."""
    return "\n".join(outcomes.counts(*ITEMS))
