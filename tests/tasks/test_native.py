"""Bad input of every kind: the file, the place and the remedy are in the error."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bakeoff.core.files import read_json
from bakeoff.core.paths import lineup_file, root, task_file
from bakeoff.lineup.lineup import Lineup
from bakeoff.results.save import save
from bakeoff.results.schema import read_summary
from bakeoff.running.runner import run
from bakeoff.tasks.formats.native import read_task
from bakeoff.tasks.ground_truth import GroundTruth
from bakeoff.tasks.load import load_task
from bakeoff_providers.errors import InputError
from sklearn.metrics import cohen_kappa_score

from tests.errors import refuses
from tests.native_task import native_files, pages, write_files

Files = dict[str, Any]


def _files() -> Files:
    two = {1: ("One", "first"), 2: ("Two", "second")}
    return native_files(pages(two), {"q1": "ask"}, {"q1": {"1": 3, "2": 1}})


def _read(folder: Path, files: Files) -> None:
    write_files(folder, files)
    read_task("t", folder / "articles.json", folder / "queries.json", folder / "truth.json")


def test_the_sound_files_are_read(tmp_path: Path) -> None:
    files = _files()
    _read(tmp_path, files)
    task = read_task("t", tmp_path / "articles.json", tmp_path / "queries.json", tmp_path / "truth.json", rel=2)
    assert [document.id for document in task.documents] == ["1", "2"]
    assert task.judgments == {"q1": {"1": 3, "2": 1}}
    assert task.rel == 2


def test_a_file_name_that_no_file_can_have_is_the_task_files_error(tmp_path: Path) -> None:
    write_files(tmp_path, _files())
    name = "x" * 300
    (tmp_path / "task.toml").write_text(
        f'format = "native"\narticles = "articles.json"\nqueries = "queries.json"\nground_truth = "{name}"\n'
    )
    with refuses(InputError, file=tmp_path / name):
        load_task(str(tmp_path / "task.toml"), Path())


def _broken(change: Callable[[Files], object]) -> Files:
    files = _files()
    change(files)
    return files


@pytest.mark.parametrize(
    ("change", "file", "said"),
    [
        (lambda f: f.update(articles='{"articles": [\n{"page_id": 1,}]}'), "articles", "JSON"),
        (lambda f: f["articles"]["articles"][0].pop("title"), "articles", "articles 1"),
        (
            lambda f: f["articles"]["articles"][1].update(sumary="x"),
            "articles",
            "'sumary'",
        ),
        (lambda f: f["articles"]["articles"][1].update(page_id=1), "articles", "articles 2"),
        (lambda f: f["articles"]["articles"][1].update(page_id=1.5), "articles", "page_id"),
        (lambda f: f["articles"]["articles"][1].update(page_id="1"), "articles", "articles 2"),
        (lambda f: f["articles"]["articles"][0].update(summary="  "), "articles", "articles 1"),
        (lambda f: f["articles"].update(articles=[]), "articles", "articles"),
        (lambda f: f["truth"]["grades"]["q1"].update({"2": 7}), "truth", "grades.q1.2"),
        (lambda f: f["truth"]["grades"]["q1"].update({"9": 1}), "truth", "grades.q1.9"),
        (lambda f: f["truth"]["grades"].update({"q9": {}}), "truth", "'q9'"),
        (lambda f: f["queries"].update(categorys={"x": 1}), "queries", "'categorys'"),
        (lambda f: f["truth"].update(grade={}), "truth", "'grade'"),
        (lambda f: f["queries"]["queries"].append(f["queries"]["queries"][0]), "queries", "'q1'"),
        (lambda f: f["queries"]["queries"][0].update(query_text=" "), "queries", "query_text"),
    ],
)
def test_bad_input_is_named(tmp_path: Path, change: Callable[[Files], object], file: str | None, said: str) -> None:
    with refuses(InputError, said) as caught:
        _read(tmp_path, _broken(change))
    if file:
        assert str(caught.value).startswith(str(tmp_path / f"{file}.json"))


def test_a_missing_file_and_a_wrong_encoding(tmp_path: Path) -> None:
    with refuses(InputError, "none.json", file="none.json"):
        read_task("t", tmp_path / "none.json", tmp_path / "q", tmp_path / "t")
    (tmp_path / "latin.json").write_bytes('{"articles": "é"}'.encode("latin-1"))
    with refuses(InputError, "UTF-8", file="latin.json"):
        read_task("t", tmp_path / "latin.json", tmp_path / "q", tmp_path / "t")


@pytest.mark.parametrize("name", ["wikipedia", "wikipedia-paraphrased"])
class TestTheWikipediaTasks:
    def test_it_has_what_it_promises(self, name: str) -> None:
        task = load_task(name, Path())
        assert (len(task.documents), len(task.queries)) == (25, 20)
        assert set(task.categories) == {"geographic", "landmark", "historical", "administrative", "semantic"}
        assert all(sum(query.category == category for query in task.queries) == 4 for category in task.categories)
        assert all(len(grades) == 25 for grades in task.judgments.values())
        assert task.without_relevant() == []

    def test_the_annotators_agree_and_their_kappa_is_the_one_reported(self, name: str) -> None:
        folder = task_file(name).parent
        a, b = (read_json(folder / "annotations" / f"annotator_{name}.json", GroundTruth).grades for name in ("a", "b"))
        truth = read_json(folder / "ground_truth.json", GroundTruth)
        pairs = [(query, page) for query in truth.grades for page in truth.grades[query]]
        assert len(pairs) == 500
        kappa = cohen_kappa_score(
            [a[query][page] for query, page in pairs], [b[query][page] for query, page in pairs], weights="quadratic"
        )
        assert kappa >= 0.7
        assert truth.metadata["quadratic_weighted_kappa"] == pytest.approx(kappa, abs=1e-4)
        settled = json.loads((folder / "annotations" / "adjudication.json").read_text())
        chosen = {(entry["query_id"], str(entry["page_id"])): entry["grade"] for entry in settled}
        for query, page in pairs:
            agreed = a[query][page] if a[query][page] == b[query][page] else chosen[query, page]
            assert truth.grades[query][page] == agreed
        assert truth.metadata["disagreements"] == len(chosen) == sum(a[q][page] != b[q][page] for q, page in pairs)
        for annotator in ("a", "b"):  # who they are is said where their grades are
            metadata = json.loads((folder / "annotations" / f"annotator_{annotator}.json").read_text())["metadata"]
            assert metadata["kind"] == "model"

    def test_its_targets_can_be_met(self, name: str) -> None:
        task = load_task(name, Path())
        relevant = [sum(grade >= task.rel for grade in grades.values()) for grades in task.judgments.values()]
        p_at_5 = sum(min(5, number) / 5 for number in relevant) / 20
        f1_at_5 = sum(2 * min(5, number) / (5 + number) for number in relevant) / 20  # of a perfect ranking
        assert task.targets["p@5"] <= 0.8 * p_at_5
        assert task.targets["f1@5"] <= 0.8 * f1_at_5


def test_summaries_have_60_to_120_words() -> None:
    pool = json.loads((root() / "corpora" / "wikipedia" / "articles.json").read_text())["articles"]
    assert len(pool) == 54
    assert all(60 <= len(article["summary"].split()) <= 120 for article in pool)


def test_people_would_type_the_built_in_queries_and_the_others_avoid_the_articles_words() -> None:
    from bakeoff.search.rankers import BM25

    matched = {}
    for name in ("wikipedia", "wikipedia-paraphrased"):
        task = load_task(name, Path())
        ranker = BM25()
        ranker.add([document.id for document in task.documents], [document.text for document in task.documents])
        tops = [(query.id, ranker.search(query.text, 1).ids) for query in task.queries]
        matched[name] = sum(bool(ids) and task.judgments[query][ids[0]] >= task.rel for query, ids in tops)
    assert 10 < matched["wikipedia"] < 20  # some share words with what they want, some do not
    assert matched["wikipedia-paraphrased"] < 5


def test_the_multilingual_task_has_each_query_in_two_languages_under_the_english_grades() -> None:
    english, task = (load_task(name, Path()) for name in ("wikipedia", "wikipedia-multilingual"))
    assert [document.id for document in task.documents] == [document.id for document in english.documents]
    assert set(task.categories) == {"German", "Spanish"}
    texts = {query.id: query.text for query in task.queries}
    assert len(set(texts.values())) == 40
    for query in english.queries:
        for language in ("de", "es"):
            assert texts[f"{language}_{query.id}"] != query.text
            assert task.judgments[f"{language}_{query.id}"] == english.judgments[query.id]


def test_the_result_of_the_multilingual_line_up_has_a_figure_for_each_language(tmp_path: Path) -> None:
    lineup = Lineup.read(lineup_file(Path("multilingual"))).narrow(["bm25"], ())
    outcome = run(lineup)
    summary = read_summary(save(outcome, tmp_path))
    (row,) = (row for row in summary.rows if row.label == "bm25")
    assert set(row.categories) == set(summary.task.categories) == {"German", "Spanish"}
    by_query = dict(zip((query.id for query in outcome.task.queries), outcome.scores["bm25"]["ndcg@10"], strict=True))
    for language, begins in (("German", "de_"), ("Spanish", "es_")):
        own = [value for query, value in by_query.items() if query.startswith(begins)]
        assert len(own) == 20
        assert row.categories[language]["ndcg@10"] == pytest.approx(sum(own) / 20)
