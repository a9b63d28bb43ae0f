"""The notebooks as pages: their code is run here, so what a page shows is what its code gives."""

import ast
import contextlib
import io
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import altair as alt
import jupytext
import polars as pl
from addresses import ROOT

from advlab.report import figure

NOTEBOOKS = ROOT / "docs" / "notebooks"


def pages() -> dict[str, str]:
    """Every notebook's page, its drawings, and its file for Jupyter.

    Raises:
        Exception: whatever the code of a notebook raises; warnings count.
    """
    made: dict[str, str] = {}
    for source in sorted(NOTEBOOKS.glob("*.py")):
        made |= _page(source)
    return made


def _page(source: Path) -> dict[str, str]:
    notebook, name = jupytext.read(source), source.stem
    files = {f"notebooks/{name}.ipynb": jupytext.writes(notebook, fmt="ipynb")}
    lines: list[str] = []
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            lines += [cell.source, ""]
            continue
        lines += ["```python", cell.source, "```", ""]
        printed, value = run_cell(cell.source, names, f"{name}.py")
        if printed.strip():
            lines += ["```text", printed.rstrip(), "```", ""]
        if isinstance(value, alt.TopLevelMixin):
            drawing = f"notebooks/{name}-{len(files)}.svg"
            files[drawing] = figure.svg(value.to_dict())
            lines += [f"![What this code draws]({Path(drawing).name})", ""]
        elif isinstance(value, pl.DataFrame):
            lines += [*table(value), ""]
        elif hasattr(value, "_repr_html_"):
            lines += ["<div>" + " ".join(value._repr_html_().split()) + "</div>", ""]
        elif value is not None:
            lines += ["```text", repr(value), "```", ""]
    where = f"[notebook]({name}.ipynb), [script]({name}.py)"
    lines += [
        "---",
        "",
        f"The outputs were made when this site was built. Take it with you: {where}.",
        "",
    ]
    return {**files, f"notebooks/{name}.md": "\n".join(lines)}


def table(frame: pl.DataFrame) -> list[str]:
    """A frame as a table of Markdown; numbers to the right, with four digits."""
    numbers = [kind.is_numeric() for kind in frame.dtypes]
    rows = [frame.columns, ["---:" if one else "---" for one in numbers]]
    rows += [[_cell(value) for value in row] for row in frame.rows()]
    return ["| " + " | ".join(row) + " |" for row in rows]


def _cell(value: object) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return text.replace("|", "\\|")


def run_cell(code: str, names: dict[str, Any], file: str) -> tuple[str, Any]:
    """What a cell prints, and the value of its last line if that is an expression."""
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    with (
        tempfile.TemporaryDirectory() as folder,
        contextlib.chdir(folder),
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        exec(compile(tree, file, "exec"), names)
        value = eval(compile(ast.Expression(last.value), file, "eval"), names) if last else None
    return printed.getvalue().replace(os.fspath(folder), "."), value
