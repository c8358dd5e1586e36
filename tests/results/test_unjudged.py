"""Unjudged documents in a result: the column, the table and the sentence of a real run."""

from __future__ import annotations

from itertools import permutations, product
from pathlib import Path

import pytest
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Document, Query, Task
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.score import join, score_queries
from bakeoff.evaluation.unjudged import if_relevant
from bakeoff.report.matrix import matrix
from bakeoff.report.sections import text_table
from bakeoff.report.words import words
from bakeoff.results.schema import PossibleWinner, Row
from bakeoff.results.unjudged import bounds_of, possible_winners, unjudged_sections
from bakeoff.statistics.averaging import PerQuery

from tests.facts import heads, ids
from tests.native_task import ungraded_task
from tests.registries import FAMILIES

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
    winners = possible_winners(rankings, "best", task, P1)
    assert winners == [PossibleWinner(challenger="one", documents=1)]


def test_a_run_names_the_rows_that_grades_could_put_first(tmp_path: Path) -> None:
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.results.summary import summarise
    from bakeoff.running.runner import run

    ungraded_task(tmp_path)
    (tmp_path / "task" / "ground_truth.json").write_text('{"grades": {"q1": {"1": 0}, "q2": {"2": 3}}}')
    rows = ""
    for name, document in {"first": 1, "other": 2}.items():
        (tmp_path / f"{name}.jsonl").write_text(
            f'{{"query": "q1", "ranked": ["{document}"]}}\n{{"query": "q2", "ranked": ["2"]}}\n'
        )
        rows += f'[[contender]]\nlabel = "{name}"\nanswers = "{name}.jsonl"\n'
    (tmp_path / "small one.toml").write_text(f'name = "s"\ntask = "task"\nmeasures = ["p@1"]\n{rows}')
    verdict = summarise(run(Lineup.read(tmp_path / "small one.toml"))).verdict
    assert verdict.turning == [PossibleWinner(challenger="other", documents=1)]
    assert verdict.situation == "nothing beats random"  # of two queries


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
        'task = {format = "beir", folder = "."}\nmeasures = ["p@1", "rbp_residual"]\n[[contender]]\nranker = "bm25"\n'
        '[[contender]]\nprovider = "tfidf"\nstore = "faiss"\n'
    )
    summary = summarise(run(Lineup.read(tmp_path / "lineup.toml")))
    heads = [column.head for column in matrix(summary).columns]
    marks = [(line.cells["p@1"].marks, line.cells["rbp_residual"].marks) for line in matrix(summary).lines[:2]]
    assert all("★" in ranked and not known for ranked, known in marks)  # no star for knowing least
    titles = ids(section.title for section in summary.sections)
    assert ("judged @1" in heads, "unjudged" in titles) == (not graded, not graded)
    bounds = next(row.bounds["p@1"] for row in summary.rows if row.label == "bm25")
    # bm25 puts 1 first for q1 and 3, which nobody graded, for q2.
    expected = (1.0, 0.5, 0.5) if graded else (0.5, 0.5, 1.0)
    assert (bounds.judged, bounds.irrelevant, bounds.relevant) == expected


def test_a_run_does_not_count_what_its_ranker_filled_up_with(tmp_path: Path) -> None:
    """q1 and q2 share a word with one document each, and both are graded: nothing is open, whoever follows by id."""
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.results.result import load
    from bakeoff.results.save import save
    from bakeoff.running.runner import run

    (tmp_path / "corpus.jsonl").write_text(
        "".join(f'{{"_id": "{key}", "title": "", "text": "{key} stone"}}\n' for key in ("copper", "lake", "mill"))
    )
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "copper"}\n{"_id": "q2", "text": "mill"}\n')
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tcopper\t1\nq2\tmill\t1\n")
    (tmp_path / "lineup.toml").write_text(
        'task = {format = "beir", folder = "."}\nmeasures = ["p@3"]\n[[contender]]\nranker = "bm25"\n'
    )
    result = load(save(run(Lineup.read(tmp_path / "lineup.toml")), tmp_path / "results"))
    assert result.detailed.contenders[0].queries["q1"].ids == ["copper", "lake", "mill"]
    (bounds,) = result.summary.rows[0].bounds.values()
    assert [bounds.judged, bounds.irrelevant, bounds.relevant] == pytest.approx([1, 1 / 3, 1 / 3])
    assert "judged @3" not in [column.head for column in matrix(result.summary).columns]
    assert result.values("bm25", "judged@2").tolist() == [1.0, 1.0]  # worked out from the stored rankings


