"""How texts are put together for one request, and what a request is thought to cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from bakeoff_providers.base import ModelCard

from bakeoff.calls.key_index import KeyIndex, Keys, Places, keys_of
from bakeoff.calls.tokens import CHARACTERS_PER_TOKEN, price_of
from bakeoff.embedding.corpus_chunks import in_blocks

WORKERS = 4  # requests to a hosted provider at the same time
AT_RISK_TEXTS, AT_RISK_USD = 256, 0.01  # a kill loses no more than the larger of these


def batches(texts: Sequence[str], card: ModelCard, at_once: int = 0) -> Iterator[list[str]]:
    """As many texts per request as the provider takes, by items and by (estimated) tokens.

    Where `at_once` of them are paid for at the same time, all together stay within what a kill may lose.
    """
    if card.batch_tokens is None and not at_once:
        yield from (list(texts[start : start + card.batch_items]) for start in range(0, len(texts), card.batch_items))
        return
    batch: list[str] = []
    tokens = 0.0
    for text in texts:
        size = max(1.0, len(text) / CHARACTERS_PER_TOKEN)
        full = len(batch) >= card.batch_items or (card.batch_tokens is not None and tokens + size > card.batch_tokens)
        if at_once and len(batch) >= AT_RISK_TEXTS // at_once:
            full |= card.price is None or price_of(tokens + size, card) * at_once > AT_RISK_USD
        if batch and full:
            yield batch
            batch, tokens = [], 0.0
        batch.append(text)
        tokens += size
    if batch:
        yield batch


def corpus_batches(
    texts: Iterable[str], card: ModelCard, at_once: int, block: int, find: Callable[[Keys], Places] | None = None
) -> Iterator[list[str]]:
    """All batches of a corpus as a run asks for them: cut in each block, each text once.

    `find` says where a vector is already (−1: nowhere); without it, all are asked for.
    """
    seen = KeyIndex()
    for part in in_blocks(texts, block):
        wanted = list(dict.fromkeys(part))
        keys = keys_of(wanted)
        new = seen.find(keys) < 0
        if find is not None:
            new &= find(keys) < 0
        seen.add(keys[new], np.zeros(int(np.count_nonzero(new)), dtype=np.int64))
        yield from batches([text for text, first in zip(wanted, new, strict=True) if first], card, at_once)
