"""Charts: the right numbers, few rows, gaps where there is no number."""

import json
import re

import numpy as np
import polars as pl
import pytest
import vl_convert
from altair import SCHEMA_VERSION

from advlab.core.errors import AdvlabError
from advlab.report import aggregate
from advlab.report.charts import boxes, curves, heat, panels, points
from advlab.report.heat_map import HUES
from advlab.report.theme import CATEGORIES, theme

TABLE = pl.DataFrame(
    {
        "step": [0, 0, 1, 1, 0, 0, 1, 1],
        "eps": [0.5, 0.5, 0.5, 0.5, 0.1, 0.1, 0.1, 0.1],
        "seed": [0, 1] * 4,
        "loss": [4.0, 6.0, 1.0, 3.0, 1.0, 1.0, 0.0, 0.5],
    }
)


def rows(chart: dict) -> dict[str, list[dict]]:
    return chart["datasets"]


def svg(chart) -> str:
    spec = chart.to_dict()
    spec["config"] = theme()
    return vl_convert.vegalite_to_svg(spec, vl_version=".".join(SCHEMA_VERSION.split(".")[:2]))


def test_means_and_one_standard_deviation():
    found = aggregate.means(TABLE, "step", "loss", "eps")
    assert found["color"].to_list() == ["0.1", "0.1", "0.5", "0.5"]
    assert found["y"].to_list() == [1.0, 0.25, 5.0, 2.0]
    # The standard deviation of 4 and 6 is sqrt(2).
    assert found["low"].to_list()[2] == pytest.approx(5 - 2**0.5, rel=1e-4)
    assert found["high"].to_list()[2] == pytest.approx(5 + 2**0.5, rel=1e-4)
    assert found["replicates"].to_list() == [2] * 4


def test_one_replicate_has_no_band():
    found = aggregate.means(TABLE.filter(pl.col("seed") == 0), "step", "loss", "eps")
    assert found["low"].to_list() == found["y"].to_list() == found["high"].to_list()


def test_what_cannot_be_drawn_is_a_gap():
    table = pl.DataFrame({"x": [1, 2, 3, 4], "y": [1.0, float("nan"), float("inf"), -1.0]})
    assert aggregate.means(table, "x", "y")["y"].to_list() == [1.0, None, None, -1.0]
    found = aggregate.means(table, "x", "y", log_y=True)
    for column in ("y", "low", "high"):
        assert found[column].to_list() == [1.0, None, None, None]


def test_a_band_that_reaches_zero_stays_on_a_log_axis():
    found = aggregate.means(TABLE, "step", "loss", "eps", log_y=True)
    assert found["y"].to_list() == [1.0, 0.25, 5.0, 2.0]
    assert (found["low"] > 0).all()
    assert (found["low"] <= found["y"]).all()


@pytest.mark.parametrize("log", [False, True])
def test_long_curves_are_thinned_between_their_ends(log):
    step = np.arange(1, 20_001)
    table = pl.DataFrame({"x": step, "y": 1.0 / step}).join(
        pl.DataFrame({"eps": list(range(5))}), how="cross"
    )
    found = aggregate.means(table, "x", "y", "eps", log_x=log)
    kept = found["x"].unique().sort().to_numpy()
    assert found.height <= aggregate.ROWS
    assert (kept[0], kept[-1]) == (1, 20_000)
    # Where the table is dense on the axis, no step is much wider than an even one.
    place = np.log(kept) if log else kept
    assert np.diff(place)[kept[1:] > 200].max() < 2 * (place[-1] - place[0]) / aggregate.POINTS
    assert found["y"].to_list() == pytest.approx((1.0 / found["x"]).to_list(), rel=1e-4)


def test_many_groups_keep_a_chart_small():
    table = pl.DataFrame({"x": list(range(300))}).join(
        pl.DataFrame({"eps": list(range(40))}), how="cross"
    )
    assert aggregate.means(table, "x", "x", "eps").height <= aggregate.ROWS


def test_five_numbers_are_those_of_numpy():
    values = np.random.default_rng(0).normal(size=31)
    found = aggregate.five_numbers(pl.DataFrame({"x": 1, "y": values}), "x", "y").row(0, named=True)
    expected = np.quantile(values, [0, 0.25, 0.5, 0.75, 1])
    assert [found[name] for name in ("low", "q1", "y", "q3", "high")] == pytest.approx(expected)


def test_levels_are_in_the_order_of_numbers_or_of_first_sight():
    table = pl.DataFrame(
        {"n": [1000, 50, 200], "net": ["relu", "linear", "relu"], "e": [0.5, 0.0, 2]}
    )
    assert aggregate.labels(table, "n") == ["50", "200", "1000"]
    assert aggregate.labels(table, "net") == ["relu", "linear"]
    assert aggregate.labels(table, "e") == ["0", "0.5", "2"]


