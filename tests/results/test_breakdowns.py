"""Groups of queries by language and length, by hand."""

from __future__ import annotations

import numpy as np
import pytest
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
    assert by_length(_task(3)) == ["1–3 words", "1–3 words", "17 words or more"]
    both = Task(name="t", documents=_task(2).documents, queries=[Query("q", "a")], judgments={"q": {"de": 1, "en": 1}})
    assert by_language(both) == [""]


def test_the_tables_hold_the_groups_means() -> None:
    task, values = _task(30), np.arange(30) / 30
    language, length = breakdown_sections(task, {"a": values}, P1, PerQuery())
    assert language.head == ["Contender", "de (15)", "en (15)"]
    assert language.rows == [["a", f"{values[::2].mean():.3f}", f"{values[1::2].mean():.3f}"]]
    assert length.head == ["Contender", "1–3 words (20)", "17 words or more (10)"]
    assert length.rows == [["a", f"{values[:20].mean():.3f}", f"{values[20:].mean():.3f}"]]


def test_groups_that_are_too_small_make_no_table() -> None:
    assert breakdown_sections(_task(12), {"a": np.zeros(12)}, P1, PerQuery()) == []


@pytest.mark.parametrize("name", ["–", " ", "²", "٣", "9" * 5000])
def test_a_language_may_be_anything(name: str) -> None:
    plain = _task(30)
    documents = [Document(id="de", text="x", metadata={"language": name}), *list(plain.documents)[1:]]
    task = Task(name="t", documents=documents, queries=plain.queries, judgments=plain.judgments)
    language, _ = breakdown_sections(task, {"a": np.zeros(30)}, P1, PerQuery())
    assert sorted(language.head[1:]) == sorted([f"{name} (15)", "en (15)"])
