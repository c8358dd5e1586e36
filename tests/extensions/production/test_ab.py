"""A/B: intervals that keep their promise with users as clusters, the split, and looking every day."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from bakeoff.core.facts import fact
from bakeoff.extensions.production.search_log import Impression, LogColumns
from bakeoff.extensions.production.traffic import (
    Clusters,
    always_valid,
    compare_arms,
    difference,
    metric_of,
    mismatch,
    p_value,
    ratio,
    split_p,
    width,
)
from bakeoff_providers.errors import InputError
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from tests.errors import refuses, says
from tests.facts import arguments, ids, sentences


def _arm(rng: np.random.Generator, users: int, lift: float = 0.0, sessions: float = 4.0) -> Clusters:
    """Users differ in how much they click, and those who come often click more: sessions are not independent."""
    taste = rng.beta(2, 3, users)
    rows = 1 + rng.poisson(sessions * taste)
    clicked = rng.binomial(rows, np.clip(taste + lift, 0, 1))
    return Clusters(clicked.astype(float), rows.astype(float))


def test_without_clusters_it_is_welch() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.random(50), rng.random(65) + 0.1
    found = difference(Clusters(a, np.ones(50)), Clusters(b, np.ones(65)))
    expected = stats.ttest_ind(b, a, equal_var=False)
    interval = expected.confidence_interval()
    assert (found.p, found.low, found.high) == pytest.approx((expected.pvalue, interval.low, interval.high))


def test_the_interval_covers_and_sessions_alone_would_not() -> None:
    """1,000 experiments without a difference: users as clusters keep 95%, sessions taken as independent do not."""
    rng = np.random.default_rng(2)
    covered = naive = 0
    for _ in range(1000):
        a, b = _arm(rng, 150, sessions=20), _arm(rng, 150, sessions=20)
        found = difference(a, b)
        covered += found.low <= 0 <= found.high
        rate = [arm.mean for arm in (a, b)]
        spread = sum(p * (1 - p) / arm.rows.sum() for p, arm in zip(rate, (a, b), strict=True)) ** 0.5
        naive += abs(rate[1] - rate[0]) <= 1.96 * spread
    assert 935 <= covered <= 970
    assert naive < 850


def _heavy(rng: np.random.Generator, users: int) -> Clusters:
    """Sessions per user by Pareto's law with exponent 1.2, at most 500: some are bots or shared accounts."""
    rows = np.clip(np.ceil(rng.pareto(1.2, users)), 1, 500)
    return Clusters(rng.binomial(rows.astype(int), rng.beta(2, 3, users)).astype(float), rows)


@pytest.mark.parametrize("users", [100, 500])
def test_heavy_users_raise_no_false_alarms(users: int) -> None:
    """1,000 experiments without a difference; the delta method with as many users as there are alarmed in 14 and 8%."""
    rng = np.random.default_rng(12)
    alarms = sum(difference(_heavy(rng, users), _heavy(rng, users)).p <= 0.05 for _ in range(1000))
    assert alarms <= 64  # more is seen once in 40 such tests at exactly 5%


@pytest.mark.slow
@pytest.mark.parametrize("users", [100, 500])
def test_heavy_users_at_fifty_looks(users: int) -> None:
    rng = np.random.default_rng(13)
    alarms = 0
    for _ in range(500):
        arms = [_heavy(rng, users) for _ in range(2)]
        looks = np.linspace(50, users, 50).astype(int)
        seen = ([Clusters(arm.sums[:n], arm.rows[:n]) for arm in arms] for n in looks)
        alarms += any(always_valid(a, b, planned=2 * users).p <= 0.05 for a, b in seen)
    assert alarms <= 32


