"""A matrix of numbers: the means, in the order of the table, with shades between the ends."""

import json

import numpy as np
import polars as pl
import vl_convert as vlc

from advlab.report import theme
from advlab.report.charts import curves, panels
from advlab.report.matrix import matrix
from advlab.report.samples import slopes

TABLE = pl.DataFrame(
    {
        "trained": ["b", "b", "b", "a", "a", "a"],
        "judge": ["pgd", "pgd", "fgm", "pgd", "fgm", "fgm"],
        "loss": [0.1, 0.3, 0.0123, 1.5e-7, float("nan"), None],
    }
)


def cells(chart) -> dict:
    (rows,) = chart.to_dict()["datasets"].values()
    return {(row["y"], row["x"]): row for row in rows}


def test_every_cell_says_its_mean_and_is_shaded_by_it():
    found = cells(matrix(TABLE, "judge", "trained", "loss"))
    shown = {place: row["shown"] for place, row in found.items()}
    assert shown == {
        ("b", "pgd"): "0.2",
        ("b", "fgm"): "0.012",
        ("a", "pgd"): "1.5×10⁻⁷",
        ("a", "fgm"): "",
    }
    assert found["b", "pgd"]["share"] == 1
    assert found["a", "pgd"]["share"] == 0
    assert abs(found["b", "fgm"]["share"] - 0.0615) < 1e-4


def test_rows_and_columns_keep_the_order_of_the_table():
    spec = matrix(TABLE, "judge", "trained", "loss", x_title="judged by").to_dict()
    encoding = spec["layer"][0]["encoding"]
    assert encoding["y"]["sort"] == ["b", "a"]
    assert encoding["x"]["sort"] == ["pgd", "fgm"]
    assert encoding["x"]["title"] == "judged by"


def test_beside_curves_the_colours_keep_their_one_legend():
    line = pl.DataFrame({"t": [1, 2, 1, 2], "y": [1.0, 2.0, 2.0, 3.0], "attack": list("aabb")})
    together = panels([curves(line, "t", "y", "attack"), matrix(TABLE, "judge", "trained", "loss")])
    assert "resolve" not in together.to_dict()
    svg = vlc.vegalite_to_svg(json.dumps(together.to_dict()), config=theme.theme())
    assert "1.5×10⁻⁷" in svg
    assert svg.count(">attack<") == 1


def test_slopes_are_those_of_each_replicate():
    rows = [
        {"seed": seed, "m": m, "y": 3 * m**power}
        for seed, power in ((1, -0.5), (0, 2.0))
        for m in (10, 100, 1000)
    ]
    np.testing.assert_allclose(slopes(pl.DataFrame(rows), "m", "y"), [2.0, -0.5])
