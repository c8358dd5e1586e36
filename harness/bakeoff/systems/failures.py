"""A contender's failure fails only its row. The row keeps the reason, the log the traceback.

If an addition to the figures fails, such as a table, only that addition is lost.
"""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import chdir, contextmanager, redirect_stdout
from typing import Literal, TypeVar

import numpy as np
from bakeoff_providers.errors import BakeoffError, InputError, Lack, Unavailable
from bakeoff_providers.secrets import scrub, without_secrets
from bakeoff_providers.stopping import ends_run

from bakeoff.core.facts import Fact, Failure, fact
from bakeoff.core.printable import printable
from bakeoff.systems.base import NotRun, System

T = TypeVar("T")

log = logging.getLogger(__name__)


class _Foreign(io.TextIOBase):
    """Redirects third-party standard output to standard error, without control characters."""

    def write(self, text: str) -> int:
        return sys.stderr.write(printable(text))


class AdapterFailed(BakeoffError):
    """An unexpected exception in an adapter; its text is the row's reason."""


@contextmanager
def adapter_work() -> Iterator[None]:
    """Wraps calls into adapters: exceptions become a row's failure, and numpy's error state is restored."""
    try:
        with np.errstate(), redirect_stdout(_Foreign()):
            yield
    except InputError as error:
        raise AdapterFailed(reason_of(error)) from error
    except BakeoffError:
        raise
    except BaseException as error:
        if ends_run(error):
            raise
        raise AdapterFailed(reason_of(error)) from error


def attempt(contender: System, step: Callable[[], T]) -> T | NotRun:
    """Runs a step; a failure returns NotRun. Restores the working folder and `np.seterr`."""
    try:
        with np.errstate(), chdir("."), redirect_stdout(_Foreign()):
            return step()
    except BaseException as error:
        if ends_run(error) and not isinstance(error, GeneratorExit):  # no generator of ours is closed from here
            raise
        log.warning("%s: not run", contender.label, exc_info=error)
        return NotRun(contender, failure_of(error))


def reason_of(error: BaseException) -> str:
    """The error's message on one line, without secrets; for AdapterFailed, its cause's."""
    error = _cause_of(error)
    match error:
        case Unavailable() if error.facts:
            return Lack(*error.facts)
        case InputError() if error.remedy:
            return without_secrets(f"{error} ({error.remedy})")
        case BakeoffError():
            return without_secrets(str(error))
        case _:
            return ": ".join(filter(None, (type(error).__name__, scrub(str(error)))))


def _cause_of(error: BaseException) -> BaseException:
    return error.__cause__ if isinstance(error, AdapterFailed) and error.__cause__ is not None else error


def failure_of(error: BaseException) -> Failure:
    """The error's parts, without secrets; for AdapterFailed, its cause's."""
    error = _cause_of(error)
    name = type(error).__name__
    match error:
        case InputError():
            return Failure(
                kind="input",
                error=name,
                text=without_secrets(error.problem),
                file=without_secrets(str(error.file or "")),
                place=without_secrets(error.place),
                remedy=without_secrets(error.remedy),
            )
        case Unavailable() if error.facts:
            lacks = [Fact(missing.id, {key: _safe(value) for key, value in missing.arguments.items()})
                     for missing in error.facts]  # fmt: skip
            return Failure(kind="unavailable", error=name, lacks=lacks)
        case Unavailable():
            return Failure(kind="unavailable", error=name, text=without_secrets(str(error)))
        case BakeoffError():
            return Failure(kind="failed", error=name, text=without_secrets(str(error)))
        case _:
            return Failure(kind="raised", error=name, text=scrub(str(error)))


def _safe(value: str | Sequence[str]) -> str | list[str]:
    return without_secrets(value) if isinstance(value, str) else list(map(without_secrets, value))


Part = Literal[
    "kind_tables", "second_stages", "tuned_weights", "task_warnings", "possible_winners", "unjudged",
    "breakdowns", "trec_commands", "baselines", "verdict", "figures", "titles", "details",
    "all_scores", "index_loss", "looks",
]  # fmt: skip


class Additions:
    """Computes additions and keeps a warning for each that fails."""

    def __init__(self) -> None:
        self.warnings: list[Fact] = []

    def attempt(self, part: Part, make: Callable[[], T], otherwise: T) -> T:
        """The result of `make`, or `otherwise` if it fails."""
        try:
            return make()
        except Exception as error:
            log.warning("%s: not made", part, exc_info=error)
            self.warnings.append(fact("not_made", part=part, reason=reason_of(error)))
            return otherwise
