"""The first screen of a result in every situation: what it says is held by stored screens, read as a user reads them.

`python -m tests.report.test_first_screen` writes them again; read each before it is committed, and ask of it: which
one do I take, and may I stop?
"""

from __future__ import annotations

import io
from pathlib import Path

import msgspec
import pytest
from bakeoff.core.facts import Failure
from bakeoff.report.console import Screen
from bakeoff.report.first_screen import FirstScreen, Links
from bakeoff.report.groups import group_names, group_rows, shorten
from bakeoff.report.verdict_words import Findings
from bakeoff.results.schema import Summary
from rich.cells import cell_len

from tests.report.made import in_two_stores, row, situations

SCREENS = Path(__file__).parent / "screens" / "first"
LINKS = Links("bakeoff report latest --open", "bakeoff show latest --full", "results/20261118-005712-wikipedia/")
STORED = {80: tuple(situations()), 100: ("not-settled", "many-rows"), 120: ("not-settled", "many-rows")}


def shown(summary: Summary, width: int, links: Links = LINKS) -> str:
    printed = io.StringIO()
    Screen(file=printed, width=width, markup=False, highlight=False, no_color=True).print(FirstScreen(summary, links))
    return printed.getvalue()


@pytest.mark.parametrize(("width", "name"), [(width, name) for width, names in STORED.items() for name in names])
def test_the_stored_screens(name: str, width: int) -> None:
    assert shown(situations()[name], width) == (SCREENS / f"{name}-{width}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [80, 100, 120, 200])
@pytest.mark.parametrize("name", situations())
def test_at_most_30_lines_that_fit(name: str, width: int) -> None:
    lines = shown(situations()[name], width).splitlines()
    assert len(lines) <= 30
    assert max(map(cell_len, lines)) <= width
    assert [line for line in lines if line != line.rstrip()] == []


def test_a_line_that_is_cut_has_the_reason_of_a_failure() -> None:
    """A full disk was hidden behind the path of the cache."""
    lost = Failure(kind="input", error="InputError", text="no space left on the device", file="/home/" + "x" * 90)
    summary = situations()["not-settled"]
    rows = [*summary.rows, msgspec.structs.replace(summary.rows[0], label="lost", not_run=lost)]
    (line,) = [line for line in shown(msgspec.structs.replace(summary, rows=rows), 80).splitlines() if "lost" in line]
    assert lost.text in line


@pytest.mark.parametrize("width", [40, 60])
@pytest.mark.parametrize("name", situations())
def test_a_narrow_terminal_breaks_no_word_of_the_table(name: str, width: int) -> None:
    assert shown(situations()[name], width)


def test_the_owners_figures_stand_beside_the_deciding_measure_at_100_columns() -> None:
    head = next(line for line in shown(situations()["not-settled"], 100).splitlines() if line.startswith("  contender"))
    assert head.split()[2:] == ["NDCG@10", "0.25", "1.00", "p50", "ms", "P@5", "R@10", "F1@5", "MRR"]


def test_rows_that_score_alike_share_a_line_with_their_stores() -> None:
    rows = [*in_two_stores("minilm", 0.8, 3.0), *in_two_stores("minilm-int8", 0.8, 2.0), row("bm25", 0.7)]
    first, second = group_rows(rows, {one.label: "minilm+faiss" for one in rows[:4]})
    assert (first.name, first.stores, first.others) == ("minilm", ["faiss", "chroma"], 1)
    assert [one.label for one in first.rows] == [one.label for one in rows[:4]]
    assert (second.name, second.stores, second.others) == ("bm25", [], 0)


def test_stores_that_differ_in_score_part_and_keep_their_label() -> None:
    rows = in_two_stores("minilm", 0.8, 3.0)
    assert [group.name for group in group_rows(rows, {})] == ["minilm+faiss", "minilm+chroma"]


def test_stores_are_what_to_choose_unless_one_is_shown_to_be_better() -> None:
    parted = situations()["one-store-differs"]
    assert Findings(parted).compares_stores
    only = msgspec.structs.replace(parted.verdict, situation="clear", best_set=["minilm+faiss-sq8"])
    assert not Findings(msgspec.structs.replace(parted, verdict=only)).compares_stores


def test_names_of_rows_that_score_alike() -> None:
    """By hand: a name stands for its stores where these score alike; a label stays whole where they do not."""
    alike = {"a+x": "a+x", "a+y": "a+x", "b+x": "b+x", "b+y": "b+y", "c": "c", "d+x": "c"}
    assert group_names(alike) == {"a+x": "a", "a+y": "a", "b+x": "b+x", "b+y": "b+y", "c": "c", "d+x": "c"}


def test_labels_are_shortened_in_the_middle() -> None:
    assert shorten("minilm@384-int8+faiss") == "minilm@384-int8+faiss"
    short = shorten("a-very-long-label-of-a-fusion-of-several-dense-models-and-bm25-rrf")
    assert short == "a-very-long-labe…nd-bm25-rrf"
    assert cell_len(shorten("検索" * 30)) <= 28


def test_what_cannot_be_encoded_is_drawn_in_ascii() -> None:
    raw = io.BytesIO()
    target = io.TextIOWrapper(raw, encoding="ascii", errors="replace", newline="\n")
    Screen(file=target, width=80, markup=False, highlight=False, no_color=True).print(
        FirstScreen(situations()["not-settled"], LINKS)
    )
    target.flush()
    text = raw.getvalue().decode("ascii")
    assert "* granite    faiss . chroma    0.830  :.........--o-.." in text
    assert "?" not in text


if __name__ == "__main__":
    SCREENS.mkdir(exist_ok=True)
    for columns, names in STORED.items():
        for one in names:
            (SCREENS / f"{one}-{columns}.txt").write_text(shown(situations()[one], columns), encoding="utf-8")
