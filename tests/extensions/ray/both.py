"""Runs a line-up here and on a cluster, and says whether every bit is the same: a process of its own for each address.

python -m tests.extensions.ray.both LINEUP ADDRESS
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bakeoff.extensions.ray.engine import RayEngine
from bakeoff.lineup.entries import EngineEntry
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.engines import engine_entry, with_shared_cache
from bakeoff.running.runner import run
from bakeoff.running.settings import Settings
from bakeoff.search import brute_force

from tests.extensions.ray.corpora import all_vectors, assert_same


def main(path: Path, address: str) -> None:
    RayEngine.blocks, RayEngine.queries, brute_force.FIRST, brute_force.BLOCK = (
        2,
        5,
        64,
        64,
    )  # a small corpus is many tasks
    lineup = Lineup.read(path)
    here = run(lineup, Settings(cache=path.parent / "here", engine=EngineEntry()))
    entry = engine_entry(lineup.engine, "ray", address)
    there = run(lineup, Settings(cache=path.parent / "there", engine=entry))
    assert_same(here, there)
    folder = with_shared_cache(Settings(cache=path.parent / "there"), entry).cache
    assert folder
    assert all_vectors(path.parent / "here") == all_vectors(folder)
    writers = {file.stem.partition("-")[0] for file in folder.glob("*/*.manifest")}
    print(f"same bits, {len(writers - {str(os.getpid())})} other writers")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
