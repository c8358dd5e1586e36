"""Real PostgreSQL and Chroma under a run that is ended: nothing is left after SIGTERM, nor by the run after a kill."""

from __future__ import annotations

import random
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from chaos.processes import bakeoff, left_in
from chaos.row import Figure, Plan, attempts

LINEUP = """task = "wikipedia"
rounds = 5000
[[contender]]
provider = "fake"
store = ["pgvector", "chroma"]
"""
SHORT = LINEUP.replace("5000", "1").replace('"pgvector", ', "")
READY = 60.0  # seconds until the server must run


@dataclass(frozen=True)
class Left:
    """Processes and folders that outlived their run, and those that the next run left."""

    started: bool
    processes: int
    folders: int
    traceback: bool


def leftovers(folder: Path, plan: Plan, count: int) -> list[Figure]:
    """Half of the attempts end by SIGTERM, half by SIGKILL with a short run after it."""

    def attempt(number: int, rng: random.Random) -> tuple[signal.Signals, Left]:
        which = (signal.SIGTERM, signal.SIGKILL)[number % 2]
        return which, _ended(folder / str(number), which, rng)

    seen, missing = attempts(plan, "leftovers", count, attempt)
    figures = [
        Figure("runs whose PostgreSQL never started", sum(not left.started for _, left in seen)),
        Figure("tracebacks when a run with servers is ended", sum(left.traceback for _, left in seen)),
    ]
    for which, when in ((signal.SIGTERM, "after SIGTERM"), (signal.SIGKILL, "by the run after a SIGKILL")):
        these = [left for name, left in seen if name == which]
        figures += [
            Figure(f"server processes left {when}, {len(these)} runs", sum(left.processes for left in these)),
            Figure(f"  temporary folders left {when}", sum(left.folders for left in these)),
        ]
    return [*figures, missing]


def _ended(place: Path, which: signal.Signals, rng: random.Random) -> Left:
    place.mkdir(parents=True)
    for parent in (place, place.parent):
        parent.chmod(0o755)  # PostgreSQL runs as another user
    (place / "long.toml").write_text(LINEUP)
    (place / "short.toml").write_text(SHORT)
    out = ["--no-charts", "--out", str(place / "results")]
    process = bakeoff(place, "run", str(place / "long.toml"), *out)
    until = time.monotonic() + READY
    while not _servers(place) and process.poll() is None and time.monotonic() < until:
        time.sleep(0.05)
    started = bool(_servers(place))
    time.sleep(rng.uniform(0.5, 3))
    process.send_signal(which)
    _, said = process.communicate(timeout=60)
    if which == signal.SIGKILL:
        _, later = bakeoff(place, "run", str(place / "short.toml"), *out).communicate(timeout=300)
        said += later
    deadline = time.monotonic() + 2  # what was told to stop is given the time to do so
    while _servers(place) and time.monotonic() < deadline:
        time.sleep(0.05)
    return Left(started, len(_servers(place)), left_in(place), "Traceback" in said)


def _servers(place: Path) -> list[psutil.Process]:
    """Processes of any user whose command line names this place, but for the command itself."""
    servers = []
    for process in psutil.process_iter(["cmdline", "name"]):
        line = " ".join(process.info["cmdline"] or ())
        if f"{place}/tmp" in line and "bakeoff run" not in line:
            servers.append(process)
    return servers
