"""All claims by kind and outcome: what the counts of the other pages lead to."""

from collections.abc import Iterator, Sequence

import verdict_tables as tables
from addresses import experiment_anchor, relative

from advlab.papers import ITEMS
from advlab.report import Verdict
from advlab.report.page import KINDS

PAGE = "claims.md"
ORDER = ("refuted", "undecided", "outside", "supported")
"""Outcomes, those first that say most."""


def anchor(kind: str, outcome: str, papers: Sequence[str]) -> str:
    """Where the claims of a kind and an outcome stand.

    Args:
        kind: of the claims.
        outcome: of them.
        papers: one, or all of them.
    """
    place = f"{PAGE}#{kind}-{outcome}"
    return f"{place}-{papers[0]}" if len(papers) == 1 else place


def page() -> str:
    """The Markdown of the page."""
    found = {paper: tables.verdicts(paper) for paper in ITEMS}
    lines = [
        "# Claims by kind and outcome",
        "",
        "Every claim that a stored run of laptop scale decided; each leads to its figure, its "
        "number and its rule.",
        "",
    ]
    for kind, words in KINDS.items():
        for outcome in ORDER:
            chosen = {
                paper: {
                    id: one
                    for id, one in known.items()
                    if (one.kind, one.outcome) == (kind, outcome)
                }
                for paper, known in found.items()
            }
            count = sum(map(len, chosen.values()))
            if count:
                heading = f"## {kind}, {outcome}: {count} {{ #{kind}-{outcome} }}"
                lines += ["", heading, "", f"*{words}*", *_lists(kind, outcome, chosen)]
    return "\n".join(lines) + "\n"


def _lists(kind: str, outcome: str, chosen: dict[str, dict[str, Verdict]]) -> Iterator[str]:
    for paper, claims in chosen.items():
        if claims:
            yield from ("", f"### {paper} {{ #{kind}-{outcome}-{paper} }}", "")
        for id, one in claims.items():
            name, _, label = id.partition("/")[2].partition("/")
            where = relative(experiment_anchor(f"{paper}/{name}"), PAGE)
            yield f"- [`{name}/{label}`]({where}) {one.claim}"
