"""A chart of every experiment: from the published table, a specimen, or a run at smoke scale."""

import tempfile
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

import altair as alt
import numpy as np
import polars as pl
from specimens import SPECIMENS

from advlab import lab
from advlab.cli.report import bibliography, known_findings, printed
from advlab.lab import summary
from advlab.papers import EXPERIMENTS
from advlab.report import Result
from advlab.report.image_grid import TILE
from advlab.report.page import write_report
from advlab.report.pictures import address

RESULTS = Path(__file__).parents[2] / "results"
PHOTOGRAPH, FILTER = 32, 7
"""Pixels of the side of a picture of CIFAR-10, and of a filter."""
FILTERS = {f"purification/{item}" for item in ("fig1", "fig7", "fig8", "fig9")}
"""Figures whose pictures are filters."""


def every_result(names: Collection[str] = EXPERIMENTS) -> list[Result]:
    """The published verdicts, and a chart that today's code draws."""
    return [_result(name) for name in names]


@cache
def _result(name: str) -> Result:
    """The fullest table that the figure can be drawn from."""
    known, path = lab.load(name), RESULTS / f"{name}.parquet"
    kept = summary.read(path) if path.is_file() else None
    with alt.data_transformers.enable("default", max_rows=None):
        for table in _tables(name, kept):
            try:
                chart = known.figure(_with_pictures(name, table)).to_dict()
            except BaseException as error:  # what does not fit a table fails in any way
                if isinstance(error, KeyboardInterrupt | SystemExit):
                    raise
                continue
            return _told(known, kept).model_copy(update={"chart": chart})
    if kept and kept.result.chart:
        return kept.result.model_copy(update={"about": known.text})
    with tempfile.TemporaryDirectory() as folder:
        return lab.run(name, scale="smoke", seeds=2, jobs=1, out=folder)


def _tables(name: str, kept: summary.Summary | None) -> Iterator[pl.DataFrame]:
    if kept and kept.every < 10:
        yield kept.table
    if name in SPECIMENS:
        yield SPECIMENS[name]().table
    if kept:
        yield kept.table


def _told(known: lab.Experiment, kept: summary.Summary | None) -> Result:
    if kept:
        return kept.result.model_copy(update={"about": known.text})
    about = known.about
    return Result(
        experiment=known.name, paper=about.paper, item=about.item, title=about.title,
        about=known.text, scale="laptop", seeds=1, cases=1, seconds=0.0,
    )  # fmt: skip


def _with_pictures(name: str, table: pl.DataFrame) -> pl.DataFrame:
    """Pictures are left out of published tables; noise stands for them."""
    tiles = {"part", "row", "column", "label"} <= set(table.columns)
    if not tiles or "picture" in table.columns:
        return table
    drawn = _pictures(FILTER if name in FILTERS else PHOTOGRAPH)
    pictures = pl.Series("picture", [drawn[row % len(drawn)] for row in range(table.height)])
    return table.with_columns(picture=pl.when(pl.col("part") == "tile").then(pictures))


@cache
def _pictures(side: int) -> list[str]:
    """As many as a figure has; those of 32 pixels take about 4000 letters, as real ones do."""
    sides = np.random.default_rng(0).integers(0, 12, (96, side, side, 3), np.uint8) * 21
    times = -(-TILE // side)
    return [address(one.repeat(times, 0).repeat(times, 1)) for one in sides]


def every_page(folder: Path, names: Collection[str] = EXPERIMENTS) -> Path:
    """The report of these experiments, as `advlab report` writes it."""
    path = folder / "report.html"
    write_report(every_result(names), path, known_findings(), bibliography(), printed())
    return path
