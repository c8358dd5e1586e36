"""Tests assert facts: few hang on how a sentence is worded."""

from __future__ import annotations

from tests.errors import is_test, stored
from tests.wording import hanging, is_ours

MOST = 94  # only downwards


def test_few_tests_hang_on_wording() -> None:
    assert len(hanging()) <= MOST


def test_sentences_of_the_sources_are_wording_and_values_are_not() -> None:
    assert is_ours("none.toml: no such file")
    assert is_ours("did you mean 'faiss'?")
    for fact in ("'no such file'", "documents.id", "--judge llm", "bakeoff grade task", "0.25 ms", "unfathomable lamp"):
        assert not is_ours(fact)


def test_stored_messages_are_of_tests_that_exist() -> None:
    assert [test for test in stored() if not is_test(test)] == []
