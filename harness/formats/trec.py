"""TREC runs and qrels: the files that every evaluator of the field reads."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from harness.ranking import Ranking


def run_text(rankings: Mapping[str, Ranking], tag: str) -> str:
    """A run file on which trec_eval gives our figures.

    trec_eval ignores the rank column, reads scores in single precision and breaks ties by descending id, so tied
    scores are written a single float apart, in our order.
    """
    lines = []
    for query, ranking in rankings.items():
        above = np.float32(np.inf)
        for rank, (document, score) in enumerate(zip(ranking.ids, ranking.scores, strict=True), start=1):
            above = min(np.float32(score), np.nextafter(above, np.float32(-np.inf)))
            lines.append(f"{query} Q0 {document} {rank} {float(above)!r} {tag}\n")
    return "".join(lines)
