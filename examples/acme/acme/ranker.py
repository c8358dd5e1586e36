"""Shared words."""

from collections.abc import Sequence

from bakeoff.plugins import Hits, Ranker


class Count(Ranker):
    """Ranks by the number of words that a text shares with the query."""

    name = "acme_count"

    def __init__(self) -> None:
        self._words: dict[str, set[str]] = {}

    def add(self, ids: Sequence[str], texts: Sequence[str]) -> None:
        """Indexes the texts."""
        self._words.update((item, set(text.lower().split())) for item, text in zip(ids, texts, strict=True))

    def search(self, text: str, k: int) -> Hits:
        """Only texts that share a word; Bakeoff fills up with the rest."""
        wanted = set(text.lower().split())
        shared = {item: len(words & wanted) for item, words in self._words.items()}
        best = sorted((item for item in shared if shared[item]), key=lambda item: -shared[item])[:k]
        return Hits(best, [float(shared[item]) for item in best])
