"""The practitioner's call."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from ..attacks import Attack
from ..core import inputs
from ..core.inputs import Given, TensorLike
from ..threats import Threat
from .batch import Certificates, check_certificates, evaluate_batches
from .checks import (
    CheckContext,
    CheckResults,
    by_votes,
    check_before_attack,
    check_result,
    not_finite,
)
from .evaluation import Evaluation
from .memory import batch_size
from .progress import EvaluationProgress
from .resume import BatchStore, batch_parts
from .suited import suited
from .suites import plan
from .summary import summarise
from .validate import validate


def evaluate(
    model: Given[Callable[[Tensor], Tensor]],
    x: Given[TensorLike],
    y: Given[TensorLike],
    ball: Given[Threat],
    attack: Given[Attack | str | None] = None,
    *,
    certificates: Given[Certificates] = None,
    rng: Given[torch.Generator | int | None] = None,
    batch: Given[int | None] = None,
    checks: bool = True,
    progress: bool = False,
    transfer: Given[nn.Module | None] = None,
    store: Given[Path | str | None] = None,
    reuse: bool = False,
    points: bool = False,
) -> Evaluation:
    """How robust is this model: clean error, and the robust error between two bounds.

    The robust error is the share of examples x for which some x' in the threat set of x is
    classified wrongly. Attacks find such x' and give a LOWER bound of it; certificates prove that
    there are none and give an upper bound. An example is an error unless the score of its label
    is strictly above all others: ties are errors (docs/attack.md).

    Of a model that is random in eval mode the robust error is an expectation over its draws: the
    mean over examples of the largest probability of a wrong answer in the threat set. Attacks climb
    the mean over draws, and errors are shares of fresh draws at the points found.

    Rows wrong from the start are not attacked. The first attack meets all others, the certificates
    what it leaves, and each further attack what is then neither broken nor proved robust.
    `AutoAttack().run` runs the same cascade, without certificates and checks.

    Args:
        model: maps inputs (n, ...) to scores (n, classes), or to one number per example. It is
            called in eval mode and left as it was found.
        x: the inputs in natural units, shape (n, ...): a tensor, an array or lists.
        y: the labels, shape (n,), as x: 0, 1, ..., or -1 and +1 where the model gives one number.
        ball: the threat set around each input, such as `Ball("linf", 8 / 255, box=(0, 1))`.
        attack: an attack, or the name of a suite ("fast", "standard", "plus", "rand") or of an
            attack; "standard", which is AutoAttack, if left out. A suite is after the best lower
            bound, so rows that the checks break count as broken too. An attack of your own is
            measured alone; what checks break beyond it is told in a warning.
        certificates: names or certificates to try in this order; all that know the model if left
            out, none if empty.
        rng: where the seed of all draws comes from, or a number for it; seed 0 if left out.
        batch: rows per batch; as many as fit in memory if left out.
        checks: whether to look for reasons to doubt the result, such as masked gradients.
        progress: whether to show on stderr how far it is.
        transfer: another model of the same inputs; the checks try its perturbations too.
        store: a folder for finished batches, which are not computed again: a run that was stopped
            and continued gives the same result.
        reuse: whether to keep batches there of another model, data, code or settings too.
        points: whether to keep every perturbed input, as `Evaluation.adversarial`.

    Returns:
        An `Evaluation`: `clean_error`, `robust_error` (a lower bound), `certified_error` (an upper
        bound, None if no certificate knows the model), `intervals` at 95 % for the population that
        the examples were drawn from, `warnings`, and `members`, the account of each attack.

    Example:
        result = advlab.evaluate(model, x, y, Ball("linf", 8 / 255, box=(0, 1)))
        print(result)
    """
    chosen = plan(attack)
    seed = 0 if rng is None else _seed(rng)
    batch = None if batch is None else inputs.count("batch", batch)
    store = None if store is None else inputs.path("store", store)
    check_certificates(certificates)
    if transfer is not None:
        inputs.instance("transfer as a network", transfer, nn.Module, "")
    model, x, y, warnings = validate(model, x, y, ball)
    chosen, notes = suited(chosen, model, x, y, ball, seed)
    warnings += notes
    context = CheckContext(model, x, y, ball, chosen, seed, transfer=transfer)
    with EvaluationProgress(len(x), progress) as shown:
        if checks:
            with chosen.drawing(x, "evaluate", "checks", seed):
                warnings += check_before_attack(context)
        for warning in warnings:
            shown.say(f"warning: {warning.text}")
        parts = {}
        if store:  # it looks into the model and all data: only where something is kept
            settings = (ball, chosen, certificates, batch, seed, points)
            parts = batch_parts(evaluate_batches, model, x, y, *settings)
        kept = BatchStore(store, parts, reuse)
        size = kept.batch_size(lambda: batch or batch_size(model, x, chosen.climbing))
        start = time.perf_counter()
        outcomes = evaluate_batches(context, certificates, kept, size, shown, points)
        checked = CheckResults()
        if checks and all(one.ascends for one in chosen.members.values()):
            shown.model_pass("checks")
            with chosen.drawing(x, "evaluate", "checks after", seed):
                checked = check_result(replace(context, outcomes=outcomes), warnings)
    if chosen.suite:
        outcomes = outcomes.with_counterexamples(checked.counterexamples, points)
    seconds = time.perf_counter() - start
    warnings += not_finite(outcomes) + by_votes(outcomes, certificates)
    found = summarise(context, outcomes, warnings, checked, size, seconds)
    return replace(found, adversarial=outcomes.adversarial(x)) if points else found


def _seed(rng: object) -> int:
    one = inputs.randomness(rng)
    inputs.instance("one generator, or a whole number", one, torch.Generator, "")
    return int(torch.randint(2**31, (), generator=one))  # type: ignore[arg-type]
