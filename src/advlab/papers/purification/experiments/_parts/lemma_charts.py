"""Both sides of each lemma over d: whole lines are the left side, dashed ones the right side."""

import polars as pl

from .....report.charts import AnyChart, curves, panels, stacked
from .growth_along_training import LEMMAS
from .lemma_hypotheses import ALONG
from .lemma_orders import ALONG_FGM, ORDERS, STAGES, START, Order, at_growth

SETS = {
    "ept": "ept", "ept+": "ept+", "ept++": "ept++",
    "pot+ within pot": "S_pot+ within S_pot(0)", "pot within pot+": "S_pot within S_pot+",
    "sure within sure": "S_sure(0) within S_sure", "sure within sure+": "S_sure(0) within S_sure+",
}  # fmt: skip
OBJECTIVES = {"objective": "at FGM points", "clean objective": "clean, at T_f"}


def charts(table: pl.DataFrame) -> AnyChart:
    """Panels per lemma, then shares, then growth."""
    after = table.filter(pl.col("stage").is_in([stage for stage in STAGES if stage != START]))
    orders = [order_chart(after, label, order) for label, order in ORDERS.items()]
    shares = {"Lipschitz holds": "C.20: atoms with L_j below its bound",
              "FGM floor": "F.2: margin above twice the gap",
              "leftovers": "C.19: leftovers of at most b/10",
              "sure+ per atom": "C.2: neurons in S_sure+ per atom"}  # fmt: skip
    orders += [
        curves(after, "d", name, "stage", title=title, x_title="dimension d",
               y_title="count" if "per atom" in name else "share", log_x=True)
        for name, title in shares.items()
    ]  # fmt: skip
    rest = [_hypotheses(table), *objective_charts(table, "F.1"), *_growth_charts(table)]
    return stacked(panels(orders, columns=3), panels(rest, columns=3))


def order_chart(rows: pl.DataFrame, label: str, order: Order) -> AnyChart:
    """A lemma's left side at each stage, and its right side with constants 1."""
    sides = rows.select("d", "seed", "stage", pl.col(f"{order.name} left").alias("left"),
                        pl.col(f"{order.name} right").alias("right"))  # fmt: skip
    level = sides.group_by("d", "stage").agg(pl.col("right").mean())
    alike = level.group_by("d").agg((pl.max("right") - pl.min("right")) / pl.max("right"))
    if (alike["right"].fill_nan(0.0) < 1e-6).all():
        level = level.group_by("d").agg(pl.col("right").first())
    theory = level.rename({"right": "left"}).sort("d")
    relation = {"O": "at most O of", "Omega": "at least Omega of", "Theta": "Theta of"}
    return curves(sides, "d", "left", "stage", theory=theory, x_title="dimension d",
                  title=f"{label}: {relation[order.sense]} the right side", y_title=order.left,
                  log_x=True, log_y=True)  # fmt: skip


def _hypotheses(table: pl.DataFrame) -> AnyChart:
    """What lemmas assume and Theorem C.2 states, after clean training."""
    long = table.filter(stage="clean training").unpivot(
        list(SETS), index=["d", "seed"], variable_name="after clean training"
    )
    long = long.with_columns(pl.col("after clean training").replace_strict(SETS))
    return curves(
        long,
        "d",
        "value",
        "after clean training",
        title="Theorem C.2, and hypotheses",
        x_title="dimension d",
        y_title="share of neurons or pairs",
        log_x=True,
    )


def objective_charts(table: pl.DataFrame, label: str) -> list[AnyChart]:
    """Theorem F.1, or F.4 in linf, along training at the largest d, and over d."""
    along = table.filter(stage=ALONG_FGM)
    largest = along.filter(d=pl.col("d").max())
    seen = largest.unpivot(list(OBJECTIVES), index=["share", "seed"], variable_name="measured")
    mean = along.group_by("d", "seed").agg(pl.col(list(OBJECTIVES)).mean())
    over = mean.unpivot(list(OBJECTIVES), index=["d", "seed"], variable_name="measured")
    seen, over = (
        part.with_columns(pl.col("measured").replace_strict(OBJECTIVES)) for part in (seen, over)
    )
    paid = "logistic loss and regulariser"
    return [
        curves(seen, "share", "value", "measured", x_title="share of training against FGM",
               title=f"{label}: objective, d = {table['d'].max()}", y_title=paid),
        curves(over, "d", "value", "measured", x_title="dimension d", log_x=True,
               title=f"{label}: its mean over training", y_title=paid),
    ]  # fmt: skip


def _growth_charts(table: pl.DataFrame) -> list[AnyChart]:
    """Both sides of the growth lemmas at each d, and what they imply along training."""
    rows, found = at_growth(table), []
    for phase in (1, 2):
        mine = rows.filter(
            pl.col("lemma").is_in([one for one in LEMMAS if LEMMAS[one][1] == phase])
        )
        theory = mine.group_by("d", "lemma", maintain_order=True).agg(pl.col("right").mean())
        theory = theory.rename({"right": "left"})
        found.append(curves(mine, "d", "left", "lemma", theory=theory, x_title="dimension d",
                            title=f"Growth per step, phase {'I' * phase}",
                            y_title="left side", log_x=True, log_y=True))  # fmt: skip
    largest = table["d"].max()
    along = table.filter((pl.col("stage") == ALONG) & (pl.col("d") == largest))
    late = along.filter(pl.col("lemma").is_in([one for one in LEMMAS if LEMMAS[one][1] == 2]))
    one = pl.DataFrame({"constant": [1.0]})
    found.append(curves(late, "share", "constant", "lemma", title=f"Phase II, d = {largest}",
                        x_title="share of clean training", y_title="left / right, constants 1",
                        log_y=True, theory=one))  # fmt: skip
    return found
