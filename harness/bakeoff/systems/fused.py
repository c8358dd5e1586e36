"""Fusion of several rows' rankings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from bakeoff_providers.errors import Unavailable

from bakeoff.core.clock import time_call
from bakeoff.core.figures import CallTime
from bakeoff.core.task import Query
from bakeoff.search.answer import Answer, Searcher
from bakeoff.search.fusion import Fusion, fuse
from bakeoff.systems.base import Build, Prepared, Ready, RunContext, System, count_parts


@dataclass(frozen=True)
class Fused(System):
    """A row that fuses the rankings of its parts."""

    row_type: ClassVar[str] = "fused"

    fusion: Fusion = field(kw_only=True)

    @property
    def made_of(self) -> tuple[str, ...]:
        """Its parts."""
        return self.fusion.of

    @property
    def weighted(self) -> bool:
        """Whether its fusion has weights."""
        return len(set(self.fusion.weights)) > 1

    def count(self, run: RunContext, ready: Ready) -> Prepared | None:  # noqa: ARG002
        """Count the calls of its parts."""
        return count_parts(self, ready)

    def prepare(self, run: RunContext, scratch: Path, ready: Ready) -> Prepared:  # noqa: ARG002
        """Prepare the fusion; fails unless all parts are ready."""
        rows = [ready[label] for label in self.fusion.of]
        parts = [row for row in rows if isinstance(row, Prepared)]
        if len(parts) < len(rows):
            lost = [row.contender.label for row in rows if not isinstance(row, Prepared)]
            raise Unavailable(f"needs {', '.join(lost)}, which can't run here")
        sizes = [part.build.index_bytes for part in parts if part.build.index_bytes is not None]
        build = Build(seconds=sum(part.build.seconds for part in parts), index_bytes=sum(sizes) if sizes else None)
        return Prepared(self, FusedSearcher([part.searcher for part in parts], self.fusion, run.depth), build)


@dataclass(slots=True)
class FusedSearcher(Searcher):
    """Queries every part and fuses the rankings. Times are summed."""

    parts: Sequence[Searcher]
    fusion: Fusion
    depth: int

    def ask(self, query: Query) -> Answer:
        """Query the parts in sequence; fusing counts as search time."""
        answers = [part.ask(query) for part in self.parts]
        rankings, fusion = [answer.ranking for answer in answers], self.fusion
        fused, fuse_ns = time_call(lambda: fuse(rankings, fusion))
        embedded = [answer.embed_ns for answer in answers if answer.embed_ns is not None]
        kept = [answer.kept_embed for answer in answers if answer.kept_embed]
        return Answer(
            fused.cut(self.depth),
            sum(answer.search_ns for answer in answers) + fuse_ns,
            sum(embedded) if embedded and not kept else None,
            timed=max(answer.timed for answer in answers),
            kept_embed=_sum(kept, sum(embedded)) if kept else None,
        )

    def begin_round(self, number: int) -> None:
        """Passed on to its parts."""
        for part in self.parts:
            part.begin_round(number)


def _sum(kept: Sequence[CallTime], embed_ns: int) -> CallTime:
    """The sum of several call times; its date is the oldest."""
    machines = " and ".join(dict.fromkeys(time.machine for time in kept))
    return CallTime(sum(time.nanoseconds for time in kept) + embed_ns, min(time.at for time in kept), machines)
