"""Outcomes as the report shows them: a word on its colour, and how many there are of each."""

import re
from collections.abc import Mapping, Sequence
from html import escape

import claims_pages
import verdict_tables as tables
from addresses import relative

from advlab.report import Verdict
from advlab.report.page import KINDS, OUTCOMES

_LEADING = re.compile(rf"(?<=\| )({'|'.join(OUTCOMES)})\b")


def badge(outcome: str, text: str = "") -> str:
    """A word on the colour of its outcome.

    Args:
        outcome: supported, refuted, undecided or outside.
        text: what is to be read; the outcome if left out.
    """
    return f'<span class="badge {outcome}">{text or outcome}</span>'


def of_verdict(verdict: Verdict) -> str:
    """The badge of a verdict, and what its words add, as "at this size"."""
    rest = verdict.words.removeprefix(verdict.outcome).strip()
    return badge(verdict.outcome) + (f" <small>{rest}</small>" if rest else "")


def in_rows(rows: str) -> str:
    """A Markdown table whose cells begin with badges where they began with outcomes."""
    return _LEADING.sub(lambda found: badge(found[1]), rows)


def tally(verdicts: Sequence[Mapping[str, str]]) -> str:
    """A bar of the outcomes, as long as they are many, and their counts."""
    counted = {name: sum(one["outcome"] == name for one in verdicts) for name in OUTCOMES}
    there = {name: count for name, count in counted.items() if count}
    parts = "".join(
        f'<span class="{name}" style="flex-grow: {count}"></span>' for name, count in there.items()
    )
    words = " ".join(badge(name, f"{count} {name}") for name, count in there.items())
    return f'<span class="bar" aria-hidden="true">{parts}</span><span class="tally">{words}</span>'


def counts(*papers: str, page: str) -> list[str]:
    """How many claims of some papers were decided how, by kind: a table in HTML.

    Each cell names its column, which a narrow screen shows in it, and leads to its claims.

    Args:
        papers: those that are counted together.
        page: where the table stands.
    """
    found = [one for paper in papers for one in tables.verdicts(paper).values()]
    heads = "".join(f'<th scope="col">{badge(name)}</th>' for name in OUTCOMES)
    rows = []
    for kind, words in KINDS.items():
        each = [one.outcome for one in found if one.kind == kind]
        cells = "".join(
            f'<td data-label="{name}" class="{"" if each.count(name) else "none"}">'
            f"{_linked(each.count(name), claims_pages.anchor(kind, name, papers), page)}</td>"
            for name in OUTCOMES
        )
        if each:
            rows.append(
                f'<tr><th scope="row">{kind} <small>{escape(words)}</small></th>{cells}</tr>'
            )
    top = f'<thead><tr><th scope="col">kind</th>{heads}</tr></thead>'
    return [f'<table class="counts">{top}<tbody>{"".join(rows)}</tbody></table>', ""]


def _linked(count: int, anchor: str, page: str) -> str:
    where = relative(anchor, page).replace(".md", ".html")
    return f'<a href="{where}">{count}</a>' if count else str(count)
