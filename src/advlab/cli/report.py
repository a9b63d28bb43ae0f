"""advlab report: one HTML page of everything that was run."""

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NoReturn

import typer

if TYPE_CHECKING:
    from ..lab.summary import Summary
    from ..report import Result
    from ..report.bibliography import Paper
    from ..report.findings import Finding
    from ..report.page import NoChart
    from ..report.printed import Prints

_REFUTED = 1


def report(
    stores: Annotated[
        list[Path] | None,
        typer.Argument(
            help="A folder of runs, or of summaries such as `results`, instead of --out; two to "
            "compare."
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="The folder that holds all runs.")] = Path("runs"),
    to: Annotated[Path, typer.Option(help="The page to write.")] = Path("report.html"),
    scale: Annotated[
        Literal["smoke", "laptop", "paper"] | None,
        typer.Option(help="Only results of this scale; the highest of each if left out."),
    ] = None,
) -> None:
    """Make one HTML page of every result: figures, claims, verdicts and where they came from.

    Two folders are shown side by side: which verdicts and numbers moved. `results` of the
    repository holds summaries of the published runs: their page is made without a run. The exit
    code is 1 if a claim is refuted and not listed as a known finding, or if the verdicts of two
    folders differ.

    Examples:

    \b
      advlab report
      advlab report --out runs --to report.html
      advlab report --scale paper
      advlab report runs-before runs-after --to comparison.html
      advlab report results --to published.html
      advlab report runs results --to comparison.html
    """
    from ..core.errors import AdvlabError
    from ..report.page import write_report

    if to.is_dir() or not to.name:
        raise AdvlabError("--to as the page to write", f"{to}, a folder", "add report.html to it")
    folders = stores or [out]
    if len(folders) > 2:
        raise AdvlabError("one folder of runs, or two to compare", f"{len(folders)} folders")
    if len(folders) == 2:
        _compare(folders[0], folders[1], scale, to)
        return
    results, undrawn = _shown(folders[0], scale)
    known, papers = known_findings(), bibliography()
    write_report(results, to, known, papers, printed(), undrawn)
    _print_counts(results)
    print(f"report: {to}")
    surprises = _surprises(results, known)
    for line in surprises:
        print(f"refuted: {line}", file=sys.stderr)
    if surprises:
        raise typer.Exit(_REFUTED)


def _compare(first: Path, second: Path, scale: str | None, to: Path) -> None:
    from ..report.comparison import at_equal_scales, compared, counts, makers, write_comparison

    a, b, apart = at_equal_scales(_some(first, scale), _some(second, scale))
    pairs = compared(a, b)
    write_comparison(pairs, (str(first), str(second)), makers(a, b), to, apart)
    words = {
        "outcome": "verdicts changed",
        "rule": "rules or words changed",
        "number": "numbers moved",
        "none": "same",
    }
    for change, count in counts(pairs).items():
        print(f"{count:>5} {words.get(change, change)}")
    for name in apart:
        print(f"not compared: {name} has no scale in both", file=sys.stderr)
    moved = [row for pair in pairs for row in pair.rows if row.change == "outcome"]
    for row in moved:
        if row.a and row.b:
            print(f"changed: {row.name}: {row.a.outcome} -> {row.b.outcome}", file=sys.stderr)
    print(f"report: {to}")
    if moved:
        raise typer.Exit(_REFUTED)


def _some(out: Path, scale: str | None) -> "list[Result]":
    """All results of a store, or of a folder of summaries; an error if there are none."""
    return (
        _read(out, scale) or [kept.result for kept in _summaries(out, scale)] or _none(out, scale)
    )


def _shown(out: Path, scale: str | None) -> "tuple[list[Result], dict[str, NoChart]]":
    """The same, with the charts of summaries, and by experiment why one has none."""
    from ..report.page import NoChart

    if results := _highest(_read(out, scale)):
        return results, {}
    drawn = [_drawn(kept) for kept in _summaries(out, scale) or _none(out, scale)]
    results = [result for result, _ in drawn]
    bare = {result.experiment: why for result, why in drawn if not result.chart}
    pictures = _pictures(list(bare), out)
    return results, {name: NoChart(why, pictures.get(name, b"")) for name, why in bare.items()}


def _pictures(experiments: list[str], out: Path) -> dict[str, bytes]:
    """Those that are published beside a folder of summaries."""
    folder = out.resolve().parent / "docs" / "images"
    paths = {name: folder / f"{name.replace('/', '_')}.png" for name in experiments}
    return {name: path.read_bytes() for name, path in paths.items() if path.is_file()}


def _none(out: Path, scale: str | None) -> NoReturn:
    from ..core.errors import AdvlabError

    raise AdvlabError(
        f"results in {out}" + (f" at {scale} scale" if scale else ""),
        "none",
        'compute some first, for example: advlab run "generalization/*" --scale laptop',
    )


def known_findings() -> "dict[str, Finding]":
    """The findings that come with advlab, with their text where the docs are at hand."""
    from ..report.findings import load

    package = Path(__file__).parent.parent
    shipped, checkout = package / "papers" / "findings.md", package.parent.parent / "docs"
    page = shipped if shipped.is_file() else checkout / "findings.md"
    return load(package / "papers" / "findings.toml", page)


