"""A second stage behind any row: real SDKs against the wire server, a real ONNX graph, functions, and the fake."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from bakeoff.calls.retry import RetryPolicy
from bakeoff.evaluation.measures import Measure
from bakeoff.lineup.lineup import Lineup, lineup_text
from bakeoff.report.words import failure_words
from bakeoff.results.picks import Limits, is_within
from bakeoff.results.summary import summarise
from bakeoff.running.plan import plan
from bakeoff.running.runner import Outcome, Settings, run
from bakeoff.search.rerankers import RERANKERS, Reranked, Reranker, check_scores
from bakeoff_providers.errors import CallFailed, EmbeddingFailed, InputError, StoreError, Unavailable
from scipy.stats import gmean

from tests.errors import refuses, says
from tests.facts import section
from tests.hub_server import hub_server
from tests.native_task import TEXTS, native_files, write_lineup
from tests.services import KEYS, RANKING
from tests.wire import PROXIES, Fault, Kind, WireServer

BASE = '[[contender]]\nprovider = "tfidf"\nstore = "faiss"\n'
POLICY = RetryPolicy(attempts=3, first_wait=0.001, longest_wait=0.01)


def _lineup(folder: Path, contenders: str) -> Lineup:
    return Lineup.read(
        write_lineup(folder, native_files(), head='measures = ["mrr"]\nrounds = 2', contenders=contenders)
    )


def _second(outcome: Outcome, label: str) -> dict[str, tuple[str, ...]]:
    assert outcome.not_run == []
    row = next(row for row in outcome.ran if row.contender.label == label)
    return {query: ranking.ids for query, ranking in row.rankings.items()}


@pytest.fixture
def wire(monkeypatch: pytest.MonkeyPatch) -> Iterator[WireServer]:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    for key in KEYS:
        monkeypatch.setenv(key, "sk-secret")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with WireServer() as server:
        yield server


@pytest.mark.parametrize("name", RANKING)
def test_hosted_rerankers_order_candidates_are_cached_and_cost(tmp_path: Path, wire: WireServer, name: str) -> None:
    model = RERANKERS.get(name).default_model
    lineup = _lineup(
        tmp_path,
        f'{BASE}rerank = {{ provider = "{name}", model = "{model}", '
        f'options = {{ base_url = "{wire.base(name)}", price = 2.0 }} }}\n',
    )
    label = f"tfidf+faiss+{model}"
    settings = Settings(cache=tmp_path / "vectors", policy=POLICY)
    planned = next(entry for entry in plan(lineup, settings) if entry.rows == (label,))
    wire.faults.append(Fault(status=429, headers={"Retry-After": "0"}))
    outcome = run(lineup, settings)
    asked = [request for request in wire.requests if request.provider == f"{name} rerank"]
    assert len(asked) == 1 + planned.requests == 4  # the refused one, then one for each query and never again
    texts = {str(number): f"{title} {text}" for number, (title, text) in TEXTS.items()}
    for query in outcome.task.queries:
        scores = {d: wire.vectors_of(model, query.text, text)[0, 0] for d, text in texts.items()}
        assert list(_second(outcome, label)[query.id]) == sorted(scores, key=lambda document: -scores[document])
    row = next(row for row in summarise(outcome).rows if row.label == label)
    assert row.cost is not None
    assert row.latency is not None
    assert row.latency.rerank is not None
    assert row.latency.rerank.n == 2  # q2 and q3 in the first round; q1 was asked cold
    expected = (
        3 * 2.0 / 1000 if name == "cohere" else sum(-(-len(text) // 4) for text in texts.values()) * 3 * 2.0 / 1e6
    )
    assert row.cost.usd == pytest.approx(expected)
    assert row.cost.usd_per_million_documents == 0
    assert row.cost.usd_per_thousand_queries == pytest.approx(expected / 3 * 1000)
    assert row.local is False
    again = run(lineup, settings)
    assert len([request for request in wire.requests if request.provider == f"{name} rerank"]) == 4
    assert _second(again, label) == _second(outcome, label)
    later = next(row for row in summarise(again).rows if row.label == label)
    assert later.cost is not None
    assert later.cost.usd == pytest.approx(expected)  # what it cost when it was bought
    assert later.cost.usd_per_thousand_queries == row.cost.usd_per_thousand_queries
    assert later.cost.tokens_estimated == row.cost.tokens_estimated
    assert later.latency is not None
    assert later.latency.rerank == row.latency.rerank  # q2 and q3 as they were timed then
    assert later.latency.total.n == 2
    assert later.latency.kept is not None
    assert later.latency.kept.stages == ["rerank"]
    assert run(lineup, Settings(cache=tmp_path / "vectors", offline=True)).not_run == []
    assert "sk-secret" not in str(lineup.to_dict())


def test_a_second_stage_without_a_price_leaves_the_row_without_one(tmp_path: Path, wire: WireServer) -> None:
    entry = f'rerank = {{ provider = "cohere", options = {{ base_url = "{wire.base("cohere")}" }} }}\n'
    outcome = run(_lineup(tmp_path, BASE + entry), Settings(policy=POLICY))
    row = next(row for row in summarise(outcome).rows if row.row_type == "reranked")
    assert row.cost is not None
    assert (row.cost.usd, row.cost.usd_per_million_documents, row.cost.usd_per_thousand_queries) == (None, None, None)
    assert not is_within(row, Limits(usd_per_million=1e9))
    assert is_within(row, Limits())


def test_a_budget_and_a_failing_server_cost_the_row_only(tmp_path: Path, wire: WireServer) -> None:
    entry = f'rerank = {{ provider = "cohere", options = {{ base_url = "{wire.base("cohere")}", price = 2.0 }} }}\n'
    outcome = run(_lineup(tmp_path, BASE + entry), Settings(max_cost=0.003, policy=POLICY))
    assert [row.contender.label for row in outcome.ran] == ["tfidf+faiss"]
    says(failure_words(outcome.not_run[0].failure), "$0.00")
    wire.faults.extend([Fault(status=500)] * 3)
    outcome = run(_lineup(tmp_path, BASE + entry), Settings(policy=POLICY))
    assert "HTTP 500" in failure_words(outcome.not_run[0].failure)


def test_with_a_budget_nobody_is_asked_whose_price_is_unknown(tmp_path: Path, wire: WireServer) -> None:
    entry = f'rerank = {{ provider = "cohere", options = {{ base_url = "{wire.base("cohere")}" }} }}\n'
    openai = (
        '[[contender]]\nprovider = "openai"\nmodel = "unlisted"\nstore = "faiss"\n'
        f'options = {{ base_url = "{wire.base("openai")}", dimensions = 8 }}\n'
    )
    outcome = run(_lineup(tmp_path, BASE + entry + openai), Settings(max_cost=100.0, policy=POLICY))
    assert [row.contender.label for row in outcome.ran] == ["tfidf+faiss"]
    assert [request for request in wire.requests if request.method == "POST"] == []  # the list of models is free
    for row in outcome.not_run:
        says(failure_words(row.failure), "--max-cost")


def test_all_runs_of_one_command_share_one_budget(tmp_path: Path, wire: WireServer) -> None:
    entry = f'rerank = {{ provider = "cohere", options = {{ base_url = "{wire.base("cohere")}", price = 2.0 }} }}\n'
    settings = Settings(max_cost=0.009, policy=POLICY)  # of three queries at two tenths of a cent: once, not twice
    lineup = _lineup(tmp_path, BASE + entry)
    assert run(lineup, settings).not_run == []
    (lost,) = run(lineup, replace(settings, sample_documents=None)).not_run
    says(failure_words(lost.failure), "$0.009")
    assert settings.budget is not None
    assert settings.budget.spent <= 0.009


FAULTS: list[Kind] = [
    "duplicate", "twice", "text_index", "boolean", "text", "nan", "stray_nan", "bom", "too_few", "wrong_shape",
    "null", "huge",
]  # fmt: skip


@pytest.mark.parametrize("name", RANKING)
def test_hosted_scores_are_checked_before_they_are_believed(wire: WireServer, name: str) -> None:
    with closing(RERANKERS.create(name, base_url=wire.base(name))) as reranker:
        _check_answers(wire, reranker, name)
    with closing(RERANKERS.create(name, base_url=wire.base(name), timeout=0.4)) as slow:
        wire.faults.append(Fault(kind="drip", seconds=0.05))
        with pytest.raises(CallFailed) as late:
            slow.rank("a query", ["one", "two", "three"])
        assert (late.value.status, late.value.retryable) == (None, True)


def _check_answers(wire: WireServer, reranker: Reranker, name: str) -> None:
    documents = ["one", "two", "three"]
    expected = [(row[0] + 1) / 2 for row in wire.vectors_of(reranker.model, "a query", *documents)]
    for count, kind in enumerate(FAULTS, start=1):
        wire.faults.append(Fault(kind=kind))
        with refuses(EmbeddingFailed, name, str(reranker.model)):
            reranker.rank("a query", documents)
        assert len(wire.requests) == count
    for kind in ("reversed", "text_tokens", "negative_tokens"):
        wire.faults.append(Fault(kind=kind))
        answer = reranker.rank("a query", documents)
        assert answer.scores == pytest.approx(expected, abs=1e-6)
        if kind != "reversed":
            assert answer.tokens is None
    for kind in ("drop", "broken", "truncated", "html"):
        wire.faults.append(Fault(kind=kind))
        with pytest.raises(CallFailed) as caught:
            reranker.rank("a query", documents)
        assert caught.value.retryable


@pytest.mark.parametrize("score", [1e300, float("inf"), float("nan")])
@pytest.mark.filterwarnings("error::RuntimeWarning")  # numpy's, of an overflow
def test_scores_that_are_no_numbers_in_the_cache_are_refused(score: float) -> None:
    with refuses(StoreError):
        check_scores(Reranked([score, 1.0]), ["a", "b"], "m")


def test_scores_that_were_refused_are_not_cached(tmp_path: Path, wire: WireServer) -> None:
    entry = f'rerank = {{ provider = "voyage", options = {{ base_url = "{wire.base("voyage")}" }} }}\n'
    lineup, settings = _lineup(tmp_path, BASE + entry), Settings(cache=tmp_path / "vectors", policy=POLICY)
    wire.faults.append(Fault(kind="twice"))
    (lost,) = run(lineup, settings).not_run
    says(failure_words(lost.failure), "4 results", "3 documents")
    (lost,) = run(lineup, Settings(cache=tmp_path / "vectors", offline=True)).not_run
    says(failure_words(lost.failure), "--offline", "rerank-2.5")
    assert run(lineup, settings).not_run == []


def test_the_fake_and_functions_rerank_and_the_gain_is_told(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def rerank(query, documents):\n    return [-len(document) for document in documents]\n"
        "def few(query, documents):\n    return [1.0]\n"
    )
    lineup = _lineup(
        tmp_path,
        '[[contender]]\nprovider = "fake"\nstore = "faiss"\n'
        'rerank = [{ provider = "fake", depth = 3 }, { provider = "file:mine.py:rerank", depth = 2 }]\n'
        '[[contender]]\nranker = "bm25"\n[[fusion]]\nof = ["fake", "bm25"]\nlabel = "both"\n'
        '[[rerank]]\nof = "both"\nprovider = "fake"\n'
        '[[rerank]]\nof = "bm25"\nprovider = "file:mine.py:rerank"\ndepth = 2\n'
        '[[rerank]]\nof = "bm25"\nprovider = "file:mine.py:few"\n',
    )
    outcome = run(lineup)
    assert [row.contender.label for row in outcome.ran] == [
        "fake+faiss", "bm25", "both", "fake+faiss+fake", "fake+faiss+rerank", "both+fake", "bm25+rerank",
    ]  # fmt: skip
    says(failure_words(outcome.not_run[0].failure), "1 scores")
    ranked = next(row for row in outcome.ran if row.contender.label == "fake+faiss+fake").rankings
    assert ranked["q1"].ids[0] == "1"  # the only document with the query's word
    first = next(row for row in outcome.ran if row.contender.label == "fake+faiss").rankings
    shorter = next(row for row in outcome.ran if row.contender.label == "fake+faiss+rerank").rankings
    for query, ranking in shorter.items():  # two are put in order, the third stays behind them
        assert set(ranking.ids[:2]) == set(first[query].ids[:2])
        assert ranking.ids[2:] == first[query].ids[2:]
        assert list(ranking.scores) == sorted(ranking.scores, reverse=True)
    words = next(row for row in outcome.ran if row.contender.label == "bm25+rerank").rankings
    assert {ranking.matched for ranking in words.values()} == {2}  # both were scored; what follows matched nothing
    figures = outcome.extras.figures["second_stage"]["fake+faiss+fake"]
    before = np.mean(list(outcome.scores["fake+faiss"]["mrr"]))
    after = np.mean(list(outcome.scores["fake+faiss+fake"]["mrr"]))
    assert figures["gain"] == pytest.approx(after - before)
    assert figures["gain_per_ms"] == pytest.approx(figures["gain"] / figures["median_ms"])
    table = section(outcome.extras.sections, "second_stage")
    assert len(table.rows) == 4
    assert list(table.rows[0][1:4]) == [pytest.approx(one) for one in (before, after, after - before)]
    logs = run(replace(lineup, primary=Measure.parse("gm_map")))
    figures = logs.extras.figures["second_stage"]["fake+faiss+fake"]
    for key, label in (("before", "fake+faiss"), ("after", "fake+faiss+fake")):
        scores = next(row for row in logs.ran if row.contender.label == label).scores[logs.lineup.primary]
        assert figures[key] == pytest.approx(gmean(np.exp(scores)))  # no logarithm
    assert figures["gain"] == pytest.approx(figures["after"] - figures["before"])
    known = [one for one in logs.extras.figures["second_stage"].values() if one["low"] is not None]
    assert known
    assert all(-one["before"] <= one["low"] <= one["gain"] <= one["high"] for one in known)
    (tmp_path / "again.toml").write_text(lineup_text(lineup.to_dict()))
    assert Lineup.read(tmp_path / "again.toml").contenders == lineup.contenders
    narrowed = lineup.narrow(["both+fake"])
    assert {"fake+faiss", "bm25", "both", "both+fake"} <= {c.label for c in narrowed.contenders}


def test_a_reranker_reads_the_field_of_its_first_stage(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from pathlib import Path\n"
        "def rerank(query, documents):\n"
        "    with (Path(__file__).parent / 'read.txt').open('a') as file:\n"
        "        file.writelines(f'{document}\\n' for document in documents)\n"
        "    return [1.0] * len(documents)\n"
    )
    titles, whole = {"Copper", "Boats", "Trees"}, {"Copper copper mine", "Boats sailing lake", "Trees forest trail"}
    inside, rerank = 'rerank = { provider = "file:mine.py:rerank" }\n', 'provider = "file:mine.py:rerank"\n'
    bm25, fusion = '[[contender]]\nranker = "bm25"\n', '[[fusion]]\nof = ["tfidf", "bm25"]\nlabel = "both"\n'
    for contenders, read in (
        (f'{BASE}field = "title"\n{inside}', titles),
        (f'{bm25}field = "title"\n[[rerank]]\nof = "bm25"\n{rerank}', titles),
        (f"{BASE}{inside}", whole),
        (f'{BASE}field = "title"\n{bm25}field = "text"\n{fusion}[[rerank]]\nof = "both"\n{rerank}', whole),
    ):
        (tmp_path / "read.txt").unlink(missing_ok=True)
        assert run(_lineup(tmp_path, contenders)).not_run == []
        assert set((tmp_path / "read.txt").read_text().splitlines()) == read


def _write_cross_encoder(folder: Path) -> None:
    """A graph of one line: the logit is the number of tokens that are not padding."""
    import onnx
    from onnx import TensorProto, helper
    from tokenizers import Tokenizer, models, pre_tokenizers

    nodes = [
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("ReduceSum", ["mask", "axis"], ["logits"], keepdims=1),
    ]
    shape = ["pairs", "tokens"]
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, shape) for name in ("input_ids", "attention_mask")]
    outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["pairs", 1])]
    axis = helper.make_tensor("axis", TensorProto.INT64, [1], [1])
    nodes.append(helper.make_node("Identity", ["input_ids"], ["unused"]))
    graph = helper.make_graph(nodes, "pairs", inputs, outputs, [axis])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    folder.mkdir()
    onnx.save(model, str(folder / "model.onnx"))
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))


def test_a_cross_encoder_from_a_folder_runs_here(tmp_path: Path) -> None:
    _write_cross_encoder(tmp_path / "counter")
    reranker = RERANKERS.create("cross_encoder", model=str(tmp_path / "counter"))
    assert reranker.rank("a query", ["one", "one two three", "one two"]).scores == [3.0, 5.0, 4.0]
    lineup = _lineup(tmp_path, f'{BASE}rerank = {{ provider = "cross_encoder", model = "counter" }}\n')
    outcome = run(lineup)
    assert outcome.not_run == []
    assert len(next(row for row in outcome.ran if row.contender.row_type == "reranked").rankings["q1"]) == 3
    (lost,) = run(_lineup(tmp_path, f'{BASE}rerank = {{ provider = "cross_encoder", model = "nowhere" }}\n')).not_run
    says(failure_words(lost.failure), "model.onnx", "tokenizer.json")


def test_a_cross_encoder_by_its_name_on_the_hub_is_fetched_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    _write_cross_encoder(tmp_path / "counter")
    files = {f"onnx/{name}": (tmp_path / "counter" / name).read_bytes() for name in ("model.onnx",)}
    files |= {"tokenizer.json": (tmp_path / "counter" / "tokenizer.json").read_bytes(), "pytorch_model.bin": b"large"}
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    lineup = _lineup(tmp_path, f'{BASE}rerank = {{ provider = "cross_encoder", model = "someone/counter" }}\n')
    with hub_server("someone/counter", files) as (endpoint, asked):
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
        (lost,) = run(lineup, Settings(offline=True)).not_run
        says(failure_words(lost.failure), "someone/counter")
        assert asked == []
        assert "tfidf+faiss+counter" in [row.contender.label for row in run(lineup).ran]
        fetched = {path.rpartition("/resolve/main/")[2] for path in asked}
        assert fetched == {"onnx/model.onnx", "tokenizer.json", "onnx/model.onnx_data"}
    again = RERANKERS.create("cross_encoder", model="someone/counter")  # the server is gone, the cache is here
    again.load(offline=True)
    assert (again.model, again.rank("a query", ["one two"]).scores) == ("someone/counter", [4.0])
    with hub_server("someone/empty", {"tokenizer.json": b"{}"}) as (endpoint, asked):
        monkeypatch.setenv("HF_ENDPOINT", endpoint)
        for name, said in (("someone/empty", "ONNX"), ("someone/none", "`repo_id`")):
            with refuses(Unavailable, said):
                RERANKERS.create("cross_encoder", model=name).load()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'{BASE}rerank = {{ provider = "coherre" }}\n', "unknown reranker 'coherre'"),
        (f'{BASE}rerank = {{ provider = "fake", depth = 0 }}\n', "tfidf+faiss, depth"),
        (
            f'{BASE}rerank = {{ provider = "fake" }}\n[[rerank]]\nof = "tfidd"\nprovider = "fake"\n',
            "'tfidd'",
        ),
        (
            f'{BASE}rerank = {{ provider = "fake", options = {{ size = 3 }} }}\n',
            "'size'",
        ),
    ],
)
def test_what_is_wrong_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with refuses(InputError, said, file="own.toml"):
        _lineup(tmp_path, text)


RERANKING = """
import sys, time
from pathlib import Path
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Query
from bakeoff.embedding.cache import VectorCache
from bakeoff.calls.retry import RetryPolicy
from bakeoff.systems.reranked import RerankedSearcher
from bakeoff.search.rerankers import Reranked, Reranker
from bakeoff.search.answer import Answer, Searcher

