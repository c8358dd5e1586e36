from __future__ import annotations

import errno
import os
import tempfile
import tracemalloc
from pathlib import Path

import msgspec
import numpy as np
import pytest
from bakeoff.core import corpus
from bakeoff.core.corpus import StoredDocuments, collect_documents, transform_documents
from bakeoff.core.task import Document, DocumentChunking, Query, Task, document_ids
from bakeoff.embedding.chunking import document_chunks
from bakeoff.embedding.corpus_chunks import (
    ChosenTexts,
    ChunkAsDocumentSays,
    ChunkTexts,
    StoredChunks,
    TextsById,
    WholeTexts,
    chunks_of_corpus,
    in_blocks,
)
from bakeoff.embedding.preflight import task_warnings
from bakeoff.extensions.datasets import beir
from bakeoff_providers.errors import InputError

from tests.errors import refuses
from tests.facts import arguments

DOCUMENTS = [
    Document(
        id=f"d{number}",
        title=f"Title {number}",
        text="One sentence here. Another one there. " * (number % 4) + "ü" * number,
        metadata={"year": 1990 + number, "tags": ["a", "b"]} if number % 3 else {},
        chunking=DocumentChunking("sentence", 4) if number % 2 else DocumentChunking(),
        fields={"plot": f"plot {number}"} if number % 5 == 0 else {},
    )
    for number in range(50)
]


@pytest.fixture(params=[200, 10_000_000])
def stored(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> StoredDocuments:
    """In a file, read back a few at a time or all at once."""
    monkeypatch.setattr(corpus, "IN_MEMORY", 1000)
    monkeypatch.setattr(corpus, "_READ", request.param)
    documents = collect_documents([DOCUMENTS[start : start + 7] for start in range(0, len(DOCUMENTS), 7)])
    assert isinstance(documents, StoredDocuments)
    return documents


def test_few_documents_are_a_list() -> None:
    assert collect_documents([DOCUMENTS[:20], DOCUMENTS[20:]]) == DOCUMENTS


def test_stored_documents_are_the_same_documents(stored: StoredDocuments) -> None:
    assert list(stored) == DOCUMENTS
    assert (len(stored), stored[7], stored[-1]) == (50, DOCUMENTS[7], DOCUMENTS[-1])
    assert stored[3:20] == DOCUMENTS[3:20]
    assert stored[40:3:-7] == DOCUMENTS[40:3:-7]
    assert document_ids(stored) == [document.id for document in DOCUMENTS]
    with pytest.raises(IndexError):
        stored[50]


def test_two_readers_do_not_disturb_each_other(stored: StoredDocuments) -> None:
    pairs = list(zip(stored, stored, strict=True))
    assert [one for one, _ in pairs] == [two for _, two in pairs] == DOCUMENTS


def test_changes_are_made_when_a_document_is_read(stored: StoredDocuments) -> None:
    def cut(document: Document) -> Document:
        return msgspec.structs.replace(document, chunking=DocumentChunking("fixed", 3))

    def shout(document: Document) -> Document:
        return msgspec.structs.replace(document, title=document.title.upper())

    assert list(transform_documents(transform_documents(stored, cut), shout)) == [
        shout(cut(document)) for document in DOCUMENTS
    ]


def test_a_task_has_the_same_fingerprint_and_warnings_wherever_its_documents_are(stored: StoredDocuments) -> None:
    twins = [msgspec.structs.replace(DOCUMENTS[5], id="twin"), msgspec.structs.replace(DOCUMENTS[5], id="third")]
    kept, in_file = (
        Task(name="t", documents=documents, queries=[Query(id="q", text="q")], judgments={"q": {"d3": 1}})
        for documents in ([*DOCUMENTS, *twins], collect_documents([list(DOCUMENTS), twins[:]]))
    )
    assert isinstance(in_file.documents, StoredDocuments)
    assert in_file.fingerprint() == kept.fingerprint()
    assert task_warnings(in_file) == task_warnings(kept)
    assert arguments(task_warnings(in_file), "duplicates") == [
        {"count": 2, "documents": ["twin", "third"], "originals": ["d5", "d5"]}
    ]
    assert in_file.metadata == kept.metadata


def test_chunks_of_stored_documents_are_the_same_chunks(stored: StoredDocuments) -> None:
    expected = [chunk for document in DOCUMENTS for chunk in document_chunks(document)]
    chunks = chunks_of_corpus(stored, document_chunks)
    assert isinstance(chunks, StoredChunks)
    assert list(chunks) == expected == chunks_of_corpus(DOCUMENTS, document_chunks)
    assert [chunks[place] for place in range(len(chunks))] == expected
    assert chunks[5:31] == expected[5:31]
    assert chunks[::9] == expected[::9]
    assert chunks[4:4] == []
    assert (chunks.ids, chunks.documents) == ([p.id for p in expected], [p.document for p in expected])
    texts = ChunkTexts(chunks)
    assert (texts[3], texts[3:5], len(texts)) == (expected[3].text, [p.text for p in expected[3:5]], len(expected))
    assert [text for block in in_blocks(texts, 7) for text in block] == [chunk.text for chunk in expected]


def test_a_format_reads_more_documents_than_memory_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [f'{{"_id": "d{n}", "title": "", "text": "text {n}", "metadata": {{"n": {n}}}}}' for n in range(40)]
    (tmp_path / "corpus.jsonl").write_text("\n".join(lines))
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "a query"}\n')
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\td7\t2\n")
    kept = beir.load("t", tmp_path)
    monkeypatch.setattr(corpus, "IN_MEMORY", 1000)
    stored = beir.load("t", tmp_path)
    assert isinstance(stored.documents, StoredDocuments)
    assert list(stored.documents) == kept.documents
    assert stored.fingerprint() == kept.fingerprint()


