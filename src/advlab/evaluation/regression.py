"""Models of numbers: the largest loss in the threat set instead of an error."""

import time
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from ..attacks import MemberResult
from ..attacks._engine.cascade import Cascade
from ..certify import Certificate
from ..core.intervals import estimate
from ..core.randomness import Rng
from ..losses import ModelLoss, PerExample
from ..threats import Threat
from .checks import CheckContext
from .evaluation import CheckWarning, Evaluation, total
from .outcomes import KEPT, STANDING, Outcomes
from .output_bounds import largest_distance
from .progress import each_pass
from .suites import Plan

Model = Callable[[Tensor], Tensor]


def above(outputs: Tensor, y: Tensor) -> Tensor:
    """f - y."""
    return outputs.reshape(y.shape) - y


def below(outputs: Tensor, y: Tensor) -> Tensor:
    """y - f."""
    return y - outputs.reshape(y.shape)


def worst_numbers(
    model: Model, x: Tensor, y: Tensor, ball: Threat, plan: Plan, rng: Rng, loss: PerExample,
    progress: Callable[[str], None] = lambda name: None, deadline: float | None = None,
) -> tuple[Tensor, Tensor, Tensor, list[MemberResult]]:  # fmt: skip
    """The inputs of largest loss that the attacks find, their losses, the clean ones, accounts.

    One output is driven up and down from its target: the loss grows with the distance, so the
    worse of both ends is the worst. Several outputs climb the loss itself.

    Args:
        model: gives one number per example and target.
        x: the inputs.
        y: the targets.
        ball: the threat set.
        plan: the attacks.
        rng: where they draw from.
        loss: the loss of outputs and targets.
        progress: is told the attack before each pass through the model.
        deadline: when attacks stop, by the clock `time.monotonic`.
    """
    judged = ModelLoss(model, y, loss)
    ways = (above, below) if y.ndim == 1 else (loss,)
    results, worst, points, clean = [], None, x, None
    for way in ways:
        cascade = Cascade(ModelLoss(model, y, way), x, ball, rng, plan.draws, deadline=deadline)
        for name, attack in plan.members.items():
            with each_pass(model, partial(progress, name)):
                cascade.run_member(name, attack)
        results += cascade.results
        with torch.no_grad():
            if clean is None or worst is None:
                clean = worst = judged(x)
            value = judged(cascade.points).nan_to_num(torch.inf, torch.inf)
        worse = value > worst
        shape = (-1, *[1] * (x.ndim - 1))
        worst = torch.where(worse, value, worst)
        points = torch.where(worse.reshape(shape), cascade.points, points)
    return points, worst, clean, results  # type: ignore[return-value]


def regression_batch(
    model: Model, x: Tensor, y: Tensor, ball: Threat, plan: Plan,
    certificates: Sequence[str | Certificate] | None, rng: Rng,
    progress: Callable[[str], None] = lambda name: None, all_points: bool = False,
    deadline: float | None = None, *, loss: PerExample,
) -> Outcomes:  # fmt: skip
    """Outcomes whose numbers are losses: clean, the largest found, and an upper bound."""
    points, worst, clean, results = worst_numbers(
        model, x, y, ball, plan, rng, loss, progress, deadline
    )
    begun = time.perf_counter()
    far, by, refused = largest_distance(model, x, y, ball, certificates, progress)
    # The loss of an output that is `far` from its target.
    bound = loss(y + far, y)
    most = len(x) if all_points else KEPT
    shown = (worst - clean).nan_to_num(torch.inf).sort(descending=True, stable=True).indices[:most]
    return Outcomes(
        clean, worst, bound, [STANDING] * len(x), by, shown, points[shown], results, refused,
        time.perf_counter() - begun,
    )  # fmt: skip


def summarise_regression(
    context: CheckContext, outcomes: Outcomes, warnings: list[CheckWarning], size: int,
    seconds: float,
) -> Evaluation:  # fmt: skip
    """The mean losses of these outcomes with Student's intervals; there are no errors."""
    values = {"clean_loss": outcomes.clean, "robust_loss": outcomes.worst}
    if bool(outcomes.bound.isfinite().all()):
        values["certified_loss"] = outcomes.bound
    intervals = {}
    for name, value in values.items():
        found = estimate(value.double().cpu().numpy(), "mean")
        if found.low is not None and found.high is not None:
            intervals[name] = (max(0.0, found.low), found.high)
    means = {name: float(value.double().mean()) for name, value in values.items()}
    members = tuple(total(outcomes.members))
    worked = outcomes.certifying + sum(member.seconds for member in members)
    return Evaluation(
        n=len(outcomes.clean),
        clean_error=None,
        robust_error=None,
        certified_error=None,
        attack=context.plan.name,
        threat=repr(context.ball),
        intervals=intervals,
        check_warnings=tuple(warnings),
        members=members,
        certificates={},
        refused=outcomes.refused,
        certifying_seconds=outcomes.certifying,
        seconds=max(seconds, worked),
        batch=size,
        seed=context.seed,
        clean_loss=means["clean_loss"],
        robust_loss=means["robust_loss"],
        certified_loss=means.get("certified_loss"),
    )
