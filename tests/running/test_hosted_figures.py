"""What a hosted row shows: a p95 where it asked enough, no time that nobody took, no price that is not known."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bakeoff.lineup.lineup import Lineup
from bakeoff.results.schema import Row
from bakeoff.results.summary import summarise
from bakeoff.running.plan import plan
from bakeoff.running.runner import run
from bakeoff.running.settings import Settings

from tests.facts import ids

MINE = """
from pathlib import Path

def embed(texts):
    with (Path(__file__).parent / "asked.txt").open("a") as file:
        file.write(f"{len(texts)}\\n")
    return [[1.0 + text.count(letter) for letter in "abcdefgh"] for text in texts]
"""
HOSTED = """
[[contender]]
provider = "file:mine.py:embed"
store = "faiss"
precision = ["float32", "int8"]
options = { hosted = true, price = 2.0, query_prompt = "ask: {text}" }
"""
FUSED = '[[contender]]\nranker = "bm25"\n[[fusion]]\nof = ["embed+faiss", "bm25"]\nlabel = "both"\n'


def _lineup(folder: Path, queries: int, contenders: str = HOSTED, rounds: int = 2) -> Lineup:
    letters = "abcdefgh"
    documents = [json.dumps({"_id": f"d{n}", "title": "", "text": letters[n] * (n + 1)}) for n in range(8)]
    asked = [json.dumps({"_id": f"q{n}", "text": f"{letters[n % 8]} {n}"}) for n in range(queries)]
    (folder / "qrels").mkdir()
    (folder / "corpus.jsonl").write_text("\n".join(documents))
    (folder / "queries.jsonl").write_text("\n".join(asked))
    grades = "".join(f"q{n}\td{n % 8}\t1\n" for n in range(queries))
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\n" + grades)
    (folder / "mine.py").write_text(MINE)
    head = f'rounds = {rounds}\nmeasures = ["mrr"]\ntask = {{ format = "beir", folder = "." }}\n'
    (folder / "lineup.toml").write_text(head + contenders)
    return Lineup.read(folder / "lineup.toml")


def _rows(lineup: Lineup, folder: Path) -> dict[str, Row]:
    outcome = run(lineup, Settings(cache=folder / "vectors"))
    assert outcome.not_run == []
    return {row.label: row for row in summarise(outcome).rows}


def test_a_hosted_row_has_a_p95_and_rows_of_one_model_share_their_times(tmp_path: Path) -> None:
    """70 queries: the first is asked cold, sixty more one by one, nine in a batch; a second row pays for nothing."""
    lineup = _lineup(tmp_path, 70)
    (told,) = plan(lineup, Settings(cache=tmp_path / "vectors"))
    rows = _rows(lineup, tmp_path)
    asked = [int(line) for line in (tmp_path / "asked.txt").read_text().split()]
    assert asked.count(1) == 61
    assert (len(asked), sum(asked)) == (told.requests, 78)
    first, second = rows["embed+faiss"].latency, rows["embed@int8+faiss"].latency
    assert first is not None
    assert second is not None
    assert (first.embed.n, first.search.n, first.total.n) == (60, 140, 60)
    assert first.total.p95 is not None
    assert (second.embed, second.total.n) == (first.embed, 60)
    assert first.cold_embed_ms == second.cold_embed_ms
    assert "untimed_embedding" not in ids([*first.doubts, *second.doubts])


def test_a_fusion_of_paid_rows_has_the_times_of_their_calls(tmp_path: Path) -> None:
    lineup = _lineup(tmp_path, 70, HOSTED + FUSED)
    for kept in (False, True):
        rows = _rows(lineup, tmp_path)
        latency, part = rows["both"].latency, rows["embed+faiss"].latency
        assert latency is not None
        assert part is not None
        assert latency.embed == part.embed
        assert (latency.embed.n, latency.search.n, latency.total.n) == (60, 140, 60)
        assert (latency.kept is not None) == kept
    assert sum(int(line) for line in (tmp_path / "asked.txt").read_text().split()) == 78


def test_a_fusion_of_local_rows_counts_the_queries_that_it_embedded(tmp_path: Path) -> None:
    """Of 130 queries the first hundred are embedded anew in every round; the others are in no total."""
    local = '[[contender]]\nprovider = "fake"\nstore = "faiss"\n' + FUSED.replace("embed", "fake")
    latency = _rows(_lineup(tmp_path, 130, local, rounds=1), tmp_path)["both"].latency
    assert latency is not None
    assert (latency.embed.n, latency.search.n, latency.total.n) == (100, 130, 100)


def test_rows_of_one_local_model_show_one_embedding_time(tmp_path: Path) -> None:
    """Two rows of 20 queries in two rounds: both show the percentiles of all 80 calls, and keep 40 totals each."""
    local = '[[contender]]\nprovider = "fake"\nstore = "faiss"\nprecision = ["float32", "int8"]\n'
    local += '[[rerank]]\nof = "fake+faiss"\nprovider = "fake"\nlabel = "again"\n'
    local += '[[contender]]\nprovider = "tfidf"\nstore = "faiss"\n'
    outcome = run(_lineup(tmp_path, 20, local))
    rows = {row.label: row.latency for row in summarise(outcome).rows}
    samples = {row.contender.label: row.search.timing.embed_ns for row in outcome.ran if row.search}
    whole, bytes_, again, other = (rows[label] for label in ("fake+faiss", "fake@int8+faiss", "again", "tfidf+faiss"))
    assert whole is not None
    assert bytes_ is not None
    assert again is not None
    assert other is not None
    assert {label: len(times) for label, times in samples.items()} == dict.fromkeys(samples, 40)
    assert whole.embed == bytes_.embed == again.embed
    assert whole.embed.n == 120
    assert whole.embed.p50 is not None
    pooled = sorted(samples["fake+faiss"] + samples["fake@int8+faiss"] + samples["again"])
    assert whole.embed.p50 == pytest.approx((pooled[59] + pooled[60]) / 2e6)
    assert (whole.total.n, bytes_.total.n, again.total.n) == (40, 40, 40)
    assert other.embed.n == 40


@pytest.mark.slow
def test_a_later_run_has_the_same_cost_and_says_that_it_is_an_estimate(tmp_path: Path) -> None:
    """Nobody counts tokens here: a text has a quarter of its characters, with its prompt, and one at least."""
    lineup = _lineup(tmp_path, 70)
    documents = sum(max(1.0, (n + 1) / 4) for n in range(8))
    queries = sum((len("ask: ") + len(f"a {n}")) / 4 for n in range(70))
    expected = pytest.approx((documents + queries) * 2e-6)
    for cached in (0, 78):
        rows = _rows(lineup, tmp_path)
        for label in ("embed+faiss", "embed@int8+faiss"):
            row = rows[label]
            assert row.cost is not None
            assert row.cost.cached == cached
            assert row.cost.usd == expected
            assert row.cost.usd_per_million_documents == pytest.approx(documents / 8 * 2.0)
            assert row.cost.usd_per_thousand_queries == pytest.approx(queries / 70 * 1000 * 2e-6)
            assert row.cost.tokens_estimated
    latency = rows["embed+faiss"].latency
    assert latency is not None
    assert latency.total.n == 60
    assert latency.kept is not None


def test_documents_that_were_embedded_elsewhere_have_no_known_price(tmp_path: Path) -> None:
    import faiss
    import numpy as np

    vectors = np.eye(8, dtype=np.float32)
    index = faiss.IndexFlatIP(8)
    index.add(vectors)
    faiss.write_index(index, str(tmp_path / "there.faiss"))
    (tmp_path / "there.ids").write_text("".join(f"d{n}\n" for n in range(8)))
    store = 'store = { name = "faiss", existing = "there.faiss", id = "there.ids" }'
    existing = HOSTED.replace('store = "faiss"\nprecision = ["float32", "int8"]', store)
    rows = _rows(_lineup(tmp_path, 8, existing), tmp_path)
    (row,) = [row for row in rows.values() if row.row_type == "existing"]
    assert row.cost is not None
    assert row.cost.usd_per_million_documents is None
    assert row.cost.usd
