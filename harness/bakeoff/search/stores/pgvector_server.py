"""PostgreSQL servers that run in folders nobody keeps: whoever removes the folder ends its server first."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path
from typing import Any

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
