"""Groups of queries by language and length, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from bakeoff.core.facts import Fact, Section, TableColumn
from bakeoff.core.task import Document, Query, Task
from bakeoff.evaluation.measures import Measure
from bakeoff.results.summary import breakdown_sections, by_language, by_length
from bakeoff.statistics.averaging import PerQuery

P1 = Measure.parse("p@1")


def _task(queries: int, words: int = 2) -> Task:
    """Even queries are answered in German, odd ones in English; the last third has ten times as many words."""
    documents = [
        Document(id="de", text="x", metadata={"language": "de"}),
        Document(id="en", text="y", metadata={"lang": "en"}),
    ]
    asked = [Query(f"q{at}", " ".join(["w"] * (words * (10 if at >= queries * 2 / 3 else 1)))) for at in range(queries)]
    judgments = {query.id: {"en" if at % 2 else "de": 1, "de" if at % 2 else "en": 0} for at, query in enumerate(asked)}
    return Task(name="t", documents=documents, queries=asked, judgments=judgments)


def test_a_query_has_the_language_of_what_answers_it_and_the_length_of_its_words() -> None:
    assert by_language(_task(3)) == ["de", "en", "de"]
    assert by_length(_task(3)) == [0, 0, 3]  # 2 and 20 words
    both = Task(name="t", documents=_task(2).documents, queries=[Query("q", "a")], judgments={"q": {"de": 1, "en": 1}})
    assert by_language(both) == [""]


def _groups(table: Section) -> list[dict[str, Any]]:
    return [one.head.arguments for one in table.head[1:] if isinstance(one, TableColumn) and isinstance(one.head, Fact)]


def test_the_tables_hold_the_groups_means() -> None:
    task, values = _task(30), np.arange(30) / 30
    language, length = breakdown_sections(task, {"a": values}, P1, PerQuery())
    assert _groups(language) == [{"name": "de", "queries": 15}, {"name": "en", "queries": 15}]
    assert language.rows == [["a", pytest.approx(values[::2].mean()), pytest.approx(values[1::2].mean())]]
    assert _groups(length) == [{"low": 1, "high": 3, "queries": 20}, {"low": 17, "high": None, "queries": 10}]
    assert length.rows == [["a", pytest.approx(values[:20].mean()), pytest.approx(values[20:].mean())]]


def test_groups_that_are_too_small_make_no_table() -> None:
    assert breakdown_sections(_task(12), {"a": np.zeros(12)}, P1, PerQuery()) == []


@pytest.mark.parametrize("name", ["–", " ", "²", "٣", "9" * 5000])
def test_a_language_may_be_anything(name: str) -> None:
    plain = _task(30)
    documents = [Document(id="de", text="x", metadata={"language": name}), *list(plain.documents)[1:]]
    task = Task(name="t", documents=documents, queries=plain.queries, judgments=plain.judgments)
    language, _ = breakdown_sections(task, {"a": np.zeros(30)}, P1, PerQuery())
    assert sorted(group["name"] for group in _groups(language)) == sorted([name, "en"])
