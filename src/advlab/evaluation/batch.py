"""The batches of an evaluation: attack, certificates after the first member, attack."""

import time
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from ..attacks._engine.cascade import CLEAN, Cascade
from ..certify import CERTIFICATES, Certificate, Smoothed, certify, usual_certificates
from ..core.devices import device_of
from ..core.errors import AdvlabError
from ..core.fingerprint import digest
from ..core.inputs import Given
from ..core.randomness import Rng, generator
from ..losses import ModelLoss, margin
from ..threats import Threat
from .budget import Budget, part_of
from .checks.context import CheckContext
from .examples import Examples
from .kept_rows import KeptRows
from .outcomes import KEPT, STANDING, Outcomes, concatenate
from .output_bounds import certify_labels
from .progress import EvaluationProgress, each_pass
from .regression import regression_batch
from .resume import BatchStore
from .suites import Plan

Model = Callable[[Tensor], Tensor]
Certificates = Sequence[str | Certificate] | None
"""Names or certificates to try; all that know the model if None."""
FREE = ("linear", "ibp")
"""Certificates that cost about one pass through the model."""
AT_ONCE = 16
"""Outcomes of batches that are held before they become one."""


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
    examples: Examples,
    certificates: Certificates,
    store: BatchStore,
    size: int,
    progress: EvaluationProgress,
    all_points: bool = False,
    budget: Budget | None = None,
) -> tuple[Outcomes, KeptRows]:
    """Every batch, read where it is stored; each draws from a generator of its own.

    Returns:
        What became of all rows, and the rows of a stream that are wanted later.
    """
    parts: list[Outcomes] = []
    kept, place = KeptRows(examples, all_points), device_of(context.model, examples.x)
    compute = evaluate_batch
    if context.loss is not margin:
        compute = partial(regression_batch, loss=context.loss)
    for first, x, y in examples.batches(size):
        # Data in memory are part of the store's own name.
        mark = digest((x, y)) if examples.streamed and store.folder is not None else ""
        part = store.read(first, mark)
        if part is None or len(part.clean) != len(x):
            name = ("evaluate", context.seed, first)
            deadline = None if budget is None else budget.next_batch(len(x))
            with context.plan.drawing(examples.x, *name):
                part = compute(
                    context.model, x.to(place), y.to(place), context.ball, context.plan,
                    certificates, generator(*name), progress.model_pass, all_points, deadline,
                ).cpu()  # fmt: skip
            store.write(first, part, mark)
        progress.rows_done(len(part.clean))
        parts.append(part)
        kept.note(first, x, y, part)
        if len(parts) > AT_ONCE:  # so that points do not add up
            parts = [concatenate(parts, all_points)]
            kept.prune(parts[0])
    return concatenate(parts, all_points), kept


def evaluate_batch(
    model: Model, x: Tensor, y: Tensor, ball: Threat, plan: Plan,
    certificates: Certificates, rng: Rng, progress: Callable[[str], None] = lambda name: None,
    all_points: bool = False, deadline: float | None = None,
) -> Outcomes:  # fmt: skip
    """All that is found out about some examples. Work goes only where it counts.

    Certificates that cost next to nothing come first, and rows that they prove robust, or that are
    wrong from the start, are not attacked. What the first attack, the cheapest, leaves is given to
    the other certificates, and the other attacks are sent to what is then neither broken nor
    proved. Of a random model, rows are attacked until all draws are wrong, and what was found is
    judged by fresh draws; only a smoothed classifier can be certified.
    """
    cascade = Cascade(ModelLoss(model, y, margin), x, ball, rng, plan.draws, plan.climbing)
    _check_finite(cascade.clean)
    broken_by = [CLEAN if wrong else STANDING for wrong in cascade.broken.tolist()]
    proofs = Proofs(cascade.clean)
    free, others = _free_and_others(model, plan, certificates, timed=deadline is not None)
    proofs.add(model, x, y, ball, free, cascade.standing, progress)
    cascade.exclude(proofs.bound < 0)
    cascade.deadline = deadline
    for place, (name, attack) in enumerate(plan.members.items()):
        before, points = cascade.broken, cascade.points.clone()
        with each_pass(model, partial(progress, name)):
            cascade.run_member(name, attack)
        broke = cascade.broken & ~before
        if cascade.random:  # whoever found the point that is judged in the end
            broke = (cascade.points != points).flatten(1).any(1)
        for row in broke.nonzero()[:, 0].tolist():
            broken_by[row] = name
        if place == 0 and not proofs.exact:
            share = 0.5 if len(plan.members) > 1 else 1.0
            until = part_of(deadline, share)
            proofs.add(model, x, y, ball, others, cascade.standing, progress, until)
            cascade.exclude(proofs.bound < 0)
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
        cascade.clean, cascade.worst, proofs.bound, broken_by, proofs.by, shown,
        cascade.points[shown], cascade.results, proofs.refused, proofs.seconds, proofs.tried,
        proofs.skipped, *errors,
    )  # fmt: skip


class Proofs:
    """What certificates have proved of the rows of a batch.

    Args:
        like: one number per row, for device and type.
    """

    def __init__(self, like: Tensor):
        self.bound, self.by = torch.full_like(like, float("inf")), [STANDING] * len(like)
        self.refused: dict[str, str] = {}
        self.tried: dict[str, list[float]] = {}
        self.skipped: dict[str, int] = {}
        self.seconds = 0.0

    @property
    def exact(self) -> bool:
        """Whether a certificate gave the worst margins themselves, so that others add nothing."""
        return any(name in CERTIFICATES and CERTIFICATES[name].exact for name in self.tried)

    def add(
        self, model: Model, x: Tensor, y: Tensor, ball: Threat,
        certificates: Sequence[str | Certificate], standing: Tensor,
        progress: Callable[[str], None], deadline: float | None = None,
    ) -> None:  # fmt: skip
        """Try certificates on the rows that stand, and remember what they say."""
        index, begun = standing.nonzero()[:, 0], time.perf_counter()
        if len(index) == 0 or len(certificates) == 0:
            return
        if y.ndim > 1:
            found = certify_labels(model, x[index], y[index], ball, certificates, progress)
        else:
            found = certify(
                model, x[index], y[index], ball, certificates, deadline=deadline,
                progress=lambda name, done, given: progress(name),
            )  # fmt: skip
        nearer = found.bound.to(self.bound) < self.bound[index]
        self.bound[index[nearer]] = found.bound.to(self.bound)[nearer]
        for place in nearer.nonzero()[:, 0].tolist():
            self.by[int(index[place])] = found.by[place]
        self.refused |= found.refused
        self.tried |= {name: [float(value) for value in one] for name, one in found.tried.items()}
        self.skipped |= found.skipped
        self.seconds += time.perf_counter() - begun


def _free_and_others(
    model: Model, plan: Plan, certificates: Certificates, *, timed: bool
) -> tuple[list[str | Certificate], list[str | Certificate]]:
    """The certificates to try before any attack, and those to try after the first one."""
    if plan.randomness is not None and not isinstance(model, Smoothed):
        return [], []
    chosen: list[str | Certificate] = [*usual_certificates(model, timed=timed)]
    if certificates is not None:
        chosen = list(certificates)
    elif plan.certificates is not None:
        chosen = [one for one in chosen if one in plan.certificates]
    free: list[str | Certificate] = [one for one in chosen if one in FREE]
    return free, [one for one in chosen if one not in free]


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
