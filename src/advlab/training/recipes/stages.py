"""The three stages by which the purification paper looks at one layer."""

from typing import ClassVar

import torch
from pydantic import NonNegativeFloat, PositiveFloat, SerializeAsAny
from torch import nn

from ...attacks import Attack
from ...threats import Threat
from ..accuracy_goal import AccuracyGoal, RecordAccuracy, StopAtAccuracy
from ..layers import FrozenLayers, freeze, rerandomise, split_at
from ..objectives import Adversarial, Clean
from .base import AttackedRecipe, Stage
from .pgd import SEVEN_STEPS


class StagesRecipe(AttackedRecipe):
    """Feature purification at layer l (Allen-Zhu and Li 2021, section 8.2):

    1. adversarial training of all layers;
    2. layers below l stand still, layers from l on are drawn anew; clean training of these;
    3. adversarial training of these, until clean and robust accuracy are those of stage 1.

    Each stage takes `epochs` = 50, with lr 0.1 divided by 10 after 40; weight decay 1e-4. Standing
    still includes the statistics of BatchNorm, on which the paper is silent. Accuracies are means
    over the batches of about an epoch.

    Args:
        epochs: of each stage.
        layer: l: its number, from 1, among linear and convolutional layers; or its name.
        stop_at_stage_1: whether stage 3 ends early; if not it takes all its epochs.
        attack: how x~ is found.
    """

    name: ClassVar[str] = "stages"
    citation: ClassVar[str] = "Allen-Zhu and Li, FOCS 2021, section 8.2"
    formula: ClassVar[str] = (
        "{loss}(f(x~), y), all layers; then {loss}(f(x), y) and again {loss}(f(x~), y), of layer "
        "{layer} and those after it, drawn anew; x~ found by {adversary}"
    )
    epochs: PositiveFloat = 50
    weight_decay: NonNegativeFloat = 1e-4
    drops: tuple[float, ...] = (0.8,)
    layer: int | str = 2
    stop_at_stage_1: bool = True
    attack: SerializeAsAny[Attack] = SEVEN_STEPS

    def stages(self, ball: Threat | None, steps_per_epoch: int) -> list[Stage]:
        about = self.adversary(ball, steps_per_epoch)
        first = Adversarial(attack=self.attack, **about)
        later = Adversarial(attack=self.attack, **{**about, "warmup": 0})
        clean = Clean(loss=self.per_example_loss())
        goal, layer = AccuracyGoal(), self.layer
        record, stop = (), ()
        if self.stop_at_stage_1:
            record = (RecordAccuracy(goal, over=max(steps_per_epoch, 1)),)
            stop = (StopAtAccuracy(goal, over=max(steps_per_epoch, 1)),)

        def anew(model: nn.Module, rng: torch.Generator) -> None:
            below, above = split_at(model, layer)
            freeze(model, below)
            rerandomise(model, above, rng)

        def same(model: nn.Module, rng: torch.Generator) -> None:
            freeze(model, split_at(model, layer)[0])

        frozen = FrozenLayers(layer)
        return [
            self.stage("adversarial", first, steps_per_epoch, hooks=record),
            self.stage("clean_above", clean, steps_per_epoch, hooks=(frozen,), prepare=anew),
            self.stage(
                "adversarial_above", later, steps_per_epoch, hooks=(frozen, *stop), prepare=same
            ),
        ]
