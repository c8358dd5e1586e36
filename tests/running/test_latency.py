"""Latency of every row: free models in each round, paid ones when first asked, and what a later run shows of these."""

from __future__ import annotations

import csv
import statistics
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest
from bakeoff.core.facts import fact
from bakeoff.lineup.lineup import Lineup
from bakeoff.report import render
from bakeoff.report.page_data import payload
from bakeoff.report.plots import charts
from bakeoff.report.words import failure_words
from bakeoff.results.picks import Limits, choose
from bakeoff.results.save import save
from bakeoff.results.schema import DETAILED, SUMMARY, Row, Summary, read_detailed, read_summary
from bakeoff.results.summary import summarise
from bakeoff.running.plan import plan
from bakeoff.running.runner import Settings, run
from bakeoff_providers import PROVIDERS

from tests.errors import says
from tests.facts import ids
from tests.wire import PROXIES, WireServer

KEYS = ("VOYAGE_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY")
MODELS = {  # the matrix of the Wikipedia evaluation framework document, and the card's services
    "nomic-embed-text": "ollama",
    "mxbai-embed-large": "ollama",
    "text-embedding-3-small": "openai",
    "gemini-embedding-001": "gemini",
    "voyage-4": "voyage",
}
FREE = ("nomic-embed-text", "mxbai-embed-large")


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    for name in KEYS:
        monkeypatch.setenv(name, "sk-none-of-yours")
    with WireServer() as server:
        yield server


def _lineup(folder: Path, wire: WireServer, models: tuple[str, ...] = tuple(MODELS), **changes: Any) -> Lineup:
    contenders = "".join(
        f'[[contender]]\nprovider = "{MODELS[model]}"\nmodel = "{model}"\nstore = ["faiss", "chroma"]\n'
        f'options = {{ base_url = "{wire.base(MODELS[model])}" }}\n'
        for model in models
    )
    (folder / "lineup.toml").write_text(f'task = "wikipedia"\nrounds = 3\n{contenders}')
    return replace(Lineup.read(folder / "lineup.toml"), **changes)


def _rows(lineup: Lineup, folder: Path, **settings: Any) -> dict[str, Row]:
    outcome = run(lineup, Settings(cache=folder / "vectors", **settings))
    assert outcome.not_run == []
    return {row.label: row for row in summarise(outcome).rows if row.ran}


def test_the_documents_matrix_is_filled_with_latency_twice_in_a_row(tmp_path: Path, wire: WireServer) -> None:
    """Five models in two stores, 20 queries, 3 rounds: 60 samples of the free ones, 19 of the paid and a cold call."""
    lineup = _lineup(tmp_path, wire)
    settings = Settings(cache=tmp_path / "vectors")
    for turn in (1, 2):
        told = plan(lineup, settings)
        wire.requests.clear()
        folder = save(run(lineup, settings), tmp_path / f"results{turn}")
        assert len(wire.embeddings()) == sum(one.requests for one in told)
        summary, detailed = read_summary(folder), read_detailed(folder)
        samples = {contender.label: contender.timing for contender in detailed.contenders}
        assert len(summary.ran) == 10
        for row in summary.ran:
            latency, timing = row.latency, samples[row.label]
            assert latency is not None
            free = row.model in FREE
            totals = timing.total_ns if free or turn == 1 else timing.kept_total_ns
            assert (latency.total.n, latency.search.n) == (60 if free else 19, 60)
            assert latency.total.p50 == pytest.approx(statistics.median(totals) / 1e6)
            assert (latency.total.p95 is not None) == free
            assert (latency.kept is not None) == (turn == 2 and not free)
        assert render(folder, charts=False) == []
        _check_files(folder, summary)
    asked = Counter(request.model for request in wire.embeddings())
    assert set(asked) == set(FREE)  # a second run pays for nothing
    assert asked["nomic-embed-text"] == 2 * (1 + 3 + 60)


