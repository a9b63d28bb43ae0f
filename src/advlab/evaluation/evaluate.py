"""The practitioner's call."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from ..attacks import Attack
from ..core.randomness import generator
from ..losses import evaluating
from ..threats import Threat
from .batches import batch_size, batches
from .cascade import Certificates, examine
from .checks import Scene, Second, first_doubts, second_doubts
from .evaluation import Doubt, Evaluation, Example, interval, share, total
from .outcomes import Rows, joined
from .progress import Bar, bar
from .resume import Journal, key_of
from .suites import plan
from .validate import admitted

Model = Callable[[Tensor], Tensor]


def evaluate(
    model: Model,
    x: Tensor,
    y: Tensor,
    ball: Threat,
    attack: Attack | str | None = None,
    *,
    certificates: Certificates = None,
    rng: torch.Generator | None = None,
    batch: int | None = None,
    checks: bool = True,
    progress: bool = False,
    transfer: nn.Module | None = None,
    store: Path | None = None,
) -> Evaluation:
    """Clean error, robust error from below by attack and from above by certificate, and doubts.

    Outputs are (n, classes) with labels 0, 1, ..., or one number with labels -1, +1. `attack` is an
    attack or the name of a suite ("fast", "standard", "plus", "rand"); if left out, "standard". A
    suite is after the best lower bound, so rows that the checks break count as broken too; an
    attack of your own is measured alone, and what checks break is told in a warning.

    `certificates` (names or certificates) are tried on rows that the first attack left; all that
    know the model if left out, none if empty. In the checks perturbations are also carried over
    from the model `transfer`. Batches that are done are kept in the folder `store` and not computed
    again: a run that was stopped and continued gives the same result.
    """
    chosen = plan(attack)
    seed = 0 if rng is None else int(torch.randint(2**31, (), generator=rng))
    model, x, found = admitted(model, x, y, ball)
    scene = Scene(model, x, y, ball, chosen, seed, transfer=transfer)
    with bar(progress, len(x)) as shown:
        if checks:
            found += first_doubts(scene)
        for doubt in found:
            shown.say(f"warning: {doubt.text}")
        journal = Journal(store, key_of(model, x, y, ball, chosen, certificates, batch, seed))
        size = journal.batch_size(lambda: batch or batch_size(model, x))
        start = time.perf_counter()
        rows = _all_rows(scene, certificates, journal, size, shown)
        later = Second()
        if checks and all(one.ascends for one in chosen.members.values()):
            shown.tick("checks")
            later = second_doubts(replace(scene, rows=rows))
    if chosen.suite:
        rows = rows.with_finds(later.finds)
    seconds = time.perf_counter() - start
    return _evaluation(scene, rows, [*found, *later.doubts], later, size, seconds)


def _all_rows(
    scene: Scene, certificates: Certificates, journal: Journal, size: int, shown: Bar
) -> Rows:
    """Every batch, read where it is stored; each draws from a generator of its own."""
    parts = []
    for place in batches(len(scene.x), size):
        part = journal.read(place.start)
        if part is None or len(part.clean) != place.stop - place.start:
            rng = generator("evaluate", scene.seed, place.start)
            part = examine(
                scene.model, scene.x[place], scene.y[place], scene.ball, scene.plan,
                certificates, rng, shown.tick,
            )  # fmt: skip
            journal.write(place.start, part)
        shown.done(len(part.clean))
        parts.append(part)
    return joined(parts)


def _evaluation(
    scene: Scene, rows: Rows, found: list[Doubt], later: Second, size: int,
    seconds: float,
) -> Evaluation:  # fmt: skip
    wrong = {"clean_error": rows.wrong, "robust_error": rows.broken}
    if rows.bound.isfinite().any() or rows.broken.all():
        wrong["certified_error"] = rows.uncertain
    errors = {name: share(one) for name, one in wrong.items()}
    efforts = (*total(rows.efforts), *later.efforts)
    # Batches that were read from disk took their time in another run.
    worked = rows.certifying + sum(effort.seconds for effort in efforts)
    return Evaluation(
        n=len(scene.x),
        clean_error=errors["clean_error"],
        robust_error=errors["robust_error"],
        certified_error=errors.get("certified_error"),
        attack=scene.plan.name,
        threat=repr(scene.ball),
        intervals={name: interval(one) for name, one in wrong.items()},
        doubts=tuple(found),
        efforts=efforts,
        certificates=rows.proofs(),
        refused=rows.refused,
        certifying_seconds=rows.certifying,
        seconds=max(seconds, worked),
        batch=size,
        seed=scene.seed,
        curves=tuple(later.curves),
        examples=tuple(_examples(scene, rows)),
        broken_by=rows.words(),
    )


def _examples(scene: Scene, rows: Rows) -> list[Example]:
    if len(rows.shown) == 0:
        return []
    before = scene.x[rows.shown]
    with torch.no_grad(), evaluating(scene.model):
        answers, wrong = (_answer(scene.model(one)) for one in (before, rows.points))
    return [
        Example(
            row=int(row),
            label=int(scene.y[row]),
            answer=int(answers[i]),
            wrong_answer=int(wrong[i]),
            margin=float(rows.worst[row]),
            original=before[i],
            perturbed=rows.points[i],
        )
        for i, row in enumerate(rows.shown)
    ]


def _answer(outputs: Tensor) -> Tensor:
    single = outputs.ndim == 1 or outputs.shape[1] == 1
    return outputs.flatten().sign().long() if single else outputs.argmax(1)
