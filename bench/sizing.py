"""What a large corpus takes: bytes, hours and dollars for 1, 10 and 100 million documents, from measured rates.

    python bench/sizing.py --measure          # about two minutes on an idle machine; writes bench/rates.json
    python bench/sizing.py                    # the tables of the docs, from these rates and the price list

Every rate is one processor's, by its CPU time. All tables are estimates: rates times documents, and nothing else.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import ModelCard, Provider, Role
from bakeoff_providers.hosted import Hosted

RATES = Path(__file__).with_name("rates.json")
MODELS = ("wordllama", "minilm", "granite", "use")
CHARACTERS, TOKENS = 800, 200  # of a document: 4 characters a token, as everywhere where nobody has counted
SIZES = (1_000_000, 10_000_000, 100_000_000)
WIDTHS = (256, 384, 1024, 1536, 3072)
DIMENSIONS, ROWS, QUERIES = 384, 100_000, 200  # of what stores and searches are measured with
SHARDS = "vector shards on disk (FAISS flat in memory is as large)"


class Rates(msgspec.Struct, frozen=True):
    """What one processor of the named machine does in a second, and what a row takes beside its numbers."""

    machine: str
    embedded: dict[str, float]  # documents, by model
    widths: dict[str, int]
    written: float  # vectors to disk, with their keys and checksums
    compared: float  # vectors with a query, exactly
    built: float  # vectors into HNSW32, at ROWS rows
    shard_bytes: float  # of a row, beside its float32 numbers
    graph_bytes: float


def texts(count: int) -> list[str]:
    """Pieces of the built-in Wikipedia articles, each of the same length; beyond the last it begins again, shifted."""
    from bakeoff.tasks.kinds import load_kind

    joined = " ".join(document.text for document in load_kind("wikipedia", Path(), {}).task().documents)
    starts = [(n * CHARACTERS + n * CHARACTERS // len(joined)) % (len(joined) - CHARACTERS) for n in range(count)]
    return [joined[start : start + CHARACTERS] for start in starts]


def per_second(work: Callable[[int], object], at_least: float = 5.0) -> float:
    """Things that are done in a second of CPU time, from a call that takes long enough."""
    count = 64
    while True:
        start = time.process_time()
        work(count)
        seconds = time.process_time() - start
        if seconds >= at_least:
            return count / seconds
        count = min(8 * count, max(count + 1, int(1.2 * count * at_least / max(seconds, 1e-3))))


def measured() -> Rates:
    """Every rate, one after the other, on one thread each."""
    import faiss
    from bakeoff.embedding.cache import VectorCache
    from bakeoff.search.brute_force import nearest

    faiss.omp_set_num_threads(1)
    embedded: dict[str, float] = {}
    widths: dict[str, int] = {}
    for name in MODELS:
        provider = PROVIDERS.create(name, **({"threads": 1} if name in ("minilm", "granite") else {}))
        widths[name] = provider.embed(texts(1), Role.DOCUMENT).vectors.shape[1]
        embedded[name] = per_second(partial(_embed, provider))
        print(f"{name}: {embedded[name]:,.1f} documents a second")
        provider.close()
    random = np.random.default_rng(0)
    vectors = random.standard_normal((ROWS, DIMENSIONS), dtype=np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    keys = [f"text {number}" for number in range(ROWS)]
    with tempfile.TemporaryDirectory(prefix="bakeoff-bench-") as folder:
        space = VectorCache(Path(folder)).space({"dimensions": DIMENSIONS})
        start = time.process_time()
        for first in range(0, ROWS, 256):
            space.put(keys[first : first + 256], vectors[first : first + 256], 0)
        written = ROWS / (time.process_time() - start)
        space.close()
        stored = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    start = time.process_time()
    nearest(vectors[:QUERIES], vectors, 100)
    compared = QUERIES * ROWS / (time.process_time() - start)
    index = faiss.IndexHNSWFlat(DIMENSIONS, 32, faiss.METRIC_INNER_PRODUCT)
    start = time.process_time()
    index.add(vectors)
    built = ROWS / (time.process_time() - start)
    numbers = 4 * DIMENSIONS
    return Rates(
        machine=f"{_processor()}, one of {os.cpu_count()} cores, at a load of {os.getloadavg()[1]:.0f}",
        embedded=embedded,
        widths=widths,
        written=written,
        compared=compared,
        built=built,
        shard_bytes=stored / ROWS - numbers,
        graph_bytes=len(faiss.serialize_index(index)) / ROWS - numbers,
    )


def _embed(provider: Provider, count: int) -> None:
    given = texts(count)
    for first in range(0, count, 256):
        provider.embed(given[first : first + 256], Role.DOCUMENT)


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines() if Path("/proc/cpuinfo").exists() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return "a processor without a name"


def hosted_cards() -> list[tuple[str, ModelCard]]:
    """Every hosted model whose price is known, cheapest first."""
    kinds = [(name, PROVIDERS.get(name)) for name in PROVIDERS.builtin]
    cards = [(name, card) for name, kind in kinds if issubclass(kind, Hosted) for card in kind.cards]
    priced = [(name, card) for name, card in cards if card.price is not None and card.price.usd_per_million_tokens]
    return sorted(priced, key=lambda pair: pair[1].price.usd_per_million_tokens if pair[1].price else 0.0)


def duration(seconds: float) -> str:
    """Two figures, in the unit that suits."""
    for unit, size in (("d", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{_two(seconds / size)} {unit}"
    return "< 2 min"


def size(count: float) -> str:
    """Two figures, in powers of ten."""
    for unit, factor in (("TB", 1e12), ("GB", 1e9)):
        if count >= factor:
            return f"{_two(count / factor)} {unit}"
    return f"{_two(count / 1e6)} MB"


def dollars(amount: float) -> str:
    """Two figures."""
    return f"${_two(amount)}"


def _two(value: float) -> str:
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def table(title: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Plain columns: the first to the left, figures to the right."""
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = []
    for row in [heads, *rows]:
        first, *figures = row
        padded = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(figures, widths[1:], strict=True))]
        lines.append("  ".join(padded).rstrip())
    return "\n".join([title, lines[0], "─" * max(map(len, lines)), *lines[1:]])


