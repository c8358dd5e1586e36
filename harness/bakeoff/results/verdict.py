"""The verdict as facts: which rows may be best, what to do, and what these queries can't show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from bakeoff.core.arrays import Values
from bakeoff.core.figures import STOP_WITHIN
from bakeoff.evaluation.measures import Measure
from bakeoff.results.looks import QuestionLooks, set_over_looks, versus_over_looks
from bakeoff.results.picks import picks_of, quickest
from bakeoff.results.schema import (
    Action,
    Against,
    Outlook,
    PossibleWinner,
    Row,
    Situation,
    Standing,
    Verdict,
)
from bakeoff.statistics.averaging import Averaging, fewest_for_equivalence
from bakeoff.statistics.columns import differences_of, table_of
from bakeoff.statistics.compare import finite, kendall_tau
from bakeoff.statistics.constants import ALPHA, NOISE
from bakeoff.statistics.detectable import find_noticeable_gap, queries_for_gap, queries_to_separate, round_gap
from bakeoff.statistics.small_samples import FEWEST_UNLIKE
from bakeoff.statistics.tests import first_equal, holm_of_distinct, hypothesis_of

FEWEST_TO_ORDER = 3  # two contenders have an order, but nothing to agree on
FEWEST_IN_CATEGORY = 4  # queries: the order within a smaller category is chance
JUDGED_ENOUGH = 0.9  # of a row's first k documents: with fewer grades others could be better

ByMeasure = Mapping[Measure, Mapping[str, Values]]


@dataclass(frozen=True, slots=True)
class VerdictQuestion:
    """The question that a verdict answers, and its queries.

    `floor` is the expected score of a random order on each query; without it, `above` names rows that beat it.
    `turning` are the rows that further grades could put first. `overtakes` tells whether they could put one row above
    another.
    """

    measure: Measure
    averaging: Averaging
    floor: Values | None = None
    above: Mapping[str, bool] = field(default_factory=dict)
    category_sizes: Mapping[str, int] = field(default_factory=dict)
    baseline: str = ""
    equivalent_within: float | None = None
    stop_within: float = STOP_WITHIN
    looks: QuestionLooks | None = None
    turning: Sequence[PossibleWinner] = ()
    overtakes: Callable[[str, str], bool] = lambda *_: False


def decide(scores: ByMeasure, rows: Sequence[Row], question: VerdictQuestion) -> Verdict:
    """The verdict on one measure over the contenders that ran, and its agreement with the other measures."""
    measure, averaging = question.measure, question.averaging
    mine = scores[measure]
    ran = {row.label: row for row in rows if row.label in mine}
    if not ran:
        return Verdict(
            measure=str(measure), leader=None, best_set=[], situation="nothing ran", action="none", take=None,
            stop_within=question.stop_within, baseline=question.baseline,
        )  # fmt: skip
    standings = _Standings(scores, ran, question)
    found = standings.by_label
    pairs = averaging.pairs(mine, bounded=measure.bounded)
    situation = _situation(standings)
    take = _take(situation, standings)
    sizes = question.category_sizes
    return Verdict(
        measure=str(measure),
        leader=standings.leader,
        best_set=sorted(
            (label for label in found if found[label].mark != "worse"), key=lambda label: -standings.shown[label]
        ),
        situation=situation,
        action=_action(situation),
        take=take,
        stop_within=question.stop_within,
        baseline=question.baseline,
        standings=found,
        outlook=_outlook(standings),
        look=question.looks.fact if question.looks else None,
        picks=picks_of([ran[label] for label in standings.choosable], take, found, str(measure))
        if situation not in WITHOUT_PICKS
        else [],
        pairs=pairs,
        pairs_tested=len(mine) * (len(mine) - 1) // 2,
        agreement=order_agreement(
            list(ran.values()),
            measure,
            list(scores),
            [category for category, size in sizes.items() if size >= FEWEST_IN_CATEGORY],
        ),
        category_sizes=dict(sizes),
        turning=list(question.turning),
        equivalent_within=question.equivalent_within,
        queries_for_equivalence=standings.queries_for_equivalence(),
    )


WITHOUT_PICKS: tuple[Situation, ...] = (
    "one row",
    "incumbent did not run",
    "nothing beats random",
    "only a baseline leads",
    "incumbent kept",
)


def not_comparable(measure: Measure, reason: str) -> Verdict:
    """An empty verdict, if rows can't be compared."""
    return Verdict(
        measure=str(measure), leader=None, best_set=[], situation="not comparable", action="none", take=None,
        without_verdict=reason,
    )  # fmt: skip


