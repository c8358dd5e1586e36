"""The README's pictures, made by running: `python -m tests.pictures` writes them into docs/pictures/.

The first screen and the page are those of results/reference; the grading page is that of the README's own commands.
"""

from __future__ import annotations

import base64
import io
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bakeoff.report.first_screen import FirstScreen, Links
from bakeoff.results.current import current_summary
from rich.console import Console
from rich.terminal_theme import TerminalTheme

from tests.browser.conftest import Browser, start_chromium
from tests.terminal import bakeoff

ROOT = Path(__file__).parent.parent
PICTURES = ROOT / "docs" / "pictures"
REFERENCE = ROOT / "results" / "reference"
LINKS = Links("bakeoff report latest --open", "bakeoff show latest --full", "results/reference/")
Colour = tuple[int, int, int]
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono, Liberation Mono, monospace"


def _theme(background: Colour, plain: Colour, yellow: Colour) -> TerminalTheme:
    """The colours that the first screen uses; the others are its plain one."""
    return TerminalTheme(background, plain, [plain, plain, plain, yellow, plain, plain, plain, plain])


THEMES = {
    "light": _theme((255, 255, 255), (31, 35, 40), (154, 103, 0)),
    "dark": _theme((13, 17, 23), (230, 237, 243), (210, 153, 34)),
}

# Elements of the page, and what to know of each. A missing one is an error.
CALLOUTS = (
    ("h1", "The decision: is there a winner, and what would settle it?"),
    ("#limits", "Set your limits: rows, choice and marks follow"),
    ("table.matrix tbody tr.ran:nth-child(1)", "★ leads, ≈ may be best (95% confidence)"),
    (
        "table.matrix tbody tr.ran:nth-child(9)",
        "Each score with its 95% interval; stores that score alike share a line",
    ),
    (".picks", "At most three picks, each with its price"),
)
PAGE_WIDTH, CALLOUT_WIDTH = 1280, 320
GRADING_SIZE = (1000, 400)
_DRAW = """
const [callouts, left, width] = arguments;
const add = (style) => {
  const part = document.body.appendChild(document.createElement('div'));
  Object.assign(part.style, {position: 'absolute', zIndex: 9, ...style});
  return part;
};
let free = 0;
for (const [selector, words] of callouts) {
  const box = document.querySelector(selector).getBoundingClientRect();
  const top = Math.max(box.top + scrollY, free);
  const text = add({left: `${left}px`, top: `${top}px`, width: `${width - 24}px`, font: '23px/1.25 sans-serif',
    color: '#7a3d00', background: '#fff4e0', borderLeft: '3px solid #c25a00', padding: '6px 12px',
    boxSizing: 'border-box'});
  text.textContent = words;
  if (top + 18 < box.bottom + scrollY)
    add({left: `${box.right}px`, top: `${top + 18}px`, width: `${left - box.right}px`, borderTop: '2px solid #c25a00'});
  free = top + text.offsetHeight + 12;
}
"""


def first_screen_svg(theme: str) -> str:
    """rich's own drawing of the first screen, in the reader's fonts: a picture must fetch nothing."""
    console = Console(file=io.StringIO(), record=True, width=100, markup=False, highlight=False, force_terminal=True)
    console.print(FirstScreen(current_summary(REFERENCE), LINKS))
    drawn = console.export_svg(title="bakeoff run", theme=THEMES[theme], unique_id=f"first-screen-{theme}")
    drawn = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
    drawn = drawn.replace("Fira Code, monospace", FONTS).replace("rgba(255,255,255,0.35)", "rgba(127,127,127,0.5)")
    return "".join(f"{line.rstrip()}\n" for line in drawn.splitlines())


def write_screens(folder: Path) -> None:
    for theme in THEMES:
        (folder / f"first-screen-{theme}.svg").write_text(first_screen_svg(theme), encoding="utf-8")


def write_page(browser: Browser, folder: Path) -> None:
    """From the head down to the picks, with what its parts say."""
    with tempfile.TemporaryDirectory() as work:
        page = Path(work) / "page.html"
        bakeoff("report", str(REFERENCE), "--out", str(page), "--no-pictures", cwd=ROOT)
        browser.screen(PAGE_WIDTH, 900)
        browser.open(page)
        browser.run("document.body.style.width = arguments[0] + 'px'", PAGE_WIDTH)
        browser.screen(PAGE_WIDTH + CALLOUT_WIDTH, 900)
        browser.run(_DRAW, CALLOUTS, PAGE_WIDTH, CALLOUT_WIDTH)
        bottom = browser.run("return document.querySelector('.picks').getBoundingClientRect().bottom")
        _capture(browser, folder / "page.png", PAGE_WIDTH + CALLOUT_WIDTH, bottom + 16)


def write_grading(browser: Browser, folder: Path) -> None:
    """The page that `bakeoff grade` opens, on the corpus of the README's commands, two pairs graded."""
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        shutil.copytree(ROOT / "tests" / "docs_corpora" / "centre", work, dirs_exist_ok=True)
        for command in ("corpus import help", "queries import asked.csv", "init task"):
            bakeoff(*command.split(), cwd=work)
        with _grading_page(work) as address:
            browser.screen(*GRADING_SIZE)
            browser.driver.get(address)
            for grade in ("0", "3"):
                at = browser.wait("return document.body.dataset.at")
                browser.driver.find_element("tag name", "body").send_keys(grade)
                browser.wait(f"return document.body.dataset.at !== '{at}'")
            _capture(browser, folder / "grading.png", *GRADING_SIZE)


@contextmanager
def _grading_page(work: Path) -> Iterator[str]:
    command = ["grade", "task", "--lineup", "bakeoff.toml", "--who", "ada", "--no-open"]
    call = [sys.executable, "-c", "from bakeoff.cli.main import main; main()", *command]
    with subprocess.Popen(call, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        yield next(found[0] for line in process.stdout if (found := re.search(r"http://127\.0\.0\.1:\d+/\S+", line)))
        process.terminate()


def _capture(browser: Browser, path: Path, width: int, height: float) -> None:
    clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    options = {"format": "png", "clip": clip, "captureBeyondViewport": True}
    shot = browser.driver.execute_cdp_cmd("Page.captureScreenshot", options)
    path.write_bytes(base64.b64decode(shot["data"]))


def main() -> None:
    write_screens(PICTURES)
    with tempfile.TemporaryDirectory() as profile:
        driver = start_chromium(Path(profile))
        try:
            write_page(Browser(driver), PICTURES)
            write_grading(Browser(driver), PICTURES)
        finally:
            driver.quit()


if __name__ == "__main__":
    main()
