"""The attacks that suit a model: one that is random, or that lets no gradient through."""

from collections.abc import Callable
from dataclasses import replace

from torch import Tensor

from .evaluation import CheckWarning
from .randomness import randomness
from .suites import SUITES, Plan

DETERMINISTIC = ("standard", "plus")
"""Suites whose members would take days to average over draws; AutoAttack has `rand` for it."""


def suited(
    plan: Plan, model: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, seed: int
) -> tuple[Plan, list[CheckWarning]]:
    """The plan for this model, and what was changed in it, in words.

    Args:
        plan: what was asked for. A single attack stays what it is.
        model: the model, ready to be attacked.
        x, y: the examples.
        seed: of the draws that show whether the model is random.
    """
    found = randomness(model, x, y, seed)
    if found is None:
        return plan, []
    if plan.name in DETERMINISTIC:
        text = f'the model is random: the suite "rand" is used in place of "{plan.name}"'
        return Plan("rand", SUITES["rand"](), randomness=found), [CheckWarning("suite", text)]
    return replace(plan, randomness=found), []
