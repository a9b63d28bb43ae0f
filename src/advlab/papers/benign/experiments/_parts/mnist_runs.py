"""One training on MNIST's digits 0 and 1 as the paper does it (Appendix A): Figures 4, 5 and 6.

Images are brought to d = side^2 pixels, each the mean over its area, and every vector to length
||mu||; n = 100 training images at random, other ones for every seed, and no label is flipped. Some
size is thus chosen for a "signal" that the digits do not have: their vectors keep their directions,
and with alpha in proportion to ||mu|| a larger ||mu|| is the same problem in other units. What
changes is the training: larger inputs have larger gradients, at the same rate and start.

Training and attack are those of `synthetic_runs`, but in float64: in float32 the last bit of a
product, which depends on kernels and on how many replicates are stacked, has moved a loss by 0.3 %
after 250 steps. Seeds see the same images in every setting.
Accuracy under PGD is an upper bound of robust accuracy, and its error a lower bound.
"""

import math
from collections.abc import Sequence
from typing import Annotated, Any

import polars as pl
import torch
from jaxtyping import Bool
from pydantic import Field, PositiveInt
from torch import Tensor, nn

from ..... import lab
from .....core.randomness import generator, generators
from .....data import mnist, zeros_and_ones
from .....data.directory import Split
from .....models import Stack, TwoLayer
from .....report import Assumption, Verdict
from .....training import Probe, fit
from ...reductions import TwoLayerAdversarial, attacked
from . import conditions, synthetic_runs
from .synthetic_runs import ATTACK, RELU, LabelledStack

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
    return _trained(case, stack.double(), train, test).with_columns(
        clean_accuracy=1 - pl.col("clean_error"), robust_accuracy=1 - pl.col("robust_error")
    )


def _trained(
    case: Case, stack: nn.Module, train: LabelledStack, test: LabelledStack
) -> pl.DataFrame:
    """One row per measured step and seed: `loss`, robust `train_error` and errors on fresh images.

    What `synthetic_runs.trained` gives, in float64 and without flipped labels.
    """

    def clean_error(model: nn.Module) -> Tensor:
        f = model(test.x.flatten(0, 1)).reshape(test.y.shape)
        return (f * test.y <= 0).double().mean(1)

    probes = {
        "train_error": lambda model: _fooled(case, model, train).double().mean(1),
        "clean_error": clean_error,
        "robust_error": lambda model: _fooled(case, model, test).double().mean(1),
    }
    run = fit(
        stack,
        *train,
        steps=case.steps,
        lr=case.schedule,
        objective=TwoLayerAdversarial(loss="logistic", ball=case.ball, attack=ATTACK),
        hooks=[Probe(probes, at=set(case.measured_at))],
    )
    return run.log.table(case.seeds)


def _fooled(case: Case, model: nn.Module, data: LabelledStack) -> Bool[Tensor, "R n"]:
    """Which points PGD brings to the boundary or across it."""
    rows, labels = data.x.flatten(0, 1), data.y.flatten()
    found = attacked(model, rows, labels, case.ball, ATTACK, "margin")
    return (found.loss >= 0).reshape(data.y.shape)


def _vectors(case: Case, split: Split, n: int, rng: torch.Generator) -> LabelledStack:
    """n images as one replicate."""
    pixels, digits = zeros_and_ones.draw(case.source, split, n, rng)
    images = mnist.resample(pixels.reshape(-1, 1, 28, 28), case.side)
    x = mnist.rescale(images.flatten(1), case.mu_norm)
    return LabelledStack(x[None].double(), (2.0 * digits - 1)[None].double())


def recipe(
    scale: str, settings: Sequence[tuple[float, int, float]], seeds: int, block: int, **more: Any
) -> list[Case]:
    """The cases of (||mu||, side, ratio), block by block; of MNIST, at smoke scale also without."""
    source = zeros_and_ones.source() if scale == "smoke" else "mnist"
    return [
        Case(mu_norm=mu, d=side**2, ratio=ratio, source=source, **more, **some)
        for some in lab.blocks(seeds, block)
        for mu, side, ratio in settings
    ]


def reached(table: pl.DataFrame) -> list[Assumption]:
    """What the sizes reach of Assumption 1, with ||mu|| the length of the images; and what they are
    not: a mixture."""
    found = conditions.settings(
        table,
        alpha=pl.col("ratio") * pl.col("mu_norm"),
        omega=(3 * pl.col("d")) ** -0.5,  # the standard deviation of PyTorch's start
        eta=pl.lit(0.1),
    )
    return [
        *conditions.reached(found),
        Assumption(
            name="noisy mixture",
            condition="inputs are y_c mu + xi, xi of independent entries (Definition 2.1)",
            holds=False,
        ),
        Assumption(name="good run", condition="Lemma B.4, which is about draws of the mixture"),
    ]


def with_note(table: pl.DataFrame, found: list[Verdict]) -> list[Verdict]:
    """The verdicts with the data that they are about, and what an attack can show."""
    about = f"data: {zeros_and_ones.TITLES[table['source'][0]]}; {BOUND}"
    return [
        one.model_copy(update={"note": "; ".join(filter(None, (one.note, about)))}) for one in found
    ]
