"""Left and right of the lemmas of appendices C, E and F at one network, open constants 1."""

import torch
from torch import Tensor

from ... import measures
from .clean_then_adversarial_runs import linearity
from .presets import SparseProblem

POINTS, LEVELS = 120, (0.25, 0.5, 1.0)
"""Inputs, and sizes of z_j, at which L_j is measured."""


def both_sides(
    problem: SparseProblem, nets: measures.Nets, clean: measures.Nets
) -> dict[str, Tensor]:
    """Left, right and left over right of every lemma, one number per replicate.

    Args:
        problem: the data.
        nets: the networks at the stage.
        clean: those after clean training, whose own atoms g_i the rest v_i is taken from.
    """
    x, z, M, w = problem.test_x, problem.test_z, problem.M, problem.w
    d, k, m = problem.preset.data.d, problem.preset.data.k, nets.weight.shape[-2]
    b = float(nets.bias.flatten()[0])
    rules = measures.TicketRules.of(d, m)
    A, keep = measures.coordinates(nets.weight, M), measures.alive(nets.weight)
    plus = measures.potential_plus(A, rules, k, b)
    rest = measures.leftover(nets, x, z, A, plus)
    steep = lipschitz(problem, nets, A)
    bound = measures.lipschitz_bound(A, plus, k)
    before = measures.coordinates(clean.weight, M)
    own = measures.potential_plus(before, rules, k, float(clean.bias.flatten()[0]))
    v = A - torch.where(own, before, 0.0)
    argument, answering = linearity(problem, nets), measures.active(nets, x)

    def alive_mean(values: Tensor) -> Tensor:
        return measures.spread(values, 0.0, keep).mean

    sides: dict[str, tuple[Tensor, Tensor | float]] = {
        "activation": (alive_mean(measures.activation_probability(nets, x)), k / d),
        "near": (answering.near.double().mean(-1), k),
        "open": (answering.open.double().mean(-1), k),
        "Lipschitz": (steep.mean(-1), bound.mean(-1)),
        "push": (measures.label_parts(nets.weight, problem.direction).sum(-1), k * d),
        "other coordinate": (alive_mean(A.abs().masked_fill(plus, 0.0).amax(-1)), k / d),
        "rest": ((v**2).sum(-1).mean(-1), k**2 / d),
        "coupling": (argument["linearity gap"], problem.preset.tau**2 * k**3.5 / d),
    }
    found = {}
    for name, (left, right) in sides.items():
        right = torch.as_tensor(right).to(left).expand_as(left)
        found |= {f"{name} left": left, f"{name} right": right, name: left / right}
    return found | {
        # Lemma C.20 is about each atom: the mean of ratios, not the ratio of means.
        "Lipschitz": (steep / bound).mean(-1),
        "Lipschitz holds": (steep <= bound).double().mean(-1),
        "Lipschitz excess": (steep - A.abs().sum(-2)).amax(-1) / A.abs().sum(-2).amax(-1),
        "leftovers": measures.leftover_share(nets, rest),
        "FGM floor": argument["FGM floor"],
        "sure+ per atom": measures.sure_plus(A, w, k, b).sum((-2, -1)).double() / A.shape[-1],
    }


def lipschitz(
    problem: SparseProblem, nets: measures.Nets, A: Tensor, points: int = POINTS
) -> Tensor:
    """L_j of each atom (Definition C.13), from below: a quantile over inputs, on a grid of z_j.

    Args:
        problem: whose test points are moved.
        nets: the networks.
        A: the coordinates of their neurons.
        points: how many inputs.
    """
    x, z = problem.test_x[:, :points], problem.test_z[:, :points]
    return measures.coordinate_lipschitz(nets, x, z, A, LEVELS)
