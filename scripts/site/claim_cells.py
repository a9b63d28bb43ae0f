"""What stands in a table of claims beside the words: what was measured, and the rule to be opened.

A `<details>` in a cell of a Markdown table would end the table, so it is written as a `<span>` and
becomes one in the page (`opened`).
"""

import re
from functools import cache

from addresses import PACKAGE
from verdict_tables import in_cell

from advlab.report import Verdict, printed
from advlab.report.measured import measured as quantity
from advlab.report.measured import shown

LEGEND = (
    "*Measured* is the number of the quantity named below it, with its 95 % interval; of several "
    "groups it is the worst one. *Rule* opens what was asked of it."
)
_RULE = re.compile(r'<span class="rule">(.*?)</span>', re.DOTALL)


@cache
def prints() -> printed.Prints:
    """What the papers print."""
    return printed.load(PACKAGE / "papers" / "printed.toml")


def measured(id: str, verdict: Verdict) -> str:
    """The number, what it is the number of, and what the paper prints.

    Args:
        id: the full id of the claim.
        verdict: its verdict.
    """
    found, paper = quantity(verdict), prints().numbers.get(id)
    lines = [found.what] if found.what else []
    lines += [f"the paper: {paper.printed}"] if paper else []
    return shown(found) + "".join(f"<small>{in_cell(line)}</small>" for line in lines)


def rule(id: str, verdict: Verdict) -> str:
    """The rule with its note, to be opened: `opened` makes it so."""
    found, paper = quantity(verdict), prints().numbers.get(id)
    parts = [verdict.rule]
    if found.left is not None:
        parts.append(f"asked: {found.asked}, and {found.left:.4g} is left")
    parts += [verdict.note] if verdict.note else []
    parts += [f"the paper: {paper.printed} ({paper.where})"] if paper else []
    return f'<span class="rule">{in_cell("; ".join(parts))}</span>'


def opened(page: str) -> str:
    """HTML in which rules can be opened; the search leaves them out."""
    return _RULE.sub(
        r"<details data-search-exclude><summary>rule</summary>\1</details>",
        page,
    )


def printed_table(experiment: str) -> list[str]:
    """The table that the paper prints, to be opened; nothing if there is none."""
    found = prints().tables.get(experiment)
    if found is None:
        return []
    head = f'<details markdown="1"><summary>What the paper prints: {found.where}</summary>'
    rows = [found.columns, ("---",) * len(found.columns), *found.rows]
    table = ["| " + " | ".join(in_cell(cell) for cell in row) + " |" for row in rows]
    return [head, "", *([found.note, ""] if found.note else []), *table, "", "</details>", ""]
