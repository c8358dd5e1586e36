"""Late interaction: MaxSim against loops by hand, the ragged cache, both stores, and rows of a run on real weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from bakeoff.core.facts import fact
from bakeoff.core.filters import Where
from bakeoff.core.progress import silent
from bakeoff.core.task import Query
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.chunking import Chunk
from bakeoff.extensions.late_interaction import token_rows
from bakeoff.extensions.late_interaction.row import TokenSearcher
from bakeoff.extensions.late_interaction.stores import TOKEN_STORES, Exact, maxsim, maxsim_all
from bakeoff.extensions.late_interaction.token_rows import TokenRows, embed_tokens, storage_bill
from bakeoff.lineup.lineup import Lineup, lineup_text
from bakeoff.report.words import failure_words
from bakeoff.running.plan import plan
from bakeoff.running.runner import Settings, run
from bakeoff.search.hits import Hits
from bakeoff.search.index import Index
from bakeoff.search.loss import NotExact, check_exact
from bakeoff.search.rerankers import RERANKERS
from bakeoff_providers.base import EmbeddingBatch, ModelCard, Provider, Role, TokenBatch, Vectors
from bakeoff_providers.errors import InputError
from bakeoff_providers.granite import Granite
from bakeoff_providers.minilm import MiniLM
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from tests.errors import refuses, says
from tests.facts import ids
from tests.native_task import native_files, write_lineup
from tests.providers.real_weights import require

NUMBERS = st.floats(-1, 1, width=32)


class Letters(Provider):
    """A letter is a token, a vector of four numbers drawn by the letter: what a text gives can be written down."""

    name = "letters"
    default_model = "letters"
    local = True

    def __init__(self) -> None:
        self.card = ModelCard(name="letters", dimensions=4, context=9)
        self.asked: list[str] = []

    def code(self) -> dict[str, str]:
        return {}

    def embed(self, texts: object, role: Role) -> EmbeddingBatch:
        raise NotImplementedError

    def embed_tokens(self, texts: Sequence[str], role: Role) -> TokenBatch:
        self.asked += texts
        vectors = [np.stack([letter(mark) for mark in text]) for text in texts]
        return TokenBatch(vectors, tokens=sum(map(len, texts)))


class Given(Letters):
    """Vectors of 32 numbers, by the name of the document."""

    def __init__(self, vectors: dict[str, Vectors]) -> None:
        super().__init__()
        self.card, self.vectors = ModelCard(name="given", dimensions=32, context=9), vectors

    def embed_tokens(self, texts: Sequence[str], role: Role) -> TokenBatch:
        return TokenBatch([self.vectors[text] for text in texts], tokens=len(texts))


def letter(mark: str) -> Vectors:
    vector = np.random.default_rng(ord(mark)).standard_normal(4).astype(np.float32)
    return np.asarray(vector / np.linalg.norm(vector), dtype=np.float32)


def by_hand(query: Vectors, document: Vectors) -> float:
    """For each token of the query the best match, added up: three plain loops."""
    total = 0.0
    for asked in query:
        best = -np.inf
        for token in document:
            best = max(best, sum(float(a) * float(b) for a, b in zip(asked, token, strict=True)))
        total += best
    return total


@settings(deadline=None)
@given(
    query=arrays.arrays(np.float32, st.tuples(st.integers(1, 5), st.just(3)), elements=NUMBERS),
    documents=st.lists(
        arrays.arrays(np.float32, st.tuples(st.integers(1, 6), st.just(3)), elements=NUMBERS), min_size=1, max_size=6
    ),
)
def test_maxsim_is_the_sum_of_best_matches(query: Vectors, documents: list[Vectors]) -> None:
    begins = np.cumsum([0, *map(len, documents)])[:-1]
    scores = maxsim(query, np.concatenate(documents), begins)
    assert scores == pytest.approx([by_hand(query, document) for document in documents], abs=1e-5)


def test_maxsim_of_three_documents_on_paper() -> None:
    """East and north ask. East alone: 1 + 0. East and north: 1 + 1. Half way: .8 + .6."""
    query = np.array([[1, 0], [0, 1]], dtype=np.float32)
    tokens = np.array([[1, 0], [1, 0], [0, 1], [0.8, 0.6]], dtype=np.float32)
    assert maxsim(query, tokens, np.array([0, 1, 3])).tolist() == pytest.approx([1, 2, 1.4])
    assert maxsim(query, tokens[:0], np.array([], dtype=np.int64)).tolist() == []


def _rows(texts: list[str], folder: Path, provider: Letters | None = None) -> TokenRows:
    return embed_tokens(provider or Letters(), texts, VectorCache(folder), folder / "none", silent).rows


def test_the_cache_gives_each_text_its_own_rows(tmp_path: Path) -> None:
    texts = ["abc", "d", "abc", "zebra"]
    provider = Letters()
    rows = _rows(texts, tmp_path, provider)
    rows.space.close()
    again = Letters()
    second = embed_tokens(again, ["zebra", "new", "abc"], VectorCache(tmp_path), tmp_path / "none")
    assert (provider.asked, again.asked, second.asked, second.texts) == (["abc", "d", "zebra"], ["new"], 1, 3)
    for number, text in enumerate(["zebra", "new", "abc"]):
        vectors, begins = second.rows.of([number])
        assert begins.tolist() == [0]
        assert vectors == pytest.approx(np.stack([letter(mark) for mark in text]))
    assert storage_bill(second.rows).arguments == {  # 5 + 3 + 3 letters, 4 float32 each
        "vectors": 11, "texts": 3, "size": 176, "size_of_one_each": 48,
    }  # fmt: skip
    second.rows.space.close()


def test_pruning_the_cache_keeps_what_belongs_together(tmp_path: Path) -> None:
    for text in ("one", "two", "three"):
        _rows([text], tmp_path).space.close()  # a shard each
    VectorCache(tmp_path).prune()
    provider = Letters()
    rows = _rows(["three", "one"], tmp_path, provider)
    assert provider.asked == []
    assert rows.of([0, 1])[0] == pytest.approx(np.stack([letter(mark) for mark in "threeone"]))
    rows.space.close()


def test_blocks_hold_every_text_once_and_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["abcdef", "g", "hi", "jklm", "n"]
    rows = _rows(texts, tmp_path)
    query = np.stack([letter(mark) for mark in "gone"])
    expected = [by_hand(query, np.stack([letter(mark) for mark in text])) for text in texts]
    for vectors in (1, 2, 5, 100):
        monkeypatch.setattr(token_rows, "BLOCK_BYTES", 16 * vectors)
        numbers = [(first, len(begins)) for first, _, begins in rows.blocks()]
        assert [first for first, _ in numbers] == np.cumsum([0, *(count for _, count in numbers)])[:-1].tolist()
        assert maxsim_all(query, rows) == pytest.approx(expected, abs=1e-5)
    rows.space.close()


@pytest.mark.parametrize("name", ["exact", "lancedb"])
def test_stores_answer_maxsim_and_obey_filters(name: str, tmp_path: Path) -> None:
    texts = ["abcdef", "g", "hi", "jklm", "n", "gone"]
    rows, query = _rows(texts, tmp_path / "cache"), np.stack([letter(mark) for mark in "gone"])
    (tmp_path / "store").mkdir()
    store = TOKEN_STORES.create(name, folder=tmp_path / "store")
    store.fill(texts, rows, [{"short": len(text) < 3} for text in texts])
    scores = {text: by_hand(query, np.stack([letter(mark) for mark in text])) for text in texts}
    hits = store.search(query, 3)
    assert dict(zip(hits.ids, hits.scores, strict=True)) == pytest.approx(
        dict(sorted(scores.items(), key=lambda pair: -pair[1])[:3]), abs=1e-5
    )
    assert sorted(store.search(query, 9, {"short": True}).ids) == ["g", "hi", "n"]
    assert store.size_bytes() >= 4 * 4 * rows.count
    store.close()
    rows.space.close()


@pytest.mark.parametrize(
    ("index", "refined", "lowest"), [("none", 1, 1.0), ("IVF_SQ", 1, 0.8), ("IVF_RQ", 5, 0.8), ("IVF_PQ", 5, 0.8)]
)
def test_lancedbs_indexes_answer_maxsim_and_most_of_what_is_nearest(
    index: str, refined: int, lowest: float, tmp_path: Path
) -> None:
    """200 documents of 3 to 12 token vectors each, near one of 20 centres: more than a code book needs (256)."""
    random = np.random.default_rng(5)
    centres = random.standard_normal((20, 32))

    def drawn(number: int, count: int) -> Vectors:
        vectors = centres[(number + np.arange(count)) % 20] + 0.5 * random.standard_normal((count, 32))
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)

    documents = {f"d{number}": drawn(number, 3 + number % 10) for number in range(200)}
    rows = _rows(list(documents), tmp_path / "cache", Given(documents))
    assert rows.count > 256
    store = TOKEN_STORES.create("lancedb", folder=tmp_path / "store", index=index, refine_factor=refined)
    store.fill(list(documents), rows, [{"even": number % 2 == 0} for number in range(200)])
    assert store.exact == (index == "none")
    recalls = []
    for number in range(5):
        query = drawn(number, 6)
        scores = {name: by_hand(query, vectors) for name, vectors in documents.items()}
        hits = store.search(query, 10)
        assert dict(zip(hits.ids, hits.scores, strict=True)) == pytest.approx(
            {name: scores[name] for name in hits.ids}, abs=1e-4
        )
        recalls.append(len(set(hits.ids) & set(sorted(scores, key=lambda name: -scores[name])[:10])) / 10)
        assert all(int(name[1:]) % 2 == 0 for name in store.search(query, 5, {"even": True}).ids)
    assert np.mean(recalls) >= lowest
    store.close()
    rows.space.close()


class Forgetful(Exact):
    """A store whose index has lost one document."""

    exact = False

    def search(self, query: Vectors, k: int, where: Where | None = None) -> Hits:
        hits = super().search(query, k + 1, where)
        kept = [(item, score) for item, score in zip(hits.ids, hits.scores, strict=True) if item != "gone"][:k]
        return Hits([item for item, _ in kept], [score for _, score in kept])


@pytest.mark.parametrize(("where", "recall"), [({}, 5 / 6), ({"short": False}, 2 / 3), ({"short": True}, 1)])
def test_what_an_index_of_tokens_lost_is_measured_by_exact_maxsim(
    where: dict[str, bool], recall: float, tmp_path: Path
) -> None:
    texts = ["abcdef", "g", "hi", "jklm", "n", "gone"]
    rows = _rows(texts, tmp_path / "cache")
    metadata = {text: {"short": len(text) < 3} for text in texts}
    index = Index([Chunk(text, text, "") for text in texts], 10, metadata=metadata)
    store = Forgetful(folder=tmp_path)
    store.fill(texts, rows, list(metadata.values()))
    searcher, query = TokenSearcher(Letters(), index, store, rows), Query("q", "gone", where=where)
    retrieved = searcher.ask(query).ranking
    exact = searcher.exact_search()
    assert exact is not None
    asked = np.stack([letter(mark) for mark in "gone"])
    passing = [text for text in texts if not where or metadata[text] == where]
    by_score = sorted(passing, key=lambda text: -by_hand(asked, np.stack([letter(mark) for mark in text])))
    assert exact.rankings([query])["q"].ids == tuple(by_score)
    assert exact.nearness(query, retrieved).recall == pytest.approx(recall)
    store.exact = True
    claimed = searcher.exact_search()
    assert claimed is not None
    if recall == 1:
        check_exact(claimed, [query], {"q": retrieved})
    else:
        with pytest.raises(NotExact, match="gone"):
            check_exact(claimed, [query], {"q": retrieved})
    rows.space.close()


@pytest.mark.parametrize("kind", [MiniLM, Granite])
def test_token_vectors_are_those_before_pooling(kind: type[MiniLM] | type[Granite]) -> None:
    """A text of no words keeps its two ends, and the first of them is what Granite pools."""
    require(kind.name)
    provider = kind()
    texts = ["a copper mine in the mountains", "", "lake"]
    batch = provider.embed_tokens(texts, Role.DOCUMENT)
    assert [len(rows) for rows in batch.vectors] == [6, 2, 1]  # a word is a token here; no word keeps the two ends
    for rows in batch.vectors:
        assert np.linalg.norm(rows, axis=1) == pytest.approx(1, abs=1e-5)
    assert batch.tokens == 6 + 2 + 1 + 2 + 2
    if kind is Granite:
        assert batch.vectors[1][0] == pytest.approx(provider.embed([""], Role.DOCUMENT).vectors[0], abs=1e-5)
    alone = provider.embed_tokens(texts[2:], Role.QUERY).vectors[0]
    assert batch.vectors[2] == pytest.approx(alone, abs=1e-5)
    provider.close()


ROWS = """
[[contender]]
ranker = "bm25"
[[contender]]
provider = "minilm"
vectors = "tokens"
store = ["exact", "lancedb"]
[[rerank]]
of = "bm25"
provider = "minilm"
vectors = "tokens"
depth = 2
"""


def test_rows_over_all_and_over_a_first_stage(tmp_path: Path) -> None:
    require("minilm")
    lineup = Lineup.read(write_lineup(tmp_path, native_files(), head='measures = ["mrr"]\nrounds = 1', contenders=ROWS))
    labels = ["bm25", "minilm-tokens+exact", "minilm-tokens+lancedb", "bm25+tokens"]
    assert [contender.label for contender in lineup.contenders] == labels
    (tmp_path / "again.toml").write_text(lineup_text(lineup.to_dict()), encoding="utf-8")
    assert Lineup.read(tmp_path / "again.toml").contenders == lineup.contenders
    cache = Settings(cache=tmp_path / "vectors")
    assert plan(lineup, cache)[0].note == fact("local_token_vectors")
    outcome = run(lineup, cache)
    assert outcome.not_run == []
    rows = {row.contender.label: row for row in outcome.ran}
    exact, lance = (rows[label].rankings for label in labels[1:3])
    assert {query: ranking.ids for query, ranking in exact.items()} == {
        query: ranking.ids for query, ranking in lance.items()
    }
    assert (exact["q1"].ids[0], exact["q2"].ids[0]) == ("1", "2")  # copper, lake
    provider = MiniLM()
    whole = next(document for document in outcome.task.documents if document.id == "1").whole()
    tokens = provider.embed_tokens(["copper", whole], Role.QUERY).vectors
    assert exact["q1"].scores[0] == pytest.approx(by_hand(*tokens), abs=1e-4)
    for label in labels[1:]:
        search = rows[label].search
        assert search is not None
        assert ids(search.build.notes) == ["token_vectors"]
    second = rows["bm25+tokens"].search
    assert second is not None
    assert second.timing.rerank_ns
    again = run(lineup, cache)
    (usage,) = [row.search.embedding.usage for row in again.ran if row.contender.label == labels[1]]  # type: ignore[union-attr]
    assert usage[Role.DOCUMENT].cached == usage[Role.DOCUMENT].asked == 3


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('provider = "minilm"\nvectors = "tokens"\nstore = "faiss"', "'faiss'"),
        ('provider = "minilm"\nvectors = "tokens"\ndimensions = 64', "contender 1, vectors"),
        ('provider = "minilm"\nvectors = "words"', "tokens"),
    ],
)
def test_what_tokens_do_not_take_is_refused(tmp_path: Path, entry: str, said: str) -> None:
    path = write_lineup(tmp_path, native_files(), contenders=f"[[contender]]\n{entry}\n")
    with refuses(InputError, said, file="own.toml"):
        Lineup.read(path)


def test_a_provider_without_token_vectors_costs_its_row(tmp_path: Path) -> None:
    contenders = '[[contender]]\nranker = "bm25"\n[[contender]]\nprovider = "tfidf"\nvectors = "tokens"\n'
    outcome = run(
        Lineup.read(write_lineup(tmp_path, native_files(), head="rounds = 1", contenders=contenders)),
        Settings(cache=tmp_path / "vectors"),
    )
    (lost,) = outcome.not_run
    says(failure_words(lost.failure))
    with refuses(InputError, place="provider"):
        RERANKERS.create("maxsim", provider="openai")
