"""Stores that lie about what they hold or find: a run must fail their rows, or show what they lost."""

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from bakeoff.results.schema import Row, find, read_summary

from chaos.processes import environment
from chaos.row import Figure, Plan, attempts
from tests.native_task import native_files, pages, write_lineup
from tests.search.lying import BY_ANSWERS, BY_COUNT

LATER = "skips the first later"  # than the first query
LIES = (*BY_COUNT, *BY_ANSWERS, LATER)
INDEXES = ("Flat", "HNSW32")  # exact, and approximate
WORDS = "copper lake forest rail boat stone river mill sheep corn salt wool glass tar bell rope hill moss clay fern"
# Only the first query is held to exact search, as in a large corpus most queries are not.
SAMPLE = "from bakeoff.search import exact_search; exact_search.FEWEST = exact_search.MOST = 1"
LIAR = "from bakeoff.search.stores import STORES; STORES.builtin['liar'] = 'tests.search.lying:Liar'"


@dataclass(frozen=True)
class Told:
    """One run with an honest store and a liar over the same vectors."""

    lie: str
    index: str
    honest_failed: bool
    believed: bool


def lies(folder: Path, plan: Plan, count: int) -> list[Figure]:
    """Every lie in turn, for an exact and an approximate index, over a corpus of the seed's."""

    def attempt(number: int, rng: random.Random) -> Told:
        lie, index = LIES[number // len(INDEXES) % len(LIES)], INDEXES[number % len(INDEXES)]
        place = folder / str(number)
        _write(place, rng, lie, index)
        setup = f"{LIAR}\n{SAMPLE if lie == LATER else ''}\nfrom bakeoff.cli.main import main; main()"
        subprocess.run(
            [sys.executable, "-c", setup, "run", "line.toml", "--no-charts"],
            cwd=place, env=environment(place), capture_output=True, timeout=300, check=False,
        )  # fmt: skip
        results = find(place / "results")
        rows = {row.label: row for row in read_summary(results[0]).rows} if results else {}
        honest = [rows.get(label) for label in ("fake+faiss", "fake+honest")]
        failed = any(row is None or row.not_run is not None for row in honest)
        return Told(lie, index, failed, not _is_noticed(rows.get("fake+liar")))

    told, missing = attempts(plan, "lies", count, attempt)
    detail = "\n".join(f"  {one.lie} ({one.index})" for one in told if one.believed or one.honest_failed)
    return [
        Figure(f"{len(told)} stores that lie: believed without a word", sum(one.believed for one in told), 0, detail),
        Figure("  honest stores beside them whose rows failed", sum(one.honest_failed for one in told), 0, detail),
        missing,
    ]


def _is_noticed(row: Row | None) -> bool:
    """It failed, is said to rank unlike another exact row, or shows a loss."""
    if row is None:
        return False
    if row.not_run is not None or any(warning.id == "ranks_unlike" for warning in row.warnings):
        return True
    return row.loss is not None and (row.loss.recall < 1 or row.loss.short > 0 or row.loss.score_error > 1e-3)


def _write(place: Path, rng: random.Random, lie: str, index: str) -> None:
    """Distinct documents, so that every lie changes an answer; a query in four has a filter."""
    documents, queries, words = rng.randint(20, 120), rng.randint(3, 25), WORDS.split()
    texts = {
        number: (f"Page {number}", f"{number} " + " ".join(rng.choices(words, k=rng.randint(3, 12))))
        for number in range(1, documents + 1)
    }
    articles = [page | {"state": "UT" if page["page_id"] % 2 else "NV"} for page in pages(texts)]
    asked = {f"q{number}": " ".join(rng.sample(words, 3)) for number in range(queries)}
    filters = {query: {"state": rng.choice(["UT", "NV"])} for query in asked if rng.random() < 0.25 and query != "q0"}
    grades = {query: {str(rng.randint(1, documents)): 3} for query in asked}
    stores = (
        '["faiss", { name = "liar", label = "honest" }, '
        f'{{ name = "liar", label = "liar", options = {{ how = "{lie}", index = "{index}" }} }}]'
    )
    write_lineup(
        place,
        native_files(articles, asked, grades, where=filters),
        head=f'measures = ["ndcg@10"]\nrounds = 1\ndepth = {rng.randint(4, 18)}',
        task='name = "own"',
        contenders=f'[[contender]]\nprovider = "fake"\nstore = {stores}\n',
        name="line",
    )