def test_theory_is_dashed_level_lines_or_curves():
    best = pl.DataFrame({"eps": [0.1, 0.5], "loss": [0.2, 1.9]})
    chart = curves(TABLE, "step", "loss", "eps", theory=best).to_dict()
    assert [layer["mark"]["type"] for layer in chart["layer"]] == ["area", "line", "rule"]
    assert "stroke-dasharray" in svg(curves(TABLE, "step", "loss", "eps", theory=best))
    curve = best.join(pl.DataFrame({"step": [0, 1]}), how="cross")
    chart = points(TABLE, "step", "loss", "eps", theory=curve).to_dict()
    assert [layer["mark"]["type"] for layer in chart["layer"]] == ["line", "rule", "point"]


@pytest.mark.parametrize("color", [None, "eps"])
def test_every_kind_of_chart_draws_its_colours(color):
    charts = [
        curves(TABLE, "step", "loss", color, log_y=True, log_x=True),
        points(TABLE, "step", "loss", color, log_x=True),
        boxes(TABLE, "step", "loss", color),
    ]
    for chart in charts:
        drawn = svg(chart)
        assert CATEGORIES[0] in drawn
        assert (CATEGORIES[1] in drawn) == bool(color)
    assert "rgb(253, 231, 37)" in svg(heat(TABLE, "step", "eps", "loss"))


def test_heat_is_the_mean_of_each_cell():
    chart = heat(TABLE, "step", "eps", "loss").to_dict()
    (data,) = rows(chart).values()
    cells = {(row["x"], row["y"]): row["value"] for row in data}
    assert cells == {("0", "0.5"): 5, ("1", "0.5"): 2, ("0", "0.1"): 1, ("1", "0.1"): 0.25}
    assert chart["encoding"]["y"]["sort"] == ["0.5", "0.1"]


GRID = pl.DataFrame(
    [{"mu": mu, "d": d, "acc": 0.05 * mu + 0.4} for mu in (1, 2, 4, 10) for d in (10, 100, 1000)]
)
LINES = pl.DataFrame(
    {
        "mu": [1.0, 10.0, 3.0, 3.0, 3.0],
        "d": [10.0, 1000.0, 500.0, float("inf"), 50.0],
        "line": ["bound"] * 2 + ["proxy"] * 3,
    }
)


def edges(chart: dict, name: str) -> list[tuple[float, float]]:
    data = next(data for data in rows(chart).values() if "value" in data[0])
    return sorted({(row[f"{name}_low"], row[f"{name}_high"]) for row in data})


def test_cells_to_scale_meet_halfway_between_levels():
    chart = heat(GRID, "mu", "d", "acc", lines=LINES).to_dict()
    assert edges(chart, "x") == [(0.5, 1.5), (1.5, 3), (3, 7), (7, 13)]
    assert edges(chart, "y") == [(-35, 55), (55, 550), (550, 1450)]
    assert chart["layer"][0]["encoding"]["x"]["scale"]["domain"] == [0.5, 13]
    assert chart["layer"][0]["encoding"]["y"]["axis"]["values"] == [10, 100, 1000]


def test_on_log_axes_halfway_is_the_geometric_mean():
    chart = heat(GRID, "mu", "d", "acc", log_x=True, log_y=True).to_dict()
    halves = [2**0.5, 8**0.5, 40**0.5]
    expected = [1 / halves[0], *halves, 100 / halves[-1]]
    assert np.array(edges(chart, "x")) == pytest.approx(np.c_[expected[:-1], expected[1:]])
    ends = 10 ** np.array([0.5, 1.5, 2.5, 3.5])
    assert np.array(edges(chart, "y")) == pytest.approx(np.c_[ends[:-1], ends[1:]])
    assert chart["layer"][0]["encoding"]["y"]["scale"]["type"] == "log"


def test_a_lone_level_is_a_cell_around_it():
    one = GRID.filter(pl.col("d") == 100)
    assert edges(heat(one, "mu", "d", "acc", lines=LINES).to_dict(), "y") == [(99.5, 100.5)]


def test_contours_keep_their_order_and_break_where_there_is_no_number():
    drawn = heat(GRID, "mu", "d", "acc", lines=LINES, log_x=True, log_y=True)
    chart = drawn.to_dict()
    data = next(data for data in rows(chart).values() if "line" in data[0])
    proxy = [(row["x"], row["y"]) for row in data if row["line"] == "proxy"]
    assert proxy == [(3, 500), (3, None), (3, 50)]
    assert [row["order"] for row in data] == [0, 1, 2, 3, 4]
    assert all(layer["mark"]["clip"] for layer in chart["layer"])
    inked = svg(drawn)
    assert HUES[0] in inked
    assert HUES[1] in inked
    assert inked.count(">bound<") == inked.count(">proxy<") == 1
    # From the centre of the first cell to that of the last.
    left, right, low, high = np.log([2**-0.5, 100 * 40**-0.5, 10**0.5, 10**3.5])
    x = 260 * (np.log([1, 10]) - left) / (right - left)
    y = 210 * (high - np.log([10, 1000])) / (high - low)
    path = re.search(r'd="M([\d.]+),([\d.]+)L([\d.]+),([\d.]+)"[^>]*stroke="' + HUES[0], inked)
    assert path is not None
    assert [float(p) for p in path.groups()] == pytest.approx([x[0], y[0], x[1], y[1]], abs=0.01)


