"""Large corpora on one machine, each side in a process of its own: python bench/scale.py [--quick]

Texts and vectors are generated (`precomputed`; `fake` where vectors go through the cache), so that anybody can run it.
Memory is the peak of the resident set (VmHWM), time is CPU time, so that other work on the machine does not count.
Goals are those of the docs; exits 1 where one is missed. 1,000,000 documents take about ten minutes on two cores.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import scale_sides
from own_process import peak_mb
from scale_sides import DEPTH, DIMENSIONS, child

KILLED_AT, MANY_QUERIES, FEW_DOCUMENTS = 200_000, 50_000, 10_000
WORDS = 100  # of a document, where its texts are what takes memory
AT_RISK = 1024  # texts of one batch of `fake`: what a kill may cost


class Figure(NamedTuple):
    """What was measured, and what it should be at most."""

    name: str
    value: float
    goal: float

    def __str__(self) -> str:
        missed = "" if self.value <= self.goal else "   MISSED"
        return f"  {self.name:<58} {self.value:10,.2f}   goal ≤ {self.goal:,.2f}{missed}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=1_000)
    parser.add_argument("--many-queries", type=int, default=MANY_QUERIES)
    parser.add_argument("--killed-at", type=int, default=KILLED_AT, help="documents of the run that is killed")
    parser.add_argument("--quick", action="store_true", help="a tenth of everything; its goals say little")
    parser.add_argument("--only", nargs="+", choices=sorted(PARTS), help="not everything")
    parser.add_argument("--folder", type=Path, help="keep everything here; what is there already is not made again")
    parser.add_argument("--side", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        figures = getattr(scale_sides, options.side[0])(options.folder, *options.side[1:])
        print(json.dumps({"cpu": time.process_time(), "peak_mb": peak_mb(), **figures}))
        return 0
    if options.quick:
        options.documents, options.many_queries, options.killed_at = 100_000, 5_000, 20_000
    with tempfile.TemporaryDirectory(prefix="bakeoff-scale-") as temporary:
        folder = options.folder or Path(temporary)
        print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores; CPU time is measured")
        figures = [figure for name in options.only or PARTS for figure in PARTS[name](folder, options)]
    return int(any(figure.value > figure.goal for figure in figures))


def one_machine(folder: Path, options: argparse.Namespace) -> list[Figure]:
    """`run` against a bare script, its page, and the growth from a tenth of the documents."""
    large, small = _made(folder, options.documents, options.queries), None
    run, script = child("by_run", large), child("by_script", large)
    *_, page = sorted((large / "results").glob("*/evaluation_report.html"))
    megabytes = options.documents * DIMENSIONS * 4 / 2**20
    figures = [
        Figure("peak of `run` over FAISS flat, MB", run["peak_mb"], 1.6 * megabytes + 400),
        Figure("CPU of `run` / of a bare script", run["cpu"] / script["cpu"], 1.3),
        Figure("page, MB", page.stat().st_size / 1e6, 5),
    ]
    if shutil.which("chromium") and shutil.which("chromedriver"):
        figures.append(Figure("page loaded and usable in Chromium, s", child("by_browser", large)["loaded"], 3))
    if options.documents >= 100_000:
        small = child("by_run", _made(folder, options.documents // 10, options.queries))
        figures.append(Figure("CPU of `run`, ten times the documents, ×", run["cpu"] / small["cpu"], 11))
        figures.append(Figure("peak of `run`, ten times the documents, ×", run["peak_mb"] / small["peak_mb"], 11))
    title = f"{options.documents:,} documents × {DIMENSIONS} ({megabytes:,.0f} MB), {options.queries:,} queries"
    _print(f"{title}, top {DEPTH}", figures)
    seconds = f"CPU seconds: run {run['cpu']:.0f}, script {script['cpu']:.0f}"
    tenth = f", run of a tenth {small['cpu']:.0f}" if small else ""
    print(f"  {seconds}{tenth}; script's peak {script['peak_mb']:,.0f} MB, its NDCG@10 {script['ndcg']:.4f}")
    return figures


def shards(folder: Path, options: argparse.Namespace) -> list[Figure]:
    """Reading cached vectors back, and searching them exactly; of readings in turns, the least of either side."""
    large = _made(folder, options.documents, options.queries)
    if not (large / "cache").exists():
        child("to_cache", large)
    exact = child("by_exact", large)
    turns = [(child("by_cache", large), child("by_load", large)) for _ in range(3)]
    cache, load = (min(turn[side]["read_seconds"] for turn in turns) for side in (0, 1))
    figures = [
        Figure(f"exact top 100 of {options.queries:,} queries: added MB", exact["added_mb"], 300),
        Figure("what an index lost against that: added MB", exact["loss_added_mb"], 300),
        Figure("cached vectors read back / np.load", cache / load, 2),
    ]
    _print(f"shards of {options.documents:,} vectors", figures)
    print(f"  CPU seconds: read back {cache:.2f}, np.load {load:.2f}, exact search {exact['cpu']:.0f}")
    return figures


def cached(folder: Path, options: argparse.Namespace) -> list[Figure]:
    """`run` with vectors that go through the cache's shards (`fake`); those of `precomputed` stay in their file."""
    large, megabytes = _made(folder, options.documents, options.queries), options.documents * DIMENSIONS * 4 / 2**20
    shutil.rmtree(large / "home", ignore_errors=True)
    run = child("by_run", large, "fake.toml")
    figures = [Figure("peak of `run` over FAISS flat, MB", run["peak_mb"], 1.6 * megabytes + 400)]
    _print(f"{options.documents:,} documents × {DIMENSIONS} through the cache", figures)
    print(f"  CPU seconds: {run['cpu']:.0f}")
    return figures


