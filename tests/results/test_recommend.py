"""Recommendations and limits, over rows whose right choice can be seen by eye."""

from __future__ import annotations

import msgspec
import pytest
from bakeoff.core.figures import PairedDifference, Percentiles
from bakeoff.results.recommend import Limits, choose, keeps, recommend, round_below
from bakeoff.results.schema import Cost, Kept, Latency, Row, Value, Verdict
from hypothesis import given, settings
from hypothesis import strategies as st


def row(label: str, mean: float, p95: float | None, usd: float | None, mb: float | None, *, local: bool = True) -> Row:
    none = Percentiles(0)
    return Row(
        label=label,
        row_type="dense",
        local=local,
        measures={"ndcg@10": Value(mean)},
        latency=Latency(embed=none, search=none, total=Percentiles(60, p95, p95)),
        cost=Cost(usd=usd, usd_per_million_documents=usd),
        index_bytes=None if mb is None else int(mb * 1e6),
    )


def pair(a: str, b: str, p: float) -> PairedDifference:
    return PairedDifference(a, b, 0.1, 0.0, 0.2, p, p, p, p, 0.5, 3, 1, 2)


ROWS = [
    row("hosted", 0.80, 240.0, 65.0, 6.0, local=False),
    row("large", 0.78, 90.0, 0.0, 4.0),
    row("small", 0.70, 9.0, 0.0, 1.5),
    row("words", 0.40, 0.5, 0.0, None),
    Row(label="lost", row_type="dense", not_run="no key"),
    Row(label="oracle", row_type="baseline", measures={"ndcg@10": Value(1.0)}),
]
VERDICT = Verdict(
    measure="ndcg@10",
    best="hosted",
    tie_group=["hosted", "large"],
    pairs=[
        pair("hosted", "large", 0.4), pair("hosted", "small", 0.01), pair("hosted", "words", 0.001),
        pair("large", "small", 0.2), pair("large", "words", 0.001), pair("small", "words", 0.001),
    ],
    smallest_detectable=0.1,
    sentences=[],
)  # fmt: skip


def test_each_use_has_its_own_choice() -> None:
    found = {each.use: each for each in recommend(ROWS, VERDICT)}
    assert found["Best quality"].label == "hosted"
    # 240 ms is too slow for 200; the best of the rest is large
    assert found["Best under 200 ms"].label == "large"
    assert "hosted needs 240 ms" in found["Best under 200 ms"].why
    assert found["Cheapest in the tie group"].label == "large"
    assert found["Offline only"].label == "large"
    assert "can't be told from the best" in found["Offline only"].why


def test_a_timing_in_doubt_is_said_where_it_decides() -> None:
    doubtful = [*ROWS]
    latency = Latency(embed=Percentiles(0), search=Percentiles(0), total=Percentiles(60, 90, 90), doubts=["busy"])
    doubtful[1] = msgspec.structs.replace(row("large", 0.78, 90.0, 0.0, 4.0), latency=latency)
    found = {each.use: each.why for each in recommend(doubtful, VERDICT)}
    assert "can't be trusted" in found["Best under 200 ms"]
    assert "can't be trusted" not in found["Offline only"]


@pytest.mark.parametrize(
    ("limits", "label", "feasible"),
    [
        (Limits(), "hosted", ["hosted", "large", "small", "words"]),
        (Limits(p95_ms=100), "large", ["large", "small", "words"]),
        (Limits(p95_ms=9), "small", ["small", "words"]),
        (Limits(usd_per_million=10), "large", ["large", "small", "words"]),
        (Limits(index_mb=2), "small", ["small"]),  # an unknown size keeps no limit
        (Limits(offline=True, index_mb=5), "large", ["large", "small"]),
        (Limits(p95_ms=0.1), None, []),
    ],
)
def test_limits_leave_the_rows_that_keep_them(limits: Limits, label: str | None, feasible: list[str]) -> None:
    choice = choose(ROWS, VERDICT, limits)
    assert choice.label == label
    assert choice.feasible == feasible


def test_an_unknown_p95_is_said_to_be_the_reason() -> None:
    few = Latency(embed=Percentiles(45), search=Percentiles(45), total=Percentiles(45, 3.0, None))
    untimed = [msgspec.structs.replace(one, latency=few) if one.ran else one for one in ROWS]
    assert choose(untimed, VERDICT, Limits(p95_ms=5, offline=True)).sentence == (
        "Nothing that ran keeps these limits. The p95 of large, small and words is not known. "
        "large has too few samples for a p95 (45, 60 are needed): raise --rounds."
    )
    assert choose(ROWS, VERDICT, Limits(p95_ms=0.1)).sentence == "Nothing that ran keeps these limits."
    assert choose(untimed, VERDICT, Limits(index_mb=0.1)).sentence == "Nothing that ran keeps these limits."


