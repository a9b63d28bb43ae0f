"""Specimen of Theorem 4.1's experiment."""

import math
from itertools import product

import numpy as np
import polars as pl
from nulls import Null, Specimen

from advlab.papers.convergence.experiments import best_in_ball
from advlab.papers.convergence.experiments._parts.best_in_ball_runs import REACHES, STAR
from advlab.papers.convergence.experiments._parts.two_layer_runs import PASSES_PER_STEP


def filled(table: pl.DataFrame, where: pl.Expr, **values: object) -> pl.DataFrame:
    """Other values in some rows."""
    return table.with_columns(
        pl.when(where).then(value).otherwise(pl.col(name)).cast(table[name].dtype).alias(name)
        for name, value in values.items()
    )


def _in_ball_rows() -> pl.DataFrame:
    """Nine maps, each depth and R: A* ends at the best loss found, others below it."""
    rng, rows = np.random.default_rng(3), []
    cells = list(product(best_in_ball.DEPTHS, REACHES))
    for m, (H, reach), seed in product(best_in_ball.WIDTHS, cells, range(best_in_ball.DRAWS)):
        linear = 0.6 / reach + 0.01 * rng.standard_normal()
        found = linear - 0.06 * m**-0.5 * (1 + 0.1 * rng.standard_normal())
        shared = {"kind": "widths", "width": m, "depth": H, "R": reach / H, "seed": seed,
                  "rate": 1.0, "first": 1.0, "start": 1.0, "found": found, "linear": linear,
                  "bound": linear - 1e-9, "linear found": linear + 3e-4}  # fmt: skip
        for attack in (*PASSES_PER_STEP, STAR):
            sharp = attack == STAR
            least = found + (2e-4 if sharp else -0.1) * (1 + 0.1 * rng.standard_normal())
            left = {"pgd": 0.008, "identity": 0.05, STAR: 0.001}.get(attack, math.nan)
            rows.append({**shared, "attack": attack, "least": least,
                         "early": least + 0.06 * rng.uniform(0.9, 1.1),
                         "robust": found + left * rng.uniform(0.9, 1.1)})  # fmt: skip
    draws, accuracies = range(best_in_ball.DRAWS), best_in_ball.RATES["eps"]
    for eps, reach, seed in product(accuracies, REACHES, draws):
        shared = {"kind": "rates", "width": 1024, "depth": 1, "R": reach, "seed": seed, "eps": eps,
                  "rate": 1.0, "promised": (reach / eps) ** 2, "first": 1.0,
                  "found": 0.5}  # fmt: skip
        for attack in (*PASSES_PER_STEP, STAR):
            needed = (reach / eps) ** 2 * (eps / 0.2) ** 0.5 / 4 * rng.uniform(0.95, 1.05)
            slow = attack == STAR
            rows.append({**shared, "attack": attack, "needed": needed if slow else needed / 2,
                         "least": 0.5 - (0.01 if slow else 0.1) * rng.uniform(0.9, 1.1),
                         })  # fmt: skip
    return pl.DataFrame(rows, infer_schema_length=None)


def in_ball() -> Specimen:
    """All widths, and the theorem's own rates."""
    table = _in_ball_rows()
    widths, rates = pl.col("kind") == "widths", pl.col("kind") == "rates"
    pgd, wide = pl.col("attack") == "pgd", widths & (pl.col("width") == 4096)
    deep = (pl.col("depth") == 4) & (pl.col("R") == 0.5)
    found, star = pl.col("found"), pl.col("attack") == STAR
    cell, m = deep & star, pl.col("width").cast(float)
    away, linear = found - pl.col("linear"), pl.col("linear")

    def put(where: pl.Expr, breaks: tuple[str, ...], **values: object) -> Null:
        return Null(filled(table, where, **values), breaks)

    untrained = {"least": pl.col("first"), "robust": pl.when(pgd).then("start")}
    no_training = {
        f"no training at H = {H}, R = {reach:g}/H": put(
            widths & (pl.col("depth") == H) & (pl.col("R") == reach / H),
            ("4a", "4b", "4c", "4f"), **untrained)
        for H, reach in product(best_in_ball.DEPTHS, REACHES)
    }  # fmt: skip
    return Specimen(
        table=table,
        measured=("first", "start", "least", "early", "robust", "found", "linear", "bound",
                  "linear found", "needed"),
        controls={
            **no_training,
            "a quarter of the steps": put(
                widths, ("4a", "4b", "4f"), least=pl.col("early")),
            "a rule that a quarter of the steps would meet": put(
                widths, ("4g",), early=pl.col("least") + 0.004),
            "one attack that does not converge": put(
                cell & widths, ("4a", "4b", "4f"), least=found + 0.02),
            "a run that diverged": put(
                cell & widths, ("4a", "4b", "4f"), least=float("nan")),
            "one width that does not get there": put(
                widths & (pl.col("width") == 256) & cell, ("4f",), least=found + 0.02),
            "a search that misses the best network": put(
                widths, ("4b", "4d", "4s"), least=pl.col("least") + 0.02, found=found + 0.02),
            "an attack in training that misses the worst points": put(
                pgd & wide & deep, ("4c",), robust=found + 0.05),
            "a worst case that is not a number": put(pgd & wide & deep, ("4c",), robust=math.nan),
            "clean training that is robust": put(
                (pl.col("attack") == "identity") & wide, ("4n",), robust=found + 0.01),
            "a network that is not linear at any width": put(
                widths, ("4d", "4e"), found=linear - 0.02),
            "a network that is its linearisation": put(widths, ("4s",), found=linear + 1e-4),
            "a linearised optimum that is not closed in on": put(
                wide, ("4d",), **{"linear found": linear + 0.03}),
            "the exponent -1/12": put(widths, ("4e",), found=linear + away * m ** (5 / 12)),
            "no training at the theorem's rate": put(
                rates, ("4t", "4u", "4v"), least=found + 1.5 * pl.col("eps"), needed=math.nan),
            "one map that is not there after T steps": put(
                rates & star & (pl.col("eps") == 0.05), ("4t", "4u", "4v"),
                least=found + 1.5 * pl.col("eps"), needed=math.nan),
            "steps like eps^-2": put(
                rates & star, ("4v",), needed=0.3 * pl.col("promised")),
            "T steps and no fewer": put(
                rates & star, ("4u", "4v"), needed=0.9 * pl.col("promised")),
        },
    )  # fmt: skip
