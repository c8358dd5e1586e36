"""The grading page in a real browser: ten pairs by keyboard, a killed server, and a phone's width."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tests.browser.conftest import axe_report, start_chromium
from tests.native_task import without_annotations

ROOT = Path(__file__).parent.parent.parent

pytestmark = pytest.mark.browser


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Any]:
    driver = start_chromium(tmp_path / "profile")
    driver.set_window_size(1280, 800)
    yield driver
    driver.quit()


class Page:
    """`bakeoff annotate` in a process of its own, and the page that it serves."""

    def __init__(self, browser: Any, task: Path, who: str = "ada") -> None:
        self.browser = browser
        command = ["annotate", str(task), "--who", who, "--no-open"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", "from bakeoff.cli.main import main; main()", *command],
            env=os.environ | {"PYTHONPATH": f"{ROOT}/harness:{ROOT}/providers"}, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert self.process.stdout is not None
        self.said = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:\d+/\S+", self.said)
        assert found, self.said
        self.address = found[0]
        browser.get(self.address)
        self.wait(lambda: self.at is not None)

    @property
    def at(self) -> str | None:
        value: str | None = self.browser.find_element(By.TAG_NAME, "body").get_attribute("data-at")
        return value

    def wait(self, reached: Callable[[], bool]) -> None:
        end = time.monotonic() + 20
        while not reached():
            assert time.monotonic() < end, "the page did not get there"
            time.sleep(0.02)

    def press(self, key: str) -> None:
        """Presses a key that leads to another pair, and waits for it."""
        before = self.at
        self.browser.find_element(By.TAG_NAME, "body").send_keys(key)
        self.wait(lambda: self.at != before)

    def text(self, name: str) -> str:
        return str(self.browser.find_element(By.ID, name).text)

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """The built-in task without its grades."""
    folder = tmp_path / "queries" / "wikipedia"
    shutil.copytree(ROOT / "queries" / "wikipedia", folder, ignore=shutil.ignore_patterns("annotations"))
    shutil.copytree(ROOT / "corpora", tmp_path / "corpora")
    return folder


@pytest.fixture
def pages() -> Iterator[list[Page]]:
    opened: list[Page] = []
    yield opened
    for page in opened:
        page.kill()


def grades(task: Path) -> dict[tuple[str, str], int]:
    content = json.loads((task / "annotations" / "ada.json").read_text())["grades"]
    return {(query, document): grade for query, row in content.items() for document, grade in row.items()}


def test_ten_pairs_by_keyboard_survive_a_killed_server(browser: Any, task: Path, pages: list[Page]) -> None:
    pages.append(Page(browser, task))
    page = pages[-1]
    given = [3, 2, 1, 0, 3, 0, 0, 1, 2, 3]
    seen, marked = [], set()
    asked = page.text("query").lower()
    for grade in given:
        seen.append(page.text("title"))
        assert page.text("where")  # the document's address, path or id
        marked |= {mark.text.lower() for mark in browser.find_elements(By.CSS_SELECTOR, "#text mark")}
        page.press(str(grade))
    assert page.text("count") == "10 of 500 graded"
    assert len(set(seen)) == 10
    assert any(word in asked for word in marked)
    assert page.text("category").endswith("11 OF 25")
    page.kill()
    assert list(grades(task).values()) == given

    # The page that is still open says that it can't save, and moves nowhere.
    browser.find_element(By.TAG_NAME, "body").send_keys("2")
    page.wait(lambda: browser.find_element(By.ID, "alarm").is_displayed())
    assert "was not saved" in page.text("alarm")
    assert page.at == "10"

    pages.append(Page(browser, task))
    again = pages[-1]
    assert again.said.startswith("10 of 500 pairs graded by ada")
    assert again.address != page.address
    assert (again.at, again.text("count")) == ("10", "10 of 500 graded")
    again.press("1")
    assert list(grades(task).values()) == [*given, 1]
    severe = [
        row for row in browser.get_log("browser") if row["level"] == "SEVERE" and "ERR_CONNECTION" not in row["message"]
    ]
    assert severe == []


def test_back_skip_note_and_a_changed_grade(browser: Any, task: Path, pages: list[Page]) -> None:
    pages.append(Page(browser, task))
    page = pages[-1]
    page.press("3")
    page.press("s")
    assert page.at == "2"
    page.press(Keys.ARROW_LEFT)
    page.press("b")
    assert page.at == "0"
    pressed = browser.find_element(By.CSS_SELECTOR, '.grade[aria-pressed="true"]')
    assert pressed.get_attribute("data-grade") == "3"
    browser.find_element(By.TAG_NAME, "body").send_keys("n")
    note = browser.switch_to.active_element
    assert note.get_attribute("id") == "note"
    note.send_keys("0 is a digit here, not a grade")
    note.send_keys(Keys.ESCAPE)
    page.press("2")
    assert page.at == "1"  # the pair that was skipped
    content = json.loads((task / "annotations" / "ada.json").read_text())
    assert [grade for row in content["grades"].values() for grade in row.values()] == [2]
    assert [text for row in content["notes"].values() for text in row.values()] == ["0 is a digit here, not a grade"]


def test_the_guidelines_open_at_the_query_and_take_no_grades(browser: Any, task: Path, pages: list[Page]) -> None:
    pages.append(Page(browser, task))
    page = pages[-1]
    body = browser.find_element(By.TAG_NAME, "body")
    body.send_keys("g")
    marked = browser.find_element(By.CSS_SELECTOR, "#guide tr.current")
    assert marked.is_displayed()
    assert marked.text.startswith("geo_001 Settlements close to Zion National Park")
    browser.switch_to.active_element.send_keys("3")
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    page.wait(lambda: not marked.is_displayed())
    assert (page.at, page.text("count")) == ("0", "0 of 500 graded")
    page.press("2")
    assert list(grades(task).values()) == [2]


def test_the_end_is_told_and_can_be_left_again(browser: Any, task: Path, pages: list[Page]) -> None:
    (task / "annotations").mkdir()
    (task / "annotations" / "pool.json").write_text('{"pairs": {"geo_001": ["71060", "26974"]}}')
    pages.append(Page(browser, task))
    page = pages[-1]
    page.press("3")
    page.press("0")
    assert page.at == "end"
    assert page.text("command").startswith("bakeoff validate ")
    page.press("b")
    assert page.at == "1"
    assert page.text("count") == "2 of 2 graded"


@pytest.mark.parametrize(("width", "height"), [(390, 844), (320, 568), (1280, 800)])
def test_everything_is_within_reach_at_every_width(
    browser: Any, task: Path, pages: list[Page], width: int, height: int
) -> None:
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    pages.append(Page(browser, task))
    inside = browser.execute_script(
        """const boxes = [...document.querySelectorAll("#query, #document, #grades button, footer .tools > *")]
             .map((it) => it.getBoundingClientRect());
           return boxes.every((box) => box.left >= 0 && box.right <= innerWidth && box.bottom <= innerHeight
             && box.height >= 24) && document.documentElement.scrollWidth <= innerWidth;"""
    )
    assert inside
    buttons = browser.find_elements(By.CSS_SELECTOR, "#grades button")
    if width < 600:
        assert all(button.size["height"] >= 44 and button.size["width"] >= 44 for button in buttons)  # a thumb's size
    buttons[3].click()
    pages[-1].wait(lambda: pages[-1].at == "1")
    assert list(grades(task).values()) == [3]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_grading_page(
    browser: Any, axe: str, task: Path, pages: list[Page], scheme: str
) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": features})
    pages.append(Page(browser, task))
    pages[-1].press("3")
    pages[-1].press("b")  # a pressed button is part of the contrast
    passes, violations = axe_report(browser, axe)
    assert violations == []
    assert "color-contrast" in passes


def test_a_task_with_two_grades_takes_no_third(browser: Any, task: Path, pages: list[Page]) -> None:
    truth = task / "ground_truth.json"
    content = json.loads(truth.read_text())
    content["metadata"]["scale"] = {"0": "no", "1": "yes"}
    content["grades"] = {}
    truth.write_text(json.dumps(content))
    without_annotations(task / "evaluate_queries.json")
    pages.append(Page(browser, task))
    assert [button.text for button in browser.find_elements(By.CSS_SELECTOR, "#grades button")] == ["0no", "1yes"]
    browser.find_element(By.TAG_NAME, "body").send_keys("3")
    assert pages[-1].at == "0"
    pages[-1].press("1")
    assert list(grades(task).values()) == [1]
