"""A headless Chromium that opens the page of `loko serve`, and helpers that read and operate the page."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from continuous_integration import has_all_programs
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver import Chrome, ChromeOptions
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

TIMEOUT_S = 60.0


def browser_or_skip() -> tuple[str, str]:
    """Return the paths of browser and driver, or skip. On CI under Debian set-up must have installed them."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        text = "no chromium with chromedriver here: run 'make browser'"
        if has_all_programs():
            pytest.fail(text)
        pytest.skip(text)
    return chromium, driver


@contextmanager
def browser(*, width: int = 1280, height: int = 900) -> Iterator[Chrome]:
    """Start a browser with a fresh profile. Skips the test if none is installed."""
    chromium, driver = browser_or_skip()
    options = ChromeOptions()
    options.binary_location = chromium
    for word in (
        "--headless=new",
        "--no-sandbox",  # root cannot use it, and we only open our own page
        "--disable-dev-shm-usage",
        "--disable-gpu",
        "--in-process-gpu",
        "--disable-features=BackForwardCache",  # pages that are left end, and the next has their process
        "--no-first-run",
        "--force-prefers-reduced-motion",  # nothing that moves is painted again and again
    ):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = Chrome(options=options, service=Service(driver))
    try:
        chrome.set_page_load_timeout(TIMEOUT_S)
        chrome.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )
        yield chrome
    finally:
        chrome.quit()


class Page:
    """The page in a browser, seen and operated as by a user."""

    def __init__(self, chrome: Chrome, address: str, *, shows: str = "#switch-list > li") -> None:
        self.chrome = chrome
        chrome.get(address)
        self.wait(lambda: self.all(shows), shows)

    def wait(self, condition: Callable[[], object], what: str) -> None:
        end_s = time.monotonic() + TIMEOUT_S
        while True:
            try:
                if condition():
                    return
            except (NoSuchElementException, StaleElementReferenceException):
                pass
            assert time.monotonic() < end_s, f"waited in vain for {what}: {self.text('body')}"
            time.sleep(0.1)

    def one(self, selector: str) -> WebElement:
        return self.chrome.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.chrome.find_elements(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        return self.one(selector).text

    def texts(self, selector: str) -> list[str]:
        return [str(element.get_property("textContent")) for element in self.all(selector)]

    def run(self, script: str, *arguments: object) -> Any:
        return self.chrome.execute_script(script, *arguments)

    def fill(self, **fields: object) -> None:
        """Fill in fields of the form as a user would."""
        for name, value in fields.items():
            field = self.one(f"#ask [name={name}]")
            if not field.is_displayed():
                self.one("#ask summary").click()
            if field.tag_name == "select":
                field.find_element(By.CSS_SELECTOR, f"option[value={str(value)!r}]").click()
            else:
                field.clear()
                field.send_keys(str(value))

    def submit(self) -> None:
        self.one("#ask button[type=submit]").click()

    def flow(self, flow_id: str) -> str:
        return f"#flow-list [data-flow={flow_id!r}]"

    def used(self, switch: str, quantity: str) -> int:
        """Return how full one bar of a switch is, in percent."""
        meter = self.one(f"#switch-list [data-switch={switch!r}] [data-quantity={quantity!r}] [role=meter]")
        return int(str(meter.get_attribute("aria-valuenow")))

    def complaints(self) -> list[str]:
        """Return the browser's console messages, except those about refused requests, which are expected.

        Those of the page before do not count.
        """
        begun_ms = self.run("return performance.timing.domLoading")
        said = [
            str(entry["message"])
            for entry in self.chrome.get_log("browser")
            if entry["level"] in ("SEVERE", "WARNING") and entry["timestamp"] >= begun_ms
        ]  # type: ignore[no-untyped-call]
        refused = re.compile("/v1/(flows|slots).*Failed to load resource")
        return [line for line in said if not refused.search(line)]
