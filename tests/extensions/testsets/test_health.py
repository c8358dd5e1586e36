from __future__ import annotations

from pathlib import Path

import pytest
from bakeoff.extensions.testsets.health import Health, health
from bakeoff.extensions.testsets.pool import write_pool
from bakeoff.lineup.lineup import Lineup
from bakeoff.tasks.load import load_task

from tests.cli.test_wrong_arguments import bakeoff
from tests.errors import says
from tests.native_task import TEXTS, annotate, native_files, open_task, pages, ungraded_task, write_lineup

ARTICLES = pages({**TEXTS, 4: ("Sheep", "wool")})


def examined(tmp_path: Path, queries: dict[str, str], truth: dict[str, dict[str, int]], targets: str = "") -> Health:
    path = write_lineup(
        tmp_path,
        native_files(ARTICLES, queries, truth),
        head='measures = ["p@2", "recall@2", "mrr"]\nprimary = "mrr"',
        task=targets,
        contenders='[[contender]]\nranker = "bm25"\n',
    )
    lineup = Lineup.read(path)
    return health(load_task(lineup.task, lineup.folder), lineup)


def test_everything_that_is_wrong_is_found(tmp_path: Path) -> None:
    report = examined(
        tmp_path,
        {"q1": "copper mine", "q2": "sailing lake", "q3": "Copper mine?", "q4": "volcano"},
        {
            "q1": {"1": 3, "2": 0, "3": 0, "4": 0},
            "q2": {"2": 3},
            "q3": {"1": 2, "2": 2, "3": 2, "4": 0},
            "q4": {"1": 0},
        },
        'targets = { "p@2" = 0.9, "mrr" = 0.5 }',
    )
    assert report.without_relevant == ["q4"]
    assert report.too_many == {"q3": 3}
    assert report.beyond_cut == {"q3": 3}
    assert report.duplicates == [("q1", "q3", 1.0)]
    assert report.judged == 10
    assert report.judged_share == pytest.approx(10 / 16)
    # a perfect ranking has p@2 of 1/2, 1/2, 1 and 0; mrr of 1, 1, 1 and 0; and words alone find the same three
    oracle = {row.measure: row.oracle for row in report.ceilings}
    assert oracle == {"p@2": pytest.approx(0.5), "recall@2": pytest.approx((1 + 1 + 2 / 3) / 4), "mrr": 0.75}
    assert [row.measure for row in report.ceilings if row.out_of_reach] == ["p@2"]
    assert report.lexical == pytest.approx(1)
    assert report.shared_words == pytest.approx((1 + 1 + 1 / 3) / 3)  # q3 shares its words with one of its three
    found = {finding.id: finding.arguments for finding in report.findings()}
    assert found["nothing_relevant"] == {"count": 1, "queries": ["q4"]}
    assert found["testsets.mostly_relevant"] == {"count": 1, "queries": ["q3"], "share": 0.5}
    assert found["testsets.more_relevant_than_depth"] == {"count": 1, "queries": ["q3"], "depth": 2}
    assert found["testsets.target_out_of_reach"] == {"measure": "p@2", "target": 0.9, "oracle": pytest.approx(0.5)}
    assert found["testsets.near_duplicates"] == {"first": "q1", "second": "q3", "share": 1.0}
    assert {"testsets.lexical_task", "testsets.top_ungraded"} <= found.keys()


def test_a_sound_task_has_nothing_to_fix(tmp_path: Path) -> None:
    queries = {"q1": "ore dug from hills", "q2": "a trip by yacht", "q3": "leafy walks"}
    truth = {q: {str(n): 3 * (n == place) for n in range(1, 5)} for place, q in enumerate(queries, start=1)}
    report = examined(tmp_path, queries, truth)
    assert report.findings() == []
    assert report.judged_share == report.judged_top == 1
    assert report.lexical == 0  # no word is shared


def test_an_ungraded_task_says_so_and_does_not_break(tmp_path: Path) -> None:
    report = examined(tmp_path, {"q1": "copper"}, {})
    assert report.without_relevant == ["q1"]
    assert report.lexical is None
    assert report.shared_words is None
    assert report.judged_top == 0


def _pooled(folder: Path, grades: dict[str, dict[str, int]]) -> None:
    """Two queries over three documents, of whose six pairs a line-up pooled three."""
    ungraded_task(folder)
    annotate(folder, "ann", grades)
    task = open_task(folder)
    write_pool(task, {"q1": ["1", "2"], "q2": ["2"]}, {})
    task.write_truth()
    (folder / "bakeoff.toml").write_text('task = "task"\nmeasures = ["ndcg@3"]\n[[contender]]\nranker = "bm25"\n')


def test_a_pool_that_is_graded_leaves_nothing_to_grade(tmp_path: Path) -> None:
    """The three baselines rank other documents, too: nobody pooled those, so no command would bring them up."""
    _pooled(tmp_path, {"q1": {"1": 3, "2": 0}, "q2": {"2": 3}})
    code, out, err = bakeoff(tmp_path, "validate")
    assert code == 0, out + err
    said = " ".join(out.split())
    says(out, "100.0%", "50.0%")
    assert all(label in said for label in ("bm25", "tfidf+faiss", "fake+faiss"))
    assert "bakeoff grade" not in said


def test_the_command_for_an_open_pair_of_the_pool_brings_it_up(tmp_path: Path) -> None:
    _pooled(tmp_path, {"q1": {"1": 3, "2": 0}})
    said = " ".join(bakeoff(tmp_path, "validate")[1].split())
    assert "bakeoff grade task --ungraded" in said
    code, out, err = bakeoff(tmp_path, "grade", "task", "--ungraded", "--all-below", "0", "--dry-run")
    assert code == 0, out + err
    says(out, "1")


def test_without_a_pool_the_line_up_s_rows_are_to_be_graded(tmp_path: Path) -> None:
    _pooled(tmp_path, {"q1": {"1": 3, "2": 0}})
    (tmp_path / "task" / "annotations" / "pool.json").unlink()
    said = " ".join(bakeoff(tmp_path, "validate")[1].split())
    assert "bm25, tfidf+faiss and fake+faiss" in said
    assert "bakeoff grade task --lineup bakeoff.toml --ungraded" in said


def test_a_pool_of_before_the_task_was_changed_is_said_and_stops_nothing(tmp_path: Path) -> None:
    _pooled(tmp_path, {"q1": {"1": 3, "2": 0}})
    pool = tmp_path / "task" / "annotations" / "pool.json"
    pool.write_text(pool.read_text().replace('"q2"', '"gone"'))
    code, out, err = bakeoff(tmp_path, "validate")
    assert code == 0, out + err
    says(out, "gone, 2")
