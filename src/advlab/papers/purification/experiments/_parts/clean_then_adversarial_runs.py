"""Clean training, then adversarial training from there, its control, and what their ends show."""

from copy import deepcopy
from dataclasses import dataclass, replace

import polars as pl
import torch
from torch import Tensor

from .....attacks import PGD, Attack
from .....core.randomness import generators
from .....models import Stack
from .....threats import Ball
from .....training import Probe, ProbeFunction
from ... import measures
from ...measures.correlations import LEVELS
from ...models.oracles import oracle_bias
from .neuron_charts import other_coordinates, snapshots
from .presets import PAPER_FGM, SparseProblem
from .two_phase_runs import (
    ADVERSARIAL,
    CLEAN,
    CONTROL,
    MIXED,
    PURE,
    START,
    Case,
    accuracies_under_attack,
    columns,
    control_probes,
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
"""Test points per seed for transfer, linearity and the network without its recruits."""
UNFILTERED = 2000
"""Draws per seed that no margin filters."""


@dataclass(frozen=True)
class Trained:
    """The networks of a problem at the three stages, the curves between, and the growth log."""

    start: measures.Nets
    clean: measures.Nets
    adversarial: measures.Nets
    curves: pl.DataFrame
    growth: measures.GrowthLog
    mixed: Stack
    """The clean networks themselves, for what else starts from them."""

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
    clean, mixed, steps = frozen(nets), deepcopy(nets), problem.preset.clean.steps
    seen = Probe(training_probes(problem, start, clean) | more, every=case.probe_every)
    second = problem.train_adversarial(nets, seen)
    rows = [curve(first, problem, CLEAN), curve(second, problem, ADVERSARIAL, steps)]
    return Trained(start, clean, frozen(nets), pl.concat(rows, how="diagonal"), log, mixed)


@dataclass(frozen=True)
class Others:
    """What else starts from the clean networks of a problem."""

    control: measures.Nets
    """As many more clean steps."""
    fast: measures.Nets
    """Adversarial training against FGM alone."""
    curves: pl.DataFrame
    """Of the control."""


def train_others(case: Case, problem: SparseProblem, trained: Trained) -> Others:
    """The control, and Algorithm 2 with the paper's FGM, both from the clean networks.

    Args:
        case: says how often to probe.
        problem: the data.
        trained: both phases.
    """
    more, fast = deepcopy(trained.mixed), deepcopy(trained.mixed)
    probes = control_probes(problem, trained.clean)
    run = problem.train_control(more, Probe(probes, every=case.probe_every))
    rows = curve(run, problem, CONTROL, problem.preset.clean.steps)
    problem.train_adversarial(fast, attack=PAPER_FGM)
    return Others(frozen(more), frozen(fast), rows)


def neuron_tables(trained: Trained, problem: SparseProblem) -> pl.DataFrame:
    """The coordinates of the first seed's neurons, and how all others are spread in every seed."""
    first = snapshots(trained.stages(0), MIXED, problem.M[0], problem.w[0])
    parts = [first.with_columns(seed=pl.lit(problem.seeds[0], pl.Int64))]
    for r, seed in enumerate(problem.seeds):
        rows = other_coordinates(trained.stages(r), MIXED, problem.M[r], problem.w[r])
        parts.append(rows.with_columns(seed=pl.lit(seed, pl.Int64)))
    return pl.concat(parts, how="diagonal")


def ends(trained: Trained, others: Others, problem: SparseProblem, steps: int) -> pl.DataFrame:
    """One row per seed: each network under attack (PGD with `steps`), its neurons, and the rest."""
    clean, w, tau = trained.clean, problem.w, problem.preset.tau
    oracle = measures.Nets.at((problem.M * w[:, None]).mT, oracle_bias(problem.preset.data.k))
    nets = {"clean": clean, "adversarial": trained.adversarial, "oracle": oracle}
    nets |= {"control": others.control, "FGM-trained": others.fast}
    found: dict = {}
    for name, net in nets.items():
        found |= columns(accuracies_under_attack(problem, net, steps), f"{name}: ")
        if net is not oracle:
            found |= columns(neuron_statistics(problem, net), f"{name}: ")
            found |= columns(linearity(problem, net), f"{name}: ")
            found |= columns(unfiltered_accuracy(problem, net), f"{name}: ")
    found |= columns(memory(trained))
    for name, net in {"": trained.adversarial, "control: ": others.control,
                      "FGM-trained: ": others.fast}.items():  # fmt: skip
        found |= columns(changes(clean, net, problem), name)
    found |= columns(transfer_accuracies(trained, problem))
    found |= columns(without_recruits(trained, problem, steps))
    found |= columns({"clean: universal at 1.5 tau": universal_accuracy(problem, clean, 1.5 * tau)})
    log = trained.growth
    found |= columns({
        "growth: every": log.every.double().mean(0),
        "growth: share": log.positive.double().mean(0),
        "growth: least": log.least,
    })  # fmt: skip
    kept = {"kept draws": problem.unfiltered(UNFILTERED)[2]}
    kept["data participation"] = measures.participation(problem.test_z).mean(-1)
    return pl.DataFrame({"part": "end", "seed": list(problem.seeds)} | found | columns(kept))


def universal_accuracy(problem: SparseProblem, nets: measures.Nets, radius: float) -> Tensor:
    """The accuracy under the universal attack -radius y M w*/|M w*|, one per replicate."""
    ball = Ball(norm=problem.preset.norm, radius=radius)
    moves = measures.universal(problem.direction, problem.test_y, ball)
    return (problem.test_y * nets.value(problem.test_x + moves) > 0).double().mean(-1)


def unfiltered_accuracy(problem: SparseProblem, nets: measures.Nets) -> dict[str, Tensor]:
    """The clean accuracy on draws that no margin filters."""
    x, y, _ = problem.unfiltered(UNFILTERED)
    return {"unfiltered": (y * nets.value(x) > 0).double().mean(-1)}


def linearity(
    problem: SparseProblem, nets: measures.Nets, points: int = SHOWN
) -> dict[str, Tensor]:
    """Lemma F.11's gap, the largest at the FGM, the universal and the PGD point, its mean over
    inputs; and the share of inputs at which Corollary F.2's argument goes through.
    """
    x, y, ball = problem.test_x[:, :points], problem.test_y[:, :points], problem.preset.ball
    rngs = generators(problem.stream, "linearity", seeds=problem.seeds)
    loss, rows = measures.margin_of(nets, y.flatten()), x.flatten(0, 1)

    def move(attack: Attack) -> Tensor:
        return attack(loss, rows, ball, rng=rngs).x.reshape(x.shape) - x

    wide = measures.universal(problem.direction, y, ball)
    found = measures.fgm_argument(nets, x, y, move(PAPER_FGM), [wide, move(CRAFT)])
    return {
        "linearity gap": found.gap.double().mean(-1),
        "FGM floor": (found.floor > 0).double().mean(-1),
        "FGM literal": found.literal.double().mean(-1),
    }


def memory(trained: Trained) -> dict[str, Tensor]:
    """G1, and theta with the start: means and shares over the neurons alive, and over all."""
    start, clean, pure = (net.weight for net in (trained.start, trained.clean, trained.adversarial))
    either = measures.alive(clean) | measures.alive(pure)
    found = {"G1": measures.start_ratio(start, clean)}
    for name, after, keep in (("theta(w0, w)", clean, measures.alive(clean)),
                              ("theta(w0, w')", pure, either)):  # fmt: skip
        found |= _law(name, measures.theta(start, after), keep)
    return found


def changes(
    clean: measures.Nets, after: measures.Nets, problem: SparseProblem
) -> dict[str, Tensor]:
    """theta, G7, where the weights went, and which neurons came, went or turned to other atoms.

    theta is over the neurons alive before or after, and over all of them.
    """
    before, now = clean.weight, after.weight
    either = measures.alive(before) | measures.alive(now)
    moved = measures.turnover(before, now, problem.M)
    return _law("theta(w, w')", measures.theta(before, now), either) | {
        "G7": measures.move_ratio(before, now),
        "G7 of directions": measures.turn_ratio(before, now, either),
        "change on Mw*": measures.change_energy(before, now, problem.direction),
        "recruited": moved.recruited,
        "lost": moved.lost,
        "turned": moved.turned,
        "turned, pure": moved.turned_pure,
    }


def _law(name: str, theta: Tensor, keep: Tensor) -> dict[str, Tensor]:
    """Mean, shares past the principle's threshold and quantiles; the first two over all as well."""
    some, every = (measures.spread(theta, THETA[name], one) for one in (keep, None))
    found = {f"{name} at {level:.0%}": q for level, q in zip(LEVELS, some.quantiles, strict=True)}
    for law, among in ((some, ""), (every, ", all")):
        past = {f" above {THETA[name]:g}": law.above, f" below {THETA[name]:g}": law.below}
        found |= {f"{name}{end}{among}": value for end, value in ({"": law.mean} | past).items()}
    return found


def without_recruits(trained: Trained, problem: SparseProblem, steps: int) -> dict[str, Tensor]:
    """The worst accuracy of the adversarial networks, and without the neurons that came alive."""
    nets = trained.adversarial
    new = measures.turnover(trained.clean.weight, nets.weight, problem.M).recruits
    fewer = replace(nets, weight=nets.weight.masked_fill(new[..., None], 0.0))
    x, y = problem.test_x[:, :SHOWN], problem.test_y[:, :SHOWN]

    def worst(one: measures.Nets) -> Tensor:
        rngs = generators(problem.stream, "recruits", seeds=problem.seeds)
        found = measures.survival(one, x, y, problem.preset.ball, problem.direction, rngs, steps)
        return found.accuracies()["worst"]

    return {"recruits: with": worst(nets), "recruits: without": worst(fewer),
            "recruits: clean": worst(trained.clean)}  # fmt: skip


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
