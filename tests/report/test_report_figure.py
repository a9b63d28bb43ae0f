"""Charts without a browser: drawings that follow the page, numbers, colours and legends."""

import re
from xml.etree import ElementTree

import altair as alt
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_results import convergence, lasso

from advlab.report import aggregate, figure
from advlab.report.charts import boxes, curves, heat, panels, stacked
from advlab.report.colours import said_once, shared
from advlab.report.fitting import PAGE_WIDTH, fitted
from advlab.report.symbols import scripted
from advlab.report.theme import CATEGORIES, QUIET
from advlab.report.to_scale import to_scale


def table(names, low=0.0, high=1.0) -> pl.DataFrame:
    rows = [
        {"step": step, "what": name, "share": value, "seed": seed}
        for step in (1, 2, 3)
        for name in names
        for seed, value in enumerate((low, high))
    ]
    return pl.DataFrame(rows)


def ranges(spec) -> list[dict[str, str]]:
    found = []
    for panel in spec.get("concat", [spec]):
        scale = panel["layer"][0]["encoding"]["color"]["scale"]
        found.append(dict(zip(scale["domain"], scale["range"], strict=True)))
    return found


def test_a_drawing_follows_the_colours_of_the_page_and_holds_no_link():
    drawing = figure.drawing(lasso().chart, "fig", "Figure 4")
    text = str(drawing.markup)
    ElementTree.fromstring(text.replace("xlink:", ""))
    assert "var(--ink)" in text
    assert "var(--c0)" in text
    assert "#1f2328" not in text.lower()
    assert "href" not in text
    ids = re.findall(r'\sid="([^"]*)"', text)
    assert all(name.startswith("fig-") for name in ids)
    assert set(re.findall(r"url\(#([^)]*)\)", text)) <= set(ids)
    assert drawing.width <= PAGE_WIDTH


def test_a_drawing_rounds_where_things_stand_and_no_word():
    values = [{"x": 0.3 * k, "y": 0.03 * k} for k in range(7)]
    spec = {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "data": {"values": values},
        "mark": {"type": "point", "opacity": 0.25},
        "encoding": {
            "x": {"field": "x", "type": "quantitative"},
            "y": {"field": "y", "type": "quantitative"},
        },
    }
    drawing = figure.drawing(spec, "fig", "")
    assert drawing is not None
    words = re.findall(r"<text[^>]*>([^<]*)</text>", drawing.markup)
    assert words == re.findall(r"<text[^>]*>([^<]*)</text>", figure.svg(spec))
    assert any(re.fullmatch(r"0\.\d[1-9]", word) for word in words)
    assert 'opacity="0.25"' in drawing.markup
    places = re.findall(r'\s(?:d|x|y)="([^"]*)"|translate\(([^)]*)\)', drawing.markup)
    assert places
    assert not re.search(r"\d\.\d\d", " ".join(map(" ".join, places)))


def test_a_chart_that_cannot_be_drawn_is_left_to_the_browser():
    assert figure.drawing({"mark": 7}, "fig", "") is None


def test_the_numbers_of_a_chart_are_those_of_its_panels():
    spec = convergence().chart
    numbers = figure.table(spec)
    assert numbers["panel"].unique(maintain_order=True).to_list() == [
        "Training",
        "Test",
        "Distance",
    ]
    training = numbers.filter(panel="Training", eps="0.5")
    panel = spec["concat"][0]
    rows = spec["datasets"][(panel["layer"][1].get("data") or panel["data"])["name"]]
    wanted = [row["y"] for row in rows if row["color"] == "0.5"]
    assert training["loss"].cast(pl.Float64).to_list() == pytest.approx(wanted)


@settings(deadline=None, max_examples=50)
@given(
    st.lists(
        st.lists(st.sampled_from("abcdefghij"), min_size=2, max_size=4, unique=True),
        min_size=1,
        max_size=4,
    )
)
def test_names_that_share_a_legend_never_share_a_colour(legends):
    specs = shared([_spec(names) for names in legends])
    for names, spec in zip(legends, specs, strict=True):
        (colours,) = ranges(spec)
        assert list(colours) == names
        assert len(set(colours.values())) == len(names)


def _spec(names) -> dict:
    color = {"type": "nominal", "field": "what", "sort": list(names)}
    return {"layer": [{"mark": "line", "encoding": {"color": color}}]}


