"""How much the loss rises when inputs move: the largest rise within each of several radii.

`dloss` of the CGRO paper (section 6, Figure 2 a-d): max over the ball of L(f(x + xi), y), less
L(f(x), y), here between a lower end, which attacks find, and an upper end, which certificates
prove.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from ..attacks import PGD, Attack
from ..certify import IBP, Certificate, LinearExact, Lipschitz
from ..core.autocast import only_for_the_model
from ..core.randomness import Rng
from ..losses import ModelLoss, PerExample, cross_entropy, is_error, logistic, margin, resolve
from ..threats import Threat
from ._parts.batches import batches, checked_radii, randomness

CHEAP: tuple[Certificate, ...] = (LinearExact(), IBP(), Lipschitz())
"""Certificates that cost a few passes through the network."""


@dataclass(frozen=True)
class LossChange:
    """What inputs within each radius do to the loss of each example."""

    radii: tuple[float, ...]
    clean: Float[Tensor, " n"]
    """L(f(x), y)."""
    low: Float[Tensor, "radii n"]
    """The largest rise that was found: the truth is no smaller."""
    high: Float[Tensor, "radii n"] | None
    """No rise is larger; None where no certificate takes the model, the set and the loss."""
    broken: Bool[Tensor, "radii n"]
    """Whether a point was found that the model gets wrong."""
    certified: Bool[Tensor, "radii n"] | None
    """Whether it is proved that there is no such point."""


@only_for_the_model
def loss_change(
    model: Callable[[Tensor], Any],
    x: Any,
    y: Any,
    ball: Threat,
    radii: Sequence[float] | None = None,
    *,
    loss: str | PerExample = "cross_entropy",
    attack: Attack | None = None,
    certificates: Sequence[Certificate] = CHEAP,
    batch: int | None = None,
    rng: Rng | int | None = None,
) -> LossChange:
    """The bracket of the largest rise of the loss within each radius.

    An attack runs at each radius, and what it finds at one is tried at all others: points of a
    smaller set as they are, points of a larger one after a projection. So `low` never falls as the
    radius grows; nor does `high`, as a bound for a larger set is one for a smaller.

    Args:
        model: the network; it is judged in eval mode and left as it was.
        x: inputs, one row per example.
        y: labels, as the loss wants them.
        ball: the kind of set; `ball.with_radius` gives those of the other radii.
        radii: in rising order; by default the radius of `ball` alone.
        loss: a name or a function of outputs and labels, one value per example. Upper ends are
            known for "cross_entropy", "logistic" and "margin".
        attack: what climbs the loss, by default PGD with 10 steps from 2 random starts.
        certificates: what upper ends come from, each where it can; () for none.
        batch: rows at a time; all at once if left out.
        rng: where random starts come from; a whole number is a seed.

    Returns:
        One row per radius, one column per example, on the CPU.

    Example:
        from advlab.measure.loss_change import loss_change
        from advlab.threats import Ball
        found = loss_change(model, x, y, Ball("linf", 8 / 255, box=(0, 1)), [2 / 255, 8 / 255])
        found.low.mean(1), found.high.mean(1)  # the bracket of dloss over the radii
    """
    radii = checked_radii([ball.radius] if radii is None else radii)
    attack = attack or PGD(steps=10, step_size=0.25, restarts=2)
    rng, measured = randomness(rng, "loss_change"), resolve(loss)
    parts = [
        _one_batch(ModelLoss(model, labels, measured), some, [ball.with_radius(r) for r in radii],
                   attack, certificates, rng)
        for some, labels in batches(model, x, y, batch)
    ]  # fmt: skip
    clean, low, broken, bound, certified = zip(*parts, strict=True)
    base = torch.cat(clean)
    high = None if None in bound else torch.cat(bound, 1) - base  # type: ignore[arg-type]
    proved = None if None in certified else torch.cat(certified, 1)  # type: ignore[arg-type]
    return LossChange(radii, base, torch.cat(low, 1) - base, high, torch.cat(broken, 1), proved)


def _one_batch(
    loss: ModelLoss,
    x: Tensor,
    sets: Sequence[Threat],
    attack: Attack,
    certificates: Sequence[Certificate],
    rng: Rng,
) -> tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None]:
    """Losses of clean and worst points, errors, bounds of losses, proofs, all on the CPU."""
    outputs = _outputs(loss, x)
    clean = loss.loss(outputs, loss.y)
    found = [attack(loss, x, ball, rng=rng) for ball in sets]
    low = torch.stack([one.loss for one in found])
    broken = torch.stack([_broken(loss, x, outputs)] * len(sets))
    for k, ball in enumerate(sets):
        for one in found:
            point = ball.project(one.x, x)
            scores = _outputs(loss, point)
            low[k] = torch.maximum(low[k], _worst_if_nan(loss.loss(scores, loss.y)))
            broken[k] |= _broken(loss, point, scores)
    low, broken = low.cummax(0).values, broken.cummax(0).values
    margins = worst_margins(loss.model, x, loss.y, sets, certificates)
    if margins is None:
        return clean.cpu(), low.cpu(), broken.cpu(), None, None
    bound, proved = loss_of_margin(loss.loss, margins, outputs), ~is_error(margins)
    if sets[0].radius == 0:  # the input alone, of which everything is known
        proved[0] = ~broken[0]
        bound = bound if bound is None else torch.cat([clean[None], bound[1:]])
    bound = None if bound is None else torch.maximum(bound, clean).cpu()
    return clean.cpu(), low.cpu(), broken.cpu(), bound, proved.cpu()


def _outputs(loss: ModelLoss, x: Tensor) -> Tensor:
    with torch.no_grad():
        return loss.outputs(x)


def _broken(loss: ModelLoss, x: Tensor, outputs: Tensor) -> Tensor:
    """Errors, where outputs and labels are a classifier's; a regression has none."""
    signs = outputs.ndim == 1 or outputs.shape[1] == 1 or loss.y.ndim == 2
    if signs and not bool((loss.y.abs() == 1).all()):
        return torch.zeros(len(x), dtype=torch.bool, device=x.device)
    return is_error(margin(outputs, loss.y))


