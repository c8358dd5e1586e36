"""The README: short, its pictures and figures true, its commands those that work."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path

import pytest
from bakeoff import load

from tests.cli.test_testsets import say
from tests.pictures import PICTURES, THEMES, first_screen_svg

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    (found,) = re.findall(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", TEXT, flags=re.M | re.S)
    return str(found)


def words_of(svg: str) -> list[str]:
    return [html.unescape(text) for text in re.findall(r">([^<>]*)</text>", svg)]


def test_it_is_short() -> None:
    assert len(TEXT.splitlines()) <= 150
    assert len(TEXT.split()) <= 900


def test_it_shows_every_picture() -> None:
    assert set(re.findall(r"docs/pictures/([\w.-]+)", TEXT)) == {path.name for path in PICTURES.iterdir()}


@pytest.mark.parametrize("theme", THEMES)
def test_the_picture_of_the_first_screen_is_that_of_the_reference(theme: str) -> None:
    """By its texts, which no version of rich changes; `make pictures` draws it again."""
    drawn = (PICTURES / f"first-screen-{theme}.svg").read_text(encoding="utf-8")
    assert words_of(drawn) == words_of(first_screen_svg(theme))
    assert "url(http" not in drawn


def test_its_commands_lead_from_documents_to_a_verdict(tmp_path: Path) -> None:
    """On the corpus that they name; people's page is only planned, and their grades come from a table."""
    shutil.copytree(ROOT / "tests" / "docs_corpora" / "centre", tmp_path, dirs_exist_ok=True)
    steps = re.findall(r"^bakeoff (.*?)(?: +#.*)?$", section("Your own documents, in six commands"), flags=re.M)
    assert [step.split()[0] for step in steps] == ["corpus", "queries", "init", "models", "grade", "run"]
    for step in steps:
        if step.startswith("grade"):
            assert "18 pairs: all of them" in say(tmp_path, *step.split(), "--dry-run")
            say(tmp_path, "grade", "import", "task", "grades.csv", "--who", "ada")
        elif step == "run":
            say(tmp_path, "run", "--contender", "bm25", "--no-charts")
            (folder,) = (tmp_path / "results").iterdir()
            summary = load(folder).summary
            assert ([row.label for row in summary.ran], summary.task.queries) == (["bm25"], 3)
        elif not step.startswith("models"):
            say(tmp_path, *step.split())


def test_its_figures_stand_in_the_pages_that_it_names() -> None:
    rows = re.findall(
        r"^\| .*?\]\((docs/[\w/-]+\.md)(?:#[\w-]+)?\).*\| (?:to )?([\d. e-]+) \|$", section("Why trust it"), re.M
    )
    assert len(rows) == 3
    assert [(page, figure) for page, figure in rows if figure not in (ROOT / page).read_text(encoding="utf-8")] == []


def test_its_lines_for_ci_are_those_of_the_complete_workflow() -> None:
    """Which tests/cli run."""
    lines = re.findall(r"^- run: .*$", section("In CI"), flags=re.M)
    whole = (ROOT / "docs" / "guides" / "gate-in-ci.md").read_text(encoding="utf-8")
    assert len(lines) == 4
    assert [line for line in lines if line not in whole] == []
