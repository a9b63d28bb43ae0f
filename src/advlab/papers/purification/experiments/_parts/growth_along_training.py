"""Growth of signal and noise along clean training: both sides of Lemmas C.8-C.11 and C.14-C.17.

The lemmas bound E[y l' 1[<w_i, x> + rho_i >= b] z_j] and the same with <xi, M_j> for z_j: what one
step adds to <w_i, M_j>, over eta. In phase I, while the loss is near log 2, l' is left out; in
phase II it counts, and right sides have more terms. The right sides of C.11 and C.17 need noise
outside and inside: inputs have sx = 0.5 and neurons sigma_rho = 0.1 b. Gamma_t is that of Lemma
C.7, measured at the step with its event at b/10: the largest over neurons of
Pr[|<w_i, x>| >= b/10] (0.32 at least, which is Pr[|rho_i| >= b/10]); the lemma itself, that it is
O(k/d), is judged at the end of phase I. beta is 1/sqrt(k), and all open constants are 1.

Which pairs (i, j) stand for a lemma: C.8 and C.14 are about the sure ones, S_sure(t), and the mean
is taken, with the sign of w*_j. C.8 says Theta(1/d); C.14 says Theta(1/d) +- O(e) with
e = L_j/d + sqrt(k) sigma_rho log d/d + k/d^1.5, and its constant is the least C with
1/(C d) - C e <= left <= C (1/d + e): where e is above 1/d the band holds 0, and a network that does
not grow is inside. C.9 and C.15 are about all, C.10 and C.16 about those not in S_pot(t), and the
pair with the largest left over right is taken (a Monte Carlo mean over 10,000 points, so slightly
too large); C.11 and C.17 (a) are about all, and summed over j with weights |<w_i, M_j>|/|w_i|, as
single ones are below the Monte Carlo error; C.17 (b) is the sum over j of the sizes, at most
O(k^3 sx^2/d^2), of which Monte Carlo errors add some; the neuron alive with the largest left over
right is taken. The second half of Lemma E.2, <w_i, M w*> >= -O(k^3 sx^2/(lambda d^2)), is measured
here too, as its right side is 0 without noise outside: the neuron that is furthest below 0.

Each row has the shares of neurons and pairs that fulfil the hypotheses of the lemmas at its step,
and, where a bound may say nothing, "speaks", the constant from which on nothing breaks it: for E.2
the largest |w_i| |M w*|, which no neuron can exceed, over the bound; for C.14, whose band holds 0
from C^2 = 1/(d e) on, its root.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np
import polars as pl
import torch
from torch import Tensor

from .....training import Hook, Run, StepInfo
from ... import measures
from .lemma_sides import Stages, hypotheses, lipschitz
from .presets import Preset, SparseProblem
from .two_phase_runs import frozen

SX, RHO = 0.5, 0.1
POINTS, FEWER = 10_000, 40
"""Inputs over which rates are means, and those at which L_j is measured."""
PHASE_ONE, PHASE_TWO = (0.0, 0.01, 0.02), (0.1, 0.5, 1.0)
"""Shares of clean training at which each phase is measured; the loss leaves log 2 near 0.02."""
SIGNAL, MAXIMUM, OTHER, NOISE = "signal", "maximum", "non-signal", "noise"
TOTAL, OPPOSED, ACTIVE = "noise, sum over atoms", "opposed", "activity"
LEMMAS = {
    "C.7/I": (ACTIVE, 1),
    "C.8": (SIGNAL, 1), "C.9": (MAXIMUM, 1), "C.10": (OTHER, 1), "C.11": (NOISE, 1),
    "C.14": (SIGNAL, 2), "C.15": (MAXIMUM, 2), "C.16": (OTHER, 2), "C.17": (NOISE, 2),
    "C.17b": (TOTAL, 2), "E.2/each": (OPPOSED, 2),
}  # fmt: skip
"""What grows, and the phase."""
SHARES = ("ept", "ept+", "ept++", "pot+ within pot")
"""The hypotheses of the growth lemmas, as shares that fulfil them."""


@dataclass(frozen=True)
class Sides:
    """Left and right of a lemma, and the constant that it needs: one number per replicate.

    `speaks` is the constant from which on nothing breaks the bound, where that may be small.
    """

    left: Tensor
    right: Tensor
    constant: Tensor
    speaks: Tensor | None = None

    @classmethod
    def of(cls, left: Tensor, right: Tensor | float, speaks: Tensor | None = None) -> "Sides":
        """With their ratio as the constant."""
        right = torch.as_tensor(right).to(left).expand_as(left)
        return cls(left, right, left / right, speaks)

    def columns(self) -> dict[str, np.ndarray]:
        """As columns of a table."""
        found = {"left": self.left, "right": self.right, "constant": self.constant}
        found |= {} if self.speaks is None else {"speaks": self.speaks}
        return {name: value.double().numpy() for name, value in found.items()}


def noise_inside(preset: Preset) -> Preset:
    """The preset with noise inside the network."""
    return preset.model_copy(update={"bias": preset.bias.model_copy(update={"noise": RHO})})


def noisy(preset: Preset) -> Preset:
    """The preset with noise outside and inside."""
    law = preset.data.model_copy(update={"sx": SX})
    return noise_inside(preset).model_copy(update={"data": law})


def growth(preset: Preset, seeds: Sequence[int], stream: str, points: int) -> pl.DataFrame:
    """Rows (seed, lemma, step, share of clean training, left, right, constant, speaks), and the
    shares of the hypotheses.

    Args:
        preset: the setting; noise is added to it.
        seeds: the replicates.
        stream: the name of the random streams.
        points: inputs that no training sees, over which the rates are means.
    """
    problem = SparseProblem.draw(noisy(preset), seeds, stream, points)
    nets = problem.networks()
    seen = RatesLog(problem, frozen(nets))
    problem.train_clean(nets, seen)
    return pl.concat(seen.rows, how="diagonal")


class RatesLog(Hook):
    """A hook of `fit` that measures the rates at the steps of both phases."""

    def __init__(self, problem: SparseProblem, start: measures.Nets):
        self.problem, self.stages = problem, Stages(problem, start, start, 0.0)
        steps = problem.preset.clean.steps
        self.due = [{round(share * steps) for share in shares} for shares in (PHASE_ONE, PHASE_TWO)]
        self.rows: list[pl.DataFrame] = []

    @torch.no_grad()
    def after_gradient(self, run: Run, info: StepInfo) -> None:
        for phase, due in enumerate(self.due, 1):
            if run.step not in due:
                continue
            nets = measures.Nets.of(run.model)
            fulfilled = hypotheses(self.stages, nets, at_start=run.step == 0)
            row = {"seed": list(self.problem.seeds), "step": run.step,
                   "share": run.step / self.problem.preset.clean.steps,
                   **{name: fulfilled[name].double().numpy() for name in SHARES}}  # fmt: skip
            for lemma, found in sides(self.problem, nets, phase):
                # Lemma C.7 has O(k/d) in phase I.2 only: at the end of phase I.
                if LEMMAS[lemma][0] != ACTIVE or run.step == max(due):
                    self.rows.append(pl.DataFrame(row | {"lemma": lemma} | found.columns()))


def sides(problem: SparseProblem, nets: measures.Nets, phase: int) -> Iterator[tuple[str, Sides]]:
    """Each lemma of a phase with both its sides.

    Args:
        problem: the data, with noise.
        nets: the networks at this step, with noise inside.
        phase: 1 or 2.
    """
    x, y, z, M = problem.test_x, problem.test_y, problem.test_z, problem.M
    law, rho = problem.preset.data, float(nets.sigma[0])
    d, k = law.d, law.k
    gamma = measures.gamma(nets, x).to(nets.weight)
    A = measures.coordinates(nets.weight, M)
    rules = measures.TicketRules.of(d, nets.weight.shape[-2])
    pot = measures.potential(A, rules, rules.scale(float(nets.bias[0])))
    slope = measures.loss_slope(nets, x, y) if phase == 2 else None
    rates = measures.growth_rates(nets, x, y, z, M, slope)
    L = lipschitz(problem, nets, FEWER)[..., None, :] if phase == 2 else torch.zeros(1)
    inside = sqrt(k) * rho * log(d) / d if phase == 2 else 0.0
    more = inside + (k / d**1.5 if phase == 2 else 0.0)
    size, length = rates.signal.abs(), nets.weight.norm(dim=-1)
    own = (rates.noise * A).sum(-1).abs() / length
    bound = gamma[..., None] * law.sx**2 / d * (A**2 / rho + L * A.abs()).sum(-1) / length
    every, alive = torch.ones_like(pot), measures.alive(nets.weight)
    pairs = {
        MAXIMUM: (size, (1 + L) / d + more, every),
        OTHER: (size, gamma[..., None, None] * ((log(d) + L) / d + inside), ~pot),
        NOISE: (own, bound, alive),
        TOTAL: (rates.noise.abs().sum(-1), k**3 * law.sx**2 / d**2, alive),
    }
    for lemma, (grows, its) in LEMMAS.items():
        if its != phase:
            continue
        if grows == ACTIVE:
            yield lemma, Sides.of(gamma, k / d)
        elif grows == OPPOSED:
            yield lemma, opposed(problem, nets)
        elif grows == SIGNAL:
            yield lemma, signal(problem, nets, rates.signal, L / d + more)
        else:
            yield lemma, Sides.of(*worst(*pairs[grows]))


def opposed(problem: SparseProblem, nets: measures.Nets) -> Sides:
    """The second half of Lemma E.2: how far the lowest neuron is below 0 along M w*."""
    law, penalty = problem.preset.data, problem.preset.clean.penalty
    below = -measures.label_parts(nets.weight, problem.direction).amin(-1)
    right = law.k**3 * law.sx**2 / (penalty * law.d**2)
    most = nets.weight.norm(dim=-1).amax(-1) * problem.direction.norm(dim=-1)
    return Sides.of(below.clamp(min=0.0), right, most / right)


def signal(problem: SparseProblem, nets: measures.Nets, rates: Tensor, slack: Tensor) -> Sides:
    """Lemmas C.8 and C.14: the mean over the sure pairs, with the sign of w*_j.

    Args:
        problem: the data.
        nets: the networks at this step.
        rates: of each pair.
        slack: what is allowed beside Theta(1/d), of each atom; 0 in C.8.
    """
    d, w = problem.preset.data.d, problem.w
    A = measures.coordinates(nets.weight, problem.M)
    rules = measures.TicketRules.of(d, nets.weight.shape[-2])
    sure = measures.sure(A, w, rules, rules.scale(float(nets.bias[0])))

    def mean(values: Tensor) -> Tensor:
        return torch.where(sure, values, 0.0).sum((-2, -1)) / sure.sum((-2, -1))

    left = mean(rates * torch.where(w >= 0, 1.0, -1.0)[..., None, :])
    e = mean(slack.expand_as(A))
    if not bool((e > 0).any()):
        return Sides.of(left, 1 / d)
    return Sides(left, 1 / d + e, band_constant(left, 1 / d, e), (d * e) ** -0.5)


def band_constant(left: Tensor, main: float, slack: Tensor) -> Tensor:
    """The least C with main/C - C slack <= left <= C (main + slack), for slack above 0."""
    upper = left / (main + slack)
    lower = ((left**2 + 4 * slack * main).sqrt() - left) / (2 * slack)
    return torch.maximum(upper, lower)


def worst(left: Tensor, right: Tensor | float, keep: Tensor) -> tuple[Tensor, Tensor]:
    """Left and right where left over right is largest, among those kept of each replicate."""
    right = right.expand_as(left) if isinstance(right, Tensor) else torch.full_like(left, right)
    ratio = (left / right).masked_fill(~keep, -1.0).flatten(1)
    at = ratio.argmax(1, keepdim=True)
    return left.flatten(1).gather(1, at)[:, 0], right.flatten(1).gather(1, at)[:, 0]
