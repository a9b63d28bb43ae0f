"""The robustness curve of `advlab attack --curve`: its numbers, table and figure."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import Tensor

    from ..threats import Ball
    from .examples import Sample


def curve_of(
    net: "Callable[[Tensor], Tensor]", sample: "Sample", ball: "Ball", seed: int,
    settings: dict[str, Any], folder: Path,
) -> dict[str, Any]:  # fmt: skip
    """Bracket the robust error over radii, write curve.csv, .svg and .png, return the numbers.

    Args:
        net: the model.
        sample: the examples.
        ball: the threat set; its radius is one of those shown.
        seed: of all draws.
        settings: those of the evaluation.
        folder: where the files go.
    """
    import polars as pl

    from ..core.errors import AdvlabError
    from ..core.files import replacing
    from ..core.randomness import generator
    from ..evaluation import curve
    from ..report.robustness import robustness_chart

    if len(sample.data) < 2:
        raise AdvlabError("examples in memory for a curve", "a stream", "leave out --curve")
    x, y = sample.data
    found = curve(
        net, x, y, ball.norm, box=ball.box, attack=settings["attack"],
        certificates=settings["certificates"], rng=generator("curve", seed),
        batch=settings["batch"], progress=True, output=settings["output"],
    )  # fmt: skip
    numbers = found.numbers()
    folder.mkdir(parents=True, exist_ok=True)
    with replacing(folder / "curve.csv") as part:
        pl.DataFrame(found.table()).write_csv(part)
    chart = robustness_chart(found.table(), found.norm, found.n)
    for kind in ("svg", "png"):
        with replacing(folder / f"curve.{kind}") as part:
            chart.save(part, format=kind, scale_factor=2)
    return numbers