def bibliography() -> "dict[str, Paper]":
    """The papers that come with advlab, their experiments in the order of their story."""
    from ..papers import ITEMS
    from ..report.bibliography import load

    order = {paper: tuple(f"{paper}/{item}" for item in items) for paper, items in ITEMS.items()}
    return load(Path(__file__).parent.parent / "papers" / "papers.toml", order)


def printed() -> "Prints":
    """What the papers that come with advlab print."""
    from ..report.printed import load

    return load(Path(__file__).parent.parent / "papers" / "printed.toml")


def _highest(results: "Sequence[Result]") -> "list[Result]":
    """Each experiment's result at its highest scale."""
    from ..report.comparison import SCALES

    best: dict[str, Result] = {}
    for result in sorted(results, key=lambda result: SCALES.index(result.scale)):
        best[result.experiment] = result
    return sorted(best.values(), key=lambda result: _natural(result.experiment))


def _read(out: Path, scale: str | None) -> "list[Result]":
    """The results of a store, of one scale or of all, in the order a reader counts."""
    from ..lab.verify import folders
    from ..report import Result
    from ..report.comparison import SCALES

    found: list[Result] = []
    paths = [place / file for place, _, files in folders(out) for file in files]
    for path in sorted(path for path in paths if path.match("result-*.json")):
        try:
            result = Result.read(path.read_bytes())
            if result.scale not in SCALES:
                raise ValueError(f"a scale {result.scale!r} is unknown")
        except FileNotFoundError:  # a running sweep may replace it
            continue
        except (ValueError, OSError) as error:
            reason = " ".join(str(error).split())
            print(f"skipped: {path} is not a result ({reason:.200})", file=sys.stderr)
            continue
        if scale in (None, result.scale):
            found.append(result)
    return sorted(found, key=lambda result: _natural(result.experiment))


def _summaries(out: Path, scale: str | None) -> "list[Summary]":
    """What a folder of summaries keeps (`lab.summary`), in the order a reader counts."""
    from ..core.progress import Progress
    from ..lab import summary

    files = sorted(out.rglob("*.parquet"))
    found = []
    with Progress(len(files), "reading summaries") as progress:
        for done, file in enumerate(files, 1):
            kept = summary.read(file)
            if scale in (None, kept.result.scale):
                found.append(kept)
            progress.update(done, lambda kept=kept: f"read: {kept.result.experiment}")
    return sorted(found, key=lambda kept: _natural(kept.result.experiment))


def _drawn(kept: "Summary") -> "tuple[Result, str]":
    """With what the experiment says of itself, and today's chart if the table can draw it.

    Else the chart is the stored one, or there is none and the second part says why. A name in a
    stranger's file never decides which module is imported.
    """
    from .. import lab
    from ..papers import EXPERIMENTS

    if kept.result.experiment not in EXPERIMENTS:
        return kept.result, "The summary of its run holds no figure"
    known = lab.load(kept.result.experiment)
    told = kept.result.model_copy(update={"about": known.text})
    if kept.every > 1:
        part = "half" if kept.every == 2 else f"one in {kept.every}"
        return told, f"The summary of its run keeps {part} of its {kept.rows:,} rows, too few"
    try:
        return told.model_copy(update={"chart": known.figure(kept.table).to_dict()}), ""
    except Exception:  # what does not fit a table of another day fails in any way
        return told, "The summary of its run leaves out what the figure shows"


def _natural(name: str) -> list[tuple[str, int]]:
    """Sorts fig2 before fig10."""
    return [(text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d*)", name)]


def _surprises(results: "Sequence[Result]", known: "Mapping[str, Finding]") -> list[str]:
    from ..report.continued import continued, in_brackets

    return [
        f"{result.name(verdict)}: {verdict.claim}{in_brackets(before)}"
        for result in results
        for verdict, before in zip(result.verdicts, continued(result.verdicts), strict=True)
        if verdict.outcome == "refuted" and result.name(verdict) not in known
    ]


def _print_counts(results: "Sequence[Result]") -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from ..report.formatting import plural
    from ..report.page import OUTCOMES, counts, counts_by_kind

    console = Console()
    total = counts(results)
    shown = [name for name in (*OUTCOMES, "failed") if name in OUTCOMES or total[name]]
    one_scale = len({result.scale for result in results}) == 1
    table = Table(box=None, pad_edge=False, header_style="dim", show_footer=len(results) > 1)
    table.add_column("experiment", no_wrap=True, footer="all")
    if not one_scale:
        table.add_column("scale")
    for name in shown:
        table.add_column(name, justify="right", footer=str(total[name]))
    for result in results:
        found = counts([result])
        scale = [] if one_scale else [result.scale]
        cells = [str(found[name] or "-") for name in shown]
        table.add_row(Text(result.experiment), *scale, *cells)
    console.print(table)
    console.print()
    kinds = Table(box=None, pad_edge=False, header_style="dim")
    kinds.add_column("kind of claim", no_wrap=True)
    for name in OUTCOMES:
        kinds.add_column(name, justify="right")
    for kind, found in counts_by_kind(results).items():
        kinds.add_row(kind, *(str(found[name] or "-") for name in OUTCOMES))
    console.print(kinds)
    if smoke := [result for result in results if result.scale == "smoke"]:
        claims = sum(len(result.verdicts) for result in smoke)
        names = ", ".join(result.experiment for result in smoke)
        line = f"Smoke scale decides nothing: {plural(claims, 'claim')} not counted, of {names}."
        console.print(Text(line))