def test_a_thing_has_one_colour_in_all_charts():
    first, second = shared([_spec(["clean", "PGD"]), _spec(["PGD", "clean", "FGM"])])
    (one,), (other,) = ranges(first), ranges(second)
    assert one["clean"] == other["clean"]
    assert one["PGD"] == other["PGD"]


def test_a_figure_alone_has_the_colours_that_a_paper_fixes():
    fixed = {"clean": 0, "PGD": 4}
    (alone,) = shared([_spec(["PGD", "FGM"])], fixed)
    _, other = shared([_spec(["start", "end"]), _spec(["clean", "PGD"])], fixed)
    assert ranges(alone)[0]["PGD"] == ranges(other)[0]["PGD"] == CATEGORIES[4]
    assert ranges(other)[0]["clean"] == CATEGORIES[0]
    (both,) = shared([_spec(["clean", "none"])], {"clean": 0, "none": 0})
    assert len(set(ranges(both)[0].values())) == 2


def test_blocks_below_each_other_have_the_colours_that_a_paper_fixes():
    block = [curves(table(["PGD", "FGM"]), "step", "share", "what") for _ in range(2)]
    (spec,) = shared([stacked(panels(block), panels(block)).to_dict()], {"FGM": 3, "PGD": 5})
    for part in spec["vconcat"]:
        assert ranges(part)[0] == {"FGM": CATEGORIES[3], "PGD": CATEGORIES[5]}


def test_a_colour_bar_is_not_said_twice():
    numbers = table("ab").with_columns(pl.col("what").replace_strict({"a": 1, "b": 2}))
    first, same = (heat(numbers, "step", "what", "share", domain=(0, 1)) for _ in range(2))
    other = heat(numbers, "step", "what", "share", domain=(0, 2))
    spec = panels([first, same, other, curves(table("ab"), "step", "share", "what")]).to_dict()
    shown = [
        panel["encoding"]["color"].get("legend", {}) for panel in said_once(spec)["concat"][:3]
    ]
    assert [legend is None for legend in shown] == [False, True, False]


@pytest.mark.parametrize(
    ("low", "high", "labels", "others"),
    [
        (0.2, 900.0, ["1", "10", "100"], ["10⁰", "0.1", "2", "500"]),
        (2e-7, 3e-1, ["10^-6", "10^-2"], ["1e-6", "0.01"]),
        (1.0, 1e6, ["1", "10", "10^3", "10^6"], ["1000", "1e+6"]),
        (2.0, 60.0, ["2", "5", "10", "50"], ["20.0"]),
        (2e5, 3e6, ["2×10^5", "10^6"], ["200000"]),
    ],
)
def test_a_log_axis_writes_powers_of_ten(low, high, labels, others):
    rows = pl.DataFrame({"x": [1, 2, 3], "y": [low, (low * high) ** 0.5, high]})
    text = figure.svg(curves(rows, "x", "y", log_y=True).to_dict())
    raised = re.sub(r'<tspan dy="-4" font-size="75%">([^<]*)</tspan>', r"^\1", text)
    seen = [one.replace("−", "-") for one in re.findall(r"<text[^>]*>([^<]+)</text>", raised)]
    assert set(labels) <= set(seen)
    assert not set(others) & set(seen)


def test_an_axis_does_not_go_below_zero_for_what_is_hardly_below_it():
    rows = table("ab", low=-0.01, high=10.0)
    layers = curves(rows, "step", "share", "what").to_dict()["layer"]
    assert layers[1]["encoding"]["y"]["scale"]["domainMin"] == 0
    below = curves(table("ab", low=-3.0, high=10.0), "step", "share", "what").to_dict()["layer"]
    assert "domainMin" not in below[1]["encoding"]["y"]["scale"]


def test_lines_on_each_other_have_gaps_and_one_table():
    rows = table(["one", "lambda", "three"])
    spec = curves(rows, "step", "share", "what", apart=True).to_dict()
    drawn = figure.svg(spec)
    colours = CATEGORIES[:3]
    dashes = [set(re.findall(rf'stroke="{one}"[^>]*?(stroke-dasharray)', drawn)) for one in colours]
    assert dashes == [set(), {"stroke-dasharray"}, {"stroke-dasharray"}]
    assert figure.table(spec).height == 9


def test_panels_can_have_one_axis():
    spec = curves(table("ab"), "step", "share", "what", y_domain=(-1.0, 3.0)).to_dict()
    assert spec["layer"][1]["encoding"]["y"]["scale"]["domain"] == [-1.0, 3.0]


