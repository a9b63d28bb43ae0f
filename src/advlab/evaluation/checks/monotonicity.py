"""Errors that must not fall: with a larger radius, with more steps, and at the largest radius."""

from collections.abc import Sequence

from torch import Tensor

from ...attacks import PGD
from ...attacks._engine.random_models import judge
from ...losses import is_error
from ...threats import Threat
from ..evaluation import CheckWarning, Curve, share
from ..suites import title
from .context import CheckContext, notable

QUICK = PGD(steps=20, step_size=0.1, restarts=2, random_start=False)
"""From the input itself and from one random start."""
STEPS = (1, 5, 20)
RADII = (0.25, 0.5, 1.0, 2.0)
REACHED = 0.95
"""Rows that an unmasked model must lose at the largest radius."""


def over_radii(context: CheckContext) -> tuple[Curve, list[CheckWarning]]:
    """Larger balls hold smaller ones: more rows must break, and in the largest one all of them."""
    radii = [context.ball.radius * factor for factor in RADII]
    largest = _radius_of_certain_loss(context)
    if largest is not None and largest > radii[-1]:
        radii.append(largest)
    balls = [context.ball.with_radius(radius) for radius in radii]
    broken = [_broken(context, QUICK, ball) for ball in balls]
    curve = _curve("eps", QUICK, radii, broken)
    warnings = _falls("a larger eps breaks", "not_monotone_eps", radii, broken)
    warnings += _conflicts(context, broken[RADII.index(1.0)])
    if largest is not None and curve.errors[-1] < REACHED:
        text = (
            f"only {curve.errors[-1]:.0%} of rows break at eps {radii[-1]:.3g}, where each row can "
            "be moved onto an input of another class: gradients are masked or lead nowhere"
        )
        warnings.append(CheckWarning("large_radius", text))
    return curve, warnings


def over_steps(context: CheckContext) -> tuple[Curve, list[CheckWarning]]:
    """More steps must break more."""
    attacks = [PGD(steps=n, step_size=max(0.1, 1 / n), random_start=False) for n in STEPS]
    broken = [_broken(context, attack, context.ball) for attack in attacks]
    curve = _curve("steps", attacks[-1], list(STEPS), broken)
    return curve, _falls("more steps break", "not_monotone_steps", STEPS, broken)


def _broken(context: CheckContext, attack: PGD, ball: Threat) -> Tensor:
    """Which rows are broken; of a random model the share of draws that are wrong."""
    loss, x = context.climbed(context.few), context.inputs(context.few)
    found = attack(loss, x, ball, rng=context.rng("curves"))
    if context.plan.draws > 1:
        return judge(context.margin(context.few), found.x, context.plan.draws).rate.cpu()
    return is_error(found.loss).cpu()


def _falls(
    what: str, kind: str, values: Sequence[float], broken: list[Tensor]
) -> list[CheckWarning]:
    warnings = []
    for i in range(1, len(broken)):
        lost = int(broken[i - 1].sum() - broken[i].sum())
        if notable(lost, len(broken[i])):
            text = (
                f"{what} less: {share(broken[i]):.0%} of rows at {values[i]:.3g}, "
                f"{share(broken[i - 1]):.0%} at {values[i - 1]:.3g}. Gradients mislead the attack"
            )
            warnings.append(CheckWarning(kind, text))
    return warnings[:1]


def _conflicts(context: CheckContext, broken: Tensor) -> list[CheckWarning]:
    """Rows that are proved safe and yet broken: one of the two is wrong."""
    if context.outcomes is None:
        return []
    count = int(((broken > 0.5) & (context.outcomes.bound[context.few] < 0)).sum())
    text = f"{count} rows were broken that a certificate calls safe: the certificate is wrong"
    return [CheckWarning("certificate", text)] if count else []


def _curve(over: str, attack: PGD, values: Sequence[float], broken: list[Tensor]) -> Curve:
    errors = tuple(share(one) for one in broken)
    return Curve(over, len(broken[0]), title(attack), tuple(map(float, values)), errors)


def _radius_of_certain_loss(context: CheckContext) -> float | None:
    """A radius at which the exact robust error of the few is 1: each has an input of another
    predicted class within it. None if the model gives all of them one answer."""
    if not context.ball.convex or context.classes < 1:
        return None
    x, out = context.inputs(context.few), context.outputs
    answers = out.argmax(1) if context.classes > 1 else (out.flatten() > 0).long()
    far = x.new_full((len(x),), float("inf"))
    for i in range(len(x)):
        others = x[answers != answers[i]]
        if len(others):
            far[i] = context.ball.norm_of(others - x[i]).min()
    largest = float(far.max())
    return None if largest == float("inf") else largest * (1 + 1e-3)
