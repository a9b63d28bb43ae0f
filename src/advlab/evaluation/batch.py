"""The batches of an evaluation: attack, certificates after the first member, attack."""

import time
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from ..attacks._engine.cascade import CLEAN, Cascade
from ..certify import CERTIFICATES, Certificate, Certified, Smoothed, certify
from ..core.errors import AdvlabError
from ..core.inputs import Given
from ..core.randomness import Rng, generator
from ..losses import ModelLoss, margin
from ..threats import Threat
from .checks.context import CheckContext
from .memory import batch_slices
from .outcomes import KEPT, STANDING, Outcomes, concatenate
from .progress import EvaluationProgress, each_pass
from .resume import BatchStore
from .suites import Plan

Model = Callable[[Tensor], Tensor]
Certificates = Sequence[str | Certificate] | None
"""Names or certificates to try; all that know the model if None."""


def check_certificates(certificates: Given[Certificates]) -> None:
    """Refuse names that no certificate has, before hours are spent."""
    known = f"certificates among {', '.join(CERTIFICATES)}"
    if isinstance(certificates, str):
        raise AdvlabError(known, repr(certificates), f"write [{certificates!r}]")
    for one in certificates or ():
        if not isinstance(one, Certificate) and one not in CERTIFICATES:
            raise AdvlabError(known, f"{one!r:.60}")


def evaluate_batches(
    context: CheckContext,
    certificates: Certificates,
    store: BatchStore,
    size: int,
    progress: EvaluationProgress,
    all_points: bool = False,
) -> Outcomes:
    """Every batch, read where it is stored; each draws from a generator of its own."""
    parts = []
    for rows in batch_slices(len(context.x), size):
        part = store.read(rows.start)
        if part is None or len(part.clean) != rows.stop - rows.start:
            name = ("evaluate", context.seed, rows.start)
            with context.plan.drawing(context.x, *name):
                part = evaluate_batch(
                    context.model, context.x[rows], context.y[rows], context.ball, context.plan,
                    certificates, generator(*name), progress.model_pass, all_points,
                )  # fmt: skip
            store.write(rows.start, part)
        progress.rows_done(len(part.clean))
        parts.append(part)
    return concatenate(parts, all_points)


def evaluate_batch(
    model: Model, x: Tensor, y: Tensor, ball: Threat, plan: Plan,
    certificates: Certificates, rng: Rng, progress: Callable[[str], None] = lambda name: None,
    all_points: bool = False,
) -> Outcomes:  # fmt: skip
    """All that is found out about some examples. Work goes only where it counts.

    Rows wrong from the start are not attacked. What the first attack, the cheapest, leaves is
    certified, and the others are sent to what is then neither broken nor proved robust. Of a random
    model, rows are attacked until all draws are wrong, and what was found is judged by fresh draws;
    only a smoothed classifier can be certified.
    """
    cascade = Cascade(ModelLoss(model, y, margin), x, ball, rng, plan.draws, plan.climbing)
    _check_finite(cascade.clean)
    broken_by = [CLEAN if wrong else STANDING for wrong in cascade.broken.tolist()]
    bound, bounded_by = torch.full_like(cascade.clean, float("inf")), [STANDING] * len(x)
    refused: dict[str, str] = {}
    certifying = 0.0
    for place, (name, attack) in enumerate(plan.members.items()):
        before, points = cascade.broken, cascade.points.clone()
        with each_pass(model, partial(progress, name)):
            cascade.run_member(name, attack)
        broke = cascade.broken & ~before
        if cascade.random:  # whoever found the point that is judged in the end
            broke = (cascade.points != points).flatten(1).any(1)
        for row in broke.nonzero()[:, 0].tolist():
            broken_by[row] = name
        if place == 0:
            begun, index = time.perf_counter(), cascade.standing.nonzero()[:, 0]
            tried = () if plan.randomness and not isinstance(model, Smoothed) else certificates
            proved = _certified(model, x[index], y[index], ball, tried, progress)
            certifying, refused = time.perf_counter() - begun, proved.refused
            bound[index] = proved.bound.to(bound)
            for row, by in zip(index.tolist(), proved.by, strict=True):
                bounded_by[row] = by
            cascade.exclude(bound < 0)
    cascade.finish()
    errors = (None, None)
    if cascade.random:
        errors = cascade.clean_errors, cascade.worst_errors
        broken_by = [
            (by or CLEAN) if broken else STANDING
            for by, broken in zip(broken_by, cascade.broken.tolist(), strict=True)
        ]
    shown = _largest(cascade, None if all_points else KEPT)
    return Outcomes(
        cascade.clean, cascade.worst, bound, broken_by, bounded_by, shown,
        cascade.points[shown], cascade.results, refused, certifying, *errors,
    )  # fmt: skip


def _certified(
    model: Model, x: Tensor, y: Tensor, ball: Threat, certificates: Certificates,
    progress: Callable[[str], None],
) -> Certified:  # fmt: skip
    if len(x) == 0:
        return Certified(x.new_empty(0), [], {})
    return certify(
        model, x, y, ball, certificates, progress=lambda name, done, given: progress(name)
    )


def _largest(cascade: Cascade, most: int | None) -> Tensor:
    """The rows right at the clean input that were broken by most; all that were if None.

    Of a random model, where no point is right for sure, all that moved are kept if None.
    """
    found = cascade.broken & (cascade.clean < 0)
    if cascade.random and most is None:
        found = (cascade.points != cascade.x).flatten(1).any(1)
    lost = cascade.worst.masked_fill(~found, float("-inf"))
    order = lost.sort(descending=True, stable=True).indices[:most]
    return order[found[order]]


def _check_finite(margins: Tensor) -> None:
    bad = ~torch.isfinite(margins)
    if bool(bad.any()):
        raise AdvlabError(
            "finite outputs",
            f"NaN or infinity from the model for {int(bad.sum())} of {len(bad)} inputs",
        )
