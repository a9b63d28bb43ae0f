"""Local and global flatness: the mean sharpness around training data, and around fresh data.

The CGRO paper (section 6, Figure 3, Theorem E.1): both are means of

    max over ||xi||_p <= delta of ||grad_x L(f(x + xi), y)||_q,   1/p + 1/q = 1,

the local one over the training sample, the global one over the population, which fresh data stand
for. Larger means sharper, in spite of the name.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor

from ..core.intervals import Estimate, estimate
from ..core.randomness import Rng
from ..threats import Ball
from ._parts.batches import Examples, randomness
from .sharpness_curve import SharpnessCurve, sharpness_over_radii


@dataclass(frozen=True)
class Flatness:
    """The sharpness of single inputs, whose means are the two quantities of the paper."""

    train: SharpnessCurve
    test: SharpnessCurve

    @property
    def local(self) -> Float[Tensor, " n"]:
        """Around each training input, from below."""
        return self.train.low[0]

    @property
    def population(self) -> Float[Tensor, " n"]:
        """Around each fresh input, from below: its mean is the global flatness."""
        return self.test.low[0]

    @property
    def estimates(self) -> tuple[Estimate, Estimate]:
        """The local and the global mean with 95 % intervals over the examples.

        They are of the lower ends: the mean of what the search finds, not of the true maxima.
        """
        local, population = self.local.double().numpy(), self.population.double().numpy()
        return estimate(local, "mean"), estimate(population, "mean")

    @property
    def ratio(self) -> float:
        """Global over local: how much sharper the loss is where nothing was trained."""
        return float(self.population.mean() / self.local.mean())


def flatness(
    model: Callable[[Tensor], Any],
    train: Examples,
    test: Examples,
    ball: Ball,
    *,
    batch: int | None = None,
    rng: Rng | int | None = None,
    **settings: Any,
) -> Flatness:
    """Local and global flatness of a loss in its inputs.

    Args:
        model: the network, judged in eval mode and left as it was.
        train: inputs and labels that it was trained on; some of them are enough.
        test: inputs and labels that it was not trained on.
        ball: the set of radius delta.
        batch: rows at a time; all at once if left out.
        rng: where random points come from; a whole number is a seed.
        settings: of `input_sharpness`: the loss, the attack, and how hard to search. Both halves
            are searched alike, or their ratio would compare searches.

    Example:
        from advlab.measure.flatness import flatness
        from advlab.threats import Ball
        found = flatness(model, (x, y), (x_test, y_test), Ball("linf", 8 / 255), draws=8, starts=2)
        found.ratio
    """
    rng = randomness(rng, "flatness")
    settings["bound"] = False
    return Flatness(*(
        sharpness_over_radii(model, *one, ball, [ball.radius], batch=batch, rng=rng, **settings)
        for one in (train, test)
    ))  # fmt: skip
