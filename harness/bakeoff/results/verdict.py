"""Who wins, who ties, and what can't be told: sentences made from figures, never the other way round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from msgspec.structs import replace

from bakeoff.core.arrays import Values
from bakeoff.core.figures import PairedDifference
from bakeoff.core.printable import counted, listed
from bakeoff.evaluation.measures import Measure
from bakeoff.results.recommend import FASTER_FROM, MADE_OF_OTHERS, embed_p50, recommend
from bakeoff.results.schema import Row, Verdict
from bakeoff.statistics.averaging import Averaging
from bakeoff.statistics.columns import differences_of
from bakeoff.statistics.compare import Outlook, tie_group
from bakeoff.statistics.constants import ALPHA
from bakeoff.statistics.effects import kendall_tau
from bakeoff.statistics.power import more_queries
from bakeoff.statistics.tests import first_equal, holm_of_distinct, hypothesis_of

FEWEST_TO_ORDER = 3  # two contenders have an order, but nothing to agree on
CUT_FROM = 0.05  # of a corpus' texts: a row whose model reads fewer of them in part is no other row
MOST_NAMED = 3  # rows that did not run: more of them would hide what the sentence says
FEWEST_IN_CATEGORY = 4  # queries: the order within a smaller category is chance


def decide(
    scores: Mapping[str, Values],
    measure: Measure,
    rows: Sequence[Row],
    averaging: Averaging,
    others: Sequence[Measure] = (),
    floor: Values | None = None,
    category_sizes: Mapping[str, int] | None = None,
) -> Verdict:
    """The verdict on one measure, over the contenders that ran; the others tell whether they would say the same.

    `floor` has what a random order is expected to score on each query: a contender has to be better than that.
    """
    pairs = averaging.pairs(scores, bounded=measure.bounded)
    group = tie_group({label: averaging.mean(values) for label, values in scores.items()}, pairs, ALPHA)
    best = group[0] if group else None
    ahead = averaging.outlook(scores, best)
    sentences = _sentences(scores, measure, pairs, group, ahead, {row.label: row for row in rows}, averaging)
    sentences += _floor_sentences(scores, floor, averaging) + _cut_sentences([row for row in rows if row.ran])
    sizes = category_sizes or {}
    ordered = [category for category, size in sizes.items() if size >= FEWEST_IN_CATEGORY]
    agreement = order_agreement([row for row in rows if row.label in scores], measure, others, ordered)
    sentences += _agreement_sentence(agreement, measure, every_category=len(ordered) == len(sizes))
    if len(pairs) < (tested := len(scores) * (len(scores) - 1) // 2):
        sentences.append(
            f"Shown are pairs with the best and of neighbours by mean, {len(pairs):,} of the {tested:,} that were "
            "tested: bakeoff compare RESULT --contender A --contender B shows any other."
        )
    verdict = Verdict(
        measure=str(measure),
        best=best,
        tie_group=group,
        pairs=pairs,
        smallest_detectable=ahead.detectable if ahead and np.isfinite(ahead.detectable) else None,
        sentences=sentences,
        agreement=agreement,
    )
    return replace(verdict, recommendations=recommend(rows, verdict))


def undecided(measure: Measure, reason: str) -> Verdict:
    """No verdict, and why, where rows can't be compared with each other."""
    return Verdict(
        measure=str(measure), best=None, tie_group=[], pairs=[], smallest_detectable=None, sentences=[reason]
    )  # fmt: skip


