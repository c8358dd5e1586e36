"""An embedding endpoint under load: throughput by batch, by requests at the same time and by length of the texts.

Every setting sends a fixed number of requests, so that the cost can be said before the first of them. Texts are drawn
anew for each request: neither our cache nor the server's answers them.
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
from bakeoff.core.figures import Percentiles
from bakeoff.core.machine import Machine, after_work
from bakeoff.core.progress import Progress, silent
from bakeoff.embedding.embed import vector_service
from bakeoff.running.environment import this_machine

_TEXT = (
    "river mountain history of the a town in north county lake built early century railway market old stone church "
    "valley people language music science station water forest winter school bridge trade island coast king war"
)
WORDS = _TEXT.split()


class Setting(msgspec.Struct, frozen=True):
    """Texts in a request, requests at the same time, words in a text."""

    batch: int
    clients: int
    words: int


class ProviderLevel(msgspec.Struct, kw_only=True, frozen=True):
    """One setting: what came back, how fast, and what was refused on the way (`too_many` counts answers of 429)."""

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
    """What a corpus would take at the fastest setting for texts of this length."""

    words: int
    documents: int
    setting: Setting
    hours: float
    tokens: float
    usd: float | None


class ProviderLoad(msgspec.Struct, kw_only=True):
    """`provider.json`."""

    provider: str
    model: str
    local: bool
    levels: list[ProviderLevel]
    knees: list[Setting]
    projections: list[CorpusProjection]
    spent_usd: float | None
    sentences: list[str]
    machine: Machine


class PlannedLoad(msgspec.Struct, frozen=True):
    """What the test would send, before it sends anything; no dollars where no price is known."""

    requests: int
    tokens: float
    usd: float | None


def draw_texts(count: int, words: int, seed: int) -> list[str]:
    """Texts of this many words, the first one a number that no other text has."""
    rng = np.random.default_rng(seed)
    picked = rng.integers(len(WORDS), size=(count, max(words - 1, 0)))
    return [" ".join([f"{seed}-{row}", *(WORDS[word] for word in line)]) for row, line in enumerate(picked)]


def settings_of(batches: Sequence[int], clients: Sequence[int], words: Sequence[int]) -> list[Setting]:
    """Every combination, the lightest first."""
    return [Setting(batch, count, length) for length, batch, count in product(*map(sorted, (words, batches, clients)))]


def estimate(provider: Provider, settings: Sequence[Setting], requests: int) -> PlannedLoad:
    """Tokens by the length of texts as they will be drawn."""
    prompt = provider.card.prompt(Role.DOCUMENT)
    tokens = sum(
        requests * estimate_tokens(draw_texts(setting.batch, setting.words, 0), prompt) for setting in settings
    )
    known = provider.local or provider.card.price is not None
    return PlannedLoad(requests * len(settings), tokens, price_of(tokens, provider.card) if known else None)


def check_provider(provider: Provider) -> None:
    """Only what embeds any text can be put under load."""
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
    """Each setting in turn, after one request that is not counted. What the server refuses for good ends a setting."""
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
        sentences=sentences(levels, knees, len(settings)),
        machine=after_work(machine),
    )


@dataclass(slots=True)
class _Sender:
    """Requests under the one retry policy, with everything counted that came back."""

    provider: Provider
    calls: Calls
    tokens: float = 0.0
    out_of_budget: bool = False

    def send(self, texts: list[str], refused: Counter[str] | None = None) -> tuple[float, int, int]:
        """One request until it is answered: its tokens, the nanoseconds of the answered attempt, and the retries."""
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
        """`clients` threads share the requests; after the first that fails for good, the rest is not sent."""
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
    """How many requests at a time: where texts per second divided by the time of a request is highest.

    For texts of this length, in the batches that were fastest; by p95 where there are requests enough for it, by p50
    where not. A setting that did not end has none.
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
    """The most texts per second, for each length."""
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


def sentences(levels: Sequence[ProviderLevel], knees: Sequence[ProviderLevel], wanted: int) -> list[str]:
    """The knees, the first setting that was refused for being too many, and what was not tried."""
    lines = [
        f"{level.setting.words} words: the knee is at {setting_words(level.setting)}, "
        f"{level.texts_per_second:.0f} texts per second"
        for level in knees
    ]
    if limited := next((level for level in levels if level.too_many), None):
        total = sum(level.too_many for level in levels)
        lines.append(
            f"{total} requests were refused as too many (429), first at {setting_words(limited.setting)} with "
            f"{limited.setting.words} words; they were sent again after the wait that the server asked for"
        )
    lines += [
        f"{setting_words(level.setting)}, {level.setting.words} words: {level.stopped}"
        for level in levels
        if level.stopped
    ]
    if len(levels) < wanted:
        lines.append(f"{wanted - len(levels)} settings were not tried: the budget was reached")
    return lines


def setting_words(setting: Setting) -> str:
    """A setting in words, without the length of its texts."""
    clients = "1 request" if setting.clients == 1 else f"{setting.clients} requests"
    return f"batches of {setting.batch}, {clients} at a time"
