"""Left and right of the lemmas of appendices C, E and F at one network, open constants 1.

Own atoms of a neuron are those of S_j,pot at the start (Proposition F.8), g_i its part along them
after clean training, v_i what else it is (Definition F.9).
"""

from dataclasses import dataclass
from math import inf, log, sqrt

import torch
from torch import Tensor

from .....core.randomness import generators, normal
from ... import measures
from .clean_then_adversarial_runs import CRAFT, linearity
from .presets import PAPER_FGM, SparseProblem

POINTS, LEVELS = 60, (0.25, 0.5, 1.0)
"""Inputs, and sizes of z_j, at which L_j is measured."""
Sides = dict[str, tuple[Tensor, Tensor | float]]


@dataclass(frozen=True)
class Stages:
    """A problem, its networks at the start and after clean training, and the time since then.

    `trained` is T eta, the steps of adversarial training times its rate.
    """

    problem: SparseProblem
    start: measures.Nets
    clean: measures.Nets
    trained: float

    @property
    def rules(self) -> measures.TicketRules:
        """The constants of the ticket sets."""
        return measures.TicketRules.of(self.problem.preset.data.d, self.problem.preset.width)

    @property
    def first(self) -> Tensor:
        """The coordinates of the neurons at the start."""
        return measures.coordinates(self.start.weight, self.problem.M)

    @property
    def own(self) -> Tensor:
        """S_i, the own atoms of each neuron: i in S_j,pot(0)."""
        return measures.potential(self.first, self.rules, self.problem.preset.sigma0)

    @property
    def kept(self) -> Tensor:
        """The coordinates of g_i."""
        A = measures.coordinates(self.clean.weight, self.problem.M)
        return torch.where(self.own, A, 0.0)


def hypotheses(stages: Stages, nets: measures.Nets, at_start: bool = False) -> dict[str, Tensor]:
    """What lemmas assume and Theorem C.2 states: shares of neurons, and of pairs, that fulfil it.

    Args:
        stages: the networks at the start.
        nets: the networks at the stage.
        at_start: sigma_w is sigma_0 then, and tied to the bias later.
    """
    problem, rules, first = stages.problem, stages.rules, stages.first
    k, b, w = problem.preset.data.k, float(nets.bias.flatten()[0]), problem.w
    sigma0 = problem.preset.sigma0
    sw = sigma0 if at_start else rules.scale(b)
    A, norm = measures.coordinates(nets.weight, problem.M), nets.weight.norm(dim=-1)
    sets = {
        "ept": measures.ordinary(A, norm, rules, sw),
        "ept+": measures.ordinary_plus(A, norm, rules, sw),
        "ept++": measures.ordinary_twice_plus(norm, rules, k, sw),
    }
    pot, plus = measures.potential(A, rules, sw), measures.potential_plus(A, rules, k, b)
    sure, later = measures.sure(first, w, rules, sigma0), measures.sure(A, w, rules, sw)
    largest = measures.sure_plus(A, w, k, b)
    return {name: chosen.double().mean(-1) for name, chosen in sets.items()} | {
        "sure within sure": measures.share_within(sure, later),
        "sure within sure+": measures.share_within(sure, largest),
        "pot+ within pot": measures.share_within(plus, stages.own),
        "pot within pot+": measures.share_within(pot, plus),
        "sure+ per atom": largest.sum((-2, -1)).double() / A.shape[-1],
        "own atoms": stages.own.sum(-1).double().mean(-1),
        "most own atoms": stages.own.sum(-1).double().amax(-1),
        "pot+ per atom": plus.sum(-2).double().mean(-1),
        "most pot+ per atom": plus.sum(-2).double().amax(-1),
    }


def both_sides(stages: Stages, nets: measures.Nets) -> dict[str, Tensor]:
    """Left, right and left over right of every lemma, one number per replicate.

    Args:
        stages: the problem and its earlier networks.
        nets: the networks at the stage.
    """
    steep = lipschitz(stages.problem, nets)
    found = _columns(_appendix_c(stages, nets, steep) | _features(stages, nets))
    return found | robust_sides(stages, nets) | _shares(stages, nets, steep)


def robust_sides(stages: Stages, nets: measures.Nets) -> dict[str, Tensor]:
    """The same of the lemmas about training against an attack, in its norm: F.9, F.11, F.12 and
    F.15 in l2, F.13, F.14 and F.16 in linf; "speaks" is what neurons can reach over the bound on
    the longest v_i: the constant from which on nothing breaks it.

    Args:
        stages: the problem and its earlier networks.
        nets: the networks at the stage.
    """
    found = _columns(_rest(stages, nets) | _coupling(stages, nets))
    return found | {"longest rest speaks": _reach(stages) / found["longest rest right"],
                    "r of u": _r_of_u(stages, nets)}  # fmt: skip


def _reach(stages: Stages) -> Tensor:
    """What |v_i| <= |w_i| + |g_i| can be at most, whatever training does: the norm cap bounds
    |w_i|_2, and so |w_i|_1."""
    preset = stages.problem.preset
    cap = inf if preset.cap is None else preset.cap
    if preset.norm == "l2":
        return cap + _longest(stages.kept, 2)
    return cap * sqrt(preset.data.d) + _longest(stages.kept, 1)


