"""Dry run: requests and cost, without a call."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from pathlib import Path

from bakeoff_providers.base import Role
from bakeoff_providers.errors import Unavailable

from bakeoff.core.progress import showing
from bakeoff.embedding.corpus_chunks import in_blocks
from bakeoff.embedding.counting import CountingCache, CountingEmbedder
from bakeoff.embedding.embed import Embedder
from bakeoff.embedding.vector_rows import BLOCK
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.embeddings import Embeddings
from bakeoff.running.engines import with_shared_cache
from bakeoff.running.runner import depth_of, task_of
from bakeoff.running.settings import Settings
from bakeoff.running.turns import take_turns, warm_up
from bakeoff.systems.base import EmbeddedCorpus, NotRun, Plan, Prepared, System
from bakeoff.systems.embedding import EmbeddingRow
from bakeoff.systems.failures import attempt, failure_of
from bakeoff.tasks.kinds import load_kind

__all__ = ["Plan", "plan"]


def plan(lineup: Lineup, settings: Settings) -> list[Plan]:
    """A plan for each distinct embedding and each second stage, in the order of the line-up.

    No request is sent. A model with local weights embeds a few texts to estimate its pace.
    """
    with showing(settings.progress):
        return _plans(lineup, settings)


class _Counting(Embeddings):
    """A run context whose embedders count requests instead of sending them."""

    embedder_type = CountingEmbedder
    cache_type = CountingCache

    def of(self, row: EmbeddingRow) -> EmbeddedCorpus:
        """Count the corpus' batches once for all rows that share them."""
        if row.shares not in self._corpora:
            embedder, texts = self.embedder(row), self.texts(row)
            embedder.fit(texts)
            scratch = Path(f"counted {len(self._corpora)}")  # which is never made
            vectors = embedder.embed_corpus(in_blocks(texts, BLOCK), len(texts), scratch)
            self._corpora[row.shares] = EmbeddedCorpus(embedder, vectors)
        return super().of(row)


def _plans(lineup: Lineup, settings: Settings) -> list[Plan]:
    """Prepare, then take turns, as in a run."""
    kind = load_kind(lineup.task, lineup.folder, lineup.overrides)
    settings = with_shared_cache(settings, settings.engine or lineup.engine)
    task = task_of(kind, lineup, settings)
    embeddings = _Counting(task, depth_of(lineup, kind, task), settings, lineup.folder, given=kind.vectors_of)
    lacking = {row.label: reason for row in lineup.contenders if (reason := row.unset_variables())}
    rows = [row for row in lineup.contenders if row.label not in lacking]
    ready: dict[str, Prepared | NotRun] = {}
    sharing: dict[Hashable, list[System]] = {}
    for row in (*kind.models, *rows):
        counted = attempt(row, partial(row.count, embeddings, dict(ready)))
        if counted is not None:
            ready[row.label] = counted
        sharing.setdefault(row.shares, []).append(row)
        if row in kind.models and isinstance(counted, Prepared):
            index = embeddings.index(row)
            cut = [text for item, text in index.texts.items() if index.row_of(item) is None]
            _embed(embeddings.embedder(row), cut)
    asked = [one for row in rows if isinstance(one := ready.get(row.label), Prepared) and _leaves(one, ready)]
    turns = take_turns(warm_up(asked, task, kind, lineup.limits), len(task.queries), lineup.rounds, settings.progress)
    ready |= {row.contender.label: row for row in turns if isinstance(row, NotRun)}
    plans: list[Plan | None] = []
    for group in sharing.values():
        labels = tuple(row.label for row in group)
        failed = next((one for label in labels if isinstance(one := ready.get(label), NotRun)), None)
        if failed is not None:
            plans.append(Plan(labels, failure=failed.failure))
            continue
        if isinstance(group[0], EmbeddingRow) and any(row not in kind.models for row in group):
            _embed(embeddings.embedder(group[0]), kind.further_texts)
        planned = attempt(group[0], partial(group[0].plan, embeddings, labels))
        plans.append(Plan(labels, failure=planned.failure) if isinstance(planned, NotRun) else planned)
    embeddings.close()
    unset = [Plan((label,), failure=failure_of(Unavailable(why))) for label, why in lacking.items()]
    return [*(one for one in plans if one), *unset]


def _embed(embedder: Embedder, texts: Sequence[str]) -> None:
    """Count further texts; providers of precomputed vectors have none."""
    if texts and not embedder.provider.by_id:
        embedder.embed(texts, Role.DOCUMENT)


def _leaves(prepared: Prepared, ready: Mapping[str, Prepared | NotRun]) -> bool:
    """Whether it sends requests; local models are not called."""
    if prepared.embedder is not None:
        return not prepared.embedder.provider.local
    parts = (ready.get(label) for label in prepared.contender.made_of)
    return any(isinstance(part, Prepared) and _leaves(part, ready) for part in parts)
