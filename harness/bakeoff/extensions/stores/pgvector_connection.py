"""PostgreSQL connections with a time limit per answer, and cleanup of abandoned servers."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

from bakeoff_providers.stopping import DeadlineTimeout

from bakeoff.search.stores import servers

# Detects a dead machine after about a minute.
GONE = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3}


def connect(address: str, seconds: Callable[[], float | None]) -> Any:
    """Connect. The connection fails if an answer takes longer than `seconds()`; None means no limit.

    PostgreSQL's statement_timeout does not help if the server itself hangs, and psycopg would wait forever.
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
    """The same work with a deadline; psycopg polls ten times a second."""
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
PATIENCE = 1.0  # seconds for a server to stop


def stop_servers(folder: Path) -> None:
    """Stop each PostgreSQL whose data is in the folder, by its pid file, after checking the command line."""
    files = list(folder.rglob(SERVER))
    if not files:  # the usual case; psutil is slow to import
        return
    import psutil

    servers: list[Any] = []
    for file in files:
        with contextlib.suppress(OSError, ValueError, psutil.Error):
            server = psutil.Process(int(file.read_text().split("\n", 1)[0]))
            if any(str(file.parent) in part for part in server.cmdline()):
                servers += [server, *server.children(recursive=True)]
                server.send_signal(getattr(signal, "SIGQUIT", signal.SIGTERM))  # at once, since its data is discarded
    for process in psutil.wait_procs(servers, timeout=PATIENCE)[1]:
        with contextlib.suppress(psutil.Error):
            process.kill()
