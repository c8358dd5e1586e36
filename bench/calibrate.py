"""The harness's own rows on SciFact against the published NDCG@10: if these are off, no other figure means anything.

    make calibrate DATA=…      or      python bench/calibrate.py [DATA]

DATA (or $BAKEOFF_DATA) is SciFact in BEIR's layout, or the folder above it. Needs bakeoff[minilm,granite] and the
weights (`bakeoff models pull minilm granite`); the vectors are kept in Bakeoff's cache, so only the first time takes
minutes. Exits 1 if a row is off.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bakeoff.evaluation.measures import Measure
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.console import Bars
from bakeoff.report.words import failure_words
from bakeoff.running.runner import NotRun, Outcome, Settings, run, vectors_folder
from bakeoff.statistics.small_samples import mean_intervals
from bakeoff.systems.dense import Dense
from bakeoff.systems.lexical import Lexical

NDCG = Measure.parse("ndcg@10")


class Published(NamedTuple):
    """A figure, and how far from it a sound harness may land."""

    ndcg: float
    within: float


PUBLISHED = {
    "minilm": Published(0.645, 0.003),
    "minilm-int8": Published(0.645, 0.003),  # published of float32: bytes may cost no more than that
    # embeddings-benchmark/results, ibm-granite__granite-embedding-30m-english/eddbb57…/SciFact.json
    "granite": Published(0.7127, 0.003),
    "bm25": Published(0.687, 0.010),
}


def main() -> int:
    folder = scifact()
    print(f"SciFact, test split, from {folder}", flush=True)
    outcome = run(lineup(folder), Settings(cache=vectors_folder(), progress=Bars()))
    return verdict(outcome)


def lineup(folder: Path) -> Lineup:
    return Lineup(
        name="calibrate",
        task={"name": "scifact", "format": "beir", "folder": str(folder)},
        contenders=(
            Dense("minilm", provider="minilm", store="faiss"),
            Dense("minilm-int8", provider="minilm", store="faiss", options={"compute": "int8"}),
            Dense("granite", provider="granite", store="faiss"),
            Lexical("bm25", ranker="bm25"),
        ),
        measures=(NDCG,),
        primary=NDCG,
        depth=100,
        rounds=1,
        seed=42,
        folder=folder,
    )


def verdict(outcome: Outcome) -> int:
    queries, documents = len(outcome.task.queries), len(outcome.task.documents)
    print(f"{documents} documents, {queries} queries, {outcome.seconds:.0f} s")
    print(f"{'row':<11} {'NDCG@10':>8}  {'95%':<16} {'published':>9}  {'off by':>7}  within")
    off = queries != 300 or documents != 5183
    if off:
        print("this is not SciFact's test split: 5183 documents and 300 queries were expected")
    for row in outcome.contenders:
        label = row.contender.label
        known = PUBLISHED[label]
        if isinstance(row, NotRun):
            off = True
            print(f"{label:<11} not run: {failure_words(row.failure)}")
            continue
        mean = float(row.scores[NDCG].mean())
        (low,), (high,) = mean_intervals(row.scores[NDCG][:, None])  # the interval that a result holds
        missed = abs(mean - known.ndcg) > known.within
        off |= missed
        print(
            f"{label:<11} {mean:8.4f}  [{low:.3f}, {high:.3f}]   {known.ndcg:9.3f}  {mean - known.ndcg:+7.4f}  "
            f"±{known.within:.3f} {'MISSED' if missed else 'ok'}"
        )
    return int(off)


def scifact() -> Path:
    parser = argparse.ArgumentParser(description="Calibration on SciFact")
    parser.add_argument(
        "data", nargs="?", default=os.environ.get("BAKEOFF_DATA"), help="SciFact, or the folder above it"
    )
    given = parser.parse_args().data
    if not given:
        parser.error("name the folder that holds scifact/, or set BAKEOFF_DATA")
    folder = Path(given).resolve()
    return folder if (folder / "corpus.jsonl").is_file() else folder / "scifact"


if __name__ == "__main__":
    sys.exit(main())
