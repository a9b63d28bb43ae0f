"""Models that answer differently from call to call: what is climbed, and how points are judged.

The robust error of a random model f is an expectation over its draws: for each example the largest
P(f is wrong at x') over the threat set. Attacks climb the mean over draws (Athalye et al. 2018,
expectation over transformation); what they find is judged by draws of its own, because the point
that a search kept is the one whose draws were lucky.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from ...core.randomness import generator
from ...losses import ModelLoss, is_error, margin, outputs_of
from ..base import Attack

DRAWS = 20
"""Calls that are averaged at each point that an attack looks at, as in AutoAttack's `rand`."""
FRESH = 100
"""Calls by which the points that are returned are judged."""


class MeanOverDraws(nn.Module):
    """The mean of a random model's scores over some calls, and so of their gradients.

    Each draw is a call of its own: a model may draw once for all rows of a batch.

    Args:
        model: the random model.
        draws: how many calls.
    """

    def __init__(self, model: Callable[[Tensor], Tensor], draws: int = DRAWS):
        super().__init__()
        self.model, self.draws = model, draws
        # A new module is in train mode; this one has none of its own.
        self.training = getattr(model, "training", False)

    def forward(self, x: Tensor) -> Tensor:
        total = outputs_of(self.model, x)
        for _ in range(self.draws - 1):
            total = total + outputs_of(self.model, x)
        return total / self.draws


@dataclass(frozen=True)
class Judgement:
    """What some calls of a model say of one point per row."""

    margin: Float[Tensor, " batch"]
    """The mean margin."""
    errors: Bool[Tensor, "draws batch"]
    """Which calls were wrong."""

    @property
    def rate(self) -> Float[Tensor, " batch"]:
        """The share of calls that were wrong: an unbiased estimate of the error probability."""
        return error_rate(self.errors)


def judge(loss: ModelLoss, x: Tensor, draws: int) -> Judgement:
    """Margins and errors at some points in calls that had no part in choosing them.

    Args:
        loss: model and labels.
        x: one point per row.
        draws: how many calls.
    """
    with torch.no_grad():
        margins = torch.stack([margin(loss.outputs(x), loss.y) for _ in range(draws)])
    return Judgement(margins.mean(0), is_error(margins))


def error_rate(errors: Bool[Tensor, "draws batch"]) -> Float[Tensor, " batch"]:
    """The share of draws that are wrong, per row."""
    return errors.to(torch.float64).mean(0)


def unhurried(attack: Attack) -> Attack:
    """The attack with no row leaving where its mean margin is positive.

    That point may be wrong in half of the draws, and a better one in all of them.
    """
    off = {"early_exit", "climb_margin"} & set(type(attack).model_fields)
    return attack.model_copy(update=dict.fromkeys(off, False)) if off else attack


@contextmanager
def seeded(x: Tensor, *name: object) -> Iterator[None]:
    """Draws from torch's global generators by name inside; afterwards they are as before.

    Args:
        x: inputs, which say what device the model draws on.
        name: what tells this stream of numbers from all others.
    """
    kind = x.device.type
    known = kind != "cpu" and hasattr(torch, kind)
    devices = [x.device] if known else []
    with torch.random.fork_rng(devices, device_type=kind if known else "cuda"):
        torch.manual_seed(generator(*name).initial_seed())
        yield
