"""The words of facts: one for every id that is used, with its arguments, and all of them stored to be read.

`python -m tests.report.test_words` writes the stored list again; look at it before it is committed.
"""

from __future__ import annotations

import ast
import inspect
import json
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bakeoff.core.extensions import collect_entries, load_place
from bakeoff.core.facts import Fact, Section, TableCell, TableColumn, column, fact, quote
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.sections import text_table
from bakeoff.report.words import WORDS, Words, words
from bakeoff.results.save import save
from bakeoff.results.schema import SUMMARY, read_summary
from bakeoff.running.runner import run

from tests.facts import ids
from tests.native_task import native_files, write_lineup

ROOT = Path(__file__).parents[2]
STORED = Path(__file__).parent / "screens" / "words.txt"
ALL: dict[str, Words] = {"": WORDS} | {
    f"{name}.": load_place(place) for name, place in collect_entries("WORDS").items()
}
EVERY = {prefix + name: said for prefix, table in ALL.items() for name, said in table.items()}


def made() -> Iterator[tuple[str, str, set[str] | None]]:
    """Every fact that the sources make: where, its id, and its arguments where they are written out."""
    for path in sorted((ROOT / "harness" / "bakeoff").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or not node.args:
                continue
            first = node.args[0]
            if node.func.id in ("fact", "column") and isinstance(first, ast.Constant):
                names = {keyword.arg for keyword in node.keywords}
                given = set() if node.func.id == "column" else {name for name in names if name is not None}
                yield f"{path.name}:{node.lineno}", str(first.value), None if None in names else given


def wanted(said: Any) -> set[str]:
    """The arguments that a template or a function asks for."""
    if isinstance(said, str):
        return {name for _, name, _, _ in string.Formatter().parse(said) if name}
    return set(inspect.signature(said).parameters)


def test_every_fact_has_words_for_its_arguments() -> None:
    facts = list(made())
    assert len(facts) > 100
    assert [(place, id_) for place, id_, _ in facts if id_ not in EVERY] == []
    assert [
        (place, id_, given ^ wanted(EVERY[id_]))
        for place, id_, given in facts
        if given is not None and given != wanted(EVERY[id_])
    ] == []


def test_no_words_are_left_that_nobody_says() -> None:
    sources = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "harness" / "bakeoff").rglob("*.py"))
    assert [id_ for id_ in EVERY if sources.count(f'"{id_}"') < (1 if "." in id_ else 2)] == []


def example(said: Any) -> dict[str, Any]:
    """Arguments of the right sorts: the texts are their own names."""
    if isinstance(said, str):
        parts = [(name, form) for _, name, form, _ in string.Formatter().parse(said) if name]
        return {
            name: 1234.5678 if form and form[-1] in "fg" else 1234 if form else name.upper() for name, form in parts
        }
    samples: dict[str, Any] = {"int": 2, "int | None": 2, "float": 0.25, "float | None": 0.25, "bool": True}
    samples |= {"Sequence[str]": ["A", "B"], "Sequence[int]": [1, 2], "Sequence[float]": [0.5, 0.25]}
    return {
        name: samples.get(str(parameter.annotation), name.upper())
        for name, parameter in inspect.signature(said).parameters.items()
    }


def stored() -> str:
    return "".join(f"{id_}: {words(Fact(id_, example(said)))}\n" for id_, said in EVERY.items())


def test_the_words_are_those_that_were_read() -> None:
    assert stored() == STORED.read_text(encoding="utf-8")


@pytest.mark.parametrize("id_", ["gone", "kinds.gone", "nobody.has", "busy"])
def test_a_fact_without_words_or_with_other_arguments_shows_what_it_has(id_: str) -> None:
    assert words(fact(id_, load=3, note="a {b}")) == f"{id_} (load = 3, note = a {{b}})"
    assert words(Fact(id_)) == id_


def test_texts_are_shown_as_they_are() -> None:
    assert words(quote("100% {of} them")) == "100% {of} them"
    assert words(fact("language", name="{0}", queries="{reason!r}")) == "{0} ({reason!r})"


def test_numbers_are_shown_as_their_columns_want_them() -> None:
    heads = [
        column("row"), column("gain", "fixed", signed=True), column("p", "significant", 2),
        column("stage_p50", "fixed", 2, unit="ms"), column("score", "percent", 1), column("in_sample", "count"),
        column("fusion", "spread", 1), column("weights_given", "ratio"), TableColumn(head="{name}"),
    ]  # fmt: skip
    rows: list[list[TableCell]] = [
        ["a", 0.0625, 0.00123, 1234.5, 0.1234, 12345, [0.25, 0.125], [0.5, 0.25], fact("gain")],
        ["b", -0.5, 0.5, None, 1.0, 7, 0.25, [1.0], "as it is"],
    ]
    table = text_table(Section(title=quote("T"), head=heads, rows=rows))
    assert table.heads[3] == "stage p50 ms"
    assert table.heads[8] == "{name}"
    assert table.rows == [
        ["a", "+0.062", "0.0012", "1,234.50", "12.3%", "12,345", "0.2±0.1", "0.5 : 0.25", "gain"],
        ["b", "−0.500", "0.5", "–", "100.0%", "7", "0.2", "1", "as it is"],
    ]


def test_a_section_of_the_old_format_is_shown_as_it_was() -> None:
    heads = [TableColumn(head="Row"), TableColumn(head="gain")]
    table = text_table(Section(title=quote("Old"), head=heads, rows=[["a", "+0.100"]], notes=[quote("as it was")]))
    assert (table.title, table.heads) == ("Old", ["Row", "gain"])
    assert (table.rows, table.notes) == ([["a", "+0.100"]], ["as it was"])


def test_a_result_holds_facts_and_no_sentence(tmp_path: Path) -> None:
    words_first = '[[contender]]\nranker = "bm25"\nrerank = { provider = "fake" }\n'
    no_key = '[[contender]]\nprovider = "voyage"\nstore = "faiss"\n'
    file = write_lineup(tmp_path, native_files(), contenders=words_first + no_key)
    folder = save(run(Lineup.read(file)), tmp_path / "results")
    written = json.loads((folder / SUMMARY).read_text(encoding="utf-8"))
    assert written["format"] == 2
    rows = written["rows"]
    remarks = [*written["warnings"], *(one for row in rows for one in row["warnings"])]
    remarks += [one for row in rows if row["latency"] for one in row["latency"]["doubts"]]
    own = [table for table in written["sections"] if isinstance(table["title"], dict)]
    remarks += [note for table in own for note in table["notes"]]
    assert remarks
    assert [one for one in remarks if isinstance(one, str)] == []
    (lost,) = [row["not_run"] for row in rows if row["not_run"]]
    assert lost == {
        "kind": "unavailable",
        "error": "Unavailable",
        "lacks": [{"id": "key_unset", "arguments": {"variables": ["VOYAGE_API_KEY"]}}],
    }
    (table,) = own
    assert table["title"]["id"] == "second_stage"
    assert [type(cell) for cell in table["rows"][0]] == [str, *[float] * 6]
    assert ids([read_summary(folder).sections[-1].title]) == ["second_stage"]


if __name__ == "__main__":
    STORED.write_text(stored(), encoding="utf-8")
