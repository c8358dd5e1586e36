"""What is printed when texts are too long for a model, followed to the letter, leaves no text cut."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from bakeoff.cli.main import app
from bakeoff.core.facts import Fact
from bakeoff.core.task import Document
from bakeoff.embedding.chunking import ContenderChunking, contender_chunks
from bakeoff.embedding.preflight import too_long
from bakeoff.lineup.from_python import lineup_of
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.further_words import further_sentences
from bakeoff.results.summary import summarise
from bakeoff.running.runner import Settings, run
from bakeoff.running.stages import Scored
from bakeoff.systems.base import NotRun
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import EmbeddingBatch, ModelCard, Provider, Role
from typer.testing import CliRunner

from tests.facts import arguments, ids
from tests.native_task import native_files, pages, write_lineup
from tests.providers.real_weights import require
from tests.services import HOSTED, KEYS
from tests.wire import PROXIES, WireServer

pytestmark = pytest.mark.slow

RNG = random.Random(5)
HARD = {  # few characters per token, in one way or another
    1: ("Ships", " ".join(f"Donaudampfschifffahrtsgesellschaft{number}" for number in range(32))),
    2: ("向量", "向量数据库比较嵌入模型的检索质量和延迟。" * 16),
    3: ("Keys", " ".join(f"{RNG.getrandbits(128):032x}" for _ in range(29))),
    4: ("", "🚀👩‍👩‍👧‍👦🔥 " * 30),
    5: ("a title that is as long as a text " * 70, "यह एक परीक्षण वाक्य है जिसमें कई शब्द हैं। " * 4),
    6: ("Short", "sailing lake"),
}
GRADES = {"q1": {"1": 1}}
Asked = tuple[Scored, list[Fact | NotRun]]


def row_of(folder: Path, contender: str, chunking: str = "") -> Asked:
    """The row, and what was said while it ran."""
    file = write_lineup(
        folder,
        native_files(pages(HARD), {"q1": "ships"}, GRADES),
        head='measures = ["mrr"]\nrounds = 1',
        contenders=f'[[contender]]\n{contender}\nstore = "faiss"\n{chunking}\n',
    )
    said: list[Fact | NotRun] = []
    outcome = run(Lineup.read(file), Settings(notice=said.append))
    assert outcome.not_run == []
    return outcome.ran[0], said


def truncated(row: Scored) -> int:
    assert row.search is not None
    assert row.search.embedding is not None
    return row.search.embedding.usage[Role.DOCUMENT].truncated


def advice_of(said: list[Fact | NotRun]) -> str:
    (cut,) = arguments(said, "too_long")
    return f'chunking = {{ strategy = "recursive", size = {cut["chunk_size"]}, unit = "{cut["chunk_unit"]}" }}'


@pytest.mark.parametrize(
    "contender",
    ['provider = "minilm"', 'provider = "minilm"\noptions = { compute = "int8" }', 'provider = "granite"'],
    ids=["minilm", "minilm-int8", "granite"],
)
def test_models_that_run_here(tmp_path: Path, contender: str) -> None:
    cut, said = row_of(tmp_path, contender)
    assert truncated(cut) >= 4
    whole, then = row_of(tmp_path, contender, advice_of(said))
    assert truncated(whole) == 0
    assert "too_long" not in ids(then)


@pytest.mark.parametrize("name", ["use", "wordllama"])
def test_models_without_a_limit_read_to_the_end(name: str, tmp_path: Path) -> None:
    _, said = row_of(tmp_path, f'provider = "{name}"')
    assert "too_long" not in ids(said)
    provider = PROVIDERS.create(name)
    start = "the harbour of the old town " * 80
    one, other = provider.embed([f"{start} copper", f"{start} volcano"], Role.DOCUMENT).vectors
    assert not np.array_equal(one, other)
    assert provider.count_tokens("copper mine") >= 2


class Late(Provider):
    """Its limit is known once it is loaded: 100 tokens, here of a byte each, with one at each end."""

    name, default_model, local = "late", "late", True

    def __init__(self) -> None:
        self.card = ModelCard(name="late", dimensions=2)
        self.limit: int | None = None

    def context_tokens(self) -> int | None:
        return self.limit

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        self.limit = 100
        long = sum(len(text.encode()) + 2 > 100 for text in texts)
        return EmbeddingBatch(np.ones((len(texts), 2), dtype=np.float32), truncated=long)


def test_advice_where_only_the_model_can_tell() -> None:
    corpus = {str(number): {"title": title, "text": text} for number, (title, text) in HARD.items()}
    task = {"corpus": corpus, "queries": {"q1": "ships"}, "qrels": GRADES}
    said: list[Fact | NotRun] = []
    run(lineup_of({"late": Late()}, task, measures=["mrr"], rounds=1), Settings(notice=said.append))
    (cut,) = arguments(said, "too_long")
    assert (cut["long"], cut["texts"], cut["tokens"], cut["estimated"]) == (5, 6, 100, False)
    chunking = tomllib.loads(advice_of(said))["chunking"]
    chunks = [
        chunk.text
        for number, (title, text) in HARD.items()
        for chunk in contender_chunks(
            Document(id=str(number), text=text, title=title), "", msgspec.convert(chunking, ContenderChunking)
        )
    ]
    assert Late().embed(chunks, Role.DOCUMENT).truncated == 0


def test_cut_texts_are_told_before_anything_is_graded_and_stay_in_the_verdict(tmp_path: Path) -> None:
    """480 words are more than minilm's 256 tokens, and four words are fewer; chunks of the long ones fit."""
    require("minilm")
    texts = {number: (f"Page {number}", "the harbour of the old town " * 80) for number in range(1, 5)}
    texts |= {5: ("Ships", "ships in a port"), 6: ("Sails", "sails on a lake")}
    row = '[[contender]]\nprovider = "minilm"\n'
    cut = 'label = "chunks"\nchunking = { strategy = "recursive", size = 256, unit = "tokens" }\n'
    file = write_lineup(
        tmp_path,
        native_files(pages(texts), {"q1": "ships", "q2": "sailing"}, {}),
        head='measures = ["mrr"]\nrounds = 1',
        contenders=f'{row}store = ["faiss", "chroma"]\n{row}store = "faiss"\n{cut}',
    )
    about = "about 4 of 6 texts are longer than the 256 tokens that "
    for command in (["validate"], ["run", "--dry-run"]):
        told = CliRunner().invoke(app, [command[0], str(file), *command[1:]])
        assert told.exit_code == 0, told.output
        assert " ".join(told.output.split()).count(f"warning: minilm+faiss, minilm+chroma: {about}") == 1
        assert told.output.count("warning: ") == 1  # nothing of the row that has chunks
    (tmp_path / "truth.json").write_text('{"grades": {"q1": {"5": 1}, "q2": {"6": 1}}}')
    summary = summarise(run(Lineup.read(file)))
    known = {row_.label: row_.cut for row_ in summary.ran}
    assert known["minilm+faiss"] == known["minilm+chroma"] == (4, 6)
    assert any("minilm truncated" in sentence for sentence in further_sentences(summary))
    assert [ids(row_.warnings) for row_ in summary.ran] == [["too_long", "truncated"], ["too_long", "truncated"], []]


