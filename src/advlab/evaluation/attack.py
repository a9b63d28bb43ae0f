"""One line: worst inputs around some examples, with defaults that are told."""

import sys
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from ..attacks import Attack, Attacked
from ..attacks._engine.cascade import Cascade
from ..core import inputs
from ..core.errors import AdvlabError
from ..core.inputs import Given, TensorLike
from ..core.randomness import generator
from ..losses import ModelLoss, margin
from ..threats import Ball, Threat
from .evaluation import CheckWarning
from .memory import batch_size, batch_slices
from .suited import suited
from .suites import Plan, plan
from .validate import validate

Norm = Literal["l1", "l2", "linf"]


def attack(
    model: Given[Callable[[Tensor], Tensor]],
    x: Given[TensorLike],
    y: Given[TensorLike],
    ball: Given[Threat | None] = None,
    attack: Given[Attack | str] = "fast",
    *,
    eps: Given[float | None] = None,
    norm: Norm = "linf",
    box: Given[tuple[float, float] | Literal["auto"] | None] = "auto",
    rng: Given[torch.Generator | int] = 0,
    batch: Given[int | None] = None,
    quiet: bool = False,
) -> Attacked:
    """The worst inputs that an attack finds around some examples of a classifier.

    What it breaks is a LOWER bound of what can be broken: `advlab.evaluate` brackets the truth.
    Rows that are wrong from the start come back as they are. All that was left to the defaults is
    told in one line on stderr.

    Args:
        model: maps inputs (n, ...) to scores (n, classes), or to one number per example.
        x: the inputs in natural units, shape (n, ...): a tensor, an array or lists.
        y: the labels, shape (n,): 0, 1, ..., or -1 and +1 where the model gives one number.
        ball: the threat set; made of `norm`, `eps` and `box` if left out.
        attack: an attack, or the name of a suite ("fast", "standard", "plus", "rand") or an attack.
        eps: the largest perturbation, where no threat set is given.
        norm: its norm: "l1", "l2" or "linf".
        box: the limits of inputs, (low, high), or None for none. "auto" is (0, 1) where all of x
            lies in it, and none elsewhere.
        rng: a generator, or a number as its seed.
        batch: rows per batch; as many as fit in memory if left out.
        quiet: say nothing.

    Returns:
        An `Attacked`: `.x` the inputs found, `.loss` their margins (an error unless below zero),
        `.broken` which rows the model gets wrong there; `.save("adv.npz")` keeps them. Of a random
        model `.loss` is the mean margin over fresh draws, which had no part in choosing the inputs,
        and `.broken` says which rows at least half of these draws get wrong.

    Example:
        adv = advlab.attack(model, x, y, eps=8 / 255)
        adv.broken.float().mean()
    """
    chosen = plan(attack)
    size = None if batch is None else inputs.count("batch", batch)
    source = inputs.randomness(rng)
    inputs.instance("one generator, or a whole number", source, torch.Generator, "")
    seed = int(torch.randint(2**31, (), generator=source))  # type: ignore[arg-type]
    if ball is None:
        ball = _ball(x, norm, eps, box)
    elif eps is not None:
        raise AdvlabError("a threat set or eps, not both", f"{ball!r:.60} and eps={eps!r:.20}")
    model, x, y, warnings = validate(model, x, y, ball)
    chosen, notes = suited(chosen, model, x, y, ball, seed)
    warnings += notes
    if chosen.randomness is not None:
        warnings.append(CheckWarning("random", f"the model is random: {chosen.randomness}"))
    if not quiet:
        _say(f"{ball!r}; {_members(chosen)}")
        for warning in warnings:
            _say(warning.text)
    found = []
    for rows in batch_slices(len(x), size or batch_size(model, x, chosen.climbing)):
        name = ("attack", seed, rows.start)
        with chosen.drawing(x, *name):
            cascade = Cascade(
                ModelLoss(model, y[rows], margin), x[rows], ball, generator(*name), chosen.draws,
                chosen.climbing,
            )  # fmt: skip
            for label, member in chosen.members.items():
                cascade.run_member(label, member)
            cascade.finish()
        found.append((cascade.points, cascade.worst, cascade.broken))
    return Attacked(*(torch.cat(parts) for parts in zip(*found, strict=True)))


def _ball(x: object, norm: Norm, eps: object, box: object) -> Ball:
    if eps is None:
        raise AdvlabError(
            "how far inputs may move: eps, or a threat set", "neither", "for example eps=8/255"
        )
    limits = _limits(x) if box == "auto" else box
    return Ball(norm=norm, radius=eps, box=limits)  # type: ignore[arg-type]


def _limits(x: object) -> tuple[float, float] | None:
    """The unit box, if all inputs lie in it."""
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