def test_what_is_in_brackets_stays_in_one_line():
    title = "the growth of the signal over (1 - lambda) of the smallest bound that is printed there"
    spec = panels([curves(table("ab"), "step", "share", "what", title=title)] * 4).to_dict()
    lines = fitted(spec, 700)["concat"][0]["title"]["text"]
    assert any("(1\u00a0-\u00a0lambda)" in line for line in lines)


def test_a_picture_sets_texts_with_rare_letters_in_fonts_that_have_them(monkeypatch):
    monkeypatch.setattr(figure.vl_convert, "svg_to_png", lambda text, scale: text.encode())
    plain = '<text x="1" font-family="sans-serif">‖w‖ of ⟨a⟩</text>'
    rare = '<text x="1" font-family="sans-serif">‖∇<tspan dy="3">x</tspan> L‖</text>'
    drawn = figure.png(f"<svg>{plain}{rare}{plain}</svg>").decode()
    texts = re.findall("<text.*?</text>", drawn)
    assert texts[0] == texts[2] == plain.replace("⟨", "‹").replace("⟩", "›")
    assert texts[1].startswith('<text font-family="DejaVu Sans, ')
    assert texts[1].endswith('x="1">‖∇<tspan dy="3">x</tspan> L‖</text>')


def test_a_legend_is_not_said_twice():
    first, same, last = (curves(table("ab"), "step", "share", "what") for _ in range(3))
    other = curves(table("ab").rename({"what": "else"}), "step", "share", "else")
    spec = said_once(panels([first, same, other, last]).to_dict())
    legends = [panel["layer"][0]["encoding"]["color"]["legend"] for panel in spec["concat"]]
    assert [legend is None for legend in legends] == [False, True, False, True]


def test_a_panel_without_names_has_the_colour_of_no_name():
    named, plain = (curves(table("ab"), "step", "share", color) for color in ("what", None))
    spec = said_once(panels([named, plain]).to_dict())
    assert "color" not in spec["concat"][0]["layer"][1]["mark"]
    assert spec["concat"][1]["layer"][1]["mark"]["color"] == QUIET


def test_titles_are_cut_into_lines_and_stand_at_one_height():
    long = "A title with many more words than a panel of this width has any room for"
    rows = table(["one name", "another name", "a third one that is long", "a fourth"])
    legend = curves(rows, "step", "share", "what", title="Two rows of names", y_title=long)
    spec = panels([legend, curves(rows, "step", "share", title=long)]).to_dict()
    spec["resolve"] = {"scale": {"color": "independent"}}
    first, second = fitted(spec, 700)["concat"]
    assert len(second["title"]["text"]) > 1
    assert " ".join(second["title"]["text"]) == long
    assert first["title"] == {"text": "Two rows of names"}
    assert isinstance(first["layer"][0]["encoding"]["y"]["title"], list)
    heights = re.findall(r'role-title"><g transform="translate\(0,(-[\d.]+)\)', figure.svg(spec))
    one, other = map(float, heights)
    assert abs(one - other) <= 16 * len(second["title"]["text"])


def test_a_drawing_raises_and_lowers_what_has_no_small_letter():
    made = scripted("<text x='1'>L_{rob} &lt; d^{−0.3}, L_A, w*, robust_error, T₀</text>")
    small = re.findall(r'<tspan dy="(-?\d)" font-size="75%">(.*?)</tspan>', made)
    assert small == [("3", "rob"), ("-4", "−0.3"), ("3", "A"), ("3", "0")]
    ElementTree.fromstring(made)


@pytest.mark.parametrize(("low", "high", "domain"), [(0.1, 0.9, [0, 1]), (0.6, 0.7, None)])
def test_an_axis_of_an_accuracy_ends_at_0_and_1_where_it_takes_most_of_them(low, high, domain):
    rows = table("ab").with_columns(
        accuracy=pl.when(pl.col("what") == "a").then(low).otherwise(high)
    )
    scale = curves(rows, "step", "accuracy", "what").to_dict()["layer"][1]["encoding"]["y"]["scale"]
    assert scale.get("domain") == domain


