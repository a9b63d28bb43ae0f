"""Everything that the repository shows of runs: pictures, tables, summaries.

    python scripts/results.py take RUNS...   # take the laptop-scale results of folders of runs
    python scripts/results.py draw [NAMES]   # draw the pictures again from the tables in results/
    python scripts/results.py write          # write the tables of verdicts again
    python scripts/results.py bracket        # draw docs/images/bracket.png, on MNIST

Each also writes the numbers of sentences that come from results (`scripts/prose_numbers.py`).

`take` puts the figure of each experiment into docs/images/<paper>_<experiment>.png, its table and
verdicts into results/<paper>/<experiment>.parquet (`advlab verify --against results` compares a new
run with them) and its verdicts into papers/<paper>/verdicts.json, from which the tables in the
papers' pages and the site are made. Experiments that RUNS does not have stay as they are. A last
line says whether verdicts moved. `draw` leaves the pictures of tables that are not kept whole.
"""

import io
import runpy
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import prose_numbers
from PIL import Image
from verdict_tables import EXPERIMENTS, pages
from verdict_tables import take as take_verdicts

from advlab.cli.report import bibliography
from advlab.lab import summary
from advlab.lab.loader import find
from advlab.report import figure
from advlab.report.colours import shared
from advlab.report.theme import CATEGORIES, GROUND, INK, LINES, QUIET

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
RESULTS = ROOT / "results"
SCALE = 1.5
COLOURS = 256
OWN = [*CATEGORIES, INK, QUIET, LINES, GROUND]
"""Colours that a palette has to the last bit, as a legend and its lines would differ."""
LARGEST = 300_000
"""Bytes of a file that keeps all colours of the photographs or filters in it."""


def picture(experiment: str) -> Path:
    """Where the figure of an experiment is kept."""
    return IMAGES / f"{experiment.replace('/', '_')}.png"


def take(runs: Path) -> None:
    """Pictures, summaries and verdicts of a folder of runs."""
    charts: dict[str, Mapping[str, Any]] = {}
    said: dict[str, str] = {}
    for result, folder in summary.results(runs):
        if result.experiment not in EXPERIMENTS:
            continue
        name, rows = result.experiment, summary.table(result, folder)
        file = RESULTS / f"{name}.parquet"
        moved = ""
        if file.exists():
            pair = summary.compare(summary.read(file), result, rows)
            moved = f", verdicts moved: {pair.verdicts or 'none'}"
        summary.write(result, rows, file)
        charts[name] = result.chart
        said[name] = f"{file.stat().st_size // 1000} kB of table{moved}"
    for name, drawn in _draw_all(charts):
        print(f"{name}: {said[name]}, {drawn}")
    take_verdicts(runs)


def draw(names: Sequence[str]) -> None:
    """Pictures as today's charts draw them, from the tables that results/ keeps whole."""
    charts: dict[str, Mapping[str, Any]] = {}
    for file in sorted(RESULTS.rglob("*.parquet")):
        kept = summary.read(file)
        name = kept.result.experiment
        if names and name not in names:
            continue
        if kept.every > 1:
            print(f"{name}: left, only every {kept.every}th row is kept")
            continue
        try:
            charts[name] = find(name).figure(kept.table).to_dict()
        except pl.exceptions.ColumnNotFoundError as error:
            print(f"{name}: left, its table has no column {error!s:.40}")
    for name, drawn in _draw_all(charts):
        print(f"{name}: {drawn}")


def bracket() -> None:
    """The figure of the notebook that attacks a model."""
    names = runpy.run_path(str(ROOT / "docs" / "notebooks" / "attack_your_model.py"))
    print(f"bracket: {_draw(names['band'].to_dict(), IMAGES / 'bracket.png')}")


def _draw_all(charts: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Each in the colours that its paper has for the names of things, and what was drawn.

    Colours by name, and not by what else is drawn: pictures that stay as they are keep theirs too.
    """
    papers = bibliography()
    for name, chart in charts.items():
        (painted,) = shared([chart], papers[name.partition("/")[0]].colours)
        yield name, _draw(painted, picture(name))


def _draw(chart: Mapping[str, Any], path: Path) -> str:
    """A chart has few colours: a palette makes its file three times smaller."""
    if not chart:
        return "no figure"
    drawing = figure.svg(chart)
    image = Image.open(io.BytesIO(figure.png(drawing, SCALE))).convert("RGB")
    data = _packed(image) if "data:image/" in drawing else b""
    if not 0 < len(data) <= LARGEST:
        data = _packed(_with_palette(image))
    path.write_bytes(data)
    return f"{len(data) // 1000} kB of figure"


def _packed(image: Image.Image) -> bytes:
    file = io.BytesIO()
    image.save(file, "png", optimize=True)
    return file.getvalue()


def _with_palette(image: Image.Image) -> Image.Image:
    """The colours that the picture has most of, and the theme's, which no other stands for."""
    few = image.quantize(COLOURS - len(OWN), dither=Image.Dither.NONE)
    most, exact = few.getpalette() or [], np.asarray(image)
    places = np.array(few)
    for place, colour in enumerate(OWN, len(most) // 3):
        rgb = [int(colour[start : start + 2], 16) for start in (1, 3, 5)]
        places[(exact == rgb).all(axis=2)] = place
        most += rgb
    packed = Image.fromarray(places)
    packed.putpalette(most)
    return packed


def main(arguments: list[str]) -> None:
    match arguments:
        case ["take", *folders] if folders:
            for folder in folders:
                take(Path(folder))
        case ["draw", *names]:
            draw(names)
        case ["bracket"]:
            bracket()
        case ["write"]:
            pass
        case _:
            sys.exit(__doc__)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
    prose_numbers.main()


if __name__ == "__main__":
    main(sys.argv[1:])
