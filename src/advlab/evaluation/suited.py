"""The attacks that suit a model: one of many labels, of numbers, random, or without gradients."""

from collections.abc import Callable
from dataclasses import replace

from torch import Tensor, nn

from ..attacks import APGD, Attack, Square
from ..attacks._engine.minimum_norm import MinimumNorm
from ..core.errors import AdvlabError
from ..models import LabelsOnly
from ..threats import Threat
from .evaluation import CheckWarning
from .model_forms import ZeroGradient
from .randomness import randomness
from .suites import SUITES, Plan, queries_of, without_gradient
from .validate import Task

DETERMINISTIC = ("standard", "plus")
"""Suites whose members would take days to average over draws; AutoAttack has `rand` for it."""


def suited(plan: Plan, task: Task, ball: Threat, seed: int) -> tuple[Plan, list[CheckWarning]]:
    """The plan for this model, and what was changed in it, in words.

    Args:
        plan: what was asked for. A single attack stays what it is.
        task: the model, ready to be attacked, and its examples.
        ball: the threat set.
        seed: of the draws that show whether the model is random.
    """
    if not task.reading.classifies:
        return _for_numbers(plan), []
    model, examples = task.model, task.examples
    found = randomness(model, examples.x, examples.y, seed)
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
    if task.reading.kind == "multilabel":
        plan = _for_labels(plan)
    return replace(plan, randomness=found), []


def holds(model: Callable[[Tensor], Tensor], kind: type[nn.Module]) -> bool:
    """Whether a model is of this kind, or is wrapped around one that is."""
    if isinstance(model, kind):
        return True
    return isinstance(model, nn.Module) and any(isinstance(one, kind) for one in model.modules())


def _for_labels(plan: Plan) -> Plan:
    """The largest of many margins is not climbed well: each label is a target by itself."""
    if plan.name != "fast":
        return plan
    first, second = (
        APGD(steps=20, climb="cross_entropy", early_exit=True),
        APGD(steps=20, climb="margin", target="most_likely", early_exit=True),
    )
    return replace(plan, members={"APGD cross entropy": first, "APGD by label": second})


def _for_numbers(plan: Plan) -> Plan:
    """Attacks that climb the loss itself; none that looks for a decision boundary."""
    if not plan.suite:
        for attack in plan.members.values():
            if isinstance(attack, MinimumNorm):
                raise AdvlabError(
                    "an attack that climbs a loss, for a regression",
                    f"{type(attack).__name__}, which looks for a decision boundary",
                    "use PGD, APGD or Square",
                )
        return plan
    quick = plan.name == "fast"
    members: dict[str, Attack] = {
        "APGD": APGD(steps=20 if quick else 100, climb="given", draws=plan.draws),
        "Square": Square(queries=100 if quick else 1000),
    }
    return replace(plan, members=members)
