"""Checks of the model: its mode, its randomness, its gradients."""

from collections.abc import Sequence

import torch
from torch import nn

from ...attacks._engine.random_models import FRESH
from ...attacks.base import BestSoFar
from ...certify import Certificate, Smoothing
from ..evaluation import CheckWarning
from ..outcomes import Outcomes
from .context import CheckContext

NO_GRADIENT = 0.1
"""The share of rows without a gradient from which on they are warned of."""
TINY, WILD = 30.0, 0.25
"""How many times more, or less, than its gradient foretells the margin moves, to call it so."""


def train_mode(context: CheckContext) -> list[CheckWarning]:
    """Modules in train mode that compute something else there."""
    model = context.model
    if not isinstance(model, nn.Module) or not any(
        m.training for m in model.modules() if _has_train_mode(m)
    ):
        return []
    text = "the model was in train mode; it was evaluated in eval mode and put back"
    return [CheckWarning("train_mode", text)]


def randomness(context: CheckContext) -> list[CheckWarning]:
    """Two answers to one question."""
    found = context.plan.randomness
    if found is None:
        return []
    mean = "its own mean" if found.climbing == 1 else f"the mean of {found.climbing} calls"
    text = (
        f"the model is random in eval mode: {found}. Errors are expectations over its draws: "
        f"attacks climb {mean}, and each point is judged by {FRESH} fresh calls, never by those "
        "that chose it"
    )
    return [CheckWarning("random", text)]


def gradients(context: CheckContext) -> list[CheckWarning]:
    """Gradients that are zero, or unlike what the outputs do a random move away."""
    if not context.plan.uses_gradient:
        return []
    x = context.inputs(context.few)
    best = BestSoFar(context.climbed(context.few), x)
    slope = best.clean_gradient.flatten(1)
    blind = float((slope == 0).all(1).cpu().double().mean())
    if blind > NO_GRADIENT:
        text = (
            f"{100 * blind:.0f} % of gradients are exactly zero: the attack is blind there, and "
            "the robust error may be far above this lower bound"
        )
        return [CheckWarning("zero_gradient", text)]
    if not context.ball.convex or context.ball.radius == 0:
        return []
    moved = context.ball.sample(x, rng=context.rng("gradients"))
    change = (best.value(moved) - best.value(x)).abs().cpu()
    foretold = (slope * (moved - x).flatten(1)).sum(1).abs().cpu()
    ratio = float(change.double().mean() / foretold.double().mean().clamp(min=1e-300))
    if ratio > TINY:
        text = (
            f"outputs change {ratio:.2g} times more within the ball than gradients foretell: they "
            "are tiny, and the robust error may be far above this lower bound"
        )
        return [CheckWarning("tiny_gradient", text)]
    if ratio < WILD:
        text = (
            f"gradients foretell {1 / max(ratio, 1e-300):.2g} times the change that outputs show "
            "within the ball: they point at ripples, and the robust error may be far above this "
            "lower bound"
        )
        return [CheckWarning("wild_gradient", text)]
    return []


def not_finite(outcomes: Outcomes) -> list[CheckWarning]:
    """Rows that are broken because outputs in their threat set are no numbers."""
    count = int((~torch.isfinite(outcomes.worst)).sum())
    if count == 0:
        return []
    text = (
        f"outputs are NaN or infinite at a point in the threat set of {count} of "
        f"{len(outcomes.worst)} examples: they count as broken"
    )
    return [CheckWarning("not_finite", text)]


def by_votes(outcomes: Outcomes, certificates: Sequence[str | Certificate] | None) -> list:
    """The confidence with which bounds that rest on votes hold, all of them together."""
    rows = outcomes.bounded_by.count(Smoothing.name)
    if rows == 0:
        return []
    given = [one for one in certificates or () if isinstance(one, Smoothing)]
    used = given[0] if given else Smoothing()
    text = (
        f"the upper bound rests on {used.votes} random votes for each of {rows} examples: all hold "
        f"with probability at least {used.confidence(rows):.6g} (each fails with {used.alpha:g})"
    )
    return [CheckWarning("confidence", text)]


def _has_train_mode(module: nn.Module) -> bool:
    """Does the module compute something else in train mode?"""
    kinds = (nn.modules.batchnorm._NormBase, nn.modules.dropout._DropoutNd)
    return isinstance(module, kinds)
