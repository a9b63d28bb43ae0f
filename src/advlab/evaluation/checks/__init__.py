"""Checks that an evaluation makes on itself: the cheap ones first, before hours are spent."""

from collections.abc import Callable
from dataclasses import dataclass, field

from ..evaluation import Curve, Doubt, Effort
from ..outcomes import Find
from .context import Scene as Scene
from .curves import over_radii, over_steps
from .input_checks import (
    eps_of_another_scale,
    labels_unlike_outputs,
    normalised_outside,
    probabilities_not_logits,
)
from .model_checks import gradients, randomness, train_mode
from .rivals import Rivalry

FIRST: tuple[Callable[[Scene], list[Doubt]], ...] = (
    randomness,
    train_mode,
    gradients,
    eps_of_another_scale,
    normalised_outside,
    labels_unlike_outputs,
    probabilities_not_logits,
)


@dataclass
class Second:
    """What the checks after the attack came to."""

    doubts: list[Doubt] = field(default_factory=list)
    efforts: list[Effort] = field(default_factory=list)
    finds: list[Find] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)


def first_doubts(scene: Scene) -> list[Doubt]:
    """What can be said before the attack."""
    return [doubt for check in FIRST for doubt in check(scene)]


def second_doubts(scene: Scene) -> Second:
    """What only the attack's own result can show."""
    if scene.ball.radius == 0:
        return Second()
    rivalry = Rivalry(scene)
    rivalry.black_box()
    rivalry.transfers()
    found = Second(rivalry.doubts, rivalry.efforts, rivalry.finds)
    for check in (over_radii, over_steps):
        curve, doubts = check(scene)
        found.curves.append(curve)
        found.doubts += doubts
    return found
