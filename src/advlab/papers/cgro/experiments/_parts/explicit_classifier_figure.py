"""f_S along a line, its size, its errors, and the blocks it is made of."""

import polars as pl

from .....report.charts import AnyChart, curves, panels, points
from .dodged import dodged_points

SHOWN = ("l2 products, own squares", "l2 products", "l2 free", "linf products", "linf free")
ERRORS = ("clean train", "clean test", "robust train", "robust test")


def figure(table: pl.DataFrame) -> AnyChart:
    return panels([*_lines(table), _sizes(table, "n"), _sizes(table, "d"), _errors(table),
                   _blocks(table)], columns=3)  # fmt: skip


def _lines(table: pl.DataFrame) -> list[AnyChart]:
    titles = {"training point": "Through a training point", "fresh point": "Through a fresh point"}
    zero = pl.DataFrame({"value": [0.0]})
    return [
        curves(
            _shown(table.filter(quantity=kind)),
            "x",
            "value",
            "network",
            theory=zero,
            title=f"{title}: the ball ends at 0.1",
            x_title="step against the label",
            y_title="y f",
            apart=True,
        )
        for kind, title in titles.items()
    ]


def _sizes(table: pl.DataFrame, by: str) -> AnyChart:
    rows = _shown(table.filter(quantity="parameters"))
    other = "d" if by == "n" else "n"
    levels = sorted(rows[other].unique())
    level = levels[len(levels) // 2] if levels else 0
    name = {"n": "training points N", "d": "dimension D"}
    drawn = rows.filter(pl.col(other) == level).sort(by, maintain_order=True)
    return dodged_points(
        drawn.with_columns(pl.col(by).cast(pl.String)),
        by,
        "value",
        "network",
        title=f"Parameters against {'N, D' if by == 'n' else 'D, N'} = {level}",
        x_title=name[by],
        y_title="parameters",
        log_y=True,
    )


def _errors(table: pl.DataFrame) -> AnyChart:
    rows = _shown(table.filter(pl.col("quantity").is_in(ERRORS)))
    order = pl.col("quantity").replace_strict(list(ERRORS), list(range(4)), default=None)
    return dodged_points(
        rows.sort(order, maintain_order=True),
        "quantity",
        "value",
        "network",
        title="The four errors of f, all sizes",
        x_title="error",
        y_title="share of points",
    )


def _blocks(table: pl.DataFrame) -> AnyChart:
    rows = table.filter(quantity="product error")
    return points(
        rows,
        "x",
        "value",
        theory=rows.with_columns(value=9 / 4.0 ** (pl.col("x") + 1)),
        title="Largest error of a product (B = 1.5)",
        x_title="depth k of its squares",
        y_title="error",
        log_y=True,
    )


def _shown(rows: pl.DataFrame) -> pl.DataFrame:
    order = pl.col("network").replace_strict(list(SHOWN), list(range(len(SHOWN))), default=None)
    return rows.filter(pl.col("network").is_in(SHOWN)).sort(order, maintain_order=True)
