"""`make chaos`: all attacks with one seed, a table of what came of them, and failure if anything got through."""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
import time
from pathlib import Path

from chaos.faults import faults
from chaos.fuzz import fuzz
from chaos.processes import BATCH, LIMIT, WORKERS, kills, signals


def main() -> None:
    """Prints one line for each figure: what was measured, and what it must be."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fuzz", type=int, default=10_000)
    parser.add_argument("--faults", type=int, default=760)
    parser.add_argument("--signals", type=int, default=36)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--minutes", type=float, default=60.0, help="time for the fuzzing")
    given = parser.parse_args()
    lines: list[tuple[str, float, float]] = []
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="chaos-") as name, contextlib.suppress(KeyboardInterrupt):
        seen = faults(random.Random(f"{given.seed}-faults"), given.faults)
        lines += [
            (f"wrong vectors believed, {seen.attempts} provider faults", seen.wrong_vectors, 0),
            ("requests to another host after a redirect", seen.told_others, 0),
            ("keys in error messages", seen.secrets, 0),
            ("errors that are not our own", seen.other_errors, 0),
        ]
        ended = signals(Path(name) / "signals", random.Random(f"{given.seed}-signals"), given.signals)
        lines += [
            (f"requests after a signal, {ended.attempts} signals", ended.asked_after, 0),
            (f"ends later than {LIMIT:g} s (slowest {ended.slowest:.1f} s)", ended.late, 0),
            ("wrong exit codes after a signal", ended.wrong_exit, 0),
            ("temporary folders left after a signal", ended.left, 0),
            ("tracebacks after a signal", ended.tracebacks, 0),
        ]
        killed = kills(Path(name) / "kills", random.Random(f"{given.seed}-kills"), given.kills)
        lines += [
            (f"texts paid twice by one kill -9, {killed.attempts} kills", killed.paid_twice, BATCH * WORKERS),
            ("runs after a kill that failed", killed.wrong_exit, 0),
            ("temporary folders left after the next run", killed.left, 0),
        ]
        misses = fuzz(given.fuzz, given.seed, seconds=60 * given.minutes)
        lines.append((f"tracebacks, {misses.inputs} fuzzed inputs", sum(misses.kinds.values()), 0))
    print(f"{'figure':62}  {'seen':>6}  {'at most':>7}")
    for figure, value, most in lines:
        print(f"{figure:62}  {value:6g}  {most:7g}{'' if value <= most else '  MISSED'}")
    for kind, count in misses.kinds.most_common():
        print(f"{count:5d}  {kind}\n       {misses.examples[kind]}")
    print(f"seed {given.seed}, {time.monotonic() - start:.0f} s")
    sys.exit(any(value > most for _, value, most in lines))


if __name__ == "__main__":
    main()
