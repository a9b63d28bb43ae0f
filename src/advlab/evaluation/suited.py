"""The attacks that suit a model: one that is random, or that lets no gradient through."""

from collections.abc import Callable
from dataclasses import replace

from torch import Tensor, nn

from ..models import LabelsOnly
from ..threats import Threat
from .evaluation import CheckWarning
from .randomness import randomness
from .suites import SUITES, Plan, queries_of, without_gradient
from .validate import ZeroGradient

DETERMINISTIC = ("standard", "plus")
"""Suites whose members would take days to average over draws; AutoAttack has `rand` for it."""


def suited(
    plan: Plan,
    model: Callable[[Tensor], Tensor],
    x: Tensor,
    y: Tensor,
    ball: Threat,
    seed: int,
) -> tuple[Plan, list[CheckWarning]]:
    """The plan for this model, and what was changed in it, in words.

    Args:
        plan: what was asked for. A single attack stays what it is.
        model: the model, ready to be attacked.
        x, y: the examples.
        ball: the threat set.
        seed: of the draws that show whether the model is random.
    """
    found = randomness(model, x, y, seed)
    labels, blind = holds(model, LabelsOnly), holds(model, ZeroGradient)
    if plan.suite and (labels or blind):
        # The mean over draws of labels is a score: their shares.
        labels = labels and found is None
        members = without_gradient(ball, queries_of(plan.name), labels=labels)
        given = "gives labels only" if labels else "lets no gradient through"
        text = f"the model {given}: {plan.name} is replaced by {', '.join(members)}"
        return replace(plan, members=members, randomness=found), [CheckWarning("suite", text)]
    if found is not None and plan.name in DETERMINISTIC:
        text = f'the model is random: the suite "rand" is used in place of "{plan.name}"'
        return Plan("rand", SUITES["rand"](), randomness=found), [CheckWarning("suite", text)]
    return replace(plan, randomness=found), []


def holds(model: Callable[[Tensor], Tensor], kind: type[nn.Module]) -> bool:
    """Whether a model is of this kind, or is wrapped around one that is."""
    if isinstance(model, kind):
        return True
    return isinstance(model, nn.Module) and any(isinstance(one, kind) for one in model.modules())
