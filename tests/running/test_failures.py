"""What is wrong with one contender costs its own row, and the others are written."""

from __future__ import annotations

import logging
import sys
from functools import partial
from pathlib import Path

import pytest
from bakeoff.core.facts import Fact, Failure, fact
from bakeoff.lineup.lineup import Lineup
from bakeoff.report.words import failure_words
from bakeoff.results.save import save
from bakeoff.results.schema import read_summary
from bakeoff.running.runner import Outcome, Settings, run
from bakeoff.search.rankers import RANKERS
from bakeoff.search.stores import STORES
from bakeoff.systems.base import NotRun
from bakeoff.systems.failures import AdapterFailed, adapter_work, attempt, reason_of
from bakeoff.systems.lexical import Lexical
from bakeoff_providers import PROVIDERS, stopping
from bakeoff_providers.errors import InputError

from tests.errors import refuses, says
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
    return failure_words(lost.failure)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("unknown", "'nobody'"),
        ("duplicate", "'1' twice"),
        ("nan", "'1'"),
        ("lengths", "ValueError"),
        ("raises", "LibraryError: the connection was lost"),
        ("panics", "PanicException: called `Option::unwrap()`"),
        ("input", "unfathomable"),
        ("add", "LibraryError: no room is left"),
        ("late", "'nobody'"),
    ],
)
def test_a_store_that_misbehaves_costs_its_row(tmp_path: Path, how: str, said: str) -> None:
    store = f'store = {{ name = "bad", options = {{ how = "{how}" }} }}\n'
    outcome = run(_lineup(tmp_path, f'{GOOD}[[contender]]\nprovider = "fake"\nlabel = "x"\n{store}'))
    says(_reason(outcome), said)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("unknown", "'nobody'"),
        ("duplicate", "'1' twice"),
        ("nan", "'1'"),
        ("raises", "LibraryError: the connection was lost"),
        ("panics", "PanicException: called `Option::unwrap()`"),
        ("input", "unfathomable"),
    ],
)
def test_a_ranker_that_misbehaves_costs_its_row(tmp_path: Path, how: str, said: str) -> None:
    outcome = run(_lineup(tmp_path, f'{GOOD}[[contender]]\nranker = "bad"\noptions = {{ how = "{how}" }}\n'))
    says(_reason(outcome), said)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("created", "LibraryError: the driver is too old"),
        ("raises", "LibraryError: the connection was lost"),
        ("input", "unfathomable"),
        ("query", "LibraryError: the connection was lost"),
        ("few", "2 vectors"),
        ("nan", "1"),
    ],
)
def test_a_provider_that_misbehaves_costs_its_row(tmp_path: Path, how: str, said: str) -> None:
    bad = f'[[contender]]\nprovider = "bad"\nstore = "faiss"\noptions = {{ how = "{how}" }}\n'
    says(_reason(run(_lineup(tmp_path, GOOD + bad))), said)


def test_a_provider_that_fails_is_not_asked_again_for_its_second_store(tmp_path: Path) -> None:
    outcome = run(_lineup(tmp_path, '[[contender]]\nprovider = "bad"\nstore = ["faiss", "chroma"]\n'))
    assert [failure_words(row.failure) for row in outcome.not_run] == ["LibraryError: the connection was lost"] * 2


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
    assert rows["bad"].not_run == Failure(kind="raised", error="LibraryError", text="the connection was lost")
    assert rows["bad"].measures == {}
    assert rows["bm25"].not_run is None
    (logged,) = [entry for entry in caplog.records if "bad" in entry.getMessage()]
    assert logged.exc_info
    assert logged.name.startswith("bakeoff")


WRONG = [
    ('provider = "fake"\nstore = { name = "bad", options = { how = "option" } }', "can't be 'option'"),
    ('provider = "fake"\nlabel = "x"\nstore = "faiss"\ndimensions = 900', "900 dimensions"),
    (
        'provider = "fake"\nlabel = "x"\nstore = { name = "faiss", options = { index = "IVF4096,Flat" } }',
        "'IVF4096,Flat'",
    ),
    ('provider = "precomputed"\nstore = "faiss"\noptions = { path = "nowhere.npy" }', "nowhere.npy"),
    ('answers = "nowhere.trec"', "nowhere.trec"),
    ('answers = "broken.jsonl"', "broken.jsonl"),
]


@pytest.mark.parametrize(("contender", "said"), WRONG, ids=[said for _, said in WRONG])
def test_what_one_contender_has_wrong_costs_its_row(tmp_path: Path, contender: str, said: str) -> None:
    (tmp_path / "broken.jsonl").write_text("{")
    says(_reason(run(_lineup(tmp_path, f"{GOOD}[[contender]]\n{contender}\n"))), said)


