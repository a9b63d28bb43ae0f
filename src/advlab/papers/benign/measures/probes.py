"""All measures of a run at once, as probes for `training.fit`; one attack per step serves them."""

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from jaxtyping import Float
from torch import Tensor, nn

from ....attacks import Attack
from ....core.randomness import Rng, generator
from ....models import Stack
from ....threats import Threat
from ....training import ProbeFunction
from ..data import Clusters
from . import (
    activations,
    decomposition,
    fresh_points,
    growth,
    loss_gradients,
    span,
    standard_training,
    steps,
)
from .snapshot import Networks, Snapshot, stacked

Measure = Callable[[Snapshot], Tensor]
"""One number per replicate, or several."""

FEW = 200
"""Fresh points on which single steps are taken apart."""
SAMPLED = 20
"""Random points of each ball that are watched besides the attacked one."""


@dataclass
class SnapshotCache:
    """Takes the snapshot of a model's weights, once however many ask."""

    data: Clusters
    mu: Tensor
    ball: Threat
    attack: Attack
    rng: Rng
    last: Snapshot | None = field(default=None, init=False)

    def __call__(self, model: nn.Module) -> Snapshot:
        weight = Networks.of(model).weight
        if self.last is None or not torch.equal(self.last.net.weight, weight):
            self.last = Snapshot.take(model, self.data, self.mu, self.ball, self.attack, self.rng)
        return self.last


def probes(
    data: Clusters,
    mu: Float[Tensor, " d"] | Float[Tensor, "R d"],
    *,
    ball: Threat,
    attack: Attack,
    eta: float,
    d: int,
    kappa: float = 1.0,
    test: Clusters | None = None,
    rng: Rng | None = None,
) -> dict[str, ProbeFunction]:
    """The measures of a model that trains on `data`, by name.

    Args:
        data: the training examples; their coordinates may be those of any subspace that holds the
            data, the start and mu.
        mu: the centre of the cluster y_c = 1 in these coordinates, one or one per replicate.
        ball, attack: what finds the attacked inputs.
        eta: the step size of the run.
        d: the true dimension.
        kappa: that of the cluster law.
        test: fresh points, for "normalised margin", "aligned", "secant error", "fresh slack" and
            "decomposition" (the means of B1 to B4); without them these are left out.
        rng: with one generator per replicate the random points of a replicate do not depend on the
            others.

    Returns:
        Probes for `fit`. `norm_growth` and `averaged_bound` follow from "G_rob" and "norm" at every
        step.
    """
    rng = generator("mixture probes") if rng is None else rng
    snapshot = SnapshotCache(data, mu, ball, attack, rng)
    every = _training(eta, d, kappa) | _balls(stacked(data), ball, eta, rng)
    if test is not None:
        every |= _fresh(stacked(test), eta)

    def probe(measure: Measure) -> ProbeFunction:
        def seen(model: nn.Module) -> Tensor:
            found = measure(snapshot(model)).to(data.x)
            return found if isinstance(model, Stack) else found[0]

        return seen

    return {name: probe(measure) for name, measure in every.items()}


def _training(eta: float, d: int, kappa: float) -> dict[str, Measure]:
    def least_slack(now: Snapshot) -> Tensor:
        low, middle, high = loss_gradients.gradient_bounds(now, d, kappa)
        return torch.minimum(middle - low, high - middle)

    def signal(now: Snapshot, among: Tensor, largest: bool) -> Tensor:
        products = span.signal_products(now)
        empty = -torch.inf if largest else torch.inf
        products = torch.where(among, products, empty)
        return products.amax(1) if largest else products.amin(1)

    return {
        "L_rob": lambda now: now.L_rob,
        "G_rob": lambda now: now.G_rob,
        "norm": lambda now: growth.weight_norm(now.net),
        "loss ratio": loss_gradients.loss_ratio,
        "training error": loss_gradients.robust_training_error,
        "noisy training error": loss_gradients.noisy_training_error,
        "sandwich": least_slack,
        "alignment": loss_gradients.gradient_alignment,
        "gradient": lambda now: loss_gradients.gradient_size(now, d),
        "span distance": lambda now: span.span_distance(now).amax(1),
        "attack cosine": lambda now: span.perturbation_alignment(now).amin(1),
        "clean signal low": lambda now: signal(now, now.data.clean, False),
        "clean signal high": lambda now: signal(now, now.data.clean, True),
        "noisy signal low": lambda now: signal(now, now.data.noisy, False),
        "noisy signal high": lambda now: signal(now, now.data.noisy, True),
        "move": lambda now: growth.relative_move(now, eta),
        "active of examples": lambda now: activations.active_shares(now).per_neuron.amin(1),
        "active of neurons": lambda now: activations.active_shares(now).per_example.amin(1),
        "lost pairs": lambda now: activations.lost_pairs(now, eta),
        "activation gain": lambda now: activations.activation_gain(now, eta),
        "scaled step low": lambda now: steps.scaled_margin_steps(now, eta, d).amin(1),
        "scaled step high": lambda now: steps.scaled_margin_steps(now, eta, d).amax(1),
        "gradient gap": standard_training.gradient_gap,
    }


def _balls(data: Clusters, ball: Threat, eta: float, rng: Rng) -> dict[str, Measure]:
    """Margin steps at points of each ball that stay the same for the whole run."""
    centres = data.x[:, None].expand(-1, SAMPLED, -1, -1)
    flat = centres.flatten(0, 2)
    moves = (ball.sample(flat, rng=rng) - flat).reshape(centres.shape)
    return {
        "relative step": lambda now: steps.relative_margin_steps(now, eta, moves).amin((1, 2)),
    }


def _fresh(test: Clusters, eta: float) -> dict[str, Measure]:
    few = Clusters(*(part[:, :FEW] for part in test))

    def secant_error(now: Snapshot) -> Tensor:
        step = few.y_clean * (now.after(eta).value(few.x) - now.net.value(few.x))
        gap = steps.secant_step(now, eta, few.x, few.y_clean) - step
        return gap.abs().amax(1) / step.abs().amax(1)

    def slack(now: Snapshot) -> Tensor:
        if now.net.activation.lipschitz is None:
            return torch.full_like(now.G_rob, torch.nan)
        step, linear, curvature = steps.fresh_step(now, eta, few.x, few.y_clean)
        return (step - linear + curvature).amin(1) / step.abs().amax(1)

    def parts(now: Snapshot) -> Tensor:
        found = decomposition.margin_decomposition(now, eta, few)
        return torch.stack([part.mean((1, 2)) for part in found], dim=1)

    return {
        "normalised margin": lambda now: fresh_points.normalised_margin(now.net, test),
        "aligned": lambda now: fresh_points.aligned_share(now.net, test),
        "secant error": secant_error,
        "fresh slack": slack,
        "decomposition": parts,
    }
