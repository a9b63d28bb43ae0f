"""What a recipe is: settings with a paper's defaults, from which the stages of a run are made."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import torch
from pydantic import (
    ConfigDict,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    field_validator,
)
from torch import nn

from ...attacks import Attack
from ...core.config import ExactConfig
from ...core.errors import AdvlabError
from ...losses import LabelSmoothing, PerExample, resolve
from ...threats import Threat
from ..hooks import Hook, Penalize
from ..objectives import Objective
from ..penalties import L1
from ..run import OptimizerFactory
from ..schedules import Constant, Cosine, Cyclic, Drops, Schedule, Steps, Warmup
from ..weight_perturbation import AWP

Prepare = Callable[[nn.Module, torch.Generator], None]
"""Called with the model before a stage: freezes layers, or draws them anew."""


@dataclass(frozen=True)
class Stage:
    """One run of the loop, as a recipe wants it."""

    name: str
    epochs: float
    """Passes over the data; replays of a batch (`objective.replays`) are not counted."""
    objective: Objective
    optimizer: OptimizerFactory
    schedule: Schedule
    """The learning rate over this stage."""
    hooks: tuple[Hook, ...] = ()
    prepare: Prepare | None = None


class Recipe(ExactConfig):
    """Objective, attack, optimizer and schedule of a published way to train.

    Every field can be set by `recipe(name, field=value)`, in a TOML file, or by `--set`. A new
    recipe writes `stages`, `citation` and `formula`.

    Args:
        epochs: passes over the data. batch: rows per step.
        optimizer: "sgd", "adam" or "adamw". lr: the largest learning rate.
        momentum, nesterov: of SGD. weight_decay: of the optimizer, on all weights.
        schedule: "constant"; "drops", times `drop_factor` at the shares `drops` of the stage;
            "steps", times `drop_factor` after every share `every`; "cosine" to zero; "cyclic", up
            to lr at the share `peak` and down to zero.
        lr_warmup: epochs of linear warm-up before any of these.
        loss: a name of `losses.LOSSES`. label_smoothing: spread over all classes by cross entropy.
        l1: weight of the penalty sum |w|, by its subgradient or by a proximal step (`l1_step`).
        awp: gamma of adversarial weight perturbation, after `awp_warmup` epochs; None for none.
        clip: largest norm of a gradient. average: of the weights, "ema" with `ema_decay`, or "swa"
            from the share `swa_start` on. patience: epochs without progress after which to stop.
        augment: "none" or "crop_flip".
    """

    model_config = ConfigDict(strict=True)
    name: ClassVar[str]
    citation: ClassVar[str]
    formula: ClassVar[str]
    """What is descended, in words; `{field}` is the value of a field, `{adversary}` the attack."""

    epochs: PositiveFloat
    batch: PositiveInt = 128
    optimizer: Literal["sgd", "adam", "adamw"] = "sgd"
    lr: PositiveFloat = 0.1
    momentum: float = Field(default=0.9, ge=0.0, lt=1.0)
    nesterov: bool = False
    weight_decay: NonNegativeFloat = 5e-4
    schedule: Literal["constant", "drops", "steps", "cosine", "cyclic"] = "drops"
    drops: tuple[float, ...] = (0.5, 0.75)
    drop_factor: PositiveFloat = 0.1
    every: float = Field(default=1 / 3, gt=0.0, le=1.0)
    peak: float = Field(default=0.5, gt=0.0, lt=1.0)
    lr_warmup: NonNegativeFloat = 0.0
    loss: str = "cross_entropy"
    label_smoothing: float = Field(default=0.0, ge=0.0, lt=1.0)
    l1: NonNegativeFloat = 0.0
    l1_step: Literal["subgradient", "prox"] = "subgradient"
    awp: PositiveFloat | None = None
    awp_warmup: NonNegativeFloat = 0.0
    clip: PositiveFloat | None = None
    average: Literal["ema", "swa"] | None = None
    ema_decay: float = Field(default=0.999, gt=0.0, lt=1.0)
    swa_start: float = Field(default=0.5, ge=0.0, lt=1.0)
    patience: PositiveInt | None = None
    augment: Literal["none", "crop_flip"] = "none"

    @field_validator("loss")
    @classmethod
    def _known(cls, loss: str) -> str:
        resolve(loss)
        return loss

    @field_validator("drops")
    @classmethod
    def _shares(cls, drops: tuple[float, ...]) -> tuple[float, ...]:
        if any(not 0 <= share <= 1 for share in drops):
            raise AdvlabError("must be shares of the stage, from 0 to 1")
        return drops

    @abstractmethod
    def stages(self, ball: Threat | None, steps_per_epoch: int) -> list[Stage]:
        """The runs that the recipe is made of, in order; each goes on with the model of the last.

        Args:
            ball: the threat set around each input; None if there is none.
            steps_per_epoch: batches per pass over the data, for what is counted in steps.
        """

    def describe(self) -> dict[str, str]:
        """For reports: the recipe's name, where it is from, and what it descends, in words."""
        said = [self.formula.format(**dict(self), adversary=_spoken(getattr(self, "attack", None)))]
        if self.label_smoothing:
            said.append(f"labels smoothed by {self.label_smoothing:g}")
        if self.l1:
            said.append(f"+ {self.l1:g} sum |w| ({self.l1_step})")
        citation = self.citation
        if self.awp is not None:
            said.append(f"at w + v, v = {self.awp:g} |w| g/|g| in each layer")
            citation += "; AWP: Wu, Xia and Wang, NeurIPS 2020"
        return {"recipe": self.name, "citation": citation, "formula": ", ".join(said)}

    # What the stages of all recipes are made of.

    def stage(
        self,
        name: str,
        objective: Objective,
        steps_per_epoch: int,
        *,
        epochs: float | None = None,
        hooks: tuple[Hook, ...] = (),
        prepare: Prepare | None = None,
    ) -> Stage:
        """A stage with the recipe's optimizer, schedule, penalty and weight perturbation.

        Args:
            name: of the stage.
            objective: what it descends.
            steps_per_epoch: as in `stages`.
            epochs: how long; the recipe's own by default.
            hooks: its own, before those of the penalty and of the objective.
            prepare: what is done to the model before.
        """
        length = self.epochs if epochs is None else epochs
        per_epoch = steps_per_epoch * objective.replays
        if self.awp is not None:
            quiet = round(self.awp_warmup * per_epoch)
            objective = AWP(objective=objective, gamma=self.awp, warmup=quiet)
        if self.l1:
            hooks = (*hooks, Penalize(L1(weight=self.l1, how=self.l1_step)))
        return Stage(
            name,
            length,
            objective,
            self._optimizer(),
            self._schedule(length),
            (*hooks, *objective.companions()),
            prepare,
        )

    def per_example_loss(self) -> str | PerExample:
        """The loss of objectives, with label smoothing where it is wanted."""
        if not self.label_smoothing:
            return self.loss
        if self.loss != "cross_entropy":
            raise AdvlabError("label_smoothing with the loss cross_entropy", self.loss)
        return LabelSmoothing(self.label_smoothing)

    def _optimizer(self) -> OptimizerFactory:
        decay = self.weight_decay
        if self.optimizer == "sgd":
            sgd = torch.optim.SGD
            return partial(sgd, momentum=self.momentum, nesterov=self.nesterov, weight_decay=decay)
        kind = torch.optim.Adam if self.optimizer == "adam" else torch.optim.AdamW
        return partial(kind, weight_decay=decay)

    def _schedule(self, epochs: float) -> Schedule:
        share = min(self.lr_warmup / epochs, 0.999)
        if self.schedule == "cosine":
            return Cosine(lr=self.lr, warmup=share)
        made: Schedule = Constant(lr=self.lr)
        if self.schedule == "drops":
            made = Drops(lr=self.lr, factor=self.drop_factor, at_shares=self.drops)
        elif self.schedule == "steps":
            made = Steps(lr=self.lr, factor=self.drop_factor, every=self.every)
        elif self.schedule == "cyclic":
            made = Cyclic(lr=self.lr, peak=self.peak)
        return Warmup(lr=self.lr, then=made, share=share) if self.lr_warmup else made


def _spoken(attack: Attack | None) -> str:
    """The attack in words: "7 steps of PGD"."""
    steps = getattr(attack, "steps", None)
    kind = type(attack).__name__
    return kind if steps is None else f"{steps} step{'s' if steps > 1 else ''} of {kind}"


class AttackedRecipe(Recipe):
    """A recipe with attacked inputs.

    Args:
        radius_warmup: epochs over which the radius grows linearly from zero.
    """

    radius_warmup: NonNegativeFloat = 0.0

    def adversary(self, ball: Threat | None, steps_per_epoch: int) -> dict:
        """Loss, ball and warm-up of an attacked objective, which cannot do without a ball."""
        if ball is None:
            raise AdvlabError(
                f"a threat set for the recipe {self.name}", "none", 'for example Ball("linf", 0.1)'
            )
        warmup = round(self.radius_warmup * steps_per_epoch)
        return {"loss": self.per_example_loss(), "ball": ball, "warmup": warmup}
