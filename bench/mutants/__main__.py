"""`make mutants`: a seeded sample of one-point mutants, and how many of them their modules' own tests notice."""

from __future__ import annotations

import argparse
import ast
import queue
import random
import sys
import tempfile
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mutants.copies import Copy, Seen, remembered
from mutants.points import Mutant, distinct_points, mutants_of
from mutants.targets import TARGETS, Target

ROOT = Path(__file__).resolve().parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.toml")
GOAL = 0.9


@dataclass(frozen=True, slots=True)
class Trial:
    """A mutant, whose it is, and what its tests said: `noticed`, `survived`, or `equivalent` where it can't be."""

    target: Target
    mutant: Mutant
    source: str
    outcome: str
    seconds: float
    tests: int
    reason: str = ""

    @property
    def shown(self) -> str:
        """The line before and after."""
        before, after = self.mutant.lines(self.source)
        place = f"{self.mutant.module}:{self.mutant.line_number(self.source)}"
        return f"{place}\n  - {before}\n  + {after}"


def sampled(seed: int, count: int, only: Sequence[str]) -> list[tuple[Target, Mutant]]:
    """Every place where something can be changed is as likely as any other; one change of each at most."""
    places: list[tuple[Target, list[Mutant]]] = []
    for target in TARGETS:
        if only and target.name not in only:
            continue
        for module in target.modules(ROOT):
            every = mutants_of(str(module), (ROOT / module).read_text())
            places += [(target, group) for group in distinct_points(every)]
    rng = random.Random(seed)
    return [(target, rng.choice(group)) for target, group in rng.sample(places, min(count, len(places)))]


def tests_for(target: Target, mutant: Mutant, source: str, seen: Sequence[Seen], seconds: float) -> list[Seen]:
    """The tests that call the changed function, quickest first, up to so many seconds in all.

    What is changed outside of functions may concern every test that calls anything of the module, and a module of
    constants alone every test.
    """
    lines = _function_lines(source, mutant.line_number(source))
    constants = not any(isinstance(node, ast.FunctionDef) for node in ast.walk(ast.parse(source)))

    def calls(test: Seen) -> bool:
        inside = (call.rpartition(":") for call in test.calls)
        return constants or any(file == mutant.module and (not lines or int(line) in lines) for file, _, line in inside)

    chosen, spent = list[Seen](), 0.0
    for test in sorted(filter(calls, seen), key=lambda test: test.seconds):
        spent += test.seconds
        if chosen and spent > seconds:
            break
        chosen.append(test)
    always = [test for test in seen if test.name.rpartition("::")[2] in target.in_processes]
    return chosen + [test for test in always if test not in chosen]


def _function_lines(source: str, line: int) -> range:
    """From the first line to the last of the innermost function around a line of its body."""
    inner = range(0)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and node.end_lineno is not None:
            begin = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
            if node.body[0].lineno <= line <= node.end_lineno and (not inner or begin >= inner.start):
                inner = range(begin, node.end_lineno + 1)
    return inner


def tried(copy: Copy, target: Target, mutant: Mutant, seen: Sequence[Seen], seconds: float) -> Trial:
    """One mutant in one copy."""
    source = (copy.folder / mutant.module).read_text()  # the sources may be edited meanwhile
    chosen = tests_for(target, mutant, source, seen, seconds)
    if reason := reason_given(mutant, source):
        return Trial(target, mutant, source, "equivalent", 0.0, 0, reason)
    if not chosen:
        return Trial(target, mutant, source, "survived", 0.0, 0)
    limit = 60 + 20 * sum(test.seconds for test in chosen)
    code, taken = copy.tried([test.name for test in chosen], limit, mutant.module, mutant.applied(source))
    return Trial(target, mutant, source, "survived" if code == 0 else "noticed", taken, len(chosen))


