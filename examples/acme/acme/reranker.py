"""Words of the query in a document."""

from collections.abc import Sequence

from bakeoff.plugins import Reranked, Reranker


class Overlap(Reranker):
    """The share of the query's words that a document has."""

    name, default_model, model, local = "acme_overlap", "v1", "v1", True

    def rank(self, query: str, documents: Sequence[str]) -> Reranked:
        """A score for each document, in their order; `tokens` where a server counts them."""
        wanted = set(query.lower().split())
        return Reranked([len(wanted & set(document.lower().split())) / len(wanted) for document in documents])
