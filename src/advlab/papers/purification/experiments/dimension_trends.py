"""The asymptotic claims over d: G1, G2, G7, theta(w0, w), the dense part and the gap to the oracle.

The theorems say o(1) as d grows, and their literal thresholds fail at any size that can be run.
What can be seen is the direction. The preset `random` is run at several d with k = d^0.4 (times a
constant), tau = 1/sqrt(k), T_c = d and T_g = k^2; each seed gives a least-squares exponent in d,
and the interval is over seeds. These exponents are reported and decide nothing.
"""

import polars as pl
import torch
from pydantic import PositiveInt

from .... import lab
from ....core.randomness import generators
from ....models import Stack
from ....report import Verdict, trend
from ....report.charts import AnyChart, curves, panels
from ....report.samples import slopes
from ..measures import correlations, dense_mixture
from ..measures.worst_case import survival
from ..models import SymmetricReLU
from ._parts.presets import Preset, World, scaled

ABOUT = lab.About(
    paper="purification",
    item="Theorems 5.1 and 6.1, over d",
    title="Trends of the asymptotic claims as the dimension grows",
    seconds={"smoke": 6, "laptop": 600, "paper": 6000},
    claims={
        "purification/12/trend": "G1, the correlation with the start, vanishes as d grows",
        "purification/11/trend": "G2, the correlation of pairs, vanishes as d grows",
        "purification/13/trend": "G7, how far adversarial training moves, vanishes as d grows",
        "purification/10/trend": "theta(w0, w) vanishes as d grows",
        "purification/9/trend": "1 - theta(w, w') vanishes as d grows",
        "purification/7/trend": "The average dense part is of the order of k/d",
        "purification/6/trend": "The gap of robust accuracy to the oracle vanishes as d grows",
    },
)
NAME = "purification/trends"


class Case(lab.Case):
    d: PositiveInt
    tests: PositiveInt = 1000
    clean_steps: PositiveInt | None = None
    """For trials; the scaled preset's own otherwise."""

    @property
    def cost(self) -> float:
        return self.replicates * (self.d / 256) ** 3

    @property
    def preset(self) -> Preset:
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
        "laptop": ((384, 256, 192, 128, 96), 5, {}),
        "paper": ((1024, 724, 512, 362, 256, 181, 128), 5, {}),
    }[scale]
    size = 1 if scale == "paper" else 5
    return [
        Case(d=d, **settings, **block) for d in dims for block in lab.blocks(seeds or usual, size)
    ]


def compute(case: Case) -> pl.DataFrame:
    world = World.draw(case.preset, case.seeds, f"{NAME}/{case.d}", tests=case.tests)
    nets = world.networks()
    start = nets.get_parameter("weight").detach().clone()
    world.train_clean(nets)
    clean = nets.get_parameter("weight").detach().clone()
    world.train_adversarial(nets)
    robust = nets.get_parameter("weight").detach()
    alive = correlations.alive(clean)

    def over_alive(values: torch.Tensor) -> torch.Tensor:
        return correlations.spread(values, 0.5, alive).mean

    mixed = dense_mixture.mixture(dense_mixture.coordinates(clean, world.M), world.w)
    columns = {
        "G1": correlations.start_ratio(start, clean),
        "G2": correlations.pair_ratio(clean),
        "G7": correlations.move_ratio(clean, robust),
        "G7 of directions": correlations.turn_ratio(clean, robust, alive),
        "theta(w0, w)": over_alive(correlations.theta(start, clean)),
        "1 - theta(w, w')": 1 - over_alive(correlations.theta(clean, robust)),
        "beta d/k": mixed.mean_beta_over(case.preset.data.k),
        "alive": alive.double().mean(1),
        **_accuracies(world, nets),
    }
    return pl.DataFrame(
        {"seed": list(case.seeds), "k": case.preset.data.k, "tau": case.preset.tau}
        | {name: values.double().numpy() for name, values in columns.items()}
    )


def _accuracies(world: World, nets: Stack) -> dict[str, torch.Tensor]:
    """Worst-case accuracy of the trained networks and of the oracle, and what lies between."""
    b = 1 / (2 * world.preset.data.k**0.5)
    oracles = Stack([SymmetricReLU((M * w).mT, b) for M, w in zip(world.M, world.w, strict=True)])
    direction = dense_mixture.label_direction(world.M, world.w)

    def worst(model: Stack) -> torch.Tensor:
        rng = generators(NAME, "attack", seeds=world.seeds)
        found = survival(model, world.test_x, world.test_y, world.preset.ball, direction, rng)
        return found.accuracies()["worst"]

    ours, best = worst(nets), worst(oracles)
    return {"robust": ours, "oracle": best, "oracle gap": best - ours}


POWERS = {
    "purification/12/trend": "G1",
    "purification/11/trend": "G2",
    "purification/13/trend": "G7",
    "purification/10/trend": "theta(w0, w)",
    "purification/9/trend": "1 - theta(w, w')",
    "purification/7/trend": "beta d/k",
}


def figure(table: pl.DataFrame) -> AnyChart:
    long = table.unpivot(index=["d", "seed"], on=[*POWERS.values(), "G7 of directions"])
    charts: list[AnyChart] = [
        curves(
            long.filter(pl.col("variable") == name), "d", "value",
            title=f"{name}: d^{_mean(slopes(table, 'd', name)):.2f}", x_title="dimension d",
            y_title=name, log_x=True, log_y=True,
        )
        for name in POWERS.values()
    ]  # fmt: skip
    accuracy = table.unpivot(
        index=["d", "seed"], on=["oracle", "robust"], variable_name="classifier"
    ).with_columns(
        pl.col("classifier").replace_strict(
            {"oracle": "ReLU oracle", "robust": "adversarially trained"}
        )
    )
    charts.append(
        curves(
            accuracy, "d", "value", "classifier", title="robust accuracy at tau (upper bounds)",
            x_title="dimension d", y_title="accuracy, worst of all attacks", log_x=True,
        )
    )  # fmt: skip
    return panels(charts, columns=3).resolve_scale(color="independent", y="independent")


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims = ABOUT.claims
    found = [
        trend(id, claims[id], slopes(table, "d", name), what=f"exponent of {name} in d")
        for id, name in POWERS.items()
    ]
    gap = "purification/6/trend"
    return [
        *found,
        trend(gap, claims[gap], gap_slopes(table), what="slope of the oracle gap against log d"),
    ]


def gap_slopes(table: pl.DataFrame) -> list[float]:
    """Of each seed; linear in the gap, which may be zero or below."""
    risen = table.with_columns(pl.col("oracle gap").exp())
    return slopes(risen, "d", "oracle gap")
