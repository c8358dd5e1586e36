from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from bakeoff.core import files
from bakeoff.extensions.datasets import beir
from bakeoff.tasks.formats.cells import Block, Rows
from bakeoff.tasks.formats.rows import DocumentColumns, UniqueIds, read_documents
from bakeoff.tasks.formats.tables import read_table
from bakeoff_providers.errors import InputError
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.errors import refuses
from tests.examples import examples

GOOD = [{"_id": f"d{number}", "title": f" T{number}", "text": "word "} for number in range(20)]


def _load(folder: Path, lines: list[str], **options: Any) -> Any:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "qrels").mkdir(exist_ok=True)
    (folder / "corpus.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "word"}\n')
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td1\t1\n")
    return beir.load("t", folder, **options)


@pytest.fixture(params=[60, 1 << 20], autouse=True)
def _blocks_of_two_lines_or_all(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_LINES_AT_ONCE", request.param)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"_id": "d3", "text": "again"}', "'d3'"),
        ('{"_id": "x", "title": "no text"}', "'text'"),
        ('{"_id": "x", "text": 7}', "line 18"),
        ('{"_id": "x", "title": [], "text": "a"}', "line 18"),
        ('{"_id": " ", "text": "a"}', "_id"),
        ('{"_id": true, "text": "a"}', r"line 18: _id is True"),
        ('{"_id": "x", "title": " ", "text": null}', "'x'"),
        ('{"_id": "x", "text": "a"', "JSON"),
        ('{"_id": "x", "text": "a"} {"_id": "y", "text": "b"}', "JSON"),
        ("[1]", "`object`"),
    ],
)
def test_a_bad_line_among_good_ones_is_named(tmp_path: Path, line: str, said: str) -> None:
    lines = [json.dumps(row) for row in GOOD]
    with refuses(InputError, said, place="line 18", file="corpus.jsonl"):
        _load(tmp_path, [*lines[:17], line, *lines[17:]])


def test_what_needs_a_closer_look_is_read_alike(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [dict(row) for row in GOOD]
    rows[5] = {"_id": 55, "text": "a number is an id"}
    rows[6] |= {"metadata": {"year": 2001}, "place": "x", "nothing": None}
    rows[7] = {"_id": "d7", "title": None, "text": " only text "}
    rows[8] |= {"title": "", "text": ""}
    lines = [json.dumps(row) for row in rows]
    documents = _load(tmp_path, [*lines[:3], "", "  ", *lines[3:]], drop_empty=True).documents
    assert [document.id for document in documents] == [str(row["_id"]) for row in rows if row["_id"] != "d8"]
    assert (documents[4].title, documents[4].text) == ("T4", "word")
    assert documents[6].metadata == {"year": 2001, "place": "x"}
    assert (documents[7].title, documents[7].text, documents[7].metadata) == ("", "only text", {})


@settings(max_examples=examples(25), deadline=None)
@given(
    rows=st.lists(st.dictionaries(st.sampled_from(["_id", "title", "text", "more"]), st.text(max_size=3) | st.none()))
)
def test_a_document_reads_alike_alone_and_in_a_block(tmp_path_factory: Any, rows: list[dict[str, Any]]) -> None:
    """A row of another shape in front forces every block to be read row by row: nothing else may change."""
    rows = [{**row, "_id": f"r{number}"} for number, row in enumerate(rows)]
    folder = tmp_path_factory.mktemp("alike")

    def outcome(first: dict[str, Any]) -> Any:
        try:
            task = _load(folder, [json.dumps(row) for row in (first, {"_id": "d1", "text": "x"}, *rows)])
        except InputError as error:
            return str(error)
        return [(document.id, document.title, document.text, dict(document.metadata)) for document in task.documents][
            1:
        ]

    assert outcome({"_id": "1", "text": "x"}) == outcome({"_id": 1, "text": "x"})


@pytest.mark.parametrize("number_ids", [False, True])
def test_reading_keeps_few_bytes_for_each_id(tmp_path: Path, number_ids: bool) -> None:
    """Beside the documents: their ids in a list and 12 bytes each, whether ids are texts or numbers."""
    file = tmp_path / "rows.csv"
    file.write_text("id,text\n" + "".join(f"{at if number_ids else f'd{at}'},t\n" for at in range(20_000)))
    table = read_table(file)
    rows = [
        Block([{**row, "id": int(row["id"])} if number_ids else row for row in b.rows], b.place) for b in table.blocks
    ]
    ids = UniqueIds(table, "id")
    tracemalloc.start()
    for _ in read_documents(Rows(file, rows), DocumentColumns(), ids, set(), drop_empty=False):
        pass
    held = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    kept_ids = 60 * 20_000 if number_ids else 0  # texts that are made here
    assert held - kept_ids < 60 * 20_000  # 172 and 338 with a set and a place for each
    with refuses(InputError, *(["'17'", "line 19"] if number_ids else ["17"]), place="line 20002"):
        ids.add(["17" if number_ids else "d17"], ["line 20002"].__getitem__)
