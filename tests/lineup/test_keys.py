"""The keys of a [[contender]], and the row types that they give."""

from __future__ import annotations

import msgspec
import pytest
from bakeoff.lineup.entries import ContenderEntry
from bakeoff.lineup.keys import KEYS, contenders_of
from bakeoff_providers.errors import InputError

from tests.errors import refuses


@pytest.mark.parametrize(
    ("entry", "row_types"),
    [
        ({"provider": "fake", "store": "faiss"}, ["dense"]),
        ({"provider": "fake", "store": ["faiss", {"name": "faiss", "existing": "i.faiss"}]}, ["dense", "existing"]),
        ({"provider": "fake", "vectors": "tokens"}, ["tokens"]),
        ({"ranker": "bm25"}, ["lexical"]),
        ({"retriever": "file:mine.py:search"}, ["retriever"]),
        ({"answers": "run.trec"}, ["given"]),
    ],
)
def test_a_key_gives_rows_of_its_types(entry: dict[str, object], row_types: list[str]) -> None:
    rows = contenders_of(msgspec.convert(entry, ContenderEntry))
    assert [row.row_type for row in rows] == row_types


def test_vectors_of_tokens_are_not_searched_by_words() -> None:
    with pytest.raises(InputError) as raised:
        contenders_of(ContenderEntry(provider="fake", vectors="tokens", store="lancedb", search="hybrid"))
    assert raised.value.place == "vectors"


def test_a_contender_without_a_key_is_told_all_of_them() -> None:
    with refuses(InputError) as raised:
        contenders_of(ContenderEntry())
    assert all(key in raised.value.problem for key in KEYS)
