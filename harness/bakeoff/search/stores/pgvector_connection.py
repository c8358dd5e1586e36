"""Connections to PostgreSQL whose answers have a time limit: a server that hangs costs its row, not the night."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator
from typing import Any

from bakeoff_providers.stopping import DeadlineTimeout

from bakeoff.search.stores import servers

# A machine that is gone says nothing at all: noticed after about a minute.
GONE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}


def connected(address: str, seconds: Callable[[], float | None]) -> Any:
    """A connection that is given up where an answer takes longer than `seconds` says, if it says a number.

    PostgreSQL's own statement_timeout does not help where the server itself hangs, and psycopg waits for ever.
    """
    import psycopg

    connection: Any = psycopg.connect(address, autocommit=True, connect_timeout=servers.CONNECT, **GONE)
    waits = connection.wait

    def wait(work: Generator[Any, Any, Any], *how: Any, **named: Any) -> Any:
        if (limit := seconds()) is None:
            return waits(work, *how, **named)
        try:
            return waits(_limited(work, limit), *how, **named)
        except DeadlineTimeout as error:
            connection.close()
            raise psycopg.OperationalError(f"no answer: {error}") from None

    connection.wait = wait
    return connection


def _limited(work: Generator[Any, Any, Any], seconds: float) -> Generator[Any, Any, Any]:
    """The same work; psycopg looks in ten times a second, whether or not something came."""
    until = time.monotonic() + seconds
    try:
        wanted = next(work)
        while True:
            ready = yield wanted
            wanted = work.send(ready)
            if time.monotonic() > until:
                raise DeadlineTimeout(f"not complete after {seconds:g} s")
    except StopIteration as ended:
        return ended.value
