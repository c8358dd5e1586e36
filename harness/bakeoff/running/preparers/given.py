"""Answers that were made elsewhere and are in files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from bakeoff_providers.errors import InputError

from bakeoff.core.ranking import Ranking, ordered
from bakeoff.core.task import Task
from bakeoff.lineup.contender import Contender
from bakeoff.running.embeddings import Embeddings
from bakeoff.running.preparers.base import PreparationContext, Preparer
from bakeoff.running.stages import Given


class FromFiles(Preparer):
    """One file, or one for each seed; the kind of task reads them."""

    asked: ClassVar[bool] = False

    def check(self, contender: Contender, embeddings: Embeddings) -> None:
        """All files are there."""
        for file in contender.answers.values():
            if not (embeddings.folder / file).is_file():
                raise InputError("no such file", file=embeddings.folder / file, remedy="check the path")

    def prepare(self, contender: Contender, context: PreparationContext) -> Given:
        """Nothing to prepare but the paths."""
        if contender.live is not None:
            return Given(contender, {}, rankings_of(contender.live, context.embeddings.task))
        folder = context.embeddings.folder
        return Given(contender, {seed: folder / file for seed, file in contender.answers.items()})


def rankings_of(runs: Mapping[str, Mapping[str, float]], task: Task) -> dict[str, Ranking]:
    """Scores by query and document, as ranx and BEIR hold them; ids that the task lacks are refused."""
    queries, documents = {query.id: query for query in task.queries}, {document.id for document in task.documents}
    rankings = {}
    for query, scores in runs.items():
        if str(query) not in queries:
            raise InputError(f"the run has the unknown query {query!r}")
        if unknown := [document for document in scores if str(document) not in documents]:
            raise InputError(f"the run has the unknown document {unknown[0]!r} for query {query!r}")
        item = queries[str(query)].excluded
        kept = ((str(document), float(score)) for document, score in scores.items() if str(document) != item)
        rankings[str(query)] = ordered(kept)
    return rankings
