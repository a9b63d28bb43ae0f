"""The attackers of section 8, in training and as judges."""

from typing import Literal

from .....attacks import PGD, Attack, SmoothPGD
from .....threats import Ball
from .....training import Adversarial, Objective, SmoothAdversarial

AttackerName = Literal["linf(4/255)", "linf(8/255)", "l2(0.5, 0.12)", "l2(1, 0.25)"]
"""l2 attackers have a radius and the noise of SmoothAdv (footnote 14)."""
BOX = (0.0, 1.0)
BALLS: dict[AttackerName, Ball] = {
    "linf(4/255)": Ball("linf", 4 / 255, box=BOX),
    "linf(8/255)": Ball("linf", 8 / 255, box=BOX),
    "l2(0.5, 0.12)": Ball("l2", 0.5, box=BOX),
    "l2(1, 0.25)": Ball("l2", 1.0, box=BOX),
}
NOISE: dict[AttackerName, float] = {"l2(0.5, 0.12)": 0.12, "l2(1, 0.25)": 0.25}
JUDGE = PGD(steps=20, step_size=0.125, climb="cross_entropy", early_exit=True)
"""Finds the robust accuracies, which are upper bounds."""
SHOWN = PGD(steps=20, step_size=0.125, random_start=False)
"""Finds the perturbations that are looked at: from the image itself, without a random part."""


def objective(name: AttackerName, steps: int, warmup: int) -> Objective:
    """What adversarial training against an attacker descends.

    Args:
        name: the attacker.
        steps: of PGD, in linf; 7 in the paper.
        warmup: steps of training over which the radius grows from zero.
    """
    ball = BALLS[name]
    if name in NOISE:
        smooth = SmoothPGD(sigma=NOISE[name], samples=2, steps=4)
        return SmoothAdversarial(ball=ball, attack=smooth, warmup=warmup)
    attack: Attack = PGD(steps=steps, step_size=2 / steps)
    return Adversarial(ball=ball, attack=attack, warmup=warmup)
