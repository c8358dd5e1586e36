"""A fusion as something that can be asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bakeoff.core.clock import timed
from bakeoff.core.figures import CallTime
from bakeoff.core.task import Query
from bakeoff.search.fusion import Fusion, fuse
from bakeoff.search.searchers import Answer, Searcher


@dataclass(slots=True)
class FusedSearcher(Searcher):
    """Asks every part and fuses: it takes the time of all of them, so its row is as slow as it would really be."""

    parts: Sequence[Searcher]
    fusion: Fusion
    depth: int

    def ask(self, query: Query) -> Answer:
        """One after the other; the fusing counts as search."""
        answers = [part.ask(query) for part in self.parts]
        rankings, fusion = [answer.ranking for answer in answers], self.fusion
        fused, fuse_ns = timed(lambda: fuse(rankings, fusion))
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
        """Its parts are asked in it."""
        for part in self.parts:
            part.begin_round(number)


def _sum(kept: Sequence[CallTime], embed_ns: int) -> CallTime:
    """All calls together, those of this run included: as old as the oldest."""
    machines = " and ".join(dict.fromkeys(time.machine for time in kept))
    return CallTime(sum(time.nanoseconds for time in kept) + embed_ns, min(time.at for time in kept), machines)