def words(folder: Path, options: argparse.Namespace) -> list[Figure]:
    """A dry run, and BM25 over a fifth of the documents: both need every text once, and neither holds the corpus."""
    counted = child("by_dry_run", _texts(folder, options.documents, options.queries))
    fifth = _texts(folder, options.documents // 5, options.queries)
    ranked, megabytes = child("by_run", fifth, "bm25.toml"), (fifth / "task" / "corpus.jsonl").stat().st_size / 2**20
    figures = [
        Figure("peak of a dry run with a hosted provider, MB", counted["peak_mb"], 500),
        Figure("a fifth of them: peak of `run` with BM25, MB", ranked["peak_mb"], 5 * megabytes + 400),
    ]
    _print(f"{options.documents:,} documents of {WORDS} words ({5 * megabytes:,.0f} MB)", figures)
    print(f"  CPU seconds: dry run {counted['cpu']:.0f}, BM25 {ranked['cpu']:.0f}")
    return figures


def many_queries(folder: Path, options: argparse.Namespace) -> list[Figure]:
    """Few documents, so that the answers are what takes memory."""
    run = child("by_run", _made(folder, FEW_DOCUMENTS, options.many_queries))
    figures = [Figure("peak of `run`, MB", run["peak_mb"], 500)]
    _print(f"{FEW_DOCUMENTS:,} documents, {options.many_queries:,} queries, top {DEPTH}", figures)
    print(f"  CPU seconds: {run['cpu']:.0f}")
    return figures


def killed(folder: Path, options: argparse.Namespace) -> list[Figure]:
    """SIGKILL in the middle of embedding: the next run goes on from the shard."""
    place = _made(folder, options.killed_at, 100)
    shutil.rmtree(place / "home", ignore_errors=True)
    after = child("by_kill", place)
    figures = [Figure("texts embedded twice", after["twice"], AT_RISK)]
    _print(f"{options.killed_at:,} documents, killed with {after['after_kill']:,.0f} vectors on disk", figures)
    return figures


def _made(folder: Path, documents: int, queries: int) -> Path:
    return _once(folder / f"{documents}-{queries}", "lineup.toml", "generate", str(documents), str(queries))


def _texts(folder: Path, documents: int, queries: int) -> Path:
    place = folder / f"{documents}-{queries}-texts"
    return _once(place, "hosted.toml", "generate_texts", str(documents), str(queries), str(WORDS))


def _once(place: Path, last: str, side: str, *how: str) -> Path:
    """Made unless the file that is written last is there."""
    if not (place / last).exists():
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        child(side, place, *how)
    return place


def _print(title: str, figures: list[Figure]) -> None:
    print(title, *figures, sep="\n", flush=True)


PARTS = {
    "run": one_machine,
    "shards": shards,
    "cached": cached,
    "words": words,
    "queries": many_queries,
    "killed": killed,
}


if __name__ == "__main__":
    sys.exit(main())
