"""Load test of an embedding endpoint: throughput by batch size, concurrency and text length.

Every setting sends a fixed number of requests, so the cost is known in advance. Each request has new texts, so no
cache can answer it.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import product

import msgspec
import numpy as np
from bakeoff_providers import stopping
from bakeoff_providers.base import Fitted, Provider, Role
from bakeoff_providers.errors import BakeoffError, CallFailed, InputError

from bakeoff.calls.budget import Budget, BudgetReached, estimate_tokens, price_of
from bakeoff.calls.paid import Account, Calls, Sent
from bakeoff.calls.retry import RetryPolicy
from bakeoff.core import clock
from bakeoff.core.clock import percentiles
from bakeoff.core.facts import Fact, fact
from bakeoff.core.figures import Percentiles
from bakeoff.core.machine import Machine, after_work
from bakeoff.core.progress import Progress, silent
from bakeoff.embedding.embed import vector_service
from bakeoff.extensions.storelab.vector_sample import FORMAT
from bakeoff.running.settings import this_machine

_TEXT = (
    "river mountain history of the a town in north county lake built early century railway market old stone church "
    "valley people language music science station water forest winter school bridge trade island coast king war"
)
WORDS = _TEXT.split()


class Setting(msgspec.Struct, frozen=True):
    """Texts per request, concurrent requests, words per text."""

    batch: int
    clients: int
    words: int


class ProviderLevel(msgspec.Struct, kw_only=True, frozen=True):
    """The results of one setting. `too_many` counts responses with status 429."""

    setting: Setting
    requests: int
    texts: int
    tokens: float
    seconds: float
    texts_per_second: float
    tokens_per_second: float
    latency: Percentiles
    too_many: int = 0
    retries: int = 0
    errors: dict[str, int] = {}
    stopped: str | None = None


class CorpusProjection(msgspec.Struct, kw_only=True, frozen=True):
    """Time and cost of a corpus at the fastest setting for this text length."""

    words: int
    documents: int
    setting: Setting
    hours: float
    tokens: float
    usd: float | None


class ProviderLoad(msgspec.Struct, kw_only=True):
    """`provider.json`. Format 1 had sentences."""

    provider: str
    model: str
    local: bool
    levels: list[ProviderLevel]
    knees: list[Setting]
    projections: list[CorpusProjection]
    spent_usd: float | None
    machine: Machine
    format: int = 1
    facts: list[Fact] = []


class PlannedLoad(msgspec.Struct, frozen=True):
    """What the test would send. `usd` is None if no price is known."""

    requests: int
    tokens: float
    usd: float | None


def draw_texts(count: int, words: int, seed: int) -> list[str]:
    """Draw texts of this many words. The first word is a unique number."""
    rng = np.random.default_rng(seed)
    picked = rng.integers(len(WORDS), size=(count, max(words - 1, 0)))
    return [" ".join([f"{seed}-{row}", *(WORDS[word] for word in line)]) for row, line in enumerate(picked)]


def settings_of(batches: Sequence[int], clients: Sequence[int], words: Sequence[int]) -> list[Setting]:
    """Every combination, lightest first."""
    return [Setting(batch, count, length) for length, batch, count in product(*map(sorted, (words, batches, clients)))]


def estimate(provider: Provider, settings: Sequence[Setting], requests: int) -> PlannedLoad:
    """Estimate requests, tokens and cost."""
    prompt = provider.card.prompt(Role.DOCUMENT)
    tokens = sum(
        requests * estimate_tokens(draw_texts(setting.batch, setting.words, 0), prompt) for setting in settings
    )
    known = provider.local or provider.card.price is not None
    return PlannedLoad(requests * len(settings), tokens, price_of(tokens, provider.card) if known else None)


def check_provider(provider: Provider) -> None:
    """Refuse providers that can't embed arbitrary text."""
    if provider.by_id or isinstance(provider, Fitted):
        reason = "reads vectors from files" if provider.by_id else "learns from a corpus"
        raise InputError(f"{provider.name} {reason}: there is nothing to put under load", place="--provider")


def load_provider(
    provider: Provider,
    settings: Sequence[Setting],
    *,
    requests: int = 20,
    documents: int = 1_000_000,
    budget: Budget | None = None,
    policy: RetryPolicy | None = None,
    progress: Progress = silent,
) -> ProviderLoad:
    """Run each setting in turn, after one warm-up request. A permanent error ends a setting."""
    check_provider(provider)
    machine = this_machine()
    stopping.resume()
    sender = _Sender(provider, Calls(policy or RetryPolicy(), budget))
    provider.ready()
    sender.send(draw_texts(1, 5, 1))
    levels: list[ProviderLevel] = []
    with progress(f"load test of {provider.card.name}", len(settings)) as advance:
        for number, setting in enumerate(settings):
            levels.append(sender.level(setting, requests, first_seed=1000 * (number + 1)))
            advance(1)
            if sender.out_of_budget:
                break
    knees = [best for words in sorted({s.words for s in settings}) if (best := knee(levels, words)) is not None]
    return ProviderLoad(
        provider=provider.name,
        model=provider.card.name,
        local=provider.local,
        levels=levels,
        knees=[level.setting for level in knees],
        projections=[_projection(level, provider, documents) for level in _fastest(levels)],
        spent_usd=price_of(sender.tokens, provider.card) if provider.local or provider.card.price else None,
        machine=after_work(machine),
        format=FORMAT,
        facts=provider_facts(levels, knees, len(settings)),
    )


