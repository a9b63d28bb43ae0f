"""advlab run: compute experiments and decide their claims."""

import json
import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ..core.errors import AdvlabError
from .list import completed

if TYPE_CHECKING:
    from ..report import Result

_FAILED_CASES = 3
_UNDRAWN = 4
_COLUMNS = ("id", "claim", "kind", "outcome", "measured", "low", "high", "rule", "scope")
_SECONDS: dict[str, float] = {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
_BYTES: dict[str, float] = {
    letter + end: 1024**power
    for power, letter in enumerate(("", "k", "m", "g", "t"))
    for end in ("", "b", "ib")
    if letter or end != "ib"
}
_SHOWN = 5
"""Refuted claims that a summary names."""
_COLOURS = {"supported": "green", "refuted": "red", "undecided": "yellow", "outside": "blue"}


Names = Annotated[
    list[str],
    typer.Argument(
        help="Names, papers, globs, or your own module or .py file.", autocompletion=completed
    ),
]
Scale = Annotated[
    Literal["smoke", "laptop", "paper"],
    typer.Option(help="smoke: does it run; laptop: claims are decided; paper: as published."),
]
Seeds = Annotated[
    int | None, typer.Option(min=1, help="Replicates; more seeds keep what is there.")
]
Jobs = Annotated[int | None, typer.Option(min=1, help="Worker processes; one per core by default.")]
Out = Annotated[Path, typer.Option(help="The folder that holds all runs.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON line per experiment.")]
Fresh = Annotated[bool, typer.Option("--fresh", help="Forget stored runs of these cases first.")]
Reuse = Annotated[bool, typer.Option("--reuse", help="Keep stored runs that other code computed.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Print every claim with its rule.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but problems.")]
Engine = Annotated[
    Literal["local", "ray"],
    typer.Option(help="Where cases are computed: on this machine, or on a Ray cluster."),
]
Address = Annotated[
    str | None, typer.Option(help="The Ray cluster; $RAY_ADDRESS, or one made here, if left out.")
]
Timeout = Annotated[
    str | None, typer.Option(metavar="TIME", help="What a case may take: 90 (seconds), 10m, 2h.")
]
Memory = Annotated[
    str | None, typer.Option(metavar="SIZE", help="What a case may hold in memory: 500M, 4G.")
]


def run(
    names: Names,
    scale: Scale = "laptop",
    seeds: Seeds = None,
    jobs: Jobs = None,
    out: Out = Path("runs"),
    as_json: AsJson = False,
    fresh: Fresh = False,
    reuse: Reuse = False,
    engine: Engine = "local",
    address: Address = None,
    timeout: Timeout = None,
    memory: Memory = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Run experiments and decide their claims.

    Each leaves figure.svg, figure.png, table.csv and report.html beside its runs, and a summary of
    a few lines; --verbose prints every claim, --quiet nothing.

    Only what is missing in the folder of runs is computed, so an interrupted run is continued by
    the same command. Runs that other code computed are counted and computed again; --reuse keeps
    them. Cases that fail, kill their process or take more than --timeout or --memory are named,
    tried again next time, and make the exit code 3. A figure that cannot be drawn is named and
    makes it 4: the result is stored, and its table and page are there.

    Examples:

    \b
      advlab run generalization/fig5 --scale smoke
      advlab run generalization/fig5 --verbose
      advlab run "generalization/*" --seeds 20 --jobs 2
      advlab run generalization --json --out runs
      advlab run my_package.my_figure
      advlab run path/to/my_figure.py --fresh
      advlab run generalization --timeout 10m --memory 4G
      advlab run generalization --engine ray --address head:6379
    """
    from ..papers import select

    # Mistakes are told before anything heavy is imported.
    chosen, limits = select(*names), _limits(timeout, memory, engine)
    if verbose and quiet:
        raise AdvlabError("--verbose or --quiet", "both")

    from .. import lab

    experiments = [lab.load(name) for name in chosen]
    for experiment in experiments:
        experiment.code(scale)  # reads all files now, before anyone changes them during a long run
    runs: dict[str, Any] = {"out": out, "fresh": fresh, "reuse": reuse, "progress": not quiet}
    where: dict[str, Any] = {"jobs": jobs, "backend": engine, "address": address, **limits}
    failed = undrawn = 0
    for experiment in experiments:
        result = lab.run(experiment, scale=scale, seeds=seeds, **runs, **where)
        failed += len(result.failed)
        files, problem = _leave(result, out)
        if problem:
            undrawn += 1
            _say(f"no figure of {result.experiment}: {problem}")
        _show(result, files, as_json=as_json, verbose=verbose, quiet=quiet)
    if failed:
        _say(f"{failed} cases failed; the same command tries them again")
        raise typer.Exit(_FAILED_CASES)
    if undrawn:
        raise typer.Exit(_UNDRAWN)


def _limits(timeout: str | None, memory: str | None, engine: str) -> dict[str, Any]:
    seconds = _amount(timeout, _SECONDS, "a time such as 90, 10m or 2h")
    size = _amount(memory, _BYTES, "a size such as 500M or 4G")
    if seconds is None and engine == "local":
        # Even the cases of a single job then have a process of their own, which they may kill.
        seconds = math.inf
    return {"timeout": seconds, "memory": None if size is None else int(size)}


def _amount(text: str | None, units: Mapping[str, float], expected: str) -> float | None:
    """A number with a unit, in the unit whose name may be left out."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-z]*)", text.strip().lower())
    if found is None or found[2] not in units or not float(found[1]) > 0:
        raise AdvlabError(expected, repr(text))
    return float(found[1]) * units[found[2]]


def _leave(result: "Result", out: Path) -> tuple[list[Path], str]:
    """The figure, its numbers and the page of one result, and why one of them is not there."""
    from ..report.leave import leave
    from .report import bibliography, known_findings, printed

    try:
        folder = out / result.experiment
        return leave(result, folder, known_findings(), bibliography(), printed())
    except OSError as error:
        _say(f"no figure: {error.filename}: {error.strerror}")
        return [], ""


def _show(
    result: "Result", files: list[Path], *, as_json: bool, verbose: bool, quiet: bool
) -> None:
    for failure in result.failed:
        _say(f"failed: {result.experiment} {json.dumps(failure.case)}: {failure.reason}")
    if as_json:
        print(_line(result), flush=True)
    elif not quiet:
        _print_result(result, files, verbose)


def _line(result: "Result") -> str:
    verdicts = [
        verdict.model_dump(include=set(_COLUMNS)) | {"id": result.name(verdict)}
        for verdict in result.verdicts
    ]
    return json.dumps({"experiment": result.experiment, "verdicts": verdicts})


def _print_result(result: "Result", files: list[Path], verbose: bool) -> None:
    """The title, how the claims came out, those that were refuted, and where the figure is."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    seeds = "1 seed" if result.seeds == 1 else f"{result.seeds} seeds"
    title = f"{result.experiment}  {result.title}  ({result.scale}, {seeds})"
    console.print(Text(title, style="bold"))
    if result.scale == "smoke":
        console.print("  it runs; smoke scale decides no claims", style="dim")
    elif verbose:
        _print_verdicts(result, console)
    else:
        console.print(_counted(result))
        for line in _refuted(result)[:_SHOWN]:
            head = Text("  refuted ", style=_COLOURS["refuted"])
            console.print(head.append(line, style="default"))
    for name in ("figure.svg", "report.html"):
        for path in files:
            if path.name == name:
                # A path is to be clicked or copied, so it is never folded.
                print(f"  {name.partition('.')[0]:<8}{path}")
    console.print()


def _refuted(result: "Result") -> list[str]:
    """The claims that were refuted, with those that their words continue."""
    from ..report.continued import continued, in_brackets

    return [
        f"{verdict.id}: {verdict.claim}{in_brackets(before)}"
        for verdict, before in zip(result.verdicts, continued(result.verdicts), strict=True)
        if verdict.outcome == "refuted"
    ]


def _counted(result: "Result") -> Any:
    from rich.text import Text

    many = "claim" if len(result.verdicts) == 1 else "claims"
    line = Text(f"  {len(result.verdicts)} {many}:")
    for outcome, colour in _COLOURS.items():
        count = sum(verdict.outcome == outcome for verdict in result.verdicts)
        if count:
            line.append(f" {count} {outcome}", style=colour)
    return line


def _print_verdicts(result: "Result", console: Any) -> None:
    """One claim per paragraph: a table of so many words would be unreadable in a terminal."""
    from rich.padding import Padding
    from rich.text import Text

    from ..report.measured import measured, shown
    from .report import printed

    numbers = printed().numbers
    for verdict in result.verdicts:
        head = Text(f"{verdict.outcome:<10}", style=_COLOURS[verdict.outcome])
        head.append(f" {verdict.id}  ", style="dim").append(verdict.claim, style="default")
        head.append(f"  ({verdict.kind})", style="dim")
        found = measured(verdict)
        detail = f"measured {shown(found)}; rule: {found.rule}"
        console.print(Padding(head, (0, 0, 0, 2)))
        console.print(Padding(Text(detail, style="dim"), (0, 0, 0, 13)))
        paper = numbers.get(result.name(verdict))
        if paper:
            words = f"the paper prints: {paper.printed} ({paper.where})"
            console.print(Padding(Text(words, style="dim"), (0, 0, 0, 13)))
        if verdict.note:
            console.print(Padding(Text(verdict.note, style="dim"), (0, 0, 0, 13)))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