def _worst_if_nan(values: Tensor) -> Tensor:
    return values.masked_fill(values.isnan(), float("inf"))


def worst_margins(
    model: Callable[[Tensor], Any],
    x: Tensor,
    y: Tensor,
    sets: Sequence[Threat],
    certificates: Sequence[Certificate] = CHEAP,
) -> Float[Tensor, "sets n"] | None:
    """No margin (`losses.margin`) within each set is larger; None where no certificate is able.

    Args:
        model: the network.
        x: inputs, one row per example.
        y: labels, one per input.
        sets: of one kind, with radii in rising order: a bound of one is a bound of those before.
        certificates: the least of their bounds counts.

    Example:
        from advlab.measure.loss_change import worst_margins
        from advlab.threats import Ball
        worst_margins(model, x, y, [Ball("linf", r) for r in (0.1, 0.2)]) < 0  # proved robust
    """
    able = [one for one in certificates if y.ndim == 1 and _takes(one, model, sets, x)]
    if not able:
        return None
    bounds = [torch.stack([one.worst_margin(model, x, y, ball) for one in able]) for ball in sets]
    least = torch.stack([_worst_if_nan(one).amin(0) for one in bounds])
    return least.flip(0).cummin(0).values.flip(0)


def _takes(one: Certificate, model: Any, sets: Sequence[Threat], x: Tensor) -> bool:
    return all(one.refuses(model, ball, x) is None for ball in sets)


def loss_of_margin(
    loss: PerExample, margins: Float[Tensor, "*sets n"], outputs: Tensor
) -> Float[Tensor, "*sets n"] | None:
    """The largest loss that goes with margins of at most these; None for losses not known here.

    Cross entropy is log(1 + sum_{j != y} exp(z_j - z_y)): at most K - 1 terms of exp(margin).

    Args:
        loss: of outputs and labels.
        margins: upper bounds of `losses.margin`.
        outputs: of the model, of which the number of classes counts.
    """
    if loss is margin:
        return margins
    if loss is logistic:
        return F.softplus(margins)
    if loss is cross_entropy and outputs.ndim == 2 and outputs.shape[1] > 1:
        return F.softplus(margins + log(outputs.shape[1] - 1))
    return None
