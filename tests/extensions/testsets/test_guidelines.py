from __future__ import annotations

from html.parser import HTMLParser

import pytest
from bakeoff.extensions.testsets.annotate import to_html
from bakeoff.extensions.testsets.task_folder import TaskFolder
from hypothesis import given
from hypothesis import strategies as st


def test_what_it_knows_by_hand() -> None:
    text = (
        "# How\n\nRead the *whole*\ntext & **all**.\n\n1. one\n   more\n2. two\n\n- a\n\n"
        "| q | asks |\n|---|:-:|\n| q1 | <b> |\n"
    )
    assert to_html(text).splitlines() == [
        "<h3>How</h3>",
        "<p>Read the <i>whole</i> text &amp; <b>all</b>.</p>",
        "<ol><li>one more</li><li>two</li></ol>",
        "<ul><li>a</li></ul>",
        "<table><tr><td>q</td><td>asks</td></tr><tr><td>q1</td><td>&lt;b&gt;</td></tr></table>",
    ]


@pytest.mark.parametrize("name", ["wikipedia", "wikipedia-paraphrased"])
def test_the_shipped_guidelines_have_a_row_for_every_query(name: str) -> None:
    folder = TaskFolder.open(name)
    page = to_html(folder.guidelines)
    assert all(f"<td>{query}</td>" in page for query in folder.query_ids)


@given(st.text("a<>&*|#-1. \n\"'", max_size=60) | st.text(max_size=60))
def test_no_markup_of_the_texts_own_gets_through(text: str) -> None:
    seen: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            assert not attrs
            seen.append(tag)

    Reader().feed(to_html(text))
    assert set(seen) <= {"h3", "p", "b", "i", "ul", "ol", "li", "table", "tr", "td"}
