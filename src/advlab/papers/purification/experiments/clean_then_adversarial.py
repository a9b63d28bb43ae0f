"""Syn A: clean training leaves a dense mixture in every neuron, adversarial training removes it.

Sparse coding x = M z, y = sign <w*, z>; networks of symmetric ReLU pairs. Theorems 5.1-5.3: clean
training (Algorithm 1) finds the atoms, one a neuron, but adds to each neuron a small multiple of
M w*. The sum of these dense parts makes one model-free direction, -y M w*, an attack. Adversarial
training from there (Algorithm 2) hardly turns the neurons: it takes the dense part away.

Two finite presets at d = 256 (docs/purification.md lists where they leave the paper); the rules are
those the digest made for them, on the mean over seeds. "Worst" is the worst case, example by
example, over the universal direction, FGM, and PGD with 40 steps from four starts: an upper bound
of the robust accuracy, not a certificate. Statements of order o(1) are reported with their value
and decide nothing here; `purification/trends` follows them over d.

Claim 20 follows from an identity, -<grad_i, M w*> = E[l' G_i |<w*, z>|] >= 0. This is zero where no
example of the batch of 300 opens neuron i: the push is never negative, but not always there.

In the maps a row is a neuron, a column an atom, red the sign of w*: noise at first; after clean
training one strong coordinate each, in a veil that is red everywhere; after adversarial training
the same strong coordinates without the veil.
"""

import polars as pl

from .... import lab
from ....report import Verdict
from ....report.charts import AnyChart
from ._parts.clean_then_adversarial_claims import CLAIMS, decide
from ._parts.clean_then_adversarial_runs import ends, pictured, train
from ._parts.neuron_charts import floor_chart, framed, maps
from ._parts.phase_charts import accuracies, along, cosines
from ._parts.two_phase_runs import MIXED, PURE, START, TINY
from ._parts.two_phase_runs import Case as Case

ABOUT = lab.About(
    paper="purification",
    item="Theorems 5.1-5.3, experiment Syn A",
    title="Adversarial training cleans the neurons of a clean network",
    seconds={"smoke": 5, "laptop": 480, "paper": 960},
    claims=CLAIMS,
)
NAME = "purification/syn_a"
TITLES = {
    START: "Random start: no atom stands out",
    MIXED: "Clean training: one atom each, and a veil",
    PURE: "Adversarial training: the veil is gone",
}
NAMES = {"random": "random", "wide_margin": "wide margin"}


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    usual, some = {"smoke": (2, TINY), "laptop": (5, {}), "paper": (10, {})}[scale]
    return [
        Case(preset=preset, **some, **block)
        for block in lab.blocks(seeds or usual, 5)
        for preset in ("random", "wide_margin")
    ]


def compute(case: Case) -> pl.DataFrame:
    """Rows by `part`: curves along training, ends, neurons of one seed and floors of all."""
    world = case.world(NAME)
    trained = train(case, world)
    parts = [trained.curves, ends(trained, world, case.walk), pictured(trained, world)]
    return pl.concat(parts, how="diagonal")


def figure(table: pl.DataFrame) -> AnyChart:
    first = table.filter(preset=table["preset"][0])
    one = first.filter(pl.col("seed") == pl.col("seed").min())
    rows = table.filter(part="curve").with_columns(pl.col("preset").replace(NAMES))
    apart = rows.partition_by("preset", as_dict=True, maintain_order=True)
    charts = [
        *maps(one, TITLES),
        floor_chart(first, list(TITLES), "All other coordinates"),
        *(accuracies(part, f"Accuracy, {name}") for (name,), part in apart.items()),
        along(rows, "dense over top", "preset", title="Dense part over the top atom",
              y_title="dense / top, mean over neurons"),
        *(cosines(part, f"Cosine of neurons with, {name}") for (name,), part in apart.items()),
    ]  # fmt: skip
    return framed(charts)


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    return decide(table.filter(part="end"))
