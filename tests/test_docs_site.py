"""The documentation as a site: a complete menu, links that lead somewhere, short pages, and pages as the code says."""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Any

import pytest
import yaml
from bakeoff.systems import SYSTEMS

from tests.reference_pages import DOCS, FOLDERS, LINEUP, pages
from tests.test_docs_output import without_outputs

ROOT = DOCS.parent
PAGES = sorted(DOCS.rglob("*.md"))
CLAIMS = "internals/claims.md"  # what `make simulate` prints
WRITTEN = [page for page in PAGES if not str(page.relative_to(DOCS)).startswith((*FOLDERS, LINEUP, CLAIMS))]
LINKING = sorted([*PAGES, *ROOT.glob("*.md")])
WORDS, WORDS_OF_A_PAGE = 25_000, 1_500
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")
_FENCE = re.compile(r"^```.*?^```$", re.M | re.S)


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _menu(entries: list[Any]) -> list[str]:
    """The pages of a menu, in its order."""
    found: list[str] = []
    for entry in entries:
        values = list(entry.values()) if isinstance(entry, dict) else [entry]
        for value in values:
            found += _menu(value) if isinstance(value, list) else [value]
    return found


def _anchors(page: Path) -> set[str]:
    """Where links into a page can lead, as mkdocs and GitHub name its headings."""
    heads = re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text(encoding="utf-8")), re.M)
    return {
        re.sub(r"\s", "-", re.sub(r"[^\w\s-]", "", unicodedata.normalize("NFKD", head)).strip().lower())
        for head in heads
    }


def test_the_menu_has_every_page_once() -> None:
    menu = _menu(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    assert sorted(menu) == sorted(str(page.relative_to(DOCS)) for page in PAGES)


@pytest.mark.parametrize("page", LINKING, ids=_name)
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        led = page.parent / target if target else page
        assert led.exists(), target
        if DOCS in page.parents and target:
            assert DOCS in led.resolve().parents, f"{target} is not part of the site"
        assert not anchor or anchor in _anchors(led), f"{target}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_a_page_begins_with_what_its_reader_gets(page: Path) -> None:
    title, blank, first, *_ = page.read_text(encoding="utf-8").split("\n")
    assert title.startswith("# ")
    assert not blank
    assert re.match(r"[A-Z“\"`]", first), first


@pytest.mark.parametrize("page", WRITTEN, ids=_name)
def test_a_page_is_short(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").split()) <= WORDS_OF_A_PAGE


def test_all_pages_that_people_write_are_short() -> None:
    """Code counts, output that commands print does not."""
    assert sum(len(without_outputs(page.read_text(encoding="utf-8")).split()) for page in WRITTEN) <= WORDS


def test_generated_pages_are_what_the_code_says() -> None:
    shown = {
        str(page.relative_to(DOCS)): page.read_text(encoding="utf-8")
        for page in PAGES
        if page not in WRITTEN and _name(page) != f"docs/{CLAIMS}"
    }
    assert shown == pages(), "python -m tests.reference_pages writes them"


def test_the_architecture_page_names_the_module_of_every_row_type() -> None:
    text = (DOCS / "internals" / "architecture.md").read_text(encoding="utf-8")
    modules = {name: path.partition(":")[0].removeprefix("bakeoff.") for name, path in SYSTEMS.builtin.items()}
    assert dict(re.findall(r"^\| `(\w+)` \| .* \| `([\w/]+)\.py` \|$", text, re.M)) == {
        name: module.replace(".", "/") for name, module in modules.items()
    }