def test_ties_are_named_only_where_they_keep_the_limits() -> None:
    assert choose(ROWS, VERDICT, Limits()).sentence == (
        "hosted: NDCG@10 0.800. 4 of 4 contenders keep the limits; large can't be told from it."
    )
    assert choose(ROWS, VERDICT, Limits(p95_ms=100)).sentence.endswith("small can't be told from it.")
    assert choose(ROWS, VERDICT, Limits(p95_ms=9)).sentence.endswith("2 of 4 contenders keep the limits.")


def test_a_p_of_exactly_one_in_twenty_separates() -> None:
    """As in the verdict: up to 0.05 two contenders are told apart, above it they are not."""

    def sentence(p: float) -> str:
        return choose(ROWS, msgspec.structs.replace(VERDICT, pairs=[pair("hosted", "large", p)]), Limits()).sentence

    assert sentence(0.05).endswith("4 of 4 contenders keep the limits.")
    assert sentence(0.0501).endswith("large can't be told from it.")
    other_way = msgspec.structs.replace(VERDICT, pairs=[pair("large", "hosted", 0.06), pair("small", "large", 0.06)])
    assert choose(ROWS, other_way, Limits()).sentence.endswith("; large can't be told from it.")


def test_equal_means_keep_the_order_of_the_line_up() -> None:
    twins = [row("first", 0.5, 9.0, 0.0, 1.0), row("second", 0.5, 1.0, 0.0, 1.0)]
    verdict = Verdict(
        measure="ndcg@10", best="first", tie_group=["first", "second"], pairs=[pair("first", "second", 1.0)],
        smallest_detectable=None, sentences=[],
    )  # fmt: skip
    assert choose(twins, verdict, Limits()).label == "first"


def test_means_are_equal_up_to_rounding_and_no_further() -> None:
    """0.1 + 0.2 is 4e-17 more than 0.3: that is no lead. 4e-12 is more than rounding: it is one."""
    for first, second, best in ((0.3, 0.1 + 0.2, "first"), (0.3, 0.3 + 4e-12, "second")):
        rows = [row("first", first, 9.0, 0.0, 1.0), row("second", second, 9.0, 0.0, 1.0)]
        verdict = Verdict(
            measure="ndcg@10", best=best, tie_group=[], pairs=[], smallest_detectable=None, sentences=[],
        )  # fmt: skip
        assert choose(rows, verdict, Limits(offline=True)).label == best


def test_nothing_ran_nothing_is_recommended() -> None:
    verdict = Verdict(measure="ndcg@10", best=None, tie_group=[], pairs=[], smallest_detectable=None, sentences=[])
    assert recommend(ROWS[-2:], verdict) == []
    assert recommend(ROWS, verdict) == []
    assert recommend([], VERDICT) == []


@pytest.mark.parametrize(("figure", "below"), [(240, 200), (100, 50), (9.1, 5), (1, 0.5), (0.03, 0.02), (50, 20)])
def test_the_next_round_figure_below(figure: float, below: float) -> None:
    assert round_below(figure) == below


@settings(deadline=None)
@given(st.floats(1e-4, 1e7))
def test_it_is_always_below_and_never_far(figure: float) -> None:
    assert round_below(figure) < figure
    assert figure / round_below(figure) <= 2.5 + 1e-6


@settings(deadline=None)
@given(st.floats(0, 1000), st.floats(0, 10), st.booleans())
def test_a_tighter_limit_never_lets_more_through(p95: float, mb: float, offline: bool) -> None:
    def kept(part: float) -> set[str]:
        limits = Limits(p95_ms=p95 * part, index_mb=mb * part, offline=offline)
        return {each.label for each in ROWS if keeps(each, limits)}

    assert kept(0.5) <= kept(1.0) <= kept(2.0)


def _recommended(rows: list[Row], group: list[str]) -> dict[str, tuple[str | None, str]]:
    verdict = msgspec.structs.replace(VERDICT, best=group[0], tie_group=group)
    return {each.use: (each.label, each.why) for each in recommend(rows, verdict)}


