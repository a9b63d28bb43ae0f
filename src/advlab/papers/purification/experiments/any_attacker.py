"""Which attacker must be trained against? Theorem 5.3, and Corollary F.2's reason.

Theorem 5.3a: adversarial training makes the network robust against the perturbation algorithm A it
is trained with, whatever A is (Definition 4.2). Footnote 12: a bad A may leave dense mixtures where
they are, since they need only be removed as far as A finds them. Theorem 5.3b: if A is FGM, the
network is robust against every perturbation of the ball. Corollary F.2 says why: f is nearly linear
on the ball, so y f(x + delta) >= y f(x + delta_FGM) - 2 gap for every delta. Theorem 5.3c, with the
paper's words: local purification happens "regardless of which" A is used; what it bounds is G7, the
squared change of the weights over their squared size, at every step.

From the same clean network (`random`, scaled) Algorithm 2 is run against a random draw of the ball,
the universal direction -tau y M w*/|M w*| (which knows neither x nor the network), FGM points of
the clean network (fixed for ever: transfer), FGM, three steps of PGD, and no attack at all (the
control). Universal and transferred points carry the label whatever the network does: it may learn
to read it there. Each network is judged by its own attacker, by the worst case over the universal
direction, FGM and PGD from four starts (an upper bound of the robust accuracy), and by a
certificate (a lower bound). The gap is the largest that was found at FGM, universal and PGD points:
it explains, and proves nothing; the certificate proves. G7 is the largest along training. Theorem
5.3c asks for o(1); that less than 0.6 is local is a bound of ours.
"""

from copy import deepcopy

import polars as pl
import torch
from pydantic import PositiveInt
from torch import nn

from .... import lab
from ....attacks import Attack, Random, Transfer
from ....core.randomness import generators
from ....models import Stack
from ....report import Assumption, Claims, Verdict, empirical, identity, ours, sample, theorem
from ....report.charts import AnyChart, curves, panels, points, stacked
from ....training import Probe, ProbeFunction
from .. import measures
from ..models import SymmetricReLU
from ._parts.clean_then_adversarial_runs import linearity
from ._parts.conditions import THEOREMS, assumptions_of
from ._parts.presets import PAPER_FGM, TRAINING_ATTACK, SparseProblem, scaled
from ._parts.two_phase_runs import (
    TINY,
    ScaledCase,
    accuracies_under_attack,
    columns,
    frozen,
    neuron_statistics,
    worst_case_probe,
)

BEFORE, CONTROL = "clean network", "no attack"
RANDOM, UNIVERSAL, TRANSFER, FGM, PGD = "random draw", "universal", "transfer", "FGM", "PGD"
GRADIENTS = (FGM, PGD)
FOUND = (UNIVERSAL, TRANSFER, *GRADIENTS)
"""The attackers that break the clean network."""
ORDER = (BEFORE, CONTROL, RANDOM, *FOUND)
JUDGES = {"own": "its own attacker", "fgm": "FGM", "worst": "worst case", "certified": "certified"}
OWN = {UNIVERSAL: 0.9, TRANSFER: 0.8, FGM: 0.65, PGD: 0.65}
"""What is asked of the accuracy against the attacker of the training."""
SURVIVED = 0.9
"""The same for a random draw, which the clean network survives as well."""
FIXED = (UNIVERSAL, TRANSFER)
"""Attackers whose points carry the label whatever the trained network does."""
LOCAL = 0.6
"""How much of their squared size weights may move and the change still be called local."""
EVERY = 25
"""Steps from one probe of a training to the next."""
NAME = "purification/any_attacker, new draws"

