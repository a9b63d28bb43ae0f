"""Specimens of the experiments of convergence that train."""

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import polars as pl
from nulls import Null, Specimen
from specimens_convergence_ball import filled as _with
from specimens_convergence_ball import in_ball

from advlab.papers.convergence.experiments import (
    corollary_end_to_end,
    projected_deep,
    regret_audit,
)
from advlab.papers.convergence.experiments._parts.two_layer_runs import PASSES_PER_STEP

EVERYWHERE = pl.lit(True)


def any_attack() -> Specimen:
    """Every attack and width, 20 seeds, half-way and at the end: all fall to 1 %."""
    rng = np.random.default_rng(0)
    table = pl.DataFrame(
        [
            (attack, width, seed, 9, step)
            for attack in PASSES_PER_STEP
            for width in (64, 256, 1024, 4096)
            for seed in range(20)
            for step in (4, 9)
        ],
        schema=["attack", "width", "seed", "steps", "step"],
        orient="row",
    )
    clean = pl.col("attack") == "identity"
    table = table.with_columns(
        first=pl.lit(0.4), best=pl.lit(0.004), loss=pl.lit(0.004), start=pl.lit(1e-15),
    ).with_columns(
        pl.Series("under oracle", 0.02 + 0.001 * rng.standard_normal(table.height))
        + pl.when(clean).then(0.01).otherwise(0.0),
    )  # fmt: skip
    seed, step = pl.col("seed"), pl.col("step")
    four = (pl.col("attack") == "pgd") & (pl.col("width") == 4096) & (seed < 4)
    return Specimen(
        table=table,
        measured=("first", "best", "loss", "start", "under oracle"),
        chance={"best": 0.2, "first": 0.2},
        perfect={"first": 0.4, "best": 0.4},
        controls={
            "half of the steps": Null(_with(table, step == 4, best=0.1), ("1",)),
            "no training": Null(_with(table, EVERYWHERE, best=pl.col("first")), ("1", "1T")),
            "4 of 20 draws that stay above": Null(_with(table, four, best=0.1), ("1", "1T")),
            "clean training twice": Null(
                table.with_columns(
                    pl.Series("under oracle", 0.02 + 0.001 * rng.standard_normal(table.height))
                ),
                ("b",),
            ),
        },
        bugs={
            "pairs that do not cancel": Null(_with(table, EVERYWHERE, start=1e-7), ("2",)),
        },
    )


def lazy_regime() -> Specimen:
    """Four widths and the limit, 20 seeds, early and at the last step."""
    rng = np.random.default_rng(1)
    rows = [
        (False, width, seed, step, 5, 0.6, 0.15, *(step / 5 * (1 + 0.02 * rng.standard_normal(3))))
        for width in (64, 256, 1024, 4096)
        for seed in range(20)
        for step in (0.1, 5)
    ]
    rows += [(True, 4096, seed, 5, 5, 0.6, 0.15, 1.0, None, None) for seed in range(20)]
    names = ["limit", "width", "seed", "step", "steps", "separation", "radius"]
    names += ["frobenius", "relative", "row"]
    table = pl.DataFrame(rows, schema=names, orient="row")
    m = pl.col("width")

    def powers(frobenius: float, relative: float, row: float) -> pl.DataFrame:
        finite = ~pl.col("limit")
        return _with(
            table, finite,
            frobenius=pl.col("frobenius") * 4 * (m / 4096) ** frobenius,
            relative=pl.col("relative") * m**relative, row=pl.col("row") * m**row,
        ).with_columns(
            pl.when(pl.col("limit")).then(4.0).otherwise("frobenius").alias("frobenius")
        )  # fmt: skip

    good = powers(0.0, -0.5, -0.4)
    return Specimen(
        table=good,
        measured=("frobenius", "relative", "row"),
        controls={
            "weights that move like those of narrow networks": Null(
                powers(0.5, 0.0, 0.1), ("8a", "8b", "8c")
            ),
            "the exponent -1/3": Null(powers(0.0, -1 / 3, -0.4), ("8a",)),
            "the exponent -2/3": Null(powers(-1 / 6, -2 / 3, -0.4), ("8a", "8b")),
            "a kernel without its 1/n": Null(_with(good, pl.col("limit"), frobenius=4.5), ("8d",)),
        },
    )


