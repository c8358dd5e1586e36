"""Recommendations do not choose by noise, and say nothing about times that were never taken."""

from __future__ import annotations

import pytest
from bakeoff.core.figures import Percentiles
from bakeoff.results.recommend import recommend
from bakeoff.results.schema import Cost, Latency, Row, Value, Verdict


def _row(label: str, ndcg: float, p95: float | None, n: int = 100) -> Row:
    total = Percentiles(n=n, p50=p95, p95=p95, p99=p95)
    return Row(
        label=label, row_type="contender", local=True, measures={"ndcg@10": Value(mean=ndcg)},
        latency=Latency(embed=total, search=total, total=total),
        cost=Cost(usd=0.0, usd_per_million_documents=0.0, tokens_estimated=False, price=""),
    )  # fmt: skip


def _by_use(rows: list[Row], group: list[str]) -> dict[str, tuple[str | None, str]]:
    verdict = Verdict(
        measure="ndcg@10", best=group[0], tie_group=group, pairs=[], smallest_detectable=None, sentences=[]
    )
    return {choice.use.split(" ")[0]: (choice.label, choice.why) for choice in recommend(rows, verdict)} | {
        choice.use: (choice.label, choice.why) for choice in recommend(rows, verdict)
    }


def test_rows_within_the_noise_are_as_fast() -> None:
    rows = [_row("m+a", 0.8, 10.2), _row("m+b", 0.8, 9.8), _row("m+c", 0.8, 9.1)]
    choices = _by_use(rows, ["m+a", "m+b", "m+c"])
    assert choices["Best under 10 ms"][0] is None
    assert "by more than noise" in choices["Best under 10 ms"][1]
    assert choices["Cheapest in the tie group"][0] == "m+a"  # 9.1 against 10.2 ms is no reason to leave the best
    assert "as 2 others; within 1.5× of the fastest of these (10" in choices["Cheapest in the tie group"][1]


def test_the_fastest_is_called_so_also_where_others_are_as_fast() -> None:
    why = _by_use([_row("m+a", 0.8, 30.47), _row("m+b", 0.8, 31.03)], ["m+a", "m+b"])["Cheapest in the tie group"][1]
    assert why == "$0 for a million documents, as 1 other; the fastest of these (30.5 ms, p50)."


def test_what_is_really_faster_is_chosen() -> None:
    choices = _by_use([_row("m+a", 0.8, 10.2), _row("w+a", 0.7, 0.3)], ["m+a", "w+a"])
    assert choices["Best under 10 ms"][0] == "w+a"
    assert choices["Cheapest in the tie group"][0] == "w+a"


def test_a_better_row_that_was_passed_over_is_named() -> None:
    choices = _by_use([_row("m+a", 0.8, 5.2), _row("u+a", 0.7, 3.9), _row("w+a", 0.6, 0.3)], ["m+a"])
    label, why = choices["Best under 5 ms"]
    assert label == "w+a"
    assert why.endswith("u+a would keep the limit, too, but no faster than m+a by more than noise.")


def test_an_equal_row_that_is_slower_is_not_named_as_passed_over() -> None:
    choices = _by_use([_row("m+a", 0.8, 5.2), _row("u+a", 0.6, 3.9), _row("w+a", 0.6, 0.3)], ["m+a"])
    assert choices["Best under 5 ms"] == ("w+a", "NDCG@10 0.600 in 0.3 ms (p50); m+a needs 5.2 ms.")


def test_one_row_is_no_tie_group_and_answers_from_files_have_no_latency() -> None:
    choices = _by_use([_row("a", 0.8, None, n=0), _row("b", 0.2, None, n=0)], ["a"])
    assert "Cheapest in the tie group" not in choices
    label, why = choices["Best under a latency limit"]
    assert label is None
    assert "--rounds" not in why
    assert "no latency" in why


@pytest.mark.parametrize(
    ("taus", "said"),
    [
        ({"mrr": 1.0}, "is the same by every other measure."),
        # one exchange among 30 contenders: 1 - 4 / (30 · 29), which two digits print as 1.00
        ({"mrr": 1 - 4 / 870}, "is nearly the same by every other measure (Kendall's τ above 0.99)."),
        (
            {"mrr": 0.9949},
            "agrees least with their order by MRR (Kendall's τ 0.99; 1 is the same order, -1 the reverse): "
            "that column of the matrix shows who leads by it.",
        ),
        (
            {"mrr": 0.5, "category network": 0.0},
            "within the category network (Kendall's τ 0.00; 1 is the same order, -1 the reverse): "
            'the page\'s chart "NDCG@10 by category" shows who leads there.',
        ),
    ],
)
def test_full_agreement_is_not_called_the_least(taus: dict[str, float], said: str) -> None:
    from bakeoff.evaluation.measures import Measure
    from bakeoff.results.verdict import _agreement_sentence

    (sentence,) = _agreement_sentence(taus, Measure.parse("ndcg@10"))
    assert said in sentence
    assert "τ 1.00" not in sentence
