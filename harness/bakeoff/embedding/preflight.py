"""Warnings about a row before it is paid for, with remedies."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import xxhash
from bakeoff_providers.base import Provider, Role
from bakeoff_providers.cards import family_prompts
from bakeoff_providers.connection import Connection

from bakeoff.calls.budget import estimate_tokens
from bakeoff.core.facts import SOME, Fact, fact
from bakeoff.core.task import Document, Task, document_blocks

TOO_LONG = "too_long"
_ASKED = 50  # texts per group whose tokens are counted in advance
_ENDS = 8  # special tokens that a model may add
_VERSION = re.compile(r"([-@](\d{3,4}|\d{4}-?\d\d-?\d\d))?")
_ROUNDING = 0.01  # float16 models are this far from length 1; no warning


def task_warnings(task: Task) -> list[Fact]:
    """Remarks on the task's files, and duplicate documents: finding one but not the other is scored unfairly."""
    each = chain.from_iterable(map(_prints, document_blocks(task.documents)))
    prints = np.fromiter(each, dtype=np.uint64, count=len(task.documents))
    order = np.argsort(prints, kind="stable")
    suspects = order[np.flatnonzero(np.isin(prints[order], prints[order][1:][np.diff(prints[order]) == 0]))]
    first: dict[str, str] = {}
    twins: list[str] = []
    originals: list[str] = []
    for document in (task.documents[int(number)] for number in np.sort(suspects)):
        if not document.whole():
            continue  # has an id only
        original = first.setdefault(f"{document.title}\n{document.text}", document.id)
        if original != document.id:
            twins.append(document.id)
            originals.append(original)
    if not twins:
        return [*task.notes]
    return [*task.notes, fact("duplicates", count=len(twins), documents=twins[:SOME], originals=originals[:SOME])]


def _prints(documents: Sequence[Document]) -> list[int]:
    """An eight-byte hash of each document. Equal hashes are then compared in full."""
    texts = [f"{document.title}\n{document.text}".encode(errors="surrogatepass") for document in documents]
    return list(map(xxhash.xxh3_64_intdigest, texts))


def provider_warnings(provider: Provider, texts: int, long: int) -> list[Fact]:
    """Warnings from the model's card about these texts, of which `long` are too long."""
    card, warnings = provider.card, list[Fact]()
    if provider.code() is None:
        warnings.append(fact("no_revision", model=card.name))
    wanted = family_prompts(card.name)
    if wanted and not (card.document_prompt or card.query_prompt):
        warnings.append(fact("no_prompts", model=card.name, document_prompt=wanted[0], query_prompt=wanted[1]))
    if long:
        warnings.append(_too_long(provider, long, texts, estimated=True))
    return warnings


def names_in_answers(service: object) -> list[str]:
    """The models' names that a service sent with its answers so far."""
    return sorted(service.answered_as) if isinstance(service, Connection) else []


def service_warnings(service: object) -> list[Fact]:
    """Warnings about extra response data: another model's name, or an error."""
    if not isinstance(service, Connection):
        return []
    others = [name for name in sorted(service.answered_as) if not _is_same_model(service.model, name)]
    warnings = [fact("other_model", asked=service.model, answered=others)] if others else []
    return [*warnings, fact("sent_errors")] if service.sent_errors else warnings


def _is_same_model(asked: str, answered: str) -> bool:
    """Whether two names mean the same model. Servers may add a tag or date, or omit the owner."""
    asked, answered = (name.lower().rpartition("/")[2].removesuffix(":latest") for name in (asked, answered))
    return answered.startswith(asked) and _VERSION.fullmatch(answered[len(asked) :]) is not None


def truncation_warnings(provider: Provider, cut: int, texts: int, already: Sequence[Fact]) -> list[Fact]:
    """A warning about truncated texts, unless one was given before."""
    if not cut or provider.context_tokens() is None or any(warning.id == TOO_LONG for warning in already):
        return []
    return [_too_long(provider, cut, texts, estimated=False)]


def _too_long(provider: Provider, long: int, texts: int, *, estimated: bool) -> Fact:
    """Suggests a chunk size that the model reads whole. In bytes without a tokenizer: tokens never exceed bytes."""
    context = provider.context_tokens() or 0
    size, unit = context, "tokens"
    if not provider.own_tokens:
        size, unit = max(1, size - _ENDS - len(provider.card.apply_prompt("", Role.DOCUMENT).encode())), "bytes"
    return fact(
        TOO_LONG,
        model=provider.card.name,
        long=long,
        texts=texts,
        estimated=estimated,
        tokens=context,
        chunk_size=size,
        chunk_unit=unit,
    )


def too_long(provider: Provider, texts: Sequence[str]) -> int:
    """About how many texts are too long. A local tokenizer checks the first candidates.

    Borderline texts are checked too: names, code and numbers have more tokens than their length suggests.
    """
    context = provider.context_tokens()
    if context is None:
        return 0
    likely, possible = _Counted(), _Counted()
    for text in texts:
        if _likely_tokens(text) > context:
            likely.add(text, provider, context)
        elif provider.own_tokens and len(text.encode(errors="surrogatepass")) + _ENDS > context:
            possible.add(text, provider, context)
    return likely.long + possible.long


@dataclass(slots=True)
class _Counted:
    """Texts of similar length, and what the tokenizer says about the first of them."""

    texts: int = 0
    asked: int = 0
    are: int = 0

    def add(self, text: str, provider: Provider, context: int) -> None:
        self.texts += 1
        if provider.own_tokens and self.asked < _ASKED:
            self.asked, self.are = self.asked + 1, self.are + (provider.count_tokens(text) > context)

    @property
    def long(self) -> int:
        return round(self.texts * self.are / self.asked) if self.asked else self.texts


def _likely_tokens(text: str) -> float:
    """Four letters of English per token; about one character of other scripts."""
    plain = len(text.encode("ascii", "ignore"))
    return estimate_tokens([text[:plain]]) + len(text) - plain


def vector_warnings(shortest: float, longest: float) -> list[Fact]:
    """Vector lengths other than 1. They are normalised here, and must be in production too."""
    if abs(shortest - 1) <= _ROUNDING and abs(longest - 1) <= _ROUNDING:
        return []
    return [fact("vector_lengths", shortest=shortest, longest=longest)]
