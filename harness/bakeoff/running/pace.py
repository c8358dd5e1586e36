"""How fast a model that runs here embeds: a handful of texts tell, before somebody waits for all of them."""

from __future__ import annotations

import heapq
import math
import random
import time
from collections.abc import Callable, Sequence

from bakeoff_providers.base import Provider, Role

DRAWN = 32  # texts, whose lengths stand for those of all
ENOUGH = 1.0  # seconds of embedding that tell the pace


class TextSample:
    """A few texts of a stream, each as likely as any other."""

    def __init__(self, seed: int) -> None:
        self._random, self._kept = random.Random(seed), list[tuple[float, str]]()

    def add(self, texts: Sequence[str]) -> None:
        """Some of these may take the place of earlier ones."""
        tagged = ((self._random.random(), text) for text in texts)
        self._kept = heapq.nsmallest(DRAWN, [*self._kept, *tagged])

    @property
    def texts(self) -> list[str]:
        """In no order."""
        return [text for _, text in self._kept]


def seconds_per_text(
    provider: Provider, texts: Sequence[str], clock: Callable[[], float] = time.perf_counter
) -> float | None:
    """By embedding some of these, few at first, until they took long enough: a text takes what its tokens take.

    None where there is nothing to try it with. Only a model whose own tokenizer is here has its weights here: a
    function of somebody's may ask a paid service.
    """
    if not (provider.local and provider.own_tokens and texts):
        return None
    provider.embed(texts[:1], Role.DOCUMENT)  # loads the weights
    context = provider.context_tokens() or math.inf
    tokens = [min(max(1, provider.count_tokens(text)), context) for text in texts]
    done, spent, size = 0, 0.0, 1
    while done < len(texts) and spent < ENOUGH:
        start = clock()
        provider.embed(texts[done : done + size], Role.DOCUMENT)
        spent, done, size = spent + clock() - start, min(done + size, len(texts)), 2 * size
    return spent / sum(tokens[:done]) * sum(tokens) / len(texts)
