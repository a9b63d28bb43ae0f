"""Growth of signal and noise along clean training: both sides of Lemmas C.8-C.11 and C.14-C.17.

The lemmas bound E[y l' 1[<w_i, x> + rho_i >= b] z_j] and the same with <xi, M_j> for z_j: what one
step adds to <w_i, M_j>, over eta. In phase I, while the loss is near log 2, l' is left out; in
phase II it counts, and right sides have more terms. The right sides of C.11 and C.17 need noise
outside and inside: inputs have sx = 0.5 and neurons sigma_rho = 0.1 b. Gamma_t is that of Lemma
C.7, measured at the step with its event at b/10: the largest over neurons of
Pr[|<w_i, x>| >= b/10] (0.32 at least, which is Pr[|rho_i| >= b/10]). beta is 1/sqrt(k), and all
open constants are 1.

Which pairs (i, j) stand for a lemma: C.8 and C.14 are about the sure ones, S_sure(t), and the mean
is taken, with the sign of w*_j (Theta of 1/d; C.14's second term, O(L_j/d + ...), is left out);
C.9 and C.15 are about all, C.10 and C.16 about those not in S_pot(t), and the pair with the largest
left over right is taken (a Monte Carlo mean over 10,000 points, so slightly too large); C.11 and
C.17 are about all, and summed over j with weights |<w_i, M_j>|/|w_i|, as single ones are below the
Monte Carlo error; the neuron alive with the largest left over right is taken. The second half of
Lemma E.2, <w_i, M w*> >= -O(k^3 sx^2/(lambda d^2)), is measured here too, as its right side is 0
without noise outside: the neuron that is furthest below 0.
"""

from collections.abc import Iterator, Sequence
from math import log, sqrt

import polars as pl
import torch
from torch import Tensor

from .....training import Hook, Run, StepInfo
from ... import measures
from .lemma_sides import lipschitz
from .presets import Preset, SparseProblem

SX, RHO = 0.5, 0.1
POINTS, FEWER = 10_000, 40
"""Inputs over which rates are means, and those at which L_j is measured."""
PHASE_ONE, PHASE_TWO = (0.0, 0.01, 0.02), (0.1, 0.5, 1.0)
"""Shares of clean training at which each phase is measured; the loss leaves log 2 near 0.02."""
SIGNAL, MAXIMUM, OTHER, NOISE = "signal", "maximum", "non-signal", "noise"
OPPOSED = "opposed"
LEMMAS = {
    "C.8": (SIGNAL, 1), "C.9": (MAXIMUM, 1), "C.10": (OTHER, 1), "C.11": (NOISE, 1),
    "C.14": (SIGNAL, 2), "C.15": (MAXIMUM, 2), "C.16": (OTHER, 2), "C.17": (NOISE, 2),
    "E.2/each": (OPPOSED, 2),
}  # fmt: skip
"""What grows, and the phase."""


def noise_inside(preset: Preset) -> Preset:
    """The preset with noise inside the network."""
    return preset.model_copy(update={"bias": preset.bias.model_copy(update={"noise": RHO})})


def noisy(preset: Preset) -> Preset:
    """The preset with noise outside and inside."""
    law = preset.data.model_copy(update={"sx": SX})
    return noise_inside(preset).model_copy(update={"data": law})


def growth(preset: Preset, seeds: Sequence[int], stream: str, points: int) -> pl.DataFrame:
    """Rows (seed, lemma, step, share of clean training, left, right, constant).

    Args:
        preset: the setting; noise is added to it.
        seeds: the replicates.
        stream: the name of the random streams.
        points: inputs that no training sees, over which the rates are means.
    """
    problem = SparseProblem.draw(noisy(preset), seeds, stream, points)
    seen = RatesLog(problem)
    problem.train_clean(problem.networks(), seen)
    return pl.concat(seen.rows)


