"""The figure of `sparse_recovery`: one panel per question."""

import numpy as np
import polars as pl

from .....report.charts import AnyChart, panels, points

N, MULTIPLE, EXCESS = "samples n", "λ / k", "(R − R*) / v²"


def recovery_figure(table: pl.DataFrame, proof: pl.Series) -> AnyChart:
    """All panels.

    Args:
        table: of the experiment.
        proof: the proof's bound on the l1 error over lambda, of the l2 rows at the theorem's rate.
    """
    rate = table.filter(pl.col("constant") > 0, part="rate", norm="l2")
    return panels(
        [
            _error(rate, proof),
            _error_linf(table.filter(pl.col("constant") > 0, part="rate")),
            _cones(table.filter(part="multiple")),
            points(table.filter(part="multiple"), "constant", "excess", log_x=True, log_y=True,
                   x_title=MULTIPLE, y_title=EXCESS, title="The best penalty is below k"),
            _excess(table.filter(part="rate")),
            points(table.filter(part="sparsity"), "s", "error", log_x=True, log_y=True,
                   x_title="sparsity s", y_title="‖θ̂ − θ*‖₁ / λ",
                   title="O(λ) is O(s λ), at λ = 1.5 k"),
            _noise(rate),
            _curvature(rate),
            _mean_squares(rate),
            _linf_cone(table.filter(norm="linf")),
            _lemma_5(rate),
            points(table.filter(part="dense"), "n", "excess", "constant", log_x=True, log_y=True,
                   x_title=N, y_title=EXCESS, title="Dense model, λ / (v √(d log d / n))"),
            *_tuned(table.filter(part="tuned")),
            *_surrogate(table.filter(part="surrogate")),
        ]
    )  # fmt: skip


def _error(rate: pl.DataFrame, proof: pl.Series) -> AnyChart:
    bound = rate.with_columns(proof.alias("error"), what=pl.lit("the proof's constant"))
    both = pl.concat([rate.with_columns(what=pl.lit("measured")), bound])
    return points(both, "n", "error", "what", log_x=True, log_y=True, x_title=N,
                  y_title="‖θ̂ − θ*‖₁ / λ", title="Error in units of λ")  # fmt: skip


def _error_linf(rows: pl.DataFrame) -> AnyChart:
    share = rows.with_columns(share=pl.col("error") / pl.col("s"))
    return points(share, "n", "share", "norm", log_x=True, x_title=N,
                  y_title="‖θ̂ − θ*‖₁ / (s λ)", title="Error by attack, at the rate")  # fmt: skip


def _mean_squares(rate: pl.DataFrame) -> AnyChart:
    both = pl.concat(
        [rate.select("n", value="corners", what=pl.lit("found")),
         rate.select("n", value="squares", what=pl.lit("bound in the cone"))]
    )  # fmt: skip
    first = rate.filter(n=rate["n"].min())
    n, start = float(first["n"].to_numpy()[0]), float(first["squares"].to_numpy().mean())
    line = pl.DataFrame({"n": rate["n"].unique().sort()})
    line = line.with_columns(value=start * (n / pl.col("n")).sqrt())
    return points(both, "n", "value", "what", theory=line, log_x=True, log_y=True, x_title=N,
                  y_title="|mean (Δ'x)² − ‖Δ‖²|, ‖Δ on S‖₁ = 1",
                  title="Lemma 4, second line; dashed: n^(-1/2)")  # fmt: skip


def _cones(several: pl.DataFrame) -> AnyChart:
    bound = several.filter(pl.col("constant") > 1).with_columns(ratio="bound", what=pl.lit("bound"))
    both = pl.concat([bound, several.with_columns(what=pl.lit("measured"))])
    return points(both, "constant", "ratio", "what", log_x=True, x_title=MULTIPLE,
                  y_title="‖Δ off S‖₁ / ‖Δ on S‖₁",
                  title=f"The cone, n = {several['n'][0]}")  # fmt: skip


def _excess(rows: pl.DataFrame) -> AnyChart:
    words = pl.when(pl.col("constant") > 0).then(pl.lit(" + λ")).otherwise(pl.lit(""))
    rows = rows.with_columns(attack=pl.concat_str("norm", words))
    return points(rows, "n", "excess", "attack", log_x=True, log_y=True, x_title=N,
                  y_title=EXCESS, title=f"Excess risk, d = {rows['d'][0]}")  # fmt: skip


