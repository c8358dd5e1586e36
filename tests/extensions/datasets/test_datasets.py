"""Data sets by name: the real libraries, over files that are made here, with no network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from bakeoff.core.task import Task
from bakeoff.tasks.load import load_task
from bakeoff_providers.errors import InputError

from tests.errors import refuses
from tests.facts import arguments
from tests.hub_folder import stay_offline, write_hub_folder

ir_datasets = pytest.importorskip("ir_datasets")


class TestIrDatasets:
    @pytest.fixture
    def name(self, tmp_path: Path) -> Any:
        from ir_datasets.formats import TrecQrels, TsvDocs, TsvQueries
        from ir_datasets.util import LocalDownload

        (tmp_path / "docs.tsv").write_text("d1\tcopper is a metal\nd2\tsailing on lakes\n")
        (tmp_path / "queries.tsv").write_text("1\tmetal\n2\tnever judged\n")
        (tmp_path / "qrels").write_text("1 0 d1 2\n1 0 d2 0\n")
        ir_datasets.registry.register(
            "bakeoff-test/own",
            ir_datasets.Dataset(
                TsvDocs(LocalDownload(tmp_path / "docs.tsv"), namespace="own", lang="en"),
                TsvQueries(LocalDownload(tmp_path / "queries.tsv"), lang="en"),
                TrecQrels(LocalDownload(tmp_path / "qrels"), {0: "no", 1: "some", 2: "yes"}),
            ),
        )
        ir_datasets.registry.register(
            "bakeoff-test/docs-only",
            ir_datasets.Dataset(TsvDocs(LocalDownload(tmp_path / "docs.tsv"), namespace="own", lang="en")),
        )
        yield "bakeoff-test/own"
        for registered in ("bakeoff-test/own", "bakeoff-test/docs-only"):
            del ir_datasets.registry._registered[registered]

    def test_a_registered_data_set_is_a_task(self, name: str, tmp_path: Path) -> None:
        task = load_task({"name": "own", "format": "ir_datasets", "dataset": name}, tmp_path)
        assert [(document.id, document.text) for document in task.documents] == [
            ("d1", "copper is a metal"),
            ("d2", "sailing on lakes"),
        ]
        assert [(query.id, query.text) for query in task.queries] == [("1", "metal")]
        assert task.judgments == {"1": {"d1": 2, "d2": 0}}

    @pytest.mark.parametrize(("option", "left_out"), [({}, False), ({"ignore_identical_ids": True}, True)])
    def test_a_document_that_is_the_query_is_left_out_where_asked_for(
        self, name: str, tmp_path: Path, option: dict[str, bool], left_out: bool
    ) -> None:
        (tmp_path / "queries.tsv").write_text("d1\tmetal\n")
        (tmp_path / "qrels").write_text("d1 0 d2 1\n")
        plain = load_task({"format": "ir_datasets", "dataset": name, "ignore_identical_ids": False}, tmp_path)
        task = load_task({"format": "ir_datasets", "dataset": name, **option}, tmp_path)
        assert (task.fingerprint() != plain.fingerprint()) == left_out

    def test_mistakes_are_named(self, name: str, tmp_path: Path) -> None:
        with refuses(InputError, "'beir/scifakt'", place="dataset") as caught:
            load_task({"format": "ir_datasets", "dataset": "beir/scifakt"}, tmp_path)
        assert "beir/scifact" in caught.value.remedy
        with refuses(InputError, place="dataset"):
            load_task({"format": "ir_datasets", "dataset": "bakeoff-test/docs-only"}, tmp_path)
        (tmp_path / "qrels").write_text("1 0 d1 2\n1 0 d9 1\n")
        with refuses(InputError, "bakeoff-test", "'d9'", place="record 2", file="own qrels"):
            load_task({"format": "ir_datasets", "dataset": name}, tmp_path)

    @pytest.mark.parametrize(
        ("file", "content", "said"),
        [
            ("docs.tsv", b"d1\tcopper \xed\xa0\x80\n", "nicodeDecodeError"),
            ("queries.tsv", b"1\tmetal\x89\n", "nicodeDecodeError"),
            ("qrels", b'1 0 d1 "2\n', "ir_datasets"),
        ],
    )
    def test_files_that_the_library_can_not_read_are_named(
        self, name: str, tmp_path: Path, file: str, content: bytes, said: str
    ) -> None:
        (tmp_path / file).write_bytes(content)
        with refuses(InputError, said):
            load_task({"format": "ir_datasets", "dataset": name}, tmp_path)

    def test_documents_without_a_text_field_use_what_the_library_calls_their_text(self) -> None:
        from bakeoff.extensions.datasets.ir_datasets import _rows
        from ir_datasets.formats import TrecDoc

        ((_, row),) = _rows([TrecDoc("d1", "body", "<TEXT>")], "title", "text")
        assert row["text"] == "body"

        from ir_datasets.datasets.cord19 import Cord19Doc

        document = Cord19Doc("d1", "Heading", "10.1", "2020", "Abstract")
        ((_, row),) = _rows([document], "title", "text")
        assert row["text"] == document.default_text()
        assert "title" not in row


class TestHub:
    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """As MTEB lays its retrieval sets out: three configurations, named in the README's head."""
        stay_offline(tmp_path / "cache", monkeypatch)
        tables: dict[str, list[dict[str, Any]]] = {
            "corpus": [{"_id": "d1", "title": "Copper", "text": "metal"}, {"_id": "d2", "title": "", "text": "lakes"}],
            "queries": [{"_id": "1", "text": "metal"}, {"_id": "2", "text": "of the training split"}],
            "qrels": [{"query-id": "1", "corpus-id": "d1", "score": 1.0}],
        }
        write_hub_folder(tmp_path / "own", tables)
        return tmp_path

    def _load(self, folder: Path, **options: Any) -> Task:
        return load_task({"name": "own", "format": "hub", "dataset": "own", **options}, folder)

    def test_a_folder_laid_out_like_mteb_is_a_task(self, folder: Path) -> None:
        task = self._load(folder)
        assert [(document.id, document.title, document.text) for document in task.documents] == [
            ("d1", "Copper", "metal"),
            ("d2", "", "lakes"),
        ]
        assert [query.id for query in task.queries] == ["1"]
        assert task.judgments == {"1": {"d1": 1}}

    def test_what_is_no_folder_of_the_task_and_has_no_revision_is_noted(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(folder)
        elsewhere = folder / "elsewhere"  # from there, `own` is a name: the library finds it in the current folder
        elsewhere.mkdir()
        assert arguments(self._load(elsewhere).notes, "unpinned") == [{"datasets": ["own"]}]
        assert arguments(self._load(elsewhere, revision="main").notes, "unpinned") == []
        assert arguments(self._load(folder).notes, "unpinned") == []

    def test_parts_columns_and_labels_can_be_named(self, folder: Path) -> None:
        other = folder / "labels"
        other.mkdir()
        (other / "test.jsonl").write_text('{"q": "2", "d": "d2", "l": "good"}\n')
        task = self._load(
            folder,
            judgments={"dataset": "labels", "config": None, "split": "test"},
            columns={"judgments": {"query": "q", "document": "d", "grade": "l"}},
            grades={"good": 2},
        )
        assert task.judgments == {"2": {"d2": 2}}

    def test_mistakes_are_named(self, folder: Path) -> None:
        with refuses(InputError, "'test'", place="own default dev"):
            self._load(folder, split="dev")
        with refuses(InputError, "'titles'", "'corpus'", place="own titles corpus"):
            self._load(folder, documents={"config": "titles"})
        with refuses(InputError, "'confg'", place="documents"):
            self._load(folder, documents={"confg": "titles"})

    @pytest.mark.parametrize(
        ("file", "content"),
        [
            ("corpus/rows.jsonl", '{"_id": "d1", "text": "metal"}\n{"_id": '),
            ("corpus/rows.jsonl", "\0\1\2 no table"),
            ("queries/rows.jsonl", '{"_id": "1", "text": "metal"}\n[5]\n'),
            ("qrels/rows.jsonl", '{"query-id": "1"}\n{"query-id": {"a": 1}}\n'),
            ("README.md", "---\nconfigs: [\n---\n"),
            ("README.md", "---\nconfigs: 5\n---\n"),
        ],
    )
    def test_a_damaged_folder_is_bad_input(self, folder: Path, file: str, content: str) -> None:
        (folder / "own" / file).write_text(content)
        with refuses(InputError, "own"):
            self._load(folder)

    def test_a_text_that_is_no_utf_8_is_found_in_its_row(self, folder: Path) -> None:
        """pyarrow reads such a table; only its rows can't be made into texts."""
        rows = b'{"_id": "d1", "title": "", "text": "metal"}\n{"_id": "d2", "title": "", "text": "la\xfbkes"}\n'
        (folder / "own" / "corpus" / "rows.jsonl").write_bytes(rows)
        with refuses(InputError, "2", "'utf-8'", place="own corpus corpus, row 2"):
            self._load(folder)