def test_the_sentences_word_by_word() -> None:
    found = _recommended(ROWS, ["hosted", "large"])
    assert found["Best quality"] == ("hosted", "NDCG@10 0.800, with 1 more that can't be told from it.")
    assert found["Best under 200 ms"] == ("large", "NDCG@10 0.780 in 90 ms (p50); hosted needs 240 ms.")
    assert found["Cheapest in the tie group"] == ("large", "$0 for a million documents.")
    assert found["Offline only"] == ("large", "NDCG@10 0.780, can't be told from the best.")
    alone = _recommended(ROWS, ["hosted"])
    assert alone["Best quality"] == ("hosted", "NDCG@10 0.800.")
    assert alone["Cost of the best"] == ("hosted", "$65.00 for a million documents.")
    assert alone["Offline only"] == ("large", "NDCG@10 0.780, 0.020 below the best.")
    local = _recommended(ROWS[1:], ["large", "small", "words"])
    assert local["Offline only"] == ("large", "The best needs no network.")
    assert local["Cheapest in the tie group"] == (
        "words",
        "$0 for a million documents, as 2 others; the fastest of these (0.5 ms, p50).",
    )
    two = _recommended(ROWS[1:], ["large", "small"])
    assert two["Cheapest in the tie group"][1].startswith("$0 for a million documents, as 1 other; the fastest")
    assert _recommended(ROWS[:1], ["hosted"])["Offline only"] == (None, "Every contender that ran needs the network.")


def test_what_is_not_known_is_not_recommended() -> None:
    unpriced = row("a", 0.5, 9.0, None, None)
    assert _recommended([unpriced], ["a"])["Cost of the best"] == (None, "No price is known for it.")
    both = _recommended([unpriced, row("b", 0.4, 9.0, None, None)], ["a", "b"])
    assert both["Cheapest in the tie group"] == (None, "No price is known for any of them.")
    free = _recommended([row(label, 0.5, None, 0.0, None) for label in "abc"], ["a", "b", "c"])
    assert free["Cheapest in the tie group"] == ("a", "$0 for a million documents, as 2 others.")
    untimed = _recommended([row("a", 0.5, None, 0.0, None)], ["a"])
    assert untimed["Best under a latency limit"] == (
        None, "a has too few samples for a p50 (60, 5 are needed): raise --rounds.",
    )  # fmt: skip


def test_one_and_a_half_times_as_fast_is_noise_up_to_that_very_figure() -> None:
    """The best needs 9 ms: 6 ms times 1.5 is as much, so it is no faster; a little less is."""
    assert (
        _recommended([row("a", 0.8, 9.0, 0.0, 1.0), row("b", 0.7, 6.0, 0.0, 1.0)], ["a"])["Best under 5 ms"][0] is None
    )
    rows = [row("a", 0.8, 9.0, 0.0, 1.0), row("b", 0.7, 4.9, 0.0, 1.0)]
    assert _recommended(rows, ["a"])["Best under 5 ms"][0] == "b"
    ten = [row("a", 0.8, 30.0, 0.0, 1.0), row("b", 0.7, 20.0, 0.0, 1.0), row("c", 0.6, 19.9, 0.0, 1.0)]
    found = _recommended(ten, ["a"])["Best under 20 ms"]
    assert found[0] == "c"  # b needs 20 ms, which times 1.5 is just what a needs
    tied = _recommended([row("a", 0.8, 9.0, 0.0, 1.0), row("b", 0.9, 13.5, 0.0, 1.0)], ["a", "b"])
    assert tied["Cheapest in the tie group"][0] == "b"  # as fast within 1.5, and better
    tied = _recommended([row("a", 0.8, 9.0, 0.0, 1.0), row("b", 0.9, 13.6, 0.0, 1.0)], ["a", "b"])
    assert tied["Cheapest in the tie group"][0] == "a"


def test_a_limit_may_be_reached() -> None:
    assert keeps(ROWS[1], Limits(p95_ms=90, usd_per_million=0, index_mb=4))
    assert not keeps(ROWS[1], Limits(index_mb=3.9))
    assert not keeps(ROWS[4], Limits())
    assert not keeps(ROWS[0], Limits(offline=True))
    assert round_below(0) == 0.1


