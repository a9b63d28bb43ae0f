"""advlab verify: are the stored runs whole, and by the code that is installed."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..lab.checked import Checked
    from ..lab.summary import Moved
    from ..report import Verdict

_PROBLEMS = 1
_KINDS: tuple[Literal["damaged", "foreign", "stale"], ...] = ("damaged", "foreign", "stale")

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A folder of runs or evaluations.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
Against = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Compare with a summary of earlier runs, such as `results`, instead."
    ),
]


def verify(folder: Folder = Path("runs"), against: Against = None, as_json: AsJson = False) -> None:
    """Check that runs, results, evaluations and checkpoints are whole; writes nothing.

    Damaged: a file is not what was written. Foreign: it does not belong there. Stale: other code
    than the installed one made a run or an evaluation, its data or its model changed, or a result
    rests on runs that changed or are gone. The exit code is 1 if anything is. Failed cases are
    counted and leave it at 0.

    With --against the results of laptop scale are compared, claim by claim and cell by cell, with
    those that a summary holds; `results` of the repository is that of the published runs. Notes say
    where cases or code are others than the summary's. The exit code is 1 if a verdict moved.

    Examples:

    \b
      advlab verify runs
      advlab verify runs/generalization/fig5
      advlab verify runs --json
      advlab verify runs --against results
    """
    if against is not None:
        _against(folder, against, as_json)
        return
    from ..lab.verify import verify as check

    found = check(folder)
    if as_json:
        print(json.dumps(_record(folder, found)))
    else:
        _print(found)
    if any(one.problems for one in found):
        raise typer.Exit(_PROBLEMS)


def _against(folder: Path, summary: Path, as_json: bool) -> None:
    from ..core.errors import AdvlabError
    from ..lab.summary import compare, read, results, table

    for one in (folder, summary):
        if not one.is_dir():
            raise AdvlabError("a folder", f"{one}, which is none")
    found, unknown = {}, []
    for result, place in results(folder):
        file = summary / f"{result.experiment}.parquet"
        if file.is_file():
            found[result.experiment] = compare(read(file), result, table(result, place))
        else:
            unknown.append(result.experiment)
    if not found:
        came = f"only {', '.join(unknown)}" if unknown else f"none in {folder}"
        raise AdvlabError(f"laptop-scale results that {summary} knows", came)
    if as_json:
        print(json.dumps(_moves(found, unknown)))
    else:
        _print_moves(found, unknown)
    if any(one.verdicts for one in found.values()):
        raise typer.Exit(_PROBLEMS)


def _moves(found: "Mapping[str, Moved]", unknown: list[str]) -> dict[str, object]:
    compared = [
        {
            "experiment": name,
            "claims": len(one.pair.rows),
            "verdicts_moved": one.verdicts,
            "numbers_moved": one.numbers,
            "rows": [
                {"claim": row.name, "change": row.change}
                | {
                    side: verdict and {"outcome": verdict.outcome, "measured": verdict.measured}
                    for side, verdict in (("old", row.a), ("new", row.b))
                }
                for row in one.pair.rows
            ],
            "columns": {
                column: {"share": share, "largest": largest if largest < math.inf else None}
                for column, (share, largest) in one.different.items()
            },
            "note": one.note,
            "made_otherwise": list(one.made),
        }
        for name, one in found.items()
    ]
    same = not any(one.verdicts for one in found.values())
    return {"same_verdicts": same, "compared": compared, "not_in_summary": unknown}


def _print_moves(found: "Mapping[str, Moved]", unknown: list[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ..lab.summary import number_moved

    console = Console()
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("experiment", no_wrap=True)
    for name in ("claims", "verdicts moved", "numbers moved"):
        table.add_column(name, justify="right")
    table.add_column("table")
    for name, one in found.items():
        table.add_row(
            Text(name),
            str(len(one.pair.rows)),
            str(one.verdicts or "-"),
            str(one.numbers or "-"),
            Text(_cells(one)),
        )
    console.print(table)
    for one in found.values():
        for row in one.pair.rows:
            old, new = (
                "no such claim" if side is None else _measured(side) for side in (row.a, row.b)
            )
            if row.change in ("outcome", "only in A", "only in B") or number_moved(row):
                print(f"{row.name}: {old} -> {new}")
                print(f"    {row.claim}")
        for words in one.made:
            print(f"note: {one.pair.experiment}: {words}")
        for what, before, now in one.pair.differences:
            print(f"note: {one.pair.experiment}: {what} was {before or '-'}, is {now or '-'}")
    if unknown:
        print(f"note: not in the summary: {', '.join(unknown)}")
    moved = sum(one.verdicts for one in found.values())
    print(f"verdicts that moved: {moved or 'none'}")


def _measured(verdict: "Verdict") -> str:
    value = "" if verdict.measured is None else f" ({verdict.measured:.6g})"
    return f"{verdict.outcome}{value}"


def _cells(one: "Moved") -> str:
    if one.note or not one.different:
        return one.note or "the same"
    worst = max(one.different, key=lambda column: one.different[column][1])
    share, largest = one.different[worst]
    by = f"by up to {largest:.1e}" if largest < math.inf else "in words"
    more = f", and {len(one.different) - 1} more columns" if len(one.different) > 1 else ""
    return f"{worst}: {share:.0%} of cells differ {by}{more}"


def _record(folder: Path, found: "Sequence[Checked]") -> dict[str, object]:
    checked = [
        {"name": one.name, "whole": one.whole, "results": one.results, "failed": one.failed}
        | {kind: one.count(kind) for kind in _KINDS}
        for one in found
        if not one.is_empty
    ]
    return {
        "folder": str(folder),
        "whole": not any(one.problems for one in found),
        "checked": checked,
        "problems": [vars(problem) for one in found for problem in one.problems],
        "notes": [note for one in found for note in one.notes],
    }


def _print(found: "Sequence[Checked]") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = [one for one in found if not one.is_empty]
    table = Table(box=None, pad_edge=False, header_style="dim", show_footer=len(shown) > 1)
    table.add_column("folder", footer="all", overflow="fold")
    columns = {
        "whole": [one.whole for one in shown],
        "results": [one.results for one in shown],
        "failed": [one.failed for one in shown],
        **{kind: [one.count(kind) for one in shown] for kind in _KINDS},
    }
    for name, counts in columns.items():
        table.add_column(name, justify="right", footer=str(sum(counts)))
    for row, one in enumerate(shown):
        table.add_row(Text(one.name), *(str(counts[row] or "-") for counts in columns.values()))
    Console().print(table)
    for one in found:
        for problem in one.problems:
            print(f"{problem.kind}: {problem.path}: {problem.why}")
    for one in found:
        for note in one.notes:
            print(f"note: {note}")
