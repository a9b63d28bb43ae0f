"""Everything that the repository shows of runs: pictures, tables, summaries.

    python scripts/results.py take RUNS...   # take the laptop-scale results of folders of runs
    python scripts/results.py write          # write the tables of verdicts again

`take` puts the figure of each experiment into docs/images/<paper>_<experiment>.png, its table and
verdicts into results/<paper>/<experiment>.parquet (`advlab verify --against results` compares a new
run with them) and its verdicts into papers/<paper>/verdicts.json, from which the tables in the
papers' pages and the site are made. Experiments that RUNS does not have stay as they are. A last
line says whether verdicts moved.
"""

import io
import sys
from pathlib import Path

from PIL import Image
from verdict_tables import EXPERIMENTS, pages
from verdict_tables import take as take_verdicts

from advlab.lab import summary
from advlab.report import Result, figure

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
RESULTS = ROOT / "results"
SCALE = 1.5
COLOURS = 256


def picture(experiment: str) -> Path:
    """Where the figure of an experiment is kept."""
    return IMAGES / f"{experiment.replace('/', '_')}.png"


def take(runs: Path) -> None:
    """Pictures, summaries and verdicts of a folder of runs."""
    for result, folder in summary.results(runs):
        if result.experiment not in EXPERIMENTS:
            continue
        rows, file = summary.table(result, folder), RESULTS / f"{result.experiment}.parquet"
        said = ""
        if file.exists():
            moved = summary.compare(summary.read(file), result, rows)
            said = f", verdicts moved: {moved.verdicts or 'none'}"
        summary.write(result, rows, file)
        drawn = _draw(result)
        print(f"{result.experiment}: {file.stat().st_size // 1000} kB of table, {drawn}{said}")
    take_verdicts(runs)


def _draw(result: Result) -> str:
    """A chart has few colours: a palette makes its file three times smaller."""
    if not result.chart:
        return "no figure"
    image = Image.open(io.BytesIO(figure.png(figure.svg(result.chart), SCALE))).convert("RGB")
    path = picture(result.experiment)
    image.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    return f"{path.stat().st_size // 1000} kB of figure"


def main(arguments: list[str]) -> None:
    match arguments:
        case ["take", *folders] if folders:
            for folder in folders:
                take(Path(folder))
        case ["write"]:
            pass
        case _:
            sys.exit(__doc__)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
