"""Toy figure: the mean square of n normal numbers is 1, within noise (the law of large numbers)."""

import altair as alt
import numpy as np
import polars as pl
import torch

from advlab import lab
from advlab.core.randomness import generators, normal
from advlab.report import Verdict

ABOUT = lab.About(
    paper="toy",
    item="Figure 0",
    title="Mean squares",
    seconds={"smoke": 1, "laptop": 20},
    claims={"mean": "the mean square of normal numbers is 1"},
)


class Case(lab.Case):
    size: int

    @property
    def cost(self) -> float:
        return float(self.size)


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    sizes = (40, 60) if scale == "smoke" else (200, 300)
    return [Case(size=size, **block) for size in sizes for block in lab.blocks(seeds or 4, 2)]


def compute(case: Case) -> lab.Computed:
    rngs = generators("toy", case.size, seeds=case.seeds)
    x = normal(torch.empty(case.replicates * case.size, case.size, dtype=torch.float64), rngs)
    stack = x.reshape(case.replicates, case.size, case.size)
    product = stack @ stack.mT
    spectrum = np.stack([np.linalg.svd(one, compute_uv=False) for one in stack.numpy()])
    table = pl.DataFrame(
        {
            "seed": list(case.seeds),
            "square": product.diagonal(dim1=1, dim2=2).mean(1).numpy() / case.size,
            "largest": spectrum[:, 0],
        }
    )
    return lab.Computed(table, {"product": product.numpy(), "spectrum": spectrum})


def figure(table: pl.DataFrame) -> alt.Chart:
    return alt.Chart(table).mark_point().encode(x="size:Q", y="square:Q")


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    mean = float(table["square"].to_numpy().mean())
    return [
        Verdict(
            id="mean",
            claim=ABOUT.claims["mean"].words,
            outcome="supported" if abs(mean - 1) < 0.05 else "refuted",
            measured=mean,
            rule="within 0.05 of 1",
        )
    ]
