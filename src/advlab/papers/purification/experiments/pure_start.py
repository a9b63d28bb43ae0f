"""Clean training adds the dense mixture even to neurons that start pure.

Two neurons per atom start at 0.8 sign(w*_j) M_j with a little noise: the features that robust
training wants. Clean training keeps them, and yet adds the dense mixture to each: the paper says so
of biases and features tuned to the dictionary (section 4.1, footnote 8; Figure 9), with the reason
of section 6.2. The network that was robust by design no longer is. Adversarial training takes the
mixture away again (Theorem 5.3).

The preset `dictionary` at d = 256; "worst" as in `purification/clean_then_adversarial`, an upper
bound of the robust accuracy.
"""

import polars as pl

from .... import lab
from ....report import Assumption, Claims, Verdict, empirical, identity, sample
from ....report.charts import AnyChart
from .. import measures
from ._parts.clean_then_adversarial_runs import Trained, neuron_tables, train
from ._parts.conditions import REDUCED, assumptions_of
from ._parts.neuron_charts import heat_maps, other_coordinates_chart, panel_grid
from ._parts.phase_charts import accuracy_chart, cosine_chart, training_curve
from ._parts.presets import PRESETS, SparseProblem
from ._parts.two_phase_runs import (
    MIXED,
    PURE,
    START,
    TINY,
    UNIVERSAL,
    accuracies_under_attack,
    columns,
    neuron_statistics,
    with_theory_note,
    worst_case_probe,
)
from ._parts.two_phase_runs import Case as Case

ABOUT = lab.About(
    paper="purification",
    item="Footnote 8 of section 4.1, and Figure 9",
    title="Clean training adds dense mixtures to neurons that start pure",
    seconds={"smoke": 3, "laptop": 40, "paper": 360},
    looks=1,
    reduced=dict.fromkeys(("laptop", "paper"), REDUCED),
    claims={
        "19s": identity("Neurons start without a dense part: it is within 0.5 of 0"),
        "19a": empirical("Clean training gives them one of more than 4"),
        "19b": empirical("and makes the network fall to attacks: its worst accuracy is below 0.55, "
                         "more than 0.1 below that of the start"),
        "19c": empirical("while more than 0.99 of clean inputs are classified"),
        "19d": empirical("Adversarial training takes the dense part to less than 1, and to less "
                         "than a quarter"),
        "19e": empirical("and the worst accuracy to more than 0.7"),
    },
)  # fmt: skip
NAME = "purification/syn_c"
TITLES = {
    START: "Start: one atom each",
    MIXED: "Clean training: a mixture appears",
    PURE: "Adversarial training: it is gone",
}


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    usual, some = {"smoke": (2, TINY), "laptop": (5, {}), "paper": (10, {})}[scale]
    return [Case(preset="dictionary", **some, **block) for block in lab.blocks(seeds or usual, 5)]


def compute(case: Case) -> pl.DataFrame:
    """Rows by `part`, as those of `purification/clean_then_adversarial`."""
    problem = case.problem(NAME)
    trained = train(case, problem, worst_case_probe(problem, steps=case.pgd_steps // 2))
    return pl.concat(
        [trained.curves, _ends(trained, problem, case.pgd_steps), neuron_tables(trained, problem)],
        how="diagonal",
    )


def _ends(trained: Trained, problem: SparseProblem, steps: int) -> pl.DataFrame:
    nets: dict[str, measures.Nets] = {
        "start": trained.start, "clean": trained.clean, "adversarial": trained.adversarial
    }  # fmt: skip
    found = {}
    for name, net in nets.items():
        found |= columns(
            accuracies_under_attack(problem, net, steps) | neuron_statistics(problem, net),
            f"{name}: ",
        )
    return pl.DataFrame({"part": "end", "seed": list(problem.seeds)} | found)


def figure(table: pl.DataFrame) -> AnyChart:
    rows = table.filter(part="curve")
    one = table.filter(pl.col("seed") == pl.col("seed").min())
    charts = [
        *heat_maps(one, TITLES),
        other_coordinates_chart(table, list(TITLES), "All other coordinates"),
        training_curve(rows, "dense over top", title="Dense part over the top atom",
              y_title="dense / top, mean over neurons"),
        accuracy_chart(rows, "Accuracy", ["no attack", UNIVERSAL, "worst"]),
        cosine_chart(rows, "Cosines of neurons"),
    ]  # fmt: skip
    return panel_grid(charts)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    return assumptions_of({"dictionary": PRESETS["dictionary"]})


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims, rows = Claims(ABOUT.claims), table.filter(part="end")

    def of(column: str) -> pl.Series:
        return sample(rows, column)  # type: ignore[return-value]

    dense, worst = "mean dense/top", "worst accuracy at tau"
    mixed, pure = of("clean: dense over top"), of("adversarial: dense over top")
    fallen = {
        "worst accuracy below 0.55": 0.55 - of("clean: worst"),
        "lost since the start, above 0.1": of("start: worst") - of("clean: worst") - 0.1,
    }
    gone = {"dense/top below 1": 1 - pure, "a quarter of the clean one less it": mixed / 4 - pure}
    left = "what is left to the bound"
    return [
        claims.equal("19s", of("start: dense over top"), 0, 0.5, what=f"{dense} at the start"),
        claims.above("19a", mixed, 4, what=f"{dense} after clean training"),
        with_theory_note(claims.above("19b", fallen, 0, what=left), "dictionary"),
        claims.above("19c", of("clean: clean"), 0.99, what="clean accuracy after clean training"),
        claims.above("19d", gone, 0, what=left),
        with_theory_note(
            claims.above(
                "19e", of("adversarial: worst"), 0.7, what=f"{worst} after adversarial training"
            ),
            "dictionary",
        ),
    ]
