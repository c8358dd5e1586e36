"""Rankings made elsewhere, from files or from Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from bakeoff_providers.errors import InputError

from bakeoff.core.ranking import Ranking, make_ranking
from bakeoff.core.task import Task
from bakeoff.systems.base import Given, Ready, RunContext, System


@dataclass(frozen=True)
class GivenRow(System):
    """One file, or one per seed, read by the kind of task. `live` are scores by query and document."""

    row_type: ClassVar[str] = "given"
    asked: ClassVar[bool] = False

    answers: dict[str, str] = field(default_factory=dict, kw_only=True)  # seed → file; "" if there is only one
    live: Any = field(default=None, repr=False, compare=False, kw_only=True)

    def check(self, run: RunContext) -> None:
        """Check that all files exist."""
        for file in self.answers.values():
            if not (run.folder / file).is_file():
                raise InputError("no such file", file=run.folder / file, remedy="check the path")

    def prepare(self, run: RunContext, scratch: Path, ready: Ready) -> Given:  # noqa: ARG002
        """Resolve the paths."""
        if self.live is not None:
            return Given(self, {}, rankings_of(self.live, run.task))
        return Given(self, {seed: run.folder / file for seed, file in self.answers.items()})


def rankings_of(runs: Mapping[str, Mapping[str, float]], task: Task) -> dict[str, Ranking]:
    """Rankings from scores by query and document, as in ranx and BEIR. Unknown ids are refused."""
    queries, documents = {query.id: query for query in task.queries}, {document.id for document in task.documents}
    rankings = {}
    for query, scores in runs.items():
        if str(query) not in queries:
            raise InputError(f"the run has the unknown query {query!r}")
        if unknown := [document for document in scores if str(document) not in documents]:
            raise InputError(f"the run has the unknown document {unknown[0]!r} for query {query!r}")
        item = queries[str(query)].excluded
        kept = ((str(document), float(score)) for document, score in scores.items() if str(document) != item)
        rankings[str(query)] = make_ranking(kept)
    return rankings
