"""Markdown tables keep their columns, whatever text they hold."""

from __future__ import annotations

import re

import pytest
from bakeoff.core.printable import inert, markdown_table, section_lines
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt


def test_a_table_by_hand() -> None:
    assert markdown_table(["a", "b"], [["x|y", "1"], ["<b>", "2 & 3"]], figures=[1]) == [
        "| a | b |",
        "|---|--:|",
        "| x\\|y | 1 |",
        "| &lt;b> | 2 &amp; 3 |",
    ]


def test_a_section_without_a_table_is_its_title_and_notes() -> None:
    assert section_lines("T", [], [], ["n\nm"]) == ["## T", "", "- n m", ""]


@given(st.lists(st.lists(st.text(), min_size=3, max_size=3), max_size=4))
def test_every_line_has_as_many_cells_as_heads(rows: list[list[str]]) -> None:
    for line in markdown_table(["a", "b", "c"], rows):
        assert len(line.splitlines()) == 1
        assert len(re.findall(r"(?<!\\)\|", line)) == 4


@given(st.text())
def test_inert_text_has_no_element(text: str) -> None:
    assert "<" not in inert(text)


@pytest.mark.parametrize(
    "text",
    ["![x](http://h/p.png)", "[x](javascript:alert(1))", "[x][y]", "[y]: http://h/", "see http://h/", "WWW.h.org",
     "me@h.org", "mailto:me@h", "<http://h/>", "[a\\](http://h/)", "![a][b]", "https://h/?a=1&b=2"],
)  # fmt: skip
def test_data_makes_no_link_and_no_image(text: str) -> None:
    """As markdown-it renders it, with tables and with addresses that become links by themselves."""
    markdown = MarkdownIt("gfm-like", {"linkify": True})
    for made in (
        markdown_table(["a"], [[text]]),
        section_lines(text, [], [], [text]),
        [f"- {inert(text)}", "", "[y] [x]"],
    ):
        rendered = markdown.render("\n".join(made))
        assert "<a " not in rendered
        assert "<img" not in rendered
