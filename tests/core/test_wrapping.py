"""Lines that fit, whole words, and figures beside what they count."""

from __future__ import annotations

import pytest
from bakeoff.core.printable import cells, wrap
from hypothesis import given
from hypothesis import strategies as st

WORD = st.text("abcdef0123456789.,[]()→=−★東", min_size=1, max_size=14)


@given(st.lists(WORD, min_size=1, max_size=30), st.integers(10, 90), st.integers(0, 4))
def test_no_word_is_broken_or_lost_and_no_line_is_too_long(words: list[str], width: int, indent: int) -> None:
    lines = wrap(" " * indent + " ".join(words), width)
    assert " ".join(lines).split() == words
    for line in lines:
        assert line == line.rstrip()
        assert cells(line) <= width or len(line.split()) == 1


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("its 95th percentile is 12.5 ms on this machine", "12.5 ms"),
        ("about $0.25 dollars for it, or 1,000 documents of it", "1,000 documents"),
        ("it went from 0.6863 → 0.6613 in one night, alas", "0.6863 → 0.6613"),
        ("the interval [-0.0460, -0.0052] leaves out zero", "[-0.0460, -0.0052]"),
        ("a drop of +0.0412 [+0.0062, +0.0765] was seen here", "+0.0412 [+0.0062, +0.0765]"),
        ("it would be found in 4 of 5 cases by so many", "4 of 5 cases"),
        ("the smallest p = 0.02 of all these pairs", "p = 0.02"),
    ],
)
def test_a_figure_stays_beside_its_unit_at_every_width(text: str, kept: str) -> None:
    for width in range(len(kept), len(text) + 1):
        assert any(kept in line for line in wrap(text, width)), width


def test_what_goes_on_below_an_indented_line_is_deeper() -> None:
    assert wrap("  one two three four", 12) == ["  one two", "    three", "    four"]
    assert wrap("one two three", 8) == ["one two", "three"]
    assert wrap("a  b\n\n  c", 80) == ["a  b", "", "  c"]
    assert wrap("see /a/very/long/path/that/fits/nowhere now", 12) == [
        "see", "/a/very/long/path/that/fits/nowhere", "now",
    ]  # fmt: skip
