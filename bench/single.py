"""The single task at size: 100,000 samples × 1,187 classes in less than 1 GB.

    python bench/single.py

Three models as float32 arrays on disk. The peer is the plain way for one of them: load it, sort every row, look the
target up. The targets: the same MRR as the peer, no more of its time than four times (for three models, with
baselines, tests and files), and a whole run's peak below 1 GB.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from own_process import measured

SAMPLES, CLASSES, MOST_TIMES, MOST_MB = 100_000, 1187, 4.0, 1000
MODELS = ("first", "second", "third")
LINEUP = """
measures = ["acc@1", "acc@10", "mrr", "ndcg@10"]
primary = "mrr"
task = { kind = "single", name = "big", truth = "targets.npy", classes = 1187 }
""" + "".join(f'[[contender]]\nanswers = "{name}.npy"\n' for name in MODELS)


def make(folder: Path) -> None:
    rng = np.random.default_rng(42)
    targets = rng.integers(0, CLASSES, SAMPLES)
    np.save(folder / "targets.npy", targets)
    for name, help_ in zip(MODELS, (1.0, 1.5, 2.0), strict=True):
        array = np.lib.format.open_memmap(folder / f"{name}.npy", mode="w+", dtype=np.float32, shape=(SAMPLES, CLASSES))
        for start in range(0, SAMPLES, 5000):
            block = rng.normal(size=(5000, CLASSES)).astype(np.float32)
            block[np.arange(5000), targets[start : start + 5000]] += help_
            array[start : start + 5000] = block
        array.flush()
    (folder / "big.toml").write_text(LINEUP)


def peer(folder: Path) -> float:
    """One model's MRR, the plain way, a tenth of the samples at a time."""
    scores, targets = np.load(folder / "first.npy", mmap_mode="r"), np.load(folder / "targets.npy")
    ranks = []
    for start in range(0, SAMPLES, SAMPLES // 10):
        order = np.argsort(-scores[start : start + SAMPLES // 10], axis=1, kind="stable")
        ranks.append((order == targets[start : start + SAMPLES // 10, None]).argmax(axis=1) + 1)
    return float((1 / np.concatenate(ranks)).mean())


def ours(folder: Path) -> float:
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.results.save import save
    from bakeoff.running.runner import run

    outcome = run(Lineup.read(folder / "big.toml"))
    save(outcome, folder / "results")
    return float(outcome.extras.figures["models"]["first"]["mrr"][0])


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder)
        rows = {which: measured(__file__, which, folder) for which in ("peer", "ours")}
    print(f"{'':24}{'MRR of first':>14}{'seconds':>9}{'peak MB':>9}")
    for which, row in rows.items():
        print(f"{which:24}{row.figures:14.6f}{row.seconds:9.2f}{row.peak_mb:9.0f}")
    same = abs(rows["peer"].figures - rows["ours"].figures) < 1e-9
    times, peak = rows["ours"].seconds / rows["peer"].seconds, rows["ours"].peak_mb
    print(f"same MRR: {same}; {times:.2f} × the peer's time (target ≤ {MOST_TIMES:g})")
    print(f"peak {peak:.0f} MB (target < {MOST_MB})")
    sys.exit(0 if same and times <= MOST_TIMES and peak < MOST_MB else 1)


if __name__ == "__main__":
    main()