def test_the_standard_error_is_the_jackknifes() -> None:
    """Of three users by hand, and of users with one session each it is the mean's."""
    sums, rows = np.array([1.0, 0.0, 6.0]), np.array([1.0, 2.0, 8.0])
    left_out = [6 / 10, 7 / 9, 1 / 3]
    expected = np.sqrt(2 / 3 * sum((value - 7 / 11) ** 2 for value in left_out))
    assert Clusters(sums, rows).standard_error == pytest.approx(expected)
    assert Clusters(sums, rows).effective == pytest.approx(121 / 69)
    values = np.random.default_rng(14).random(40)
    assert Clusters(values, np.ones(40)).standard_error == pytest.approx(stats.sem(values))


def test_the_detectable_difference_is_detected_in_80_percent() -> None:
    rng = np.random.default_rng(3)
    typical = float(np.mean([difference(_arm(rng, 300), _arm(rng, 300)).detectable for _ in range(50)]))
    shown = sum(difference(_arm(rng, 300), _arm(rng, 300, typical)).low > 0 for _ in range(600))
    assert 0.74 <= shown / 600 <= 0.86


@given(st.integers(1, 5000), st.integers(1, 5000), st.floats(0.1, 10))
def test_the_split_is_tested_as_scipy_does(a: int, b: int, share: float) -> None:
    total = a + b
    expected = stats.chisquare([a, b], [total * share / (share + 1), total / (share + 1)]).pvalue
    assert mismatch([a, b], [share, 1]) == pytest.approx(expected, rel=1e-6, abs=1e-300)


DAYS = 30


def _daily(rng: np.random.Generator, *, returning: bool) -> list[Clusters]:
    """An arm as it stands after each of 30 days: with new people every day, or with the same ones all the time."""
    if not returning:
        people = _arm(rng, 60 + 40 * (DAYS - 1))
        seen = [60 + 40 * day for day in range(DAYS)]
        return [Clusters(people.sums[:n], people.rows[:n]) for n in seen]
    taste = rng.beta(2, 3, 60)
    rows = np.vstack([1 + rng.poisson(4 * taste), rng.poisson(1.0, (DAYS - 1, 60))])
    clicked = rng.binomial(rows, taste)
    sums, rows = np.cumsum(clicked, axis=0), np.cumsum(rows, axis=0)
    return [Clusters(sums[day].astype(float), rows[day].astype(float)) for day in range(DAYS)]


def _alarms(rng: np.random.Generator, *, returning: bool) -> tuple[bool, bool]:
    """Whether any of the looks shows a difference, where there is none: by our interval, and by a plain one."""
    sequential = plain = False
    for control, treatment in zip(*(_daily(rng, returning=returning) for _ in range(2)), strict=True):
        shown = always_valid(control, treatment, planned=2000)
        sequential |= shown.low > 0 or shown.high < 0
        error = (shown.high - shown.value) / width(ratio(len(control) + len(treatment), 2000, 0.05), 0.05)
        plain |= abs(shown.value) > 1.96 * error
    return sequential, plain


@pytest.mark.slow
@pytest.mark.parametrize("returning", [False, True], ids=["new people", "the same people"])
def test_thirty_looks_raise_at_most_5_percent_false_alarms(returning: bool) -> None:
    """1,000 experiments without a difference; looking as often with a plain test would alarm far more often."""
    rng = np.random.default_rng(4)
    alarms = np.array([_alarms(rng, returning=returning) for _ in range(1000)]).sum(axis=0)
    assert alarms[0] <= 50
    if not returning:
        assert alarms[1] > 150


@given(st.integers(0, 3000), st.integers(0, 3000), st.floats(0.1, 10))
def test_the_split_at_every_look_is_a_ratio_of_likelihoods(a: int, b: int, share: float) -> None:
    """B(a + 1, b + 1) is the mean likelihood of the order over all proportions, by scipy."""
    planned = share / (share + 1)
    evidence = special.betaln(a + 1, b + 1) - a * np.log(planned) - b * np.log(1 - planned)
    assert split_p([a, b], [share, 1]) == pytest.approx(min(1.0, np.exp(-evidence)), rel=1e-6, abs=1e-300)
    assert split_p([3, 0], [1, 1]) == pytest.approx(0.5)  # (1/4) / (1/8) is the evidence


