"""From prompts to usable answers: cache first, then the model, under one retry policy and one budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from bakeoff_providers import stopping
from bakeoff_providers.base import cache_key
from bakeoff_providers.chat import CHATS
from bakeoff_providers.chat.base import ChatModel, Reply, Schema
from bakeoff_providers.errors import CallFailed, InputError

from bakeoff.calls.budget import Budget, estimate_tokens
from bakeoff.calls.paid import Account, Calls, Request, Sent, Service, Usage, as_they_come
from bakeoff.calls.retry import RetryPolicy, Unanswered
from bakeoff.extensions.testsets.answers import AnswerCache, question_keys

T = TypeVar("T")
LONGEST_ANSWER = 1_000_000  # characters; grades and queries need less than a thousandth
ANSWER_TOKENS = 150.0  # reserved for an answer of unknown length


class Unusable(Exception):
    """An unusable answer. The message tells the model what to fix."""


@dataclass(frozen=True, slots=True)
class Question:
    """A prompt, the JSON it asks for, and a seed that tells repeated answers apart."""

    prompt: str
    schema: Schema
    seed: int = 0

    @property
    def request(self) -> Request:
        """The prompt, and the answer's key."""
        return Request([self.prompt], question_keys(self.prompt, self.seed))


@dataclass(slots=True)
class Asker:
    """One model behind the cache, the retry policy and the budget. Unusable answers are requested again."""

    model: ChatModel
    answers: AnswerCache | None = None
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    budget: Budget | None = None
    offline: bool = False
    workers: int = 4
    _calls: Calls = field(init=False)
    _account: Account = field(default_factory=Account, init=False)

    def __post_init__(self) -> None:
        self._calls = Calls(self.policy, self.budget, self.offline)
        if self.budget is not None and self.model.price(1, 1) is None:
            raise InputError(
                f"no price is known for {self.model.label}, so --max-cost can't be enforced",
                remedy="give --set price_in=… and --set price_out=… (USD per million tokens)",
            )

    @property
    def usage(self) -> Usage:
        """Questions, requests, tokens and dollars so far."""
        return self._account.usage

    def ask(self, question: Question, read: Callable[[str], T]) -> T:
        """What `read` returns for the answer. If it raises Unusable, the model is asked again, with the reason."""
        self._account.add(Usage(asked=1))
        request, got = question.request, None
        if self.answers is None or self.answers.find(request.keys)[0] < 0:
            for _, came in self._calls.obtain(self._service(question, read), self.answers, [request], self._account):
                got = came or got
        if got is not None:
            return read(got.values[0].text)
        assert self.answers is not None
        self._account.add(Usage(cached=1))
        return read(self.answers.take(self.answers.find(request.keys))[0].text)

    def ask_all(
        self, questions: Mapping[Any, Question], read: Callable[[str], T]
    ) -> Iterator[tuple[Any, T | CallFailed]]:
        """Answers as they arrive, by the question's key. A failed question yields its failure."""

        def ask(item: tuple[Any, Question]) -> tuple[Any, T | CallFailed]:
            try:
                return item[0], self.ask(item[1], read)
            except CallFailed as error:
                return item[0], error

        stopping.resume()
        yield from as_they_come(ask, questions.items(), self.workers)

    def estimate(self, questions: Mapping[Any, Question]) -> Usage:
        """The expected usage of these questions by the length of their prompts, for the dry run."""
        each = (self._calls.count(self._service(one, str), self.answers, one.request) for one in questions.values())
        return sum(each, Usage())

    def close(self) -> None:
        """Closes the cache's file and the model's session."""
        if self.answers is not None:
            self.answers.close()
        self.model.close()

    def _service(self, question: Question, read: Callable[[str], object]) -> Service[list[Reply]]:
        """After an unusable answer, the prompt says what to fix. The key stays the same."""
        model, problem = self.model, ""

        def send(texts: list[str]) -> Sent:
            reply = model.ask(texts[0] + problem, question.schema, question.seed)
            written = estimate_tokens([reply.text]) if reply.answer_tokens is None else reply.answer_tokens
            return Sent(reply, reply.prompt_tokens, written)

        def check(reply: Reply, _texts: list[str]) -> list[Reply]:
            nonlocal problem
            try:
                read(reply.text)
            except Unusable as error:
                problem = f"\n\nYour last answer could not be used: {error}. Answer with the JSON object alone."
                raise Unanswered(f"{model.label}: unusable answer: {error}") from None
            return [reply]

        return Service(
            name=model.label,
            local=False,
            lacks=lambda _: f"an answer of {model.label} is",
            estimate=lambda texts: (estimate_tokens([texts[0] + problem]), ANSWER_TOKENS),
            price=lambda tokens: model.price(*tokens),
            send=send,
            read=check,
        )


def without_thoughts(text: str) -> str:
    """The answer without `<think>` blocks, in one pass."""
    parts, begin = [], 0
    while (start := text.find("<think>", begin)) >= 0 and (end := text.find("</think>", start)) >= 0:
        parts.append(text[begin:start])
        begin = end + len("</think>")
    return "".join([*parts, text[begin:]])


def read_object(text: str, shape: type[T]) -> T:
    """The JSON object in an answer, even inside a fence or a sentence. Anything else is Unusable."""
    if len(text) > LONGEST_ANSWER:
        raise Unusable(f"it has {len(text):,} characters")
    stripped = without_thoughts(text)
    start, end = stripped.find("{"), stripped.rfind("}")
    if start < 0 or end < start:
        raise Unusable("there is no JSON object in it")
    try:
        return msgspec.json.decode(stripped[start : end + 1], type=shape)
    except msgspec.ValidationError as error:
        raise Unusable(f"its JSON has another shape ({error})") from None
    except (msgspec.DecodeError, UnicodeEncodeError):
        raise Unusable("its JSON is broken") from None


def make_asker(
    spec: str,
    options: Mapping[str, Any],
    *,
    answers: Path | None = None,
    budget: Budget | None = None,
    offline: bool = False,
) -> Asker:
    """A model from `provider:model`, such as `ollama:llama3.1:8b`. The model may be omitted."""
    name, _, model = spec.partition(":")
    chat = CHATS.create(name, **({"model": model} if model else {}), **options)
    key = cache_key(chat) if answers else None
    cache = AnswerCache(answers, key) if answers and key is not None else None
    return Asker(chat, cache, budget=budget, offline=offline)
