"""What a run leaves beside itself: the figure, its numbers, and a short page."""

from collections.abc import Mapping
from pathlib import Path

from ..core.files import replacing, write_text
from . import figure
from .bibliography import Paper
from .colours import shared
from .findings import Finding
from .page import render
from .printed import Prints
from .result import FILES, Result


def leave(
    result: Result,
    folder: Path,
    known: Mapping[str, Finding],
    papers: Mapping[str, Paper] | None = None,
    prints: Prints | None = None,
) -> tuple[list[Path], str]:
    """Write the figure as SVG and PNG, its numbers as CSV, and the page of this result alone.

    They replace those of the run before, whatever its scale. A result without a chart has a page
    only.

    Args:
        result: what the run found.
        folder: where its runs are stored.
        known: findings by the name of their verdict.
        papers: by the short names that results have.
        prints: what the papers print, to stand beside what was measured.

    Returns:
        The files that were written, and why the figure could not be drawn, or nothing. What cannot
        be drawn costs the figure alone: table and page are written first.

    Raises:
        OSError: the folder cannot be written to.

    Example:
        from pathlib import Path
        from advlab import lab
        from advlab.report.leave import leave
        leave(lab.run("generalization/fig5"), Path("runs/generalization/fig5"), {})
    """
    written = [folder / "report.html"]
    write_text(folder / "report.html", render([result], known, papers, prints))
    if not result.chart:
        return written, ""
    written.append(folder / "table.csv")
    write_text(folder / "table.csv", figure.table(result.chart).write_csv())
    paper = (papers or {}).get(result.paper)
    (chart,) = shared([result.chart], paper.colours if paper else None)
    try:
        drawing = figure.svg(chart)
        write_text(folder / "figure.svg", drawing)
        written.append(folder / "figure.svg")
        picture = figure.png(drawing)
    except figure.Undrawable as error:
        for old in set(FILES) - {path.name for path in written}:
            (folder / old).unlink(missing_ok=True)  # of the run before
        return written, str(error)
    with replacing(folder / "figure.png") as new:
        new.write_bytes(picture)
    return [*written, folder / "figure.png"], ""
