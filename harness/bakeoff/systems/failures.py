"""What goes wrong with one contender costs its own row: the reason is kept, and the log has the traceback."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from bakeoff_providers.errors import BakeoffError, InputError
from bakeoff_providers.secrets import scrubbed, without_secrets
from bakeoff_providers.stopping import ends_run

from bakeoff.systems.base import NotRun, System

T = TypeVar("T")

log = logging.getLogger(__name__)


class AdapterFailed(BakeoffError):
    """A provider, store, ranker or fusion raised what none of them should: its text is the row's reason."""


@contextmanager
def adapter_work() -> Iterator[None]:
    """Around calls into adapters: whatever they raise becomes a reason in words."""
    try:
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
    """The step's value, or why this contender has none."""
    try:
        return step()
    except BaseException as error:
        if ends_run(error):
            raise
        log.warning("%s: not run", contender.label, exc_info=error)
        return NotRun(contender, reason_of(error))


def reason_of(error: BaseException) -> str:
    """One line for the matrix: our own errors speak for themselves, a library's is named by its type."""
    if isinstance(error, BakeoffError):
        remedy = f" ({error.remedy})" if isinstance(error, InputError) and error.remedy else ""
        return without_secrets(f"{error}{remedy}")
    text, name = scrubbed(str(error)), type(error).__name__
    return f"{name}: {text}" if text else name
