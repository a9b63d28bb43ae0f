"""The picture of what low complexity can do: accuracies by attack, paths, series and tensors."""

import polars as pl

from .....report.charts import AnyChart, curves, panels, points

MODELS = {
    "linear, oracle": "lin.", "linear, trained": "lin. AT", "NTK, clean": "NTK",
    "NTK, adversarial": "NTK AT", "NTK, best trial": "best",
}  # fmt: skip
"""Short, for the legend; AT is adversarial training."""
ATTACKS = {"clean": "no attack", "universal": "universal", "fgm": "FGM", "pgd": "PGD"}
TITLES = {"random": "preset random, tau 0.22", "wide_margin": "preset wide margin, tau 0.30"}


def figure(table: pl.DataFrame) -> AnyChart:
    return panels([*(_accuracies(table, preset) for preset in TITLES), _path(table),
                   _series(table), _tensors(table)], columns=3)  # fmt: skip


def _accuracies(table: pl.DataFrame, preset: str) -> AnyChart:
    """Exact robust accuracies of linear rules stand under PGD."""
    rows = table.filter(pl.col("preset") == preset, pl.col("model").is_in(list(MODELS)))
    rows = rows.with_columns(pl.col("quantity").replace({"robust": "pgd"}))
    rows = rows.filter(pl.col("quantity").is_in(list(ATTACKS)))
    rank, names = list(range(len(ATTACKS))), list(ATTACKS)
    order = pl.col("quantity").replace_strict(names, rank, default=None)
    shade = pl.col("model").replace_strict(list(MODELS), list(range(len(MODELS))), default=None)
    rows = rows.sort(order, shade, maintain_order=True)
    return points(
        rows.with_columns(pl.col("quantity").replace(ATTACKS), pl.col("model").replace(MODELS)),
        "quantity",
        "value",
        "model",
        title=TITLES[preset],
        x_title="attack (linear rules: exact)",
        y_title="accuracy",
    )


def _path(table: pl.DataFrame) -> AnyChart:
    """Clean and robust accuracy of preset random; the radius grows over the first 150 steps."""
    rows = table.filter(pl.col("model") == "linear path", pl.col("preset") == "random")
    return curves(
        rows.sort("quantity", maintain_order=True).rename({"quantity": "accuracy"}),
        "x",
        "value",
        "accuracy",
        title="Adversarial training of a linear rule",
        x_title="step",
        y_title="exact accuracy",
    )


def _series(table: pl.DataFrame) -> AnyChart:
    return curves(
        table.filter(quantity="taylor"),
        "x",
        "value",
        "model",
        title="Taylor series on [-3, 3]",
        x_title="terms",
        y_title="largest error",
        log_y=True,
    )


def _tensors(table: pl.DataFrame) -> AnyChart:
    return points(
        table.filter(quantity="tensor ratio"),
        "x",
        "value",
        "model",
        title="Lemma G.4: a trend only",
        x_title="d",
        y_title="||T_4|| / (max ||v_i||/sqrt(d))",
        log_x=True,
        log_y=True,
    )
