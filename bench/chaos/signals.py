"""SIGINT and SIGTERM while calls wait for a retry or hang: nothing is asked any more, and nothing is left."""

from __future__ import annotations

import random
import signal
import time
from dataclasses import dataclass
from pathlib import Path

from bakeoff.cli.signals import PATIENCE

from chaos.processes import exit_code, left_in, start, wait_for
from chaos.row import Figure, Plan, attempts
from tests.wire import Fault, WireServer

LIMIT = 2.0  # seconds from a signal to the end
BOUGHT_LIMIT = LIMIT + PATIENCE  # from Ctrl-C, which waits for answers that are paid for


@dataclass(frozen=True)
class Ended:
    """How one run ended after its signal."""

    which: signal.Signals
    seconds: float
    right_exit: bool
    asked_after: int
    left: int
    traceback: bool


def signals(folder: Path, plan: Plan, count: int) -> list[Figure]:
    """Each run is interrupted once, at a moment that the seed chooses."""

    def attempt(number: int, rng: random.Random) -> Ended:
        place = folder / str(number)
        with WireServer() as wire:
            hold = rng.choice([Fault(status=429, headers={"Retry-After": "50"}), Fault(kind="slow", seconds=50)])
            wire.faults += [None] * rng.randint(0, 3) + [hold] * 100
            process = start(place, wire)
            wait_for(wire, 1, process)
            time.sleep(rng.uniform(0, 1))
            which = rng.choice([signal.SIGINT, signal.SIGTERM])
            process.send_signal(which)
            sent = time.monotonic()
            time.sleep(0.2)  # what was on its way has arrived
            asked = len(wire.embeddings())
            _, said = process.communicate(timeout=120)
            return Ended(
                which,
                time.monotonic() - sent,
                process.returncode == exit_code(which),
                len(wire.embeddings()) - asked,
                left_in(place),
                "Traceback" in said,
            )

    ended, missing = attempts(plan, "signals", count, attempt)
    slowest = {
        which: round(max((end.seconds for end in ended if end.which == which), default=0.0), 2)
        for which in (signal.SIGINT, signal.SIGTERM)
    }
    return [
        Figure(f"requests after {len(ended)} SIGINT and SIGTERM", sum(end.asked_after for end in ended)),
        Figure(f"  slowest end after SIGTERM, in s (limit {LIMIT:g})", slowest[signal.SIGTERM], LIMIT),
        Figure(f"  slowest end after SIGINT, in s (limit {BOUGHT_LIMIT:g})", slowest[signal.SIGINT], BOUGHT_LIMIT),
        Figure("  wrong exit codes after a signal", sum(not end.right_exit for end in ended)),
        Figure("  temporary folders left after a signal", sum(end.left for end in ended)),
        Figure("  tracebacks after a signal", sum(end.traceback for end in ended)),
        missing,
    ]