def _check_files(folder: Path, summary: Summary) -> None:
    """The headline stands in the table of every file."""
    heads = (folder / "matrix.md").read_text().splitlines()
    assert any("total p50 ms" in line for line in heads)
    assert "total p50 ms" in (folder / "matrix.tex").read_text()
    assert 'data-key="p50"' in (folder / "evaluation_report.html").read_text()
    with (folder / "matrix.csv").open() as file:
        records = {record["contender"]: record for record in csv.DictReader(file)}
    content = msgspec.json.decode((folder / "matrix.json").read_bytes())
    shown = {record["contender"]: record for record in content["rows"]}
    for row in summary.ran:
        assert row.latency is not None
        assert float(records[row.label]["total p50 ms"]) == pytest.approx(row.latency.total.p50)
        assert shown[row.label]["total p50 ms"] == pytest.approx(row.latency.total.p50)
        assert bool(records[row.label]["timed earlier"]) == (row.latency.kept is not None)


def test_a_kept_time_has_its_date_and_machine_and_decides_nothing(tmp_path: Path, wire: WireServer) -> None:
    from bakeoff.core.machine import machine_name

    lineup = _lineup(tmp_path, wire, ("nomic-embed-text", "voyage-4"))
    first, second = _rows(lineup, tmp_path), _rows(lineup, tmp_path)
    before, after = first["voyage-4+faiss"].latency, second["voyage-4+faiss"].latency
    assert before is not None
    assert after is not None
    assert after.embed == before.embed
    assert after.cold_embed_ms is None
    assert before.kept is None
    assert after.kept is not None
    assert after.kept.machines == [machine_name()]
    assert after.kept.first == after.kept.last  # a day of this run
    summary = summarise(run(lineup, Settings(cache=tmp_path / "vectors")))
    again = msgspec.structs.replace
    calm = [  # whether this machine is busy is not the question
        row if row.latency is None else again(row, latency=again(row.latency, doubts=[])) for row in summary.rows
    ]
    every = choose(calm, summary.verdict, Limits(p50_ms=1e9)).feasible
    assert every == ["nomic-embed-text+faiss", "nomic-embed-text+chroma"]
    folder = save(run(lineup, Settings(cache=tmp_path / "vectors")), tmp_path / "results")
    page = payload(read_summary(folder), read_detailed(folder))
    assert [row["label"] for row in page["rows"] if row["p50"] is None] == ["voyage-4+faiss", "voyage-4+chroma"]
    assert (folder / SUMMARY).is_file()
    assert (folder / DETAILED).is_file()


def test_a_kept_time_is_marked_and_off_the_front(tmp_path: Path, wire: WireServer) -> None:
    lineup = _lineup(tmp_path, wire, ("nomic-embed-text", "voyage-4"))
    settings = Settings(cache=tmp_path / "vectors")
    run(lineup, settings)
    folder = save(run(lineup, settings), tmp_path / "results")
    chart = next(one for one in charts(read_summary(folder), read_detailed(folder)) if one.key == "quality-latency")
    (spec,) = chart.specs.values()
    points = {point["contender"]: point for values in spec["datasets"].values() for point in values if "front" in point}
    assert {label for label, point in points.items() if point["kept"]} == {"voyage-4+faiss", "voyage-4+chroma"}
    assert not any(point["front"] for point in points.values() if point["kept"])
    assert any(point["front"] for point in points.values())


