"""Contenders of somebody else's that hang, crash, never end an answer or change their process, beside honest ones."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from chaos.processes import environment
from chaos.row import Figure, Plan, attempts
from tests.native_task import native_files, write_lineup

FAILS = {
    "hang": "time.sleep(1000)",
    "spin": "while True: pass",
    "exit": "os._exit(7)",
    "crash": "ctypes.string_at(0)",
    "stop": "raise KeyboardInterrupt",
}
CHANGES = {
    "chdir": "os.chdir('/')",
    "seterr": "np.seterr(all='raise')",
    "threads": "threading.Thread(target=time.sleep, args=(1000,)).start()",
    "signals": "[signal.signal(n, signal.SIG_IGN) for n in (signal.SIGINT, signal.SIGTERM)]",
    "print": r"print('\x1b[2J\x07' * 99); os.write(1, b'\x1b]0;mine\x07')",
    "endless": "",
}
CODE = """
import ctypes, itertools, os, signal, threading, time
import numpy as np
from bakeoff.plugins import Capabilities, Hits, SizeModel, Store

def misbehave():
    {act}

def endless(answer):
    return itertools.chain(answer, map(str, itertools.count(4))) if {endless} else answer

def search(text, k):
    misbehave()
    return endless(["2", "1", "3"])

def embed(texts):
    misbehave()
    return [[len(text), 1.0 + text.count("e")] for text in texts]

def rerank(query, documents):
    misbehave()
    return [float(len(document)) for document in documents]

class Foreign(Store):
    name = "foreign"
    capabilities = Capabilities(exact=False, filters=False, persistent=False, updates=True, in_process=True)
    def __init__(self, *, dimensions, folder):
        super().__init__(dimensions=dimensions, folder=folder)
        self.rows = {{}}
    def _add(self, ids, vectors, metadata):
        self.rows.update(zip(ids, vectors))
    def _delete(self, ids):
        pass
    def _search(self, vector, k, filters):
        misbehave()
        best = sorted(self.rows, key=lambda id: (-float(self.rows[id] @ vector), id))[:k]
        return Hits(best, [float(self.rows[id] @ vector) for id in best])
    def count(self):
        return len(self.rows)
    def size_model(self):
        return SizeModel(0, 0, "0")
"""
ROWS = {
    "retriever": 'label = "foreign"\nretriever = "file:foreign_code.py:search"',
    "provider": 'label = "foreign"\nprovider = "file:foreign_code.py:embed"\nstore = "faiss"',
    "reranker": 'label = "base"\nranker = "bm25"\nrerank = {provider="file:foreign_code.py:rerank",label="foreign"}',
    "store": 'label = "foreign"\nprovider = "fake"\nstore = "foreign"',
}
HONEST = '[[contender]]\nranker = "bm25"\n[[contender]]\nlabel = "honest"\nprovider = "fake"\nstore = "faiss"\n'
LONGEST = 60.0  # seconds for a run with limits of half a second and five
MEMORY = 2_000_000  # kB that a run may have
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(frozen=True)
class Seen:
    """One run beside a contender that misbehaves."""

    how: str
    seconds: float
    failed: bool
    lost: bool
    unlike: bool
    wrong: bool
    control: bool
    left: int


def hangs(folder: Path, plan: Plan, count: int) -> list[Figure]:
    """Every way of every sort in turn, in an order of the seed's."""
    ways = [(sort, how) for how in (*FAILS, *CHANGES) for sort in ROWS if how != "endless" or sort == "retriever"]
    plan.rng("hang", -1).shuffle(ways)
    honest = _figures(_run(folder / "alone", "", "")[1])

    def attempt(number: int, rng: random.Random) -> Seen:  # noqa: ARG001 - the order is the seed's
        sort, how = ways[number % len(ways)]
        place = folder / str(number)
        start = time.monotonic()
        done, summary = _run(place, sort, how)
        seconds = time.monotonic() - start
        figures = _figures(summary)
        foreign: dict[str, Any] = next(
            (row for row in summary.get("rows", []) if row["label"].startswith("foreign")), {}
        )
        wrong = bool(foreign.get("not_run")) != (how in FAILS) or not foreign
        return Seen(
            how=f"{sort} {how}: {foreign.get('not_run')} {done.stderr[-300:]}",
            seconds=seconds,
            failed=done.returncode != 0,
            lost=not summary,
            unlike=any(figures.get(label) != value for label, value in honest.items()),
            wrong=wrong,
            control=bool(CONTROL.search(done.stdout + done.stderr)),
            left=_left(place),
        )

    seen, missing = attempts(plan, "hang", count, attempt)
    made = f"{len(seen)} runs beside foreign code that hangs, crashes or meddles"
    return [
        Figure(f"slowest of {made}, s", max((one.seconds for one in seen), default=0), LONGEST),
        _figure("  runs that failed", seen, "failed"),
        _figure("  results lost or elsewhere", seen, "lost"),
        _figure("  figures of honest rows that differ", seen, "unlike"),
        _figure("  foreign rows that ran and should not have, or the reverse", seen, "wrong"),
        _figure("  control characters printed", seen, "control"),
        _figure("  processes left", seen, "left"),
        missing,
    ]


def _figure(what: str, seen: list[Seen], name: str) -> Figure:
    return Figure(what, sum(getattr(one, name) for one in seen), 0, "\n".join(o.how for o in seen if getattr(o, name)))


def _run(place: Path, sort: str, how: str) -> tuple[subprocess.CompletedProcess[str], dict[str, Any]]:
    act = {**FAILS, **CHANGES}.get(how) or "pass"
    rows = HONEST + (f"[[contender]]\n{ROWS[sort]}\n" if sort else "")
    head = "rounds = 2\nquery_timeout = 0.5\nbuild_timeout = 5"
    write_lineup(place, native_files(), head=head, task='name = "own"', contenders=rows, name="line")
    (place / "foreign_code.py").write_text(CODE.format(act=act, endless=how == "endless"))
    info = place / "foreign_code-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: foreign-code\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[bakeoff.stores]\nforeign = foreign_code:Foreign\n")
    variables = environment(place)
    variables["PYTHONPATH"] = f"{place}:{variables.get('PYTHONPATH', '')}"
    command = f'ulimit -d {MEMORY}; exec "$0" -m bakeoff run line.toml --no-charts --no-cache'
    with subprocess.Popen(
        ["/bin/sh", "-c", command, sys.executable], cwd=place, env=variables, text=True, errors="replace",
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    ) as process:  # fmt: skip
        try:
            out, err = process.communicate(timeout=3 * LONGEST)
        except subprocess.TimeoutExpired:
            process.kill()
            out, err = process.communicate()
    newest = max(place.glob("results/*/metrics_summary.json"), default=None)
    done = subprocess.CompletedProcess("", process.returncode, out, err)
    return done, json.loads(newest.read_bytes()) if newest else {}


def _figures(summary: dict[str, Any]) -> dict[str, Any]:
    rows = summary.get("rows", [])
    return {
        row["label"]: (row["measures"], row.get("loss")) for row in rows if row["label"] in ("bm25", "honest+faiss")
    }


def _left(place: Path) -> int:
    """Processes that were started for this run and are still there; they are ended."""
    left = 0
    for process in psutil.process_iter(["cmdline"]):
        if str(place) in " ".join(process.info["cmdline"] or ()):
            left += 1
            process.send_signal(signal.SIGKILL)
    return left