def leader_of(scores: Mapping[str, Values], averaging: Averaging) -> str | None:
    """The row with the highest mean; the first of several."""
    return max(scores, key=lambda label: round(averaging.mean(scores[label]), 12), default=None)


@dataclass(frozen=True)
class _Standings:
    """The rows that ran, with their test results."""

    scores: ByMeasure
    rows: Mapping[str, Row]
    question: VerdictQuestion

    @cached_property
    def mine(self) -> Mapping[str, Values]:
        """Scores by the deciding measure."""
        return self.scores[self.question.measure]

    @cached_property
    def labels(self) -> list[str]:
        """In the order of the line-up."""
        return list(self.mine)

    @cached_property
    def table(self) -> Values:
        """Queries × rows."""
        return table_of(list(self.mine.values()))

    @cached_property
    def means(self) -> dict[str, float]:
        """Means of the raw values."""
        return {label: self.question.averaging.mean(values) for label, values in self.mine.items()}

    @cached_property
    def shown(self) -> dict[str, float]:
        """The displayed figures."""
        return {label: round(self.question.measure.figure(mean), 12) for label, mean in self.means.items()}

    @cached_property
    def leader(self) -> str:
        """The highest mean."""
        leader = leader_of(self.mine, self.question.averaging)
        assert leader is not None
        return leader

    @cached_property
    def same(self) -> dict[str, str]:
        """Per row, the first row with the same score on every query by the deciding measure."""
        return {label: self.labels[at] for label, at in zip(self.labels, first_equal(self.table), strict=True)}

    @cached_property
    def alike(self) -> dict[str, str]:
        """The same over all displayed measures."""
        everything = np.vstack([np.stack(list(values.values()), axis=1) for values in self.scores.values()])
        return {label: self.labels[at] for label, at in zip(self.labels, first_equal(everything), strict=True)}

    @cached_property
    def differing(self) -> int:
        """The number of queries, or clusters of them, on which any two rows differ."""
        return self.question.averaging.count_units(np.ptp(self.table, axis=1) > NOISE)

    @cached_property
    def by_label(self) -> dict[str, Standing]:
        """One for each row that ran."""
        question, measure = self.question, self.question.measure
        best = set_over_looks(question.averaging, self.table, question.looks, bounded=measure.bounded)
        top = max(self.means.values())
        against, above, equivalent = self._against(), self._above_random(), self._equivalent()
        challengers = {winner.challenger for winner in question.turning}
        standings = {}
        for at, label in enumerate(self.labels):
            first = self.alike[label]
            p_equivalent = equivalent.get(label)
            standings[label] = Standing(
                mark="leads"
                if self.same[label] == self.same[self.leader]
                else "may be best"
                if best.within[at]
                else "worse",
                p=float(best.p[at]),
                behind_least=self._gap(top, float(best.least[at])) or 0.0,
                behind_most=self._gap(top, float(best.most[at])),
                open=label in challengers and self._judge(label) < JUDGED_ENOUGH,
                beats_random=above.get(label),
                against=against.get(label),
                equivalent=None if p_equivalent is None else p_equivalent <= ALPHA,
                p_equivalent=p_equivalent,
                alike="" if first == label else first,
            )
        return standings

    def _gap(self, top: float, gap: float) -> float | None:
        """A gap to the top on the scale of the displayed figures."""
        figure = self.question.measure.figure
        return figure(top) - figure(top - gap) if finite(gap) is not None else None

    def _judge(self, label: str) -> float:
        bounds = self.rows[label].bounds.get(str(self.question.measure))
        return bounds.judged if bounds else 1.0

    def _may_reach(self, label: str, other: str) -> bool:
        """Whether a row that lacks grades is above another, or further grades could put it there."""
        if self._judge(label) >= JUDGED_ENOUGH:
            return False
        return self.shown[label] >= self.shown[other] or self.question.overtakes(label, other)

    def _against(self) -> dict[str, Against]:
        incumbent, question = self.question.baseline, self.question
        if incumbent not in self.mine:
            return {}
        found = versus_over_looks(
            question.averaging,
            self.table,
            self.labels.index(incumbent),
            question.looks,
            bounded=question.measure.bounded,
        )
        figure, base = question.measure.figure, self.means[incumbent]
        against = {}
        for at, label in enumerate(self.labels):
            if label == incumbent:
                continue
            low, high = (finite(float(ends[at])) for ends in (found.low, found.high))
            better = found.low[at] > 0 and not self._may_reach(incumbent, label)
            worse = found.high[at] < 0 and not self._may_reach(label, incumbent)
            against[label] = Against(
                difference=figure(base + float(found.difference[at])) - figure(base),
                low=None if low is None else figure(base + low) - figure(base),
                high=None if high is None else figure(base + high) - figure(base),
                p_better=float(found.p_better[at]),
                p_worse=float(found.p_worse[at]),
                relation="better" if better else "worse" if worse else "undecided",
                open=not (better or self.rows[label].baseline) and self._may_reach(label, incumbent),
            )
        return against

    def _above_random(self) -> dict[str, bool]:
        """Rows above random, by paired tests with Holm's correction and without imagined failures."""
        floor, question = self.question.floor, self.question
        if floor is None:
            return dict(question.above)
        above = np.stack([differences_of(values, floor) for values in self.mine.values()], axis=1)
        p = holm_of_distinct(question.averaging.p_zero(above), [hypothesis_of(column) for column in above.T])
        bar = question.averaging.mean(floor)
        return {label: bool(p[at] <= ALPHA) and self.means[label] > bar for at, label in enumerate(self.labels)}

    def _equivalent(self) -> dict[str, float]:
        """The p-value of equivalence with the leader within the margin."""
        question, margin = self.question, self.question.equivalent_within
        if margin is None:
            return {}
        others = [label for label in self.labels if label != self.leader]
        differences = [differences_of(self.mine[label], self.mine[self.leader]) for label in others]
        p = question.averaging.p_equivalent(differences, margin, bounded=question.measure.bounded)
        return dict(zip(others, p.tolist(), strict=True))

    def queries_for_equivalence(self) -> int | None:
        """The queries needed to show equivalence with the leader, for the row that varies least from it."""
        question, averaging = self.question, self.question.averaging
        if question.equivalent_within is None or not question.measure.bounded:
            return None
        others = [label for label in self.labels if self.same[label] != self.same[self.leader]]
        pairs = [(self.mine[label], self.mine[self.leader]) for label in others]
        return fewest_for_equivalence(pairs, question.equivalent_within, averaging)

    @cached_property
    def choosable(self) -> list[str]:
        """Rows that may be recommended: no baselines; better than random and, if there is one, than the incumbent."""
        return [
            label
            for label, standing in self.by_label.items()
            if not self.rows[label].baseline
            and standing.beats_random is not False
            and (
                self.question.baseline not in self.mine or (standing.against and standing.against.relation == "better")
            )
        ]


