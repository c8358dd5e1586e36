"""A tiny model of our own, made and saved by the test: no hub, no download."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bakeoff_providers.base import Role
from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.sentence_transformers import SentenceTransformers

from tests.embedding.test_advice import advice_of, row_of, truncated
from tests.facts import ids
from tests.providers.tiny_bert import write_tiny_model

library: Any = pytest.importorskip("sentence_transformers")
WORDS = ["cat", "dog", "the", "sat", "query", "passage", ":", "ask"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("tiny"), WORDS)


def reference(folder: Path, texts: list[str]) -> Any:
    return library.SentenceTransformer(str(folder), device="cpu").encode(texts, show_progress_bar=False)


def test_a_folder_is_embedded_as_the_library_does(folder: Path) -> None:
    provider = SentenceTransformers(model=str(folder), device="cpu")
    provider.ready()
    texts = ["the cat sat", "the dog", "ask"]
    batch = provider.embed(texts, Role.DOCUMENT)
    assert batch.vectors.dtype == np.float32
    np.testing.assert_allclose(batch.vectors, reference(folder, texts), atol=1e-6)
    assert (provider.local, batch.truncated) == (True, 0)


def test_prompts_of_the_line_up_stand_before_the_texts(folder: Path) -> None:
    provider = SentenceTransformers(model=str(folder), query_prompt="query : ", document_prompt="passage : ")
    np.testing.assert_allclose(
        provider.embed(["the cat"], Role.QUERY).vectors, reference(folder, ["query : the cat"]), atol=1e-6
    )
    np.testing.assert_allclose(
        provider.embed(["the cat"], Role.DOCUMENT).vectors, reference(folder, ["passage : the cat"]), atol=1e-6
    )


def test_the_models_own_prompts_are_used(folder: Path, tmp_path: Path) -> None:
    model = library.SentenceTransformer(str(folder), device="cpu", prompts={"query": "ask : ", "document": ""})
    model.save(str(tmp_path / "prompted"))
    provider = SentenceTransformers(model=str(tmp_path / "prompted"))
    np.testing.assert_allclose(
        provider.embed(["the cat"], Role.QUERY).vectors, reference(folder, ["ask : the cat"]), atol=1e-6
    )
    np.testing.assert_allclose(
        provider.embed(["the cat"], Role.DOCUMENT).vectors, reference(folder, ["the cat"]), atol=1e-6
    )


def test_named_prompts_and_texts_in_the_middle_of_one(folder: Path, tmp_path: Path) -> None:
    prompts = {"query": "ask : ", "document": "", "s2p": "query : "}
    library.SentenceTransformer(str(folder), device="cpu", prompts=prompts).save(str(tmp_path / "named"))
    named = SentenceTransformers(model=str(tmp_path / "named"), query_prompt={"name": "s2p"})
    np.testing.assert_allclose(
        named.embed(["the cat"], Role.QUERY).vectors, reference(folder, ["query : the cat"]), atol=1e-6
    )
    middle = SentenceTransformers(model=str(tmp_path / "named"), query_prompt="query : {text} sat")
    np.testing.assert_allclose(
        middle.embed(["the cat"], Role.QUERY).vectors, reference(folder, ["query : the cat sat"]), atol=1e-6
    )
    own = SentenceTransformers(model=str(tmp_path / "named"))
    keys = [str(provider.identity(Role.QUERY)) for provider in (named, middle, own)]
    assert len(set(keys)) == 3
    with pytest.raises(InputError, match="'s2s'"):
        SentenceTransformers(model=str(tmp_path / "named"), query_prompt={"name": "s2s"})


def test_a_family_brings_its_prompts_where_the_model_has_none(folder: Path, tmp_path: Path) -> None:
    named = tmp_path / "my-e5-small"
    library.SentenceTransformer(str(folder), device="cpu").save(str(named))
    provider = SentenceTransformers(model=str(named))
    expected = reference(folder, ["query: the cat"])
    np.testing.assert_allclose(provider.embed(["the cat"], Role.QUERY).vectors, expected, atol=1e-6)


def test_long_texts_are_counted(folder: Path) -> None:
    provider = SentenceTransformers(model=str(folder))
    assert provider.embed(["the cat", "the cat sat " * 9, "dog " * 10, "dog " * 11], Role.DOCUMENT).truncated == 2
    shorter = SentenceTransformers(model=str(folder), context=6)
    assert shorter.embed(["dog " * 4, "dog " * 5], Role.DOCUMENT).truncated == 1
    assert shorter.identity(Role.DOCUMENT) != provider.identity(Role.DOCUMENT)


def test_the_advice_leads_to_no_truncation(folder: Path, tmp_path: Path) -> None:
    """Its context is only known when it is loaded, and its prompt counts."""
    contender = (
        f'provider = "sentence_transformers"\nmodel = "{folder}"\noptions = {{ document_prompt = "passage : " }}'
    )
    cut, said = row_of(tmp_path, contender)
    assert truncated(cut) >= 4
    whole, then = row_of(tmp_path, contender, advice_of(said))
    assert truncated(whole) == 0
    assert "too_long" not in ids(then)


def test_dimensions_are_cut(folder: Path) -> None:
    vectors = SentenceTransformers(model=str(folder), dimensions=4).embed(["the cat"], Role.DOCUMENT).vectors
    np.testing.assert_allclose(vectors, reference(folder, ["the cat"])[:, :4], atol=1e-6)


def test_identity_is_the_same_before_and_after_loading(folder: Path) -> None:
    provider = SentenceTransformers(model=str(folder))
    before = provider.identity(Role.QUERY)
    provider.embed(["cat"], Role.QUERY)
    assert provider.identity(Role.QUERY) == before
    assert before != provider.identity(Role.DOCUMENT)
    assert before != SentenceTransformers(model=str(folder), revision="abc").identity(Role.QUERY)


def test_a_model_that_is_nowhere_is_unavailable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(Unavailable, match="absent"):
        SentenceTransformers(model=str(tmp_path / "absent")).ready()


def test_without_the_library_the_install_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    assert SentenceTransformers.missing() == "install bakeoff[sentence-transformers]"
    with pytest.raises(Unavailable, match=r"bakeoff\[sentence-transformers\]"):
        SentenceTransformers(model="x").embed(["a"], Role.QUERY)
