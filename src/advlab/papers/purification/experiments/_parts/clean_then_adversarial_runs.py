"""Clean training, then adversarial training from there, and what is measured at their ends."""

from dataclasses import dataclass, replace

import polars as pl
import torch
from torch import Tensor

from .....attacks import PGD
from .....core.randomness import generators
from .....threats import Ball
from .....training import Probe, ProbeFunction
from ... import measures
from ...measures.correlations import LEVELS
from ...models.oracles import oracle_bias
from .neuron_charts import other_coordinates, snapshots
from .presets import SparseProblem
from .two_phase_runs import (
    ADVERSARIAL,
    CLEAN,
    MIXED,
    PURE,
    START,
    Case,
    accuracies_under_attack,
    columns,
    curve,
    frozen,
    neuron_statistics,
    training_probes,
)

CRAFT = PGD(steps=20, step_size=0.15, random_start=False)
"""The attack whose perturbations are shown to other networks."""
THETA = {"theta(w, w')": 0.8, "theta(w0, w)": 0.2, "theta(w0, w')": 0.2}
"""The thresholds of the principle of feature purification (section 1)."""
SHOWN = 1000
"""Test points per seed for transfer."""


@dataclass(frozen=True)
class Trained:
    """The networks of a problem at the three stages, the curves between, and the growth log."""

    start: measures.Nets
    clean: measures.Nets
    adversarial: measures.Nets
    curves: pl.DataFrame
    growth: measures.GrowthLog

    def stages(self, r: int) -> dict[str, Tensor]:
        """The weights of replicate r at each stage."""
        nets = {START: self.start, MIXED: self.clean, PURE: self.adversarial}
        return {name: net.weight[r] for name, net in nets.items()}


def train(
    case: Case, problem: SparseProblem, more: dict[str, ProbeFunction] | None = None
) -> Trained:
    """Algorithm 1, then Algorithm 2 from its network.

    Args:
        case: says how often to probe.
        problem: the data and the start.
        more: further probes along both phases.
    """
    nets, log, more = problem.networks(), measures.GrowthLog(problem.direction), more or {}
    start = frozen(nets)
    seen = Probe(training_probes(problem, start) | more, every=case.probe_every)
    first = problem.train_clean(nets, log, seen)
    clean, steps = frozen(nets), problem.preset.clean.steps
    seen = Probe(training_probes(problem, start, clean) | more, every=case.probe_every)
    second = problem.train_adversarial(nets, seen)
    rows = [curve(first, problem, CLEAN), curve(second, problem, ADVERSARIAL, steps)]
    return Trained(start, clean, frozen(nets), pl.concat(rows, how="diagonal"), log)


def neuron_tables(trained: Trained, problem: SparseProblem) -> pl.DataFrame:
    """The coordinates of the first seed's neurons, and how all others are spread in every seed."""
    first = snapshots(trained.stages(0), MIXED, problem.M[0], problem.w[0])
    parts = [first.with_columns(seed=pl.lit(problem.seeds[0], pl.Int64))]
    for r, seed in enumerate(problem.seeds):
        rows = other_coordinates(trained.stages(r), MIXED, problem.M[r], problem.w[r])
        parts.append(rows.with_columns(seed=pl.lit(seed, pl.Int64)))
    return pl.concat(parts, how="diagonal")


def ends(trained: Trained, problem: SparseProblem, steps: int) -> pl.DataFrame:
    """One row per seed: each network under attack (PGD with `steps`), its neurons, and the rest."""
    clean, adversarial, w = trained.clean, trained.adversarial, problem.w
    tau = problem.preset.tau
    oracle = measures.Nets.at((problem.M * w[:, None]).mT, oracle_bias(problem.preset.data.k))
    found = columns(accuracies_under_attack(problem, clean, steps), "clean: ")
    found |= columns(accuracies_under_attack(problem, adversarial, steps), "adversarial: ")
    found |= columns(accuracies_under_attack(problem, oracle, steps), "oracle: ")
    found |= columns(neuron_statistics(problem, clean), "clean: ")
    found |= columns(neuron_statistics(problem, adversarial), "adversarial: ")
    found |= columns(weight_changes(trained, problem)) | columns(
        transfer_accuracies(trained, problem)
    )
    found |= columns({"clean: universal at 1.5 tau": universal_accuracy(problem, clean, 1.5 * tau)})
    every = trained.growth.every.double()
    found |= columns({"growth: every": every.mean(0), "growth: share": _share(trained.growth)})
    return pl.DataFrame({"part": "end", "seed": list(problem.seeds)} | found)


def _share(log: measures.GrowthLog) -> Tensor:
    """The share of the neurons alive that are pushed along M w*, on average over the steps."""
    return log.positive.double().mean(0)


def universal_accuracy(problem: SparseProblem, nets: measures.Nets, radius: float) -> Tensor:
    """The accuracy under the universal attack -radius y M w*/|M w*|, one per replicate."""
    ball = Ball(norm=problem.preset.norm, radius=radius)
    moves = measures.universal(problem.direction, problem.test_y, ball)
    return (problem.test_y * nets.value(problem.test_x + moves) > 0).double().mean(-1)


def weight_changes(trained: Trained, problem: SparseProblem) -> dict[str, Tensor]:
    """theta, G1, G7 and where the weights went, from one stage to another.

    Means are over the neurons alive after clean training.
    """
    start, clean, pure = (net.weight for net in (trained.start, trained.clean, trained.adversarial))
    keep = measures.alive(clean)
    pairs = {"theta(w, w')": (clean, pure), "theta(w0, w)": (start, clean)}
    pairs["theta(w0, w')"] = (start, pure)
    thetas = {
        name: measures.spread(measures.theta(*pair), THETA[name], keep)
        for name, pair in pairs.items()
    }
    found = {
        f"{name}{word}": value
        for name, law in thetas.items()
        for word, value in _words(law, THETA[name]).items()
    }
    return found | {
        "G1": measures.start_ratio(start, clean),
        "G7": measures.move_ratio(clean, pure),
        "G7 of directions": measures.turn_ratio(clean, pure, keep),
        "change on Mw*": measures.change_energy(clean, pure, problem.direction),
        "data participation": measures.participation(problem.test_z).mean(-1),
    }


def _words(law: measures.Spread, threshold: float) -> dict[str, Tensor]:
    """Mean, shares and quantiles under the ends of their names."""
    quantiles = {f" at {level:.0%}": q for level, q in zip(LEVELS, law.quantiles, strict=True)}
    past = {f" above {threshold:g}": law.above, f" below {threshold:g}": law.below}
    return {"": law.mean} | past | quantiles


def transfer_accuracies(trained: Trained, problem: SparseProblem) -> dict[str, Tensor]:
    """Perturbations of the clean network, shown to another clean one and to the adversarial one."""
    other = replace(problem, stream=f"{problem.stream}, another")
    nets = other.networks()
    other.train_clean(nets)
    models = [trained.clean, frozen(nets), trained.adversarial]
    rngs = generators(problem.stream, "transfer", seeds=problem.seeds)
    x, y = problem.test_x[:, :SHOWN], problem.test_y[:, :SHOWN]
    with torch.no_grad():
        found = measures.transfer_matrix(
            models, x, y, problem.preset.ball, CRAFT, problem.direction, rngs
        )
    own, another, purified = found.accuracy[0]
    return {"transfer: own": own, "transfer: other": another, "transfer: adversarial": purified}