ABOUT = lab.About(
    paper="purification",
    item="Theorem 5.3, Corollary F.2, footnote 12",
    title="Training against FGM is enough; training against a fixed direction is not",
    seconds={"smoke": 5, "laptop": 75, "paper": 900},
    looks=3,
    reduced={
        "laptop": "d = 128 where theorems want d to infinity; draws of small |<w*, z>| rejected",
        "paper": "d = 256 where theorems want d to infinity; draws of small |<w*, z>| rejected",
    },
    claims={
        f"a/{name}": empirical(
            f"Trained against {name}, more than {bound:g} of the inputs survive it, and more than "
            "0.2 more than of the clean network (Theorem 5.3a)"
        )
        for name, bound in OWN.items()
    }
    | {
        f"a/{RANDOM}": empirical(f"Trained against a random draw, more than {SURVIVED:g} of the "
                                 "inputs survive it (Theorem 5.3a); so do they for the "
                                 "clean network, where nothing is to be gained"),
        "b/worst": empirical("Trained against FGM, the worst case over all attacks leaves more "
                             "than 0.55, and more than 0.3 over the clean network (Theorem 5.3b)"),
        "b/pgd": empirical("That is within 0.15 of training against three steps of PGD, which is "
                           "more than 0.3 over the clean network too"),
        "b/certified": empirical("More inputs are certified than for the clean network: by more "
                                 "than 0.02 after FGM, and by more than 0.1 after PGD"),
        "F.2/gap": empirical("Of all networks those trained against FGM and PGD have the least "
                             "gap to the first order"),
        "F.2/floor": empirical("y f(x + delta_FGM) exceeds twice the gap for more than 0.05 of the "
                               "inputs after FGM, for more than 0.2 after PGD, and for fewer than "
                               "0.05 after the others"),
        "c": theorem("Against whichever attacker, G7 is o(1) all along adversarial training "
                     "(Theorem 5.3c)", THEOREMS),
        "c/local": empirical("Purification is local regardless of the attacker: along training "
                             f"against each that breaks the clean network G7 stays below {LOCAL}, "
                             "and exceeds that of as many clean steps by more than 0.1"),
        "12": empirical("A bad attacker need not give robustness: trained against the universal "
                        "direction, the worst case is more than 0.2 below its own attacker"),
        "12/random": ours("Training against a random draw of the ball gains less than 0.1 in the "
                          "worst case, a third of what FGM gains"),
        "12/leak": ours("Where perturbations do not look at the network, it learns to read the "
                        "label off them: less than 0.7 of the inputs without perturbation are "
                        "right, against more than 0.85 after FGM"),
        "12/collapse": ours("There the worst case is robust only while the radius grows: it rises "
                            "above 0.4 along training, and ends below 0.05"),
        "purified": empirical("Every attacker that breaks the clean network changes its mixtures: "
                              "|dense/top| falls more than 1.5 times, and not by the control"),
        "order": identity("No certified input is broken by any attack"),
    },
)  # fmt: skip


class Case(ScaledCase):
    """Both phases of the preset `random`, the second against each attacker."""

    tests: PositiveInt = 500

    @property
    def glances(self) -> int:
        """Test points that are looked at along training."""
        return 20 if self.tiny else 200


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    usual, some = {"smoke": (2, TINY), "laptop": (12, {"d": 128}), "paper": (10, {})}[scale]
    return [Case(**some, **block) for block in lab.blocks(seeds or usual, 1)]


def compute(case: Case) -> pl.DataFrame:
    """Rows by `part`: "curve" along each training, "end" for each network."""
    problem = case.problem(NAME)
    nets = problem.networks()
    problem.train_clean(nets)
    algorithms = attackers(problem, nets)
    rows = [_judged(case, problem, BEFORE, frozen(nets), algorithms)]
    for name, attack in algorithms.items():
        trained = deepcopy(nets)
        every = case.probe_every if case.tiny else EVERY
        seen = Probe(_probes(case, problem, frozen(nets)), every=every)
        if name == CONTROL:
            run = problem.train_control(trained, seen)
        else:
            run = problem.train_adversarial(trained, seen, attack=attack)
        curve = run.log.table(problem.seeds)
        rows.append(curve.with_columns(part=pl.lit("curve"), attacker=pl.lit(name)))
        end = _judged(case, problem, name, frozen(trained), algorithms)
        largest = curve.group_by("seed").agg(pl.max("G7"), pl.max("worst").alias("best worst"))
        rows.append(end.join(largest, on="seed", maintain_order="left"))
    return pl.concat(rows, how="diagonal")


def attackers(problem: SparseProblem, clean: Stack) -> dict[str, Attack]:
    """The perturbation algorithms, by name; the control's is only there to judge it.

    Args:
        problem: whose M w* is the universal direction.
        clean: the networks whose FGM points are transferred.
    """
    # One pair of ReLUs without bias is linear: its FGM points are the universal ones.
    linear = Stack([SymmetricReLU(way[None], bias=0.0) for way in problem.direction])
    return {
        CONTROL: PAPER_FGM,
        RANDOM: Random(samples=1),
        UNIVERSAL: Transfer(source=linear, inner=PAPER_FGM),
        TRANSFER: Transfer(source=deepcopy(clean), inner=PAPER_FGM),
        FGM: PAPER_FGM,
        PGD: TRAINING_ATTACK,
    }