def _sentences(
    scores: Mapping[str, Values],
    measure: Measure,
    pairs: Sequence[PairedDifference],
    group: Sequence[str],
    ahead: Outlook | None,
    rows: Mapping[str, Row],
    averaging: Averaging,
) -> list[str]:
    if not group:
        return ["No contender ran, so there is no verdict."]
    best, n = group[0], len(scores[group[0]])
    value = rows[best].measures[str(measure)]
    interval = f" (95% interval {value.low:.3f} to {value.high:.3f})" if value.low is not None else ""
    queries = counted(n, "query")
    lost = [row.label for row in rows.values() if row.not_run is not None]
    absent = f"{len(lost)} others" if len(lost) > MOST_NAMED else listed(lost) if lost else ""
    without = f"; {absent} did not run (why is said below)" if lost else ""
    sentences = [f"{best} has the highest {measure.label}: {value.mean:.3f}{interval}, over {queries}{without}."]
    against = {pair.b if pair.a == best else pair.a: pair for pair in pairs if best in (pair.a, pair.b)}
    same = [label for label in group[1:] if not np.any(np.abs(scores[best] - scores[label]) > 1e-12)]
    tied = [label for label in group[1:] if label not in same]
    worse = [label for label in against if label not in group]
    if same:
        sentences.append(
            f"{listed(same)} score{'s' if len(same) == 1 else ''} the same {measure.label} on every query."
        )
    if tied:
        sentences.append(f"{listed(tied)} can't be told from it with {queries} (Holm-adjusted p > {ALPHA}).")
        if faster := _faster(rows[best], [rows[label] for label in tied]):
            sentences.append(faster)
        if ahead and ahead.rival in tied and ahead.more:
            gap = value.mean - rows[ahead.rival].measures[str(measure)].mean
            sentences.append(
                f"If the gap of {gap:.3f} to {ahead.rival} is real, "
                f"{more_queries(ahead.more)} would show it in 4 of 5 cases."
            )
    if worse:
        closest = min(worse, key=lambda label: abs(against[label].difference))
        pair = against[closest]
        lead = f"{abs(value.mean - rows[closest].measures[str(measure)].mean):.3f}"
        by = f", by {lead}" if len(worse) == 1 else f"; the smallest of these leads is {lead} over {closest}"
        sentences.append(f"It is better than {listed(worse)}{by} (p (Holm) = {pair.p_holm:.2g}).")
        sentences += [f"{best} and {label}: {against[label].doubt}." for label in worse if against[label].doubt]
    return sentences + _outlook_sentence(best, n, ahead, measure, averaging.mean(scores[best]), len(scores))


def _outlook_sentence(
    best: str, n: int, ahead: Outlook | None, measure: Measure, mean: float, rows: int = 0
) -> list[str]:
    """What would be found how often: said of one pair, so that it can't contradict what was found of another.

    The difference is of the figures that are shown, down from the best's `mean`.
    """
    if ahead is None:
        return []
    tested = f"Holm over {ahead.pairs} pairs" if ahead.pairs > 1 else "one pair tested"
    if ahead.pairs < rows * (rows - 1) // 2:
        tested += "; rows that score alike count once"
    between = f"between {best} and {ahead.rival}"
    queries, one = counted(n, "query"), n == 1
    if not np.isfinite(ahead.detectable) or (measure.bounded and ahead.detectable >= 1):
        too_few = f"{'is' if one else 'are'} too few to find a difference"
        return [f"{queries} {too_few} {between} in 4 of 5 cases, however large ({tested})."]
    least = measure.figure(mean) - measure.figure(mean - ahead.detectable)
    return [
        f"{queries} {'finds' if one else 'find'} a true difference {between} in 4 of 5 cases from {least:.3f} on, "
        f"and smaller ones less often ({tested})."
    ]


def _floor_sentences(scores: Mapping[str, Values], floor: Values | None, averaging: Averaging) -> list[str]:
    """Which contenders are no better than chance, by the same paired test; Holm's correction is over distinct rows."""
    if floor is None or not scores:
        return []
    above = np.stack([differences_of(values, floor) for values in scores.values()], axis=1)
    p = holm_of_distinct(averaging.p_zero(above), [hypothesis_of(column) for column in above.T])
    means = {label: averaging.mean(values - floor) for label, values in scores.items()}
    unsure = [label for label, value in zip(scores, p, strict=True) if value > ALPHA]
    worse = [label for label, value in zip(scores, p, strict=True) if value <= ALPHA and means[label] < 0]
    sentences = []
    if unsure:
        sentences.append(f"{listed(unsure)} can't be told from a random order (Holm-adjusted p > {ALPHA}).")
    if worse:
        largest = max(float(value) for label, value in zip(scores, p, strict=True) if label in worse)
        are = "is" if len(worse) == 1 else "are"
        sentences.append(f"{listed(worse)} {are} worse than a random order (p (Holm) = {largest:.2g}).")
    return sentences


