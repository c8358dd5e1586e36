"""Pooling: the pairs to grade are the top documents of several contenders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bakeoff_providers.errors import InputError

from bakeoff.core.files import write_json
from bakeoff.core.hashing import order_key
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Task
from bakeoff.extensions.testsets.task_folder import TaskFolder
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.words import failure_words
from bakeoff.results.schema import read_detailed
from bakeoff.running.runner import Settings, run
from bakeoff.tasks.looks import POOL, Pool

ALL_BELOW = 1000  # grade all pairs up to this many, about a day's work
DEPTH = 10

Rankings = Mapping[str, Mapping[str, Ranking]]  # contender → query → ranking


def rankings_of_run(lineup: Lineup, task: Task, settings: Settings) -> Rankings:
    """Run a line-up on this task's queries once."""
    ungraded = replace(settings, graded=False, recorded=False)
    outcome = run(replace(lineup, task=task, tasks=(), overrides={}, rounds=1), ungraded)
    if not outcome.ran:
        reasons = "; ".join(f"{lost.contender.label}: {failure_words(lost.failure)}" for lost in outcome.not_run)
        raise InputError(f"no contender can run ({reasons})", remedy="add one that needs no key, such as bm25")
    return {scored.contender.label: scored.rankings for scored in outcome.ran}


def rankings_of_result(folder: Path, queries: Sequence[str]) -> Rankings:
    """Read the rankings of an earlier run."""
    detailed = read_detailed(folder)
    if not set(detailed.queries) & set(queries):
        raise InputError("has none of this task's queries", file=folder, remedy="name a result of the same task")
    return {
        contender.label: {query: answer.ranking for query, answer in contender.queries.items()}
        for contender in detailed.contenders
    }


def pool_rankings(rankings: Rankings, queries: Sequence[str], depth: int, salt: str = "") -> dict[str, list[str]]:
    """The union of all top documents, in a seeded order that does not reveal ranks."""
    pool: dict[str, list[str]] = {}
    for query in queries:
        documents = {
            document for answers in rankings.values() if query in answers for document in answers[query].found[:depth]
        }
        pool[query] = sorted(documents, key=lambda document: order_key(salt, query, document))
    return pool


def extend_pool(folder: TaskFolder, pairs: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """Add the existing pool, since a pair that may be graded never leaves it."""
    before = folder.pool() if (folder.annotations / POOL).exists() else []
    merged: dict[str, list[str]] = {query: list(documents) for query, documents in pairs.items()}
    for query, document in before:
        if document not in merged.setdefault(query, []):
            merged[query].append(document)
    return merged


def write_pool(folder: TaskFolder, pairs: dict[str, list[str]], metadata: Mapping[str, Any]) -> Path:
    """Write the pool to the task's annotations."""
    folder.check_own()
    path = folder.annotations / POOL
    write_json(path, Pool(metadata=dict(metadata), pairs=pairs))
    return path
