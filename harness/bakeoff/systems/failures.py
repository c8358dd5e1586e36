"""What goes wrong with one contender costs its own row: the reason is kept, and the log has the traceback.

What a result has beyond its figures is an addition: a fault there costs the addition, never what was paid for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import chdir, contextmanager
from typing import Literal, TypeVar

import numpy as np
from bakeoff_providers.errors import BakeoffError, InputError, Unavailable
from bakeoff_providers.secrets import scrubbed, without_secrets
from bakeoff_providers.stopping import ends_run

from bakeoff.core.facts import Fact, Failure, fact
from bakeoff.systems.base import NotRun, System

T = TypeVar("T")

log = logging.getLogger(__name__)


class AdapterFailed(BakeoffError):
    """A provider, store, ranker or fusion raised what none of them should: its text is the row's reason."""


@contextmanager
def adapter_work() -> Iterator[None]:
    """Around calls into adapters: whatever they raise becomes the reason of a row, and `np.seterr` ends with them."""
    try:
        with np.errstate():
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
    """The step's value, or why this contender has none. Working folder and `np.seterr` are as before it."""
    try:
        with np.errstate(), chdir("."):
            return step()
    except BaseException as error:
        if ends_run(error) and not isinstance(error, GeneratorExit):  # no generator of ours is closed from here
            raise
        log.warning("%s: not run", contender.label, exc_info=error)
        return NotRun(contender, failure_of(error))


def reason_of(error: BaseException) -> str:
    """The error in one line."""
    return failure_of(error).line


def failure_of(error: BaseException) -> Failure:
    """The error's parts, without secrets; of a failure in an adapter, those of its cause."""
    if isinstance(error, AdapterFailed) and error.__cause__ is not None:
        error = error.__cause__
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
        case Unavailable():
            return Failure(kind="unavailable", error=name, text=without_secrets(str(error)))
        case BakeoffError():
            return Failure(kind="failed", error=name, text=without_secrets(str(error)))
        case _:
            return Failure(kind="raised", error=name, text=scrubbed(str(error)))


Part = Literal[
    "kind_tables", "second_stages", "tuned_weights", "task_warnings", "possible_winners", "unjudged",
    "breakdowns", "trec_commands", "baselines", "verdict", "figures", "titles", "details",
    "all_scores", "index_loss",
]  # fmt: skip


class Additions:
    """Makes one addition after the other and keeps a warning of each that failed."""

    def __init__(self) -> None:
        self.warnings: list[Fact] = []

    def made(self, part: Part, make: Callable[[], T], otherwise: T) -> T:
        """What `make` answers, or `otherwise` where it fails."""
        try:
            return make()
        except Exception as error:
            log.warning("%s: not made", part, exc_info=error)
            self.warnings.append(fact("not_made", part=part, reason=reason_of(error)))
            return otherwise
