"""How neurons correlate with what they were, and with each other, at any layer of any network.

theta(a, b) = |<a, b>| / (||a|| ||b||) is the absolute cosine of two neurons' weights (purification
paper, section 1 and Figure 2). Small theta(w0, w) means that a neuron forgot its start, theta(w,
w') near one that adversarial training left a clean feature in place, small theta(w_i, w_j) that
neurons differ. As many more steps of clean training also keep theta(w, w') near one: compare with
such a control.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from ..core.errors import AdvlabError

ALIVE = 0.2
ROWS = 512
"""Rows of a matrix of pairs that are held at one time."""

Snapshot = nn.Module | Mapping[str, Tensor]
"""A network, or the weights of one by name, as `state_dict` and checkpoints have them."""


@torch.no_grad()
def layer_weights(snapshot: Snapshot, layer: str) -> Float[Tensor, "m d"]:
    """The weights of each neuron of a layer: one row per channel of a convolution or dense layer.

    Args:
        snapshot: a network, or weights by name.
        layer: the layer's name, as `named_modules` gives it.

    Example:
        from advlab.measure.correlations import layer_weights
        layer_weights(model, "layers.0").shape  # (64, 3 * 11 * 11)
    """
    named = snapshot.state_dict() if isinstance(snapshot, nn.Module) else snapshot
    weight = named.get(f"{layer}.weight" if layer else "weight")
    if weight is None or weight.ndim < 2:
        known = ", ".join(_layers(named))
        raise AdvlabError("a layer with a weight per neuron", repr(layer), f"there are {known}")
    if isinstance(snapshot, nn.Module):
        module = snapshot.get_submodule(layer)
        if getattr(module, "transposed", False):
            raise AdvlabError("a layer whose rows are neurons", type(module).__name__)
    return weight.detach().flatten(1)


def _layers(named: Mapping[str, Tensor]) -> list[str]:
    """Names of layers with a weight per neuron."""
    ends = [(name.rpartition("."), value) for name, value in named.items()]
    return [start for (start, _, end), value in ends if end == "weight" and value.ndim >= 2]


@torch.no_grad()
def alive(weight: Float[Tensor, "*R m d"], share: float = ALIVE) -> Bool[Tensor, "*R m"]:
    """Neurons longer than a share of the longest; the directions of others mean little.

    Args:
        weight: one row per neuron; axes of replicates may stand in front.
        share: of the longest neuron's length, by default a fifth, a convention of ours.

    Example:
        from advlab.measure.correlations import alive, layer_weights
        alive(layer_weights(model, "fc1")).sum()
    """
    length = weight.norm(dim=-1)
    return length > share * length.amax(-1, keepdim=True)


@torch.no_grad()
def theta(a: Float[Tensor, "*R m d"], b: Float[Tensor, "*R m d"]) -> Float[Tensor, "*R m"]:
    """|<a_i, b_i>| / (|a_i| |b_i|) neuron by neuron; 0 where one of them is zero.

    Args:
        a: one row per neuron; axes of replicates may stand in front.
        b: the same neurons at another time.

    Example:
        from advlab.measure.correlations import layer_weights, theta
        theta(layer_weights(start, "fc1"), layer_weights(model, "fc1")).mean()
    """
    return (unit(a) * unit(b)).sum(-1).abs()


@torch.no_grad()
def unit(weight: Float[Tensor, "*R m d"]) -> Float[Tensor, "*R m d"]:
    """Each neuron over its length; zero stays zero."""
    length = weight.norm(dim=-1, keepdim=True)
    return torch.where(length > 0, weight / length, 0.0)


@torch.no_grad()
def absolute_cosines(a: Float[Tensor, "m d"], b: Float[Tensor, "n d"]) -> Float[Tensor, "m n"]:
    """theta(a_i, b_j) of all pairs; 0 where one of them is zero.

    Args:
        a: one row per neuron.
        b: one row per neuron of the same inputs.

    Example:
        from advlab.measure.correlations import absolute_cosines
        absolute_cosines(w, w).fill_diagonal_(0).amax(1)  # the most similar other neuron
    """
    return (unit(a) @ unit(b).mT).abs()


@dataclass(frozen=True)
class NeuronCorrelations:
    """What became of each neuron of one layer between two snapshots, on the CPU."""

    theta: Float[Tensor, " m"]
    """theta(before_i, after_i)."""
    alive: Bool[Tensor, " m"]
    """Neurons that are alive before or after."""
    nearest: Int[Tensor, " m"]
    """The neuron of before that neuron i of after is most like: i, if it kept its identity."""
    others: Float[Tensor, " m"]
    """The mean of theta(before_j, after_i) over j != i: what unrelated neurons have."""

    @property
    def mean(self) -> float:
        """The mean theta of neurons alive."""
        return float(self.theta[self.alive].mean())

    @property
    def identity(self) -> float:
        """The share of neurons alive that are most like themselves (Figure 8)."""
        same = self.nearest == torch.arange(len(self.nearest))
        return float(same[self.alive].double().mean())

    def share_above(self, threshold: float = 0.8) -> float:
        """The share of neurons alive with theta above a threshold."""
        return float((self.theta[self.alive] > threshold).double().mean())

    def share_below(self, threshold: float = 0.2) -> float:
        """The share of neurons alive with theta below a threshold."""
        return float((self.theta[self.alive] < threshold).double().mean())


@torch.no_grad()
def neuron_correlations(
    before: Snapshot, after: Snapshot, layer: str, *, share: float = ALIVE
) -> NeuronCorrelations:
    """theta of each neuron of a layer between two snapshots of one network.

    Args:
        before: a network or its weights by name, earlier.
        after: the same network, later.
        layer: the layer's name.
        share: a neuron is alive if longer than this share of the longest.

    Example:
        from advlab.measure.correlations import neuron_correlations
        moved = neuron_correlations(clean, robust, "layers.0")
        control = neuron_correlations(clean, longer_clean, "layers.0")
        moved.mean, control.mean
    """
    # On the CPU: snapshots of one network may be in different places.
    a, b = (layer_weights(one, layer).cpu() for one in (before, after))
    if a.shape != b.shape:
        raise AdvlabError("snapshots of one layer", f"{tuple(a.shape)} and {tuple(b.shape)}")
    own, nearest, totals = theta(a, b), [], []
    for some in b.split(ROWS):
        block = absolute_cosines(some, a)
        nearest.append(block.argmax(1))
        totals.append(block.sum(1))
    others = (torch.cat(totals) - own) / max(len(a) - 1, 1)
    keep = alive(a, share) | alive(b, share)
    return NeuronCorrelations(own, keep, torch.cat(nearest), others)


@dataclass(frozen=True)
class PairCorrelations:
    """theta(w_i, w_j) over the pairs i != j of neurons alive in one layer."""

    mean: float
    below: float
    """The share of pairs below the threshold."""
    alive: int
    """How many neurons there are pairs of."""


@torch.no_grad()
def pair_correlations(
    snapshot: Snapshot, layer: str, *, threshold: float = 0.2, share: float = ALIVE
) -> PairCorrelations:
    """How alike the neurons of one layer are to each other.

    Args:
        snapshot: a network, or its weights by name.
        layer: the layer's name.
        threshold: of the share below.
        share: a neuron is alive if longer than this share of the longest.

    Example:
        from advlab.measure.correlations import pair_correlations
        pair_correlations(model, "layers.0").below  # of the paper: most pairs are below 0.2
    """
    w = layer_weights(snapshot, layer).cpu()
    w = w[alive(w, share)]
    if len(w) < 2:
        return PairCorrelations(float("nan"), float("nan"), len(w))
    total, below = 0.0, 0
    for first in range(0, len(w), ROWS):
        block = absolute_cosines(w[first : first + ROWS], w)
        rows = torch.arange(len(block))
        block[rows, first + rows] = torch.nan
        total += float(block.nansum())
        below += int((block < threshold).sum())
    count = len(w) * (len(w) - 1)
    return PairCorrelations(total / count, below / count, len(w))


def stage_correlations(
    stages: Mapping[str, Snapshot], layers: Sequence[str], *, share: float = ALIVE
) -> list[dict[str, Any]]:
    """Figure 2 as a table: theta between every two stages of a training, layer by layer.

    Args:
        stages: snapshots by name, in the order of training, such as start, clean, robust and
            control (as many more steps without an attack).
        layers: names of layers.
        share: a neuron is alive if longer than this share of the longest.

    Returns:
        One row per layer and pair of stages: mean, share above 0.8 and below 0.2, identity, the
        mean theta of unrelated neurons (`others`), and how many neurons are alive.

    Example:
        import polars
        from advlab.measure.correlations import stage_correlations
        rows = stage_correlations({"start": w0, "clean": w, "robust": w1, "control": w2}, ["conv1"])
        polars.DataFrame(rows)
    """
    names, rows = list(stages), []
    for layer in layers:
        for k, after in enumerate(names):
            for before in names[:k]:
                one = neuron_correlations(stages[before], stages[after], layer, share=share)
                rows.append({
                    "layer": layer, "before": before, "after": after, "mean": one.mean,
                    "above": one.share_above(), "below": one.share_below(),
                    "identity": one.identity, "others": float(one.others[one.alive].mean()),
                    "alive": int(one.alive.sum()),
                })  # fmt: skip
    return rows
