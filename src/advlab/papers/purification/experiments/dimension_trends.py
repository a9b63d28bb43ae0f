"""The asymptotic claims over d: G1, G2, G7, theta(w0, w), the dense part and the gap to the oracle.

Theorems 5.1 to 5.3 say o(1) as d grows, and their literal thresholds fail at any size that can be
run. What can be seen is the direction. G1 and G2 are the two ratios of Theorem 5.1a (correlation
with the start, correlation of pairs), G7 that of Theorem 5.3c (how far adversarial training moves
the weights), theta the cosine of the introduction's principle of feature purification, and the
average of beta is that of Theorem 5.2. The preset `random` is run at several d with k = d^0.4
(times a constant), tau = 1/sqrt(k), T_c = d, T_g = k^2, a pool of size ~ d and a start of length ~
1 (sigma_0 ~ 1/sqrt(d)); each seed gives a least-squares exponent in d, and the interval is over
seeds. These exponents are reported and decide nothing: no size is inside the theorems' conditions.
Which way they go between the smallest and the largest d of the run is decided as questions of ours
("falls"). Beside G7 and theta stands the control, as many more clean steps.
"""

from copy import deepcopy
from typing import Any

import polars as pl
import torch
from pydantic import PositiveInt

from .... import lab
from ....core.randomness import generators
from ....models import Stack
from ....report import Assumption, Claim, Claims, Verdict, ours, sample, theorem
from ....report.charts import AnyChart, curves, panels
from ....report.samples import slopes
from ..measures import correlations, dense_mixture
from ..measures.worst_case import survival
from ..models import SymmetricReLU
from ._parts.conditions import THEOREMS, assumptions_of
from ._parts.presets import Preset, SparseProblem, scaled

POWERS = {
    "12": "G1",
    "11": "G2",
    "13": "G7",
    "10": "theta(w0, w)",
    "9": "1 - theta(w, w')",
    "7": "beta d/k",
}
"""The quantity whose exponent each claim is about."""
FALLING = tuple(label for label in POWERS if label != "7")
LEVEL = (0.07, 0.14)
"""Within what times k/d the average dense part is asked to stay."""


def _claims() -> dict[str, Claim]:
    limits = {
        label: theorem(words, THEOREMS)
        for label, words in {
            "12": "G1, the correlation with the start, vanishes as d grows",
            "11": "G2, the correlation of pairs, vanishes as d grows",
            "13": "G7, how far adversarial training moves, vanishes as d grows",
            "10": "theta(w0, w) vanishes as d grows",
            "9": "1 - theta(w, w') vanishes as d grows",
            "7": "The average dense part is of the order of k/d",
        }.items()
    }
    falls = {
        f"{label}/falls": ours(f"Over the d of the run {POWERS[label]} falls: exponent below 0")
        for label in FALLING
    }
    return limits | falls | {
        "7/level": ours(f"At each d of the run the average dense part is between {LEVEL[0]} and "
                        f"{LEVEL[1]} times k/d"),
        "6": ours("Over the d of the run the gap of robust accuracy to the oracle falls: its slope "
                  "against log d is below 0"),
    }  # fmt: skip


ABOUT = lab.About(
    paper="purification",
    item="Theorems 5.1, 5.2 and 5.3, over d",
    title="Trends of the asymptotic claims as the dimension grows",
    seconds={"smoke": 6, "laptop": 720, "paper": 900},
    looks=3,
    claims=_claims(),
)
NAME = "purification/trends"


class Case(lab.Case):
    """The scaled preset at one dimension, for a block of seeds."""

    d: PositiveInt
    tests: PositiveInt = 600
    clean_steps: PositiveInt | None = None
    """For trials; the scaled preset's own otherwise."""

    @property
    def cost(self) -> float:
        return self.replicates * (self.d / 256) ** 2.4

    @property
    def preset(self) -> Preset:
        """The preset `random` at this dimension, shortened where `clean_steps` says so."""
        full = scaled(self.d)
        if self.clean_steps is None:
            return full
        few = {
            name: getattr(full, name).model_copy(update={"steps": self.clean_steps})
            for name in ("clean", "adversarial")
        }
        smaller = full.data.model_copy(update={"n": 600})
        return full.model_copy(update=few | {"data": smaller})


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    dims, usual, settings = {
        "smoke": ((16, 24, 32, 48), 2, {"clean_steps": 5, "tests": 20}),
        "laptop": ((1024, 512, 362, 256, 181, 128), 5, {}),
        "paper": ((1024, 724, 512, 362, 256, 181, 128), 5, {}),
    }[scale]
    size = 5 if scale == "smoke" else 1
    return [
        Case(d=d, **settings, **block) for d in dims for block in lab.blocks(seeds or usual, size)
    ]