class RatesLog(Hook):
    """A hook of `fit` that measures the rates at the steps of both phases."""

    def __init__(self, problem: SparseProblem):
        self.problem = problem
        steps = problem.preset.clean.steps
        self.due = [{round(share * steps) for share in shares} for shares in (PHASE_ONE, PHASE_TWO)]
        self.rows: list[pl.DataFrame] = []

    @torch.no_grad()
    def after_gradient(self, run: Run, info: StepInfo) -> None:
        for phase, due in enumerate(self.due, 1):
            if run.step not in due:
                continue
            nets = measures.Nets.of(run.model)
            steps = self.problem.preset.clean.steps
            for lemma, left, right in sides(self.problem, nets, phase):
                row = {"seed": list(self.problem.seeds), "lemma": lemma, "step": run.step,
                       "share": run.step / steps}  # fmt: skip
                values = {"left": left, "right": right, "constant": left / right}
                numbers = {name: value.double().numpy() for name, value in values.items()}
                self.rows.append(pl.DataFrame(row | numbers))


def sides(
    problem: SparseProblem, nets: measures.Nets, phase: int
) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Each lemma of a phase with its left and right, one number per replicate.

    Args:
        problem: the data, with noise.
        nets: the networks at this step, with noise inside.
        phase: 1 or 2.
    """
    x, y, z, M, w = problem.test_x, problem.test_y, problem.test_z, problem.M, problem.w
    law, b, rho = problem.preset.data, float(nets.bias[0]), float(nets.sigma[0])
    d, k = law.d, law.k
    gamma = measures.gamma(nets, x).to(nets.weight)
    A = measures.coordinates(nets.weight, M)
    rules = measures.TicketRules.of(d, nets.weight.shape[-2])
    sure = measures.sure(A, w, rules, rules.scale(b))
    pot = measures.potential(A, rules, rules.scale(b))
    slope = measures.loss_slope(nets, x, y) if phase == 2 else None
    rates = measures.growth_rates(nets, x, y, z, M, slope)
    L = lipschitz(problem, nets, FEWER)[..., None, :] if phase == 2 else torch.zeros(1)
    inside = sqrt(k) * rho * log(d) / d if phase == 2 else 0.0
    more = inside + (k / d**1.5 if phase == 2 else 0.0)
    size, length = rates.signal.abs(), nets.weight.norm(dim=-1)
    signed = rates.signal * torch.where(w >= 0, 1.0, -1.0)[..., None, :]
    own = (rates.noise * A).sum(-1).abs() / length
    bound = gamma[..., None] * law.sx**2 / d * (A**2 / rho + L * A.abs()).sum(-1) / length
    every = torch.ones_like(pot)
    pairs = {
        MAXIMUM: (size, (1 + L) / d + more, every),
        OTHER: (size, gamma[..., None, None] * ((log(d) + L) / d + inside), ~pot),
        NOISE: (own, bound, measures.alive(nets.weight)),
    }
    below = -measures.label_parts(nets.weight, problem.direction).amin(-1)
    penalty = problem.preset.clean.penalty
    for lemma, (grows, its) in LEMMAS.items():
        if its != phase:
            continue
        if grows == OPPOSED:
            yield lemma, below.clamp(min=0.0), right_of(below, k**3 * law.sx**2 / (penalty * d**2))
        elif grows == SIGNAL:
            mean = torch.where(sure, signed, 0.0).sum((-2, -1)) / sure.sum((-2, -1))
            yield lemma, mean, right_of(mean, 1 / d)
        else:
            yield lemma, *worst(*pairs[grows])


def right_of(left: Tensor, value: float) -> Tensor:
    """A right side that is the same for all replicates."""
    return torch.full_like(left, value)


def worst(left: Tensor, right: Tensor, keep: Tensor) -> tuple[Tensor, Tensor]:
    """Left and right where left over right is largest, among those kept of each replicate."""
    right = right.expand_as(left) if isinstance(right, Tensor) else torch.full_like(left, right)
    ratio = (left / right).masked_fill(~keep, -1.0).flatten(1)
    at = ratio.argmax(1, keepdim=True)
    return left.flatten(1).gather(1, at)[:, 0], right.flatten(1).gather(1, at)[:, 0]
