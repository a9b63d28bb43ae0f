"""The report in a real browser, opened as a file: drawn, quiet, offline and easy to walk."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from chromium import BROWSER, emulate, find, see_all, started, wait
from sample_results import KNOWN, convergence, lasso, quick, results

from advlab.cli import main
from advlab.report import Scope
from advlab.report.page import NoChart, write_report
from advlab.report.pictures import png
from advlab.report.printed import Printed, PrintedTable, Prints

PRINTS = Prints(
    numbers={
        "generalization/fig5/2": Printed(printed="0.23 at eps = 0.5", where="Section 2", value=0.23)
    },
    tables={
        "generalization/fig4": PrintedTable(
            where="Table 1", columns=("weights", "accuracy"), rows=(("lambda = 0", "84.3"),)
        )
    },
)
pytestmark = BROWSER


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator:
    yield from started(tmp_path_factory.mktemp("profile"))


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    write_report(results(), path, KNOWN, prints=PRINTS)
    return path


@pytest.fixture(scope="module")
def many(tmp_path_factory) -> Path:
    """Forty experiments: more than the contents can show at once."""
    path = tmp_path_factory.mktemp("many") / "report.html"
    one = quick().model_copy(update={"chart": {}, "paper": "toy"})
    toys = [one.model_copy(update={"experiment": f"toy/{place}"}) for place in range(40)]
    write_report(toys, path, {})
    return path


@pytest.fixture
def page(browser, written) -> Iterator[Path]:
    """The report, opened anew in the browser with every figure seen once."""
    path = written
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(path.as_uri())
    see_all(browser)
    yield path
    assert browser.get_log("browser") == []


def shown(browser, selector: str) -> list[str]:
    """The ids of the elements that a reader sees."""
    return browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].filter(e => !e.closest('[hidden]'))"
        ".map(e => e.id)",
        selector,
    )


def requests(browser) -> list[str]:
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]


def test_every_chart_is_drawn_with_its_marks(browser, page):
    drawn = browser.execute_script(
        """return [...document.querySelectorAll(".chart svg.marks")].map(svg => ({
            width: svg.getBoundingClientRect().width,
            height: svg.getBoundingClientRect().height,
            lines: svg.querySelectorAll(".mark-line path").length,
            areas: svg.querySelectorAll(".mark-area path").length,
            rects: svg.querySelectorAll(".mark-rect path").length,
            symbols: svg.querySelectorAll(".role-mark.mark-symbol path").length,
            label: svg.closest("[aria-roledescription=visualization]").ariaLabel,
        }))"""
    )
    assert len(drawn) == 3
    assert all(chart["width"] > 300 and chart["height"] > 200 for chart in drawn)
    risk, lasso, training = drawn
    assert (risk["lines"], risk["areas"]) == (3, 3)
    # Boxes: four sizes and two penalties; heat: four sizes and five folds; then eight points.
    assert lasso["rects"] >= 8 + 20
    assert lasso["symbols"] >= 8
    assert (training["lines"], training["areas"]) == (9, 9)
    assert training["label"].startswith("Figure 5 of generalization")


def test_a_point_of_a_curve_tells_its_numbers(browser, page):
    from selenium.webdriver.common.action_chains import ActionChains

    points = browser.find_elements("css selector", "#benign-fig1 .mark-symbol.role-mark path")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", points[0])
    ActionChains(browser).move_to_element(points[0]).perform()
    told = browser.find_element("id", "vg-tooltip-element").text.split()
    assert told[:4] == ["ε", "0", "step", "0"]
    assert told[-2:] == ["replicates", "2"]


def test_nothing_is_asked_of_the_network(browser, page):
    outside = [url for url in requests(browser) if not url.startswith(("file:", "data:", "blob:"))]
    assert outside == []


def test_links_of_the_index_lead_to_the_experiments(browser, page):
    links = browser.find_elements("css selector", "#index li a")
    assert len(links) == 3
    for link in links:
        link.click()
        target = link.get_attribute("href").partition("#")[2]
        top = browser.execute_script(
            "return document.getElementById(arguments[0]).getBoundingClientRect().top", target
        )
        bottom = browser.execute_script(
            "return innerHeight + scrollY >= document.documentElement.scrollHeight - 1"
        )
        assert abs(top) < 40 or (top > 0 and bottom)


@pytest.mark.parametrize("width", [390, 760, 1100, 2000])
def test_no_width_of_a_screen_scrolls_sideways(browser, page, width):
    emulate(browser, width=width)
    try:
        for card in browser.find_elements("css selector", ".card")[:3]:
            browser.execute_script("arguments[0].open = true", card)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        emulate(browser)


@pytest.fixture(scope="module")
def wide(tmp_path_factory) -> Path:
    """A claim with long numbers, figures in three panels, and a picture."""
    path = tmp_path_factory.mktemp("wide") / "report.html"
    long = {"measured": -1.2345e-12, "low": -1.3456e-12, "high": -1.1234e-12}
    first = quick().verdicts[0].model_copy(update=long)
    bare = quick().model_copy(update={"chart": {}, "verdicts": [first]})
    pixels = np.full((300, 1500, 1), 200, np.uint8)
    write_report([bare, lasso()], path, {}, undrawn={"benign/fig1": NoChart("Why", png(pixels))})
    return path


@pytest.mark.parametrize("media", ["screen", "print"])
def test_long_numbers_stay_inside_their_card(browser, wide, media):
    emulate(browser, width=820)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media})
    try:
        browser.get(wide.as_uri())
        card, value = (find(browser, f"#benign-fig1 .{name}")[0].rect for name in ("card", "range"))
        assert value["width"] > 100
        assert value["x"] + value["width"] <= card["x"] + card["width"]
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        emulate(browser)


def test_a_figure_in_panels_uses_a_wide_screen(browser, wide):
    emulate(browser, width=2000)
    try:
        browser.get(wide.as_uri())
        see_all(browser)
        assert find(browser, ".chart svg.marks")[0].rect["width"] > 1350
    finally:
        emulate(browser)


def test_a_picture_can_be_enlarged_on_a_narrow_screen(browser, wide):
    emulate(browser, width=390)
    try:
        browser.get(wide.as_uri())
        (picture,) = find(browser, ".picture")
        assert picture.rect["width"] < 390
        for link, least, most in (("enlarge", 999, 1001), ("shrink", 0, 390)):
            find(browser, f".{link}")[0].click()
            wait(browser, lambda _, a=least, b=most: a < picture.rect["width"] < b)
            assert browser.execute_script("return document.documentElement.scrollWidth") <= 390
    finally:
        emulate(browser)


def test_a_reader_sees_what_the_paper_prints(browser, page):
    browser.find_element("css selector", "details.printed > summary").click()
    row = browser.find_element("css selector", "details.printed tbody tr").text
    assert "0.23 at ε = 0.5 (Section 2)" in row
    assert "0.2277" in row
    browser.find_element("css selector", "details.printed a").click()
    opened = browser.find_element("id", "generalization/fig5/2")
    wait(browser, lambda _: opened.get_attribute("open"))
    assert "THE PAPER PRINTS" in opened.text.upper()
    label = opened.find_element("css selector", "svg.strip").get_attribute("aria-label")
    assert label.endswith("the paper prints 0.23")
    assert "84.3" in browser.find_element("css selector", "#generalization-fig4 table").text


def test_everything_that_can_be_pressed_has_a_name_and_is_reached_by_tab(browser, page):
    unnamed = browser.execute_script(
        """const name = (one) => one.ariaLabel || one.textContent.trim() || one.placeholder;
        return [...document.querySelectorAll("a, button, input, summary, svg[role=img], figure")]
            .filter((one) => !name(one) || one.tabIndex < -1).map((one) => one.outerHTML)"""
    )
    assert unnamed == []
    body = browser.find_element("tag name", "body")
    body.send_keys("\ue004")  # Tab
    assert browser.switch_to.active_element.text == "Skip to the experiments"


def test_a_printed_page_has_no_buttons_and_every_figure(browser, page):
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        browser.execute_script("window.dispatchEvent(new Event('beforeprint'))")
        assert not browser.find_element("css selector", ".save").is_displayed()
        assert not browser.find_element("css selector", ".side").is_displayed()
        drawings = browser.find_elements("css selector", ".chart svg")
        assert sum(one.is_displayed() for one in drawings) == 3
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
        emulate(browser)


def test_a_narrow_screen_has_no_sideways_scroll_and_one_panel_a_row(browser, page):
    wide = browser.execute_script("return document.querySelectorAll('svg.marks')[2].clientHeight")
    emulate(browser, width=390)
    try:
        taller = "return document.querySelectorAll('svg.marks')[2].clientHeight > 2 * arguments[0]"
        wait(browser, lambda driver: driver.execute_script(taller, wide))
        assert browser.execute_script("return document.documentElement.scrollWidth <= 390")
    finally:
        emulate(browser)


def test_a_dark_screen_has_dark_charts(browser, page):
    ground = "return document.querySelector('svg.marks').style.backgroundColor"
    around = "return getComputedStyle(document.body).backgroundColor"
    light = browser.execute_script(ground)
    emulate(browser, scheme="dark")
    try:
        wait(browser, lambda driver: driver.execute_script(ground) != light)
        assert light == "rgb(255, 255, 255)"
        assert browser.execute_script(ground) == browser.execute_script(around) != light
    finally:
        emulate(browser)


def test_a_figure_can_be_saved_with_the_keyboard(browser, page, tmp_path):
    setting = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", setting)
    for button in browser.find_elements("css selector", "#generalization-fig5 .save button"):
        button.send_keys("\n")
    files = [tmp_path / f"generalization-fig5.{kind}" for kind in ("svg", "png")]
    wait(browser, lambda _: all(file.exists() for file in files))
    assert files[0].read_bytes().startswith(b"<svg")
    assert files[1].read_bytes().startswith(b"\x89PNG")


def test_search_and_filters_narrow_the_page(browser, page):
    everything = shown(browser, ".card")
    assert len(everything) == 8
    field = browser.find_element("id", "search")
    browser.find_element("tag name", "body").send_keys("/")
    assert browser.switch_to.active_element == field
    field.send_keys("KAPPA is 0.22")  # as typed; the page shows the symbol
    wait(browser, lambda _: shown(browser, ".card") == ["generalization/fig5/2"])
    assert shown(browser, ".experiment") == ["generalization-fig5"]
    assert "1 of 8 claims in 1 experiment" in browser.find_element("class name", "found").text
    field.send_keys("\ue00c")  # Escape
    wait(browser, lambda _: shown(browser, ".card") == everything)
    browser.find_element("css selector", "[data-outcome=refuted].choice").click()
    assert shown(browser, ".card") == ["generalization/fig5/5"]
    browser.find_element("css selector", "[data-outcome=supported].choice").click()
    assert len(shown(browser, ".card")) == 4
    field.send_keys("nowhere to be found")
    wait(browser, lambda _: shown(browser, ".card") == [])
    browser.find_element("css selector", "[data-clear]").click()
    assert shown(browser, ".card") == everything


def test_a_count_leads_to_the_claims_that_it_counts(browser, page):
    (count,) = find(browser, "[data-only-outcome=refuted]")
    assert count.text == "1"
    assert "generalization/fig5/5" in count.get_attribute("href").replace("%2F", "/")
    count.click()
    assert shown(browser, ".card") == ["generalization/fig5/5"]
    # A run at smoke scale is among no counts.
    (undecided,) = find(browser, "[data-only-outcome=undecided]")
    undecided.click()
    assert len(shown(browser, ".card")) == int(undecided.text) == 3


def test_a_search_leaves_no_header_of_a_paper_without_a_match(browser, page):
    field = browser.find_element("id", "search")
    field.send_keys("quick look")
    wait(browser, lambda _: shown(browser, ".experiment") == ["benign-fig1"])
    # The docstring of an experiment of the other paper has a list.
    assert browser.find_elements("css selector", "#paper-generalization .about li")
    assert shown(browser, ".paper") == ["paper-benign"]
    assert len([one for one in find(browser, ".paper-links") if one.is_displayed()]) == 1


FOUND = "return document.querySelector('.found').textContent"


@pytest.mark.parametrize(
    "spellings",
    [("eps", "epsilon", "ε", "Ε"), ("theta", "θ"), ("kappa", "ϰ"), ("R*(eps)", "R^*(ε)")],
)
def test_names_and_symbols_of_letters_find_each_other(browser, page, spellings):
    field, found = browser.find_element("id", "search"), []
    for spelling in spellings:
        field.send_keys(spelling)
        wait(browser, lambda driver: " of 8 claims" in driver.execute_script(FOUND))
        found.append(shown(browser, ".card"))
        field.send_keys("\ue00c")  # Escape
        wait(browser, lambda driver: not driver.execute_script(FOUND))
    assert all(one == found[0] != [] for one in found)
    assert len(found[0]) < 8


FOLLOWED = """
const section = document.getElementById(`toy-${arguments[0]}`);
const top = section.getBoundingClientRect().top;
if (Math.abs(top - 90) > 1) {
  scrollTo({ top: top + scrollY - 90, behavior: "instant" });
  return false;
}
const [link] = document.querySelectorAll("#index [aria-current]");
if (!link || !link.href.endsWith(`#toy-${arguments[0]}`)) return false;
const [item, finder] = [link, document.querySelector(".finder")]
    .map((one) => one.getBoundingClientRect());
