"""A system that ranks by itself: asked for every query, nothing is embedded or built here."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bakeoff_providers.errors import InputError, Unavailable

from bakeoff.lineup.contender import Contender
from bakeoff.lineup.sources import missing_of
from bakeoff.running.embeddings import Embeddings
from bakeoff.running.preparers.base import PreparationContext, Preparer
from bakeoff.running.stages import Build, Prepared
from bakeoff.search.retrievers import RETRIEVERS
from bakeoff.search.retrievers.base import RetrieverSearcher


class RetrieverRow(Preparer):
    """A function or an endpoint."""

    def check(self, contender: Contender, embeddings: Embeddings) -> None:
        """The file is there."""
        for name in RETRIEVERS.get(contender.retriever["kind"]).paths:
            file = contender.retriever.get(name)
            if file and not (embeddings.folder / file).is_file():
                raise InputError("no such file", file=embeddings.folder / file, remedy="check the path")

    def try_out(self, contender: Contender, embeddings: Embeddings) -> None:
        """Imports the function; an endpoint is not asked."""
        if not missing_of(contender):
            RETRIEVERS.create(contender.retriever["kind"], **_options(contender, embeddings.folder, embeddings)).close()

    def prepare(self, contender: Contender, context: PreparationContext) -> Prepared:
        """Connects; the first query is the cold one."""
        if reason := missing_of(contender):
            raise Unavailable(reason)
        embeddings = context.embeddings
        retriever = RETRIEVERS.create(contender.retriever["kind"], **_options(contender, embeddings.folder, embeddings))
        task = embeddings.task
        items = {query.item for query in task.queries if query.item}
        texts = {document.id: document.whole(contender.field) for document in task.documents if document.id in items}
        drop = contender.retriever.get("unknown") == "drop"
        searcher = RetrieverSearcher(retriever, texts, task.metadata, embeddings.depth, drop)
        return Prepared(contender, searcher, Build(seconds=0.0))


def _options(contender: Contender, folder: Path, embeddings: Embeddings) -> dict[str, Any]:
    settings = {key: value for key, value in contender.retriever.items() if key != "kind"}
    adapter = RETRIEVERS.get(contender.retriever["kind"])
    files = {key: str(folder / Path(settings[key]).expanduser()) for key in adapter.paths if settings.get(key)}
    resolved = {**settings, **files}
    if contender.live is not None:
        resolved["target"] = contender.live
    if contender.remote:
        resolved["policy"] = embeddings.settings.policy
    return resolved
