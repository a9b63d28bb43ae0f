"""The figures of real experiments in a browser: nothing overlaps, and Vega has no complaint."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import BROWSER, emulate, find, see_all, started
from every_chart import every_page

pytestmark = BROWSER
HARD = (
    "benign/appendix_bounds",
    "benign/fig1",
    "cgro/linear_regions",
    "convergence/corollary_end_to_end",
    "convergence/kernel_parity",
    "convergence/lazy_regime",
    "convergence/robust_capacity",
    "convergence/tangent_kernels",
    "generalization/fig4",
    "purification/fig1",
    "purification/lemmas",
)
"""Figures in which something was once drawn over something else, or that Vega complained of."""
OVERLAPS = """
const roles = ["title-text", "axis-title", "axis-label", "legend"];
const names = roles.map((role) => `.role-${role} text`).join();
const meet = (a, b, wide, high) =>
  Math.min(a.right, b.right) - Math.max(a.left, b.left) > wide &&
  Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > high;
const found = [];
for (const figure of document.querySelectorAll("figure")) {
  const svg = figure.querySelector("[data-live] svg");
  const all = svg.getBoundingClientRect();
  const seen = (text) => text.textContent.trim() && getComputedStyle(text).opacity !== "0";
  const texts = [...svg.querySelectorAll(names)].filter(seen).map((text) => [
    text.textContent, text.getBoundingClientRect(), Boolean(text.closest(".role-axis-label")),
  ]);
  const panels = [...svg.querySelectorAll("path.background")]
    .map((one) => one.getBoundingClientRect())
    .filter((one) => one.width > 60 && one.height > 60 && one.width < all.width);
  const inside = (a, b) =>
    Math.min(a.left - b.left, b.right - a.right, a.top - b.top, b.bottom - a.bottom) >= -1;
  texts.forEach(([one, a, label], at) => {
    for (const [other, b, too] of texts.slice(at + 1)) {
      if (!(label && too) && meet(a, b, 4, 3)) found.push([figure.id, one, other]);
    }
  });
  panels.forEach((a, at) => {
    for (const b of panels.slice(at + 1)) {
      if (meet(a, b, 8, 8) && !inside(a, b) && !inside(b, a)) found.push([figure.id, "panels"]);
    }
  });
}
return found;
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator:
    yield from started(tmp_path_factory.mktemp("profile"))


def looked_at(browser, path: Path, width: int) -> None:
    emulate(browser, width=width)
    try:
        browser.get(path.as_uri())
        see_all(browser)
        assert browser.get_log("browser") == []
        assert browser.execute_script(OVERLAPS) == []
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert len(find(browser, "[data-live] svg")) == len(find(browser, "figure"))
    finally:
        emulate(browser)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("width", [390, 800, 1200])
@pytest.mark.usefixtures("quiet")
def test_hard_figures_overlap_nowhere_and_are_drawn_without_a_warning(browser, hard, width):
    looked_at(browser, hard, width)


@pytest.mark.nightly
@pytest.mark.timeout(900)
@pytest.mark.parametrize("width", [390, 600, 800, 1000, 1200, 1400, 2000])
@pytest.mark.usefixtures("quiet")
def test_no_figure_overlaps_or_is_drawn_with_a_warning(browser, written, width):
    looked_at(browser, written, width)


@pytest.fixture(scope="module")
def hard(tmp_path_factory) -> Path:
    return every_page(tmp_path_factory.mktemp("hard"), HARD)


@pytest.fixture
def quiet(browser) -> None:
    """What the browser logged before is forgotten."""
    browser.get_log("browser")


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    return every_page(tmp_path_factory.mktemp("report"))
