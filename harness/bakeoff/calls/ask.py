"""The one way from prompts to usable answers: cache first, then the model, under one policy and one budget."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from bakeoff_providers import stopping
from bakeoff_providers.chat import CHATS
from bakeoff_providers.chat.base import ChatModel, Reply, Schema
from bakeoff_providers.errors import CallFailed, InputError, Unavailable

from bakeoff.calls.answers import AnswerCache
from bakeoff.calls.budget import Budget, reservation
from bakeoff.calls.retry import RateLimit, RetryPolicy, Unanswered, call
from bakeoff.calls.tokens import estimated_tokens

T = TypeVar("T")
LONGEST_ANSWER = 1_000_000  # characters; no grade and no query takes a thousandth of it
ANSWER_TOKENS = 150.0  # reserved for an answer whose length nobody knows yet


class Unusable(Exception):
    """An answer that is not what was asked for; its text says to the model what to fix."""


@dataclass(slots=True)
class ChatUsage:
    """Questions, requests, tokens and dollars, for the summary at the end."""

    asked: int = 0
    cached: int = 0
    requests: int = 0
    unusable: int = 0
    prompt_tokens: float = 0.0
    answer_tokens: float = 0.0
    usd: float | None = 0.0


@dataclass(frozen=True, slots=True)
class Question:
    """One prompt, the JSON it asks for, and which of several answers to it is wanted."""

    prompt: str
    schema: Schema
    seed: int = 0


@dataclass(slots=True)
class Asker:
    """One model behind the cache, the retry policy and the budget. An unusable answer is asked for again."""

    model: ChatModel
    answers: AnswerCache | None = None
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    budget: Budget | None = None
    offline: bool = False
    workers: int = 4
    usage: ChatUsage = field(default_factory=ChatUsage)
    _rate_limit: RateLimit = field(default_factory=RateLimit)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._rate_limit.sleep = self.policy.sleep
        if self.budget is not None and self.model.price(1, 1) is None:
            raise InputError(
                f"no price is known for {self.model.label}, so --max-cost can't be kept",
                remedy="give --set price_in=… and --set price_out=… (USD per million tokens)",
            )

    def ask(self, question: Question, read: Callable[[str], T]) -> T:
        """What `read` makes of the answer. Where it raises Unusable, the model is asked again, with the reason."""
        with self._lock:
            self.usage.asked += 1
            known = self.answers.get(question.prompt, question.seed) if self.answers else None
            if known is not None:
                self.usage.cached += 1
                return read(known.text)
            if self.answers is not None and not self.offline:
                self.answers.check_writable()
        if self.offline:
            raise Unavailable(f"--offline, and an answer of {self.model.label} is not in the cache")
        if self.answers is None:
            return self._asked(question, read)
        with self.answers.claimed(question.prompt, question.seed) as known:
            if known is None:
                return self._asked(question, read)
            with self._lock:
                self.usage.cached += 1
            return read(known.text)

    def _asked(self, question: Question, read: Callable[[str], T]) -> T:
        """The same of an answer that is paid for now."""
        problem = ""

        def attempt() -> tuple[T, Reply]:
            nonlocal problem
            reply = self._paid(question.prompt + problem, question)
            try:
                return read(reply.text), reply
            except Unusable as error:
                self.usage.unusable += 1
                problem = f"\n\nYour last answer could not be used: {error}. Answer with the JSON object alone."
                raise Unanswered(f"{self.model.label}: unusable answer: {error}") from None

        (value, reply), _ = call(attempt, self.policy, self._rate_limit)
        with self._lock:
            if self.answers is not None:
                self.answers.put(question.prompt, question.seed, reply)
        return value

    def ask_all(
        self, questions: Mapping[Any, Question], read: Callable[[str], T]
    ) -> Iterator[tuple[Any, T | CallFailed]]:
        """Answers as they arrive, by the question's key; a question that failed comes with its failure."""
        stopping.resume()
        waiting = iter(questions.items())
        running: dict[Future[T], Any] = {}
        with ThreadPoolExecutor(max_workers=self.workers) as pool:
            try:
                while True:
                    for key, question in waiting:
                        running[pool.submit(self.ask, question, read)] = key
                        if len(running) >= 2 * self.workers:
                            break
                    if not running:
                        return
                    for future in wait(running, return_when=FIRST_COMPLETED).done:
                        key = running.pop(future)
                        error = future.exception()
                        if error is not None and not isinstance(error, CallFailed):
                            raise error
                        yield key, error if error is not None else future.result()
            except KeyboardInterrupt:
                stopping.stop()
                raise
            finally:
                for future in running:
                    future.cancel()

    def estimate(self, questions: Mapping[Any, Question]) -> ChatUsage:
        """The usage to expect from these questions, by the length of their prompts: the dry run."""
        missing = [q for q in questions.values() if not (self.answers and self.answers.get(q.prompt, q.seed))]
        prompts, written = estimated_tokens([q.prompt for q in missing]), ANSWER_TOKENS * len(missing)
        return ChatUsage(
            asked=len(questions),
            cached=len(questions) - len(missing),
            requests=len(missing),
            prompt_tokens=prompts,
            answer_tokens=written,
            usd=self.model.price(prompts, written),
        )

    def close(self) -> None:
        """Ends the cache's file and the model's session."""
        if self.answers is not None:
            self.answers.close()
        self.model.close()

    def _paid(self, prompt: str, question: Question) -> Reply:
        """One request, with its price taken out of the budget before it is made."""
        guess = estimated_tokens([prompt])
        with reservation(self.budget, self.model.price(guess, ANSWER_TOKENS) or 0.0) as reserved:
            reply = self.model.ask(prompt, question.schema, question.seed)
            used_in = guess if reply.prompt_tokens is None else reply.prompt_tokens
            used_out = estimated_tokens([reply.text]) if reply.answer_tokens is None else reply.answer_tokens
            usd = self.model.price(used_in, used_out)
            reserved.actual = usd or 0.0
        with self._lock:
            self.usage.requests += 1
            self.usage.prompt_tokens += used_in
            self.usage.answer_tokens += used_out
            self.usage.usd = None if usd is None or self.usage.usd is None else self.usage.usd + usd
        return reply


def without_thoughts(text: str) -> str:
    """The answer without what a model thought aloud; looked through once, however often a thought is begun."""
    parts, begin = [], 0
    while (start := text.find("<think>", begin)) >= 0 and (end := text.find("</think>", start)) >= 0:
        parts.append(text[begin:start])
        begin = end + len("</think>")
    return "".join([*parts, text[begin:]])


def read_object(text: str, shape: type[T]) -> T:
    """The JSON object in an answer, also from within a fence or a sentence; anything else is Unusable."""
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
    """A model by `provider:model`, as `ollama:llama3.1:8b`; the model may be left out."""
    name, _, model = spec.partition(":")
    chat = CHATS.create(name, **({"model": model} if model else {}), **options)
    return Asker(chat, AnswerCache(answers, chat.identity()) if answers else None, budget=budget, offline=offline)
