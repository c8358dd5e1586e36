"""The Wikipedia evaluation framework: from a database to the report, and its JSON files alone."""

from __future__ import annotations

import csv
import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cli.test_testsets import say
from tests.five_documents.data import write_json
from tests.five_documents.definitions import (
    ndcg_at_k,
    ours,
    precision_at_k,
    random_rankings,
    recall_at_k,
    reciprocal_rank,
)
from tests.five_documents.page import Played, play, read_json
from tests.wire import WireServer

TITLE = "Wikipedia evaluation framework"
DIFFER = (0, 170, 333)  # rows of pairs.csv that the person grades otherwise than the model
TARGETS = {"p@5": 0.7, "recall@10": 0.8, "f1@5": 0.65, "mrr": 0.7}
FILES = {
    "geo_001": {"11": 3, "12": 2, "13": 0, "14": 2, "15": 1},
    "his_001": {"11": 0, "12": 0, "13": 3, "14": 1, "15": 2},
}


def _grade(query: str, title: str) -> int:
    """Some grade, always the same."""
    return zlib.crc32(f"{query} {title}".encode()) % 4


def _judge(_model: str, prompt: str) -> str:
    query, title = (prompt.partition(f"{word}: ")[2].partition("\n")[0] for word in ("Query", "Document"))
    return json.dumps({"reason": "read", "grade": _grade(query, title)})


