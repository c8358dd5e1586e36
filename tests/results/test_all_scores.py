"""More queries than `detailed_results.json` holds: comparisons, gates and restated standings are over all of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from bakeoff.core.files import read_json, write_json
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.evaluation import Evaluation
from bakeoff.results import summary
from bakeoff.results.all_scores import QUERIES, AllQueries
from bakeoff.results.compare import compare_results
from bakeoff.results.gate import gate
from bakeoff.results.restate import restate
from bakeoff.results.result import load
from bakeoff.results.save import save
from bakeoff.running.runner import Outcome, run
from bakeoff_providers.errors import InputError

from tests.errors import refuses
from tests.extensions.production.test_log_run import traffic_folder
from tests.facts import ids


@pytest.fixture
def outcome(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Outcome:
    """Six queries that stand for traffic, two of which are detailed."""
    monkeypatch.setattr(summary, "DETAILED_QUERIES", 2)
    return run(Lineup.read(traffic_folder(tmp_path) / "bakeoff.toml"))


def test_comparisons_are_over_every_query(tmp_path: Path, outcome: Outcome) -> None:
    """By hand (tests/extensions/production/test_log_run.py): per query asked, `head` has 7/12 and `tail` a half."""
    folder = save(outcome, tmp_path / "results")
    result = load(folder)
    assert len(result.detailed.queries) == 2
    assert list(result.queries) == [query.id for query in outcome.task.queries]
    assert result.values("head", "p@1").tolist() == outcome.scores["head"]["p@1"]
    for read in (result, Evaluation(outcome).result):
        comparison = compare_results([read], "p@1")
        assert comparison.means == pytest.approx({"head": 7 / 12, "tail": 0.5})
        assert comparison.pairs == result.summary.verdict.pairs
        assert {change.text for change in comparison.changed_most(comparison.pairs[0], 9)} <= set(read.queries.values())
    (check,) = gate(result, result, "p@1", contenders=["tail=head"]).checks
    assert (check.before, check.after) == pytest.approx((7 / 12, 0.5))
    assert restate(result).verdict == result.summary.verdict
    assert "detailed_in_part" in ids(result.summary.warnings)


def test_titles_are_of_the_queries_that_are_shown(outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = [query.id for query in outcome.task.queries[:2]]
    found = {document for row in outcome.ran for query in shown for document in row.rankings[query].ids}
    assert set(summary.detail(outcome).titles) == found.union(*(outcome.task.judgments[query] for query in shown))
    monkeypatch.setattr(summary, "DETAILED_QUERIES", 0)
    assert summary.detail(outcome).titles == {}


def test_a_measure_that_was_not_stored_is_refused(tmp_path: Path, outcome: Outcome) -> None:
    result = load(save(outcome, tmp_path / "results"))
    with refuses(InputError, "rbp@7", "2 of 6"):
        compare_results([result], "rbp@7")


def test_an_old_result_that_has_only_the_first_queries_is_refused(tmp_path: Path, outcome: Outcome) -> None:
    folder = save(outcome, tmp_path / "results")
    (folder / QUERIES).unlink()
    old = load(folder)
    with refuses(InputError, "2 of 6"):
        compare_results([old], "p@1")
    with refuses(InputError, "2 of 6"):
        restate(old, equivalent_within=0.5)
    refused = gate(old, old, "p@1")
    assert refused.exit_code == 2
    assert "2 of 6" in str(refused.refused[0].arguments["problem"])


def test_arrays_that_were_changed_are_bad_input(tmp_path: Path, outcome: Outcome) -> None:
    folder = save(outcome, tmp_path / "results")
    array, queries = folder / "all_scores" / "head.npy", folder / QUERIES
    table = np.load(array)
    np.save(array, table[:4])
    with refuses(InputError, "(4, ", "(6, ", file="head.npy"):
        load(folder)
    array.write_bytes(b"\x93NUMPY\x01\x00")
    with refuses(InputError, "unreadable", file="head.npy"):
        load(folder)
    np.save(array, table)
    asked = read_json(queries, AllQueries)
    write_json(queries, AllQueries(texts=asked.texts, drawn=asked.drawn[:3], measures=asked.measures))
    with refuses(InputError, file="all_queries.json"):
        load(folder)


def test_few_queries_need_no_arrays(tmp_path: Path, outcome: Outcome, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary, "DETAILED_QUERIES", 6)
    folder = save(outcome, tmp_path / "results")
    assert not (folder / QUERIES).exists()
    assert not (folder / "all_scores").exists()
    assert compare_results([load(folder)], "p@1").means == pytest.approx({"head": 7 / 12, "tail": 0.5})
