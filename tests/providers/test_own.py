"""Functions and other libraries' objects as providers, by their methods; and what names foreign code."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bakeoff_providers.base import EmbeddingBatch, Role
from bakeoff_providers.code import code_identity, file_reference, load_from_file
from bakeoff_providers.errors import EmbeddingFailed, InputError
from bakeoff_providers.fake import Fake
from bakeoff_providers.own import Own


class LangChain:
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, len(text)] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return [2.0, len(text)]


class LlamaIndex:
    def get_text_embedding_batch(self, texts: list[str]) -> list[list[float]]:
        return [[1.0, len(text)] for text in texts]

    def get_query_embedding(self, text: str) -> list[float]:
        return [2.0, len(text)]


class SentenceTransformers:
    def encode_document(self, texts: list[str]) -> Any:
        return np.array([[1.0, len(text)] for text in texts])

    def encode_query(self, texts: list[str]) -> Any:
        return np.array([[2.0, len(text)] for text in texts])

    def encode(self, texts: list[str]) -> Any:
        raise AssertionError("the role would be lost")


def with_role(texts: list[str], role: str) -> list[list[float]]:
    return [[1.0 if role == "document" else 2.0, len(text)] for text in texts]


def batch(texts: list[str], role: Role) -> EmbeddingBatch:
    return EmbeddingBatch(np.array(with_role(texts, role), dtype=np.float32), tokens=3)


@pytest.mark.parametrize("target", [LangChain(), LlamaIndex(), SentenceTransformers(), with_role, batch])
def test_objects_are_asked_by_their_methods_and_know_the_role(target: Any) -> None:
    provider = Own(target=target)
    assert provider.embed(["ab", "c"], Role.DOCUMENT).vectors.tolist() == [[1, 2], [1, 1]]
    assert provider.embed(["abc"], Role.QUERY).vectors.tolist() == [[2, 3]]
    assert provider.embed(["abc"], Role.QUERY).vectors.dtype == np.float32


def test_prompts_go_before_the_texts() -> None:
    provider = Own(target=lambda texts: [[len(text)] for text in texts], query_prompt="q: ")
    assert provider.embed(["ab"], Role.QUERY).vectors.tolist() == [[5]]
    assert provider.embed(["ab"], Role.DOCUMENT).vectors.tolist() == [[2]]


def test_what_is_no_embedding_is_refused() -> None:
    with pytest.raises(InputError, match="no method that embeds"):
        Own(target=3)
    with pytest.raises(EmbeddingFailed, match="no rows of numbers"):
        Own(target=lambda texts: [[1, 2], [3]]).embed(["a", "b"], Role.QUERY)


def test_our_own_code_is_named_by_nothing_and_foreign_code_by_its_content(tmp_path: Path) -> None:
    assert Fake().code() == {}
    assert Own(target=lambda texts: texts).code() is None  # it may hold anything
    assert Own(target=lambda texts: texts, revision="3").code() == {"revision": "3"}
    (tmp_path / "one.py").write_text("def f(texts): return texts\n")
    first = code_identity(load_from_file(tmp_path / "one.py", "f"))
    (tmp_path / "one.py").write_text("def f(texts): return texts[::-1]\n")
    second = code_identity(load_from_file(tmp_path / "one.py", "f"))
    assert first
    assert second
    assert first != second
    assert load_from_file(tmp_path / "one.py", "f")(["a", "b"]) == ["b", "a"]


def test_a_package_is_named_by_all_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "own_package_of_a_test"
    package.mkdir()
    (package / "__init__.py").write_text("from own_package_of_a_test.words import WORDS\nclass Mine: ...\n")
    (package / "words.py").write_text("WORDS = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    module = __import__(package.name)
    first = code_identity(module.Mine)
    (package / "words.py").write_text("WORDS = 2\n")
    assert code_identity(module.Mine) != first
    del sys.modules[package.name]


def test_code_without_a_source_is_not_named() -> None:
    space: dict[str, Any] = {}
    exec("class Nowhere: ...", space)
    assert code_identity(space["Nowhere"]) is None


@pytest.mark.parametrize("text", ["file:mine.py", "file::embed", "file:mine.py:two words"])
def test_a_reference_names_a_file_and_a_name(text: str) -> None:
    assert file_reference("minilm") is None
    assert file_reference("file:a/b.py:embed") == ("a/b.py", "embed")
    with pytest.raises(InputError, match="names no function"):
        file_reference(text)