def test_a_row_that_is_wrong_is_not_embedded(tmp_path: Path) -> None:
    lineup = _lineup(tmp_path, f'{GOOD}[[contender]]\nprovider = "minilm"\nstore = "faiss"\ndimensions = 900\n')
    notices: list[Fact | NotRun] = []
    settings = Settings(cache=tmp_path / "vectors", notice=notices.append)
    assert run(lineup, settings).not_run
    assert [one.contender.label for one in notices if isinstance(one, NotRun)] == ["minilm@900+faiss"]
    identities = [path.read_text() for path in (tmp_path / "vectors").rglob("identity.json")]
    assert identities
    assert not any("minilm" in identity for identity in identities)


def test_a_task_without_grades_is_refused_with_the_way_to_grade_it(tmp_path: Path) -> None:
    file = write_lineup(tmp_path, native_files(grades={}), contenders=GOOD)
    with refuses(InputError, "'task'") as refused:
        run(Lineup.read(file))
    assert "bakeoff grade" in refused.value.remedy


def test_a_task_whose_grades_are_all_too_low_is_refused(tmp_path: Path) -> None:
    file = write_lineup(tmp_path, native_files(), task="rel = 5", contenders=GOOD)
    with refuses(InputError, "5"):
        run(Lineup.read(file))


def test_columns_that_a_store_refuses_are_left_out_with_a_note_in_its_row(tmp_path: Path) -> None:
    (tmp_path / "documents.csv").write_text("Unnamed: 0,$price,id,text\n0,5,1,copper\n1,6,2,lake\n")
    (tmp_path / "queries.csv").write_text("id,text\nq1,copper\n")
    (tmp_path / "judgments.csv").write_text("query,document,grade\nq1,1,1\n")
    path = tmp_path / "lineup.toml"
    path.write_text(
        'rounds = 1\ntask = { format = "tables", documents = "documents.csv", queries = "queries.csv", '
        'judgments = "judgments.csv" }\n[[contender]]\nprovider = "fake"\nstore = ["faiss", "chroma"]\n'
    )
    outcome = run(Lineup.read(path))
    assert outcome.not_run == []
    notes = {row.contender.identity.store: row.search.build.notes for row in outcome.ran if row.search}
    assert notes["faiss"] == ()
    assert notes["chroma"] == (fact("refused_metadata", store="chroma", count=1, fields=["$price"]),)


class PanicException(BaseException):
    """As pyo3 names it."""


def test_an_interrupt_costs_no_row_but_the_run() -> None:
    stopped = KeyboardInterrupt()
    with pytest.raises(type(stopped)), adapter_work():
        raise stopped
    with pytest.raises(type(stopped)):
        attempt(Lexical("words", ranker="bm25"), partial(_raise, stopped))


def test_a_panic_of_a_library_costs_its_row() -> None:
    with refuses(AdapterFailed, "anicException"), adapter_work():
        raise PanicException("lost")
    contender = Lexical("words", ranker="bm25")
    assert attempt(contender, partial(_raise, PanicException("lost"))) == NotRun(
        contender, Failure(kind="raised", error="PanicException", text="lost")
    )


def _raise(error: BaseException) -> None:
    raise error


def test_a_reason_with_a_remedy_holds_no_secret_either() -> None:
    wrong = InputError("postgresql://me:hunter2@db/x is no address", remedy="cut http://host/v1?api_key=hunter2 short")
    assert "hunter2" not in reason_of(wrong)
    says(reason_of(wrong), "host/v1")


HOSTILE = """import asyncio, sys

def cancelled(texts):
    raise asyncio.CancelledError

def leaving(texts):
    sys.exit(0)

def search(text, k):
    sys.exit(0)

class Made:
    def __init__(self):
        sys.exit(3)
"""


@pytest.mark.parametrize(
    ("contender", "said"),
    [
        ('provider = "file:bad.py:cancelled"\nstore = "faiss"', "CancelledError"),
        ('provider = "file:bad.py:leaving"\nstore = "faiss"', "SystemExit: 0"),
        (
            'provider = "own_hosted"\noptions = { file = "bad.py", function = "leaving" }\nstore = "faiss"',
            "SystemExit: 0",
        ),
        ('provider = "file:bad.py:Made"\nstore = "faiss"', "SystemExit: 3"),
        ('provider = "file:exit.py:embed"\nstore = "faiss"', "SystemExit"),
        ('retriever = "file:bad.py:search"', "SystemExit: 0"),
    ],
)
def test_a_contender_that_ends_the_process_costs_its_row(tmp_path: Path, contender: str, said: str) -> None:
    (tmp_path / "bad.py").write_text(HOSTILE)
    (tmp_path / "exit.py").write_text("import sys\nsys.exit(4)\n")
    outcome = run(_lineup(tmp_path, f'{GOOD}[[contender]]\nlabel = "x"\n{contender}\n'))
    says(_reason(outcome), said)


def test_an_exit_while_the_run_is_being_stopped_ends_it() -> None:
    stopping.stop()
    try:
        with pytest.raises(SystemExit):
            attempt(Lexical("words", ranker="bm25"), lambda: sys.exit(1))
    finally:
        stopping.resume()