def reason_given(mutant: Mutant, source: str) -> str:
    """Why a mutant is no error, from the list beside this file; "" where it is not there."""
    before, after = mutant.lines(source)
    for entry in equivalents():
        if (entry["module"], entry["before"], entry["after"]) == (mutant.module, before, after):
            return str(entry["reason"])
    return ""


def equivalents() -> list[dict[str, str]]:
    """Module, lines before and after, and the reason."""
    return list(tomllib.loads(EQUIVALENT.read_text()).get("mutant", []))


def all_tried(
    chosen: list[tuple[Target, Mutant]], jobs: int, seconds: float, memory: Path | None, place: Path
) -> list[Trial]:
    """All mutants, several at a time; a line for each as it comes."""
    copies = [Copy(ROOT, place / f"copy{at}") for at in range(jobs)]
    wanted = sorted({f"tests/{test}" for target, _ in chosen for test in target.tests})
    surveys: queue.Queue[str] = queue.Queue()
    for test_file in wanted:
        surveys.put(test_file)
    seen: dict[str, list[Seen]] = {}
    work: queue.Queue[tuple[Target, Mutant]] = queue.Queue()
    for pair in chosen:
        work.put(pair)
    trials: list[Trial] = []

    def survey(copy: Copy) -> None:
        while not surveys.empty():
            test_file = surveys.get()
            seen[test_file] = remembered(copy, ROOT, test_file, memory)

    def attempt(copy: Copy) -> None:
        while not work.empty():
            target, mutant = work.get()
            own = [test for name in target.tests for test in seen[f"tests/{name}"]]
            trial = tried(copy, target, mutant, own, seconds)
            trials.append(trial)
            print(f"{len(trials):4}  {trial.outcome:10}  {trial.seconds:5.1f} s  {trial.tests:3} tests  {trial.shown}")

    for step in (survey, attempt):
        threads = [threading.Thread(target=step, args=(copy,)) for copy in copies]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for copy in copies:
        copy.close()
    return trials


def table(trials: Sequence[Trial]) -> str:
    """By target: how many were tried, noticed, listed as equivalent, and overlooked."""
    lines = [f"{'modules':20}  mutants  noticed  equivalent  survived"]
    for name in [*(target.name for target in TARGETS), "all"]:
        own = Counter(trial.outcome for trial in trials if name in (trial.target.name, "all"))
        if own:
            figures = f"{own.total():7}  {own['noticed']:7}  {own['equivalent']:10}  {own['survived']:8}"
            lines.append(f"{name:20}  {figures}  {own['noticed'] / own.total():6.1%}")
    return "\n".join(lines)


def main() -> None:
    """Fails where fewer than nine in ten of the sampled mutants are noticed; equivalent ones count as not noticed."""
    parser = argparse.ArgumentParser(prog="python -m mutants", description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-n", "--count", type=int, default=300, help="mutants to sample")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at the same time")
    parser.add_argument("--seconds", type=float, default=20.0, help="of tests for one mutant, the quickest first")
    parser.add_argument("--only", action="append", default=[], choices=[target.name for target in TARGETS])
    parser.add_argument("--memory", type=Path, help="a folder that keeps what each test calls, for the next time")
    given = parser.parse_args()
    begin = time.monotonic()
    chosen = sampled(given.seed, given.count, given.only)
    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as place:
        trials = all_tried(chosen, given.jobs, given.seconds, given.memory, Path(place))
    for outcome in ("equivalent", "survived"):
        some = [trial for trial in trials if trial.outcome == outcome]
        print(f"\n{outcome}: {len(some)}")
        for trial in sorted(some, key=lambda trial: trial.shown):
            print(trial.shown + (f"\n    {trial.reason}" if trial.reason else ""))
    noticed = sum(trial.outcome == "noticed" for trial in trials)
    print(f"\n{table(trials)}")
    print(
        f"\nseed {given.seed}, {time.monotonic() - begin:.0f} s: {noticed} of {len(trials)} noticed, {GOAL:.0%} wanted"
    )
    sys.exit(noticed < GOAL * len(trials))


if __name__ == "__main__":
    main()
