"""Doubts about the model: its mode, its randomness, its gradients."""

import torch
from torch import nn

from ...attacks.base import BestSoFar
from ...losses import evaluating
from ...threats import Ball
from ..evaluation import Doubt
from .context import Scene

BLIND = 0.1
"""The share of rows without a gradient from which on the attack counts as blind."""
TINY, WILD = 30.0, 0.25
"""How many times more, or less, than its gradient foretells the margin moves, to call it so."""


def train_mode(scene: Scene) -> list[Doubt]:
    model = scene.model
    if not isinstance(model, nn.Module) or not any(
        m.training for m in model.modules() if _moody(m)
    ):
        return []
    text = "the model was in train mode; it was evaluated in eval mode and put back"
    return [Doubt("train_mode", text)]


def randomness(scene: Scene) -> list[Doubt]:
    """Two answers to one question."""
    with torch.no_grad(), evaluating(scene.model):
        again = scene.model(scene.x[scene.few])
    if torch.equal(scene.outputs, again):
        return []
    text = (
        "the model is random in eval mode: the attack saw other models than this one, and errors "
        "differ from run to run"
    )
    if all(getattr(member, "draws", 1) == 1 for member in scene.plan.members.values()):
        text += '. Attack the mean of several draws, by the suite "rand"'
    return [Doubt("random", text)]


def gradients(scene: Scene) -> list[Doubt]:
    """Gradients that are zero, or unlike what the outputs do a random move away."""
    x = scene.x[scene.few]
    best = BestSoFar(scene.loss(scene.few), x)
    slope = best.clean_gradient.flatten(1)
    blind = float((slope == 0).all(1).double().mean())
    if blind > BLIND:
        text = (
            f"{100 * blind:.0f} % of gradients are exactly zero: the attack is blind there, and "
            "the robust error may be far above this lower bound"
        )
        return [Doubt("zero_gradient", text)]
    if not isinstance(scene.ball, Ball) or scene.ball.radius == 0:
        return []
    moved = scene.ball.sample(x, rng=scene.rng("gradients"))
    change = (best.value(moved) - best.value(x)).abs()
    foretold = (slope * (moved - x).flatten(1)).sum(1).abs()
    ratio = float(change.double().mean() / foretold.double().mean().clamp(min=1e-300))
    if ratio > TINY:
        text = (
            f"outputs change {ratio:.2g} times more within the ball than gradients foretell: they "
            "are tiny, and the robust error may be far above this lower bound"
        )
        return [Doubt("tiny_gradient", text)]
    if ratio < WILD:
        text = (
            f"gradients foretell {1 / max(ratio, 1e-300):.2g} times the change that outputs show "
            "within the ball: they point at ripples, and the robust error may be far above this "
            "lower bound"
        )
        return [Doubt("wild_gradient", text)]
    return []


def _moody(module: nn.Module) -> bool:
    """Does the module compute something else in train mode?"""
    kinds = (nn.modules.batchnorm._NormBase, nn.modules.dropout._DropoutNd)
    return isinstance(module, kinds)