def compute(case: Case) -> pl.DataFrame:
    problem = SparseProblem.draw(case.preset, case.seeds, f"{NAME}/{case.d}", tests=case.tests)
    nets = problem.networks()
    start = nets.get_parameter("weight").detach().clone()
    problem.train_clean(nets)
    clean = nets.get_parameter("weight").detach().clone()
    more = deepcopy(nets)
    problem.train_adversarial(nets)
    problem.train_control(more)
    robust, control = (one.get_parameter("weight").detach() for one in (nets, more))
    alive = correlations.alive(clean)

    def mean(values: torch.Tensor, keep: torch.Tensor | None = None) -> torch.Tensor:
        return correlations.spread(values, 0.5, keep).mean

    def kept(after: torch.Tensor) -> torch.Tensor:
        either = alive | correlations.alive(after)
        return mean(correlations.theta(clean, after), either)

    mixed = dense_mixture.mixture(dense_mixture.coordinates(clean, problem.M), problem.w)
    columns = {
        "G1": correlations.start_ratio(start, clean),
        "G2": correlations.pair_ratio(clean),
        "G7": correlations.move_ratio(clean, robust),
        "G7 of directions": correlations.turn_ratio(clean, robust, alive),
        "theta(w0, w)": mean(correlations.theta(start, clean), alive),
        "theta(w0, w), all": mean(correlations.theta(start, clean)),
        "1 - theta(w, w')": 1 - kept(robust),
        "G7, control": correlations.move_ratio(clean, control),
        "1 - theta(w, w'), control": 1 - kept(control),
        "beta d/k": mixed.mean_beta_over(case.preset.data.k),
        "alive": alive.double().mean(1),
        **_accuracies(problem, nets),
    }
    return pl.DataFrame(
        {"seed": list(case.seeds), "k": case.preset.data.k, "tau": case.preset.tau}
        | {name: values.double().numpy() for name, values in columns.items()}
    )


def _accuracies(problem: SparseProblem, nets: Stack) -> dict[str, torch.Tensor]:
    """Worst-case accuracy of the trained networks and of the oracle, and what lies between."""
    b = 1 / (2 * problem.preset.data.k**0.5)
    oracles = Stack(
        [SymmetricReLU((M * w).mT, b) for M, w in zip(problem.M, problem.w, strict=True)]
    )

    def worst(model: Stack) -> torch.Tensor:
        rng = generators(NAME, "attack", seeds=problem.seeds)
        found = survival(
            model, problem.test_x, problem.test_y, problem.preset.ball, problem.direction, rng
        )
        return found.accuracies()["worst"]

    ours, best = worst(nets), worst(oracles)
    return {"robust": ours, "oracle": best, "oracle gap": best - ours}


def figure(table: pl.DataFrame) -> AnyChart:
    charts: list[AnyChart] = [_power_chart(table, name) for name in POWERS.values()]
    names = {"oracle": "ReLU oracle", "robust": "adversarially trained"}
    accuracy = table.unpivot(list(names), index=["d", "seed"], variable_name="classifier")
    charts.append(
        curves(
            accuracy.with_columns(pl.col("classifier").replace_strict(names)), "d", "value",
            "classifier", title="robust accuracy at tau (upper bounds)", x_title="dimension d",
            y_title="accuracy, worst of all attacks", log_x=True,
        )
    )  # fmt: skip
    return panels(charts, columns=3).resolve_scale(color="independent", y="independent")


def _power_chart(table: pl.DataFrame, name: str) -> AnyChart:
    """A quantity over d; with that of the control where there is one."""
    title = f"{name}: d^{_mean(slopes(table, 'd', name)):.2f}"
    words: dict[str, Any] = {"title": title, "x_title": "dimension d", "y_title": name}
    control = f"{name}, control"
    if control not in table.columns:
        return curves(table, "d", name, log_x=True, log_y=True, **words)
    long = table.unpivot([name, control], index=["d", "seed"], variable_name="training")
    kinds = {name: "adversarial", control: "more clean steps"}
    long = long.with_columns(pl.col("training").replace_strict(kinds))
    return curves(long, "d", "value", "training", log_x=True, log_y=True, **words)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    sizes = table["d"].unique().sort().to_list()
    return assumptions_of({f"d = {d}": scaled(d) for d in sizes})


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims = Claims(ABOUT.claims)
    found = [
        claims.trend(label, slopes(table, "d", name), what=f"exponent of {name} in d")
        for label, name in POWERS.items()
    ]
    falling = [
        claims.below(f"{label}/falls", slopes(table, "d", POWERS[label]), 0,
                     what=f"exponent of {POWERS[label]} in d")
        for label in FALLING
    ]  # fmt: skip
    level = claims.within("7/level", sample(table, "beta d/k", by="d"), *LEVEL,
                          what="average dense part over k/d")  # fmt: skip
    gap = claims.below("6", gap_slopes(table), 0, what="slope of the oracle gap against log d")
    return [*found, *falling, level, gap]


def gap_slopes(table: pl.DataFrame) -> list[float]:
    """One slope per seed; linear in the gap, which may be zero or below."""
    risen = table.with_columns(pl.col("oracle gap").exp())
    return slopes(risen, "d", "oracle gap")