def _people(folder: Path, command: Sequence[str]) -> None:
    """They fill in the table, and settle where the model differs."""
    if command[:2] != ("grade", "import"):
        return
    with (folder / "pairs.csv").open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for place, row in enumerate(rows):
        row["grade"] = str((_grade(row["query_text"], row["title"]) + (place in DIFFER)) % 4)
    with (folder / "pairs.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    differ = [rows[place] for place in DIFFER]
    write_json(folder / "decisions.json", [{"query_id": row["query"], "page_id": int(row["document"]), "grade": 3,
                                            "why": "it answers"} for row in differ])  # fmt: skip


def test_the_commands_lead_from_a_database_to_the_report(tmp_path: Path) -> None:
    with WireServer() as wire:
        wire.answer = _judge
        played = play(TITLE, tmp_path, wire=wire, before=_people)
        embedded = {text for request in wire.requests for text in request.texts}
    _check_selection(played)
    _check_queries(played)
    _check_grades(played)
    articles = read_json(tmp_path / "evaluate_data" / "evaluate_articles.json")["articles"]
    assert embedded >= {f"{article['title']} {article['summary']}" for article in articles}
    _check_evaluation(played)


def _check_selection(played: Played) -> None:
    file = read_json(played.folder / "evaluate_data" / "evaluate_articles.json")
    drawn = file["articles"]
    assert len({article["page_id"] for article in drawn}) == len(drawn) == 25
    assert all(article["summary"] for article in drawn)
    assert {article["state"] for article in drawn} >= {"Utah", "California"}
    assert (file["metadata"]["total_available"], file["metadata"]["seed"]) == (55, 42)
    for seed in (42, 43):
        say(played.folder, "select", "wikipedia.db", "--n", "25", "--seed", str(seed), "--out", f"{seed}.json")
    assert read_json(played.folder / "42.json")["articles"] == drawn
    assert read_json(played.folder / "43.json")["articles"] != drawn


def _check_queries(played: Played) -> None:
    queries = read_json(played.folder / "evaluate_data" / "queries.json")["queries"]
    made = [query["category"] for query in queries]
    wanted = ["geographic", "landmark", "historical", "administrative", "semantic"]
    assert {category: made.count(category) for category in made} == dict.fromkeys(wanted, 4)
    assert len({query["query_text"] for query in queries}) == 20


def _check_grades(played: Played) -> None:
    folder = played.folder / "evaluate_data"
    settled = {(row["query_id"], row["page_id"]) for row in read_json(played.folder / "decisions.json")}
    articles = read_json(folder / "evaluate_articles.json")["articles"]
    expected = {
        query["query_id"]: {
            str(article["page_id"]): 3
            if (query["query_id"], article["page_id"]) in settled
            else _grade(query["query_text"], article["title"])
            for article in articles
        }
        for query in read_json(folder / "queries.json")["queries"]
    }
    assert read_json(folder / "ground_truth.json")["grades"] == expected
    assert any("500 pairs, 3 graded" in printed for printed in played.printed)


def _check_evaluation(played: Played) -> None:
    rows = ["nomic-embed-text+faiss", "nomic-embed-text+chroma", "mxbai-embed-large+faiss", "mxbai-embed-large+chroma"]
    cuts = ["p@1", "p@3", "p@10"]
    _check_means(played, 0, rows, read_json(played.folder / "evaluate_data" / "ground_truth.json")["grades"], cuts)
    latencies = {row["label"]: row["latency"]["total"]["p50"] for row in played.summary()["rows"] if row["latency"]}
    assert latencies.keys() == set(rows)
    assert all(latencies.values())
    means = _check_means(played, 1, ["bm25"], FILES, [])
    (bm25,) = [row for row in played.summary(1)["rows"] if row["label"] == "bm25"]
    assert bm25["targets"] == {measure: means[measure] > target for measure, target in TARGETS.items()}
    files = {"metrics_summary.json", "detailed_results.json", "evaluation_report.html"}
    assert all((result / name).is_file() for result in played.results for name in files)
    page = played.results[0] / "evaluation_report.html"
    page.unlink()
    say(played.folder, "report", str(played.results[0]), "--no-pictures")
    assert "nomic-embed-text" in page.read_text(encoding="utf-8")


def _check_means(
    played: Played, place: int, labels: Sequence[str], grades: Mapping[str, Mapping[str, int]], more: Sequence[str]
) -> dict[str, float]:
    """Every row's means, from the rankings that were written; those of the last."""
    rows = {row["label"]: row["measures"] for row in played.summary(place)["rows"]}
    means: dict[str, float] = {}
    for label in labels:
        rankings = _rankings(played.results[place] / "runs" / f"{label}.trec")
        values = [_measured(rankings[query], graded) for query, graded in grades.items()]
        means = {name: float(np.mean([one[name] for one in values])) for name in [*TARGETS, "ndcg@10", *more]}
        assert {name: rows[label][name]["mean"] for name in means} == pytest.approx(means)
    return means


def _rankings(file: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        found.setdefault(line.split()[0], []).append(line.split()[2])
    return found


def _measured(ranking: Sequence[str], graded: Mapping[str, int]) -> dict[str, Any]:
    relevant = {item for item, grade in graded.items() if grade >= 2}
    precision, recall = precision_at_k(ranking, relevant, 5), recall_at_k(ranking, relevant, 5)
    return {
        **{f"p@{k}": precision_at_k(ranking, relevant, k) for k in (1, 3, 5, 10)},
        "recall@10": recall_at_k(ranking, relevant, 10),
        "f1@5": 2 * precision * recall / (precision + recall) if precision + recall else 0.0,
        "mrr": reciprocal_rank(ranking, relevant, len(ranking)),
        "ndcg@10": ndcg_at_k(ranking, graded, 10),
    }


def test_measures_on_random_rankings() -> None:
    for rng, ranking, k in random_rankings(1):
        grades = {f"d{item}": int(rng.integers(0, 4)) for item in rng.permutation(25)[: rng.integers(1, 20)]}
        relevant = {item for item, grade in grades.items() if grade >= 2}
        assert ours(f"p@{k}", ranking, grades, 2) == pytest.approx(precision_at_k(ranking, relevant, k))
        assert ours(f"recall@{k}", ranking, grades, 2) == pytest.approx(recall_at_k(ranking, relevant, k))
        assert ours(f"ndcg@{k}", ranking, grades, 2) == pytest.approx(ndcg_at_k(ranking, grades, k))


TESTED = {
    test_the_commands_lead_from_a_database_to_the_report: (
        "ArticleSelector.select_random", "QueryGenerator.generate_queries", "RelevanceGrader.grade_relevance",
        "process_json_articles", "EvaluationRunner.run_evaluation", "MetricsCalculator.calculate",
        "ReportGenerator.generate",
    ),
    test_measures_on_random_rankings: ("calculate_precision_at_k", "calculate_recall_at_k", "calculate_ndcg"),
}  # fmt: skip