def test_time_hosted_asks_again_on_purpose_within_plan_and_budget(tmp_path: Path, wire: WireServer) -> None:
    lineup = _lineup(tmp_path, wire, ("text-embedding-3-small",))
    bought = _rows(lineup, tmp_path)["text-embedding-3-small+faiss"]
    wire.requests.clear()
    settings = Settings(cache=tmp_path / "vectors", time_hosted=45)
    (told,) = plan(lineup, settings)
    assert (told.requests, told.cached) == (46, 45)  # and a call that opens the connection
    assert told.usd
    rows = _rows(lineup, tmp_path, time_hosted=45)
    assert Counter(len(request.texts) for request in wire.embeddings()) == {1: 46}
    for row in rows.values():
        assert row.latency is not None
        assert (row.latency.total.n, row.latency.kept) == (45, None)
        assert row.latency.cold_embed_ms is not None
        assert row.cost is not None
        assert bought.cost is not None
        assert row.cost.usd == pytest.approx(bought.cost.usd)  # that of the vectors
    stopped = run(lineup, Settings(cache=tmp_path / "vectors", time_hosted=45, max_cost=told.usd / 3))
    says(failure_words(stopped.not_run[0].failure))


def test_time_hosted_counts_with_the_calls_that_bring_the_vectors(tmp_path: Path, wire: WireServer) -> None:
    """Fresh: a cold call, 19 first ones, and in the 41 places left of three rounds at most so many more."""
    lineup = _lineup(tmp_path, wire, ("voyage-4",))
    settings = Settings(cache=tmp_path / "vectors", time_hosted=100)
    (told,) = plan(lineup, settings)
    rows = _rows(lineup, tmp_path, time_hosted=100)
    assert len(wire.embeddings()) == told.requests == 1 + 20 + 41
    for row in rows.values():
        assert row.latency is not None
        assert row.latency.total.n == 60
        assert row.latency.total.p95 is not None


def test_a_price_of_zero_in_the_lineup_is_timed_in_every_round(tmp_path: Path, wire: WireServer) -> None:
    lineup = _lineup(tmp_path, wire, ("voyage-4",))
    text = (tmp_path / "lineup.toml").read_text()
    (tmp_path / "lineup.toml").write_text(text.replace(" }", ", price = 0 }"))
    rows = _rows(Lineup.read(tmp_path / "lineup.toml"), tmp_path)
    latency = rows["voyage-4+faiss"].latency
    assert latency is not None
    assert latency.total.n == 60
    assert rows["voyage-4+faiss"].local  # free, and on a loopback address
    paid = _rows(lineup, tmp_path / "other")["voyage-4+faiss"]
    assert paid.latency is not None
    assert paid.latency.total.n == 19
    assert not paid.local


def test_the_plan_counts_the_calls_of_rows_that_are_made_of_free_ones(tmp_path: Path, wire: WireServer) -> None:
    """Four rows ask: two stores, a fusion of one, a second stage over the other."""
    _lineup(tmp_path, wire, ("nomic-embed-text",))
    made = '[[contender]]\nranker = "bm25"\n[[fusion]]\nof = ["nomic-embed-text+faiss", "bm25"]\n'
    made += '[[rerank]]\nof = "nomic-embed-text+chroma"\nprovider = "fake"\n'
    (tmp_path / "lineup.toml").write_text((tmp_path / "lineup.toml").read_text() + made)
    lineup = Lineup.read(tmp_path / "lineup.toml")
    told = plan(lineup, Settings(cache=tmp_path / "vectors"))[0]
    rows = _rows(lineup, tmp_path)
    alone = [request for request in wire.embeddings() if len(request.texts) == 1]
    assert len(alone) == 4 * (1 + 3 + 60)
    assert told.requests == len(wire.embeddings())
    assert all(row.latency is not None and row.latency.total.n == 60 for row in rows.values())


@pytest.mark.parametrize(
    ("url", "offline"),
    [
        ("http://127.0.0.1:11434", True),
        ("localhost", True),
        ("0.0.0.0", True),
        ("http://[::1]:11434", True),
        ("http://127.8.9.1:11434", True),
        ("http://10.0.0.7:11434", False),
        ("https://ollama.example.org", False),
    ],
)
def test_a_free_server_needs_no_network_on_a_loopback_address(url: str, offline: bool) -> None:
    assert PROVIDERS.create("ollama", base_url=url).needs_network is not offline
    assert PROVIDERS.create("ollama", base_url=url, price=0.1).needs_network  # a paid one
    assert PROVIDERS.create("openai", base_url="http://127.0.0.1:8080/v1", model="mine").needs_network  # no known price
    assert not PROVIDERS.create("openai", base_url="http://127.0.0.1:8080/v1", model="mine", price=0).needs_network


