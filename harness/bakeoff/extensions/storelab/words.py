"""The words of this extension's facts (`bakeoff.report.words`)."""

from __future__ import annotations

from collections.abc import Sequence

from bakeoff.core.facts import Fact
from bakeoff.core.printable import pluralise
from bakeoff.report.words import Words, words


def text_of(fact: Fact | str) -> str:
    """A fact as text; files of format 1 hold the text itself."""
    return fact if isinstance(fact, str) else words(fact)


def _setting(
    label: str, setting: str, reached: bool, target: float, k: int, recall: float, p50_ms: float | None
) -> str:
    if not reached:
        return f"{label}: never reaches {target:g} (at most {recall:.4f}, with {setting})"
    p50 = "unknown" if p50_ms is None else f"{p50_ms:.3f} ms"
    return f"{label}: {setting} is enough for {target:g} (recall@{k} {recall:.4f}, p50 {p50})"


def _best(label: str, setting: str, target: float, k: int) -> str:
    return f"with recall@{k} ≥ {target:g}: {label}{f' with {setting}' if setting else ''}"


def _fastest(label: str, setting: str, target: float, k: int, p50_ms: float) -> str:
    return f"Fastest {_best(label, setting, target, k)}, {p50_ms:.3f} ms."


def _smallest(label: str, setting: str, target: float, k: int, bytes: int) -> str:
    return f"Smallest {_best(label, setting, target, k)}, {bytes / 1e6:.1f} MB."


def _knee(clients: int, per_second: float, p95_ms: float, most_per_second: float, most_clients: int, last: bool) -> str:
    more = " It is the largest load tried; the knee may be at more --clients." if last else ""
    return (
        f"The knee is at {pluralise(clients, 'client')}: {per_second:.0f} per second, p95 {p95_ms:.2f} ms; the maximum "
        f"was {most_per_second:.0f} per second, with {pluralise(most_clients, 'client')}.{more}"
    )


def _load(clients: int, rate: float | None) -> str:
    return pluralise(clients, "client") if rate is None else f"{rate:g} per second"


def _client_limit(clients: int, rate: float | None, per_second: float) -> str:
    return (
        f"{_load(clients, rate)}: the client was the bottleneck ({per_second:.0f} per second with a null store), so "
        "this says little about the store."
    )


def _late(clients: int, rate: float | None, late: int, dropped: int, dropped_after_s: float) -> str:
    return (
        f"{_load(clients, rate)}: {late} requests started late and {dropped} were dropped after {dropped_after_s:g} s; "
        "latency counts from when they were due."
    )


def _errors(clients: int, rate: float | None, kinds: Sequence[str], counts: Sequence[int]) -> str:
    counted = ", ".join(f"{count} × {kind}" for kind, count in zip(kinds, counts, strict=True))
    return f"{_load(clients, rate)}: errors: {counted}."


def setting_words(batch: int, clients: int) -> str:
    """A provider's setting, without the text length."""
    return f"batches of {batch}, {pluralise(clients, 'request')} at a time"


def _provider_knee(batch: int, clients: int, words: int, texts_per_second: float) -> str:
    return f"{words} words: the knee is at {setting_words(batch, clients)}, {texts_per_second:.0f} texts per second"


def _rate_limited(requests: int, batch: int, clients: int, words: int) -> str:
    return (
        f"{pluralise(requests, 'request')} got status 429 (too many requests), first at "
        f"{setting_words(batch, clients)} with {words} words, and were retried after the server's wait"
    )


def _setting_stopped(batch: int, clients: int, words: int, reason: str) -> str:
    return f"{setting_words(batch, clients)}, {words} words: {reason}"


def _settings_not_tried(settings: int) -> str:
    return f"{pluralise(settings, 'setting')} not tried: the budget was reached"


def _eviction(files: int, resident_share: float | None) -> str:
    left = "unknown how much stayed in memory" if resident_share is None else f"{resident_share:.0%} stayed in memory"
    return f"posix_fadvise on {pluralise(files, 'file')}: {left}"


WORDS: Words = {
    # of every command
    "few_documents": "{documents} documents are too few to tell stores apart: use --synthetic or --vectors",
    # sweep
    "setting": _setting,
    "fastest": _fastest,
    "smallest": _smallest,
    # loadtest
    "knee": _knee,
    "client_limit": _client_limit,
    "late": _late,
    "errors": _errors,
    "filter_left_out": "{share:g} % of {documents} documents is less than one; this filter was left out",
    "evicted": _eviction,
    "files_of_a_server": "not possible: the files belong to a server",
    "no_eviction": "not possible on this system",
    # loadtest --provider
    "provider_knee": _provider_knee,
    "rate_limited": _rate_limited,
    "setting_stopped": _setting_stopped,
    "settings_not_tried": _settings_not_tried,
}
