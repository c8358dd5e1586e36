"""Checks a line-up without running it, and each provider by one real embedding."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Fitted, InFiles, Provider, Role, cache_key, check_batch
from bakeoff_providers.errors import BrokenPlugin, InputError, Unavailable
from bakeoff_providers.stopping import ends_run

from bakeoff.core.clock import time_call
from bakeoff.core.facts import Fact, Failure
from bakeoff.core.task import Task
from bakeoff.evaluation.measures import Measure
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.embeddings import Embeddings
from bakeoff.running.scoring import check_graded
from bakeoff.running.settings import Settings
from bakeoff.systems.base import System
from bakeoff.systems.embedding import EmbeddingRow
from bakeoff.systems.failures import failure_of
from bakeoff.tasks.kinds.base import TaskKind


@dataclass(frozen=True, slots=True)
class Checked:
    """One row: `failure` is what keeps it from running. `warnings` are about texts and prompts, and weaken it."""

    label: str
    failure: Failure | None = None
    wrong: bool = False  # the line-up has to change, not this machine
    warnings: tuple[Fact, ...] = ()


def check_task(task: Task, kind: TaskKind, notice: Callable[[Fact], None]) -> None:
    """Check targets and grades; a task without grades is allowed."""
    for target in task.targets:
        try:
            Measure.parse(target)
        except InputError as error:
            raise InputError(error.problem, place="targets", remedy=error.remedy) from None
    if kind.free_health_check and any(task.judgments.values()):
        check_graded(task, notice)


def check_rows(lineup: Lineup, task: Task) -> Iterator[Checked]:
    """Check options, dimensions, index strings, files and functions of every row, and that own servers respond."""
    embeddings, kept = Embeddings(task, 1, Settings(), lineup.folder), dict[str, EmbeddingRow]()
    try:
        for contender in lineup.contenders:
            yield _check(contender, embeddings, kept)
    finally:
        embeddings.close()


def _check(contender: System, embeddings: Embeddings, kept: dict[str, EmbeddingRow]) -> Checked:
    if contender.unset:
        return Checked(contender.label, failure_of(Unavailable(contender.unset)))
    try:
        contender.check(embeddings)
        contender.try_out(embeddings)
        if missing := contender.lacks():
            return Checked(contender.label, failure_of(Unavailable(missing)))
        warnings = list[Fact]()
        if isinstance(contender, EmbeddingRow):
            _check_apart(contender, embeddings.embedder(contender).provider, kept)
            warnings = embeddings.warnings_before(contender)
    except BaseException as error:
        if ends_run(error):
            raise
        return Checked(contender.label, failure_of(error), wrong=isinstance(error, InputError))
    return Checked(contender.label, warnings=tuple(warnings))


def _check_apart(row: EmbeddingRow, provider: Provider, kept: dict[str, EmbeddingRow]) -> None:
    """Refuse a row that would reuse cached vectors of a row with other options.

    `kept` has the first row of each cache key. An option that is None leaves the choice to the provider, which may
    choose what the other row names.
    """
    if isinstance(provider, (Fitted, InFiles)):  # what it saw is part of its key; its vectors are in no cache
        return
    keys = [cache_key(provider, role) for role in Role]
    first = row if None in keys else kept.setdefault(repr(keys), row)
    ours, theirs = _shaping_options(row), _shaping_options(first)
    for option in ours.keys() | theirs.keys():
        one, other = ours.get(option), theirs.get(option)
        if None not in (one, other) and one != other:
            raise InputError(
                f"{option} = {one!r} would get the cached vectors of {first.label}, which has {option} = {other!r}",
                place="options",
                remedy=f"provider {row.provider!r} has to name it in identity(), or declare it as Transport",
            )


def _shaping_options(row: EmbeddingRow) -> dict[str, Any]:
    """Options and defaults that change vectors."""
    declared = PROVIDERS.options(row.provider)
    options = {option.name: option.default for option in declared} | {"model": row.model or None} | row.options
    return {name: options[name] for name in options if name not in {one.name for one in declared if one.transport}}


SAMPLE = ("A short text about lakes.", "Another one about mountains.")


@dataclass(frozen=True, slots=True)
class Finding:
    """One provider's state: why it does not work, or the latency of a test embedding."""

    provider: str
    model: str
    failure: Failure | None = None
    dimensions: int | None = None
    milliseconds: float | None = None


def examine(names: Sequence[str]) -> Iterator[Finding]:
    """Yield one finding per provider. Hosted ones get a real request of a few tokens."""
    for name in names:
        try:
            adapter = PROVIDERS.get(name)
        except BrokenPlugin as error:
            yield Finding(name, "", failure_of(error))
            continue
        if reason := adapter.missing():
            yield Finding(name, adapter.default_model, failure_of(Unavailable(reason)))
        elif adapter.by_id:
            yield Finding(name, adapter.default_model)  # it reads files that a line-up names
        else:
            yield _try_out(PROVIDERS.create(name))


def _try_out(provider: Provider) -> Finding:
    try:
        provider.ready()
        if isinstance(provider, Fitted):
            provider.fit(SAMPLE)
        provider.embed(SAMPLE[:1], Role.QUERY)  # the first call loads and connects
        batch, nanoseconds = time_call(lambda: provider.embed(SAMPLE[:1], Role.QUERY))
        vectors = check_batch(batch, SAMPLE[:1], provider.card).vectors
    except Exception as error:  # a library's own errors are findings too
        return Finding(provider.name, provider.card.name, failure_of(error))
    finally:
        provider.close()
    return Finding(provider.name, provider.card.name, None, int(vectors.shape[1]), nanoseconds / 1e6)
