"""Runs of the real command against the test server, ended by signals and kills."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from bakeoff.core.scratch import PREFIX

from tests.wire import PROXIES, Fault, WireServer

BATCH, WORKERS = 4, 4
LIMIT = 2.0  # seconds from a signal to the end


@dataclass
class Ended:
    """What all attempts together showed."""

    attempts: int = 0
    late: int = 0
    wrong_exit: int = 0
    asked_after: int = 0
    left: int = 0
    tracebacks: int = 0
    slowest: float = 0.0
    paid_twice: int = 0  # the most texts that one kill cost


def start(folder: Path, wire: WireServer) -> subprocess.Popen[str]:
    """`bakeoff run` with a hosted provider, a home and a temporary folder of its own."""
    lineup = folder / "lineup.toml"
    lineup.write_text(
        'task = "wikipedia"\nrounds = 1\n[[contender]]\nprovider = "openai"\nstore = "faiss"\n'
        f'options = {{ base_url = "{wire.base("openai")}", batch_items = {BATCH} }}\n'
    )
    (folder / "tmp").mkdir(exist_ok=True)
    variables = {name: value for name, value in os.environ.items() if name not in PROXIES}
    variables |= {"TMPDIR": str(folder / "tmp"), "BAKEOFF_HOME": str(folder / "home"), "OPENAI_API_KEY": "k" * 20}
    command = [sys.executable, "-m", "bakeoff", "run", str(lineup), "--out", str(folder / "results")]
    return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def signals(folder: Path, rng: random.Random, count: int) -> Ended:
    """SIGINT and SIGTERM while calls wait for a retry or hang: nothing is asked any more, nothing is left."""
    ended = Ended()
    for number in range(count):
        place = folder / str(number)
        place.mkdir(parents=True)
        with WireServer() as wire:
            hold = rng.choice([Fault(status=429, headers={"Retry-After": "50"}), Fault(kind="slow", seconds=50)])
            wire.faults += [None] * rng.randint(0, 3) + [hold] * 100
            process = start(place, wire)
            _wait(wire, 1, process)
            time.sleep(rng.uniform(0, 1))
            which = rng.choice([signal.SIGINT, signal.SIGTERM])
            process.send_signal(which)
            sent = time.monotonic()
            time.sleep(0.2)  # what was on its way has arrived
            asked = len(wire.embeddings())
            _, said = process.communicate(timeout=120)
            took = time.monotonic() - sent
            ended.attempts += 1
            ended.slowest = max(ended.slowest, took)
            ended.late += took > LIMIT
            ended.wrong_exit += process.returncode != 128 + which
            ended.asked_after += len(wire.embeddings()) - asked
            ended.left += len(list((place / "tmp").glob(f"{PREFIX}*")))
            ended.tracebacks += "Traceback" in said
    return ended


def kills(folder: Path, rng: random.Random, count: int) -> Ended:
    """kill -9 at any moment, then the same command again: what was paid for twice, and what is left then."""
    ended = Ended()
    for number in range(count):
        place = folder / str(number)
        place.mkdir(parents=True)
        with WireServer() as wire:
            wire.faults += [Fault(kind="slow", seconds=rng.uniform(0.02, 0.2)) for _ in range(40)]
            process = start(place, wire)
            _wait(wire, rng.randint(1, 6), process)
            time.sleep(rng.uniform(0, 0.3))
            process.kill()
            process.communicate()
            again = start(place, wire)
            _, said = again.communicate(timeout=300)
            asked = Counter(text for request in wire.embeddings() for text in request.texts)
            ended.attempts += 1
            ended.wrong_exit += again.returncode != 0
            ended.paid_twice = max(ended.paid_twice, sum(times - 1 for times in asked.values()))
            ended.left += len(list((place / "tmp").glob(f"{PREFIX}*")))
            ended.tracebacks += "Traceback" in said
    return ended


def _wait(wire: WireServer, count: int, process: subprocess.Popen[str]) -> None:
    until = time.monotonic() + 120
    while len(wire.embeddings()) < count and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
