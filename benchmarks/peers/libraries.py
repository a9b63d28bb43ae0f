"""Each library behind one call, with its own defaults where it leaves no choice."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from advlab.attacks import PGD
from advlab.core.randomness import generator
from advlab.losses import ModelLoss, PerExample, cross_entropy, evaluating, margin
from advlab.threats import Ball

ORDER = {"linf": np.inf, "l2": 2}
WIDE = (-1000.0, 1000.0)
"""Bounds for a library that demands some, where the data have none."""


@dataclass(frozen=True)
class Task:
    """Steps of projected gradient ascent on the cross entropy, from the clean inputs."""

    model: nn.Module
    x: Tensor
    y: Tensor
    ball: Ball
    steps: int = 20
    share: float = 0.25
    """Length of one step, as a share of the radius."""

    @property
    def step(self) -> float:
        return self.share * self.ball.radius


def advlab_pgd(task: Task, loss: PerExample = cross_entropy) -> Tensor:
    attack = PGD(steps=task.steps, step_size=task.share, random_start=False)
    climbed = ModelLoss(task.model, task.y, loss)
    return attack(climbed, task.x, task.ball, rng=generator("peers")).x


def advlab_on_margin(task: Task) -> Tensor:
    """What `advlab.evaluate` does: the margin does not saturate."""
    return advlab_pgd(task, margin)


def foolbox_pgd(task: Task) -> Tensor:
    import foolbox

    kind = {"linf": foolbox.attacks.LinfPGD, "l2": foolbox.attacks.L2PGD}[task.ball.norm]
    model = foolbox.PyTorchModel(task.model, bounds=task.ball.box or WIDE)
    attack = kind(abs_stepsize=task.step, steps=task.steps, random_start=False)
    criterion = foolbox.criteria.Misclassification(task.y)
    return attack.run(model, task.x, criterion, epsilon=task.ball.radius)


def art_pgd(task: Task) -> Tensor:
    from art.attacks.evasion import ProjectedGradientDescentPyTorch

    attack = ProjectedGradientDescentPyTorch(
        art_classifier(task),
        norm=ORDER[task.ball.norm],
        eps=task.ball.radius,
        eps_step=task.step,
        max_iter=task.steps,
        batch_size=len(task.x),
        verbose=False,
    )
    return torch.from_numpy(attack.generate(task.x.numpy(), task.y.numpy()))


def art_classifier(task: Task):
    from art.estimators.classification import PyTorchClassifier

    with torch.no_grad(), evaluating(task.model):
        classes = task.model(task.x[:2]).shape[1]
    return PyTorchClassifier(
        task.model,
        nn.CrossEntropyLoss(),
        tuple(task.x.shape[1:]),
        classes,
        clip_values=task.ball.box,
        device_type="cpu",
    )


def cleverhans_pgd(task: Task) -> Tensor:
    from cleverhans.torch.attacks.projected_gradient_descent import projected_gradient_descent

    low, high = task.ball.box or (None, None)
    return projected_gradient_descent(
        task.model,
        task.x,
        task.ball.radius,
        task.step,
        task.steps,
        ORDER[task.ball.norm],
        clip_min=low,
        clip_max=high,
        y=task.y,
        rand_init=False,
        sanity_checks=False,
    ).detach()


def torchattacks_pgd(task: Task) -> Tensor:
    import torchattacks

    kind = {"linf": torchattacks.PGD, "l2": torchattacks.PGDL2}[task.ball.norm]
    attack = kind(task.model, task.ball.radius, task.step, task.steps, random_start=False)
    return attack(task.x, task.y)


def pyautoattack_apgd(task: Task) -> Tensor:
    """It has no plain PGD; this is the first part of its ensemble, with as many steps."""
    from pyautoattack.autopgd_base import APGDAttack

    attack = APGDAttack(
        task.model,
        n_iter=task.steps,
        norm={"linf": "Linf", "l2": "L2"}[task.ball.norm],
        eps=task.ball.radius,
        loss="ce",
        seed=0,
        device="cpu",
    )
    return attack.perturb(task.x, task.y)


LIBRARIES: dict[str, Callable[[Task], Tensor]] = {
    "advlab": advlab_pgd,
    "foolbox": foolbox_pgd,
    "ART": art_pgd,
    "cleverhans": cleverhans_pgd,
    "torchattacks": torchattacks_pgd,
    "pyautoattack": pyautoattack_apgd,
}


def attempt(call: Callable[[], object]) -> object:
    """What a call gives, or the error it ends with, in few words."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except Exception as error:
            return f"{type(error).__name__}: {' '.join(str(error).split())[:60]}"
