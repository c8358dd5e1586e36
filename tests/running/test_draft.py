"""The draft's log: append-only, and whole up to the first record that a kill has torn."""

from __future__ import annotations

from pathlib import Path

import pytest
from bakeoff.core.figures import CallTime
from bakeoff.core.machine import machine
from bakeoff.core.ranking import Ranking
from bakeoff.running.draft import ANSWERS, COURSE, Draft, DraftHead, Drafts
from bakeoff.running.stages import Answered
from bakeoff.search.answer import Answer, Timed
from bakeoff.systems.base import Build
from bakeoff.systems.lexical import Lexical
from bakeoff_providers.errors import InputError

from tests.errors import refuses

ROW = Lexical("row", ranker="bm25")
QUERIES = ["q1", "q2"]
A, B, SWAPPED = (
    Ranking(("a", "b"), (2.0, 1.0)),
    Ranking(("b",), (0.1 + 0.2,), 1),
    Ranking(("b", "a"), (2.0, 1.0)),
)


def _round(draft: Draft, number: int, rankings: list[Ranking], nanoseconds: int, queries: int = 2) -> None:
    log = draft.row("row", 2)
    for place, ranking in enumerate(rankings[:queries]):
        log.add(number, place, Answer(ranking, nanoseconds), ranking)
    if queries == len(QUERIES):
        draft.end_round("row", number)


def _begin(draft: Draft) -> None:
    draft.begin("2026-01-01T00:00:00+00:00", machine(), {"q1": {"a": 1}})
    draft.row("row", 2).begin(Build(seconds=1.5), Answer(A, 7), None, None)


def _read(draft: Draft) -> Answered:
    read = draft.read(ROW, QUERIES, draft.course)
    assert isinstance(read, Answered)
    return read


def test_what_was_written_is_read_and_a_round_like_the_first_is_kept_once(tmp_path: Path) -> None:
    draft = Draft(tmp_path / "one.draft", DraftHead(name="one"))
    _begin(draft)
    _round(draft, 0, [A, B], 10)
    size = (draft.folder / ANSWERS / "row.log").stat().st_size
    _round(draft, 1, [A, B], 20)
    _round(draft, 2, [SWAPPED, B], 30)
    read = _read(draft)
    assert dict(read.rounds[0]) == {"q1": A, "q2": B}
    assert read.rounds[1] is read.rounds[0]
    assert dict(read.rounds[2]) == {"q1": SWAPPED, "q2": B}
    assert read.stable is False
    assert read.search.timing.search_ns == [10, 10, 20, 20, 30, 30]
    assert read.search.timing.cold_search_ns == 7
    assert (draft.folder / ANSWERS / "row.log").stat().st_size < 2 * size + 100
    assert draft.judgments() == {"q1": {"a": 1}}
    with refuses(InputError, "writing", file="one.draft"):
        Draft.open(draft.folder)
    draft.remove()
    assert not draft.folder.exists()


def test_a_torn_record_ends_what_is_read_wherever_it_is_torn(tmp_path: Path) -> None:
    draft = Draft(tmp_path / "one.draft", DraftHead(name="one"))
    _begin(draft)
    _round(draft, 0, [A, B], 10)
    log = draft.folder / ANSWERS / "row.log"
    whole = log.read_bytes()
    _round(draft, 1, [A, B], 20)
    draft.close()
    course, longer = (draft.folder / COURSE).read_bytes(), log.read_bytes()
    for end in range(len(whole), len(longer)):
        log.write_bytes(longer[:end])
        opened = Draft.open(draft.folder)
        assert dict(_read(opened).rounds[0]) == {"q1": A, "q2": B}
        opened.close()
    log.write_bytes(longer)
    for damage in range(len(whole), len(longer), 5):  # a bit that has turned
        log.write_bytes(longer[:damage] + bytes([longer[damage] ^ 1]) + longer[damage + 1 :])
        opened = Draft.open(draft.folder)
        assert dict(_read(opened).rounds[0]) == {"q1": A, "q2": B}
        opened.close()
    log.write_bytes(whole[:-1])  # a whole round that is none
    opened = Draft.open(draft.folder)
    assert not isinstance(opened.read(ROW, QUERIES, opened.course), Answered)
    assert (draft.folder / COURSE).read_bytes() == course
    opened.close()


