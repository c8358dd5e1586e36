"""Errors by whose fault they are: what a user wrote wrong stops the run, what an adapter does wrong costs its row."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from bakeoff_providers.errors import BakeoffError, InputError

from bakeoff.lineup.contender import Contender
from bakeoff.running.stages import NotRun

T = TypeVar("T")
LONGEST = 300  # characters of a library's message that a row shows

log = logging.getLogger(__name__)


class AdapterFailed(BakeoffError):
    """A provider, store, ranker or fusion raised what none of them should: its text is the row's reason."""


@contextmanager
def adapter_work() -> Iterator[None]:
    """Around calls into adapters. Only an InputError that names a file is the user's; all else is the adapter's."""
    try:
        yield
    except InputError as error:
        if error.file is not None:
            raise
        raise AdapterFailed(str(error)) from error
    except BakeoffError:
        raise
    except Exception as error:
        raise AdapterFailed(reason_of(error)) from error


def attempt(contender: Contender, step: Callable[[], T]) -> T | NotRun:
    """The step's value, or why this contender has none. What the user wrote wrong is raised."""
    try:
        return step()
    except InputError:
        raise
    except Exception as error:
        log.warning("%s: not run", contender.label, exc_info=error)
        return NotRun(contender, reason_of(error))


def reason_of(error: Exception) -> str:
    """One line for the matrix: our own errors speak for themselves, a library's is named by its type."""
    if isinstance(error, BakeoffError):
        return str(error)
    text = " ".join(str(error).split())
    name = type(error).__name__
    return f"{name}: {text[:LONGEST]}" if text else name