return item.top >= finder.bottom && item.bottom <= innerHeight
"""


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_the_contents_follow_the_reader(browser, many, motion):
    features = [{"name": "prefers-reduced-motion", "value": motion}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    browser.get(many.as_uri())
    try:
        for place in (35, 3):
            # Sections that come into view change their heights, so the place is sought again.
            wait(browser, lambda driver, place=place: driver.execute_script(FOLLOWED, place))
    finally:
        emulate(browser)


def test_a_link_to_a_verdict_opens_it_even_when_filtered_away(browser, page):
    browser.find_element("css selector", "[data-outcome=undecided].choice").click()
    browser.execute_script("location.hash = 'generalization/fig5/5'")
    opened = "return document.getElementById('generalization/fig5/5').open"
    wait(browser, lambda driver: driver.execute_script(opened))
    card = browser.find_element("css selector", ".card:target")
    assert "The printed constant drops a factor of two." in card.text
    top = "return arguments[0].getBoundingClientRect().top"
    wait(browser, lambda driver: -5 < driver.execute_script(top, card) < 900)


def test_a_claim_opens_with_the_keyboard(browser, page):
    summary = browser.find_element("css selector", ".card > summary")
    assert not summary.find_element("xpath", "../dl").is_displayed()
    summary.send_keys("\n")
    assert summary.find_element("xpath", "../dl").is_displayed()


@pytest.fixture(scope="module")
def scoped(tmp_path_factory) -> Path:
    """An experiment whose claims have one scope."""
    path = tmp_path_factory.mktemp("scoped") / "report.html"
    one = convergence()
    scope = Scope(reduced="200 of 1000 steps")
    verdicts = [verdict.model_copy(update={"scope": scope}) for verdict in one.verdicts]
    write_report([one.model_copy(update={"verdicts": verdicts})], path, {})
    return path


def test_a_claim_shows_the_scope_that_it_shares_when_it_is_opened(browser, scoped):
    browser.get(scoped.as_uri())
    assert browser.page_source.count("200 of 1000 steps") == 1
    for card in browser.find_elements("css selector", ".card")[:2]:
        card.find_element("tag name", "summary").send_keys("\n")
        wait(browser, lambda _, card=card: "200 of 1000 steps" in card.text)


def test_a_claim_leads_to_the_scope_that_it_shares_without_javascript(browser, scoped):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(scoped.as_uri())
        card = browser.find_element("css selector", ".card")
        card.find_element("tag name", "summary").click()
        card.find_element("css selector", ".scope a").click()
        assert browser.find_element("css selector", ".shared-scope > p").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_the_numbers_of_a_chart_are_a_table(browser, page):
    button = browser.find_element("css selector", "#generalization-fig4 [data-table]")
    button.send_keys("\n")
    wait(browser, lambda _: button.get_attribute("aria-expanded") == "true")
    tables = browser.find_elements("css selector", "#generalization-fig4 .numbers table")
    assert len(tables) == 3  # boxes, points, heat
    head = [cell.text for cell in tables[0].find_elements("css selector", "th")]
    assert head[:3] == ["λ", "n", "adversarial accuracy"]
    assert len(tables[0].find_elements("css selector", "tbody tr")) == 8
    button.send_keys("\n")
    assert not tables[0].is_displayed()


def test_everything_but_search_is_there_without_javascript(browser, page):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    emulate(browser, scheme="dark")
    try:
        browser.get(page.as_uri())
        assert len(browser.find_elements("css selector", ".card")) == 8
        assert browser.find_element("css selector", ".card .badge").is_displayed()
        assert not browser.find_element("id", "search").is_displayed()
        drawings = browser.find_elements("css selector", ".chart svg")
        assert len(drawings) == 3
        assert all(one.size["width"] > 300 for one in drawings)
        ground = drawings[0].find_element("css selector", "rect")
        assert ground.value_of_css_property("fill") == "rgb(24, 27, 32)"
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        emulate(browser)


def test_the_page_of_a_linear_model_draws_its_charts(browser, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    np.savez(tmp_path / "data.npz", x=x, price=x[:, 0] + rng.normal(size=40))
    with pytest.raises(SystemExit):
        main(["fit-linear", f"{tmp_path}/data.npz", "--target", "price", "--out", str(tmp_path)])
    browser.get_log("browser")
    browser.get((tmp_path / "report.html").as_uri())
    see_all(browser)
    assert len(browser.find_elements("css selector", "[data-live] svg")) == 3
    assert browser.get_log("browser") == []
