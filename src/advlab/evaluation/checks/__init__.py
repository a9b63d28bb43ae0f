"""Checks that an evaluation makes on itself: the cheap ones first, before hours are spent."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ...attacks import MemberResult
from ...attacks._engine.time_limit import OutOfTime, is_over, time_limit
from ..evaluation import CheckWarning, Curve
from ..outcomes import Counterexample
from .comparison_attacks import ComparisonAttacks
from .context import CheckContext as CheckContext
from .input_checks import (
    eps_of_another_scale,
    labels_unlike_outputs,
    normalised_outside,
    probabilities_not_logits,
)
from .model_checks import by_votes as by_votes
from .model_checks import gradients, randomness, train_mode
from .model_checks import not_finite as not_finite
from .monotonicity import over_radii, over_steps

BEFORE_ATTACK: tuple[Callable[[CheckContext], list[CheckWarning]], ...] = (
    randomness,
    train_mode,
    gradients,
    eps_of_another_scale,
    normalised_outside,
    labels_unlike_outputs,
    probabilities_not_logits,
)

MASKING = {
    "zero_gradient", "tiny_gradient", "wild_gradient", "softmax", "black_box", "transfer",
    "large_radius", "not_monotone_eps", "not_monotone_steps",
}  # fmt: skip
"""Warnings after which gradients are not to be trusted."""


@dataclass
class CheckResults:
    """What the checks of a result came to: warnings, and what their attacks did and broke."""

    warnings: list[CheckWarning] = field(default_factory=list)
    members: list[MemberResult] = field(default_factory=list)
    counterexamples: list[Counterexample] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    """Checks for which there was no time."""


def check_before_attack(context: CheckContext) -> list[CheckWarning]:
    """What can be said of the model and the inputs before the attack."""
    return [warning for check in BEFORE_ATTACK for warning in check(context)]


def check_result(
    context: CheckContext, before: Sequence[CheckWarning] = (), deadline: float | None = None
) -> CheckResults:
    """What only the attack's own result can show.

    Args:
        context: what was evaluated, with the outcomes.
        before: what was warned of before the attack: where gradients are masked, attacks that do
            not need them go after all rows that are left.
        deadline: when checks stop, by the clock `time.monotonic`; the others are named.
    """
    if context.ball.radius == 0:
        return CheckResults()
    compared = ComparisonAttacks(context)
    found = CheckResults(compared.warnings, compared.members, compared.counterexamples)

    def keep(checked: tuple[Curve, list[CheckWarning]]) -> None:
        found.curves.append(checked[0])
        found.warnings += checked[1]

    def unmask() -> None:
        signs = {warning.kind for warning in (*before, *found.warnings)} & MASKING
        if signs and context.plan.suite and context.plan.uses_gradient:
            compared.unmask()

    checks: dict[str, Callable[[], object]] = {
        "black box": compared.black_box,
        "transfer": compared.transfers,
    }
    if context.plan.uses_gradient:  # the curves are those of an attack by gradient
        checks["larger radii"] = lambda: keep(over_radii(context))
        checks["more steps"] = lambda: keep(over_steps(context))
    checks["masked gradients"] = unmask
    for name, check in checks.items():
        try:
            if is_over(deadline):
                raise OutOfTime
            with time_limit(context.model, deadline):
                check()
        except OutOfTime:
            found.skipped.append(name)
    return found
