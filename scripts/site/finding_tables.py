"""Under each finding, what the runs that it cites decided: its numbers, not typed by hand."""

import re
from collections.abc import Iterator

import claim_cells
import outcomes
import verdict_tables as tables
from addresses import experiment_anchor

from advlab import lab
from advlab.papers import EXPERIMENTS
from advlab.report import Verdict

_CITED = re.compile(r"\[(`[^\[\]]+`[^\[\]]*)\](?!\()")
_ID = re.compile(r"`([^`]+)`(?:-`([^`]+)`)?")


class UnknownClaim(ValueError):
    """A finding cites a claim that no experiment makes."""


def with_tables(page: str) -> str:
    """A page of findings with a table at the end of each section that cites verdicts.

    Args:
        page: Markdown; sections cite as [`paper/experiment/claim`, `claim of the same`, `a`-`c`].

    Raises:
        UnknownClaim: a cited claim does not exist.
    """
    title, *sections = re.split(r"^(?=#{2,3} )", page, flags=re.MULTILINE)
    return title + "".join(_with_table(section) for section in sections)


def _with_table(section: str) -> str:
    ids = list(dict.fromkeys(cited(section)))
    known = {id: one for paper in tables.papers() for id, one in tables.verdicts(paper).items()}
    rows = [_row(id, known[id]) for id in ids if id in known]
    if not rows:
        return section
    head = ["| claim | what is claimed | measured | outcome |", "|---|---|---|---|"]
    table = ['<div class="verdicts" markdown="1">', "", *head, *rows, "", "</div>"]
    return "\n".join([section.rstrip(), "", *table, "", ""])


def cited(section: str) -> Iterator[str]:
    """The full ids of the claims that a section cites, in its order."""
    experiment = ""
    for group in _CITED.findall(section):
        for first, last in _ID.findall(group):
            named = "/".join(first.split("/")[:2])
            if named in EXPERIMENTS:
                experiment, first = named, first.removeprefix(named).removeprefix("/")
            yield from _labels(experiment, first, last)


def _labels(experiment: str, first: str, last: str) -> Iterator[str]:
    if not first:  # the experiment as a whole
        return
    if not experiment:
        raise UnknownClaim(f"`{first}` without its experiment")
    labels = list(lab.load(experiment).about.claims)
    last = last or first
    if not {first, last} <= set(labels):  # `29a` is `29a/random` and `29a/wide_margin`
        stems = list(dict.fromkeys(one.split("/")[0] for one in labels))
        if not {first, last} <= set(stems):
            came = f"`{experiment}/{first}`" if first == last else f"`{first}`-`{last}`"
            raise UnknownClaim(f"{came}; {experiment} has {', '.join(labels)}")
        stems = stems[stems.index(first) : stems.index(last) + 1]
        yield from (f"{experiment}/{one}" for one in labels if one.split("/")[0] in stems)
        return
    yield from (
        f"{experiment}/{one}" for one in labels[labels.index(first) : labels.index(last) + 1]
    )


def _row(id: str, verdict: Verdict) -> str:
    experiment = "/".join(id.split("/")[:2])
    words = tables.in_cell(verdict.claim) + claim_cells.rule(id, verdict)
    link = f"[`{id.partition('/')[2]}`]({experiment_anchor(experiment)})"
    value, outcome = claim_cells.measured(id, verdict), outcomes.of_verdict(verdict)
    return f"| {link} | {words} | {value} | {outcome} |"
