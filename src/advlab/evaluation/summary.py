"""From what became of each example to the errors, intervals and accounts of an evaluation."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..attacks import MemberResult
from ..certify import Smoothed
from ..losses import evaluating
from .checks import CheckContext, CheckResults
from .evaluation import CheckWarning, Evaluation, Example, interval, share, total
from .outcomes import KEPT, Outcomes


def summarise(
    context: CheckContext, outcomes: Outcomes, warnings: list[CheckWarning],
    checked: CheckResults, size: int, seconds: float,
) -> Evaluation:  # fmt: skip
    """The evaluation of these outcomes; no certified error where nothing was certified."""
    wrong = {"clean_error": outcomes.wrong, "robust_error": outcomes.broken}
    if outcomes.worst_errors is not None and outcomes.clean_errors is not None:
        wrong = {"clean_error": outcomes.clean_errors, "robust_error": outcomes.worst_errors}
    if outcomes.bound.isfinite().any() or bool(wrong["robust_error"].all()):
        wrong["certified_error"] = _uncertain(context, outcomes)
    errors = {name: share(one) for name, one in wrong.items()}
    members = (*total(outcomes.members), *checked.members)
    # Batches that were read from disk took their time in another run.
    worked = outcomes.certifying + sum(member.seconds for member in members)
    return Evaluation(
        n=len(outcomes.clean),
        clean_error=errors["clean_error"],
        robust_error=errors["robust_error"],
        certified_error=errors.get("certified_error"),
        attack=context.plan.name,
        threat=repr(context.ball),
        intervals={name: interval(one) for name, one in wrong.items()},
        check_warnings=(*warnings, *checked.warnings),
        members=members,
        certificates=outcomes.certified_counts(),
        refused=outcomes.refused,
        certificates_tried=outcomes.tried,
        budget=context.budget,
        skipped=_skipped(outcomes, members, checked),
        certifying_seconds=outcomes.certifying,
        seconds=max(seconds, worked),
        batch=size,
        seed=context.seed,
        draws=1 if outcomes.worst_errors is None else len(outcomes.worst_errors),
        label_changes=0.0 if context.plan.randomness is None else context.plan.randomness.changed,
        curves=tuple(checked.curves),
        examples=tuple(_examples(context, outcomes)),
        broken_by=outcomes.labels(),
    )


def _skipped(
    outcomes: Outcomes, members: Sequence[MemberResult], checked: CheckResults
) -> dict[str, int]:
    """What there was no time for."""
    attacks = {one.name: one.skipped for one in members if one.skipped}
    return {**attacks, **outcomes.skipped, **{f"check: {name}": 0 for name in checked.skipped}}


def _uncertain(context: CheckContext, outcomes: Outcomes) -> Tensor:
    """Rows without a proof; of a smoothed classifier the most that each can be wrong."""
    if isinstance(context.model, Smoothed):
        return context.model.error_bound(outcomes.bound)
    return outcomes.uncertain


def _examples(context: CheckContext, outcomes: Outcomes) -> list[Example]:
    if len(outcomes.shown) == 0:
        return []
    rows, points = outcomes.shown[:KEPT], outcomes.points[:KEPT]
    places = context.places(rows)
    before, labels = context.inputs(places), context.y[places]
    with torch.no_grad(), evaluating(context.model):
        answers, wrong = (
            _answer(context.model(one), context.y) for one in (before, points.to(before))
        )
    return [
        Example(
            row=int(row),
            label=_label(labels[i]),
            answer=_label(answers[i]),
            wrong_answer=_label(wrong[i]),
            margin=float(outcomes.worst[row]),
            original=before[i].cpu(),
            perturbed=points[i],
        )
        for i, row in enumerate(rows)
    ]


def _label(label: Tensor) -> int | tuple[int, ...]:
    """A class or sign; of many labels 0 and 1 for each."""
    return int(label) if label.ndim == 0 else tuple((label > 0).int().tolist())


def _answer(outputs: Tensor, y: Tensor) -> Tensor:
    if y.ndim > 1:
        return outputs
    single = outputs.ndim == 1 or outputs.shape[1] == 1
    return outputs.flatten().sign().long() if single else outputs.argmax(1)
