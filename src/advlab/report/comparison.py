"""Two stores side by side: which verdicts and numbers moved, and how each was made."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from .formatting import setting
from .measured import measured
from .page import environment, frame, write_page
from .result import Result
from .strip import strip
from .verdict import Verdict

Change = Literal["outcome", "number", "only in A", "only in B", "none"]
CHANGES: dict[Change, str] = {
    "outcome": "the verdict changed",
    "number": "the number moved: the intervals do not meet",
    "only in A": "only the first has it",
    "only in B": "only the second has it",
    "none": "same verdict, and intervals that meet",
}
"""What can have happened to a claim, the gravest first."""
_SAME = 1e-9


@dataclass(frozen=True)
class Row:
    """One claim in both stores."""

    name: str
    claim: str
    a: Verdict | None
    b: Verdict | None
    change: Change


@dataclass(frozen=True)
class Pair:
    """One experiment in both stores, its claims, and the settings that differ."""

    experiment: str
    title: str
    rows: tuple[Row, ...]
    differences: tuple[tuple[str, str, str], ...]


def compared(first: Sequence[Result], second: Sequence[Result]) -> list[Pair]:
    """Experiments of two stores, matched by name, and their claims, matched by id.

    Args:
        first: the results of one store.
        second: those of the other.

    Example:
        from advlab.report.comparison import compared
        [row for pair in compared(old, new) for row in pair.rows if row.change == "outcome"]
    """
    a, b = ({result.experiment: result for result in results} for results in (first, second))
    return [_pair(name, a.get(name), b.get(name)) for name in dict.fromkeys([*a, *b])]


def counts(pairs: Sequence[Pair]) -> dict[Change, int]:
    """How many claims changed in each way."""
    found = Counter(row.change for pair in pairs for row in pair.rows)
    return {change: found[change] for change in CHANGES}


def change(a: Verdict | None, b: Verdict | None) -> Change:
    """What happened to a claim.

    Exact numbers are their own intervals; they have moved if they differ by more than rounding.
    """
    if a is None or b is None:
        return "only in B" if a is None else "only in A"
    if a.outcome != b.outcome:
        return "outcome"
    return "none" if _meet(_ends(a), _ends(b)) else "number"


def write_comparison(
    pairs: Sequence[Pair], names: tuple[str, str], made: Sequence[tuple[str, str, str]], path: Path
) -> None:
    """Write the page.

    Args:
        pairs: what `compared` found.
        names: what the two stores are called.
        made: rows (what, first, second) about how they were made, from `makers`.
        path: the HTML file.
    """
    page = (
        environment()
        .get_template("comparison.html")
        .render(
            pairs=[_shown(pair) for pair in pairs],
            names=names,
            made=made,
            counts=counts(pairs),
            changes=CHANGES,
            **frame("page.css", "comparison.css", chart=False),
        )
    )
    write_page(page, path)


def makers(first: Sequence[Result], second: Sequence[Result]) -> list[tuple[str, str, str]]:
    """What made two stores: machines, versions, commits, scales and days, also the same ones."""
    return [
        (name, old, new)
        for name, (old, new) in _joined(_made(first), _made(second)).items()
        if old or new
    ]


def _made(results: Sequence[Result]) -> dict[str, str]:
    found: dict[str, dict[str, None]] = {}
    for result in results:
        commit, _, dirty = result.commit.partition("-")
        commit = "-".join(filter(None, (commit[:10], dirty)))
        about = {"machine": result.machine, "commit": commit, "scale": result.scale}
        about["finished"] = result.finished[:10]
        for name, value in {**about, **result.versions}.items():
            if value:
                found.setdefault(name, {})[value] = None
    return {name: ", ".join(sorted(values)) for name, values in found.items()}


def _pair(name: str, a: Result | None, b: Result | None) -> Pair:
    old, new = ({one.id: one for one in result.verdicts} if result else {} for result in (a, b))
    rows = []
    for label in dict.fromkeys([*old, *new]):
        before, after = old.get(label), new.get(label)
        claim = (after or before).claim  # pyright: ignore[reportOptionalMemberAccess]
        rows.append(Row(f"{name}/{label}", claim, before, after, change(before, after)))
    gravity = list(CHANGES)
    rows.sort(key=lambda row: gravity.index(row.change))
    title = (b or a).title  # pyright: ignore[reportOptionalMemberAccess]
    return Pair(name, title, tuple(rows), tuple(_differences(a, b)))


def _differences(a: Result | None, b: Result | None) -> list[tuple[str, str, str]]:
    if a is None or b is None:
        return []
    old, new = (
        {"scale": one.scale, "seeds": str(one.seeds), "cases": str(one.cases)}
        | {name: setting(value) for name, value in one.settings.items()}
        for one in (a, b)
    )
    return [(name, *both) for name, both in _joined(old, new).items() if both[0] != both[1]]


def _joined(a: Mapping[str, str], b: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    return {name: (a.get(name, ""), b.get(name, "")) for name in dict.fromkeys([*a, *b])}


def _ends(verdict: Verdict) -> tuple[float, float] | None:
    if verdict.measured is None:
        return None
    low = verdict.measured if verdict.low is None else verdict.low
    high = verdict.measured if verdict.high is None else verdict.high
    return low, high


def _meet(a: tuple[float, float] | None, b: tuple[float, float] | None) -> bool:
    if a is None or b is None:
        return a is b
    slack = _SAME * max(map(abs, (*a, *b)))
    return a[0] <= b[1] + slack and b[0] <= a[1] + slack


def _shown(pair: Pair) -> dict[str, Any]:
    return {
        "pair": pair,
        "moved": sum(row.change != "none" for row in pair.rows),
        "rows": [
            {
                "row": row,
                "sides": [
                    {"verdict": one, "strip": strip(one), "measured": measured(one)}
                    if one
                    else None
                    for one in (row.a, row.b)
                ],
            }
            for row in pair.rows
        ],
    }