class First(Searcher):
    def ask(self, query):
        return Answer(Ranking(tuple(map(str, range(20))), tuple(-float(n) for n in range(20))), 1)

class Hosted(Reranker):
    name = default_model = model = "hosted"
    def rank(self, query, documents):
        with open(sys.argv[2], "ab", buffering=0) as log:
            log.write(b"".join(f"{query} {document}\\n".encode() for document in documents))
        time.sleep(0.03)
        return Reranked([float(document) for document in documents], 1)

space, depth = VectorCache(Path(sys.argv[1])).space({"reranker": "hosted"}), int(sys.argv[3])
texts = {str(number): str(number) for number in range(20)}
searcher = RerankedSearcher(First(), Hosted(), depth, texts, RetryPolicy(), space)
for number in range(25):
    answer = searcher.ask(Query(id=str(number), text=f"q{number}"))
    assert answer.ranking.ids[:depth] == tuple(map(str, reversed(range(depth)))), answer.ranking
print(searcher.usage.asked - searcher.usage.cached, searcher.usage.cached)
"""


def test_two_processes_at_once_pay_for_each_pair_once(tmp_path: Path) -> None:
    log = tmp_path / "log"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RERANKING, str(tmp_path / "cache"), str(log), depth],
            stdout=subprocess.PIPE,
            text=True,
        )
        for depth in ("20", "12", "20")
    ]
    said = [process.communicate(timeout=60)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    asked = Counter(log.read_text().splitlines())
    assert len(asked) == 25 * 20
    assert set(asked.values()) == {1}
    assert [int(pairs) + int(cached) for pairs, cached in said] == [25 * 20, 25 * 12, 25 * 20]
    assert sum(int(pairs) for pairs, _ in said) == 25 * 20
