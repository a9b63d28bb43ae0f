"""One line: worst inputs around some examples, with defaults that are told."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from ..attacks import Attack, Attacked
from ..attacks._engine.cascade import Cascade
from ..core import inputs
from ..core.autocast import only_for_the_model
from ..core.devices import device_of
from ..core.errors import AdvlabError
from ..core.inputs import Given, TensorLike
from ..core.randomness import generator
from ..data.loaders import DataBatches, batches
from ..losses import ModelLoss, margin
from ..threats import Ball, Threat
from .evaluation import CheckWarning
from .memory import batch_size
from .output import Output
from .regression import worst_numbers
from .suited import suited
from .suites import Plan, plan
from .validate import validate

Norm = Literal["l1", "l2", "linf"]


@only_for_the_model
def attack(
    model: Given[Callable[[Tensor], Tensor] | Path | str],
    x: Given[Any],
    y: Given[TensorLike | None] = None,
    ball: Given[Threat | None] = None,
    attack: Given[Attack | str] = "fast",
    *,
    eps: Given[float | None] = None,
    norm: Norm = "linf",
    box: Given[tuple[float, float] | Literal["auto"] | None] = "auto",
    rng: Given[torch.Generator | int] = 0,
    batch: Given[int | None] = None,
    quiet: bool = False,
    output: Given[Output | str] = "auto",
) -> Attacked:
    """The worst inputs that an attack finds around some examples of a classifier.

    What it breaks is a LOWER bound of what can be broken: `advlab.evaluate` brackets the truth.
    Rows that are wrong from the start come back as they are. All that was left to the defaults is
    told in one line on stderr.

    Args:
        model: maps inputs (n, ...) to scores (n, classes), or to one number per example; or a black
            box, as for `advlab.evaluate`.
        x: the inputs in natural units, shape (n, ...): a tensor, an array or lists; with y left
            out, data that bring both, such as a Dataset, a DataLoader or a folder of images.
        y: the labels, shape (n,): 0, 1, ..., or -1 and +1 where the model gives one number; others
            as for `advlab.evaluate`.
        ball: the threat set; made of `norm`, `eps` and `box` if left out.
        attack: an attack, or the name of a suite ("fast", "standard", "plus", "rand") or an attack.
        eps: the largest perturbation, where no threat set is given.
        norm: its norm: "l1", "l2" or "linf".
        box: the limits of inputs, (low, high), or None for none. "auto" is (0, 1) where all of x
            (of a stream: of its first batch) lies in it, and none elsewhere.
        rng: a generator, or a number as its seed.
        batch: rows per batch; as many as fit in memory if left out.
        quiet: say nothing.
        output: what the outputs mean, as for `advlab.evaluate`.

    Returns:
        An `Attacked`: `.x` the inputs found, `.loss` their margins (an error unless below zero),
        `.broken` which rows the model gets wrong there; `.save("adv.npz")` keeps them. All points
        are in memory then, also those of a stream. Of a random model `.loss` is the mean margin
        over fresh draws, which had no part in choosing the inputs, and `.broken` says which rows at
        least half of these draws get wrong. Of a regression `.loss` is the loss found, and
        `.broken` None.

    Example:
        import advlab
        adv = advlab.attack(model, x, y, eps=8 / 255)
        adv.broken.float().mean()
    """
    chosen = plan(attack)
    size = None if batch is None else inputs.count("batch", batch)
    seed = inputs.seed(rng)
    data = batches(x, y)
    if ball is None:
        ball = _ball(data, norm, eps, box)
    elif eps is not None:
        raise AdvlabError("a threat set or eps, not both", f"{ball!r:.60} and eps={eps!r:.20}")
    task = validate(model, data, None, ball, output)
    model, examples, warnings = task.model, task.examples, list(task.warnings)
    chosen, notes = suited(chosen, task, ball, seed)
    warnings += notes
    if chosen.randomness is not None:
        warnings.append(CheckWarning("random", f"the model is random: {chosen.randomness}"))
    if not quiet:
        _say(f"{ball!r}; {_members(chosen)}")
        for text in [task.said, *(warning.text for warning in warnings)]:
            if text:
                _say(text)
    found, place = [], device_of(model, examples.x)
    wanted = size or batch_size(model, examples.x, chosen.climbing, rows=examples.total)
    for first, rows, targets in examples.batches(wanted):
        name, home = ("attack", seed, first), rows.device
        moved, labels = rows.to(place), targets.to(place)
        if task.reading.classifies:
            parts = _worst(model, moved, labels, ball, chosen, name)
        else:
            own = generator(*name)
            parts = worst_numbers(model, moved, labels, ball, chosen, own, task.reading.loss)[:2]
        found.append([part.to(home) for part in parts])
    return Attacked(*(torch.cat(parts) for parts in zip(*found, strict=True)))


def _worst(
    model: Callable[[Tensor], Tensor], x: Tensor, y: Tensor, ball: Threat, chosen: Plan,
    name: tuple[str | int, ...],
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """The worst points of some examples of a classifier, their margins, and which are broken."""
    with chosen.drawing(x, *name):
        cascade = Cascade(
            ModelLoss(model, y, margin), x, ball, generator(*name), chosen.draws, chosen.climbing
        )
        for label, member in chosen.members.items():
            cascade.run_member(label, member)
        cascade.finish()
    return cascade.points, cascade.worst, cascade.broken


def _ball(data: DataBatches, norm: Norm, eps: object, box: object) -> Ball:
    if eps is None:
        raise AdvlabError(
            "how far inputs may move: eps, or a threat set", "neither", "for example eps=8/255"
        )
    limits = _limits(data) if box == "auto" else box
    return Ball(norm=norm, radius=eps, box=limits)  # type: ignore[arg-type]


def _limits(data: DataBatches) -> tuple[float, float] | None:
    """The unit box, if all inputs lie in it; of a stream, if the first batch does."""
    x, _ = data.first()
    values = inputs.inputs(x, None)
    if values.numel() == 0:
        return None
    low, high = float(values.min()), float(values.max())
    return (0.0, 1.0) if low >= 0 and high <= 1 else None


def _members(chosen: Plan) -> str:
    names = ", ".join(chosen.members)
    return names if names == chosen.name else f"{chosen.name} ({names})"


def _say(text: str) -> None:
    print(f"advlab.attack: {text}", file=sys.stderr, flush=True)