def _cut_sentences(rows: Sequence[Row]) -> list[str]:
    """Which rows know their texts in part: what they would do with whole ones nobody measured."""
    cut: dict[tuple[int, int], list[str]] = {}
    for row in rows:
        if row.cut and row.cut[0] >= CUT_FROM * row.cut[1]:
            cut.setdefault(row.cut, []).append(row.label)
    return [
        f"{listed(labels)} read{'s' if len(labels) == 1 else ''} the beginning alone of about {long:,} of {texts:,} "
        "texts, which are longer than the model's context: see the notes."
        for (long, texts), labels in cut.items()
    ]


def order_agreement(
    rows: Sequence[Row], measure: Measure, others: Sequence[Measure], categories: Sequence[str] = ()
) -> dict[str, float]:
    """Kendall's τ of the contenders' order by this measure and by each other one, and within these categories.

    Rows with the same figures throughout, such as a model's in two exact stores, are one.
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


def _agreement_sentence(agreement: Mapping[str, float], measure: Measure, *, every_category: bool = True) -> list[str]:
    if not agreement:
        return []
    least = min(agreement, key=lambda key: agreement[key])
    shown = f"{agreement[least]:.2f}"
    if shown == "1.00":  # of many contenders two may have changed places: a figure that says so would say nothing
        every = " and in every category" if any(key.startswith("category ") for key in agreement) else ""
        if every and not every_category:
            every += f" of {FEWEST_IN_CATEGORY} queries or more"
        same, tau = (
            ("the same", "") if agreement[least] > 1 - 1e-9 else ("nearly the same", " (Kendall's τ above 0.99)")
        )
        return [f"The contenders' order by {measure.label} is {same} by every other measure{every}{tau}."]
    if least.startswith("category "):
        what, where = f"within the {least}", f'the page\'s chart "{measure.label} by category" shows who leads there'
    else:
        what, where = f"by {Measure.parse(least).label}", "that column of the matrix shows who leads by it"
    tau = f"Kendall's τ {shown}; 1 is the same order, -1 the reverse"
    return [f"The contenders' order by {measure.label} agrees least with their order {what} ({tau}): {where}."]


def _faster(best: Row, tied: Sequence[Row]) -> str | None:
    """Which of the tied embeds a query fastest, where that is worth telling: equal quality for less waiting.

    Rows of the best's own model make the same call, so their times differ by noise alone; a row made of others may too.
    """
    if best.row_type in MADE_OF_OTHERS:
        return None
    others = [row for row in tied if row.row_type not in MADE_OF_OTHERS]
    others = [row for row in others if (row.provider, row.model) != (best.provider, best.model)]
    timed = {row.label: p50 for row in others if (p50 := embed_p50(row))}
    mine = embed_p50(best)
    if not timed or mine is None:
        return None
    label = min(timed, key=lambda label: timed[label])
    if mine < FASTER_FROM * timed[label]:
        return None
    doubtful = bool(best.latency and best.latency.doubts) or any(
        row.latency and row.latency.doubts for row in tied if row.label == label
    )
    doubt = "; these timings can't be trusted" if doubtful else ""
    return (
        f"{label} embeds a query {_times(mine / timed[label])}× faster "
        f"({timed[label]:.3g} against {mine:.3g} ms, p50{doubt})."
    )


def _times(ratio: float) -> str:
    """Two digits of a ratio, without an exponent."""
    return f"{float(f'{ratio:.2g}'):g}" if ratio < 1e5 else f"{ratio:,.0f}"
