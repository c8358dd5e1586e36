"""`search = "hybrid"`: a row whose store ranks by words too, beside the same parts fused by us."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import pytest
from bakeoff.core.filters import Condition
from bakeoff.extensions.stores.qdrant import Qdrant
from bakeoff.lineup.lineup import Lineup, lineup_text
from bakeoff.running.runner import run
from bakeoff.running.settings import Settings
from bakeoff.search.hits import Hits
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError

from tests.errors import refuses
from tests.native_task import native_files, pages, write_lineup

NUMBERS = range(1, 61)
HYBRID = """[[contender]]
ranker = "bm25"

[[contender]]
provider = "file:mine.py:drawn"
store = "qdrant"
search = ["vectors", "hybrid"]

[[fusion]]
label = "ours"
of = ["drawn+qdrant", "bm25"]
"""


MINE = """
import hashlib

def drawn(texts):
    \"\"\"Vectors that know nothing of words.\"\"\"
    return [[byte - 127.5 for byte in hashlib.sha256(text.encode()).digest()] for text in texts]
"""


def _lineup(folder: Path, contenders: str) -> Path:
    """Sixty documents; each query is one that shares a single word with a single document."""
    texts = {number: (f"Page {number}", f"about harbours and ships, and word{number}x") for number in NUMBERS}
    queries = {f"q{number}": f"which one has word{number}x" for number in (5, 20, 33)}
    grades = {f"q{number}": {str(page): 3 if page == number else 0 for page in NUMBERS} for number in (5, 20, 33)}
    (folder / "mine.py").write_text(MINE)
    files = native_files(pages(texts), queries, grades)
    return write_lineup(folder, files, head='measures = ["mrr"]\nrounds = 1', contenders=contenders)


def test_a_hybrid_row_finds_by_words_as_our_own_fusion_does(tmp_path: Path) -> None:
    outcome = run(Lineup.read(_lineup(tmp_path, HYBRID)), Settings(cache=None))
    assert outcome.not_run == []
    means = {label: fmean(scores["mrr"]) for label, scores in outcome.scores.items()}
    assert means["bm25"] == 1
    assert means["drawn+qdrant"] < 0.5
    assert means["drawn+qdrant-hybrid"] >= 0.5
    assert means["ours"] >= 0.5
    rows = {row.contender.label: row for row in outcome.ran}
    hybrid = rows["drawn+qdrant-hybrid"].search
    assert hybrid is not None
    assert hybrid.loss is None
    assert hybrid.short == 0
    assert hybrid.timing.embed_ns


def test_a_hybrid_row_with_short_lists_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Qdrant._search_hybrid

    def half(self: Qdrant, text: str, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        hits = whole(self, text, vector, k, filters)
        return Hits(hits.ids[:30], hits.scores[:30])

    monkeypatch.setattr(Qdrant, "_search_hybrid", half)
    outcome = run(Lineup.read(_lineup(tmp_path, HYBRID)), Settings(cache=None))
    short = {row.contender.label: row.search.short for row in outcome.ran if row.search}
    assert short["drawn+qdrant-hybrid"] == 3
    assert sum(short.values()) == 3


def test_a_line_up_with_hybrid_rows_reads_back(tmp_path: Path) -> None:
    lineup = Lineup.read(_lineup(tmp_path, HYBRID))
    again = tmp_path / "again.toml"
    again.write_text(lineup_text(lineup.to_dict()))
    assert Lineup.read(again).contenders == lineup.contenders


def test_a_store_without_hybrid_search_is_refused_with_those_that_have_it(tmp_path: Path) -> None:
    with refuses(InputError, place="contender[1], search", file="own.toml") as error:
        Lineup.read(_lineup(tmp_path, HYBRID.replace('"qdrant"', '"faiss"').replace("drawn+qdrant", "drawn+faiss")))
    for name in ("lancedb", "pgvector", "qdrant"):
        assert name in str(error.value.remedy)
    assert "chroma" not in str(error.value.remedy)
