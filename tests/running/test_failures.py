"""What an adapter does wrong costs its own row; what the user wrote wrong stops the run before anything is spent."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from bakeoff.lineup.lineup import Lineup
from bakeoff.results.save import save
from bakeoff.results.schema import read_summary
from bakeoff.running.runner import Outcome, run
from bakeoff.search.rankers import RANKERS
from bakeoff.search.stores import STORES
from bakeoff_providers import PROVIDERS
from bakeoff_providers.errors import InputError

from tests.native_task import native_files, write_lineup

GOOD = '[[contender]]\nranker = "bm25"\n[[contender]]\nprovider = "fake"\nstore = "faiss"\n'


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STORES.builtin, "bad", "tests.running.misbehaving:BadStore")
    monkeypatch.setitem(RANKERS.builtin, "bad", "tests.running.misbehaving:BadRanker")
    monkeypatch.setitem(PROVIDERS.builtin, "bad", "tests.running.misbehaving:BadProvider")


def _lineup(folder: Path, contenders: str) -> Lineup:
    file = write_lineup(
        folder, native_files(), head='measures = ["mrr"]\nrounds = 2', task='name = "own"', contenders=contenders
    )
    return Lineup.read(file)


def _reason(outcome: Outcome) -> str:
    """The one row that is lost; the others ran."""
    assert [row.contender.label for row in outcome.ran] == ["bm25", "fake+faiss"]
    (lost,) = outcome.not_run
    return lost.reason


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("unknown", "unknown id 'nobody'"),
        ("duplicate", "'1' twice"),
        ("nan", "NaN as the score of '1'"),
        ("lengths", "ValueError"),
        ("raises", "LibraryError: the connection was lost"),
        ("input", "this is not the user's fault"),
        ("add", "LibraryError: no room is left"),
        ("late", "unknown id 'nobody'"),
    ],
)
def test_a_store_that_misbehaves_costs_its_row(tmp_path: Path, how: str, said: str) -> None:
    store = f'store = {{ name = "bad", options = {{ how = "{how}" }} }}\n'
    outcome = run(_lineup(tmp_path, f'{GOOD}[[contender]]\nprovider = "fake"\nlabel = "x"\n{store}'))
    assert said in _reason(outcome)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("unknown", "unknown id 'nobody'"),
        ("duplicate", "'1' twice"),
        ("nan", "NaN as the score of '1'"),
        ("raises", "LibraryError: the connection was lost"),
        ("input", "this is not the user's fault"),
    ],
)
def test_a_ranker_that_misbehaves_costs_its_row(tmp_path: Path, how: str, said: str) -> None:
    outcome = run(_lineup(tmp_path, f'{GOOD}[[contender]]\nranker = "bad"\noptions = {{ how = "{how}" }}\n'))
    assert said in _reason(outcome)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("created", "LibraryError: the driver is too old"),
        ("raises", "LibraryError: the connection was lost"),
        ("input", "this is not the user's fault"),
        ("query", "LibraryError: the connection was lost"),
        ("few", "answered 2 vectors for 3 texts"),
        ("nan", "answered NaN or infinity for text 1"),
    ],
)
def test_a_provider_that_misbehaves_costs_its_row(tmp_path: Path, how: str, said: str) -> None:
    bad = f'[[contender]]\nprovider = "bad"\nstore = "faiss"\noptions = {{ how = "{how}" }}\n'
    assert said in _reason(run(_lineup(tmp_path, GOOD + bad)))


def test_a_provider_that_fails_is_not_asked_again_for_its_second_store(tmp_path: Path) -> None:
    outcome = run(_lineup(tmp_path, '[[contender]]\nprovider = "bad"\nstore = ["faiss", "chroma"]\n'))
    assert [row.reason for row in outcome.not_run] == ["LibraryError: the connection was lost"] * 2


def test_a_fusion_fails_with_the_part_that_fails_when_it_is_asked(tmp_path: Path) -> None:
    contenders = (
        f'{GOOD}[[contender]]\nranker = "bad"\n[[fusion]]\nlabel = "both"\nof = ["bm25", "bad"]\n'
        '[[fusion]]\nlabel = "whole"\nof = ["bm25", "fake+faiss"]\n'
    )
    outcome = run(_lineup(tmp_path, contenders))
    assert [row.contender.label for row in outcome.ran] == ["bm25", "fake+faiss", "whole"]
    assert {row.contender.label for row in outcome.not_run} == {"bad", "both"}


def test_the_row_says_why_and_the_log_has_the_traceback(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="bakeoff"):
        outcome = run(_lineup(tmp_path, f'{GOOD}[[contender]]\nranker = "bad"\n'))
    rows = {row.label: row for row in read_summary(save(outcome, tmp_path / "results")).rows}
    assert rows["bad"].not_run == "LibraryError: the connection was lost"
    assert rows["bad"].measures == {}
    assert rows["bm25"].not_run is None
    (logged,) = [entry for entry in caplog.records if "bad" in entry.getMessage()]
    assert logged.exc_info
    assert logged.name.startswith("bakeoff")


@pytest.mark.parametrize(
    ("contenders", "said"),
    [
        ('[[contender]]\nprovider = "fake"\nstore = { name = "bad", options = { how = "option" } }\n', "can't be 'opt"),
        (
            '[[contender]]\nprovider = "fake"\nlabel = "x"\nstore = "faiss"\noptions = { dimensions = 0 }\n',
            "dimensions is 0",
        ),
        (
            '[[contender]]\nprovider = "fake"\nlabel = "x"\nstore = "faiss"\ndimensions = 900\n',
            "900 dimensions",
        ),
        ('[[contender]]\nanswers = "nowhere.trec"\n', "no such file"),
    ],
)
def test_what_the_line_up_has_wrong_stops_the_run(tmp_path: Path, contenders: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        run(_lineup(tmp_path, GOOD + contenders))


@pytest.mark.parametrize(
    "wrong",
    [
        '[[contender]]\nprovider = "fake"\nlabel = "x"\nstore = "faiss"\noptions = { dimensions = 0 }\n',
        '[[contender]]\nprovider = "fake"\nlabel = "x"\nstore = "faiss"\ndimensions = 900\n',
        '[[contender]]\nanswers = "broken.jsonl"\n',
    ],
    ids=["an option", "dimensions", "a file of answers"],
)
def test_it_stops_before_anything_is_embedded(tmp_path: Path, wrong: str, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "broken.jsonl").write_text("{")
    lineup = _lineup(tmp_path, f'[[contender]]\nprovider = "bad"\nstore = "faiss"\n{wrong}')
    with caplog.at_level(logging.WARNING, logger="bakeoff"), pytest.raises(InputError):
        run(lineup)
    assert not caplog.records  # the first row fails as soon as it is embedded, and that would be logged
