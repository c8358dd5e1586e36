"""Scores by language and by length, where the task can tell them: a mean may hide who fails where."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.core.figures import Section
from bakeoff.core.task import Task
from bakeoff.evaluation.measures import Measure
from bakeoff.statistics.averaging import Averaging

LANGUAGE_KEYS = ("language", "lang")
LENGTHS = ((1, 3), (4, 8), (9, 16), (17, None))  # words of a query
FEWEST = 10  # queries in a group: fewer say nothing


def by_language(task: Task) -> list[str]:
    """For each query, the language of its relevant documents; "" where they have none, or several."""
    if not any(key in next(iter(task.documents)).metadata for key in LANGUAGE_KEYS):
        return [""] * len(task.queries)  # a large corpus is not read for nothing
    languages = {
        document.id: str(next((document.metadata[key] for key in LANGUAGE_KEYS if key in document.metadata), ""))
        for document in task.documents
    }
    of_relevant = [
        {languages[document] for document, grade in task.judgments.get(query.id, {}).items() if grade >= task.rel}
        for query in task.queries
    ]
    return [next(iter(names)) if len(names) == 1 else "" for names in of_relevant]


def by_length(task: Task) -> list[str]:
    """For each query, the band of its number of words."""
    counts = [len(query.text.split()) for query in task.queries]
    return [
        next((_band(low, high) for low, high in LENGTHS if low <= count <= (high or count)), "") for count in counts
    ]


def _band(low: int, high: int | None) -> str:
    return f"{low}–{high} words" if high else f"{low} words or more"


def breakdown_sections(
    task: Task, scores: Mapping[str, Values], measure: Measure, averaging: Averaging
) -> list[Section]:
    """A table for each way to group the queries that gives at least two groups of ten."""
    sections = []
    for title, groups in (("language", by_language(task)), ("length of the query", by_length(task))):
        names = np.array(groups)
        kept = [name for name in dict.fromkeys(sorted(groups, key=_order)) if name and (names == name).sum() >= FEWEST]
        if len(kept) < 2:
            continue
        sections.append(
            Section(
                title=f"{measure.label} by {title}",
                head=["Contender", *(f"{name} ({int((names == name).sum())})" for name in kept)],
                rows=[
                    [label, *(f"{measure.figure(averaging.mean(values, names == name)):.3f}" for name in kept)]
                    for label, values in scores.items()
                ],
                notes=[f"In brackets: queries. Groups of fewer than {FEWEST} are left out."],
            )
        )
    return sections


def _order(name: str) -> tuple[int, str]:
    """Bands of words by their number, anything else by its name."""
    first = name.split("–")[0].split()[0] if name else ""
    return (int(first), name) if first.isdigit() else (0, name)
