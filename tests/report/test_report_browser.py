"""The report in a real browser, opened as a file: drawn, quiet, offline and easy to walk."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from sample_results import KNOWN, results

from advlab.report.page import write_report

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,900",
]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER),
        reason="chromium or chromedriver is not installed (scripts/install-chromium.sh)",
    ),
]


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    yield driver
    driver.quit()


@pytest.fixture
def page(browser, tmp_path) -> Iterator[Path]:
    """A fresh report, open in the browser with every figure seen once."""
    path = tmp_path / "report.html"
    write_report(results(), path, KNOWN)
    browser.get_log("browser")
    browser.get_log("performance")
    browser.get(path.as_uri())
    see_all(browser)
    yield path
    assert browser.get_log("browser") == []


def see_all(browser) -> None:
    """Scroll each figure into view until it is drawn."""
    from selenium.webdriver.support.ui import WebDriverWait

    for figure in browser.find_elements("tag name", "figure"):
        browser.execute_script("arguments[0].scrollIntoView()", figure)
        WebDriverWait(browser, 20).until(lambda _, f=figure: f.find_elements("css selector", "svg"))


def emulate(browser, *, width: int = 1280, scheme: str = "light") -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def requests(browser) -> list[str]:
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]


def test_every_chart_is_drawn_with_its_marks(browser, page):
    drawn = browser.execute_script(
        """return [...document.querySelectorAll("figure svg")].map(svg => ({
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
    assert told[:4] == ["eps", "0", "step", "0"]
    assert told[-2:] == ["replicates", "2"]


def test_nothing_is_asked_of_the_network(browser, page):
    outside = [url for url in requests(browser) if not url.startswith(("file:", "data:", "blob:"))]
    assert outside == []


def test_links_of_the_index_lead_to_the_experiments(browser, page):
    links = browser.find_elements("css selector", "#index a")
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


def test_a_narrow_screen_has_no_sideways_scroll_and_one_panel_a_row(browser, page):
    from selenium.webdriver.support.ui import WebDriverWait

    wide = browser.execute_script("return document.querySelectorAll('svg')[2].clientHeight")
    emulate(browser, width=390)
    try:
        WebDriverWait(browser, 20).until(
            lambda driver: driver.execute_script(
                "return document.querySelectorAll('svg')[2].clientHeight > 2 * arguments[0]", wide
            )
        )
        assert browser.execute_script("return document.documentElement.scrollWidth <= 390")
    finally:
        emulate(browser)


def test_a_dark_screen_has_dark_charts(browser, page):
    from selenium.webdriver.support.ui import WebDriverWait

    ground = "return document.querySelector('figure svg').style.backgroundColor"
    around = "return getComputedStyle(document.body).backgroundColor"
    light = browser.execute_script(ground)
    emulate(browser, scheme="dark")
    try:
        WebDriverWait(browser, 20).until(lambda driver: driver.execute_script(ground) != light)
        assert light == "rgb(255, 255, 255)"
        assert browser.execute_script(ground) == browser.execute_script(around) != light
    finally:
        emulate(browser)


def test_a_figure_can_be_saved_with_the_keyboard(browser, page, tmp_path):
    from selenium.webdriver.support.ui import WebDriverWait

    setting = {"behavior": "allow", "downloadPath": str(tmp_path)}
    browser.execute_cdp_cmd("Browser.setDownloadBehavior", setting)
    for button in browser.find_elements("css selector", "#generalization-fig5 .save button"):
        button.send_keys("\n")
    files = [tmp_path / f"generalization-fig5.{kind}" for kind in ("svg", "png")]
    WebDriverWait(browser, 20).until(lambda _: all(file.exists() for file in files))
    assert files[0].read_bytes().startswith(b"<svg")
    assert files[1].read_bytes().startswith(b"\x89PNG")


def test_tables_are_there_without_javascript(browser, page):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(page.as_uri())
        assert len(browser.find_elements("css selector", ".verdicts tbody tr")) == 8
        assert browser.find_element("css selector", ".verdicts .badge").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