def report(rates: Rates) -> str:
    """All tables."""
    millions = [f"{count // 1_000_000} M" for count in SIZES]
    local = [
        [f"{name}, {rates.widths[name]}", f"{rates.embedded[name]:,.0f}"]
        + [duration(count / rates.embedded[name]) for count in SIZES]
        for name in MODELS
    ]
    hosted = [
        [f"{name} {card.name}", f"${card.price.usd_per_million_tokens:.2f}"]
        + [dollars(count * TOKENS / 1e6 * card.price.usd_per_million_tokens) for count in SIZES]
        for name, card in hosted_cards()
        if card.price is not None
    ]
    room = [
        [f"{width}", *(size(count * (4 * width + rates.shard_bytes)) for count in SIZES)]
        + [size(count * (4 * width + rates.graph_bytes)) for count in SIZES]
        for width in WIDTHS
    ]
    work = [
        ["write vectors (the disk apart)", *(duration(count / rates.written) for count in SIZES)],
        ["exact truth for 1,000 queries", *(duration(1_000 * count / rates.compared) for count in SIZES)],
        ["build HNSW32", *(duration(count * np.log(count) / np.log(ROWS) / rates.built) for count in SIZES)],
    ]
    rooms = [f"{kind} {million}" for kind in ("shards", "HNSW32") for million in millions]
    return "\n\n".join(
        [
            f"Estimates: documents of {TOKENS} tokens ({CHARACTERS} characters); {rates.machine}.",
            table("Hours of one processor to embed", ["model, dimensions", "a second", *millions], local),
            table("Dollars to embed", ["model", "per M tokens", *millions], hosted),
            table(
                "Bytes: vector shards on disk (FAISS flat in memory is as large), and FAISS HNSW32 in memory",
                ["dimensions", *rooms],
                room,
            ),
            table(f"Hours of one processor, {DIMENSIONS} dimensions", ["step", *millions], work),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true")
    if parser.parse_args().measure:
        RATES.write_bytes(msgspec.json.format(msgspec.json.encode(measured())) + b"\n")
    print(report(msgspec.json.decode(RATES.read_bytes(), type=Rates)))


if __name__ == "__main__":
    main()
