"""Suites for models that are no classifiers of one class: many labels at once, and numbers."""

from dataclasses import replace

from ..attacks import APGD, Attack, Square
from ..attacks._engine.minimum_norm import MinimumNorm
from ..core.errors import AdvlabError
from .output import Reading
from .suites import Plan


def suitable(plan: Plan, reading: Reading) -> Plan:
    """The plan for outputs that are read in this way; an attack of one's own stays.

    Args:
        plan: the plan for a classifier.
        reading: how outputs are read.
    """
    if reading.kind == "regression":
        return _for_numbers(plan)
    if reading.kind == "multilabel" and plan.name == "fast":
        # The largest of many margins is not climbed well: each label is a target by itself.
        first, second = (
            APGD(steps=20, climb="cross_entropy", early_exit=True),
            APGD(steps=20, climb="margin", target="most_likely", early_exit=True),
        )
        return replace(plan, members={"APGD cross entropy": first, "APGD by label": second})
    return plan


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
