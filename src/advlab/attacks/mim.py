"""The momentum iterative method."""

import torch
from pydantic import NonNegativeFloat, PositiveInt

from ..core.randomness import Rng
from ..threats import Threat
from ..threats.base import per_example
from ._engine.gradient_ascent import GradientAscent
from .base import BestSoFar


class MIM(GradientAscent):
    """Projected ascent along averaged gradients, from the clean input (Dong et al. 2018):

        m <- decay * m + gradient / |gradient|_1
        x <- project(x + step_size * radius * steepest(m))

    Args:
        steps: How many gradients per start.
        step_size: Length of a step, as a fraction of the radius.
        random_start: Start from a uniform draw of the set, or from the clean input.
        decay: What is left of the past after a step; 0 is PGD.

    The other settings (restarts, jump, climb, target, early_exit, keep) are those of `PGD`.

    Example:
        >>> from advlab.attacks import MIM
        >>> from advlab.losses import ModelLoss, cross_entropy
        >>> found = MIM(decay=0.9)(ModelLoss(model, y, cross_entropy), x, ball, rng=rng)
    """

    steps: PositiveInt = 10
    random_start: bool = False
    decay: NonNegativeFloat = 1.0

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        length = self.step_size * threat.radius
        for objective, point in self.starts(best, threat, rng):
            project, average = threat.projector(objective.x), torch.zeros_like(objective.x)
            for _ in range(self.steps):
                _, grad = objective.value_and_gradient(point)
                size = grad.abs().flatten(1).sum(1)
                average = self.decay * average + grad / per_example(size.where(size > 0, 1.0), grad)
                if self.early_exit and (kept := objective.drop_broken()) is not None:
                    point, average = point[kept], average[kept]
                    project = threat.projector(objective.x)
                    if len(kept) == 0:
                        break
                point = project(point + length * threat.steepest(average))
            self.finish(objective, threat, point, average)