def test_ollama_on_this_machine_is_the_choice_offline(tmp_path: Path, wire: WireServer) -> None:
    lineup = _lineup(tmp_path, wire, ("nomic-embed-text", "text-embedding-3-small"))
    summary = summarise(run(lineup, Settings(cache=tmp_path / "vectors")))
    assert {row.label for row in summary.ran if row.local} == {"nomic-embed-text+faiss", "nomic-embed-text+chroma"}
    offline = choose(summary.rows, summary.verdict, Limits(offline=True))
    assert offline.feasible == ["nomic-embed-text+faiss", "nomic-embed-text+chroma"]


def test_offline_shows_the_kept_time_of_a_free_server_too(tmp_path: Path, wire: WireServer) -> None:
    lineup = _lineup(tmp_path, wire, ("nomic-embed-text",))
    _rows(lineup, tmp_path)
    wire.requests.clear()
    latency = _rows(lineup, tmp_path, offline=True)["nomic-embed-text+faiss"].latency
    assert wire.requests == []
    assert latency is not None
    assert latency.kept is not None
    assert latency.total.p50 is not None


WAVERING = """
from itertools import count

asked = count()

def embed(texts):
    call = next(asked) if len(texts) == 1 else 0
    second_round = 4 + 6 <= call < 4 + 12  # after a cold call, three to warm up, and six queries
    return [[1.0 + text.count(letter) + 9 * (second_round and letter == "b") for letter in "abcd"] for text in texts]
"""
CHANGING = """
from pathlib import Path

def embed(texts):
    newer = (Path(__file__).parent / "newer").exists()
    return [[1.0 + text.count(letter) for letter in ("dcba" if newer else "abcd")] for text in texts]
"""


def _own(folder: Path, code: str, price: float) -> Lineup:
    (folder / "mine.py").write_text(code)
    (folder / "qrels").mkdir()
    (folder / "corpus.jsonl").write_text(
        "".join(f'{{"_id": "{letter}", "title": "", "text": "{letter * 9}"}}\n' for letter in "abcd")
    )
    (folder / "queries.jsonl").write_text("".join(f'{{"_id": "q{n}", "text": "aaa {n}"}}\n' for n in range(6)))
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"q{n}\ta\t1\n" for n in range(6))
    )
    (folder / "lineup.toml").write_text(
        'rounds = 3\nmeasures = ["mrr"]\ntask = { format = "beir", folder = "." }\n[[contender]]\n'
        'provider = "file:mine.py:embed"\nstore = "faiss"\nlabel = "mine"\n'
        f'options = {{ hosted = true, price = {price}, revision = "1" }}\n'
    )
    return Lineup.read(folder / "lineup.toml")


def test_scores_of_vectors_that_differ_between_rounds_are_means_and_the_row_says_so(tmp_path: Path) -> None:
    """In two rounds the relevant document is first, in the other one second."""
    (row,) = _rows(_own(tmp_path, WAVERING, 0), tmp_path).values()
    assert row.stable is False
    assert row.measures["mrr"].mean == pytest.approx((1 + 1 / 2 + 1) / 3)
    assert "unstable" in ids(row.warnings)


def test_a_server_whose_model_changed_is_named(tmp_path: Path) -> None:
    lineup = _own(tmp_path, CHANGING, 0)
    (before,) = _rows(lineup, tmp_path).values()
    (same,) = _rows(lineup, tmp_path).values()
    assert same.warnings == before.warnings
    (tmp_path / "newer").touch()
    (after,) = _rows(lineup, tmp_path).values()
    assert [warning for warning in after.warnings if warning not in before.warnings] == [fact("changed_vectors")]
