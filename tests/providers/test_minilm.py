"""MiniLM on its real weights, against vectors that sentence-transformers made (minilm_reference.json says how)."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bakeoff_providers import weights
from bakeoff_providers.base import Role, check_batch
from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.minilm import MiniLM

from tests.errors import refuses
from tests.providers.real_weights import TEXT, reference_vectors, require


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    return reference_vectors("minilm")


@pytest.fixture(scope="module")
def provider() -> MiniLM:
    require("minilm")
    return MiniLM()


def test_vectors_agree_with_sentence_transformers(provider: MiniLM, reference: dict[str, Any]) -> None:
    texts = reference["texts"]
    batch = check_batch(provider.embed(texts, Role.DOCUMENT), texts, provider.card)
    assert batch.vectors.dtype == np.float32
    np.testing.assert_allclose(batch.vectors[:, :8], reference["first8"], atol=1e-6)
    exact = batch.vectors.astype(np.float64)
    np.testing.assert_allclose(exact @ exact.T, reference["similarities"], atol=1e-6)
    # A sum of 384 roundings, each below 1e-6 and of either sign.
    np.testing.assert_allclose(exact @ (np.arange(1, 385) / 384), reference["ramp"], atol=1e-5)


def test_the_reference_is_of_these_weights(provider: MiniLM, reference: dict[str, Any]) -> None:
    sha = reference["provenance"]["weights_sha256"]
    assert sha == weights.find_weights("minilm").files["model.safetensors"]
    assert provider.identity(Role.QUERY)["revision"] == sha[:12]


def test_tokens_and_truncation_are_counted(provider: MiniLM, reference: dict[str, Any]) -> None:
    for text, tokens, all_tokens in zip(reference["texts"], reference["tokens"], reference["all_tokens"], strict=True):
        batch = provider.embed([text], Role.QUERY)
        assert (batch.tokens, batch.truncated) == (tokens, int(all_tokens > 256))
    batch = provider.embed(reference["texts"], Role.QUERY)
    assert (batch.tokens, batch.truncated) == (sum(reference["tokens"]), 2)


def test_a_vector_does_not_depend_on_its_batch(provider: MiniLM) -> None:
    rng = random.Random(42)
    texts = [" ".join(rng.choices(TEXT.split(), k=rng.choice([0, 1, 2, 5, 12, 40, 90, 250, 400]))) for _ in range(48)]
    alone = np.concatenate([provider.embed([text], Role.DOCUMENT).vectors for text in texts])
    order = rng.sample(range(len(texts)), len(texts))
    for rows in (range(len(texts)), order, order[:7]):
        together = provider.embed([texts[row] for row in rows], Role.DOCUMENT).vectors
        np.testing.assert_allclose(together, alone[list(rows)], atol=1e-6)


@pytest.mark.parametrize("threads", [1, 3])
def test_the_number_of_threads_changes_no_bit(provider: MiniLM, reference: dict[str, Any], threads: int) -> None:
    texts = reference["texts"] * 3
    vectors = MiniLM(threads=threads).embed(texts, Role.QUERY).vectors
    np.testing.assert_array_equal(vectors, provider.embed(texts, Role.QUERY).vectors)


@pytest.fixture(scope="module")
def bytewise() -> MiniLM:
    return MiniLM(compute="int8")


def test_int8_vectors_stay_near(provider: MiniLM, bytewise: MiniLM, reference: dict[str, Any]) -> None:
    texts = [text for text in reference["texts"] if text]
    exact, near = (model.embed(texts, Role.DOCUMENT).vectors for model in (provider, bytewise))
    assert 0.99 < (exact * near).sum(axis=1).min() < 0.99999  # near, and not the same computation


def test_an_int8_vector_does_not_depend_on_its_batch(bytewise: MiniLM, reference: dict[str, Any]) -> None:
    texts = reference["texts"]
    alone = np.concatenate([bytewise.embed([text], Role.DOCUMENT).vectors for text in texts])
    np.testing.assert_allclose(bytewise.embed(texts, Role.DOCUMENT).vectors, alone, atol=1e-6)


def test_int8_vectors_are_cached_apart(provider: MiniLM, bytewise: MiniLM) -> None:
    assert provider.identity(Role.QUERY) != bytewise.identity(Role.QUERY)


def test_no_text_gives_no_vector(provider: MiniLM) -> None:
    batch = provider.embed([], Role.QUERY)
    assert batch.vectors.shape == (0, 384)
    assert (batch.tokens, batch.truncated) == (0, 0)


def test_it_can_be_used_again_after_close(provider: MiniLM) -> None:
    before = provider.embed(["river"], Role.QUERY).vectors
    provider.close()
    np.testing.assert_array_equal(provider.embed(["river"], Role.QUERY).vectors, before)


def test_the_graph_is_written_once(provider: MiniLM) -> None:
    provider.embed(["river"], Role.QUERY)
    folder = weights.folder("minilm")
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    MiniLM().embed(["river"], Role.QUERY)
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before
    assert len([path for path in folder.glob("graph-*") if not path.stem.endswith(("int8", "tokens"))]) == 1


def test_without_weights_it_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path))
    assert MiniLM.missing() == "run: bakeoff models pull minilm"
    with refuses(Unavailable, "bakeoff models pull minilm"):
        MiniLM().embed(["river"], Role.QUERY)


def test_damaged_weights_are_not_made_into_a_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokenizer = (weights.locate("minilm") / "tokenizer.json").read_bytes()
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path))
    folder = weights.folder("minilm")
    folder.mkdir(parents=True)
    (folder / "tokenizer.json").write_bytes(tokenizer)
    (folder / "model.safetensors").write_bytes(b"cut off")
    with refuses(Unavailable, "damaged"):
        MiniLM().embed(["river"], Role.QUERY)
    assert not list(folder.glob("graph-*"))


@pytest.mark.usefixtures("provider")
def test_with_weights_nothing_is_missing() -> None:
    assert MiniLM.missing() is None


def test_wrong_options_are_refused() -> None:
    with pytest.raises(InputError) as caught:
        MiniLM(model="all-MiniLM-L12-v2")
    assert "all-MiniLM-L6-v2" in caught.value.remedy
    with refuses(InputError, "0", place="minilm"):
        MiniLM(threads=0)
    with refuses(InputError, "'int4'", place="minilm"):
        MiniLM(compute="int4")  # type: ignore[arg-type]