@pytest.mark.parametrize(
    ("low", "high", "ends"),
    [(0.4, 1.0, (0.0, 1.0)), (0.0, 7.0, (0.0, None)), (-1.0, 1.0, (None, None))],
)
def test_bands_end_where_the_quantity_ends(low, high, ends):
    rows = table("ab", low, high)
    assert aggregate.ends(rows["share"]) == ends
    band = aggregate.means(rows, "step", "share", "what")
    if ends[0] is not None:
        assert band["low"].min() >= 0
    if ends[1] is not None:
        assert band["high"].max() <= 1
    if ends == (None, None):
        assert band["low"].min() < low


def test_many_numbers_as_colours_have_a_colour_bar():
    rows = pl.concat(table("a").with_columns(width=pl.lit(2.0**k)) for k in range(10))
    spec = curves(rows, "step", "share", "width").to_dict()
    color = spec["layer"][1]["encoding"]["stroke"]
    assert color["type"] == "quantitative"
    assert color["scale"]["type"] == "log"
    assert figure.svg(spec).count("<linearGradient") == 1
    assert figure.drawing(spec, "fig", "") is not None


def test_rows_of_panels_are_as_far_apart_as_axes_titles_and_legends_need():
    few, many = table(["one", "two"]), table([f"a name that is long, {k}" for k in range(6)])
    slanted = few.with_columns(step=pl.format("a long name of step {}", "step"))
    plain = [curves(few, "step", "share", "what") for _ in range(3)]
    two_lines = curves(few, "step", "share", "what", title=40 * "long ", x_title="step")
    tall = curves(many.rename({"what": "else"}), "step", "share", "else", title="Six names")
    between = {
        name: fitted(panels(charts).to_dict(), 390)["spacing"]["row"]
        for name, charts in {
            "plain": plain,
            "titled": [*plain, two_lines],
            "legend": [*plain, tall],
            "slanted": [curves(slanted, "step", "share", "what"), *plain],
        }.items()
    }
    assert between["plain"] < between["titled"]
    assert between["plain"] + 6 * 16 < between["legend"]
    assert between["plain"] + 30 < between["slanted"]


def test_a_panel_to_scale_keeps_its_shape():
    plane = to_scale(
        alt.LayerChart(layer=[alt.Chart(table("a"), width=300, height=150).mark_point()])
    )
    panel = fitted(panels([plane] * 3).to_dict(), 700)["concat"][0]
    assert panel["width"] != 300
    assert panel["height"] == pytest.approx(panel["width"] / 2, abs=1)


def test_panels_that_share_a_legend_have_one_number_of_columns_and_one_order_of_contours():
    first, second = (
        curves(table(names), "step", "share", "what") for names in ("ab", ["a", 20 * "c"])
    )
    spec = fitted(panels([first, second]).to_dict(), 390)
    legends = [
        part["encoding"]["color"]["legend"] for one in spec["concat"] for part in one["layer"]
    ]
    assert len({legend["columns"] for legend in legends}) == 1
    grid = pl.DataFrame([{"x": x, "y": y, "v": 1.0 * x * y} for x in (1, 2) for y in (1, 2)])
    drawn = [
        heat(
            grid, "x", "y", "v", lines=pl.DataFrame({"x": [1, 2], "y": [1, 2], "line": [name] * 2})
        )
        for name in ("measured", "Theorem 3.1")
    ]
    said = said_once(panels(drawn).to_dict())
    domains = [one["layer"][-1]["encoding"]["stroke"]["scale"]["domain"] for one in said["concat"]]
    assert domains == [["measured", "Theorem 3.1"]] * 2


def test_lines_with_gaps_are_those_that_have_points():
    known = pl.DataFrame({"step": [1, 3], "share": [0.1, 0.2], "what": "theory only"})
    chart = curves(table("ab"), "step", "share", "what", theory=known, apart=True)
    for spec in (said_once(chart.to_dict()), said_once(panels([chart]).to_dict())["concat"][0]):
        filters = [step["filter"] for one in spec["layer"] for step in one.get("transform", [])]
        assert filters == ["datum.place == 0", "datum.place == 1"]


def test_an_outline_has_the_colours_and_the_legend_of_its_box():
    rows = table(["0.1", "0.5"]).with_columns(pl.col("what").cast(pl.Float64))
    (spec,) = shared([boxes(rows, "step", "share", "what").to_dict()], {"a": 1})
    encoding = said_once(spec)["layer"][1]["encoding"]
    assert encoding["stroke"] == encoding["color"]
    assert encoding["stroke"]["scale"]["range"] == CATEGORIES[:2]
