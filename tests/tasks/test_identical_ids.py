"""BEIR's rule for a document that has its query's id, and metadata that Python's json writes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bakeoff.lineup.lineup import Lineup
from bakeoff.results.save import save
from bakeoff.results.schema import read_summary
from bakeoff.running.runner import run
from bakeoff.tasks.load import load_task

from tests.facts import arguments

TEXTS = {"a1": "taxes are too high", "a2": "taxes are high but fair", "a3": "wolves should return"}


def _arguana(folder: Path) -> Path:
    """Every query is a document of the corpus, and the answer is its counter-argument."""
    (folder / "qrels").mkdir()
    documents = [{"_id": key, "title": "", "text": text} for key, text in TEXTS.items()]
    lines = [json.dumps(document | {"metadata": {"weight": float("nan")}}) for document in documents]
    (folder / "corpus.jsonl").write_text("\n".join(lines))
    (folder / "queries.jsonl").write_text("\n".join(json.dumps(document) for document in documents[:2]))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\na1\ta2\t1\na2\ta1\t1\n")
    return folder


@pytest.mark.parametrize(("option", "mrr"), [("", 1.0), ("ignore_identical_ids = false", 0.5)])
def test_a_document_with_the_querys_id_is_left_out(tmp_path: Path, option: str, mrr: float) -> None:
    """By hand: the query finds itself first and its answer second, unless itself is left out."""
    _arguana(tmp_path)
    contenders = '[[contender]]\nranker = "bm25"\n[[contender]]\nprovider = "tfidf"\nstore = "faiss"\n'
    contenders += '[[contender]]\nprovider = "tfidf"\nstore = "chroma"\n'
    (tmp_path / "own.toml").write_text(
        f'measures = ["mrr"]\nprimary = "mrr"\nrounds = 1\n[task]\nformat = "beir"\n{option}\n{contenders}'
    )
    summary = read_summary(save(run(Lineup.read(tmp_path / "own.toml")), tmp_path / "results"))
    assert {row.label: row.measures["mrr"].mean for row in summary.ran} == dict.fromkeys(
        ["bm25", "tfidf+faiss", "tfidf+chroma"], mrr
    )
    assert arguments(summary.warnings, "identical_ids") == ([] if option else [{"queries": 2}])


def test_nan_in_metadata_that_nobody_uses_is_read(tmp_path: Path) -> None:
    task = load_task({"format": "beir"}, _arguana(tmp_path))
    assert [document.id for document in task.documents] == list(TEXTS)


def test_ids_that_do_not_overlap_change_nothing(tmp_path: Path) -> None:
    _arguana(tmp_path)
    moved = (tmp_path / "corpus.jsonl").read_text().replace('"a', '"d')
    (tmp_path / "corpus.jsonl").write_text(moved)
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\na1\td2\t1\n")
    on, off = (load_task({"format": "beir", "ignore_identical_ids": ignore}, tmp_path) for ignore in (True, False))
    assert on.fingerprint() == off.fingerprint()
