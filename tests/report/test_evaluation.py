"""`bakeoff.evaluate`: every kind of value as a row, and the result's faces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import bakeoff
import numpy as np
import pandas
import pytest
from bakeoff.report.evaluation import Evaluation, evaluate
from bakeoff.report.first_screen import first_screen_text
from bakeoff_providers.base import EmbeddingBatch, ModelCard, Provider, Role
from bakeoff_providers.errors import InputError

from tests.errors import refuses
from tests.facts import ids

CORPUS: dict[str, Any] = {
    "1": {"title": "Copper", "text": "copper mine", "year": 1900},
    "2": {"title": "Boats", "text": "sailing lake"},
    "3": "forest trail",
}
QUERIES = {"q1": "copper", "q2": "lake"}
QRELS = {"q1": {"1": 3}, "q2": {"2": 2, "3": 1}}
WORDS = ["copper", "sailing", "lake", "forest"]


def embed(texts: list[str]) -> list[list[float]]:
    return [[1e-6 + text.lower().count(word) for word in WORDS] for text in texts]


def embed_with_role(texts: list[str], role: Role) -> Any:
    return np.array(embed(texts)) * (2 if role is Role.QUERY else 1)


def search(query: str, k: int) -> list[str]:
    return {"copper": ["1"], "lake": ["3", "2"]}[query][:k]


def scored_search(query: str, limit: int) -> list[tuple[str, float]]:
    return [("1", 0.5), ("2", 0.75)]


class LangChain:
    def embed_documents(self, texts: list[str]) -> Any:
        return embed(texts)

    def embed_query(self, text: str) -> Any:
        return embed([text])[0]


class Model:
    def encode(self, texts: list[str]) -> Any:
        return np.array(embed(texts))


class Mine(Provider):
    name, default_model, local = "mine", "mine", True

    def __init__(self) -> None:
        self.card = ModelCard(name="mine", dimensions=4)

    def embed(self, texts: Any, role: Role) -> EmbeddingBatch:
        return EmbeddingBatch(np.array(embed(texts), dtype=np.float32))


@pytest.fixture(scope="module")
def evaluation() -> Evaluation:
    task = bakeoff.Task.from_dicts(CORPUS, QUERIES, QRELS)
    return evaluate(
        {
            "function": embed,
            "with role": embed_with_role,
            "lambda": lambda texts: embed(texts),
            "langchain": LangChain(),
            "model": Model(),
            "provider": Mine(),
            "search": search,
            "scored": scored_search,
            "run": {"q1": {"2": 0.9, "1": 0.1}, "q2": {"2": 1.0}},
            "tfidf": "tfidf",
            "bm25": "bm25",
            "entry": {"provider": "fake", "store": "chroma", "dimensions": 64},
            "broken": lambda texts: [1 / 0 for _ in texts],
        },
        task,
        measures=["mrr", "ndcg@10"],
        rounds=1,
        cache=False,
    )


def test_every_value_is_a_row(evaluation: Evaluation) -> None:
    mrr = {label: list(scores["mrr"].values()) for label, scores in evaluation.scores.items()}
    for label in ("function", "with-role", "lambda", "langchain", "model", "provider", "bm25"):
        assert mrr[label] == [1, 1], label
    assert mrr["search"] == [1, 1]  # document 3 is relevant for q2
    assert mrr["scored"] == [0.5, 1]
    assert mrr["run"] == [0.5, 1]
    assert set(mrr) >= {"tfidf", "entry"}
    assert evaluation.not_run == {"broken": "ZeroDivisionError: division by zero"}


def test_scores_are_keyed_by_query_and_rows_are_timed(evaluation: Evaluation) -> None:
    assert evaluation.scores["scored"]["mrr"] == {"q1": 0.5, "q2": 1.0}
    rows = {row.label: row for row in evaluation.result.summary.rows}
    assert rows["function"].latency is not None
    assert rows["function"].latency.embed.n == 2
    assert rows["search"].latency is not None
    assert rows["search"].latency.search.n == 2
    assert rows["run"].latency is None
    assert ids(rows["lambda"].warnings) == ["no_revision", "vector_lengths"]


def test_it_prints_as_the_first_screen(evaluation: Evaluation) -> None:
    text = str(evaluation)
    assert repr(evaluation) == text
    assert text == first_screen_text(evaluation.result.summary)
    assert "NDCG@10" in text
    assert "ZeroDivisionError" in text
    assert len(text.splitlines()) <= 30
    assert max(map(len, text.splitlines())) <= 100
    html = evaluation._repr_html_()
    assert "<table>" in html
    groups = {standing.alike or label for label, standing in evaluation.result.summary.verdict.standings.items()}
    assert html.count("<tr>") == 1 + len(groups)
    assert "ZeroDivisionError" in html
    for shown in (evaluation.outcome, evaluation.outcome.task, evaluation.outcome.lineup, evaluation.result):
        assert len(repr(shown)) < 400


def test_it_is_a_frame_a_folder_and_a_page(evaluation: Evaluation, tmp_path: Path) -> None:
    frame = evaluation.to_pandas()
    assert frame.set_index("contender").loc["scored", "mrr"] == 0.75
    page = evaluation.report(tmp_path)
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")
    loaded = bakeoff.load(page.parent)
    assert loaded.values("scored", "mrr").tolist() == [0.5, 1.0]
    json.dumps(loaded.summary.lineup)


def test_a_task_from_frames_is_the_task_from_dicts() -> None:
    from_dicts = bakeoff.Task.from_dicts(CORPUS, QUERIES, QRELS)
    corpus = pandas.DataFrame(
        [{"id": 1, "title": "Copper", "text": "copper mine"}, {"id": 2, "title": "Boats", "text": "sailing lake"},
         {"id": 3, "title": "", "text": "forest trail"}]
    )  # fmt: skip
    queries = pandas.DataFrame({"id": ["q1", "q2"], "text": ["copper", "lake"]})
    qrels = pandas.DataFrame({"query": ["q1", "q2", "q2"], "document": [1, 2, 3], "grade": [3, 2, 1]})
    assert bakeoff.Task.from_pandas(corpus, queries, qrels).fingerprint() == from_dicts.fingerprint()
    assert from_dicts.documents[0].metadata == {"year": 1900}
    with refuses(InputError, "'grade'"):
        bakeoff.Task.from_pandas(corpus, queries, qrels.drop(columns="grade"))
    with refuses(InputError, "2"):
        bakeoff.Task.from_pandas(pandas.concat([corpus, corpus[:2]]), queries, qrels)


def test_a_beir_folder_and_dicts_are_tasks(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    lines = [{"_id": key, "text": value if isinstance(value, str) else value["text"]} for key, value in CORPUS.items()]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, lines)))
    (tmp_path / "queries.jsonl").write_text("\n".join(json.dumps({"_id": k, "text": v}) for k, v in QUERIES.items()))
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\t1\t3\nq2\t2\t2\nq2\t3\t1\n")
    for task in (str(tmp_path), tmp_path, {"corpus": CORPUS, "queries": QUERIES, "qrels": QRELS}):
        assert evaluate({"mine": embed}, task, rounds=1, cache=False).scores["mine"]["mrr"] == {"q1": 1, "q2": 1}


@pytest.mark.parametrize(
    ("contenders", "said"),
    [
        ({}, ""),
        ({"a": "minilmm"}, "'minilmm'"),
        ({"a": 3}, "int"),
        ({"a": {"provider": "fake", "stroe": "faiss"}}, "stroe"),
        ({"a": lambda one, two, three: 0}, "3 parameters"),
        ({"a b": "bm25", "a-b": "bm25"}, "'a-b'"),
    ],
)
def test_what_is_no_contender_is_refused(contenders: dict[str, Any], said: str) -> None:
    with refuses(InputError, said):
        evaluate(contenders, bakeoff.Task.from_dicts(CORPUS, QUERIES, QRELS))
