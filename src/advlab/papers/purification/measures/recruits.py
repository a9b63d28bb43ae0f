"""Which neurons come alive, die or turn to another atom from one network to the next.

The paper says that adversarial training neither learns new features nor removes old ones (section
1); a feature is here an atom that is the top atom of a neuron alive (`covered`).
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from .correlations import alive
from .dense_mixture import coordinates, top, top_energy

PURE = 0.5
"""A neuron is pure if this share of its energy is on its top atom."""


@dataclass(frozen=True)
class Turnover:
    """What became of the neurons of each replicate; shares are NaN where no neuron counts."""

    recruits: Bool[Tensor, "*R m"]
    """Alive after and not before."""
    recruited: Float[Tensor, "*R"]
    """The share of the neurons alive after that are recruits."""
    lost: Float[Tensor, "*R"]
    """The share of the neurons alive before that are not alive after."""
    turned: Float[Tensor, "*R"]
    """The share of the neurons alive before and after whose top atom is another."""
    turned_pure: Float[Tensor, "*R"]
    """The same of those that were pure before."""


@torch.no_grad()
def turnover(
    before: Float[Tensor, "*R m d"], after: Float[Tensor, "*R m d"], M: Float[Tensor, "*R d D"]
) -> Turnover:
    """Compare two stages of the same neurons.

    Args:
        before: the weights at the first stage.
        after: those at the second.
        M: the dictionary.
    """
    old, new = alive(before), alive(after)
    both, pure = old & new, top_energy(before, M) > PURE
    other = top(coordinates(before, M)) != top(coordinates(after, M))
    return Turnover(
        new & ~old,
        _share(new & ~old, new),
        _share(old & ~new, old),
        _share(both & other, both),
        _share(both & pure & other, both & pure),
    )


def _share(part: Bool[Tensor, "*R m"], whole: Bool[Tensor, "*R m"]) -> Float[Tensor, "*R"]:
    return part.sum(-1).double() / whole.sum(-1)
