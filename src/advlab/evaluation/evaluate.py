"""The practitioner's call."""

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ..attacks import Attack
from ..core import inputs
from ..core.autocast import only_for_the_model
from ..core.errors import AdvlabError
from ..core.inputs import Given, TensorLike
from ..threats import Threat
from .batch import Certificates, check_certificates, evaluate_batches
from .budget import Budget
from .budget import seconds as seconds_of
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
from .outcomes import Counterexample
from .output import Output
from .progress import EvaluationProgress
from .regression import summarise_regression
from .resume import BatchStore, batch_parts
from .suited import suited
from .suites import plan
from .summary import summarise
from .validate import validate


@only_for_the_model
def evaluate(
    model: Given[Callable[[Tensor], Tensor] | Path | str],
    x: Given[Any],
    y: Given[TensorLike | None] = None,
    ball: Given[Threat | None] = None,
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
    output: Given[Output | str] = "auto",
    budget: Given[float | str | None] = None,
) -> Evaluation:
    """How robust is this model: clean error, and the robust error between two bounds.

    The robust error is the share of examples x for which some x' in the threat set of x is
    classified wrongly. Attacks find such x' and give a LOWER bound of it; certificates prove that
    there are none and give an upper bound. An example is an error unless the score of its label
    is strictly above all others: ties are errors (docs/attack.md).

    Of a model that is random in eval mode the robust error is an expectation over its draws: the
    mean over examples of the largest probability of a wrong answer in the threat set. Attacks climb
    the mean over draws, and errors are shares of fresh draws at the points found.

    Rows wrong from the start are not attacked, nor those that a certificate of next to no cost
    proves robust. The first attack meets all others, the other certificates what it leaves, and
    each further attack what is then neither broken nor proved robust.
    `AutoAttack().run` runs the same cascade, without certificates and checks.

    Args:
        model: maps inputs (n, ...) to scores (n, classes), or to one number per example. It is
            called in eval mode and left as it was found. Functions of arrays or of labels, fitted
            estimators with `predict` and the paths of ONNX files are taken as black boxes.
        x: the inputs in natural units, shape (n, ...): a tensor, an array or lists. With y left
            out, data that bring both (see `data.loaders.batches`): a Dataset, a DataLoader, any
            iterable of batches, a folder of images. These are read once, a batch at a time: only
            numbers per row are kept, and with `points` all inputs.
        y: the labels, shape (n,), as x: 0, 1, ..., or -1 and +1, or 0 and 1, where the model gives
            one number; (n, k) for many labels; real numbers for a regression.
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
        output: what the outputs mean: "scores", "logit", "probability", "multilabel", "regression",
            or an `Output` that also names classes or a loss. "auto" finds out, says so in
            `Evaluation.reading`, and refuses what cannot be told.
        budget: seconds, or text such as "2m", for the whole evaluation: cheap certificates and the
            first attack come first, and `Evaluation.skipped` says what there was no time for. The
            looks at the clean inputs are always made. Results then depend on the machine's speed.

    Returns:
        An `Evaluation`: `clean_error`, `robust_error` (a lower bound), `certified_error` (an upper
        bound, None if no certificate knows the model), `intervals` at 95 % for the population that
        the examples were drawn from, `warnings`, and `members`, the account of each attack. A
        regression has `clean_loss`, `robust_loss` (a lower bound) and `certified_loss` instead.

    Example:
        import advlab
        from advlab.threats import Ball
        result = advlab.evaluate(model, x, y, Ball("linf", 8 / 255, box=(0, 1)))
        print(result)
    """
    chosen = plan(attack)
    seed = 0 if rng is None else inputs.seed(rng)
    batch = None if batch is None else inputs.count("batch", batch)
    store = None if store is None else inputs.path("store", store)
    limit = None if budget is None else seconds_of(budget)
    check_certificates(certificates)
    if ball is None:
        raise AdvlabError("ball as a threat set", "none", 'for example Ball("linf", 0.1)')
    if transfer is not None:
        inputs.instance("transfer as a network", transfer, nn.Module, "")
    task = validate(model, x, y, ball, output)
    model, examples, warnings = task.model, task.examples, list(task.warnings)
    chosen, notes = suited(chosen, task, ball, seed)
    warnings += notes
    context = CheckContext(
        model, examples.x, examples.y, ball, chosen, seed, transfer=transfer,
        loss=task.reading.loss, budget=limit,
    )  # type: ignore[arg-type]  # fmt: skip
    time_left = Budget(limit, examples.total)
    with EvaluationProgress(examples.total, progress) as shown:
        if checks:
            with chosen.drawing(examples.x, "evaluate", "checks", seed):
                warnings += check_before_attack(context)
        for warning in warnings:
            shown.say(f"warning: {warning.text}")
        parts = {}
        if store:  # it looks into the model and all data: only where something is kept
            settings = (ball, chosen, certificates, batch, seed, points, limit)
            data = ("a stream",) * 2 if examples.streamed else (examples.x, examples.y)
            parts = batch_parts(evaluate_batches, model, *data, *settings)  # type: ignore[arg-type]
        kept = BatchStore(store, parts, reuse)
        size = kept.batch_size(
            lambda: batch or batch_size(model, examples.x, chosen.climbing, rows=examples.total)
        )
        start = time.perf_counter()
        outcomes, rows = evaluate_batches(
            context, examples, certificates, kept, size, shown, points, time_left
        )
        checked, context = CheckResults(), rows.context(context, outcomes)
        ascends = all(one.ascends for one in chosen.members.values())
        if checks and ascends and task.reading.classifies:
            shown.model_pass("checks")
            with chosen.drawing(examples.x, "evaluate", "checks after", seed):
                checked = check_result(context, warnings, time_left.end)
    if chosen.suite:
        outcomes = outcomes.with_counterexamples(_in_data(context, checked), points)
    seconds = time.perf_counter() - start
    warnings += not_finite(outcomes) + by_votes(outcomes, certificates)
    if task.reading.classifies:
        found = summarise(context, outcomes, warnings, checked, size, seconds)
    else:
        found = summarise_regression(context, outcomes, warnings, size, seconds)
    found = replace(found, reading=task.said)
    if not points:
        return found
    clean = torch.cat(rows.inputs) if examples.streamed else examples.x
    return replace(found, adversarial=outcomes.adversarial(clean))


def _in_data(context: CheckContext, checked: CheckResults) -> list[Counterexample]:
    """What checks broke, with its rows in the data: checks may have seen some of them only."""
    found = checked.counterexamples
    if context.rows is None:
        return found
    return [replace(one, row=int(context.rows[one.row])) for one in found]
