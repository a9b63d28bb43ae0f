"""Projected gradient descent on the negative loss, the standard first-order attack."""

from ..core.randomness import Rng
from ..threats import Threat
from ._engine.gradient_ascent import GradientAscent
from .base import BestSoFar


class PGD(GradientAscent):
    """Projected gradient ascent on the loss (Madry et al. 2018), from one or several starts:

        x <- project(x + step_size * radius * steepest(gradient of the loss at x))

    where `steepest` is the sign of the gradient in linf, the gradient over its length in l2, and
    its largest entry in l1. The answer is the worst point seen of each row.

    Args:
        steps: How many gradients per start.
        step_size: Length of a step, as a fraction of the radius.
        restarts: How many starts; those after the first are always random.
        random_start: Start from a uniform draw of the set, or from the clean input.
        jump: At the end, also try where the last gradient says the loss is largest.
        climb: The loss to climb: "given", or "cross_entropy", "dlr" or "margin" of the outputs.
        target: The classes to move to: "most_likely", "least_likely", "random", a class, or one
            class per row. By default rows only move away from their label.
        early_exit: Rows leave the batch once they are broken.
        keep: Return the "worst" point seen, or the "last" whatever its loss.

    Example:
        >>> from advlab.attacks import PGD
        >>> from advlab.core.randomness import generator
        >>> from advlab.losses import ModelLoss, cross_entropy
        >>> from advlab.threats import Ball
        >>> ball = Ball(norm="linf", radius=8 / 255, box=(0, 1))
        >>> loss = ModelLoss(model, y, cross_entropy)
        >>> found = PGD(steps=50, restarts=3)(loss, x, ball, rng=generator("mine"))
        >>> found.x, found.loss
    """

    def search(self, best: BestSoFar, threat: Threat, rng: Rng) -> None:
        length = self.step_size * threat.radius
        for objective, point in self.starts(best, threat, rng):
            project = threat.projector(objective.x)
            for _ in range(self.steps):
                _, grad = objective.value_and_gradient(point)
                if self.early_exit and (kept := objective.drop_broken()) is not None:
                    point, grad, project = point[kept], grad[kept], threat.projector(objective.x)
                    if len(kept) == 0:
                        break
                point = project(point + length * threat.steepest(grad))
            self.finish(objective, threat, point, grad)
