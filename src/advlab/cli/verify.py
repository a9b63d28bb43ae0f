"""advlab verify: are the stored runs whole, and by the code that is installed."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..lab.checked import Checked

_PROBLEMS = 1
_KINDS: tuple[Literal["damaged", "foreign", "stale"], ...] = ("damaged", "foreign", "stale")

Folder = Annotated[Path, typer.Argument(metavar="DIR", help="A folder of runs or evaluations.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def verify(folder: Folder = Path("runs"), as_json: AsJson = False) -> None:
    """Check that runs, results, evaluations and checkpoints are whole; writes nothing.

    Damaged: a file is not what was written. Foreign: it does not belong there. Stale: other code
    than the installed one made a run or an evaluation, its data or its model changed, or a result
    rests on runs that changed or are gone. The exit code is 1 if anything is. Failed cases are
    counted and leave it at 0.

    Examples:

    \b
      advlab verify runs
      advlab verify runs/generalization/fig5
      advlab verify runs --json
    """
    from ..lab.verify import verify as check

    found = check(folder)
    if as_json:
        print(json.dumps(_record(folder, found)))
    else:
        _print(found)
    if any(one.problems for one in found):
        raise typer.Exit(_PROBLEMS)


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
    table = Table("folder", show_footer=len(shown) > 1)
    table.columns[0].footer, table.columns[0].overflow = "all", "fold"
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
