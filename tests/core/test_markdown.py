"""Markdown tables keep their columns, whatever text they hold."""

from __future__ import annotations

import re

from bakeoff.core.markdown import inert, markdown_table, section_lines
from hypothesis import given
from hypothesis import strategies as st


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
