"""Writes scifact.csv: NDCG@10 of eight rows on each of SciFact's 300 test queries.

    python bench/simulate/scifact.py [DATA]

DATA (or $BAKEOFF_DATA) is the folder that holds SciFact in BEIR's layout, as scifact/. Needs bakeoff[local].
"""

from __future__ import annotations

import csv
import os
import sys
from pathlib import Path

import bakeoff

CONTENDERS = {
    "granite": {"provider": "granite"},
    "minilm": {"provider": "minilm"},
    "use": {"provider": "use"},
    "wordllama": {"provider": "wordllama"},
    "tfidf": {"provider": "tfidf"},
    "fake": {"provider": "fake"},
    "bm25": {"ranker": "bm25"},
    "bm25b0": {"ranker": "bm25", "options": {"b": 0.0}},
}


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else os.environ["BAKEOFF_DATA"]).resolve() / "scifact"
    task = {"name": "scifact", "format": "beir", "folder": str(folder)}
    found = bakeoff.evaluate(CONTENDERS, task, measures=["ndcg@10"], rounds=1, depth=10)
    scores = {label: found.scores[label]["ndcg@10"] for label in CONTENDERS}
    with Path(__file__).with_name("scifact.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(scores)
        rows.writerows(
            [f"{value:.4f}" for value in query]
            for query in zip(*(each.values() for each in scores.values()), strict=True)
        )


if __name__ == "__main__":
    main()
