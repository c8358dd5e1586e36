"""Judges whose errors are known, so that the share of other winners can be worked out."""

from __future__ import annotations

import pytest
from bakeoff.core.ranking import Ranking
from bakeoff.evaluation.measures import Measure
from bakeoff.testsets.audit import audit
from bakeoff_providers.errors import InputError

P1 = Measure.parse("p@1")


def ranking(*ids: str) -> Ranking:
    return Ranking(ids, tuple(float(-place) for place in range(len(ids))))


# A finds `a` first and B finds `b`; the judge calls a relevant in 6 of 10 queries and b in the other 4.
QUERIES = [f"q{n}" for n in range(10)]
RANKINGS = {"A": {q: ranking("a", "b") for q in QUERIES}, "B": {q: ranking("b", "a") for q in QUERIES}}
JUDGED = {(q, d): int((n < 6) == (d == "a")) * 3 for n, q in enumerate(QUERIES) for d in "ab"}


def test_a_judge_who_never_erred_turns_nothing() -> None:
    people = {pair: grade for pair, grade in JUDGED.items() if pair[0] in QUERIES[3:9]}
    audited = audit("judge", JUDGED, people, RANKINGS, P1, 2, samples=200)
    assert audited.winner == "A"
    assert audited.means == {"A": pytest.approx(0.6), "B": pytest.approx(0.4)}
    assert audited.agreement.quadratic.value == pytest.approx(1)
    assert (audited.another, audited.winners) == (0, {"A": 200})


def test_where_people_graded_their_grade_counts() -> None:
    # People graded everything, and the other way round: every sample crowns B.
    people = {pair: 3 - grade for pair, grade in JUDGED.items()}
    audited = audit("judge", JUDGED, people, RANKINGS, P1, 2, samples=50)
    assert audited.winner == "A"
    assert audited.winners == {"B": 50}
    assert audited.another == 50


def test_a_judge_who_guesses_leaves_the_winner_open() -> None:
    # On the people's subset the judge's 0s and 3s are right half of the time, so every other pair is a coin's toss:
    # A leads by two of ten queries, and tossed coins must turn that often, but not always.
    extra = {(f"x{n}", "a"): 3 * (n % 2) for n in range(40)}
    people = {(f"x{n}", "a"): 3 * (n // 2 % 2) for n in range(40)}
    rankings = {name: run | {f"x{n}": ranking("z") for n in range(40)} for name, run in RANKINGS.items()}
    audited = audit("judge", JUDGED | extra, people, rankings, P1, 2, samples=400)
    assert audited.agreement.pairs == 40
    assert audited.agreement.plain.value == pytest.approx(0, abs=1e-9)
    # The difference of 20 fair coins (10 for A's firsts, 10 for B's): P(B ahead) = (1 − C(20,10)/2^20) / 2 = 0.412;
    # the one count for agreeing pulls a little towards the judge.
    assert 0.30 <= audited.another / audited.samples <= 0.46


def test_the_same_seed_gives_the_same_audit() -> None:
    people = {("q0", "a"): 0, ("q1", "a"): 3, ("q2", "b"): 0, ("q3", "b"): 3}
    runs = [audit("judge", JUDGED, people, RANKINGS, P1, 2, samples=100, seed=seed) for seed in (1, 1)]
    assert runs[0] == runs[1]


def test_a_judge_without_people_cannot_be_audited() -> None:
    with pytest.raises(InputError, match="graded both by judge and by people"):
        audit("judge", JUDGED, {("other", "a"): 1}, RANKINGS, P1, 2)
