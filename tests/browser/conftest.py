"""A real Chromium without a network of its own, driven by Selenium; skipped with the remedy where there is none."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.support.ui import WebDriverWait

from tests.reporting import hostile_result, wikipedia_result

FLAGS = ("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking",
         "disable-component-update", "disable-sync", "disable-dev-shm-usage", "hide-scrollbars")  # fmt: skip
PATIENCE = 60  # seconds: for a slow machine, never waited for on a quick one


def missing(what: str) -> None:
    if os.environ.get("BAKEOFF_BROWSER") == "required":
        pytest.fail(what, pytrace=False)
    pytest.skip(what)


class Browser:
    """What the tests do with a page."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver
        self._log: Callable[[str], list[dict[str, str]]] = driver.get_log

    def screen(self, width: int = 1280, height: int = 900, scheme: str = "light", media: str = "") -> None:
        phone = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})

    def open(self, page: Path) -> None:
        """Loads the page and waits until its last chart is drawn."""
        self._log("browser")
        self.driver.get(page.as_uri())
        self.wait("return document.documentElement.dataset.charts")

    def wait(self, script: str) -> Any:
        return WebDriverWait(self.driver, PATIENCE, 0.05).until(lambda driver: driver.execute_script(script))

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def complaints(self) -> list[str]:
        """Everything that the page wrote to the console."""
        return [f"{entry['level']}: {entry['message']}" for entry in self._log("browser")]

    def set(self, selector: str, value: object) -> None:
        """As a person would: the value, then the events."""
        self.run(
            "const e = document.querySelector(arguments[0]);"
            "if (e.type === 'checkbox') e.checked = arguments[1]; else e.value = arguments[1];"
            "e.dispatchEvent(new Event('input', {bubbles: true}));"
            "e.dispatchEvent(new Event('change', {bubbles: true}))",
            selector,
            value,
        )

    def click(self, selector: str) -> None:
        self.run("document.querySelector(arguments[0]).click()", selector)

    def point(self, selector: str) -> None:
        """Moves the mouse there."""
        found = self.driver.find_element("css selector", selector)
        ActionChains(self.driver).scroll_to_element(found).move_to_element(found).perform()

    def text(self, selector: str) -> str:
        return str(self.run("return document.querySelector(arguments[0]).textContent", selector))

    def texts(self, selector: str) -> list[str]:
        """The texts of everything that is visible."""
        script = (
            "return [...document.querySelectorAll(arguments[0])]"
            ".filter((e) => e.offsetParent !== null).map((e) => e.textContent)"
        )
        found: list[str] = self.run(script, selector)
        return found


def start_chromium(profile: Path) -> webdriver.Chrome:
    """A fresh browser that keeps everything in this folder."""
    names = ("chromium", "chromium-browser", "google-chrome")
    binary, driver = next(filter(None, map(shutil.which, names)), None), shutil.which("chromedriver")
    if binary is None or driver is None:
        missing("no Chromium with its chromedriver found: apt-get install chromium chromium-driver (Debian)")
    options = webdriver.ChromeOptions()
    options.binary_location = str(binary)
    for flag in FLAGS:
        options.add_argument(f"--{flag}")
    options.add_argument(f"--user-data-dir={profile}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(str(driver)))
    started.set_page_load_timeout(PATIENCE)
    return started


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    started = start_chromium(tmp_path_factory.mktemp("chromium"))
    yield Browser(started)
    started.quit()


@pytest.fixture(scope="session")
def axe() -> str:
    """axe-core's source, from npm."""
    path = Path(os.environ.get("BAKEOFF_AXE", ".venv/node_modules/axe-core/axe.min.js"))
    if not path.is_file():
        missing(f"no axe-core at {path}: make test-browser installs it")
    return path.read_text()


def axe_report(driver: webdriver.Chrome, source: str) -> tuple[list[str], list[str]]:
    """The rules that the page passes, and what it breaks."""
    driver.execute_script(source)
    driver.set_script_timeout(120)
    passes, violations = driver.execute_async_script(
        "const done = arguments[0]; axe.run(document, {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'best-practice']})"
        ".then((r) => done([r.passes.map((p) => p.id), r.violations.map((v) => v.id + ': ' + v.help + ' — ' +"
        " v.nodes.slice(0, 3).map((n) => n.html).join(' … '))]))"
    )
    return passes, violations


@pytest.fixture(scope="session")
def result(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wikipedia_result(tmp_path_factory.mktemp("results"))


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return hostile_result(tmp_path_factory.mktemp("hostile"))
