"""A real browser for tests of pages: started, resized, and scrolled until all is drawn."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

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
BROWSER = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER),
        reason="chromium or chromedriver is not installed (scripts/install-chromium.sh)",
    ),
]


def started(profile: Path) -> Iterator:
    """A browser with an empty profile, until the tests that use it are over."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in [*FLAGS, f"--user-data-dir={profile}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    yield driver
    driver.quit()


def see_all(browser) -> None:
    """Scroll each figure into view until it can be pointed at."""
    for figure in browser.find_elements("tag name", "figure"):
        browser.execute_script("arguments[0].scrollIntoView()", figure)
        wait(browser, lambda _, f=figure: f.find_elements("css selector", "[data-live] svg"))


def wait(browser, until) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 30).until(until)


def find(browser, selector: str) -> list:
    return browser.find_elements("css selector", selector)


def emulate(browser, *, width: int = 1280, scheme: str = "light") -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
