"""What experiment Syn A computes: clean training, then adversarial, and their ends."""

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
from .neuron_charts import floors, snapshots
from .presets import World
from .two_phase_runs import (
    ADVERSARIAL,
    CLEAN,
    MIXED,
    PURE,
    START,
    Case,
    columns,
    curve,
    direction,
    frozen,
    glances,
    made_of,
    withstood,
)

CRAFT = PGD(steps=20, step_size=0.15, random_start=False)
"""What crafts perturbations that are shown to other networks."""
THETA = {"theta(w, w')": 0.8, "theta(w0, w)": 0.2, "theta(w0, w')": 0.2}
"""The thresholds of the provisional principle (section 2.1)."""
SHOWN = 1000
"""To as many test points of a seed."""


@dataclass(frozen=True)
class Trained:
    """The networks of a world at the three moments, the curves between, and the growth log."""

    start: measures.Nets
    clean: measures.Nets
    adversarial: measures.Nets
    curves: pl.DataFrame
    growth: measures.GrowthLog

    def moments(self, r: int) -> dict[str, Tensor]:
        """Of replicate r."""
        nets = {START: self.start, MIXED: self.clean, PURE: self.adversarial}
        return {name: net.weight[r] for name, net in nets.items()}


def train(case: Case, world: World, more: dict[str, ProbeFunction] | None = None) -> Trained:
    """Algorithm 1, then Algorithm 2 from its network; `more` to look at along both."""
    nets, log, more = world.networks(), measures.GrowthLog(direction(world)), more or {}
    start = frozen(nets)
    seen = Probe(glances(world, start) | more, every=case.glance)
    first = world.train_clean(nets, log, seen)
    clean, steps = frozen(nets), world.preset.clean.steps
    seen = Probe(glances(world, start, clean) | more, every=case.glance)
    second = world.train_adversarial(nets, seen)
    rows = [curve(first, world, CLEAN), curve(second, world, ADVERSARIAL, steps)]
    return Trained(start, clean, frozen(nets), pl.concat(rows, how="diagonal"), log)


def pictured(trained: Trained, world: World) -> pl.DataFrame:
    """The neurons of the first seed, and the floors of all."""
    first = snapshots(trained.moments(0), MIXED, world.M[0], world.w[0])
    parts = [first.with_columns(seed=pl.lit(world.seeds[0], pl.Int64))]
    for r, seed in enumerate(world.seeds):
        rows = floors(trained.moments(r), MIXED, world.M[r], world.w[r])
        parts.append(rows.with_columns(seed=pl.lit(seed, pl.Int64)))
    return pl.concat(parts, how="diagonal")


def ends(trained: Trained, world: World, steps: int) -> pl.DataFrame:
    """One row a seed: each network under attack (PGD with `steps`), its neurons, and the rest."""
    clean, adversarial, w = trained.clean, trained.adversarial, world.w
    tau = world.preset.tau
    oracle = measures.Nets.at((world.M * w[:, None]).mT, oracle_bias(world.preset.data.k))
    found = columns(withstood(world, clean, steps), "clean: ")
    found |= columns(withstood(world, adversarial, steps), "adversarial: ")
    found |= columns(withstood(world, oracle, steps), "oracle: ")
    found |= columns(made_of(world, clean), "clean: ")
    found |= columns(made_of(world, adversarial), "adversarial: ")
    found |= columns(between(trained, world)) | columns(transferred(trained, world))
    found |= columns({"clean: universal at 1.5 tau": universal_at(world, clean, 1.5 * tau)})
    every = trained.growth.every.double()
    found |= columns({"growth: every": every.mean(0), "growth: share": _share(trained.growth)})
    return pl.DataFrame({"part": "end", "seed": list(world.seeds)} | found)


def _share(log: measures.GrowthLog) -> Tensor:
    """Of the neurons alive that are pushed along M w*, on average over the steps."""
    return log.positive.double().mean(0)


def universal_at(world: World, nets: measures.Nets, radius: float) -> Tensor:
    ball = Ball(norm=world.preset.norm, radius=radius)
    moves = measures.universal(direction(world), world.test_y, ball)
    return (world.test_y * nets.value(world.test_x + moves) > 0).double().mean(-1)


def between(trained: Trained, world: World) -> dict[str, Tensor]:
    """theta, G1, G7 and where the weights went, from one moment to another.

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
        "change on Mw*": measures.change_energy(clean, pure, direction(world)),
        "data participation": measures.participation(world.test_z).mean(-1),
    }


def _words(law: measures.Spread, threshold: float) -> dict[str, Tensor]:
    """Mean, shares and quantiles under the ends of their names."""
    quantiles = {f" at {level:.0%}": q for level, q in zip(LEVELS, law.quantiles, strict=True)}
    past = {f" above {threshold:g}": law.above, f" below {threshold:g}": law.below}
    return {"": law.mean} | past | quantiles


def transferred(trained: Trained, world: World) -> dict[str, Tensor]:
    """Perturbations of the clean network, shown to another clean one and to the adversarial one."""
    other = replace(world, stream=f"{world.stream}, another")
    nets = other.networks()
    other.train_clean(nets)
    models = [trained.clean, frozen(nets), trained.adversarial]
    rngs = generators(world.stream, "transfer", seeds=world.seeds)
    x, y = world.test_x[:, :SHOWN], world.test_y[:, :SHOWN]
    with torch.no_grad():
        found = measures.transfer_matrix(
            models, x, y, world.preset.ball, CRAFT, direction(world), rngs
        )
    own, another, purified = found.accuracy[0]
    return {"transfer: own": own, "transfer: other": another, "transfer: adversarial": purified}