def _situation(standings: _Standings) -> Situation:
    question, found = standings.question, standings.by_label
    incumbent, leader = question.baseline, standings.leader
    in_set = {standings.same[label] for label, standing in found.items() if standing.mark != "worse"}
    if len(found) == 1:
        return "one row"
    if incumbent and incumbent not in found:
        return "incumbent did not run"
    tried = [standing for label, standing in found.items() if label == leader or not standings.rows[label].baseline]
    if all(standing.beats_random is False for standing in tried):
        return "nothing beats random"
    if standings.rows[leader].baseline:
        return "only a baseline leads"
    if len(set(standings.alike.values())) == 1:
        return "all alike"
    if incumbent:
        return "incumbent beaten" if standings.choosable else "incumbent kept"
    if any(standing.open for label, standing in found.items() if standings.same[label] != standings.same[leader]):
        return "open until graded"
    if standings.differing < FEWEST_UNLIKE and len(in_set) > 1:
        return "too few differ"
    if len(in_set) == 1:
        return "clear"
    most = found[leader].behind_most
    return "within margin" if most is not None and most <= question.stop_within else "not settled"


def _action(situation: Situation) -> Action:
    actions: dict[Situation, Action] = {
        "nothing beats random": "do not choose",
        "only a baseline leads": "do not choose",
        "all alike": "choose by speed",
        "incumbent beaten": "switch",
        "incumbent kept": "keep",
        "open until graded": "take for now",
        "too few differ": "take for now",
        "clear": "take and stop",
        "within margin": "take and stop",
        "not settled": "take for now",
    }
    return actions.get(situation, "none")


