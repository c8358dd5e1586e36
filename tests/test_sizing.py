"""The estimates of bench/sizing.py: rates times documents, by hand."""

from __future__ import annotations

import runpy
from pathlib import Path

SIZING = runpy.run_path(str(Path(__file__).parents[1] / "bench" / "sizing.py"))


def test_hours_dollars_and_bytes_are_multiplication() -> None:
    models = ("wordllama", "minilm", "granite", "use")
    rates = SIZING["Rates"](
        machine="a machine",
        embedded=dict.fromkeys(models, 100.0),
        widths=dict.fromkeys(models, 384),
        written=1e4,
        compared=1e7,
        built=5e3,
        shard_bytes=20.0,
        graph_bytes=264.0,
    )
    rows = {line.split("  ")[0]: line.split() for line in SIZING["report"](rates).splitlines()}
    # 1,000,000 / 100 a second = 10,000 s = 2.78 h; ten times as many 27.8 h; a hundred times 11.6 days
    assert rows["minilm, 384"][2:] == ["100", "2.8", "h", "28", "h", "12", "d"]
    # 200 tokens each at $0.02 a million
    assert rows["openai text-embedding-3-small"][2:] == ["$0.02", "$4", "$40", "$400"]
    # 4 * 384 + 20 = 1,556 bytes a row on disk, 4 * 384 + 264 = 1,800 with the graph
    assert rows["384"][1:] == ["1.6", "GB", "16", "GB", "160", "GB", "1.8", "GB", "18", "GB", "180", "GB"]
    # 1,000 queries * 1,000,000 / 10,000,000 a second = 100 s; then 17 minutes; then 2.8 hours
    assert rows["exact truth for 1,000 queries"][5:] == ["<", "2", "min", "17", "min", "2.8", "h"]
    # 200 s at the pace of 100,000 rows, times log(1e6) / log(1e5) = 1.2: 240 s; 1.4 * 2,000 s; 1.6 * 20,000 s
    assert rows["build HNSW32"][2:] == ["4", "min", "47", "min", "8.9", "h"]