def test_looking_at_the_split_every_day_raises_no_more_false_alarms_than_promised() -> None:
    """1,000 experiments of 30 days, 1:1 as planned, at 5%; a chi-squared test every day would alarm far more often."""
    rng = np.random.default_rng(8)
    daily = rng.binomial(80, 0.5, (1000, DAYS)).cumsum(axis=1)
    seen = [[(int(n), 80 * (day + 1) - int(n)) for day, n in enumerate(people)] for people in daily]
    assert sum(any(split_p(users, [1, 1]) < 0.05 for users in days) for days in seen) <= 50
    assert sum(any(mismatch(users, [1, 1]) < 0.05 for users in days) for days in seen) > 150


def test_the_sequential_interval_is_tightest_where_it_was_planned() -> None:
    around = [width(ratio(1000, planned, 0.05), 0.05) for planned in (500, 900, 1000, 1100, 2000)]
    assert min(around) == around[2]
    assert 2.8 < around[2] < 3.2  # the price of looking at any time, against 1.96


@given(st.floats(0, 8), st.floats(0.01, 100))
def test_its_p_and_its_interval_agree(z: float, r: float) -> None:
    p = p_value(z, r)
    if p < 1:
        assert width(r, p) == pytest.approx(z, rel=1e-6)


def test_too_few_users_say_nothing() -> None:
    rng = np.random.default_rng(5)
    assert always_valid(_arm(rng, 49), _arm(rng, 900), 1000).p == 1.0
    assert difference(_arm(rng, 49), _arm(rng, 900)).p == 1.0


def test_two_users_an_arm_are_too_early_to_look(tmp_path: Path) -> None:
    """All 0 against all 1: of the six ways to put four users into two arms, two are as uneven, so 1/3 at best."""
    rows = [("", f"{arm}{at}", "s", arm, ["1"] if arm == "new" else []) for arm in ("old", "new") for at in range(2)]
    check = compare_arms(_log(tmp_path / "log.jsonl", rows), LogColumns(), control="old", treatment="new")
    assert check.facts[-1] == fact("production.too_few_users", needed=50)
    says(sentences(check.facts)[-1])
    assert check.figures["p"] >= 1 / 3
    assert not check.worse


def _impression(shown: str, clicked: str) -> Impression:
    return Impression(query="q", shown=tuple(shown), clicked=tuple(clicked))


@pytest.mark.parametrize(
    ("metric", "session", "value"),
    [
        ("click@2", [("pqr", "r"), ("pqr", "")], 0.0),
        ("click@3", [("pqr", "r"), ("pqr", "")], 1.0),
        ("rr", [("pqr", "rq"), ("pqr", "")], 0.25),
        ("success", [("pqr", "p"), ("pqr", "")], 0.0),
        ("success", [("pqr", ""), ("pqr", "q")], 1.0),
    ],
)
def test_metrics_of_a_session(metric: str, session: list[tuple[str, str]], value: float) -> None:
    assert metric_of(metric)([_impression(*one) for one in session]) == value


@pytest.mark.parametrize("name", ["clicks", "click@0", "click@x", "click", "rr@5"])
def test_an_unknown_metric_is_refused(name: str) -> None:
    with refuses(InputError, place="--metric"):
        metric_of(name)