def audits() -> Specimen:
    """Two-layer runs, the wide one among them, and deep ones, at the first and the last step."""
    rng = np.random.default_rng(2)
    rows = [
        (depth, None if depth == 0 else 1.0, attack, width, rate, seed, step, 1810,
         0.4 if step == 1 else 0.01, 0.01, 0.05, 0.06 + 0.001 * rng.random(), 1e-14, 0)
        for depth, width, rate in ((0, 1024, 0.5), (0, 16384, 0.05), (2, 256, 0.3))
        for attack in ("pgd", "random")
        for seed in range(5)
        for step in (1, 1810)
    ]  # fmt: skip
    names = ["depth", "R", "attack", "width", "rate", "seed", "step", "steps", "loss", "best",
             "mean_loss", "bound", "residual", "violations"]  # fmt: skip
    table = pl.DataFrame(rows, schema=names, orient="row")
    two = pl.col("depth") == 0
    table = table.with_columns(
        theorem=pl.when(two).then(0.2 + 0.001 * pl.col("seed")),
        slack=pl.when(two).then(0.001),
    )
    assert regret_audit.WIDE["width"] == 16384
    return Specimen(
        table=table,
        measured=("loss", "best", "mean_loss", "bound", "residual", "violations", "theorem",
                  "slack"),
        controls={
            "a step that rises": Null(_with(table, two, slack=-1e-8), ("3",)),
            "a bound without its jitter": Null(_with(table, two, theorem=0.005), ("4",)),
            "a bound without its distance": Null(_with(table, EVERYWHERE, bound=0.045), ("5a",)),
            "a large rate": Null(_with(table, two, theorem=1.05), ("c",)),
        },
        bugs={
            "a gradient that is a little off": Null(
                _with(table, EVERYWHERE, residual=1e-6), ("5b",)),
            "a step that is too long": Null(
                _with(table, pl.col("depth") == 2, violations=3), ("5b",)),
        },
    )  # fmt: skip


LEAST = {1.0: 1.1, 3.0: 0.5, 10.0: 0.02, math.inf: 0.02}
STEPS = ((1.5, 0.0), (1.2, 4.0), (0.4, 4.5), (0.3, 4.6), (0.2, 4.7), (0.1, 4.8), (0.05, 4.9),
         (0.04, 4.95), (0.03, 4.98), (0.02, 5.0), (0.01, 5.0))  # fmt: skip
"""Losses and displacements of a run without projection."""


def _deep_rows(seed: int, wobble: float) -> list[dict]:
    rows = [
        {"kind": "training", "width": width, "depth": depth, "R": R, "seed": seed, "step": step,
         "loss": max(loss, LEAST[R]) * wobble, "displacement": min(way, R),
         "projected": min(way, R) == R}
        for width, depth in ((64, 1), (64, 2), (256, 1))
        for R in LEAST
        for step, (loss, way) in enumerate(STEPS)
    ]  # fmt: skip
    shared = {"seed": seed}
    rows += [
        {"kind": "linearity", "width": m, "depth": depth, "R": R, **shared,
         "residual": R * depth * (m / 64) ** -0.8 * wobble}
        for m in (64, 128, 256, 512)
        for depth in (1, 2, 3)
        for R in (1.0, 3.0)
    ]  # fmt: skip
    rows += [
        {"kind": "worst", "width": m, "depth": 1, "R": R, **shared,
         "residual": 0.65 * R ** (4 / 3) * m ** (-1 / 6) * wobble}
        for m in projected_deep.WORST_WIDTHS
        for R in (0.5, 1.0, 2.0, 4.0)
    ]  # fmt: skip
    rows += [
        {"kind": "depths", "width": m, "depth": depth, "R": 1.0, **shared,
         "residual": 0.3 * depth**1.2 * wobble}
        for m in (64, 256)
        for depth in (1, 2, 3)
    ]  # fmt: skip
    rows.append({"kind": "inputs", "width": 64, "depth": 1, **shared, "masks": 0.0,
                 "difference": 1e-15, "ratio": 0.5})  # fmt: skip
    rows += [
        {"kind": "guard", **shared, "radius": radius, "shared": met, "refused": met}
        for radius, met in ((0.15, False), (0.4, True))
    ]
    return rows


def deep() -> Specimen:
    """20 seeds of every kind of row."""
    noise = np.random.default_rng(0)
    rows = [
        row for seed in range(20) for row in _deep_rows(seed, 1 + 1e-2 * noise.standard_normal())
    ]
    table = pl.DataFrame(rows, infer_schema_length=None)
    kind, R, m = pl.col("kind"), pl.col("R"), pl.col("width")
    training, worst, ten = kind == "training", kind == "worst", R == 10.0
    residual, depth = pl.col("residual"), pl.col("depth")

    def put(where: pl.Expr, breaks: tuple[str, ...], **values: object) -> Null:
        return Null(_with(table, where, **values), breaks)

    return Specimen(
        table=table,
        measured=("loss", "displacement", "projected", "residual", "masks", "difference", "ratio",
                  "refused"),
        controls={
            "other radii": put(
                training, ("6c", "6d"), projected=pl.when(ten).then(True).otherwise(False)),
            "a ball that hurts": put(
                training & (R == 3.0), ("7",), loss=pl.col("loss") + 2.0),
            "the gradient's exponent": put(
                worst, ("9b",), residual=residual * (m / 64.0) ** (-1 / 3)),
            "an exponent of -1/12": put(
                worst, ("9a", "9b"), residual=residual * (m / 64.0) ** (1 / 12)),
            "R^2": put(worst, ("9c",), residual=residual * R ** (2 / 3)),
            "H^3": put(kind == "depths", ("9d",), residual=residual * depth**2),
            "m^(-0.4) along the gradient": put(
                kind == "linearity", ("9e",), residual=residual * (m / 64.0) ** 0.4),
            "a longer move": put(kind == "inputs", ("14c",), ratio=1.01),
        },
        bugs={
            "one layer unprojected": put(
                training & (R == 3.0) & (pl.col("seed") == 3), ("6a",),
                displacement=pl.col("displacement") * 1.0001),
            "a projection that rounds": put(
                training & ten & (pl.col("step") == 1), ("6b",),
                displacement=pl.col("displacement") * (1 + 1e-15)),
            "a unit that differs": put(kind == "inputs", ("14a",), masks=1.0),
            "another pre-activation": put(kind == "inputs", ("14b",), difference=1e-9),
            "a guard that never refuses": put(kind == "guard", ("19a",), refused=False),
        },
    )  # fmt: skip


