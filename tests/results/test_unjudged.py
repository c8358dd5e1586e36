"""Unjudged documents in a result: the column, the table and the sentence of a real run."""

from __future__ import annotations

from pathlib import Path

import pytest
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Document, Query, Task
from bakeoff.evaluation.measures import Measure
from bakeoff.report.matrix import matrix
from bakeoff.results.averaging import PerQuery
from bakeoff.results.schema import Turning
from bakeoff.results.unjudged import bounds_of, turning, turning_sentences

P1 = Measure.parse("p@1")


def _task(judgments: dict[str, dict[str, int]]) -> Task:
    documents = [Document(id=name, text=name) for name in "abcd"]
    return Task(name="t", documents=documents, queries=[Query("q1", "x"), Query("q2", "y")], judgments=judgments)


def test_the_bounds_of_a_row_by_hand() -> None:
    """q1's first is relevant, q2's is unjudged: half is judged, and p@1 is 0.5 or 1."""
    answers = {"q1": Ranking(("a",), (1.0,)), "q2": Ranking(("b",), (1.0,))}
    (bounds,) = bounds_of(answers, _task({"q1": {"a": 1}, "q2": {"c": 1}}), [P1], PerQuery()).values()
    assert (bounds.judged, bounds.irrelevant, bounds.relevant) == (0.5, 0.5, 1.0)


def test_the_contender_that_needs_the_fewest_grades_is_named() -> None:
    def first(one: str, two: str) -> dict[str, Ranking]:
        return {"q1": Ranking((one,), (1.0,)), "q2": Ranking((two,), (1.0,))}

    task = _task({"q1": {"a": 0, "b": 0}, "q2": {"a": 0}})
    rankings = {"best": first("a", "a"), "one": first("b", "d"), "same": first("a", "a")}
    turns = turning(rankings, "best", task, P1)
    assert turns == [Turning(challenger="one", documents=1)]
    (sentence,) = turning_sentences(turns, "best", P1)
    assert "if one unjudged document that one ranks above best had the highest grade, one would lead" in sentence


@pytest.mark.parametrize("graded", [True, False])
def test_a_run_says_what_is_unjudged(tmp_path: Path, graded: bool) -> None:
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.results.summary import summarise
    from bakeoff.running.runner import run

    texts = {"1": "copper lake", "2": "lake boat", "3": "stone mill", "4": "mill river"}
    (tmp_path / "corpus.jsonl").write_text(
        "".join(f'{{"_id": "{key}", "title": "", "text": "{text}"}}\n' for key, text in texts.items())
    )
    (tmp_path / "queries.jsonl").write_text(
        '{"_id": "q1", "text": "copper lake"}\n{"_id": "q2", "text": "stone mill"}\n'
    )
    (tmp_path / "qrels").mkdir()
    pairs = [("q1", "1", 1), ("q2", "4", 1)]
    if graded:
        pairs = [(q, d, int((q, d) in {("q1", "1"), ("q2", "4")})) for q in ("q1", "q2") for d in texts]
    (tmp_path / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"{q}\t{d}\t{g}\n" for q, d, g in pairs)
    )
    (tmp_path / "lineup.toml").write_text(
        'task = {format = "beir", folder = "."}\nmeasures = ["p@1"]\n[[contender]]\nranker = "bm25"\n'
        '[[contender]]\nprovider = "tfidf"\nstore = "faiss"\n'
    )
    summary = summarise(run(Lineup.read(tmp_path / "lineup.toml")))
    heads = [column.head for column in matrix(summary).columns]
    sections = [section.title for section in summary.sections]
    assert ("judged @1" in heads, "Unjudged documents" in sections) == (not graded, not graded)
    bounds = next(row.bounds["p@1"] for row in summary.rows if row.label == "bm25")
    # bm25 puts 1 first for q1 and 3, which nobody graded, for q2.
    expected = (1.0, 0.5, 0.5) if graded else (0.5, 0.5, 1.0)
    assert (bounds.judged, bounds.irrelevant, bounds.relevant) == expected
