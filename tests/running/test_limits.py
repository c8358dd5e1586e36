"""An answer that comes too late is none, and the row says so; whatever took too long to build has no row."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from bakeoff.core.clock import TimeLimits, leave_out, percentiles, time_call
from bakeoff.core.facts import fact
from bakeoff.core.filters import Condition
from bakeoff.core.task import Task
from bakeoff.lineup.from_python import lineup_of
from bakeoff.lineup.lineup import Lineup, lineup_text
from bakeoff.results.schema import Row
from bakeoff.results.summary import summarise
from bakeoff.running.draft import Drafts
from bakeoff.running.runner import Outcome, Settings, finish, run
from bakeoff.search.hits import Hits
from bakeoff.search.retrievers import pair_scores
from bakeoff.search.stores import STORES
from bakeoff.search.stores.faiss import Faiss
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError

from tests.errors import refuses
from tests.native_task import native_files, write_lineup

LIMIT = 0.1
LATE = 0.15
TASK = Task.from_dicts(
    {"1": {"text": "copper"}, "2": {"text": "lake"}, "3": {"text": "forest"}},
    {"q1": "copper", "q2": "lake", "q3": "forest"},
    {"q1": {"1": 1}, "q2": {"2": 1}, "q3": {"3": 1}},
)
FIRST = {"copper": "1", "lake": "2", "forest": "3"}


def _run(search: Any, *, rounds: int = 2, limits: TimeLimits | None = None) -> Outcome:
    lineup = lineup_of({"mine": search, "bm25": "bm25"}, TASK, measures=["mrr"], rounds=rounds)
    return run(replace(lineup, limits=limits or TimeLimits(query=LIMIT)))


def _row(outcome: Outcome) -> Row:
    return next(row for row in summarise(outcome).rows if row.label == "mine")


def test_a_late_answer_scores_nothing_and_is_counted() -> None:
    def search(text: str, k: int) -> list[str]:
        time.sleep(LATE if text == "lake" else 0)
        return [FIRST[text]]

    outcome = _run(search)
    assert outcome.scores["mine"]["mrr"] == [1.0, 0.0, 1.0]
    assert outcome.ran[0].search is not None
    assert outcome.ran[0].search.timing.unanswered == ["q2"]
    row = _row(outcome)
    assert fact("unanswered", count=1, queries=3, seconds=LIMIT) in row.warnings
    assert "unmatched" not in {warning.id for warning in row.warnings}
    assert row.stable


@pytest.mark.parametrize("late", [0, 1])
def test_an_answer_that_is_late_once_counts_for_that_round(late: int) -> None:
    asked = count()

    def search(text: str, k: int) -> list[str]:
        if text == "lake" and next(asked) == late:
            time.sleep(LATE)
        return [FIRST[text]]

    outcome = _run(search)
    assert outcome.scores["mine"]["mrr"] == [1.0, 0.5, 1.0]
    assert _row(outcome).stable is False


def test_percentiles_end_at_the_limit_and_say_so() -> None:
    def search(text: str, k: int) -> list[str]:
        time.sleep(0 if text == "copper" else LATE)
        return [FIRST[text]]

    latency = _row(_run(search)).latency  # four of six samples are beyond it
    assert latency is not None
    assert latency.total.p50 == 1000 * LIMIT
    assert fact("censored_times", seconds=LIMIT, percentiles=["p50"]) in latency.doubts


def test_a_percentile_below_the_limit_is_as_it_was() -> None:
    samples = [1_000_000, 2_000_000, 3_000_000, 4_000_000, 90_000_000]
    assert percentiles(samples, 50_000_000) == percentiles([*samples[:4], 50_000_000])
    assert percentiles(samples, 50_000_000).p50 == 3.0


def test_index_loss_leaves_unanswered_queries_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two documents are lost; of three queries the one that would show it is not answered."""
    monkeypatch.setitem(STORES.builtin, "slow", f"{__name__}:Slow")
    store = (
        '[[contender]]\nprovider = "fake"\nisolate = false\nstore = {{ name = "slow", options = {{ late = {} }} }}\n'
    )
    head = f'measures = ["mrr"]\nrounds = 1\nquery_timeout = {LIMIT}'
    losses = []
    for late in ("true", "false"):
        file = write_lineup(tmp_path / late, native_files(), head=head, contenders=store.format(late))
        (row,) = run(Lineup.read(file)).ran
        assert row.search is not None
        assert row.search.loss is not None
        losses.append(row.search.loss)
    late_loss, whole = losses
    assert late_loss.recall == 1.0
    assert late_loss.ndcg_lost == 0.0
    assert late_loss.short == 0
    assert whole.recall == pytest.approx(2 / 3)


