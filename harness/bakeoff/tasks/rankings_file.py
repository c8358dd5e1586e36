"""Rankings that were made elsewhere: JSON Lines of a query and its ranked ids, best first."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
from bakeoff_providers.errors import InputError

from bakeoff.core.files import read_bytes
from bakeoff.core.ranking import Ranking, ordered
from bakeoff.core.task import Task, document_ids


class RankedLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line. Scores are optional: without them the order is the ranking, and nothing ties."""

    query: str
    ranked: list[str]
    scores: list[float] | None = None


def read_rankings(file: Path, task: Task) -> dict[str, Ranking]:
    """One ranking per query, its own item left out; unknown queries and documents and repeated ones are errors."""
    queries = {query.id: query for query in task.queries}
    documents = set(document_ids(task.documents))
    rankings: dict[str, Ranking] = {}
    for number, line in enumerate(read_bytes(file).splitlines(), start=1):
        if not line.strip():
            continue
        try:
            entry = msgspec.json.decode(line, type=RankedLine)
            if entry.query not in queries:
                raise InputError(f"unknown query {entry.query!r}")
            if entry.query in rankings:
                raise InputError(f"duplicate query {entry.query!r}")
            for document in entry.ranked:
                if document not in documents:
                    raise InputError(f"unknown document {document!r}")
            ranking = _ranking(entry)
        except (msgspec.DecodeError, InputError, UnicodeDecodeError) as error:
            remedy = '{"query": "q1", "ranked": ["d2", "d1"], "scores": [0.9, 0.3]}'
            raise InputError(str(error), file=file, place=f"line {number}", remedy=f"one line is {remedy}") from None
        item = queries[entry.query].excluded
        kept = [pair for pair in zip(ranking.ids, ranking.scores, strict=True) if pair[0] != item]
        rankings[entry.query] = Ranking(tuple(document for document, _ in kept), tuple(score for _, score in kept))
    return rankings


def _ranking(entry: RankedLine) -> Ranking:
    """By the scores where there are any; otherwise as listed, with scores that say the same."""
    if entry.scores is None:
        return ordered((document, 1.0 / rank) for rank, document in enumerate(entry.ranked, start=1))
    if len(entry.scores) != len(entry.ranked):
        raise InputError(f"{len(entry.scores)} scores for {len(entry.ranked)} ids")
    if not all(math.isfinite(score) for score in entry.scores):
        raise InputError("a score is not finite")
    return ordered(zip(entry.ranked, entry.scores, strict=True))
