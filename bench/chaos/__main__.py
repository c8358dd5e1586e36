"""`make chaos`: all attacks with one seed, a table of what came of them, and failure if anything got through."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

from chaos.row import Figure, Plan

Row = Callable[[Path, Plan, int], list[Figure]]
ROWS = {  # the row: where it is, and how many attempts it makes
    "signals": ("chaos.signals:signals", 36),
    "kills": ("chaos.kills:kills", 100),
    "drafts": ("chaos.drafts:drafts", 32),
    "interruptions": ("chaos.interruptions:interruptions", 90),
    "lies": ("chaos.lies:lies", 44),
    "pairs": ("chaos.pairs:pairs", 10),
    "hang": ("chaos.hang:hangs", 41),
    "leftovers": ("chaos.leftovers:leftovers", 2),
    "corruptions": ("chaos.corruptions:corruptions", 3000),
    "faults": ("chaos.faults:faults", 1520),
    "redirects": ("chaos.redirects:redirects", 55),
    "secrets": ("chaos.secrets:secrets", 100),
    "disk": ("chaos.disk:disk", 84),
    "growth": ("chaos.growth:growth", 1),
    "fuzz": ("chaos.fuzz:fuzzed", 10_000),
}


def main() -> None:
    """One line for each figure as it comes: what was seen, and the most that it may be; then all in Markdown."""
    parser = argparse.ArgumentParser(prog="python -m chaos", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=45.0, help="what is not tried by then counts as missed")
    parser.add_argument("--jobs", type=int, default=2, help="attempts at the same time")
    parser.add_argument("--only", action="append", choices=list(ROWS), help="only this row; may be repeated")
    for name, (_, count) in ROWS.items():
        parser.add_argument(f"--{name}", type=int, default=count, metavar="N", help=f"attempts (default {count:,})")
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    begin = time.monotonic()
    plan = Plan(given.seed, begin + 60 * given.minutes, given.jobs)
    figures: list[Figure] = []
    table = ["| figure | must be at most | seen | row, s |", "|---|---|---|---|"]
    print(f"{'figure':72}  {'seen':>6}  {'at most':>7}")
    with tempfile.TemporaryDirectory(prefix="chaos-", ignore_cleanup_errors=True) as place:
        Path(place).chmod(0o755)  # PostgreSQL runs as another user
        for name, (where, _) in ROWS.items():
            if given.only and name not in given.only:
                continue
            module, _, function = where.partition(":")
            row: Row = getattr(import_module(module), function)
            started = time.monotonic()
            lines = [line for line in row(Path(place) / name, plan, getattr(given, name)) if not _is_empty(line)]
            for line in lines:
                print(f"{line.what:72}  {line.seen:6g}  {line.at_most:7g}{'  MISSED' if line.missed else ''}")
                if line.missed and line.detail:
                    print(line.detail)
            seconds = time.monotonic() - started
            print(f"  ({name}: {seconds:.0f} s)", flush=True)
            table += [
                f"| {line.what.strip()} | {line.at_most:g} | {line.seen:g} | `{name}`, {seconds:.0f} |"
                for line in lines
            ]
            figures += lines
    missed = sum(line.missed for line in figures)
    print(*table, sep="\n")
    print(f"seed {given.seed}, {time.monotonic() - begin:.0f} s: {missed or 'nothing'} missed")
    sys.exit(bool(missed))


def _is_empty(line: Figure) -> bool:
    """That no attempt was left out need not be said."""
    return line.what.endswith("the time was up") and not line.seen


if __name__ == "__main__":
    main()
