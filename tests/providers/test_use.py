"""USE multilingual on its real weights, against vectors by the package they come in (use_reference.json says how)."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bakeoff_providers import weights
from bakeoff_providers.base import Role
from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.use import UniversalSentenceEncoder
from threadpoolctl import threadpool_info

from tests.errors import refuses
from tests.providers.real_weights import TEXT, check_agreement, reference_vectors, require


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    return reference_vectors("use")


@pytest.fixture(scope="module")
def provider() -> UniversalSentenceEncoder:
    require("use")
    return UniversalSentenceEncoder()


def test_vectors_agree_with_the_package(provider: UniversalSentenceEncoder, reference: dict[str, Any]) -> None:
    check_agreement(provider, reference)


def test_the_reference_is_of_these_weights(provider: UniversalSentenceEncoder, reference: dict[str, Any]) -> None:
    sha = reference["provenance"]["weights_sha256"]
    assert sha == weights.find_weights("use").files["weights.npz"]
    assert provider.identity(Role.QUERY)["revision"] == sha[:12]


def test_a_question_is_nearer_to_its_translation_than_to_another(provider: UniversalSentenceEncoder) -> None:
    english, german, spanish, other = provider.embed(
        [
            "Which neighborhoods are in the southern part of San Francisco?",
            "Welche Stadtteile liegen im Süden von San Francisco?",
            "¿Qué barrios están en el sur de San Francisco?",
            "How is cheese made?",
        ],
        Role.QUERY,
    ).vectors
    assert min(english @ german, english @ spanish, german @ spanish) > english @ other + 0.3


def test_a_vector_is_the_same_to_the_bit_in_any_batch(provider: UniversalSentenceEncoder) -> None:
    rng = random.Random(42)
    texts = [" ".join(rng.choices(TEXT.split(), k=rng.choice([0, 1, 5, 40, 250]))) for _ in range(12)]
    alone = np.concatenate([provider.embed([text], Role.DOCUMENT).vectors for text in texts])
    np.testing.assert_array_equal(provider.embed(texts, Role.DOCUMENT).vectors, alone)


def test_long_texts_are_not_cut(provider: UniversalSentenceEncoder) -> None:
    long = " ".join(["river"] * 2000)
    batch = provider.embed([long], Role.DOCUMENT)
    assert (batch.tokens, batch.truncated) == (2002, 0)
    assert not np.array_equal(batch.vectors, provider.embed([long + " profits"], Role.DOCUMENT).vectors)


def test_the_number_of_blas_threads_is_given_back(provider: UniversalSentenceEncoder) -> None:
    before = threadpool_info()
    provider.embed(["river"], Role.QUERY)
    assert threadpool_info() == before


def test_it_can_be_used_again_after_close(provider: UniversalSentenceEncoder) -> None:
    before = provider.embed(["river"], Role.QUERY).vectors
    provider.close()
    np.testing.assert_array_equal(provider.embed(["river"], Role.QUERY).vectors, before)


def test_without_weights_it_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path))
    assert UniversalSentenceEncoder.missing() == "run: bakeoff models pull use"
    with refuses(Unavailable, "bakeoff models pull use"):
        UniversalSentenceEncoder().embed(["river"], Role.QUERY)


def test_damaged_weights_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    published = weights.locate("use")
    damaged = bytearray((published / "weights.npz").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path))
    folder = weights.folder("use")
    folder.mkdir(parents=True)
    (folder / "sp.model").write_bytes((published / "sp.model").read_bytes())
    (folder / "weights.npz").write_bytes(damaged)
    with refuses(Unavailable, "damaged"):
        UniversalSentenceEncoder().embed(["river"], Role.QUERY)
    with refuses(InputError, "SHA-256", place="weights.npz", file="use"):
        weights.pull("use", folder)


def test_an_unknown_model_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        UniversalSentenceEncoder(model="universal-sentence-encoder-4")
    assert "universal-sentence-encoder-multilingual-3" in caught.value.remedy