@dataclass(slots=True)
class _Sender:
    """Sends requests under one retry policy and counts tokens."""

    provider: Provider
    calls: Calls
    tokens: float = 0.0
    out_of_budget: bool = False

    def send(self, texts: list[str], refused: Counter[str] | None = None) -> tuple[float, int, int]:
        """Send one request until it is answered: tokens, nanoseconds of the last attempt, retries."""
        service, account = vector_service(self.provider, Role.DOCUMENT), Account()

        def send(texts: list[str]) -> Sent:
            try:
                return service.send(texts)
            except CallFailed as error:
                if refused is not None:
                    refused[str(error.status or "no answer")] += 1
                raise

        got = self.calls.send(replace(service, send=send), texts, account)
        self.tokens += account.usage.tokens
        return account.usage.tokens, got.nanoseconds, account.usage.retries

    def level(self, setting: Setting, requests: int, first_seed: int) -> ProviderLevel:
        """`clients` threads share the requests. After a permanent failure the rest is not sent."""
        refused: Counter[str] = Counter()
        problems: list[str] = []
        numbers = itertools.count()
        answers: list[tuple[float, int, int]] = []

        def client(_: int) -> None:
            while not problems and (number := next(numbers)) < requests:
                try:
                    answers.append(self.send(draw_texts(setting.batch, setting.words, first_seed + number), refused))
                except BakeoffError as error:
                    self.out_of_budget |= isinstance(error, BudgetReached)
                    problems.append(str(error))

        def all_clients() -> None:
            with ThreadPoolExecutor(setting.clients) as pool:
                list(pool.map(client, range(setting.clients)))

        seconds = clock.time_call(all_clients)[1] / 1e9
        tokens, texts = sum(answer[0] for answer in answers), setting.batch * len(answers)
        return ProviderLevel(
            setting=setting,
            requests=len(answers),
            texts=texts,
            tokens=tokens,
            seconds=seconds,
            texts_per_second=texts / seconds,
            tokens_per_second=tokens / seconds,
            latency=percentiles([answer[1] for answer in answers]),
            too_many=refused["429"],
            retries=sum(answer[2] for answer in answers),
            errors={kind: count for kind, count in sorted(refused.items()) if kind != "429"},
            stopped=problems[0] if problems else None,
        )


def knee(levels: Sequence[ProviderLevel], words: int) -> ProviderLevel | None:
    """The concurrency with the highest ratio of texts per second to request time.

    For this text length, at the fastest batch size. By p95 if there are enough requests, else by p50. Settings that
    were stopped do not count.
    """
    whole = [level for level in levels if level.setting.words == words and not level.stopped and level.latency.p50]
    if not whole:
        return None
    batch = max(whole, key=lambda level: level.texts_per_second).setting.batch
    curve = [level for level in whole if level.setting.batch == batch]
    by_p95 = all(level.latency.p95 for level in curve)
    return max(
        curve, key=lambda level: level.texts_per_second / ((level.latency.p95 if by_p95 else level.latency.p50) or 1.0)
    )


def _fastest(levels: Sequence[ProviderLevel]) -> list[ProviderLevel]:
    """The setting with the most texts per second, for each text length."""
    whole = [level for level in levels if not level.stopped and level.texts]
    lengths = sorted({level.setting.words for level in whole})
    return [
        max((level for level in whole if level.setting.words == words), key=lambda level: level.texts_per_second)
        for words in lengths
    ]


def _projection(level: ProviderLevel, provider: Provider, documents: int) -> CorpusProjection:
    tokens = level.tokens / level.texts * documents
    known = provider.local or provider.card.price is not None
    return CorpusProjection(
        words=level.setting.words,
        documents=documents,
        setting=level.setting,
        hours=documents / level.texts_per_second / 3600,
        tokens=tokens,
        usd=price_of(tokens, provider.card) if known else None,
    )


def provider_facts(levels: Sequence[ProviderLevel], knees: Sequence[ProviderLevel], wanted: int) -> list[Fact]:
    """The knees, the first rate-limited setting, failed settings, and those not tried."""
    facts = [
        fact("storelab.provider_knee", **msgspec.structs.asdict(level.setting), texts_per_second=level.texts_per_second)
        for level in knees
    ]
    if limited := next((level for level in levels if level.too_many), None):
        total = sum(level.too_many for level in levels)
        facts.append(fact("storelab.rate_limited", requests=total, **msgspec.structs.asdict(limited.setting)))
    facts += [
        fact("storelab.setting_stopped", **msgspec.structs.asdict(level.setting), reason=level.stopped)
        for level in levels
        if level.stopped
    ]
    if len(levels) < wanted:
        facts.append(fact("storelab.settings_not_tried", settings=wanted - len(levels)))
    return facts
