"""Run work in a new process, with its own memory and cold caches. A crash fails only that line."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, ParamSpec, TypeVar

from bakeoff_providers.errors import BakeoffError, Unavailable

P = ParamSpec("P")
T = TypeVar("T")


def in_own_process(work: Callable[P, T], *arguments: P.args, **named: P.kwargs) -> T:
    """Run `work`, a module-level function, in a new process. Any failure there is Unavailable."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        try:
            problem: str
            answer: T | None
            problem, answer = pool.submit(_catch, work, *arguments, **named).result()
        except BrokenProcessPool:
            raise Unavailable("its process ended without an answer") from None
    if answer is None:
        raise Unavailable(problem)
    return answer


def _catch(work: Callable[..., Any], *arguments: Any, **named: Any) -> tuple[str, Any]:
    """Runs in the other process. Errors return as text, since not every exception can be pickled."""
    try:
        return "", work(*arguments, **named)
    except BakeoffError as error:
        return str(error), None
    except Exception as error:
        return f"{type(error).__name__}: {error}", None
