"""The reference task at size: 5,000 × 1,536 against 2 × 5,000 × 384, beside a plain full-matrix NumPy script.

    python bench/reference.py

The peer does the least that gives the same recall@10 (full similarity matrices in float64, a full sort). The target:
no more than twice the peer's time, though a run also builds stores, times queries, tests and draws; and never the
memory of one full 5,000² float64 matrix (200 MB) above the vectors that are read.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from own_process import measured

N, WIDE, NARROW, MOST_TIMES = 5000, 1536, 384, 2.0
LINEUP = """
measures = ["recall@10", "ndcg@10", "mrr"]
primary = "recall@10"
rounds = 1
[task]
kind = "reference"
corpus = "ada.npy"
[task.reference]
provider = "precomputed"
options = { path = "ada.npy" }
[[contender]]
provider = "precomputed"
label = "base"
store = "faiss"
options = { path = "base.npy" }
[[contender]]
provider = "precomputed"
label = "finetuned"
store = "faiss"
options = { path = "finetuned.npy" }
"""


def make(folder: Path) -> None:
    rng = np.random.default_rng(42)
    wide = (
        rng.normal(size=(N, WIDE)).astype(np.float32)
        + rng.normal(size=(50, WIDE)).astype(np.float32)[rng.integers(0, 50, N)]
    )
    np.save(folder / "ada.npy", wide)
    for name, noise in (("base", 40.0), ("finetuned", 10.0)):
        project = rng.normal(size=(WIDE, NARROW)).astype(np.float32)
        np.save(folder / f"{name}.npy", wide @ project + noise * rng.normal(size=(N, NARROW)).astype(np.float32))
    (folder / "bench.toml").write_text(LINEUP)


def peer(folder: Path) -> dict[str, float]:
    """Recall@10 of the same 500 items, the plain way."""
    asked = np.random.RandomState(42).choice(N, 500, replace=False)

    def top(name: str) -> np.ndarray:
        vectors = np.load(folder / f"{name}.npy").astype(np.float64)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        similarity = vectors @ vectors.T
        np.fill_diagonal(similarity, -np.inf)
        return np.argsort(-similarity, axis=1)[asked, :10]

    truth = top("ada")
    found = {}
    for name in ("base", "finetuned"):
        mine = top(name)
        found[f"{name}+faiss"] = float(np.mean([len(set(a) & set(b)) / 10 for a, b in zip(truth, mine, strict=True)]))
    return found


def ours(folder: Path) -> dict[str, float]:
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.running.runner import run

    outcome = run(Lineup.read(folder / "bench.toml"))
    return {label: figures["at"]["10"]["recall"]["mean"] for label, figures in outcome.extras.figures.items()}


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make(folder)
        rows = {which: measured(__file__, which, folder, "numpy", "faiss") for which in ("peer", "ours")}
    print(f"{'':24}{'seconds':>9}{'MB above start':>16}   recall@10")
    for which, row in rows.items():
        shown = ", ".join(f"{label} {value:.4f}" for label, value in row.figures.items())
        print(f"{which:24}{row.seconds:9.2f}{row.added_mb:16.0f}   {shown}")
    same = all(abs(rows["peer"].figures[label] - value) < 1e-3 for label, value in rows["ours"].figures.items())
    times = rows["ours"].seconds / rows["peer"].seconds
    print(f"same recall: {same}; {times:.2f} × the peer's time (target ≤ {MOST_TIMES:g})")
    sys.exit(0 if same and times <= MOST_TIMES else 1)


if __name__ == "__main__":
    main()
