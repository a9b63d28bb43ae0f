"""Which neurons are active on which examples, whatever the attack (Lemmas B.21, B.25, B.26)."""

from typing import NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor

from .snapshot import Networks, Snapshot


class ActiveShares(NamedTuple):
    """Shares of active pairs with y_i = a_s: of the examples for each neuron, and the converse."""

    per_neuron: Float[Tensor, "R m"]
    per_example: Float[Tensor, "R n"]


def active(now: Snapshot, net: Networks | None = None) -> Bool[Tensor, "R n m"]:
    """The pairs (i, s) of A(t) and T: y_i = a_s and <w_s, x_i> > alpha ||w_s||.

    So w_s is active on the whole ball. At the symmetric start, where the data are not attacked, the
    threshold is 0.

    Args:
        now: the networks and their data.
        net: other weights, for example those of the next step.
    """
    net = now.net if net is None else net
    threshold = now.radius * net.weight.norm(dim=2)
    threshold = threshold.masked_fill(net.mirrored()[:, None], 0.0)
    own = now.data.y[:, :, None] == net.top[:, None]
    return own & (net.inner(now.data.x) > threshold[:, None])


def active_shares(now: Snapshot) -> ActiveShares:
    """Lemmas 4.5 and B.21: at t = 0 and 1 all are at least a constant c0, whatever n, m and d."""
    pairs = active(now).to(now.x)
    return ActiveShares(pairs.mean(1), pairs.mean(2))


def lost_pairs(now: Snapshot, eta: float) -> Int[Tensor, " R"]:
    """Lemma B.26 (E1): how many active pairs the next step loses; none for non-smooth phi."""
    return (active(now) & ~active(now, now.after(eta))).sum(dim=(1, 2))


def activation_gain(now: Snapshot, eta: float) -> Int[Tensor, " R"]:
    """Lemma B.25 (at t = 0): the least change of the counts |A_s|, |A^i| in a step, >= 0."""
    before, after = active(now).long(), active(now, now.after(eta)).long()
    neurons, examples = ((after.sum(axis) - before.sum(axis)).amin(1) for axis in (1, 2))
    return neurons.minimum(examples)
