"""Connections to PostgreSQL whose answers have a time limit, and the end of servers in folders that nobody keeps."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from bakeoff_providers.stopping import DeadlineTimeout

from bakeoff.search.stores import servers

# A machine that is gone says nothing at all: noticed after about a minute.
GONE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}


def connect(address: str, seconds: Callable[[], float | None]) -> Any:
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
            return waits(_limit(work, limit), *how, **named)
        except DeadlineTimeout as error:
            connection.close()
            raise psycopg.OperationalError(f"no answer: {error}") from None

    connection.wait = wait
    return connection


def _limit(work: Generator[Any, Any, Any], seconds: float) -> Generator[Any, Any, Any]:
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


SERVER = "postmaster.pid"  # PostgreSQL writes its process and its folder into it
PATIENCE = 1.0  # seconds that a server gets to stop by itself


def stop_servers(folder: Path) -> None:
    """Ends each PostgreSQL whose data is in the folder: its file names a process, whose command line confirms it."""
    files = list(folder.rglob(SERVER))
    if not files:  # nearly always, and psutil takes longer to import than Python to start
        return
    import psutil

    servers: list[Any] = []
    for file in files:
        with contextlib.suppress(OSError, ValueError, psutil.Error):
            server = psutil.Process(int(file.read_text().split("\n", 1)[0]))
            if any(str(file.parent) in part for part in server.cmdline()):
                servers += [server, *server.children(recursive=True)]
                server.send_signal(getattr(signal, "SIGQUIT", signal.SIGTERM))  # at once: its data is not wanted
    for process in psutil.wait_procs(servers, timeout=PATIENCE)[1]:
        with contextlib.suppress(psutil.Error):
            process.kill()
