"""Fuzzed inputs for all parsers, options and result files: whatever comes in, no traceback comes out.

python -m chaos.fuzz --count 10000 --seed 1
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from chaos.mutations import mutated
from chaos.row import Figure, Plan, not_made
from chaos.target import Target
from chaos.targets import make_targets

PATIENCE = 20  # seconds of CPU time for one input, so that a busy machine makes no difference
LONGEST = 300  # seconds by the clock, for one that waits


class Hang(BaseException):
    """One input took too long."""


@dataclass
class Misses:
    """What got through, by where it was raised; one input is kept for each."""

    inputs: int = 0
    by_target: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    def add(self, target: str, kind: str, example: str) -> None:
        """Counts one."""
        self.kinds[kind] += 1
        self.by_target[target] += 1
        self.examples.setdefault(kind, example)


def fuzz(numbers: range, seed: int, until: float = float("inf"), only: str = "", keep: Path | None = None) -> Misses:
    """Tries these inputs, spread over the targets; the same seed tries the same."""
    misses = Misses()
    with tempfile.TemporaryDirectory(prefix="chaos-fuzz-") as name, _settled(Path(name)):
        targets = [target for target in make_targets(Path(name)) if only in target.name]
        for number in numbers:
            if time.monotonic() > until:
                break
            misses.inputs += 1
            target = targets[number % len(targets)]
            _one(target, Path(name) / "work", random.Random(f"{seed}-{number}"), number, misses, keep)
    return misses


def fuzzed(folder: Path, plan: Plan, count: int) -> list[Figure]:  # noqa: ARG001 - it has folders of its own
    """The row of the table: all inputs, in a few processes."""
    with ProcessPoolExecutor(plan.jobs, mp_context=get_context("spawn")) as pool:
        shares = [range(first, count, plan.jobs) for first in range(plan.jobs)]
        parts = list(pool.map(_share, [plan] * plan.jobs, shares))
    inputs = sum(part.inputs for part in parts)
    kinds: Counter[str] = sum((part.kinds for part in parts), Counter())
    examples = {kind: example for part in parts for kind, example in part.examples.items()}
    detail = "\n".join(f"{number} times {kind}\n    {examples[kind]}" for kind, number in kinds.most_common())
    return [Figure(f"tracebacks, {inputs:,} fuzzed inputs", kinds.total(), 0, detail), not_made("fuzz", count - inputs)]


def _share(plan: Plan, numbers: range) -> Misses:
    return fuzz(numbers, plan.seed, until=plan.until)


def _one(target: Target, work: Path, rng: random.Random, number: int, misses: Misses, keep: Path | None) -> None:
    shutil.rmtree(work, ignore_errors=True)
    shutil.copytree(target.folder, work)
    changed = []
    if target.files:
        for name in rng.sample(target.files, 1 if rng.random() < 0.8 else min(2, len(target.files))):
            file = work / name
            file.write_bytes(mutated(name, file.read_bytes(), rng))
            changed.append(name)
    try:
        with _alarm():
            target.attempt(work, rng)
    except Hang:
        kind = f"{target.name}: no end after {PATIENCE} s of CPU time"
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a panic of a library in Rust is no Exception
        kind = _kind(error)
    else:
        return
    if kind not in misses.kinds:
        print(f"{kind} <- {target.name} #{number} {changed}", file=sys.__stderr__, flush=True)
    misses.add(target.name, kind, f"{target.name} #{number} {changed} {target.said()}")
    if keep is not None:
        shutil.copytree(work, keep / f"{target.name}-{number}", dirs_exist_ok=True)


def _kind(error: BaseException) -> str:
    """The type and the last place in our own code."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "bakeoff" in frame.filename]
    where = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "outside"
    return f"{type(error).__name__} at {where}: {' '.join(str(error).split())[:100]}"


@contextlib.contextmanager
def _alarm() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise Hang

    before = {number: signal.signal(number, ring) for number in (signal.SIGALRM, signal.SIGPROF)}
    signal.alarm(LONGEST)
    signal.setitimer(signal.ITIMER_PROF, PATIENCE)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _settled(folder: Path) -> Iterator[None]:
    """A home of its own, quiet streams, and back to where we were."""
    before, here = dict(os.environ), Path.cwd()
    (folder / "cwd").mkdir()
    for name in ("BAKEOFF_HOME", "HF_HOME", "IR_DATASETS_HOME"):
        os.environ[name] = str(folder / "home" / name)
    os.environ.update(HF_HUB_OFFLINE="1", HF_DATASETS_OFFLINE="1", HF_DATASETS_DISABLE_PROGRESS_BARS="1")
    os.chdir(folder / "cwd")
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            yield
    finally:
        os.chdir(here)
        os.environ.clear()
        os.environ.update(before)


def main() -> None:
    """Prints what got through; fails if anything did."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first input, to try one again")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=Path, default=None, help="keep the inputs that got through here")
    given = parser.parse_args()
    start = time.monotonic()
    misses = fuzz(
        range(given.first, given.first + given.count),
        given.seed,
        only=given.only,
        keep=given.keep and given.keep.resolve(),
    )
    for kind, count in misses.kinds.most_common():
        print(f"{count:5d}  {kind}\n       {misses.examples[kind]}")
    total = sum(misses.kinds.values())
    print(f"{misses.inputs} inputs, seed {given.seed}: {total} tracebacks ({len(misses.kinds)} kinds), "
          f"{time.monotonic() - start:.0f} s")  # fmt: skip
    sys.exit(1 if total else 0)


if __name__ == "__main__":
    main()