def _log(path: Path, rows: list[tuple[str, str, str, str, list[str]]]) -> Path:
    lines = [
        {"time": time, "user": user, "session": session, "arm": arm, "query": "x", "shown": ["1", "2"],
         "clicked": clicked}
        for time, user, session, arm, clicked in rows
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_sessions_are_put_in_order_and_users_of_both_arms_are_left_out(tmp_path: Path) -> None:
    rows = [
        ("2026-11-02T10:05:00", "u1", "s1", "old", ["1"]),
        ("2026-11-02T10:00:00", "u1", "s1", "old", []),  # earlier: the session ended with a click
        ("2026-11-02T10:00:00", "u2", "s1", "old", []),
        ("2026-11-02T10:00:00", "u3", "s1", "new", ["1"]),
        ("2026-11-02T10:00:00", "u4", "s1", "new", ["2"]),
        ("2026-11-02T10:00:00", "u5", "s1", "new", ["2"]),
        ("2026-11-02T10:00:00", "u5", "s2", "old", ["2"]),
    ]
    log = _log(tmp_path / "log.jsonl", rows)
    check = compare_arms(log, LogColumns(), control="old", treatment="new", metric="success")
    assert check.figures["users"] == [2, 2]
    assert check.figures["means"] == [0.5, 1.0]
    assert check.figures["users_in_both_arms"] == 1
    assert arguments(check.facts, "production.users_in_both_arms") == [{"users": 1}]


def test_a_lopsided_split_is_worse_whatever_the_difference(tmp_path: Path) -> None:
    rows = [("", f"u{i}", "s", "new" if i < 200 else "old", ["1"] if i % 3 else []) for i in range(500)]
    log = _log(tmp_path / "log.jsonl", rows)
    check = compare_arms(log, LogColumns(), control="old", treatment="new")
    assert check.worse
    assert [arm["users"] for arm in arguments(check.facts, "production.arm")] == [300, 200]
    assert "production.split_mismatch" in ids(check.facts)
    says(sentences(check.facts))
    assert not compare_arms(log, LogColumns(), control="old", treatment="new", split=(3, 2)).worse
    looked = compare_arms(log, LogColumns(), control="old", treatment="new", planned=1000)
    assert looked.figures["split_p"] == split_p([300, 200], [1, 1])
    assert looked.worse


def test_an_unknown_arm_names_those_of_the_log(tmp_path: Path) -> None:
    log = _log(tmp_path / "log.jsonl", [("", "u", "s", "old", []), ("", "v", "s", "new", [])])
    with refuses(InputError, "'control'", file="log.jsonl") as error:
        compare_arms(log, LogColumns(), control="control", treatment="new")
    assert "new, old" in error.value.remedy


def test_nothing_differs_where_nobody_clicks() -> None:
    """None of 100 in either arm: by Clopper and Pearson, at 2.5% each, at most 4.3% of an arm's users ever do."""
    quiet = Clusters(np.zeros(100), np.ones(100))
    most = stats.binomtest(0, 100).proportion_ci(0.975, "exact").high
    found = difference(quiet, quiet)
    assert (found.value, found.p) == (0.0, 1.0)
    assert (found.low, found.high) == pytest.approx((-most, most))
    assert always_valid(quiet, quiet, 1000).p == 1.0


def test_arms_without_any_spread_are_never_certain() -> None:
    """60 users at 0 against 60 at 1: two of all C(120, 60) ways to split them are as uneven."""
    zeros, ones = Clusters(np.zeros(60), np.ones(60)), Clusters(np.ones(60), np.ones(60))
    found = difference(zeros, ones)
    assert found.p == pytest.approx(2 / special.comb(120, 60), rel=1e-9)
    most = stats.binomtest(0, 60).proportion_ci(0.975, "exact").high
    assert (found.low, found.high) == pytest.approx((1 - 2 * most, 1.0))


def test_nobody_who_differs_is_said(tmp_path: Path) -> None:
    nothing: list[str] = []
    rows = [("", f"{arm}{at}", "s", arm, nothing) for arm in ("old", "new") for at in range(60)]
    log = _log(tmp_path / "log.jsonl", rows)
    once = compare_arms(log, LogColumns(), control="old", treatment="new")
    assert ids(once.facts)[-1] == "production.no_difference_no_spread"
    looked = compare_arms(log, LogColumns(), control="old", treatment="new", planned=1000)
    assert ids(looked.facts)[-1] == "production.no_spread_yet"
    says(sentences([once.facts[-1], looked.facts[-1]]))
