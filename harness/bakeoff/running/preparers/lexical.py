"""A ranker that compares words and needs no vectors."""

from __future__ import annotations

from bakeoff_providers.errors import Unavailable
from bakeoff_providers.keys import filled

from bakeoff.core.clock import timed
from bakeoff.embedding.corpus_chunks import ChunkTexts
from bakeoff.lineup.contender import Contender
from bakeoff.lineup.sources import missing_of
from bakeoff.running.embeddings import Embeddings
from bakeoff.running.failures import adapter_work
from bakeoff.running.preparers.base import PreparationContext, Preparer
from bakeoff.running.stages import Build, Prepared
from bakeoff.search.rankers import RANKERS
from bakeoff.search.searchers import LexicalSearcher


class Lexical(Preparer):
    """Indexes the words of the corpus."""

    def check(self, contender: Contender, embeddings: Embeddings) -> None:  # noqa: ARG002
        """Makes the ranker, which checks its options."""
        if not missing_of(contender):
            RANKERS.create(contender.ranker, **filled(contender.options, secret=False))

    def prepare(self, contender: Contender, context: PreparationContext) -> Prepared:
        """Its index lives in memory and has no size on disk."""
        if reason := missing_of(contender):
            raise Unavailable(reason)
        index = context.embeddings.index(contender)
        ranker = RANKERS.create(contender.ranker, **filled(contender.options, secret=False))
        ids, texts = index.ids, ChunkTexts(index.chunks)
        with adapter_work():
            _, nanoseconds = timed(lambda: ranker.add(ids, texts))
        return Prepared(contender, LexicalSearcher(ranker, index), Build(seconds=nanoseconds / 1e9))
