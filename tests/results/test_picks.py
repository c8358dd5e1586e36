"""Picks and limits, over rows whose right choice can be seen by eye."""

from __future__ import annotations

import pytest
from bakeoff.core.facts import Failure, fact
from bakeoff.core.figures import Percentiles
from bakeoff.results.picks import Limits, choose, is_within, picks_of, quickest
from bakeoff.results.schema import Cost, Kept, Latency, Pick, Row, Standing, Value, Verdict
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

NONE = Percentiles(0)


def row(
    label: str,
    mean: float,
    ms: float | None,
    usd: float | None = 0.0,
    mb: float | None = 1.0,
    *,
    queries: float | None = None,
    local: bool = True,
    doubts: tuple[str, ...] = (),
    baseline: bool = False,
) -> Row:
    return Row(
        label=label,
        row_type="dense",
        local=local,
        baseline=baseline,
        measures={"ndcg@10": Value(mean)},
        latency=Latency(embed=NONE, search=NONE, total=Percentiles(60, ms, ms), doubts=list(map(fact, doubts))),
        cost=Cost(usd=usd, usd_per_million_documents=usd, usd_per_thousand_queries=queries),
        index_bytes=None if mb is None else int(mb * 1e6),
    )


def standing(least: float = 0.0, most: float | None = 0.1, **more: object) -> Standing:
    mark = "worse" if least else "may be best"
    return Standing(mark=mark, p=0.5, behind_least=least, behind_most=most, **more)  # type: ignore[arg-type]


ROWS = [
    row("hosted", 0.80, 240.0, 65.0, 6.0, local=False),
    row("large", 0.78, 90.0, 0.0, 4.0),
    row("small", 0.70, 9.0, 0.0, 1.5),
    row("words", 0.40, 0.5, 0.0, None),
    Row(label="lost", row_type="dense", not_run=Failure(kind="unavailable", error="Unavailable")),
    Row(label="oracle", row_type="baseline", baseline=True, measures={"ndcg@10": Value(1.0)}),
]
STANDINGS = {"hosted": standing(), "large": standing(), "small": standing(0.05, 0.2), "words": standing(0.3, None)}
VERDICT = Verdict(
    measure="ndcg@10", leader="hosted", best_set=["hosted", "large"], situation="not settled", action="take for now",
    take="hosted", standings=STANDINGS,
)  # fmt: skip


def _picks(rows: list[Row], take: str, **standings: Standing) -> dict[str, Pick]:
    known = {one.label: standings.get(one.label, standing()) for one in rows}
    return {pick.use: pick for pick in picks_of(rows, take, known, "ndcg@10")}


def test_each_pick_has_its_price() -> None:
    picks = picks_of(ROWS[:4], "hosted", STANDINGS, "ndcg@10")
    assert [(pick.use, pick.label) for pick in picks] == [
        ("best", "hosted"),
        ("cheaper", "large"),
        ("fastest", "words"),
    ]
    best, cheaper, fastest = picks
    assert (best.times_faster, best.usd_per_million_documents, best.local) == (None, 65.0, False)
    assert cheaper.times_faster == pytest.approx(240 / 90)
    assert (cheaper.less_least, cheaper.less_most, cheaper.usd_per_million_documents) == (0.0, 0.1, 0.0)
    assert (fastest.less_least, fastest.less_most) == (0.3, None)


def test_faster_is_twice_as_fast_and_fastest_within_twice_of_the_fastest() -> None:
    rows = [row("a", 0.8, 10.0), row("b", 0.79, 5.1), row("c", 0.7, 5.0), row("d", 0.6, 0.9), row("e", 0.5, 0.5)]
    picks = _picks(rows, "a")
    assert {use: pick.label for use, pick in picks.items()} == {"best": "a", "faster": "c", "fastest": "d"}
    assert picks["faster"].times_faster == pytest.approx(2.0)


def test_unreliable_timings_give_no_latency_pick_and_no_ratio() -> None:
    rows = [row("a", 0.8, 10.0), row("b", 0.7, 1.0, doubts=("busy",))]
    assert list(_picks(rows, "a")) == ["best"]
    rows = [row("a", 0.8, 10.0, 5.0, doubts=("busy",)), row("b", 0.7, 1.0, 0.0)]
    picks = _picks(rows, "a")
    assert list(picks) == ["best", "cheaper"]
    assert (picks["best"].p50_ms, picks["cheaper"].times_faster) == (None, None)
    assert quickest(rows) is None
    assert quickest(rows[1:]) == rows[1]


def test_a_time_of_an_earlier_run_is_no_reason_for_a_choice() -> None:
    kept = Kept(stages=["embed"], first="2026-01-02", last="2026-01-03", machines=["a machine"])
    old = row("old", 0.7, 0.2)
    assert old.latency is not None
    old = replace(old, latency=replace(old.latency, kept=kept))
    rows = [row("slow", 0.8, 90.0), old, row("now", 0.6, 6.0)]
    assert {use: pick.label for use, pick in _picks(rows, "slow").items()} == {"best": "slow", "faster": "now"}
    verdict = replace(VERDICT, take="slow", standings={one.label: standing() for one in rows})
    for limits in (Limits(p50_ms=1e9), Limits(p95_ms=1e9)):
        assert choose(rows, verdict, limits).feasible == ["slow", "now"]
    assert choose(rows, verdict, Limits(p50_ms=1e9)).untimed == {"p50": ["old"]}


