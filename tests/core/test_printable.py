"""What a terminal would obey never reaches it from data."""

from __future__ import annotations

import io
import unicodedata

import pytest
from bakeoff.cli.streams import echo
from bakeoff.core.printable import dollars, join_names, printable, some
from bakeoff.report.console import Screen
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from tests.registries import MODULES

CLEAR = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202eok"


@given(st.text())
def test_no_control_character_is_left_but_tab_and_newline(text: str) -> None:
    cleaned = printable(text)
    assert len(cleaned) == len(text)
    assert {sign for sign in cleaned if unicodedata.category(sign) == "Cc"} <= {"\t", "\n"}
    assert all(new == old or new == "\ufffd" for new, old in zip(cleaned, text, strict=True))


def test_a_table_shows_control_characters_and_keeps_its_own_colours() -> None:
    file = io.StringIO()
    screen = Screen(file=file, force_terminal=True, width=80, markup=False, highlight=False, color_system="standard")
    screen.print(Text(f"title {CLEAR}", style="red"))
    printed = file.getvalue()
    assert "\x1b[2J" not in printed
    assert "\x1b]0;" not in printed
    assert "\x9b" not in printed
    assert "\u202e" not in printed
    assert printed.startswith("\x1b[31m")


def test_every_command_prints_through_it(capsys: pytest.CaptureFixture[str]) -> None:
    echo(f"a title\n{CLEAR}")
    assert capsys.readouterr().out == printable(f"a title\n{CLEAR}") + "\n"
    uses = [module for module, path in MODULES.items() if "typer.echo" in path.read_text(encoding="utf-8")]
    assert uses == ["bakeoff.cli.streams"]


@pytest.mark.parametrize(
    ("figure", "written"),
    [(0, "$0"), (1, "$1.00"), (65, "$65.00"), (0.01, "$0.01"), (0.0099, "$0.0099"), (0.00123, "$0.0012")],
)
def test_dollars_have_as_few_digits_as_tell_them(figure: float, written: str) -> None:
    assert dollars(figure) == written


def test_names_in_a_sentence() -> None:
    names = [f"n{at}" for at in range(14)]
    assert join_names(names[:1]) == "n0"
    assert join_names(names[:2]) == "n0 and n1"
    assert join_names(names[:13]) == ", ".join(names[:12]) + " and n12"
    assert join_names(names) == ", ".join(names[:12]) + " and 2 more"


def test_some_names_and_how_many_more() -> None:
    assert some(["a", "b"], 2) == "a, b"
    assert some(["a", "b", "c"], 2) == "a, b and 1 more"
