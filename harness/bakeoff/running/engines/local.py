"""Everything in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bakeoff_providers.base import Vectors

from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Judgments
from bakeoff.embedding.corpus_chunks import in_blocks
from bakeoff.embedding.vector_rows import BLOCK, VectorRows
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import Scores, join, score_queries
from bakeoff.running.engines.base import CorpusJob, Engine
from bakeoff.search import brute_force


class Local(Engine):
    """The default: one process, one machine."""

    name = "local"

    def embed(self, job: CorpusJob) -> VectorRows:
        """A block at a time."""
        return job.embedder.embed_corpus(in_blocks(job.texts, BLOCK), len(job.texts), job.scratch)

    def nearest(
        self, queries: Vectors, vectors: Vectors | VectorRows, k: int
    ) -> tuple[brute_force.Rows, brute_force.Similarities]:
        """A block at a time."""
        return brute_force.nearest(queries, vectors, k)

    def score(
        self,
        rankings: Mapping[str, Ranking],
        judgments: Judgments,
        queries: Sequence[str],
        measures: Sequence[Measure],
        rel: int,
    ) -> Scores:
        """All queries at once."""
        return score_queries(join(rankings, judgments, queries), measures, rel)
