"""Answers out of date: `stale@k` by hand, its oracle and random rows by trying all orders."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Document, Query, Task
from bakeoff.evaluation.measures import Measure, primary_measure
from bakeoff.evaluation.score import join, oracle, random_expectation, score_queries
from bakeoff.evaluation.validity import Validity
from bakeoff_providers.errors import InputError
from hypothesis import given
from hypothesis import strategies as st

from tests.errors import refuses

PERIODS: dict[str, dict[str, str | None]] = {
    "year": {"valid_from": "2020-01-01", "valid_to": "2020-12-31"},
    "later": {"valid_from": "2021-01-01"},
    "before": {"valid_to": "2019-12-31", "valid_from": None},
    "always": {},
}


def _task(
    days: Mapping[str, str],
    periods: Mapping[str, Mapping[str, str | None]] = PERIODS,
    judgments: Mapping[str, Mapping[str, int]] | None = None,
    item: str = "",
) -> Task:
    return Task(
        name="dated",
        documents=[Document(name, name, metadata=period) for name, period in periods.items()],
        queries=[Query(id=query, text=query, as_of=day, identical=item) for query, day in days.items()],
        judgments=judgments or {},
    )


def _values(task: Task, rankings: Mapping[str, Ranking], text: str) -> list[float]:
    measure, ids = Measure.parse(text), [query.id for query in task.queries]
    ranked = replace(join(rankings, task.judgments, ids), stale=Validity.of(task).in_rankings(rankings))
    return [float(value) for value in score_queries(ranked, [measure])[measure]]


def _ranking(*ids: str, matched: int | None = None) -> Ranking:
    return Ranking(ids, tuple(float(-place) for place in range(len(ids))), matched)


@pytest.mark.parametrize(
    ("day", "stale"),
    [
        ("2019-12-31", {"year", "later"}),
        ("2020-01-01", {"later", "before"}),  # both ends belong to a period
        ("2020-12-31", {"later", "before"}),
        ("2021-01-01", {"year", "before"}),
        ("2999-01-01", {"year", "before"}),  # an end that is not given is open
        ("0001-01-01", {"year", "later"}),
        ("", set()),  # not time-bound
    ],
)
def test_a_document_is_out_of_date_outside_its_period(day: str, stale: set[str]) -> None:
    task = _task({"q": day})
    validity = Validity.of(task)
    assert {name for name in PERIODS if validity.is_stale(name, task.queries[0])} == stale


@pytest.mark.parametrize(
    ("text", "expected"), [("stale@1", 1.0), ("stale@2", 1 / 2), ("stale@3", 2 / 3), ("stale@4", 2 / 4)]
)
def test_the_share_of_the_first_places_that_is_out_of_date(text: str, expected: float) -> None:
    task = _task({"q": "2020-06-01"})
    assert _values(task, {"q": _ranking("later", "year", "before", "always")}, text) == [pytest.approx(expected)]


def test_only_what_matched_counts_and_only_time_bound_queries_have_a_value() -> None:
    task = _task({"short": "2020-06-01", "filled": "2020-06-01", "none": "2020-06-01", "unbound": "", "lost": ""})
    rankings = {
        "short": _ranking("later", "year"),  # 1 of the 2 that came back
        "filled": _ranking("year", "later", "before", matched=1),
        "unbound": _ranking("later", "before"),
    }
    values = _values(task, rankings, "stale@3")
    assert values[:3] == [0.5, 0.0, 0.0]
    assert all(map(math.isnan, values[3:]))


def _all_orders(names: Sequence[str]) -> list[tuple[str, ...]]:
    return list(permutations(names))


GRADES = st.dictionaries(st.sampled_from("abcde"), st.integers(0, 2), max_size=5)
DAYS = st.sampled_from(["", "2020-01-01", "2020-01-02", "2020-01-03"])
PERIOD = st.tuples(DAYS, DAYS).filter(lambda ends: not ends[1] or ends[0] <= ends[1])


@given(st.lists(PERIOD, min_size=2, max_size=5), DAYS.filter(bool), GRADES, st.integers(1, 6), st.booleans())
def test_oracle_and_random_are_those_of_all_orders(
    periods: list[tuple[str, str]], day: str, grades: dict[str, int], k: int, of_item: bool
) -> None:
    """The random row is the mean over all orders; the oracle is the perfect order with the fewest out of date."""
    names = "abcde"[: len(periods)]
    item = names[0] if of_item else ""
    documents = {
        name: {"valid_from": first, "valid_to": last} for name, (first, last) in zip(names, periods, strict=True)
    }
    judged = {name: grade for name, grade in grades.items() if name in names and name != item}
    task = _task({"q": day}, documents, {"q": judged}, item)
    stale = {name for name, (first, last) in zip(names, periods, strict=True) if day < first or (last and day > last)}
    shares = {
        order: len(stale & set(order[:k])) / len(order[:k]) for order in _all_orders([n for n in names if n != item])
    }
    best = min(
        share
        for order, share in shares.items()
        if [judged.get(name, 0) for name in order] == sorted((judged.get(name, 0) for name in order), reverse=True)
    )
    measure, validity = Measure.parse(f"stale@{k}"), Validity.of(task)
    perfect = replace(
        oracle(task.judgments, ["q"], task.candidates, 10), stale=validity.in_perfect_rankings(task.judgments, 10)
    )
    expected = random_expectation(task.judgments, ["q"], task.candidates, [measure], stale=validity.shares())
    assert score_queries(perfect, [measure])[measure][0] == pytest.approx(best)
    assert expected[measure][0] == pytest.approx(np.mean(list(shares.values())))


def test_without_dates_there_is_no_share_and_no_decision() -> None:
    measure = Measure.parse("stale@3")
    with pytest.raises(InputError) as caught:
        score_queries(join({}, {}, ["q"]), [measure])
    assert "line-up" in caught.value.remedy
    with pytest.raises(InputError):
        random_expectation({}, ["q"], 3, [measure])
    assert str(primary_measure([measure, Measure.parse("mrr")])) == "mrr"
    with pytest.raises(InputError):
        primary_measure([measure], "stale@3")
    with refuses(InputError, "cut-off"):
        Measure.parse("stale")