@pytest.mark.parametrize("name", [name for name, family in FAMILIES.items() if family.monotone])
def test_what_is_called_bounded_is_so_under_every_grading(name: str) -> None:
    measure, judged = Measure.of(name, 3), {"b": 2, "far": 1}
    for order in permutations("abcd"):
        answers = {"q": Ranking(order, (4.0, 3.0, 2.0, 1.0))}
        open_ = [document for document in "acde" if document != "b"]  # below the cut and outside the ranking too

        def value(grades: dict[str, int], answers: dict[str, Ranking] = answers) -> float:
            return float(score_queries(join(answers, {"q": grades}, ["q"]), [measure])[measure][0])

        low, (high,) = value(judged), if_relevant(answers, {"q": judged}, ["q"], measure)
        for grades in product((0, 1, 2), repeat=len(open_)):
            graded = value(judged | dict(zip(open_, grades, strict=True)))
            assert low - 1e-12 <= graded <= high + 1e-12, (order, grades)


def test_a_condensed_list_falls_below_its_score_when_what_was_taken_out_gets_a_grade() -> None:
    """An unjudged document before five relevant ones: without it p@5 is 1, and 0.8 once it is graded 0."""
    measure, answers = Measure.parse("p(unjudged=removed)@5"), {"q": Ranking(tuple("uabcde"), (6, 5, 4, 3, 2, 1))}
    judged = dict.fromkeys("abcde", 1)
    shown, graded = (
        float(score_queries(join(answers, {"q": grades}, ["q"]), [measure])[measure][0])
        for grades in (judged, judged | {"u": 0})
    )
    assert (shown, graded) == (1.0, 0.8)


def test_what_tells_how_much_is_judged_has_no_bounds_of_its_own() -> None:
    answers = {"q1": Ranking(("a",), (1.0,)), "q2": Ranking(("b",), (1.0,))}
    measures = [P1, Measure.parse("judged@1"), Measure.parse("rbp_residual")]
    assert list(bounds_of(answers, _task({"q1": {"a": 1}}), measures, PerQuery())) == ["p@1"]


@pytest.mark.parametrize(
    ("name", "scored", "last"),
    [
        ("p@1", "score_if_irrelevant", "bounds"),
        ("ndcg@1", "score_if_irrelevant", "no_bounds_normalised"),
        ("p(unjudged=removed)@1", "score_condensed", "no_bounds_condensed"),
    ],
)
def test_the_table_says_what_its_columns_mean(name: str, scored: str, last: str) -> None:
    measure = Measure.parse(name)
    answers = {"q1": Ranking(("a",), (1.0,)), "q2": Ranking(("b",), (1.0,))}
    bounds = bounds_of(answers, _task({"q1": {"a": 1}, "q2": {"c": 1}}), [measure], PerQuery())
    (section,) = unjudged_sections([Row(label="one", row_type="contender", measures={}, bounds=bounds)], measure)
    assert heads(section) == ["contender", "Judged@1", scored, "score_if_relevant"]
    assert ids(section.notes) == ["judged_share", "unjudged_scores", last]
    said = " ".join(map(words, section.notes))
    assert all(head in said for head in text_table(section).heads[1:])  # every column is explained by its name


def test_the_page_says_what_filled_places_earn(tmp_path: Path) -> None:
    """The ranking is cut here where its matches end, and scored again."""
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.running.runner import run

    file = Path(__file__).parents[2] / "docs" / "concepts" / "unjudged.md"
    page = " ".join(file.read_text(encoding="utf-8").split())

    def figures(task: str) -> tuple[int, tuple[str, str]]:
        (tmp_path / "lineup.toml").write_text(f'task = "{task}"\n[[contender]]\nranker = "bm25"\n')
        outcome = run(Lineup.read(tmp_path / "lineup.toml"))
        whole, task_ = outcome.ran[0].rankings, outcome.task
        matched = {
            query: Ranking(ranking.found, ranking.scores[: len(ranking.found)]) for query, ranking in whole.items()
        }
        ndcg, ids = Measure.parse("ndcg@10"), list(whole)
        with_, without = (
            f"{score_queries(join(answers, task_.judgments, ids), [ndcg], task_.rel)[ndcg].mean():.3f}"
            for answers in (whole, matched)
        )
        filled = sum(max(0, 10 - len(ranking.found)) for ranking in whole.values())
        return filled, (with_, without)

    filled, ndcg = figures("wikipedia")
    assert f"bm25 fills {filled} of 200 places: its NDCG@10 is {ndcg[0]} with them and {ndcg[1]} without" in page
    filled, ndcg = figures("wikipedia-paraphrased")
    assert f"it fills {filled}: {ndcg[0]} and {ndcg[1]}." in page
