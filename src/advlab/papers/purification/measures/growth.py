"""The growth identity: clean training pushes every neuron along M w* (section 6.2).

With l' = sigmoid(-y f) and gates G_i, at every point -<grad_{w_i} Loss, M w*> = y l' G_i <x, M w*>.
Where M is orthogonal and xi = 0, <x, M w*> = <z, w*> and y <z, w*> = |<w*, z>|: then it equals
l' G_i |<w*, z>|, which is never negative. Noise adds y l' G_i <xi, M w*>, an attack the same with
delta, and a dictionary that is not orthogonal <(M'M - I) z, w*>: the two sides then differ.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from ....core.errors import AdvlabError
from ....training import Hook, Run, StepInfo
from .correlations import alive
from .dense_mixture import label_direction, label_parts
from .networks import Nets


@dataclass(frozen=True)
class Growth:
    """Both sides of the identity, one number per neuron."""

    measured: Float[Tensor, "*R m"]
    """-<grad_{w_i} Loss, M w*>"""
    predicted: Float[Tensor, "*R m"]
    """E[l' G_i |<w*, z>|]"""


@torch.no_grad()
def loss_slope(nets: Nets, x: Float[Tensor, "*R n d"], y: Float[Tensor, "*R n"]) -> Tensor:
    """l' = sigmoid(-y f(x)) for each example."""
    return torch.sigmoid(-y * nets.value(x))


@torch.no_grad()
def growth_identity(
    nets: Nets,
    x: Float[Tensor, "*R n d"],
    y: Float[Tensor, "*R n"],
    z: Float[Tensor, "*R n D"],
    M: Float[Tensor, "*R d D"],
    w: Float[Tensor, "*R D"],
) -> Growth:
    """Both sides on a sample; equal up to rounding for orthogonal M and clean noiseless x.

    Args:
        nets: the networks.
        x: inputs M z.
        y: labels in {-1, 1}.
        z: hidden vectors.
        M: the dictionary.
        w: w*.
    """
    u = nets.inner(x)
    pull = nets.gates(u) * torch.sigmoid(-y * nets.units(u).sum(-1))[..., None]
    along = y * (x @ label_direction(M, w)[..., None])[..., 0]
    score = (z @ w[..., None])[..., 0].abs()
    return Growth((pull * along[..., None]).mean(-2), (pull * score[..., None]).mean(-2))


class GrowthLog(Hook):
    """A hook of `training.fit`: -<grad_{w_i}, M w*> at every step that moves the weights.

    `direction` is M w*, one per replicate for a stack. Given before `Penalize`, it sees the
    gradient of the objective without its penalty.
    """

    def __init__(self, direction: Float[Tensor, "*R d"]):
        self.direction = direction
        self._shares: list[Tensor] = []
        self._least: list[Tensor] = []
        self._total: Tensor | None = None

    @torch.no_grad()
    def after_gradient(self, run: Run, info: StepInfo) -> None:
        if info.last:
            return
        weight, (grad,) = run.model.get_parameter("weight"), info.grads
        if weight.shape[:-2] != self.direction.shape[:-1]:
            raise AdvlabError(
                f"one direction for each network of weights {tuple(weight.shape)}",
                f"directions of shape {tuple(self.direction.shape)}",
            )
        value = label_parts(-grad, self.direction)
        keep = alive(weight)
        self._shares.append((keep & (value > 0)).sum(-1) / keep.sum(-1).to(value))
        self._least.append(value.amin(-1) / value.abs().amax(-1).clamp(min=1e-30))
        self._total = value if self._total is None else self._total + value

    def state_dict(self) -> dict:
        shares = torch.stack(self._shares) if self._shares else None
        least = torch.stack(self._least) if self._least else None
        return {"shares": shares, "least": least, "total": self._total}

    def load_state_dict(self, state: dict) -> None:
        self._shares = [] if state["shares"] is None else list(state["shares"])
        self._least = [] if state["least"] is None else list(state["least"])
        self._total = state["total"]

    @property
    def positive(self) -> Float[Tensor, "steps *R"]:
        """The share of the neurons alive that were pushed along M w* in each step."""
        return torch.stack(self._shares)

    @property
    def every(self) -> Bool[Tensor, "steps *R"]:
        """The steps in which all neurons alive were."""
        return self.positive == 1

    @property
    def least(self) -> Float[Tensor, "*R"]:
        """The least push of any neuron in any step, over the largest of its step; 0 or more, but
        for rounding, where the identity holds."""
        return torch.stack(self._least).amin(0)

    @property
    def total(self) -> Float[Tensor, "*R m"]:
        """The sum over the steps, for each neuron."""
        if self._total is None:
            raise AdvlabError("a run of at least one step", "none", "give the log as hooks=[log]")
        return self._total
