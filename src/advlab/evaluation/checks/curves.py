"""Errors that must not fall: with a larger radius, with more steps, and at the largest radius."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ...attacks import PGD
from ...threats import Ball, Threat
from ..evaluation import Curve, Doubt, share
from ..suites import title
from .context import Scene, notable

QUICK = PGD(steps=20, step_size=0.1, restarts=2, random_start=False)
"""From the input itself and from one random start."""
STEPS = (1, 5, 20)
RADII = (0.25, 0.5, 1.0, 2.0)
REACHED = 0.95
"""Rows that an unmasked model must lose at the largest radius."""


def over_radii(scene: Scene) -> tuple[Curve, list[Doubt]]:
    """Larger balls hold smaller ones: more rows must break, and in the largest one all of them."""
    radii = [scene.ball.radius * factor for factor in RADII]
    largest = _radius_of_certain_loss(scene)
    if largest is not None and largest > radii[-1]:
        radii.append(largest)
    balls = [scene.ball.with_radius(radius) for radius in radii]
    broken = [_broken(scene, QUICK, ball) for ball in balls]
    curve = _curve("eps", QUICK, radii, broken)
    doubts = _falls("a larger eps breaks", "not_monotone_eps", radii, broken)
    doubts += _conflicts(scene, broken[RADII.index(1.0)])
    if largest is not None and curve.errors[-1] < REACHED:
        text = (
            f"only {curve.errors[-1]:.0%} of rows break at eps {radii[-1]:.3g}, where each row can "
            "be moved onto an input of another class: gradients are masked or lead nowhere"
        )
        doubts.append(Doubt("large_radius", text))
    return curve, doubts


def over_steps(scene: Scene) -> tuple[Curve, list[Doubt]]:
    """More steps must break more."""
    attacks = [PGD(steps=n, step_size=max(0.1, 1 / n), random_start=False) for n in STEPS]
    broken = [_broken(scene, attack, scene.ball) for attack in attacks]
    curve = _curve("steps", attacks[-1], list(STEPS), broken)
    return curve, _falls("more steps break", "not_monotone_steps", STEPS, broken)


def _broken(scene: Scene, attack: PGD, ball: Threat) -> Tensor:
    found = attack(scene.loss(scene.few), scene.x[scene.few], ball, rng=scene.rng("curves"))
    return found.loss >= 0


def _falls(what: str, kind: str, values: Sequence[float], broken: list[Tensor]) -> list[Doubt]:
    doubts = []
    for i in range(1, len(broken)):
        lost = int(broken[i - 1].sum() - broken[i].sum())
        if notable(lost, len(broken[i])):
            text = (
                f"{what} less: {share(broken[i]):.0%} of rows at {values[i]:.3g}, "
                f"{share(broken[i - 1]):.0%} at {values[i - 1]:.3g}. Gradients mislead the attack"
            )
            doubts.append(Doubt(kind, text))
    return doubts[:1]


def _conflicts(scene: Scene, broken: Tensor) -> list[Doubt]:
    """Rows that are proved safe and yet broken: one of the two is wrong."""
    if scene.rows is None:
        return []
    count = int((broken & (scene.rows.bound[scene.few] < 0)).sum())
    text = f"{count} rows were broken that a certificate calls safe: the certificate is wrong"
    return [Doubt("certificate", text)] if count else []


def _curve(over: str, attack: PGD, values: Sequence[float], broken: list[Tensor]) -> Curve:
    errors = tuple(share(one) for one in broken)
    return Curve(over, len(broken[0]), title(attack), tuple(map(float, values)), errors)


def _radius_of_certain_loss(scene: Scene) -> float | None:
    """A radius at which the exact robust error of the few is 1: each has an input of another
    predicted class within it. None if the model gives all of them one answer."""
    if not isinstance(scene.ball, Ball) or scene.classes < 1:
        return None
    x, out = scene.x[scene.few], scene.outputs
    answers = out.argmax(1) if scene.classes > 1 else (out.flatten() > 0).long()
    far = torch.full((len(x),), float("inf"))
    for i in range(len(x)):
        others = x[answers != answers[i]]
        if len(others):
            far[i] = scene.ball.norm_of(others - x[i]).min()
    largest = float(far.max())
    return None if largest == float("inf") else largest * (1 + 1e-3)
