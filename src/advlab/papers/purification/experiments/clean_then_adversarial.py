r"""Clean training leaves a dense mixture in every neuron, adversarial training removes it.

Sparse coding $x = M z$, $y = \mathrm{sign} \langle w^*, z \rangle$; networks of symmetric ReLU
pairs. Theorems 5.1 to 5.3: clean training (Algorithm 1) finds the atoms, one per neuron, but adds
to each neuron a small multiple of M w*, the dense mixture of equation (5.1). Together these
mixtures make one direction that needs no model, -y M w*, an attack. Adversarial training from there
(Algorithm 2) hardly turns the neurons: it takes the mixture away (Theorem 5.3c).

Two finite settings at d = 256; the paper's README says where they deviate from the paper, and why.
Rules are on the mean over seeds. "Worst" is the worst case, example by example, over the universal
direction, FGM, and PGD with 40 steps from four starts: an upper bound of the robust accuracy, not a
certificate. Statements of order o(1) are reported with their value and decide nothing here;
`purification/dimension_trends` follows them over d.

Beside adversarial training stand, from the same clean network, the control (as many more clean
steps on the same batches: what theta and G7 are if nothing is learned) and training against FGM
alone, as section 4.2 defines it (Theorem 5.3b). Claims 29 hold the paper's words, "neither learn
new features nor remove existing ones", against neurons that come alive and atoms that they cover.
Draws with a small |<w*, z>| are rejected; claims 1u and 5u say what accuracy is without that.

Claim 20 is section 6.2's reason for the mixture, -<grad_i, M w*> = E[l' G_i |<w*, z>|] >= 0. This
is zero where no example of the batch of 300 opens neuron i: never negative, not always positive.

In the heat maps a row is a neuron, a column an atom, red the sign of w*: noise at first; after
clean training one large coordinate each, on a background that is red everywhere (the dense
mixture); after adversarial training the same large coordinates without it.
"""

import polars as pl

from .... import lab
from ....report import Assumption, Verdict
from ....report.charts import AnyChart
from ._parts.clean_then_adversarial_claims import CLAIMS, decide
from ._parts.clean_then_adversarial_runs import ends, neuron_tables, train, train_others
from ._parts.conditions import REDUCED, assumptions_of, presets_of
from ._parts.neuron_charts import heat_maps, other_coordinates_chart, panel_grid
from ._parts.phase_charts import accuracy_chart, cosine_chart, training_curve
from ._parts.presets import PRESETS
from ._parts.two_phase_runs import MIXED, PURE, START, TINY
from ._parts.two_phase_runs import Case as Case

ABOUT = lab.About(
    paper="purification",
    item="Theorems 5.1-5.3",
    title="Clean training adds dense mixtures, adversarial training removes them",
    seconds={"smoke": 5, "laptop": 150, "paper": 840},
    looks=2,
    reduced=dict.fromkeys(("laptop", "paper"), REDUCED),
    claims=CLAIMS,
)
NAME = "purification/syn_a"
TITLES = {
    START: "Random start: no atom stands out",
    MIXED: "Clean training: one atom and a mixture",
    PURE: "Adversarial training: the mixture is gone",
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
    """Rows by `part`: the curves of training, the ends, the neurons of one seed ("neuron") and,
    of all seeds, how all other coordinates are spread ("floor")."""
    problem = case.problem(NAME)
    trained = train(case, problem)
    others = train_others(case, problem, trained)
    parts = [
        trained.curves,
        others.curves,
        ends(trained, others, problem, case.pgd_steps),
        neuron_tables(trained, problem),
    ]
    return pl.concat(parts, how="diagonal")


def figure(table: pl.DataFrame) -> AnyChart:
    first = table.filter(preset=table["preset"][0])
    one = first.filter(pl.col("seed") == pl.col("seed").min())
    rows = table.filter(part="curve").with_columns(pl.col("preset").replace(NAMES))
    apart = rows.partition_by("preset", as_dict=True, maintain_order=True)
    charts = [
        *heat_maps(one, TITLES),
        other_coordinates_chart(first, list(TITLES), "All other coordinates"),
        *(accuracy_chart(part, f"Accuracy, {name}") for (name,), part in apart.items()),
        training_curve(rows, "dense over top", "preset", title="Dense part over the top atom",
              y_title="dense / top, mean over neurons"),
        *(cosine_chart(part, f"Cosines of neurons, {name}") for (name,), part in apart.items()),
    ]  # fmt: skip
    return panel_grid(charts)


def assumptions(table: pl.DataFrame) -> list[Assumption]:
    return assumptions_of(presets_of(table, PRESETS))


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    return decide(table.filter(part="end"))
