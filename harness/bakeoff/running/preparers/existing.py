"""An index that exists: opened for reading, its dimension and its documents compared with the task."""

from __future__ import annotations

from bakeoff_providers.base import Fitted
from bakeoff_providers.errors import InputError, Unavailable

from bakeoff.core.printable import some
from bakeoff.core.task import Task
from bakeoff.lineup.contender import Contender
from bakeoff.lineup.sources import missing_of
from bakeoff.running.embeddings import Embeddings
from bakeoff.running.failures import adapter_work
from bakeoff.running.preparers.base import PreparationContext, Preparer
from bakeoff.running.stages import Build, Prepared
from bakeoff.search.existing import EXISTING
from bakeoff.search.existing.base import ExistingIndex
from bakeoff.search.existing_searcher import ExistingSearcher

NAMED = 5  # documents that a note lists before it only counts


class Existing(Preparer):
    """Embeds the queries alone, and writes nothing."""

    def check(self, contender: Contender, embeddings: Embeddings) -> None:
        """The provider can be made, and the file is there."""
        path = contender.existing_path(embeddings.folder)
        if path is not None and not path.exists():
            raise InputError("no such file or folder", file=path, remedy="check the path")
        if not missing_of(contender) or embeddings.settings.offline:
            provider = embeddings.embedder(contender).provider
            if isinstance(provider, Fitted):
                raise InputError(f"{provider.name} learns from the documents, which are not embedded here")

    def try_out(self, contender: Contender, embeddings: Embeddings) -> None:
        """Opens the index and looks at its dimension and its documents."""
        if missing_of(contender):
            return
        card = embeddings.embedder(contender).provider.card
        existing = EXISTING.create(contender.store, **contender.existing_options(embeddings.folder))
        try:
            _check_dimensions(existing, card.dimensions, card.name)
            _notes(existing, embeddings.task)
        finally:
            existing.close()

    def prepare(self, contender: Contender, context: PreparationContext) -> Prepared:
        """Opens the index and looks at what it holds."""
        if reason := missing_of(contender):
            raise Unavailable(reason)
        embeddings, task = context.embeddings, context.embeddings.task
        embedder = embeddings.embedder(contender)
        with adapter_work():
            existing = EXISTING.create(contender.store, **contender.existing_options(embeddings.folder))
            try:
                _check_dimensions(existing, embedder.provider.card.dimensions, embedder.provider.card.name)
                notes = _notes(existing, task)
                embedder.provider.ready()
            except BaseException:
                existing.close()
                raise
        searcher = ExistingSearcher(embedder, embeddings.index(contender), existing, task.metadata, embeddings.depth)
        build = Build(seconds=0.0, dimensions=existing.dimensions, notes=tuple(notes))
        return Prepared(contender, searcher, build, embedder)


def _check_dimensions(existing: ExistingIndex, dimensions: int | None, model: str) -> None:
    if dimensions is not None and dimensions != existing.dimensions:
        raise Unavailable(
            f"the index has vectors of {existing.dimensions} dimensions, {model} makes {dimensions}: "
            "was it built with this model?"
        )


def _notes(existing: ExistingIndex, task: Task) -> list[str]:
    """What the index lacks of the task, and what it has besides."""
    held = existing.documents()
    lacking = [document.id for document in task.documents if document.id not in held]
    if len(lacking) == len(task.documents):
        raise Unavailable(
            f"the index has none of the task's documents (it has {', '.join(sorted(held)[:NAMED])}, …): "
            f"is id = {existing.id!r} where a document is named?"
        )
    notes = []
    if lacking:
        notes.append(
            f"the index lacks {len(lacking)} of the task's {len(task.documents)} documents: {some(lacking, NAMED)}"
        )
    if foreign := len(held) - (len(task.documents) - len(lacking)):
        notes.append(f"the index has {foreign} documents that the task lacks; they have no place in the rankings")
    return notes
