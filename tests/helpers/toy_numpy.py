"""Toy figure without torch, quick to start in other processes: powers of a random matrix.

TOY_LOG names a file that gets a line for each computed case; TOY_FAIL a size whose cases fail.
"""

import os
import time

import altair as alt
import numpy as np
import polars as pl

from advlab import lab
from advlab.report import Verdict

ABOUT = lab.About(
    paper="toy",
    item="Figure 1",
    title="Powers",
    seconds={"laptop": 2},
    claims={"growth": "the largest singular value of a power is below the power of the largest"},
)


class Case(lab.Case):
    size: int
    pause: float = 0.1


def recipe(scale: str, seeds: int | None = None) -> list[Case]:
    return [
        Case(size=size, **block) for size in (150, 200, 250) for block in lab.blocks(seeds or 8, 2)
    ]


def compute(case: Case) -> lab.Computed:
    if log := os.environ.get("TOY_LOG"):
        with open(log, "a") as file:
            file.write(f"{case.key()}\n")
    if os.environ.get("TOY_FAIL") == str(case.size):
        raise RuntimeError(f"size {case.size} is told to fail")
    time.sleep(case.pause)
    draws = [np.random.default_rng([case.size, seed]) for seed in case.seeds]
    a = np.stack([draw.standard_normal((case.size, case.size)) for draw in draws])
    cube = a @ a @ a
    largest = np.linalg.norm(a, 2, axis=(1, 2))
    table = pl.DataFrame(
        {
            "seed": list(case.seeds),
            "largest": largest,
            "ratio": np.linalg.norm(cube, 2, axis=(1, 2)) / largest**3,
        }
    )
    return lab.Computed(table, {"cube": cube})


def figure(table: pl.DataFrame) -> alt.Chart:
    return alt.Chart(table).mark_point().encode(x="size:Q", y="ratio:Q")


def verdicts(table: pl.DataFrame) -> list[Verdict]:
    worst = float(table["ratio"].to_numpy().max())
    return [
        Verdict(
            id="growth",
            claim=ABOUT.claims["growth"].words,
            outcome="supported" if worst <= 1 else "refuted",
            measured=worst,
            rule="no ratio above 1",
        )
    ]