def test_texts_of_few_characters_for_each_token_are_found_too_long_before_the_run() -> None:
    """500 characters of hexadecimal digits are 125 tokens by their length, and many more by minilm's tokenizer."""
    require("minilm")
    minilm = PROVIDERS.create("minilm")
    keys = [" ".join(f"{RNG.getrandbits(128):032x}" for _ in range(15)) for _ in range(5)]
    plain = ["the harbour of the old town " * 18 for _ in range(3)]
    assert [minilm.count_tokens(text) > 256 for text in (*keys, *plain)] == [True] * 5 + [False] * 3
    assert too_long(minilm, keys) == 5
    assert too_long(minilm, plain) == 0


@pytest.fixture
def tokenizers() -> list[Callable[[str], int]]:
    """Two real ones in the place of a hosted model's: bytes in pairs (granite's) and pieces of sentences (Llama's)."""
    return [PROVIDERS.create(name).count_tokens for name in ("granite", "wordllama")]


@pytest.mark.parametrize("name", HOSTED)
def test_hosted_models_get_texts_within_their_context(
    name: str, tmp_path: Path, tokenizers: list[Callable[[str], int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in PROXIES:
        monkeypatch.delenv(variable, raising=False)
    for variable in KEYS:
        monkeypatch.setenv(variable, "sk-0123456789abcdef")
    context = 200
    with WireServer() as wire:
        contender = f'provider = "{name}"\noptions = {{ base_url = "{wire.base(name)}", context = {context} }}'
        _, said = row_of(tmp_path, contender)
        longest = max(count(text) for request in wire.requests for text in request.texts for count in tokenizers)
        assert longest > context
        wire.requests.clear()
        _, then = row_of(tmp_path, contender, advice_of(said))
        assert "too_long" not in ids(then)
        sent = [text for request in wire.requests for text in request.texts]
    assert len(sent) > len(HARD)
    assert max(count(text) for text in sent for count in tokenizers) <= context
