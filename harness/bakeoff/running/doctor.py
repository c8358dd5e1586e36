"""Is each provider ready? Library, key, server, model, and one real embedding with its time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Fitted, Provider, Role, checked

from bakeoff.core.clock import timed
from bakeoff.systems.failures import reason_of

SAMPLE = ("A short text about lakes.", "Another one about mountains.")


@dataclass(frozen=True, slots=True)
class Finding:
    """One provider's state: `trouble` with its remedy, or the latency of the test embedding."""

    provider: str
    model: str
    trouble: str = ""
    dimensions: int | None = None
    milliseconds: float | None = None


def examine(names: Sequence[str]) -> Iterator[Finding]:
    """One finding per provider, as they come: a hosted one is really asked, for a handful of tokens."""
    for name in names:
        adapter = PROVIDERS.get(name)
        if reason := adapter.missing():
            yield Finding(name, adapter.default_model, reason)
        elif adapter.by_id:
            yield Finding(name, adapter.default_model, "ready; reads vectors from files that a line-up names")
        else:
            yield _tried(PROVIDERS.create(name))


def _tried(provider: Provider) -> Finding:
    try:
        provider.ready()
        if isinstance(provider, Fitted):
            provider.fit(SAMPLE)
        provider.embed(SAMPLE[:1], Role.QUERY)  # the first call loads and connects
        batch, nanoseconds = timed(lambda: provider.embed(SAMPLE[:1], Role.QUERY))
        vectors = checked(batch, SAMPLE[:1], provider.card).vectors
    except Exception as error:  # a library's own errors are findings too
        return Finding(provider.name, provider.card.name, reason_of(error))
    finally:
        provider.close()
    return Finding(provider.name, provider.card.name, "", int(vectors.shape[1]), nanoseconds / 1e6)