def _take(situation: Situation, standings: _Standings) -> str | None:
    """Among rows that score alike, the fastest one, if timings are reliable."""
    if situation == "incumbent kept":
        return standings.question.baseline
    if situation in WITHOUT_PICKS or not standings.choosable:
        return None
    best = max(standings.choosable, key=lambda label: standings.shown[label])
    alike = [standings.rows[label] for label in standings.choosable if standings.alike[label] == standings.alike[best]]
    fastest = quickest(alike)
    if fastest is None:
        return None if situation == "all alike" else best
    return fastest.label


def _outlook(standings: _Standings) -> Outlook | None:
    """The outlook for the leader and its next different rival; with an incumbent, for it and the best other row."""
    question, measure = standings.question, standings.question.measure
    mine = question.baseline if question.baseline in standings.mine else standings.leader
    rivals = [label for label in standings.labels if standings.same[label] != standings.same[mine]]
    if not rivals:
        return None
    rival = max(rivals, key=lambda label: standings.shown[label])
    better, worse = (mine, rival) if standings.shown[mine] >= standings.shown[rival] else (rival, mine)
    comparisons, incumbent = 1, mine == question.baseline
    if incumbent:  # a gain over it is what is looked for
        better, worse, comparisons = rival, mine, len({standings.same[label] for label in rivals})
    unnoticed, needed = None, None
    if question.averaging.has_error and question.looks is None:  # both are of a first look
        pair = [question.averaging.linear(standings.mine[label]) for label in (better, worse)]
        heaviest = question.averaging.heaviest if measure.bounded else 0.0
        apart = differences_of(standings.mine[better], standings.mine[worse]) != 0
        enough = question.averaging.count_units(apart) >= FEWEST_UNLIKE
        gap = find_noticeable_gap(*pair, heaviest=heaviest, comparisons=comparisons, incumbent=incumbent)
        if enough and gap is not None:
            top = standings.means[better]
            unnoticed = round_gap(measure.figure(top) - measure.figure(top - gap), len(pair[0]))
        margin = question.stop_within  # of figures from 0 to 1
        if measure.bounded and incumbent:
            needed = queries_for_gap(*pair, gap=margin, heaviest=heaviest, comparisons=comparisons, incumbent=True)
        elif measure.bounded:
            needed = _queries_to_separate(standings, rival)
    return Outlook(
        rival=rival,
        differing=standings.differing,
        unnoticed_below=unnoticed,
        gap=question.stop_within,
        queries_for_gap=needed,
    )


def _queries_to_separate(standings: _Standings, rival: str) -> tuple[int, int] | None:
    """Planned queries for the distinct rows that may be best; for a single one, with its closest rival."""
    found, averaging = standings.by_label, standings.question.averaging
    labels = [label for label in standings.labels if standings.same[label] == label]
    within = np.array([found[label].mark != "worse" for label in labels])
    within |= np.array([label == standings.same[rival] for label in labels]) & (within.sum() == 1)
    table = np.stack([averaging.linear(standings.mine[label]) for label in labels], axis=1)
    return queries_to_separate(table, within, gap=standings.question.stop_within, heaviest=averaging.heaviest)


def order_agreement(
    rows: Sequence[Row], measure: Measure, others: Sequence[Measure], categories: Sequence[str] = ()
) -> dict[str, float]:
    """Kendall's τ between the order by this measure and by every other measure, and within categories.

    Rows with equal figures, such as one model in two exact stores, count once.
    """
    if not rows:
        return {}
    name = str(measure)
    ranking = [str(other) for other in others if other != measure and not other.diagnostic]
    columns = {key: [row.measures[key].mean for row in rows] for key in (name, *ranking)}
    for category in categories:
        columns[f"category {category}"] = [row.categories[category][name] for row in rows]
    distinct = sorted(set(first_equal(np.array(list(columns.values())))))
    if len(distinct) < FEWEST_TO_ORDER:
        return {}
    figures = {key: np.array(values)[distinct] for key, values in columns.items()}
    taus = {key: kendall_tau(figures[name], values) for key, values in figures.items() if key != name}
    return {key: tau for key, tau in taus.items() if np.isfinite(tau)}
