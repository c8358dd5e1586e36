"""Which pairs to grade: the top documents of several contenders, or all where they are few."""

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
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.words import failure_words
from bakeoff.results.schema import read_detailed
from bakeoff.running.runner import Settings, run
from bakeoff.tasks.annotations import POOL, Pool
from bakeoff.tasks.task_folder import TaskFolder

ALL_BELOW = 1000  # pairs up to which nothing is left out: as many as a person grades in a day
DEPTH = 10

Rankings = Mapping[str, Mapping[str, Ranking]]  # contender → query → what it answered


def rankings_of_run(lineup: Lineup, task: Task, settings: Settings) -> Rankings:
    """Lets the contenders of a line-up answer this task's queries once."""
    ungraded = replace(settings, graded=False, recorded=False)
    outcome = run(replace(lineup, task=task, tasks=(), overrides={}, rounds=1), ungraded)
    if not outcome.ran:
        reasons = "; ".join(f"{lost.contender.label}: {failure_words(lost.failure)}" for lost in outcome.not_run)
        raise InputError(f"no contender can run ({reasons})", remedy="add one that needs no key, such as bm25")
    return {scored.contender.label: scored.rankings for scored in outcome.ran}


def rankings_of_result(folder: Path, queries: Sequence[str]) -> Rankings:
    """What the contenders of an earlier run answered."""
    detailed = read_detailed(folder)
    if not set(detailed.queries) & set(queries):
        raise InputError("has none of this task's queries", file=folder, remedy="name a result of the same task")
    return {
        contender.label: {query: answer.ranking for query, answer in contender.queries.items()}
        for contender in detailed.contenders
    }


def pool_rankings(rankings: Rankings, queries: Sequence[str], depth: int, salt: str = "") -> dict[str, list[str]]:
    """The union of everyone's first documents, in a seeded order, so that places do not show ranks."""
    pool: dict[str, list[str]] = {}
    for query in queries:
        documents = {
            document for answers in rankings.values() if query in answers for document in answers[query].found[:depth]
        }
        pool[query] = sorted(documents, key=lambda document: order_key(salt, query, document))
    return pool


def extend_pool(folder: TaskFolder, pairs: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """With what was pooled before: a pair that somebody may have graded never leaves the pool."""
    before = folder.pool() if (folder.annotations / POOL).exists() else []
    merged: dict[str, list[str]] = {query: list(documents) for query, documents in pairs.items()}
    for query, document in before:
        if document not in merged.setdefault(query, []):
            merged[query].append(document)
    return merged


def write_pool(folder: TaskFolder, pairs: dict[str, list[str]], metadata: Mapping[str, Any]) -> Path:
    """The pool, in a file beside the task."""
    folder.check_own()
    path = folder.annotations / POOL
    write_json(path, Pool(metadata=dict(metadata), pairs=pairs))
    return path
