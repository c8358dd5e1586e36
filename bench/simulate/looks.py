"""Several looks at growing data: how often a wrong row is excluded or called better at any of them, and what they cost.

Queries come in one order, and a look sees the first of them. An error at any look counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from bakeoff.core.arrays import Values
from bakeoff.results.looks import QuestionLooks, set_over_looks
from bakeoff.results.schema import Look
from bakeoff.statistics.averaging import averaging_of
from bakeoff.statistics.best_set import best_set, versus
from bakeoff.statistics.looks import Looks, best_set_at, cost_of_looks, versus_at
from numpy.random import Generator
from numpy.typing import NDArray

from simulate import worlds
from simulate.sets import FEWEST, FLIPS, draws
from simulate.table import Line
from simulate.worlds import World

PLANS = (3, 5)  # looks
UNPLANNED = (50, 60, 80, 120)  # queries at four looks, each after more were labelled
MOST = (100, 300)  # queries of a whole plan
ROWS = (2, 8, 20)
NEEDS, ASKED = 50, 3
INTERLEAVED_LOOKS = 50
SETS = {2: 200, 8: 100, 20: 40}
PROMISED = 0.055
PROMISED_SET = {2: 0.055, 8: 0.06, 20: 0.06}

Seen = Callable[[Values, Sequence[int]], NDArray[np.bool_]]


def null_worlds(k: int) -> list[World]:
    """No row is better than the first: ties, zeros and ones, failures seen and unseen, near-duplicates, skew."""
    return [
        worlds.equal_means(k),
        worlds.equal_means_by_failures(k),
        worlds.duplicates(k),
        worlds.rare_failures(k, 0.05),
        worlds.hidden_failures(k, 0.05),
        worlds.hidden_failures_among_ties(k, 0.05),
        worlds.skewed(k),
        worlds.skewed(k, rare_gains=True),
    ]


def planned(most: int, looks: int) -> tuple[int, ...]:
    """Equal steps."""
    return tuple(round(most * (at + 1) / looks) for at in range(looks))


def simulate(effort: float) -> Iterator[Line]:
    """Errors over planned and unplanned looks, what plans cost, and votes; `effort` multiplies the data sets."""
    for k in ROWS:
        for world in null_worlds(k):
            yield from errors(world, max(FEWEST, round(effort * SETS[k])))
    for k in ROWS:
        for world in null_worlds(k)[:2]:
            yield from repeated_plain_tests(world, max(FEWEST, round(effort * SETS[k] / 4)))
    for k in ROWS[:2]:
        for world in null_worlds(k)[:2]:
            yield needs_asked_again(world, max(FEWEST, round(effort * SETS[k])))
    yield from costs(max(100, round(effort * 200)))
    yield from votes_over_looks(max(200, round(effort * 2000)))


def errors(world: World, sets: int) -> Iterator[Line]:
    """At any look: three and five planned ones, four unplanned ones."""
    k = len(world.means)
    for most in MOST:
        for number in PLANS:
            looks = planned(most, number)
            yield excluded(f"{number} planned", over_plan_set, world, looks, sets, PROMISED_SET[k])
            yield beaten(f"{number} planned", over_plan_versus, world, looks, sets, PROMISED)
    yield excluded("unplanned", unplanned_set, world, UNPLANNED, sets, PROMISED_SET[k])
    yield beaten("unplanned", unplanned_versus, world, UNPLANNED, sets, PROMISED)


def repeated_plain_tests(world: World, sets: int) -> Iterator[Line]:
    """What they would do."""
    yield excluded("plain tests", plain_set, world, planned(100, 5), sets)
    yield excluded("plain tests, unplanned", plain_set, world, UNPLANNED, sets)
    yield beaten("plain tests", plain_versus, world, planned(100, 5), sets)


def joined_at(looks: Sequence[int]) -> NDArray[np.int_]:
    """The look at which each query joins."""
    return np.repeat(np.arange(1, len(looks) + 1), np.diff((0, *looks)))


def _plan(looks: Sequence[int]) -> Looks:
    return Looks(joined_at(looks), [n / looks[-1] for n in looks])


def over_plan_set(table: Values, looks: Sequence[int]) -> NDArray[np.bool_]:
    """Rows that a planned look leaves out."""
    return _at_any(looks, lambda n, at: ~best_set_at(table[:n], _until(_plan(looks), n, at), flips=FLIPS).within)


def over_plan_versus(table: Values, looks: Sequence[int]) -> NDArray[np.bool_]:
    """Rows that a planned look calls better than the first."""
    return _at_any(looks, lambda n, at: versus_at(table[:n], 0, _until(_plan(looks), n, at), flips=FLIPS).low > 0)


def unplanned_set(table: Values, looks: Sequence[int]) -> NDArray[np.bool_]:
    """Rows that an unplanned look leaves out."""
    joined = joined_at(looks)
    return _at_any(looks, lambda n, _at: ~best_set_at(table[:n], Looks(joined[:n]), flips=FLIPS).within)


def unplanned_versus(table: Values, looks: Sequence[int]) -> NDArray[np.bool_]:
    """Rows that an unplanned look calls better than the first."""
    joined = joined_at(looks)
    return _at_any(looks, lambda n, _at: versus_at(table[:n], 0, Looks(joined[:n]), flips=FLIPS).low > 0)


def needs_asked_again(world: World, sets: int) -> Line:
    """Fifty needs, each of which gets one more query at each of three looks, so that no need of an earlier one is left.

    Of a need's queries, seven in ten score as the first one does.
    """
    best, rng, wrong = world.means >= world.means.max() - 1e-12, np.random.default_rng(29), []
    needs = np.tile(np.arange(NEEDS), ASKED)
    for _ in range(sets):
        firsts, own = world.draw(rng, NEEDS), world.draw(rng, len(needs))
        table = np.where(rng.random((len(needs), 1)) < worlds.REPEATED, firsts[needs], own)
        out = [_set_of_needs(table[: NEEDS * at], needs[: NEEDS * at], at) for at in range(1, ASKED + 1)]
        wrong.append(float(np.any(out, axis=0)[best].mean()))
    looks = [NEEDS * at for at in range(1, ASKED + 1)]
    claim = "the best row is excluded at any look, every need asked again"
    return _line(claim, world, looks, float(np.mean(wrong)), sets, PROMISED_SET[len(best)])


def _set_of_needs(table: Values, needs: NDArray[np.int_], number: int) -> NDArray[np.bool_]:
    averaging = averaging_of([None] * len(table), clusters=needs.astype(str).tolist())
    fact = Look(number=number, queries=[NEEDS * at for at in range(1, number + 1)], planned=False)
    looks = QuestionLooks(Looks(np.repeat(np.arange(1, number + 1), NEEDS)), fact)
    out: NDArray[np.bool_] = ~set_over_looks(averaging, table, looks, bounded=True).within
    return out


def _until(looks: Looks, n: int, at: int) -> Looks:
    return Looks(looks.joined[:n], looks.shares[:at])


def _at_any(looks: Sequence[int], shown: Callable[[int, int], NDArray[np.bool_]]) -> NDArray[np.bool_]:
    any_: NDArray[np.bool_] = np.any([shown(n, at) for at, n in enumerate(looks, start=1)], axis=0)
    return any_


def costs(sets: int) -> Iterator[Line]:
    """Queries that looks take, as a share of the fixed plan's: measured, and less what the plan says of them.

    A plan is made from the whole of a real pair's queries, tilted to the gap.
    """
    for number in PLANS:
        for pair, gap in (((0, 1), 0.1), ((0, 1), 0.05), ((6, 7), 0.03)):
            rows = worlds.scifact()[:, list(pair)]
            there, none = worlds.tilted(rows, gap), worlds.tilted(rows, 0.0)
            drawn = there.draw(np.random.default_rng(7), 20_000)
            spread = float((drawn[:, 0] - drawn[:, 1]).var())
            plan = cost_of_looks(number, gap=gap, variance=spread, failure=float(there.means[1]))
            assert plan is not None
            looks, name = planned(plan.most, number), f"real pair {pair[0]}, {pair[1]}, gap {gap:g}"
            for world, what, said in ((there, "a gap", plan.with_gap), (none, "no gap", plan.without_gap)):
                asked, found = _asked(world, looks, sets)
                share = f"{number} looks, average queries by the fixed plan's {plan.fixed}, {what}"
                yield Line(share, name, 2, looks[-1:], [asked / plan.fixed], sets)
                off = f"{number} looks, what the plan says of that is off by, {what}"
                yield Line(off, name, 2, looks[-1:], [abs(asked - said) / plan.fixed], sets, at_most=0.05, share=False)
                yield Line(f"{number} looks, the worse row is excluded, {what}", name, 2, looks[-1:], [found], sets)
            yield _later_look(there, plan.fixed, sets, name)


def _asked(world: World, looks: Sequence[int], sets: int) -> tuple[float, float]:
    """Queries on average until the worse row is excluded or the plan ends, and how often it is."""
    asked, found = [], []
    for table in draws(world, looks[-1], sets):
        done = [
            not best_set_at(table[:n], _until(_plan(looks), n, at), flips=FLIPS).within[1]
            for at, n in enumerate(looks, start=1)
        ]
        asked.append(looks[done.index(True)] if any(done) else looks[-1])
        found.append(any(done))
    return float(np.mean(asked)), float(np.mean(found))


def _later_look(world: World, fixed: int, sets: int, name: str) -> Line:
    """How often a second, unplanned look at twice the fixed plan's queries shows the gap."""
    joined = joined_at((fixed // 2, 2 * fixed))
    found = [not best_set_at(table, Looks(joined), flips=FLIPS).within[1] for table in draws(world, 2 * fixed, sets)]
    claim = "an unplanned later look at twice the fixed plan's queries finds the gap"
    return Line(claim, name, 2, (2 * fixed,), [float(np.mean(found))], sets)


def excluded(how: str, seen: Seen, world: World, looks: Sequence[int], sets: int, at_most: float | None = None) -> Line:
    """How often the best row is excluded at any look. Equally good rows count alike."""
    best = world.means >= world.means.max() - 1e-12
    wrong = [float(seen(table, looks)[best].mean()) for table in draws(world, looks[-1], sets)]
    return _line(f"the best row is excluded at any look, {how}", world, looks, float(np.mean(wrong)), sets, at_most)


def beaten(how: str, seen: Seen, world: World, looks: Sequence[int], sets: int, at_most: float | None = None) -> Line:
    """How often any row is called better than the first at any look, which none of them is."""
    wrong = [bool(seen(table, looks).any()) for table in draws(world, looks[-1], sets)]
    claim = f"a row beats the incumbent at any look, {how}"
    return _line(claim, world, looks, float(np.mean(wrong)), sets, at_most)


def _line(claim: str, world: World, looks: Sequence[int], measured: float, sets: int, at_most: float | None) -> Line:
    shown = f"{world.name}, looks at {' '.join(map(str, looks))}"
    return Line(claim, shown, len(world.means), (looks[-1],), [measured], sets, at_most=at_most)


def plain_set(table: Values, looks: Sequence[int]) -> NDArray[np.bool_]:
    """Rows that the ordinary set leaves out at some look."""
    out: NDArray[np.bool_] = np.any([~best_set(table[:n], flips=FLIPS).within for n in looks], axis=0)
    return out


def plain_versus(table: Values, looks: Sequence[int]) -> NDArray[np.bool_]:
    """Rows that the ordinary test calls better than the first at some look."""
    out: NDArray[np.bool_] = np.any([versus(table[:n], 0, flips=FLIPS).low > 0 for n in looks], axis=0)
    return out


def votes(rng: Generator, users: int = 500, preference: float = 0.0) -> list[tuple[int, int]]:
    """Users for b and for a at 50 looks at a growing log.

    Each user comes one to three times and prefers one side a little, either side as often as the other unless there is
    a `preference`. A user's vote is the side that won more of their queries so far.
    """
    asks = np.repeat(np.arange(users), rng.integers(1, 4, users))
    when = np.sort(rng.random(users))[asks] + rng.exponential(0.05, len(asks))
    order = np.argsort(when, kind="stable")
    chance = np.clip(0.5 + preference / 2 + rng.choice([-0.2, 0.2], users), 0, 1)
    signs = np.where(rng.random(len(asks)) < 0.3, 0, np.where(rng.random(len(asks)) < chance[asks], 1, -1))
    found = []
    for at in range(1, INTERLEAVED_LOOKS + 1):
        there = order[: round(len(order) * at / INTERLEAVED_LOOKS)]
        sums = np.bincount(asks[there], signs[there], users)
        found.append((int((sums > 0).sum()), int((sums < 0).sum())))
    return found


def interleaved(
    how: str, decides: Callable[[int, int], bool], sets: int, at_most: float | None = None, preference: float = 0.0
) -> Line:
    """How often a preference is shown at any of 50 looks."""
    rng = np.random.default_rng([50, sets])
    shown = [any(decides(*each) for each in votes(rng, preference=preference)) for _ in range(sets)]
    world = f"interleaved, preference {preference:g}, {INTERLEAVED_LOOKS} looks"
    claim = f"a preference is shown at any look, {how}"
    return Line(claim, world, 2, (500,), [float(np.mean(shown))], sets, at_most=at_most)


def votes_over_looks(sets: int) -> Iterator[Line]:
    """Without and with a preference, by the bound that holds at every look and by the exact sign test."""
    yield interleaved("plain tests", plain_votes, sets)
    yield interleaved("bound for every look", votes_at_any_look, sets, PROMISED)
    yield interleaved("bound for every look", votes_at_any_look, sets // 4, preference=0.3)


def votes_at_any_look(ahead: int, behind: int) -> bool:
    """The bound that holds at every look."""
    from bakeoff.extensions.production.traffic import any_look_p

    return any_look_p(ahead, behind) <= 0.05


def plain_votes(ahead: int, behind: int) -> bool:
    """The exact sign test."""
    from bakeoff.extensions.production.traffic import sign_test

    return sign_test(ahead, behind) <= 0.05