def test_metadata_of_stored_documents_is_there_for_those_that_have_some(stored: StoredDocuments) -> None:
    task = Task(name="t", documents=stored, queries=[Query(id="q", text="q")], judgments={})
    assert task.metadata == {document.id: document.metadata for document in DOCUMENTS if document.metadata}
    assert next(stored.blocks(3, 9))[0] == DOCUMENTS[3]


def test_documents_that_stay_whole_make_the_same_chunks_without_being_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(corpus, "IN_MEMORY", 1000)
    whole = [msgspec.structs.replace(document, chunking=DocumentChunking()) for document in DOCUMENTS]
    documents = collect_documents([whole[:30], whole[30:]])
    assert isinstance(documents, StoredDocuments)
    chunks = chunks_of_corpus(documents, ChunkAsDocumentSays())
    assert isinstance(chunks, StoredChunks)
    assert chunks.ids is chunks.documents is documents.ids
    expected = [
        chunk
        for document in DOCUMENTS
        for chunk in document_chunks(msgspec.structs.replace(document, chunking=DocumentChunking()))
    ]
    assert list(ChunkTexts(chunks)) == [chunk.text for chunk in expected]
    assert chunks[3:7] == expected[3:7]


def test_documents_without_metadata_are_not_read_for_it_when_they_are_cut_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(corpus, "IN_MEMORY", 100)
    plain = collect_documents([[Document(f"d{number}", "text") for number in range(20)]])

    def refuse(document: Document) -> Document:
        raise AssertionError(document.id)

    task = Task(name="t", documents=transform_documents(plain, refuse), queries=[Query(id="q", text="q")], judgments={})
    assert task.metadata == {}


def test_texts_of_stored_documents_are_read_when_they_are_needed(stored: StoredDocuments) -> None:
    whole, by_id = WholeTexts(stored), TextsById(stored, "title")
    assert list(whole) == [document.whole() for document in DOCUMENTS]
    assert (whole[7], whole[3:9:2]) == (DOCUMENTS[7].whole(), [DOCUMENTS[at].whole() for at in (3, 5, 7)])
    assert dict(by_id) == {document.id: document.title for document in DOCUMENTS}
    assert by_id.get("nobody", "nothing") == "nothing"
    chosen = ChosenTexts(whole, np.array([2, 5, 11]))
    assert list(chosen) == [chosen[at] for at in range(3)] == chosen[:] == [DOCUMENTS[at].whole() for at in (2, 5, 11)]


def test_the_text_of_one_of_many_documents_costs_no_list_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "IN_MEMORY", 1000)
    many = collect_documents([[Document(f"d{at}", f"{at} " * 500)] for at in range(5000)])
    tracemalloc.start()
    assert TextsById(many)["d4321"].startswith("4321 4321")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e6  # the texts are 12 MB


def test_fields_and_metadata_count_as_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "IN_MEMORY", 10_000)
    for more in ({"fields": {"plot": "x" * 5000}}, {"metadata": {"plot": "x" * 5000}}):
        assert isinstance(collect_documents([[Document(f"d{at}", "t", **more)] for at in range(4)]), StoredDocuments)  # type: ignore[arg-type]
    assert isinstance(collect_documents([[Document(f"d{at}", "t")] for at in range(4)]), list)


def test_a_fingerprint_keeps_no_fields(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "IN_MEMORY", 1000)
    monkeypatch.setattr(corpus, "_READ", 10_000)
    many = collect_documents([[Document(f"d{at}", "t", fields={"plot": f"{at} " * 1000})] for at in range(1000)])
    task = Task(name="t", documents=many, queries=[Query(id="q", text="q")], judgments={})
    tracemalloc.start()
    task.fingerprint()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e6  # the fields are 4 MB


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a disk that is full")
def test_a_full_temporary_disk_says_what_moves_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "IN_MEMORY", 1000)
    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: os.fdopen(os.open("/dev/full", os.O_WRONLY), "wb", 0))
    with refuses(InputError, os.strerror(errno.ENOSPC)) as caught:
        collect_documents([DOCUMENTS])
    assert str(caught.value.file) == tempfile.gettempdir()
    assert "TMPDIR" in (caught.value.remedy or "")
