"""The pages of a training, an evaluation and a linear model in a real browser."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from chromium import BROWSER, emulate, find, see_all, started

from advlab.cli import main
from advlab.report.evaluation import render_evaluation
from advlab.report.training import render_training

pytestmark = BROWSER
LONG = "package.with_a_long_name.networks:the_network_that_was_trained_twice"
VERSIONS = {"versions": {"torch": "2"}, "finished": "2026-01-01"}


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator:
    yield from started(tmp_path_factory.mktemp("profile"))


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    paths = {name: folder / f"{name}.html" for name in ("training", "evaluation")}
    paths["training"].write_text(training())
    paths["evaluation"].write_text(evaluation())
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 6))
    np.savez(folder / "data.npz", x=x, price=x[:, 0] + rng.normal(size=40))
    with pytest.raises(SystemExit):
        main(["fit-linear", f"{folder}/data.npz", "--target", "price", "--out", f"{folder}/linear"])
    return paths | {"linear": folder / "linear" / "report.html"}


def training() -> str:
    parts = ("train_clean", "train_robust", "validation_clean", "validation_robust")
    errors = {f"{part}_{what}": [0.5, 0.4] for part in parts for what in ("error", "loss")}
    log = {"stage": 2 * ["adversarial"], "epoch": [1.0, 2.0], "lr": [0.1, 0.01], **errors}
    about = {
        "plan": {"model": LONG, "data": "mnist"},
        "recipe": {"recipe": "pgd", "formula": "cross_entropy(f(x~), y)", "citation": "Madry"},
        "settings": {"lr": 0.1}, "status": "finished", "best": {"epoch": 1.0}, **VERSIONS,
    }  # fmt: skip
    return render_training(about, pl.DataFrame({**log, "objective": [2.0, 1.0], "seconds": [9, 9]}))


def evaluation() -> str:
    rng = np.random.default_rng(0)
    image = rng.random((1, 28, 28))
    worst = {"row": 3, "label": 1, "answer": 1, "wrong_answer": 2, "margin": 0.5}
    example = {**worst, "original": image, "perturbed": image + 0.01}
    keys = ("clean_error", "robust_error", "certified_error")
    member = dict.fromkeys(("rows", "broken", "seconds", "forwards", "backwards"), 123456)
    about = {
        "model": LONG, "data": "mnist", "n": 10, "threat_words": "linf perturbations up to 0.1",
        "threat": "Ball", "attack": "standard", "seed": 0, "batch": 10, "checks": True,
        **dict.fromkeys(keys, 0.3), "intervals": dict.fromkeys(keys, (0.1, 0.6)),
        "check_warnings": [], "members": [{"name": "APGD, targeted", **member}],
        "certificates_tried": {"ibp": [10, 4, 0.5]}, "refused": {}, "budget": None, "skipped": {},
        "curves": [{"over": "eps", "rows": 8, "values": [0.1, 0.2], "errors": [0.2, 0.5]}],
        "box": (0.0, 1.0), "seconds": 3.0, **VERSIONS,
    }  # fmt: skip
    return render_evaluation(about, [example])


PAGES = ["training", "evaluation", "linear"]


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("width", [390, 760, 1280])
def test_no_page_scrolls_sideways_or_says_anything_to_the_console(browser, pages, name, width):
    emulate(browser, width=width)
    try:
        browser.get_log("browser")
        browser.get(pages[name].as_uri())
        see_all(browser)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert browser.get_log("browser") == []
    finally:
        emulate(browser)


CONTRAST = """
const channels = (text) => text.match(/[\\d.]+/g).map(Number);
const light = (rgb) => rgb.slice(0, 3).map((one) => one / 255)
  .map((one) => (one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4))
  .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
function ground(element) {
  for (let one = element; one; one = one.parentElement) {
    const found = channels(getComputedStyle(one).backgroundColor);
    if (found.length < 4 || found[3] > 0) return found;
  }
  return [255, 255, 255];
}
return [...document.querySelectorAll("main p, main span, main th, main td, main h2")]
  .filter((one) => one.textContent.trim() && one.offsetParent && !one.closest("svg"))
  .map((one) => {
    const [a, b] = [channels(getComputedStyle(one).color), ground(one)].map(light);
    return [one.textContent.trim().slice(0, 40), (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05)];
  })
  .filter(([, ratio]) => ratio < 4.5);
"""


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_words_can_be_read_on_their_ground(browser, pages, name, scheme):
    """At the ratio of contrast that WCAG 2 asks of small text."""
    emulate(browser, scheme=scheme)
    try:
        browser.get(pages[name].as_uri())
        assert find(browser, "main p, main td")
        assert browser.execute_script(CONTRAST) == []
    finally:
        emulate(browser)


def test_a_page_has_symbols_and_a_column_keeps_its_name(browser, pages):
    browser.get(pages["training"].as_uri())
    assert find(browser, ".lead")[0].text.startswith("cross entropy(f(x\u0303), y)")
    browser.get(pages["linear"].as_uri())
    see_all(browser)
    assert "ℓ∞ attack" in find(browser, ".lead")[0].text.replace("\n", "")
    texts = browser.execute_script(
        "return [...document.querySelectorAll('[data-live] svg text')].map(one => one.textContent)"
    )
    assert "x5" in texts
    assert "ε (ℓ∞)" in texts
