"""One training on MNIST's digits 0 and 1 as the paper does it (Appendix A): Figures 4, 5 and 6.

Images are brought to d = side^2 pixels, each the mean over its area, and every vector to length
||mu||; n = 100 training images at random, other ones for every seed, and no label is flipped. Some
size is thus chosen for a "signal" that the digits do not have: their vectors keep their directions,
and with alpha in proportion to ||mu|| a larger ||mu|| is the same problem in other units. What
changes is the training: larger inputs have larger gradients, at the same rate and start.

Training and attack are those of `synthetic_runs`. Seeds see the same images in every setting.
Accuracy under PGD is an upper bound of robust accuracy, and its error a lower bound.
"""

import math
from collections.abc import Sequence
from typing import Annotated, Any

import polars as pl
import torch
from pydantic import Field, PositiveInt

from ..... import lab
from .....core.randomness import generator, generators
from .....data import mnist, zeros_and_ones
from .....data.directory import Split
from .....models import Stack, TwoLayer
from .....report import Verdict
from . import synthetic_runs
from .synthetic_runs import RELU, LabelledStack, trained

NAME = "benign/mnist, more seeds"
"""Not the streams of the trials that chose settings, rules and seeds."""
SIDES = (5, 7, 10, 14, 17, 20, 24, 28)
BOUND = "robust error under PGD is a lower bound, robust accuracy an upper bound"


class Case(synthetic_runs.Case):
    """d is a square number."""

    source: zeros_and_ones.Source
    beta: Annotated[float, Field(ge=0, le=0)] = 0.0
    tested: PositiveInt = 2115

    @property
    def side(self) -> int:
        return math.isqrt(self.d)


def compute(case: Case) -> pl.DataFrame:
    """One row per measured step and seed: robust training `loss`, errors, and test accuracies."""
    rngs = generators(NAME, "train", seeds=case.seeds)
    drawn = [_vectors(case, "train", case.n, rng) for rng in rngs]
    train = LabelledStack(
        torch.stack([one.x[0] for one in drawn]), torch.stack([one.y[0] for one in drawn])
    )
    x, y = _vectors(case, "test", case.tested, generator(NAME, "test"))
    test = LabelledStack(x.expand(case.replicates, -1, -1), y.expand(case.replicates, -1))
    stack = Stack.draw(
        lambda rng: TwoLayer.draw(case.d, case.width, rng=rng, **RELU),
        generators(NAME, "network", case.d, seeds=case.seeds),
    )
    rows = trained(case, stack, train, test, torch.zeros_like(train.y, dtype=torch.bool))
    return rows.drop("flipped_error").with_columns(
        clean_accuracy=1 - pl.col("clean_error"), robust_accuracy=1 - pl.col("robust_error")
    )


def _vectors(case: Case, split: Split, n: int, rng: torch.Generator) -> LabelledStack:
    """n images as one replicate."""
    pixels, digits = zeros_and_ones.draw(case.source, split, n, rng)
    images = mnist.resample(pixels.reshape(-1, 1, 28, 28), case.side)
    x = mnist.rescale(images.flatten(1), case.mu_norm)
    return LabelledStack(x[None], (2.0 * digits - 1)[None])


def recipe(
    settings: Sequence[tuple[float, int, float]], seeds: int, block: int, **more: Any
) -> list[Case]:
    """The cases of (||mu||, side, ratio), block by block."""
    return [
        Case(mu_norm=mu, d=side**2, ratio=ratio, source=zeros_and_ones.source(), **more, **some)
        for some in lab.blocks(seeds, block)
        for mu, side, ratio in settings
    ]


def with_note(table: pl.DataFrame, found: list[Verdict]) -> list[Verdict]:
    """The verdicts with the data that they are about, and what an attack can show."""
    about = f"data: {zeros_and_ones.TITLES[table['source'][0]]}; {BOUND}"
    return [
        one.model_copy(update={"note": "; ".join(filter(None, (one.note, about)))}) for one in found
    ]