def _noise(rate: pl.DataFrame) -> AnyChart:
    line = rate.unique("n").sort("n").select("n", k=pl.col("k") / pl.col("k_over_sharp"))
    return points(rate, "n", "k", theory=line, log_x=True, log_y=True, x_title=N, y_title="k",
                  title="k; dashed: 2 √(R*/n) med max |N(0, 1)|")  # fmt: skip


def _curvature(rate: pl.DataFrame) -> AnyChart:
    both = pl.concat(
        [rate.select("n", "curvature", what=pl.lit("at the estimate")),
         rate.select("n", curvature="least", what=pl.lit("least of 71"))]
    )  # fmt: skip
    floor = pl.DataFrame({"curvature": [float(rate["growth"].drop_nulls()[0])]})
    return points(both, "n", "curvature", "what", theory=floor, log_x=True, log_y=True, x_title=N,
                  y_title="[rise − Δ'g] / ‖Δ‖²",
                  title="Curvature; dashed: ε² (1 − 2/π)")  # fmt: skip


def _linf_cone(linf: pl.DataFrame) -> AnyChart:
    inside = linf.filter(pl.col("bound").is_finite()).with_columns(
        over=pl.col("ratio") / pl.col("bound"),
        penalty=pl.when(pl.col("constant") > 0).then(pl.lit("as for l2")).otherwise(pl.lit("0")),
    )
    return points(inside, "n", "over", "penalty", theory=pl.DataFrame({"over": [1.0]}), log_x=True,
                  x_title=N, y_title="‖Δ off S‖₁ / (bound ‖Δ on S‖₁)",
                  title="The cone under linf attacks")  # fmt: skip


def _lemma_5(rate: pl.DataFrame) -> AnyChart:
    both = pl.concat(
        [rate.select("n", "rise", what=pl.lit("with sgn(r)")),
         rate.select("n", rise="rise_printed", what=pl.lit("as printed"))]
    )  # fmt: skip
    return points(both, "n", "rise", "what", log_x=True, x_title=N,
                  theory=pl.DataFrame({"rise": [0.0]}), y_title="rise of a loss − bound, largest",
                  title="Lemma 5 says: not above 0")  # fmt: skip


def _tuned(rows: pl.DataFrame) -> list[AnyChart]:
    free = rows.filter(constant=0).group_by("n", "truth").agg(none=pl.col("excess").mean())
    rows = rows.filter(pl.col("constant") > 0).join(free, on=["n", "truth"])
    rows = rows.group_by("truth", "n", "constant", maintain_order=True).agg(
        over=pl.col("excess").mean() / pl.col("none").first()
    )
    # Where risks are several times those without a penalty nothing can be seen of small gains.
    rows = rows.filter(pl.col("over") <= 1.5).sort("n", "constant")
    titles = {"equal": "Dense, equal entries", "decaying": "Dense, entries like 0.7^j"}
    ends = (float(np.floor(rows["over"].to_numpy().min() * 10) / 10), 1.5)
    return [
        points(rows.filter(truth=truth), "constant", "over", "n", log_x=True, y_domain=ends,
               theory=pl.DataFrame({"over": [1.0]}), x_title="λ / (v √(d log d / n))",
               y_title="excess risk over that at λ = 0", title=title)
        for truth, title in titles.items()
    ]  # fmt: skip


def _surrogate(rows: pl.DataFrame) -> list[AnyChart]:
    rows = rows.with_columns(
        pl.col("excess_xi").abs(),
        xi=pl.concat_str("share", pl.lit(" v²/√n")),
    )
    axes = {"log_x": True, "log_y": True, "x_title": N}
    return [
        points(rows, "n", "excess_xi", "xi", y_title="|R_{L,ξ} − R*| / v²",
               title="Surrogate attack, λ as in Theorem 9", **axes),
        points(rows, "n", "error", "xi", y_title="‖θ̂ − θ*‖₁ / λ",
               title="and the error in units of λ", **axes),
    ]  # fmt: skip
