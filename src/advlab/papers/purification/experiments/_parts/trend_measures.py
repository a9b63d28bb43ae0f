"""What `dimension_trends` measures at one dimension: memory, mixtures, accuracies and radii."""

from dataclasses import replace

import torch
from torch import Tensor

from .....core.randomness import generators
from .....threats import Ball
from ... import measures
from ...models.oracles import oracle_bias
from .presets import SparseProblem
from .two_phase_runs import each_net

ATTACKED, HALVED = 600, 300
"""Test points for the worst case at tau, and for the radius at which half of the inputs break."""
STEPS = 20
"""Of PGD, where that radius is searched."""
LOW, HIGH = 0.25, 4.0
"""Between which multiples of tau it is searched."""
WON = 0.5
"""What alpha exceeds where a neuron has won its atom: ours. The paper's d^-c is 0.995 here."""


def memory(
    start: Tensor, clean: measures.Nets, robust: measures.Nets, control: measures.Nets
) -> dict[str, Tensor]:
    """How neurons correlate with their start and each other, and how far they move afterwards."""
    alive = measures.alive(clean.weight)

    def mean(values: Tensor, keep: Tensor | None = None) -> Tensor:
        return measures.spread(values, 0.5, keep).mean

    def turned(after: Tensor) -> Tensor:
        either = alive | measures.alive(after)
        return 1 - mean(measures.theta(clean.weight, after), either)

    return {
        "G1": measures.start_ratio(start, clean.weight),
        "G2": measures.pair_ratio(clean.weight),
        "G7": measures.move_ratio(clean.weight, robust.weight),
        "G7 of directions": measures.turn_ratio(clean.weight, robust.weight, alive),
        "theta(w0, w)": mean(measures.theta(start, clean.weight), alive),
        "theta(w0, w), all": mean(measures.theta(start, clean.weight)),
        "1 - theta(w, w')": turned(robust.weight),
        "G7, control": measures.move_ratio(clean.weight, control.weight),
        "1 - theta(w, w'), control": turned(control.weight),
        "alive": alive.double().mean(1),
    }


def mixtures(problem: SparseProblem, start: Tensor, clean: measures.Nets) -> dict[str, Tensor]:
    """Theorem 5.2 after clean training, with N_i = {j: i in S_j,pot(0)} (Remark C.3) and, in the
    columns that end in "top", with the top atom of the trained neuron.

    Args:
        problem: the data.
        start: the weights at initialisation, which fix N_i.
        clean: the networks after clean training.
    """
    law, A = problem.preset.data, measures.coordinates(clean.weight, problem.M)
    rules = measures.TicketRules.of(law.d, problem.preset.width)
    first = measures.coordinates(start, problem.M)
    own = measures.potential(first, rules, problem.preset.sigma0)
    drawn, top = (measures.mixture(A, problem.w, sets) for sets in (own, None))
    literal = law.d**-0.001
    found: dict[str, Tensor] = {
        "beta d/k": top.mean_beta_over(law.k),
        "own atoms": drawn.counts.double().mean(-1),
        "most own atoms": drawn.counts.double().amax(-1),
    }
    for name, one in {"": drawn, ", top": top}.items():
        found |= {
            f"largest beta{name}": one.largest_beta,
            f"winners/d{name}": one.winners(WON).double() / law.d,
            f"winners/d at d^-c{name}": one.winners(literal).double() / law.d,
        }
    return found


def robustness(
    problem: SparseProblem, clean: measures.Nets, robust: measures.Nets
) -> dict[str, Tensor]:
    """Clean errors, the universal attack at tau, the worst case there, and radii.

    "half radius" is that at which half of the inputs break in the worst case, an upper bound.
    """
    oracle = measures.Nets.at(
        (problem.M * problem.w[:, None]).mT, oracle_bias(problem.preset.data.k)
    )
    x, y, way = problem.test_x, problem.test_y, problem.direction
    few = replace(problem, test_x=x[:, :ATTACKED], test_y=y[:, :ATTACKED])
    moves = measures.universal(way, y, problem.preset.ball)
    found = {}
    for name, net in {"clean": clean, "adversarial": robust, "oracle": oracle}.items():
        found[f"half radius, {name}"] = half_radii(few, net)
        if net is not oracle:
            found[f"clean error, {name}"] = _error(net, x, y)
            found[f"universal, {name}"] = 1 - _error(net, x + moves, y)
    ours, best = _worst(few, robust), _worst(few, oracle)
    return found | {"robust": ours, "oracle": best, "oracle gap": best - ours}


def half_radii(problem: SparseProblem, nets: measures.Nets) -> Tensor:
    """The radius at which half of the inputs break in the worst case, one per replicate."""
    preset, found = problem.preset, []
    parts = problem.test_x[:, :HALVED], problem.test_y[:, :HALVED], problem.direction
    x, y, way = (part.split(1) for part in parts)
    for r, net in enumerate(each_net(nets)):

        def share(radius: float, r: int = r, net: measures.Nets = net) -> float:
            rngs = generators(problem.stream, "radius", seeds=[problem.seeds[r]])
            one = measures.Nets(*(part[None] for part in (net.weight, net.bias, net.sigma)))
            ball = Ball(norm=preset.norm, radius=radius)
            judged = measures.survival(one, x[r], y[r], ball, way[r], rngs, STEPS)
            return float(judged.accuracies()["worst"])

        found.append(measures.half_radius(share, LOW * preset.tau, HIGH * preset.tau))
    return torch.tensor(found, dtype=torch.float64)


def _error(nets: measures.Nets, x: Tensor, y: Tensor) -> Tensor:
    """The share of inputs that are wrong, one per replicate."""
    values = torch.stack([one.value(rows) for one, rows in zip(each_net(nets), x, strict=True)])
    return (y * values <= 0).double().mean(-1)


def _worst(problem: SparseProblem, nets: measures.Nets) -> Tensor:
    rngs = generators(problem.stream, "attack", seeds=problem.seeds)
    found = measures.survival(
        nets, problem.test_x, problem.test_y, problem.preset.ball, problem.direction, rngs
    )
    return found.accuracies()["worst"]
