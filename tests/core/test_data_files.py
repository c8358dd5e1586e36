"""Unknown keys of people's data are kept and mentioned; misspelt ones are errors at their place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bakeoff.core.data_files import read_data
from bakeoff.tasks.formats.native import ArticleFile, QueryFile
from bakeoff.tasks.ground_truth import GroundTruth
from bakeoff_providers.errors import InputError

from tests.errors import says
from tests.facts import arguments


def _written(folder: Path, content: Any) -> Path:
    path = folder / "data.json"
    path.write_text(json.dumps(content))
    return path


def _article(number: int, **more: Any) -> dict[str, Any]:
    return {"page_id": number, "title": "t", "summary": "s", **more}


def test_unknown_keys_become_metadata_and_are_counted(tmp_path: Path) -> None:
    articles = [
        _article(1, colour="red", metadata={"size": 3}),
        _article(2),
        _article(3, colour=None, embedding_metadata={"chunk_strategy": "sentence", "parser": "x"}),
    ]
    file, notes = read_data(_written(tmp_path, {"articles": articles, "licence": {"name": "CC"}}), ArticleFile)
    assert [article.metadata or None for article in file.articles] == [
        {"size": 3, "colour": "red"},
        None,
        {"colour": None, "embedding_metadata": {"parser": "x"}},
    ]
    assert file.articles[2].embedding_metadata.chunk_strategy == "sentence"
    assert file.metadata == {"licence": {"name": "CC"}}
    unknown = {one["key"]: one for one in arguments(notes, "unknown_key")}
    assert unknown.keys() == {"colour", "embedding_metadata.parser", "licence"}
    assert unknown["colour"] == {"file": "data.json", "key": "colour", "entries": "articles", "count": 2}
    assert unknown["licence"]["entries"] == ""


def test_files_without_unknown_keys_say_nothing(tmp_path: Path) -> None:
    assert read_data(_written(tmp_path, {"articles": [_article(1)]}), ArticleFile)[1] == []


@pytest.mark.parametrize(
    ("content", "shape", "place", "remedy"),
    [
        ({"articles": [_article(1, x=1), _article(2, categoris=[])]}, ArticleFile, "$.articles[1]", "'categories'"),
        ({"articles": [_article(1, html_fil="x")]}, ArticleFile, "$.articles[0]", "'html_file'"),
        ({"articles": [], "metdata": {}}, ArticleFile, "", "'metadata'"),
        ({"queries": [{"query_id": "q", "query_text": "t", "expected_result": []}]}, QueryFile, "$.queries[0]",
         "'expected_results'"),
        ({"grades": {}, "meta_data": {}}, GroundTruth, "", "'metadata'"),
        ({"articles": [_article(1, embedding_metadata={"max_chunksize": 1})]}, ArticleFile,
         "$.articles[0].embedding_metadata", "'max_chunk_size'"),
    ],
)  # fmt: skip
def test_a_key_that_resembles_a_known_one_is_refused(
    tmp_path: Path, content: Any, shape: type[Any], place: str, remedy: str
) -> None:
    with pytest.raises(InputError) as caught:
        read_data(_written(tmp_path, content), shape)
    assert caught.value.file == tmp_path / "data.json"
    assert (caught.value.place or "") == place
    says(caught.value.remedy or "", f"{remedy}")


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ({"x": 1, "articles": {}}, "$.articles"),
        ({"x": 1, "articles": [_article(1), _article(2, title=3)]}, "$.articles[1].title"),
        ({"x": 1, "articles": [_article(1), 7]}, "$.articles[1]"),
        ({"articles": [_article(1, x=1, city=3)]}, "$.articles[0].city"),
        ({"articles": [_article(1, x=1, metadata=3)]}, "$.articles[0].metadata"),
        ({"articles": [_article(1, x=1, metadata={"x": 2})]}, "$.articles[0]"),
        ({"x": 1}, ""),
    ],
)
def test_whatever_else_is_wrong_keeps_its_place(tmp_path: Path, content: Any, place: str) -> None:
    with pytest.raises(InputError) as caught:
        read_data(_written(tmp_path, content), ArticleFile)
    assert caught.value.file == tmp_path / "data.json"
    assert (caught.value.place or "") == place