def test_only_what_is_shown_equivalent_is_as_good() -> None:
    rows = [row("a", 0.8, 10.0), row("b", 0.79, 3.0), row("c", 0.78, 2.0)]
    picks = _picks(rows, "a", c=standing(equivalent=True), b=standing(equivalent=False))
    assert {use: pick.label for use, pick in picks.items()} == {"best": "a", "as good": "c", "faster": "b"}
    slow = [row("a", 0.8, 10.0), row("b", 0.79, 9.0)]
    assert list(_picks(slow, "a", b=standing(equivalent=True))) == ["best"]  # neither faster nor cheaper


def test_rows_that_score_as_the_best_does_are_no_picks_beside_it() -> None:
    rows = [row("a", 0.8, 10.0), row("a again", 0.8, 1.0)]
    assert list(_picks(rows, "a", **{"a again": standing(alike="a")})) == ["best"]


@pytest.mark.parametrize(
    ("usd", "queries", "cheaper"),
    [(2.0, 0.0, True), (2.1, 0.0, False), (4.0, 0.5, True), (0.0, 1.1, False), (None, 0.0, False)],
)
def test_cheaper_is_half_of_one_price_and_no_more_of_the_other(
    usd: float | None, queries: float, cheaper: bool
) -> None:
    rows = [row("a", 0.8, 10.0, 4.0, queries=1.0), row("b", 0.7, 10.0, usd, queries=queries)]
    if usd == 2.1:  # queries that are free are half of what the best's cost: leave documents alone to decide
        rows = [row("a", 0.8, 10.0, 4.0), row("b", 0.7, 10.0, usd)]
    assert ("cheaper" in _picks(rows, "a")) is cheaper


@pytest.mark.parametrize(
    ("limits", "label", "feasible"),
    [
        (Limits(), "hosted", ["hosted", "large", "small", "words"]),
        (Limits(p95_ms=100), "large", ["large", "small", "words"]),
        (Limits(p95_ms=9), "small", ["small", "words"]),
        (Limits(usd_per_million=10), "large", ["large", "small", "words"]),
        (Limits(index_mb=2), "small", ["small"]),  # an unknown size is within no limit
        (Limits(offline=True, index_mb=5), "large", ["large", "small"]),
        (Limits(p95_ms=0.1), None, []),
    ],
)
def test_limits_leave_the_rows_that_are_within_them(limits: Limits, label: str | None, feasible: list[str]) -> None:
    choice = choose(ROWS, VERDICT, limits)
    assert (choice.pick and choice.pick.label) == label
    assert (choice.feasible, choice.ran) == (feasible, 4)
    if choice.pick and label == "small":
        assert (choice.pick.use, choice.pick.less_least, choice.pick.less_most) == ("within limits", 0.05, 0.2)


def test_limits_choose_no_baseline_and_nothing_below_random() -> None:
    rows = [row("fake", 0.8, 1.0, baseline=True), row("chance", 0.7, 1.0), row("model", 0.6, 1.0)]
    standings = {"fake": standing(), "chance": standing(beats_random=False), "model": standing(beats_random=True)}
    verdict = replace(VERDICT, take="model", standings=standings)
    choice = choose(rows, verdict, Limits(p50_ms=2))
    assert choice.pick is not None
    assert choice.pick.label == "model"
    assert choice.feasible == ["fake", "chance", "model"]


def test_means_are_equal_up_to_rounding_and_no_further() -> None:
    """0.1 + 0.2 is 4e-17 more than 0.3: that is no lead. 4e-12 is more than rounding: it is one."""
    for first, second, best in ((0.3, 0.1 + 0.2, "first"), (0.3, 0.3 + 4e-12, "second")):
        rows = [row("first", first, 9.0), row("second", second, 9.0)]
        verdict = replace(VERDICT, take=best, standings={"first": standing(), "second": standing()})
        pick = choose(rows, verdict, Limits(offline=True)).pick
        assert pick is not None
        assert pick.label == best


def test_a_limit_may_be_reached() -> None:
    assert is_within(ROWS[1], Limits(p95_ms=90, usd_per_million=0, index_mb=4))
    assert not is_within(ROWS[1], Limits(index_mb=3.9))
    assert not is_within(ROWS[4], Limits())
    assert not is_within(ROWS[0], Limits(offline=True))
    asked = row("bm25+cohere", 0.8, 9.0, 0.0, queries=2.0)
    assert not is_within(asked, Limits(usd_per_thousand_queries=1.99))
    assert is_within(asked, Limits(usd_per_thousand_queries=2.0, usd_per_million=0.01))


@settings(deadline=None)
@given(st.floats(0, 1000), st.floats(0, 10), st.booleans())
def test_a_tighter_limit_never_lets_more_through(p95: float, mb: float, offline: bool) -> None:
    def within(part: float) -> set[str]:
        limits = Limits(p95_ms=p95 * part, index_mb=mb * part, offline=offline)
        return {each.label for each in ROWS if is_within(each, limits)}

    assert within(0.5) <= within(1.0) <= within(2.0)
