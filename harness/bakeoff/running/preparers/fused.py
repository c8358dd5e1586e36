"""Several rows made one by weighted reciprocal rank fusion."""

from __future__ import annotations

from bakeoff_providers.errors import Unavailable

from bakeoff.lineup.contender import Contender
from bakeoff.running.preparers.base import PreparationContext, Preparer
from bakeoff.running.stages import Build, Prepared
from bakeoff.search.fused_searcher import FusedSearcher


class Fused(Preparer):
    """Asks the searchers of its parts."""

    def prepare(self, contender: Contender, context: PreparationContext) -> Prepared:
        """A fusion can only run where all of its parts can be asked."""
        fusion = contender.fusion
        if fusion is None:
            raise Unavailable("names no parts")
        rows = [context.ready[label] for label in fusion.of]
        parts = [row for row in rows if isinstance(row, Prepared)]
        if len(parts) < len(rows):
            lost = [row.contender.label for row in rows if not isinstance(row, Prepared)]
            raise Unavailable(f"needs {', '.join(lost)}, which can't be asked here")
        sizes = [part.build.index_bytes for part in parts if part.build.index_bytes is not None]
        build = Build(seconds=sum(part.build.seconds for part in parts), index_bytes=sum(sizes) if sizes else None)
        searcher = FusedSearcher([part.searcher for part in parts], fusion, context.embeddings.depth)
        return Prepared(contender, searcher, build)