def _r_of_u(stages: Stages, nets: measures.Nets) -> Tensor:
    """The least r with max |<u_i, M_j>| <= r/sqrt(d) and sum |v_i|^2 <= r^2 m (Lemma F.12)."""
    M = stages.problem.M
    u = measures.coordinates(stages.clean.weight, M).masked_fill(stages.own, 0.0)
    v = measures.coordinates(nets.weight, M) - stages.kept
    mean = (v**2).sum(-1).mean(-1).sqrt()
    return torch.maximum(mean, sqrt(u.shape[-1]) * u.abs().amax((-2, -1)))


def _columns(sides: Sides) -> dict[str, Tensor]:
    found = {}
    for name, (left, right) in sides.items():
        right = torch.as_tensor(right).to(left).expand_as(left)
        found |= {f"{name} left": left, f"{name} right": right, name: left / right}
    return found


def _longest(rows: Tensor, order: int) -> Tensor:
    """The largest norm of any row of each replicate."""
    return torch.linalg.vector_norm(rows, ord=order, dim=-1).amax(-1)


def _appendix_c(stages: Stages, nets: measures.Nets, steep: Tensor) -> Sides:
    """Activity, Lipschitz constants, sizes and the loss (C.7, C.19 to C.22)."""
    problem = stages.problem
    x, y, law = problem.test_x, problem.test_y, problem.preset.data
    d, k, A = law.d, law.k, measures.coordinates(nets.weight, problem.M)
    plus = measures.potential_plus(A, stages.rules, k, float(nets.bias.flatten()[0]))
    answering, largest = measures.active(nets, x), steep.amax(-1)
    near = measures.near_probability(nets, x)
    literal = stages.rules.c2 / (10 * stages.rules.c1)
    return {
        "Gamma": (measures.gamma(nets, x), k / d),
        "Gamma, mean": (near.mean(-1), k / d),
        "Gamma at c2 b/(10 c1)": (measures.gamma(nets, x, literal), k / d),
        "near": (answering.near.double().mean(-1), k),
        "open": (answering.open.double().mean(-1), k),
        "Lipschitz": (steep.mean(-1), measures.lipschitz_bound(A, plus, k).mean(-1)),
        "largest L": (largest, 1.0),
        "longest": (nets.weight.norm(dim=-1).amax(-1), 1.0),
        "largest f": (nets.value(x).abs().amax(-1), log(d)),
        "slope": (measures.loss_slope(nets, x, y).mean(-1),
                  (1 / (largest * log(d)) ** 2).clamp(max=1.0)),
    }  # fmt: skip


def _features(stages: Stages, nets: measures.Nets) -> Sides:
    """The common direction, and own atoms against the others (E.2, F.8, F.17)."""
    problem, own = stages.problem, stages.own
    d, k = problem.preset.data.d, problem.preset.data.k
    A, keep = measures.coordinates(nets.weight, problem.M), measures.alive(nets.weight)
    other = A.abs().masked_fill(own, 0.0).amax(-1)
    sure = measures.sure(stages.first, problem.w, stages.rules, problem.preset.sigma0).any(-1)
    parts = measures.label_parts(nets.weight, problem.direction)
    penalty = regulariser(stages.kept) - regulariser(stages.clean.weight)
    return {
        "common": (torch.where(sure, parts, 0.0).sum(-1), k * d),
        "common, all": (parts.sum(-1), k * d),
        "other atom": (other.amax(-1), k / d),
        "other atom, mean": (measures.spread(other, 0.0, keep).mean, k / d),
        "penalty": (penalty.abs(), k * sqrt(d)),
    }


def _rest(stages: Stages, nets: measures.Nets) -> Sides:
    """How far v_i moves: equations (F.12) and (F.15), Lemma F.15 in |v_i|_2, F.16 in |v_i|_1."""
    preset = stages.problem.preset
    d, k = preset.data.d, preset.data.k
    v = measures.coordinates(nets.weight, stages.problem.M) - stages.kept
    mean = (v**2).sum(-1).mean(-1)
    if preset.norm == "l2":
        longest = _longest(v, 2), k / sqrt(d) + stages.trained * sqrt(k) / d
    else:
        longest = _longest(v, 1), float(k)
    return {"rest": (mean, k**2 / d), "longest rest": longest}


