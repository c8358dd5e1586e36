from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bakeoff_providers.base import Role, check_batch
from bakeoff_providers.errors import EmbeddingFailed, InputError
from bakeoff_providers.wordllama import WordLlama

from tests.errors import refuses

TEXTS = ["river", "The river rose by 4 cm overnight.", "naïve façade, 東京 🙂", "word " * 300, " "]


@pytest.fixture(scope="module")
def provider() -> WordLlama:
    return WordLlama()


@pytest.fixture(scope="module")
def package() -> Any:
    import wordllama

    return wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)


def test_vectors_agree_with_the_package(provider: WordLlama, package: Any) -> None:
    batch = check_batch(provider.embed(TEXTS, Role.DOCUMENT), TEXTS, provider.card)
    assert batch.vectors.dtype == np.float32
    np.testing.assert_allclose(batch.vectors, package.embed(TEXTS, norm=True), atol=1e-6)


def test_tokens_are_those_of_the_package(provider: WordLlama, package: Any) -> None:
    counts = [sum(package.tokenize([text])[0].attention_mask) for text in TEXTS]
    assert provider.embed(TEXTS, Role.QUERY).tokens == sum(counts)


def test_neighbours_do_not_touch_a_vector(provider: WordLlama) -> None:
    together = provider.embed(TEXTS, Role.DOCUMENT).vectors
    alone = np.concatenate([provider.embed([text], Role.DOCUMENT).vectors for text in TEXTS])
    np.testing.assert_array_equal(together, alone)


def test_an_empty_text_has_a_zero_vector_which_the_harness_refuses(provider: WordLlama) -> None:
    texts = ["river", ""]
    batch = provider.embed(texts, Role.QUERY)
    assert batch.vectors[0].any()
    assert not batch.vectors[1].any()
    with refuses(EmbeddingFailed, "2"):
        check_batch(batch, texts, provider.card)


def test_no_text_gives_no_vector(provider: WordLlama) -> None:
    assert provider.embed([], Role.QUERY).vectors.shape == (0, 256)


def test_the_revision_is_the_version_of_the_package(provider: WordLlama) -> None:
    assert provider.identity(Role.QUERY)["revision"] == version("wordllama")


def test_another_model_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        WordLlama(model="l3_supercat")
    assert "l2_supercat" in caught.value.remedy


def test_the_root_logger_stays_as_it_was() -> None:
    code = (
        "import logging\n"
        "from bakeoff_providers.base import Role\n"
        "from bakeoff_providers.wordllama import WordLlama\n"
        "WordLlama().embed(['river'], Role.QUERY)\n"
        "print(logging.getLogger().handlers, logging.getLogger().level)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"[] {30}"