def test_a_second_process_goes_on_behind_a_torn_record_and_times_anew(tmp_path: Path) -> None:
    draft = Draft(tmp_path / "one.draft", DraftHead(name="one"))
    _begin(draft)
    _round(draft, 0, [A, B], 10)
    _round(draft, 1, [SWAPPED], 11, queries=1)
    draft.close()
    log = draft.folder / ANSWERS / "row.log"
    log.write_bytes(log.read_bytes() + b"\x40\x00\x00\x00torn")
    second = Draft.open(draft.folder)
    _begin(second)
    _round(second, 0, [SWAPPED, A], 20)  # another order than before: what was there is kept
    _round(second, 1, [A, B], 21)
    read = _read(second)
    assert dict(read.rounds[0]) == {"q1": A, "q2": B}
    assert dict(read.rounds[1]) == {"q1": SWAPPED, "q2": B}
    assert read.search.timing.search_ns == [20, 20, 21, 21]
    second.close()


def test_times_are_of_the_process_that_timed_most_rows(tmp_path: Path) -> None:
    draft = Draft(tmp_path / "one.draft", DraftHead(name="one"))
    _begin(draft)
    _round(draft, 0, [A, B], 10)
    draft.row("other", 2).begin(Build(seconds=1.0), Answer(A, 1), None, None)
    draft.end_round("other", 0)
    draft.close()
    second = Draft.open(draft.folder)
    _begin(second)
    _round(second, 0, [A, B], 20)
    assert _read(second).search.timing.search_ns == [10, 10]
    second.end_round("row", 1)
    draft = second
    draft.row("other", 2)
    draft.end_round("other", 0)
    assert draft.course.timed == 1
    draft.close()


def test_every_sort_of_time_is_read_back(tmp_path: Path) -> None:
    draft = Draft(tmp_path / "one.draft", DraftHead(name="one"))
    _begin(draft)
    kept = CallTime(5, "2026-01-01", "here")
    log = draft.row("row", 2)
    log.add(0, 0, Answer(A, 1, 2, 3), A)
    log.add(0, 1, Answer(B, 1, timed=Timed.EARLIER, kept_embed=kept, kept_rerank=kept), B)
    draft.end_round("row", 0)
    timing = _read(draft).search.timing
    assert (timing.search_ns, timing.embed_ns, timing.rerank_ns, timing.total_ns) == ([1, 1], [2], [3], [6])
    assert (timing.kept_embed, timing.kept_rerank, timing.kept_total_ns) == ([kept], [kept], [11])
    draft.close()


@pytest.mark.parametrize(("question", "means", "ended", "found"), [
    ("q", "m", False, True), ("q", "n", False, False), ("q", "n", True, True), ("p", "m", True, False),
])  # fmt: skip
def test_a_draft_is_taken_up_by_the_same_run_alone(
    tmp_path: Path, question: str, means: str, ended: bool, found: bool
) -> None:
    draft = Draft(tmp_path / "one.draft", DraftHead(name="one", question="q", means="m"))
    _begin(draft)
    _round(draft, 0, [A, B], 10)
    if ended:
        draft.end(machine(), 1.0)
    assert Drafts(tmp_path).left("q", "m") is None  # it is being written
    draft.close()
    left = Drafts(tmp_path).left(question, means)
    assert (left is not None) is found
    if left:
        left.close()


def test_a_draft_without_a_whole_row_is_removed(tmp_path: Path) -> None:
    draft = Draft(tmp_path / "one.draft", DraftHead(name="one", question="q", means="m"))
    _begin(draft)
    _round(draft, 0, [A], 10, queries=1)
    draft.close()
    assert Drafts(tmp_path).left("q", "m") is None
    assert list(tmp_path.iterdir()) == []