def corollary() -> Specimen:
    """Ten settings, eight attacks, eight draws: min <= mean <= audited <= proved <= eps."""
    rng = np.random.default_rng(4)
    base, rows = corollary_end_to_end.BASE, []
    moved = [
        {**base, name: value}
        for name, values in corollary_end_to_end.SWEEPS.items()
        for value in values
    ]
    for one, attack, seed in product([base, *moved], PASSES_PER_STEP, range(8)):
        eps, noise = one["eps"], 1 + 0.02 * rng.standard_normal(9)
        chain = {"least": 0.2, "worst": 0.37, "mean": 0.5, "audited": 0.6, "proved": 0.85}
        sizes = {"norm": 1.0, "distance": 1.0, "reached": 0.8, "farthest": 1.2}
        values = {name: eps * value for name, value in chain.items()} | sizes
        noisy = {name: v * w for (name, v), w in zip(values.items(), noise, strict=True)}
        rows.append({**one, "separation": 0.9, "pair": False, "attack": attack, "seed": seed,
                     "violations": 0, "early": 0, **noisy})  # fmt: skip
    rows += [
        {**base, "n": 2, "separation": s, "pair": True, "seed": 0, "norm": (0.35 / s) ** 3 + 1 / s,
         "wanted": (2 / s) ** 24}
        for s in corollary_end_to_end.PAIRS
    ]  # fmt: skip
    types = {"n": pl.Int64, "d": pl.Int64}
    table = pl.DataFrame(rows, schema_overrides=types, infer_schema_length=None)
    cell = (pl.col("d") == 10) & (pl.col("attack") == "anti")
    one = (pl.col("d") == 10) & (pl.col("seed") == 3)
    eps, pair, distance = pl.col("eps"), pl.col("pair"), pl.col("separation")
    return Specimen(
        table=table,
        measured=("least", "worst", "mean", "audited", "violations", "proved", "norm", "distance",
                  "reached", "farthest", "early", "wanted"),
        chance={"least": 0.414, "worst": 0.414, "mean": 0.414, "audited": 0.6, "proved": 0.5,
                "norm": 1.0, "distance": 1.5, "reached": 1.5, "farthest": 6.0},
        controls={
            "no training": Null(
                _with(table, EVERYWHERE, least=0.414, mean=0.414), ("1", "2", "3")),
            "one attack in one setting that stays above": Null(
                _with(table, cell, least=1.1 * eps, mean=1.2 * eps), ("1", "2", "3")),
            "a bound without its distance": Null(
                _with(table, EVERYWHERE, audited=0.45 * eps), ("3",)),
            "an audit that is worse than the proof": Null(
                _with(table, cell, audited=0.9 * eps), ("4",)),
            "a step that is too long, in one run": Null(
                _with(table, cell & (pl.col("seed") == 3), violations=1), ("3",)),
            "one draw whose width is too small for Theorem 5.2": Null(
                _with(table, one, proved=1.01 * eps, worst=0.51 * eps), ("5", "5b")),
            "a network that is not built": Null(
                _with(table, EVERYWHERE, worst=0.414, proved=0.414 + eps / 8), ("5", "5b")),
            "a move of half the length": Null(
                _with(table, EVERYWHERE, distance=pl.col("distance") / 2), ("6",)),
            "a network that is not lazy": Null(
                _with(table, cell, reached=1.3 * pl.col("norm")), ("7",)),
            "a run that leaves before": Null(
                _with(table, cell & (pl.col("seed") == 3), early=1, farthest=3.5), ("8", "8a")),
            "a norm without its caps": Null(_with(table, pair, norm=1.0), ("R",)),
            "a norm that rises where labels could not be nearer": Null(
                _with(table, pair & (distance > 1), norm=0.5 * distance), ("R",)),
            "a width like 1/distance": Null(_with(table, pair, wanted=1000 / distance), ("Rw",)),
            "a run that never gets there": Null(_with(table, cell, reached=float("nan")), ("7",)),
        },
    )  # fmt: skip


TRAINED: dict[str, Callable[[], Specimen]] = {
    "convergence/any_attack": any_attack,
    "convergence/best_in_ball": in_ball,
    "convergence/corollary_end_to_end": corollary,
    "convergence/lazy_regime": lazy_regime,
    "convergence/regret_audit": audits,
    "convergence/projected_deep": deep,
}