def _probes(case: Case, problem: SparseProblem, clean: measures.Nets) -> dict[str, ProbeFunction]:
    """What is seen along training; G7 is from the clean networks."""
    x, y = problem.test_x[:, : case.glances], problem.test_y[:, : case.glances]

    def right(model: nn.Module) -> torch.Tensor:
        return (y * measures.Nets.of(model).value(x) > 0).double().mean(-1)

    def moved(model: nn.Module) -> torch.Tensor:
        return measures.move_ratio(clean.weight, model.get_parameter("weight").detach())

    def floor(model: nn.Module) -> torch.Tensor:
        return linearity(problem, measures.Nets.of(model), case.glances)["FGM floor"]

    found: dict[str, ProbeFunction] = {"right": right, "G7": moved, "FGM floor": floor}
    return found | worst_case_probe(problem, case.glances, case.pgd_steps // 4)


def _judged(
    case: Case, problem: SparseProblem, name: str, nets: measures.Nets, attacks: dict[str, Attack]
) -> pl.DataFrame:
    """One row per seed: accuracies, the argument of Corollary F.2, and the neurons."""
    found = accuracies_under_attack(problem, nets, case.pgd_steps)
    found |= linearity(problem, nets) | neuron_statistics(problem, nets)
    own = attacks if name == BEFORE else {name: attacks[name]}
    for one, attack in own.items():
        under = "own" if one == name else f"under {one}"
        found[under] = survivors(problem, nets, attack)
    row = {"part": "end", "seed": list(problem.seeds), "attacker": name}
    return pl.DataFrame(row | columns(found))


def survivors(problem: SparseProblem, nets: measures.Nets, attack: Attack) -> torch.Tensor:
    """The accuracy at the points of one attacker (an upper bound of the robust accuracy)."""
    x, y = problem.test_x.flatten(0, 1), problem.test_y.flatten()
    rngs = generators(problem.stream, "own", seeds=problem.seeds)
    with torch.no_grad():
        loss = measures.margin_of(nets, y)
        right = loss(attack(loss, x, problem.preset.ball, rng=rngs).x) < 0
    return right.double().reshape(problem.test_y.shape).mean(1)


def figure(table: pl.DataFrame) -> AnyChart:
    ends = table.filter(part="end")
    judged = ends.unpivot(list(JUDGES), index=["attacker", "seed"], variable_name="judge")
    judged = judged.drop_nulls("value").with_columns(pl.col("judge").replace_strict(JUDGES))
    # The clean network has no attacker of its own, and stands first all the same.
    judged = judged.sort(pl.col("attacker").cast(pl.Enum(ORDER)), maintain_order=True)
    along = table.filter(part="curve")
    trained = "trained against"

    def over(column: str, title: str, y_title: str) -> AnyChart:
        return curves(along, "step", column, "attacker", title=title, y_title=y_title,
                      x_title="adversarial steps")  # fmt: skip

    def after(column: str, title: str, y_title: str, log: bool = False) -> AnyChart:
        return points(ends, "attacker", column, title=title, y_title=y_title, log_y=log,
                      x_title=trained)  # fmt: skip

    ends_of_training = panels([
        points(judged, "attacker", "value", "judge", title="Who is trained against, who judges",
               y_title="accuracy", x_title=trained),
        after("linearity gap", "Gap to the first order on the ball", "mean gap, lower bound", True),
        after("FGM floor", "Corollary F.2's argument", "share with y f(FGM) > 2 gap"),
        after("G7", "G7, its largest along training", "||w' - w||^2 / ||w||^2, all neurons"),
        after("dense over top", "Dense part over the top atom", "mean over neurons"),
    ])  # fmt: skip
    along_training = panels(
        [
            over("worst", "Worst case", "accuracy (upper bound)"),
            over("right", "Without an attack", "accuracy"),
            over("G7", "G7", "||w' - w||^2 / ||w||^2, all neurons"),
            over("FGM floor", "Corollary F.2's argument", "share with y f(FGM) > 2 gap"),
        ],
        columns=2,
    )
    return stacked(ends_of_training, along_training)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    return assumptions_of({f"d = {d}": scaled(d) for d in table["d"].unique().sort().to_list()})


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, ends = Claims(ABOUT.claims), table.filter(part="end")
    left = "what is left to the bound"

    def of(name: str, column: str) -> pl.Series:
        return sample(ends.filter(attacker=name).sort("seed"), column)  # type: ignore[return-value]

    def gain(name: str) -> pl.Series:
        return of(name, "worst") - of(BEFORE, "worst")

    found = [
        claims.above(f"a/{name}", {
            f"accuracy under {name}, above {bound:g}": of(name, "own") - bound,
            "gained, above 0.2": of(name, "own") - of(BEFORE, f"under {name}") - 0.2,
        }, 0, what=left)
        for name, bound in OWN.items()
    ]  # fmt: skip
    drawn = {
        f"after training, above {SURVIVED:g}": of(RANDOM, "own") - SURVIVED,
        f"of the clean network, above {SURVIVED:g}": of(BEFORE, f"under {RANDOM}") - SURVIVED,
    }
    proved, floor = "certified", "FGM floor"
    gaps = {
        f"{other} less {name}": of(other, "linearity gap") - of(name, "linearity gap")
        for name in GRADIENTS
        for other in ORDER
        if other not in GRADIENTS
    }
    falls = {
        name: of(BEFORE, "dense over top") / of(name, "dense over top").abs() for name in FOUND
    }
    leaks = {f"0.7 less clean accuracy after {name}": 0.7 - of(name, "clean") for name in FIXED}
    moves = {name: of(name, "G7") for name in (CONTROL, *ORDER[2:])}
    local = {f"{LOCAL} less G7 against {name}": LOCAL - moves[name] for name in FOUND}
    local |= {f"{name}, over the control's": moves[name] - moves[CONTROL] - 0.1 for name in FOUND}
    collapse = {f"{name}, largest, above 0.4": of(name, "best worst") - 0.4 for name in FIXED}
    collapse |= {f"{name}, at the end, below 0.05": 0.05 - of(name, "worst") for name in FIXED}
    kept = of(BEFORE, "dense over top") / of(CONTROL, "dense over top")
    purified = {f"{name}: fall less 1.5": fall - 1.5 for name, fall in falls.items()}
    return [
        *found,
        claims.above(f"a/{RANDOM}", drawn, 0, what=left),
        claims.above("b/worst", {"worst accuracy, above 0.55": of(FGM, "worst") - 0.55,
                                 "gained, above 0.3": gain(FGM) - 0.3}, 0, what=left),
        claims.above("b/pgd", {"0.15 less what PGD has more": 0.15 - of(PGD, "worst") +
                               of(FGM, "worst"), "PGD's gain, above 0.3": gain(PGD) - 0.3},
                     0, what=left),
        claims.above("b/certified", {
            "after FGM, above 0.02": of(FGM, proved) - of(BEFORE, proved) - 0.02,
            "after PGD, above 0.1": of(PGD, proved) - of(BEFORE, proved) - 0.1,
        }, 0, what=left),
        claims.above("F.2/gap", gaps, 0, what="mean linearity gap of another network less theirs"),
        claims.above("F.2/floor", {
            "after FGM, above 0.05": of(FGM, floor) - 0.05,
            "after PGD, above 0.2": of(PGD, floor) - 0.2,
        } | {f"0.05 less that after {name}": 0.05 - of(name, floor) for name in ORDER
             if name not in GRADIENTS}, 0, what=left),
        claims.trend("c", {name: moves[name] for name in ORDER[2:]}, what="G7"),
        claims.above("c/local", local, 0, what="G7, what is left to the bound"),
        claims.above("12/collapse", collapse, 0, what="worst accuracy, what is left to the bound"),
        claims.above("12", of(UNIVERSAL, "own") - of(UNIVERSAL, "worst"), 0.2,
                     what="accuracy under the universal direction less the worst"),
        claims.above("12/random", {"gain below 0.1": 0.1 - gain(RANDOM),
                                   "a third of FGM's less it": gain(FGM) / 3 - gain(RANDOM)},
                     0, what=left),
        claims.above("12/leak", leaks | {"after FGM, above 0.85": of(FGM, "clean") - 0.85}, 0,
                     what=left),
        claims.above("purified", purified | {"control: 1.2 less its fall": 1.2 - kept}, 0,
                     what=left),
        claims.below("order", float(ends["disorder"].sum()) if len(ends) else None, 0.5,
                     what="test points that are certified and broken, of all runs,"),
    ]  # fmt: skip
