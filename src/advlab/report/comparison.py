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

Change = Literal["outcome", "rule", "number", "only in A", "only in B", "none"]
CHANGES: dict[Change, str] = {
    "outcome": "the verdict changed",
    "rule": "the words, the kind or the rule changed: numbers may be of other things",
    "number": "the number moved: the intervals do not meet",
    "only in A": "only the first has it",
    "only in B": "only the second has it",
    "none": "same verdict, and intervals that meet",
}
"""What can have happened to a claim, the gravest first."""
SCALES = ("smoke", "laptop", "paper")
"""From the least to the most work."""
_SAME = 1e-9


@dataclass(frozen=True)
class Row:
    """One claim in both stores.

    Args:
        name: the experiment's name and the claim's id.
        claim: its words today.
        a: the verdict of the first store.
        b: that of the second.
        change: the gravest of what happened to it.
    """

    name: str
    claim: str
    a: Verdict | None
    b: Verdict | None
    change: Change

    @property
    def reworded(self) -> list[tuple[str, str, str]]:
        """The words, the kind and the rule of both, where they differ."""
        if self.a is None or self.b is None:
            return []
        both = {
            "words": (self.a.claim, self.b.claim),
            "kind": (self.a.kind, self.b.kind),
            "rule": (self.a.rule, self.b.rule),
        }
        return [(name, old, new) for name, (old, new) in both.items() if old != new]


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


def at_equal_scales(
    first: Sequence[Result], second: Sequence[Result]
) -> tuple[list[Result], list[Result], list[str]]:
    """Of each experiment the results of the highest scale that both stores have.

    Args:
        first: the results of one store, at all their scales.
        second: those of the other.

    Returns:
        Results of both, and the experiments that have no scale in common, which are in neither. One
        that only one store has is there at its highest scale.
    """
    a, b = (_by_scale(results) for results in (first, second))
    kept: tuple[list[Result], list[Result]] = ([], [])
    apart = []
    for name in dict.fromkeys([*a, *b]):
        here = [store[name] for store in (a, b) if name in store]
        common = [scale for scale in SCALES if all(scale in results for results in here)]
        if not common:
            apart.append(name)
        for store, results in zip((a, b), kept, strict=True):
            if name in store and common:
                results.append(store[name][common[-1]])
    return *kept, apart


def _by_scale(results: Sequence[Result]) -> dict[str, dict[str, Result]]:
    found: dict[str, dict[str, Result]] = {}
    for result in results:
        found.setdefault(result.experiment, {})[result.scale] = result
    return found


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
    if (a.claim, a.kind, a.rule) != (b.claim, b.kind, b.rule):
        return "rule"
    return "none" if _meet(_ends(a), _ends(b)) else "number"


def write_comparison(
    pairs: Sequence[Pair],
    names: tuple[str, str],
    made: Sequence[tuple[str, str, str]],
    path: Path,
    apart: Sequence[str] = (),
) -> None:
    """Write the page.

    Args:
        pairs: what `compared` found.
        names: what the two stores are called.
        made: rows (what, first, second) about how they were made, from `makers`.
        path: the HTML file.
        apart: experiments that have no scale in common.
    """
    page = (
        environment()
        .get_template("comparison.html")
        .render(
            pairs=[_shown(pair) for pair in pairs],
            names=names,
            made=made,
            apart=apart,
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