def _coupling(stages: Stages, nets: measures.Nets) -> Sides:
    """Lemmas F.11 and F.12 in l2, F.13 and F.14 in linf: the largest gaps over the perturbations
    that were tried."""
    problem, clean = stages.problem, stages.clean
    law, tau, m = problem.preset.data, problem.preset.tau, nets.weight.shape[-2]
    d, k, b, sigma = law.d, law.k, nets.bias, nets.sigma
    v = measures.coordinates(nets.weight, problem.M) - stages.kept
    mean, widest = (v**2).sum(-1).mean(-1).sqrt(), _r_of_u(stages, nets)
    g = stages.kept @ problem.M.mT
    x, rho = problem.test_x, noise(problem, nets)
    before, robust, start = measures.sampled(clean, x, rho), [], []
    for delta in perturbations(problem, nets):
        moved = x + delta
        gap = measures.coupled(nets, nets.weight, moved, x, rho)
        robust.append((gap - measures.sampled(nets, moved, rho)).abs())
        start.append((measures.coupled(nets, g, moved, x, rho) - before).abs())
    rest = m * widest**2 / (d * sigma) + k * widest * log(d) / sqrt(d)
    near = k + widest**2 * m / (d * b**2)
    if problem.preset.norm == "l2":
        spread = 1 + (1 + _longest(v, 2)) ** 2 * mean**2 * m / (d * b**2)
        near = near.sqrt()
    else:
        longest = _longest(v, 1)
        spread = k + (1 + longest) ** 2 * mean**2 * m / (d * b**2) + k * longest**2
    return {
        "coupling": (torch.stack(robust).amax(0).mean(-1), tau**2 / sigma * spread),
        "coupling at 0": (torch.stack(start).amax(0).mean(-1), rest + tau * near),
    }


def _shares(stages: Stages, nets: measures.Nets, steep: Tensor) -> dict[str, Tensor]:
    """Shares of atoms, neurons and inputs at which a statement holds with constant 1."""
    problem = stages.problem
    x, z, k = problem.test_x, problem.test_z, problem.preset.data.k
    A, keep = measures.coordinates(nets.weight, problem.M), measures.alive(nets.weight)
    plus = measures.potential_plus(A, stages.rules, k, float(nets.bias.flatten()[0]))
    bound = measures.lipschitz_bound(A, plus, k)
    rest, every = measures.leftover(nets, x, z, A, plus), A.abs().sum(-2)
    opposed = measures.label_parts(nets.weight, problem.direction) < 0
    return {
        # Lemma C.20 is about each atom: the mean of ratios, not the ratio of means.
        "Lipschitz": (steep / bound).mean(-1),
        "Lipschitz holds": (steep <= bound).double().mean(-1),
        "Lipschitz excess": (steep - every).amax(-1) / every.amax(-1),
        "leftovers": measures.leftover_share(nets, rest),
        "opposed": (opposed & keep).sum(-1) / keep.sum(-1).double(),
        "FGM floor": linearity(problem, nets)["FGM floor"],
    }


def regulariser(weight: Tensor) -> Tensor:
    """sum_i |w_i|^2/2 + |w_i|^3/3, without lambda."""
    norm = weight.norm(dim=-1)
    return (norm**2 / 2 + norm**3 / 3).sum(-1)


def noise(problem: SparseProblem, nets: measures.Nets) -> Tensor:
    """One rho for each test point and neuron; the same for every network."""
    shape = (*problem.test_x.shape[:-1], nets.weight.shape[-2])
    rngs = generators(problem.stream, "rho", seeds=problem.seeds)
    drawn = normal(problem.test_x.new_empty(shape).flatten(0, 1), rngs).reshape(shape)
    return nets.sigma[..., None, None] * drawn


def perturbations(problem: SparseProblem, nets: measures.Nets) -> list[Tensor]:
    """The FGM, the universal and the PGD perturbation of each test point."""
    x, y, ball = problem.test_x, problem.test_y, problem.preset.ball
    rngs = generators(problem.stream, "perturbations", seeds=problem.seeds)
    loss, rows = measures.margin_of(nets, y.flatten()), x.flatten(0, 1)
    found = [attack(loss, rows, ball, rng=rngs).x.reshape(x.shape) - x
             for attack in (PAPER_FGM, CRAFT)]  # fmt: skip
    return [*found, measures.universal(problem.direction, y, ball)]


def objective(problem: SparseProblem, nets: measures.Nets, attacked: bool) -> Tensor:
    """The objective of Theorem F.1 at drawn noise, one number per replicate.

    Args:
        problem: whose test points are used.
        nets: the networks.
        attacked: at FGM points, or at the inputs themselves.
    """
    x, y = problem.test_x, problem.test_y
    if attacked:
        loss, rows = measures.margin_of(nets, y.flatten()), x.flatten(0, 1)
        rngs = generators(problem.stream, "FGM", seeds=problem.seeds)
        x = PAPER_FGM(loss, rows, problem.preset.ball, rng=rngs).x.reshape(x.shape)
    f = measures.sampled(nets, x, noise(problem, nets))
    paid = torch.nn.functional.softplus(-y * f).mean(-1)
    return paid + problem.preset.adversarial.penalty * regulariser(nets.weight)


def lipschitz(problem: SparseProblem, nets: measures.Nets, points: int = POINTS) -> Tensor:
    """L_j of each atom (Definition C.13), from below: a quantile over inputs, on a grid of z_j.

    Args:
        problem: whose test points are moved.
        nets: the networks.
        points: how many inputs.
    """
    x, z = problem.test_x[:, :points], problem.test_z[:, :points]
    A = measures.coordinates(nets.weight, problem.M)
    return measures.coordinate_lipschitz(nets, x, z, A, LEVELS)
