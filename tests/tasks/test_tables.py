"""Tasks from BEIR folders and plain tables: the same task out of each, and every mistake named by its place."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from bakeoff.core.task import Task
from bakeoff.embedding.chunking import document_chunks
from bakeoff.tasks.formats.tables import read_table
from bakeoff.tasks.load import load_task
from bakeoff_providers.errors import InputError
from hypothesis import given
from hypothesis import strategies as st

from tests.errors import refuses

DOCUMENTS: list[dict[str, Any]] = [
    {"id": "d1", "title": "Copper", "text": 'A "red" metal, soft', "price": 7},
    {"id": "d2", "title": "", "text": "Boats\nand lakes", "price": 9},
    {"id": "d 3", "title": "Trees", "text": "", "price": None},
]
QUERIES: list[dict[str, Any]] = [
    {"id": "1", "text": "metal", "category": "things"},
    {"id": "2", "text": "sailing", "category": "places"},
    {"id": "3", "text": "nobody judged this", "category": "places"},
]
JUDGMENTS: list[dict[str, Any]] = [
    {"query": "1", "document": "d1", "grade": 3},
    {"query": "1", "document": "d2", "grade": 0},
    {"query": "2", "document": "d 3", "grade": 1},
]
GRADES = {"1": {"d1": 3, "d2": 0}, "2": {"d 3": 1}}
Table = list[dict[str, Any]]


def _csv(rows: Table, delimiter: str = ",") -> bytes:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode()


def _jsonl(rows: Table) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


def _parquet(rows: Table) -> bytes:
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), out)
    return out.getvalue()


WRITERS: dict[str, Callable[[Table], bytes]] = {
    "csv": _csv,
    "tsv": lambda rows: _csv(rows, "\t"),
    "jsonl": _jsonl,
    "json": lambda rows: json.dumps(rows).encode(),
    "parquet": _parquet,
    "csv.gz": lambda rows: gzip.compress(_csv(rows)),
    "jsonl.gz": lambda rows: gzip.compress(_jsonl(rows)),
}


def _tables(folder: Path, suffix: str = "jsonl", **options: Any) -> Task:
    return load_task(
        {
            "name": "own",
            "format": "tables",
            "documents": f"documents.{suffix}",
            "queries": f"queries.{suffix}",
            "judgments": f"judgments.{suffix}",
            **options,
        },
        folder,
    )


def _write(folder: Path, suffix: str = "jsonl", **changed: Table) -> None:
    tables: dict[str, Table] = {"documents": DOCUMENTS, "queries": QUERIES, "judgments": JUDGMENTS, **changed}
    for name, rows in tables.items():
        (folder / f"{name}.{suffix}").write_bytes(WRITERS[suffix](rows))


@pytest.mark.parametrize("suffix", WRITERS)
def test_the_same_task_comes_out_of_every_kind_of_table(tmp_path: Path, suffix: str) -> None:
    _write(tmp_path, suffix)
    task = _tables(tmp_path, suffix, rel=2)
    assert [(document.id, document.title, document.text) for document in task.documents] == [
        ("d1", "Copper", 'A "red" metal, soft'),
        ("d2", "", "Boats\nand lakes"),
        ("d 3", "Trees", ""),
    ]
    assert [(query.id, query.text, query.category) for query in task.queries] == [
        tuple(query.values()) for query in QUERIES
    ]
    assert task.judgments == GRADES
    assert task.rel == 2
    assert str(task.documents[0].metadata["price"]) == "7"
    assert task.without_relevant() == ["2", "3"]


def test_columns_and_labels_are_the_users_own(tmp_path: Path) -> None:
    documents = [
        {"sku": 7, "name": "Lamp", "brand": "Acme", "blurb": "bright"},
        {"sku": 8, "name": "Desk", "blurb": ""},
    ]
    documents[1]["brand"] = "Oak"
    queries = [{"qid": 1, "ask": "light"}]
    judgments = [{"qid": 1, "sku": 7, "label": "Exact"}, {"qid": 1, "sku": 8, "label": "Irrelevant"}]
    _write(tmp_path, "parquet", documents=documents, queries=queries, judgments=judgments)
    task = _tables(
        tmp_path,
        "parquet",
        columns={
            "documents": {"id": "sku", "title": "name", "text": ["brand", "blurb"]},
            "queries": {"id": "qid", "text": "ask"},
            "judgments": {"query": "qid", "document": "sku", "grade": "label"},
        },
        grades={"Exact": 3, "Irrelevant": 0},
    )
    assert [(document.id, document.text) for document in task.documents] == [("7", "Acme bright"), ("8", "Oak")]
    assert task.judgments == {"1": {"7": 3, "8": 0}}


def test_pairs_without_a_grade_take_the_one_that_is_given(tmp_path: Path) -> None:
    _write(tmp_path, judgments=[{"query": "1", "document": "d1"}])
    assert _tables(tmp_path, columns={"judgments": {"grade": 1}}).judgments == {"1": {"d1": 1}}


def test_long_documents_can_be_cut_in_every_format(tmp_path: Path) -> None:
    _write(tmp_path)
    task = _tables(tmp_path, chunking={"chunk_strategy": "fixed", "max_chunk_size": 2})
    assert [chunk.text for chunk in document_chunks(task.documents[0])] == ['Copper A "red"', "Copper metal, soft"]
    assert task.fingerprint() != _tables(tmp_path).fingerprint()


def test_judgments_may_be_trec_qrels(tmp_path: Path) -> None:
    _write(tmp_path)
    (tmp_path / "own.qrels").write_text("1 0 d1 3\n2 0 d2 1\n")
    assert _tables(tmp_path, judgments="own.qrels").judgments == {"1": {"d1": 3}, "2": {"d2": 1}}


def test_what_is_to_be_dropped_is_dropped(tmp_path: Path) -> None:
    _write(
        tmp_path,
        documents=[*DOCUMENTS, {"id": "void", "title": " ", "text": None}],
        judgments=[
            *JUDGMENTS,
            {"query": "1", "document": "void", "grade": 1},
            {"query": "1", "document": "gone", "grade": 1},
            {"query": "9", "document": "d1", "grade": 1},
            {"query": "2", "document": "d1", "grade": -2},
        ],
    )
    task = _tables(tmp_path, drop_empty=True, drop_unknown=True, drop_negative=True, judged_only=True)
    assert len(task.documents) == 3
    assert task.judgments == GRADES
    assert [query.id for query in task.queries] == ["1", "2"]


@pytest.mark.parametrize(
    ("changed", "options", "said"),
    [
        (
            {"documents": [*DOCUMENTS, DOCUMENTS[0]]},
            {},
            "'d1'",
        ),
        ({"documents": [{"id": "d1", "text": 5}]}, {}, "line 1"),
        ({"documents": [{"id": None, "text": "x"}]}, {}, "line 1"),
        ({"documents": [{"id": 1.5, "text": "x"}]}, {}, "line 1: id is 1.5"),
        ({"documents": [{"id": " ", "text": "x"}]}, {}, "line 1"),
        ({"documents": [{"id": "a", "txt": "x"}]}, {}, "'text'"),
        ({"documents": [{"id": "a", "text": " "}]}, {}, "'a'"),
        ({"queries": [{"id": "1", "text": ""}]}, {}, "'1'"),
        ({"queries": [*QUERIES, QUERIES[1]]}, {}, "'2'"),
        ({"judgments": [*JUDGMENTS, JUDGMENTS[0]]}, {}, "'d1'"),
        ({"judgments": [{"query": "1", "document": "d9", "grade": 1}]}, {}, "'d9'"),
        ({"judgments": [{"query": "9", "document": "d1", "grade": 1}]}, {}, "'9'"),
        ({"judgments": [{"query": "1", "document": "d1", "grade": -1}]}, {}, "line 1"),
        ({"judgments": [{"query": "1", "document": "d1", "grade": 1.5}]}, {}, "1.5"),
        ({"judgments": [{"query": "1", "document": "d1", "grade": "good"}]}, {}, "'good'"),
        ({"judgments": [{"query": "1", "document": "d1", "grade": True}]}, {}, "line 1"),
        ({"judgments": [{"query": "1", "document": "d1", "grade": None}]}, {}, "line 1"),
        ({"judgments": [{"query": "1", "document": "d1", "grade": "Exat"}]}, {"grades": {"Exact": 3}}, "grade 'Exat'"),
        ({}, {"columns": {"documents": {"titel": "x"}}}, "columns.documents"),
        ({}, {"columns": {"articles": {}}}, "'articles'"),
        (
            {"documents": DOCUMENTS[:1]},
            {"columns": {"documents": {"title": "heading"}}},
            "'heading'",
        ),
        ({}, {"columns": {"queries": {"category": "kind"}}}, "'kind'"),
        ({}, {"rel": "2"}, "'2'"),
        ({}, {"rel": 0}, "rel"),
        ({}, {"documents": "documents.xlsx"}, "can't end in '.xlsx'"),
        ({}, {"documents": "documents"}, "documents"),
        ({}, {"documents": "none.parquet"}, "none.parquet"),
        ({}, {"documents": "none.csv"}, "none.csv"),
        ({}, {"judgement": "x"}, "'judgement'"),
        ({}, {"chunking": {"chunk_strategy": "words"}}, "chunking.chunk_strategy"),
        ({}, {"targets": {"p@5": "high"}}, "targets[...]: Expected `float`"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, changed: dict[str, Table], options: dict[str, Any], said: str) -> None:
    _write(tmp_path, "jsonl", **changed)
    with refuses(InputError, said):
        _tables(tmp_path, **options)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.csv", b"id,text\n1,a\n2\n", "line 3"),
        ("a.csv", b'id,text\n1,"a\nb"\n2,"c" d\n', "CSV"),
        ("a.csv", b'id,text\n1,"open\n', "CSV"),
        ("a.csv", b"id,id\n1,2\n", "line 1"),
        ("a.csv", "id,text\n1,é\n".encode("latin-1"), "UTF-8"),
        ("a.jsonl", b'{"id": 1}\n{"id": 2\n', "JSON"),
        ("a.jsonl", b"[1, 2]\n", "`object`"),
        ("a.json", b'[{"id": 1},\n{"id" 2}]', "JSON"),
        ("a.parquet", b"PAR1 and no more", "a.parquet"),
    ],
)
def test_broken_files_are_named_by_line(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    (tmp_path / name).write_bytes(content)
    with refuses(InputError, said):
        list(read_table(tmp_path / name).rows)


@given(st.lists(st.fixed_dictionaries({"id": st.text(), "text": st.text()}), min_size=1))
def test_whatever_csv_writes_is_read_back(tmp_path_factory: pytest.TempPathFactory, rows: Table) -> None:
    file = tmp_path_factory.getbasetemp() / "own.csv"
    rows = [
        {key: value.replace("\x00", "").encode(errors="ignore").decode() for key, value in row.items()} for row in rows
    ]
    file.write_bytes(_csv(rows))
    assert [row for _, row in read_table(file).rows] == rows


class TestBeir:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "qrels").mkdir()
        (tmp_path / "corpus.jsonl").write_bytes(
            _jsonl(
                [
                    {"_id": "d1", "title": "Copper", "text": "metal", "metadata": {"url": "x"}},
                    {"_id": "d2", "text": "y"},
                ]
            )
        )
        (tmp_path / "queries.jsonl").write_bytes(_jsonl([{"_id": "1", "text": "ask"}, {"_id": "2", "text": "train"}]))
        (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\td1\t2\n")
        (tmp_path / "qrels" / "train.tsv").write_text("query-id\tcorpus-id\tscore\n2\td2\t1\n2\td1\t0\n")
        return tmp_path

    def test_a_split_has_the_queries_that_it_judges(self, folder: Path) -> None:
        task = load_task({"format": "beir", "folder": folder.name}, folder.parent)
        assert [document.id for document in task.documents] == ["d1", "d2"]
        assert task.documents[0].metadata == {"url": "x"}
        assert [query.id for query in task.queries] == ["1"]
        assert task.judgments == {"1": {"d1": 2}}
        assert load_task({"format": "beir", "split": "train"}, folder).judgments == {"2": {"d2": 1, "d1": 0}}

    def test_gzipped_files_are_found(self, folder: Path) -> None:
        plain = load_task({"format": "beir"}, folder).fingerprint()
        for name in ("corpus.jsonl", "queries.jsonl", "qrels/test.tsv"):
            (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
            (folder / name).unlink()
        assert load_task({"format": "beir"}, folder).fingerprint() == plain

    def test_mistakes_are_named(self, folder: Path) -> None:
        with refuses(InputError, "'dev'", file="qrels") as caught:
            load_task({"format": "beir", "split": "dev"}, folder)
        assert "test, train" in caught.value.remedy
        with refuses(InputError, file="nowhere"):
            load_task({"format": "beir", "folder": "nowhere"}, folder)
        (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n1\td7\t1\n")
        with refuses(InputError, "test.tsv", "'d7'", place="line 2", file="test.tsv"):
            load_task({"format": "beir"}, folder)


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_column_where_is_the_filter_of_a_query(suffix: str, tmp_path: Path) -> None:
    filters: list[dict[str, Any]] = [{"price": 7}, {}, {"price": [7, 9]}]
    texts = [json.dumps(where) if where else "" for where in filters] if suffix == "csv" else filters
    asked = [{**query, "where": where} for query, where in zip(QUERIES, texts, strict=True)]
    for name, rows in (("documents", DOCUMENTS), ("queries", asked), ("judgments", JUDGMENTS)):
        (tmp_path / f"{name}.{suffix}").write_bytes(WRITERS[suffix](rows))
    assert [dict(query.where) for query in _tables(tmp_path, suffix).queries] == filters
    (tmp_path / f"queries.{suffix}").write_bytes(WRITERS[suffix]([*asked[:1], {**asked[1], "where": "dear"}]))
    with refuses(InputError, "'dear'", file=f"queries.{suffix}"):
        _tables(tmp_path, suffix)
