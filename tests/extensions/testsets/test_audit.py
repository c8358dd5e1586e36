"""Judges whose errors are known, so that the share of other winners can be worked out."""

from __future__ import annotations

import pytest
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Drawn
from bakeoff.evaluation.measures import Measure
from bakeoff.extensions.testsets.audit import audit
from bakeoff_providers.errors import InputError

from tests.errors import refuses

P1 = Measure.parse("p@1")


def ranking(*ids: str) -> Ranking:
    return Ranking(ids, tuple(float(-place) for place in range(len(ids))))


# A finds `a` first and B finds `b`; the judge calls a relevant in 6 of 10 queries and b in the other 4.
QUERIES = [f"q{n}" for n in range(10)]
RANKINGS = {"A": {q: ranking("a", "b") for q in QUERIES}, "B": {q: ranking("b", "a") for q in QUERIES}}
JUDGED = {(q, d): int((n < 6) == (d == "a")) * 3 for n, q in enumerate(QUERIES) for d in "ab"}


def test_a_judge_who_never_erred_turns_little() -> None:
    people = {pair: grade for pair, grade in JUDGED.items() if pair[0] in QUERIES[1:]}
    audited = audit("judge", JUDGED, people, RANKINGS, P1, 2, samples=4000)
    assert audited.winner == "A"
    assert audited.means == {"A": pytest.approx(0.6), "B": pytest.approx(0.4)}
    assert audited.agreement.quadratic.value == pytest.approx(1)
    assert (audited.agreement.quadratic.low, audited.agreement.quadratic.high) == (None, None)  # no spread, no interval
    assert audited.given == {0: 10, 3: 10}
    # Without q0 it is 5 : 4. B is ahead nowhere, whatever q0 is; a tie keeps the winner.
    assert audited.another == 0
    # Without q0 and q1 it is 4 : 4, and B is ahead where more of their b than of their a are relevant. 8 of 8 seen, and
    # half a count for each grade: a 3 is relevant with (8 + 1)/(8 + 2) = .9 and a 0 with 1/10, two of each kind with
    # one share: E[x²] of Beta(9, 1) is .9·10/11.
    people = {pair: grade for pair, grade in JUDGED.items() if pair[0] in QUERIES[2:]}
    audited = audit("judge", JUDGED, people, RANKINGS, P1, 2, samples=4000)
    both = 0.9 * 10 / 11
    a = [both, 2 * (0.9 - both), 1 - 2 * 0.9 + both]  # two, one or none of a's 3s stay relevant
    b = a[::-1]  # of b's 0s
    ahead = a[1] * b[0] + a[2] * (b[0] + b[1])
    assert audited.another / 4000 == pytest.approx(ahead, abs=3.5 * (ahead / 4000) ** 0.5)


def test_a_grade_that_people_never_saw_is_not_taken_for_infallible() -> None:
    """The judge gave 3, 2 and 0, people saw only 0s: whether a 3 or a 2 is worth anything is then as good as open.

    A finds the 3, B the 2, by p@1 where 3 alone counts. A 3 that nobody saw is a 3 in a quarter of cases, and so is a
    2: B is ahead where its document is one and A's is not, 1/4 · 3/4.
    """
    judged = {("q", "a"): 3, ("q", "b"): 2, **{("q", f"z{n}"): 0 for n in range(8)}}
    people = {("q", f"z{n}"): 0 for n in range(8)}
    rankings = {"A": {"q": ranking("a", "b")}, "B": {"q": ranking("b", "a")}}
    audited = audit("judge", judged, people, rankings, P1, 3, samples=4000)
    assert audited.winner == "A"
    assert audited.another / 4000 == pytest.approx(3 / 16, abs=0.02)
    assert audited.given == {0: 8, 2: 1, 3: 1}
    assert [sum(row) for row in audited.agreement.confusion] == [8, 0, 0, 0]


def test_one_person_who_gave_a_zero_counts_against_all_such_grades() -> None:
    """The only 3 that was checked was a 0: counts of 1½, ½, ½, ½ leave a third of the 3s relevant (rel 2).

    A alone has a 3, B a 2 that people saw eight times and confirmed: B is ahead where A's is not relevant and B's is.
    """
    judged = {("q", "a"): 3, ("q", "b"): 2, ("x", "z"): 3, **{(f"y{n}", "z"): 2 for n in range(8)}}
    people = {("x", "z"): 0, **{(f"y{n}", "z"): 2 for n in range(8)}}
    runs = {"A": ranking("a", "b"), "B": ranking("b", "a")}
    empty = {query: ranking("w") for query in ["x", *(f"y{n}" for n in range(8))]}
    rankings = {name: {"q": own, **empty} for name, own in runs.items()}
    audited = audit("judge", judged, people, rankings, Measure.parse("p@1"), 2, samples=4000)
    assert audited.another / 4000 == pytest.approx(2 / 3 * 0.9, abs=0.03)


def test_queries_count_by_their_traffic_where_they_were_drawn() -> None:
    """A's six queries have 10% of the traffic, B's four the rest."""
    drawn = {q: Drawn(0.1 / 6 if n < 6 else 0.9 / 4, "head", 10) for n, q in enumerate(QUERIES)}
    audited = audit("judge", JUDGED, JUDGED, RANKINGS, P1, 2, samples=10, drawn=drawn)
    assert (audited.winner, audited.by_traffic) == ("B", True)
    assert audited.means == {"A": pytest.approx(0.1), "B": pytest.approx(0.9)}


def test_means_are_the_figures_that_are_quoted() -> None:
    """GMAP of A: average precision 1 on six queries and ½ on four, so the geometric mean is 2^-.4."""
    audited = audit("judge", JUDGED, JUDGED, RANKINGS, Measure.parse("gm_map"), 2, samples=1)
    assert audited.means == {"A": pytest.approx(2**-0.4), "B": pytest.approx(2**-0.6)}


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
    # The difference of 20 fair coins (10 for A's firsts, 10 for B's): P(B ahead) = (1 − C(20,10)/2^20) / 2 = 0.412.
    assert 0.33 <= audited.another / audited.samples <= 0.48


def test_the_same_seed_gives_the_same_audit() -> None:
    people = {("q0", "a"): 0, ("q1", "a"): 3, ("q2", "b"): 0, ("q3", "b"): 3}
    runs = [audit("judge", JUDGED, people, RANKINGS, P1, 2, samples=100, seed=seed) for seed in (1, 1)]
    assert runs[0] == runs[1]


def test_a_judge_without_people_cannot_be_audited() -> None:
    with refuses(InputError, "judge"):
        audit("judge", JUDGED, {("other", "a"): 1}, RANKINGS, P1, 2)
