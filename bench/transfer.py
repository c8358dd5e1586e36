"""Transfer with a real pair: wordllama's vectors against the same after a linear map learnt on SciFact's train split.

    python bench/transfer.py [DATA]

DATA (or $BAKEOFF_DATA) is SciFact in BEIR's layout, or the folder above it. The map (ridge regression from a claim's
vector to its abstract's, towards the identity) changes queries only. Domain: SciFact's test split; general: the
built-in Wikipedia task. Needs bakeoff[wordllama].
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import numpy as np
from bakeoff.core.arrays import Values
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Task
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import join, score_queries
from bakeoff.extensions.several_results.nested import estimate_nested
from bakeoff.tasks.load import load_task
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Provider, Role

NDCG = Measure.parse("ndcg@10")


def unit(provider: Provider, texts: list[str], role: Role) -> Values:
    vectors = np.asarray(provider.embed(texts, role).vectors, dtype=np.float64)
    lengths: Values = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return vectors / lengths


def learnt_map(task: Task, provider: Provider, strength: float) -> Values:
    """The ridge solution of |Q (I + W) − D|² + strength · |W|²: with much strength it changes nothing."""
    texts = {document.id: document.whole() for document in task.documents}
    pairs = [(q.text, texts[d]) for q in task.queries for d, grade in task.judgments.get(q.id, {}).items() if grade]
    queries = unit(provider, [query for query, _ in pairs], Role.QUERY)
    documents = unit(provider, [document for _, document in pairs], Role.DOCUMENT)
    identity = np.eye(queries.shape[1])
    shift = np.linalg.solve(queries.T @ queries + strength * identity, queries.T @ (documents - queries))
    return identity + shift


def scores(task: Task, provider: Provider, maps: dict[str, Values | None]) -> dict[str, Values]:
    documents = unit(provider, [document.whole() for document in task.documents], Role.DOCUMENT)
    queries = unit(provider, [query.text for query in task.queries], Role.QUERY)
    ids = np.array([document.id for document in task.documents])
    by_row = {}
    for label, change in maps.items():
        similarity = (queries if change is None else queries @ change) @ documents.T
        order = np.argsort(-similarity, axis=1, kind="stable")[:, :100]
        rankings = {
            q.id: Ranking(tuple(ids[row]), (0.0,) * len(row)) for q, row in zip(task.queries, order, strict=True)
        }
        by_row[label] = score_queries(join(rankings, task.judgments, list(rankings)), [NDCG], task.rel)[NDCG]
    return by_row


def main() -> int:
    parser = argparse.ArgumentParser(description="What a map learnt on SciFact gains there and loses elsewhere.")
    parser.add_argument("data", nargs="?", default=os.environ.get("BAKEOFF_DATA"))
    parser.add_argument("--strength", type=float, default=30.0)
    given = parser.parse_args()
    if not given.data:
        parser.error("name the folder that holds scifact/, or set BAKEOFF_DATA")
    folder = Path(given.data) / "scifact" if (Path(given.data) / "scifact").is_dir() else Path(given.data)
    beir = {"format": "beir", "folder": str(folder.resolve())}
    provider = PROVIDERS.create("wordllama")
    train = load_task({**beir, "name": "scifact-train", "split": "train"}, Path())
    maps = {"wordllama": None, "adapted": learnt_map(train, provider, given.strength)}
    for role, task in (
        ("domain", load_task({**beir, "name": "scifact"}, Path())),
        ("general", load_task("wikipedia", Path())),
    ):
        by_row = scores(task, provider, maps)
        over = estimate_nested([by_row["adapted"] - by_row["wordllama"]])
        print(
            f"{role:8} {task.name:10} {len(task.queries):4} queries  wordllama {by_row['wordllama'].mean():.4f}  "
            f"adapted {by_row['adapted'].mean():.4f}  {over.difference:+.4f} [{over.low:+.4f}, {over.high:+.4f}]  "
            f"p {over.p:.4f}"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
