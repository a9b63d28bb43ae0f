"""Gradient descent lowers the loss on the examples of any attack at all (Theorem 5.1).

The theorem: a wide two-layer network, trained by gradient descent on the examples of a perturbation
function A, has min_t L_A(W_t) <= L_*(W_*) + eps, whatever A is. Networks are trained against eight
maps into the cap: clean inputs, random points, one fixed copy, FGM, PGD, the points of least loss,
a map that jumps from the worst point to the best with the last digits of the loss, and what fools
other networks. The theorem asks of an attack only that it stays in the cap, so the smallest loss so
far, min_{s <= t} L_A(W_s), must fall for each.

The matrix asks the other question: which attacks a network trained on one withstands. Its column
`oracle` searches the whole cap, so it is the worst-case loss L_*.
"""

import numpy as np
import polars as pl
import torch
from torch import nn

from .... import lab
from ....core.randomness import generator
from ....reductions.gram import Layers
from ....report import Claims, Verdict, undecide
from ....report.charts import AnyChart, curves, panels
from ....report.matrix import matrix
from ....report.samples import ends, groups
from ._parts.two_layer_runs import MAPS, PASSES_PER_STEP, loss_under, train
from ._parts.two_layer_runs import Case as Case

ABOUT = lab.About(
    paper="convergence",
    item="Theorem 5.1",
    title="Adversarial training converges whatever the attack",
    seconds={"smoke": 5, "laptop": 520, "paper": 1800},
    looks=2,
    claims={
        "1": "In 1500 steps the loss on any attack's own examples falls to 5 %",
        "1T": "In 3000 steps it does",
        "2": "The paired network is zero at its start",
        "b": "Training on clean inputs leaves a larger worst-case loss than PGD's",
    },
)
NAME = "convergence/a1 decisive"
EVALUATED_WITH = ("identity", "random", "fgm", "pgd", "oracle")
TINY = 1e-5
"""The figure's log axis ends here."""


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    widths, usual, settings = {
        "smoke": ((8,), 2, {"steps": 20, "searched": 10}),
        "laptop": ((64, 256, 1024, 4096), 20, {"steps": 3000}),
        "paper": ((64, 256, 1024, 4096, 16384), 20, {"steps": 3000}),
    }[scale]
    return [
        Case(attack=attack, width=width, **settings, **block)
        for block in lab.blocks(seeds or usual, 20)
        for width in sorted(widths, reverse=True)
        for attack in PASSES_PER_STEP
    ]


def compute(case: Case) -> pl.DataFrame:
    """The loss and the smallest so far at some steps; at the last one, what other attacks find."""
    start = _largest_output(case)
    run = train(case, NAME)
    losses = run.log.losses().double()
    best = losses.cummin(0).values
    shown = sorted({round(case.steps ** (k / 40)) for k in range(41)} | {0, case.steps // 2})
    rows = pl.concat(
        pl.DataFrame(
            {
                "step": step,
                "seed": list(case.seeds),
                "loss": losses[step].numpy(),
                "best": best[step].numpy(),
                "first": losses[0].numpy(),
                "start": start,
            }
        )
        for step in shown
    )
    evaluated = pl.DataFrame(
        {"step": case.steps, "seed": list(case.seeds)}
        | {f"under {name}": found for name, found in losses_under(case, run.model).items()}
    )
    return rows.join(evaluated, on=["step", "seed"], how="left", maintain_order="left")


def losses_under(case: Case, model: nn.Module) -> dict[str, np.ndarray]:
    """The loss of each network on what other attacks find."""
    attacks = {name: MAPS[name] for name in ("identity", "random", "fgm", "pgd")}
    return {
        name: loss_under(model, attack, case, NAME).double().numpy()
        for name, attack in (attacks | {"oracle": case.oracle}).items()
    }


def _largest_output(case: Case) -> list[float]:
    """max |f(W_0, x)| over points of the sphere, as the plain sum over all units gives it."""
    net = Layers.of(case.networks(NAME, torch.float64))
    x = torch.randn(100, case.d, generator=generator(NAME, "sphere"), dtype=torch.float64)
    z = (x / x.norm(dim=1, keepdim=True)) @ net.weight.mT
    f = (net.activation.phi(z) * net.top).sum(-1)
    return f.abs().amax(1).tolist()


def figure(table: pl.DataFrame) -> AnyChart:
    shown = table.with_columns(pl.col("best").clip(TINY), pl.col("step") + 1)
    charts: list[AnyChart] = [
        curves(
            shown.filter(width=width),
            "step",
            "best",
            "attack",
            title=f"width {width}",
            x_title="iterations",
            y_title="smallest L_A so far",
            log_x=True,
            log_y=True,
        )
        for width in sorted(table["width"].unique())
    ]
    return panels([*charts, _matrix(table)], columns=3)


def _matrix(table: pl.DataFrame) -> AnyChart:
    widest = ends(table).filter(pl.col("width") == pl.col("width").max())
    long = widest.unpivot(
        [f"under {name}" for name in EVALUATED_WITH], index=["attack", "seed"], variable_name="by"
    ).with_columns(pl.col("by").str.strip_prefix("under "))
    return matrix(
        long,
        "by",
        "attack",
        "value",
        title=f"mean loss at the end, width {widest['width'][0]}",
        x_title="evaluated with",
        y_title="trained on",
        value_title="mean loss",
    )


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    claims = Claims(ABOUT.claims)
    least = min(256, int(table["width"].to_numpy().max()))
    wide = table.filter(pl.col("width") >= least)
    last = ends(wide)
    start = float(table["start"].to_numpy().max())
    trained = last.filter(pl.col("attack").is_in(["identity", "pgd"]))
    gaps = trained.pivot(on="attack", index=["width", "seed"], values="under oracle")
    gaps = gaps.with_columns(gap=pl.col("identity") - pl.col("pgd"))
    return [
        _falls(claims, "1", wide.filter(pl.col("step") == pl.col("steps") // 2)),
        _falls(claims, "1T", last),
        claims.below("2", start, 1e-10, what="largest |f(W_0, x)|"),
        claims.above(
            "b",
            groups(gaps, "gap", "width"),
            0,
            what="worst-case loss (oracle) after clean less after PGD training",
        ),
    ]


def _falls(claims: Claims, label: str, rows: pl.DataFrame) -> Verdict:
    """The loss falls to 5 %: in every cell at least 18 of 20 seeds."""
    falls = rows.with_columns(falls=(pl.col("best") <= 0.05 * pl.col("first")).cast(float))
    shares = falls.group_by("attack", "width").agg(pl.col("falls").mean(), pl.len())
    verdict = claims.within(
        label,
        float(shares["falls"].to_numpy().min()),
        0.9,
        1.0,
        what="smallest share, over attacks and widths >= 256, of seeds with min L_A <= 0.05 L_A(0)",
    )
    few = int(shares["len"].to_numpy().min()) < 20
    return undecide(verdict, "the rule asks for 20 seeds") if few else verdict