def test_a_time_of_an_earlier_run_keeps_no_limit_and_is_no_reason_for_a_choice() -> None:
    """Fast on another day: it is neither the quick one, nor the fastest of the free ones, nor within a limit."""
    kept = Kept(stages=["embed"], first="2026-01-02", last="2026-01-03", machines=["a machine"])
    latency = Latency(
        embed=Percentiles(60, 0.1), search=Percentiles(60, 0.1), total=Percentiles(60, 0.2, 0.2), kept=kept
    )
    old = msgspec.structs.replace(row("old", 0.7, None, 0.0, 1.0), latency=latency)
    now, slow = row("now", 0.6, 6.0, 0.0, 1.0), row("slow", 0.8, 90.0, 0.0, 1.0)
    found = _recommended([slow, old, now], ["slow", "old", "now"])
    assert found["Best under 50 ms"][0] == "now"
    assert found["Cheapest in the tie group"][0] == "now"
    for limits in (Limits(p50_ms=1e9), Limits(p95_ms=1e9)):
        assert choose([slow, old, now], VERDICT, limits).feasible == ["slow", "now"]
    label, why = _recommended([old, now], ["old"])["Best under a latency limit"]
    assert label is None
    assert "2026-01-02 to 2026-01-03" in why
    assert "--time-hosted" in why


def _timed(label: str, *, search: int, total: int, row_type: str = "dense") -> str:
    """What is said of a best row with so many samples."""
    latency = Latency(embed=Percentiles(total), search=Percentiles(search), total=Percentiles(total))
    best = msgspec.structs.replace(row(label, 0.8, None, 0.0, 1.0, local=False), latency=latency, row_type=row_type)
    return _recommended([best], [label])["Best under a latency limit"][1]


def test_the_remedy_for_a_missing_p50_is_one_that_helps() -> None:
    assert _timed("a", search=4, total=4) == "a has too few samples for a p50 (4, 5 are needed): raise --rounds."
    assert _timed("a", search=60, total=3).endswith("--time-hosted 5 asks again, and pays.")
    assert _timed("a", search=60, total=0).endswith("--time-hosted 5 times them, and pays.")
    assert _timed("a", search=60, total=0, row_type="fused") == (
        "a asks rows whose query vectors or scores were there already: no answer was timed whole."
    )
    assert "come from elsewhere" in _timed("a", search=0, total=0)


def test_a_price_that_is_not_known_is_not_the_lowest_and_is_said() -> None:
    rows = [row("a", 0.8, 9.0, None, 1.0), row("b", 0.7, 9.0, 5.0, 1.0), row("c", 0.7, 9.0, None, 1.0)]
    assert _recommended(rows, ["a", "b", "c"])["Cheapest in the tie group"] == (
        "b",
        "$5.00 for a million documents. No price is known for a and c.",
    )


def _asked(label: str, usd: float | None, queries: float | None, mean: float = 0.8) -> Row:
    """A hosted row: dollars for a million documents, and for a thousand queries."""
    cost = Cost(usd=usd, usd_per_million_documents=usd, usd_per_thousand_queries=queries)
    return msgspec.structs.replace(row(label, mean, 90.0, usd, 4.0, local=False), cost=cost)


def _alone(rows: list[Row], group: list[str]) -> Verdict:
    return msgspec.structs.replace(VERDICT, best=group[0], tie_group=group, pairs=[])


def test_what_queries_cost_is_named_beside_what_documents_cost() -> None:
    """BM25 before a reranker at $2 a thousand searches: its documents are free, its answers are not."""
    rows = [_asked("bm25+cohere", 0.0, 2.0)]
    found = {each.use: each for each in recommend(rows, _alone(rows, ["bm25+cohere"]))}
    assert found["Cost of the best"].why == "$0 for a million documents and $2.00 for a thousand queries."
    assert not keeps(rows[0], Limits(usd_per_thousand_queries=1.99))
    assert keeps(rows[0], Limits(usd_per_thousand_queries=2.0, usd_per_million=0.01))


def test_of_equal_documents_the_cheaper_queries_are_the_cheapest() -> None:
    rows = [_asked("reranked", 0.0, 2.0), _asked("plain", 0.0, 0.0, 0.79), _asked("hosted", 65.0, 0.001, 0.78)]
    (cheap,) = (
        each for each in recommend(rows, _alone(rows, ["reranked", "plain", "hosted"])) if "heapest" in each.use
    )
    assert (cheap.label, cheap.why) == ("plain", "$0 for a million documents.")
    rows = [rows[0], rows[2]]
    (cheap,) = (each for each in recommend(rows, _alone(rows, ["reranked", "hosted"])) if "heapest" in each.use)
    assert cheap.label == "reranked"
    assert cheap.why.endswith(
        "hosted costs less to ask: $65.00 for a million documents and $0.001 for a thousand queries."
    )
