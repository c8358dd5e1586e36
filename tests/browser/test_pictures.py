"""The README's pictures of pages can be taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.conftest import Browser
from tests.pictures import write_grading, write_page

pytestmark = pytest.mark.browser


def test_everything_that_a_callout_points_at_is_on_the_page(browser: Browser, tmp_path: Path) -> None:
    """Pixels depend on the machine's fonts, and are not compared."""
    write_page(browser, tmp_path)
    write_grading(browser, tmp_path)
    assert [path.read_bytes()[:4] for path in sorted(tmp_path.iterdir())] == [b"\x89PNG"] * 2