class Slow(Faiss):
    """Calls itself approximate, and answers nothing to the third vector that it is asked for: late, or at once."""

    name = "slow"

    def __init__(self, *, dimensions: int, folder: Path, late: bool) -> None:
        super().__init__(dimensions=dimensions, folder=folder)
        self.late, self.asked = late, list[bytes]()

    @property
    def capabilities(self) -> Any:
        return replace(super().capabilities, exact=False)

    def _search(self, vector: Vectors, k: int, filters: Sequence[Condition]) -> Hits:
        if vector.tobytes() not in self.asked:
            self.asked.append(vector.tobytes())
        if self.asked.index(vector.tobytes()) == 2:
            time.sleep(LATE if self.late else 0)
            return Hits([], [])
        return super()._search(vector, k, filters)


def test_a_query_that_an_earlier_process_waited_for_in_vain_is_asked_again(tmp_path: Path) -> None:
    """The draft of a run that ended early holds an unanswered query; the next run's answer counts."""
    own = tmp_path / "own.py"
    own.write_text(
        "import pathlib, time\n"
        "def search(text, k):\n"
        "    slow = pathlib.Path(__file__).with_name('slow')\n"
        f"    time.sleep({LATE} if text == 'lake' and slow.exists() else 0)\n"
        "    return ['2']\n"
        "def stops(text, k):\n"
        "    if pathlib.Path(__file__).with_name('slow').exists():\n"
        "        raise KeyboardInterrupt\n"
        "    return ['1']\n"
    )
    (tmp_path / "slow").touch()
    rows = "".join(
        f'[[contender]]\nretriever = "file:own.py:{name}"\nisolate = false\n' for name in ("search", "stops")
    )
    head = f'measures = ["mrr"]\nrounds = 1\nquery_timeout = {LIMIT}'
    lineup = Lineup.read(write_lineup(tmp_path, native_files(), head=head, contenders=rows))
    drafts = Drafts(tmp_path / "results")
    with pytest.raises(KeyboardInterrupt):
        run(lineup, Settings(drafts=drafts))
    for draft in drafts.opened:
        draft.close()
    (tmp_path / "slow").unlink()
    folders = list((tmp_path / "results").glob("*.draft"))
    if folders:  # where the row was whole before the other one stopped the run
        assert finish(folders[0]).scores["search"]["mrr"][1] == 0.0
    outcome = run(lineup, Settings(drafts=Drafts(tmp_path / "results")))
    assert outcome.scores["search"]["mrr"][1] == 1.0


def test_what_took_too_long_to_build_has_no_row() -> None:
    outcome = _run(lambda text, k: ["1"], limits=TimeLimits(build=1e-9))
    assert [row.contender.label for row in outcome.ran] == ["mine"]  # builds nothing
    assert [row.contender.label for row in outcome.not_run] == ["bm25"]


@pytest.mark.parametrize("key", ["query_timeout", "build_timeout"])
def test_a_limit_is_above_zero_and_is_kept_with_the_result(key: str, tmp_path: Path) -> None:
    rows = '[[contender]]\nranker = "bm25"\n'
    with refuses(InputError, "0", place=key):
        Lineup.read(write_lineup(tmp_path, native_files(), head=f"{key} = 0", contenders=rows))
    lineup = Lineup.read(write_lineup(tmp_path, native_files(), head=f"{key} = 7.5", contenders=rows))
    assert lineup.to_dict()[key] == 7.5
    (tmp_path / "again.toml").write_text(lineup_text(lineup.to_dict()))
    assert Lineup.read(tmp_path / "again.toml").limits == lineup.limits


def test_an_endless_answer_is_read_up_to_k() -> None:
    def endless(text: str, k: int) -> Iterator[str]:
        yield FIRST[text]
        yield from (str(number) for number in count(1) if str(number) != FIRST[text])

    assert _run(endless, rounds=1, limits=TimeLimits()).scores["mine"]["mrr"] == [1.0, 1.0, 1.0]
    assert pair_scores(((str(number), -number) for number in count()), 2) == [("0", 0.0), ("1", -1.0)]
    hits = Hits((str(number) for number in count()), (1 / (1 + number) for number in count()))  # type: ignore[arg-type]
    assert hits.read(2) == Hits(["0", "1"], [1.0, 0.5])


def test_the_clock_leaves_out_what_belongs_to_no_call() -> None:
    def call() -> None:
        time.sleep(0.05)
        leave_out(50_000_000)

    start = time.perf_counter_ns()
    shown = time_call(call)[1]
    assert 0 <= shown <= time.perf_counter_ns() - start - 50_000_000
