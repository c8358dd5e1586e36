"""Functions and other libraries' objects as providers, by their methods; and what names foreign code."""

from __future__ import annotations

import shutil
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from bakeoff_providers.base import EmbeddingBatch, Role
from bakeoff_providers.code import code_identity, file_reference, load_from_file
from bakeoff_providers.errors import EmbeddingFailed, InputError, Unavailable
from bakeoff_providers.fake import Fake
from bakeoff_providers.own import Own
from bakeoff_providers.secrets import scrub

from tests.errors import refuses, says


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


@pytest.mark.parametrize("target", [LlamaIndex(), SentenceTransformers(), with_role, batch])
def test_objects_are_asked_by_their_methods_and_know_the_role(target: Any) -> None:
    provider = Own(target=target)
    assert provider.embed(["ab", "c"], Role.DOCUMENT).vectors.tolist() == [[1, 2], [1, 1]]
    assert provider.embed(["abc"], Role.QUERY).vectors.tolist() == [[2, 3]]
    assert provider.embed(["abc"], Role.QUERY).vectors.dtype == np.float32


def test_prompts_go_before_the_texts() -> None:
    provider = Own(target=lambda texts: [[len(text)] for text in texts], query_prompt="q: ")
    assert provider.embed(["ab"], Role.QUERY).vectors.tolist() == [[5]]
    assert provider.embed(["ab"], Role.DOCUMENT).vectors.tolist() == [[2]]


def test_a_prompt_may_go_on_after_the_text_and_a_text_may_look_like_one() -> None:
    asked: list[str] = []

    def embed(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return [[1.0] for _ in texts]

    provider = Own(target=embed, query_prompt="Question: {text} Answer:", document_prompt="passage: ")
    provider.embed(["why {text}?"], Role.QUERY)
    provider.embed(["because {text}"], Role.DOCUMENT)
    assert asked == ["Question: why {text}? Answer:", "passage: because {text}"]
    before = Own(target=embed, query_prompt="Question: {text}").identity(Role.QUERY)
    assert provider.identity(Role.QUERY) != before
    assert provider.count_tokens("") == 3  # "passage: " has nine characters
    with refuses(InputError, place="query_prompt"):
        Own(target=embed, query_prompt="{text} {text}")


class Named(SentenceTransformers):
    """As sentence-transformers does: a prompt of its own for queries, unless another is given."""

    prompts: ClassVar = {"query": "ask: ", "clustering": "cluster: "}

    def encode_query(self, texts: list[str], prompt: str | None = None) -> Any:
        return super().encode_query([(self.prompts["query"] if prompt is None else prompt) + text for text in texts])


def test_prompts_of_an_object_are_known_by_name_and_never_doubled() -> None:
    assert Own(target=Named()).embed(["ab"], Role.QUERY).vectors.tolist() == [[2, 7]]
    named = Own(target=Named(), query_prompt={"name": "clustering"})
    assert named.embed(["ab"], Role.QUERY).vectors.tolist() == [[2, 11]]
    assert named.identity(Role.QUERY)["prompt"] == "cluster: "
    assert Own(target=Named(), query_prompt="").embed(["ab"], Role.QUERY).vectors.tolist() == [[2, 2]]
    with refuses(InputError, "'clusterin'", place="document_prompt") as caught:
        Own(target=Named(), document_prompt={"name": "clusterin"})
    assert "'clustering'" in caught.value.remedy


def test_what_is_no_embedding_is_refused() -> None:
    with refuses(InputError, "int"):
        Own(target=3)
    with refuses(EmbeddingFailed, "lambda"):
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


def test_a_distribution_is_named_also_when_it_is_installed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "installed_meanwhile.py").write_text("def embed(texts): return texts\n")
    monkeypatch.syspath_prepend(tmp_path)
    embed = import_module("installed_meanwhile").embed
    assert set(code_identity(embed) or ()) == {"code"}
    for number in (1, 2):
        info = tmp_path / f"meanwhile-{number}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: meanwhile\nVersion: {number}\n")
        (info / "top_level.txt").write_text("installed_meanwhile\n")
        assert (code_identity(embed) or {})["distribution"] == f"meanwhile {number}"
        shutil.rmtree(info)
    del sys.modules["installed_meanwhile"]


def test_code_without_a_source_is_not_named() -> None:
    space: dict[str, Any] = {}
    exec("class Nowhere: ...", space)
    assert code_identity(space["Nowhere"]) is None


@pytest.mark.parametrize("text", ["file:mine.py", "file::embed", "file:mine.py:two words"])
def test_a_reference_names_a_file_and_a_name(text: str) -> None:
    assert file_reference("minilm") is None
    assert file_reference("file:a/b.py:embed") == ("a/b.py", "embed")
    with refuses(InputError, text):
        file_reference(text)


KEYED = """class Keyed:
    def __init__(self, **options):
        self.options = options

    def embed(self, texts):
        if "fail" in texts:
            raise ValueError(f"refused: {self.options}")
        return [[1.0, 0.0] for _ in texts]
"""


def test_a_key_in_an_option_is_resolved_late_and_stored_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "keyed.py").write_text(KEYED)
    options: dict[str, Any] = {"file": str(tmp_path / "keyed.py"), "function": "Keyed", "api_key": "${ACME}", "size": 3}
    monkeypatch.delenv("ACME", raising=False)
    says(Own.missing(**options) or "", "ACME")
    with refuses(Unavailable, "ACME"):
        Own(**options)
    monkeypatch.setenv("ACME", "topsecretvalue99")
    made = Own(**options)
    identity = made.identity(Role.DOCUMENT)
    assert identity["option size"] == "3"
    assert identity["option api_key"] == "${ACME}"
    assert "topsecret" not in str(identity)
    with refuses(ValueError, "topsecretvalue99") as refused:  # it got the key itself
        made.embed(["fail"], Role.DOCUMENT)
    assert "topsecret" not in scrub(str(refused.value))
    monkeypatch.setenv("ACME", "anothersecret11")
    assert Own(**options).identity(Role.DOCUMENT) == identity  # another key gives the same vectors
    other = Own(**options | {"region": "${ACME}"}).identity(Role.DOCUMENT)
    assert str(other["option region"]).startswith("sha256 ")
    plain = Own(**options | {"api_key": "written-down"})  # from Python, where no line-up is stored
    assert "written-down" not in str(plain.identity(Role.DOCUMENT))