@pytest.mark.parametrize("lines", [None, LINES])
def test_colours_stop_at_the_ends_of_the_domain(lines):
    chart = heat(GRID, "mu", "d", "acc", domain=(0.5, 0.6), lines=lines)
    # The means are 0.45, 0.5, 0.6 and 0.9: two at each end, nothing between.
    fills = set(re.findall(r'<path[^>]*d="M[^"]*h[^"]*"[^>]*fill="(rgb[^"]*)"', svg(chart)))
    assert fills == {"rgb(68, 1, 84)", "rgb(253, 231, 37)"}
    (cells,) = (data for data in rows(chart.to_dict()).values() if "value" in data[0])
    assert max(row["value"] for row in cells) == pytest.approx(0.9)


def test_heat_refuses_what_has_no_place():
    text = GRID.with_columns(mu=pl.col("mu").cast(pl.String))
    with pytest.raises(AdvlabError, match="need numbers on both axes"):
        heat(text, "mu", "d", "acc", lines=LINES)
    with pytest.raises(AdvlabError, match="need positive numbers"):
        heat(GRID.with_columns(pl.col("d") - 10), "mu", "d", "acc", log_y=True)
    with pytest.raises(AdvlabError, match="columns mu, d and line; got mu, d"):
        heat(GRID, "mu", "d", "acc", lines=LINES.drop("line"))


def test_panels_are_one_chart_with_their_titles():
    one = curves(TABLE, "step", "loss", "eps", title="Training")
    two = points(TABLE, "step", "loss", "eps", title="Test")
    drawn = svg(panels([one, two], title="Both"))
    assert all(title in drawn for title in ("Training", "Test", "Both"))


def test_panels_share_a_legend_only_if_colours_mean_the_same():
    eps, seed = (curves(TABLE, "step", "loss", color) for color in ("eps", "seed"))
    assert "resolve" not in panels([eps, eps]).to_dict()
    assert panels([eps, seed]).to_dict()["resolve"] == {"scale": {"color": "independent"}}


def test_the_same_table_gives_the_same_chart():
    def chart() -> str:
        panel = curves(TABLE, "step", "loss", "eps")
        return json.dumps(panels([panel, heat(TABLE, "step", "eps", "loss")]).to_dict())

    assert chart() == chart()


def test_a_missing_column_is_named():
    with pytest.raises(AdvlabError, match="column risk; got step, eps, seed, loss"):
        curves(TABLE, "step", "risk")


def test_quartiles_stand_around_the_median_and_leave_out_what_a_log_axis_cannot_show():
    rows = pl.DataFrame({"x": [1] * 5, "y": [0.0, 1.0, 2.0, 3.0, 100.0]})
    (plain,) = aggregate.means(rows, "x", "y", band="quartiles").iter_rows(named=True)
    assert (plain["low"], plain["y"], plain["high"]) == (1.0, 2.0, 3.0)
    (log,) = aggregate.means(rows, "x", "y", log_y=True, band="quartiles").iter_rows(named=True)
    assert (log["low"], log["y"], log["high"], log["replicates"]) == (1.75, 2.5, 27.25, 4)


def spread(*values: float) -> pl.DataFrame:
    rows = [{"x": x, "y": y} for x in (1, 2, 3) for y in values]
    return pl.DataFrame(rows)


@pytest.mark.parametrize("draw", [curves, points])
def test_the_axis_of_a_quantity_that_is_never_negative_is_not_either(draw):
    spec = draw(spread(0.1, 0.1, 0.1, 4.0), "x", "y").to_dict()
    (data,) = (data for data in rows(spec).values() if "low" in data[0])
    assert min(row["low"] for row in data) == 0  # the mean less one deviation is below
    ticks = labels(svg(draw(spread(0.1, 0.1, 0.1, 4.0), "x", "y")))
    assert min(ticks) == 0


@pytest.mark.parametrize("draw", [curves, points])
def test_an_axis_with_a_little_below_0_ends_where_its_rows_end(draw):
    chart = draw(spread(-0.3, 0.9, 0.9, 0.9), "x", "y")
    (data,) = (data for data in rows(chart.to_dict()).values() if "low" in data[0])
    encodings = [layer["encoding"]["y"] for layer in chart.to_dict()["layer"]]
    domains = [one["scale"]["domain"] for one in encodings]
    assert domains == [[min(row["low"] for row in data), pytest.approx(1.2)]] * len(domains)
    # As much below as above has the ends of ticks.
    even = draw(spread(-1.0, -0.9, 0.9, 1.0), "x", "y").to_dict()
    assert "domain" not in even["layer"][0]["encoding"]["y"]["scale"]


def labels(drawing: str) -> list[float]:
    """The numbers on the y axis of a drawing."""
    found = re.findall(r'text-anchor="end"[^>]*>([−\d.]+)<', drawing)
    return [float(one.replace("−", "-")) for one in found]
