"""What else a verdict's facts say, beside the decision and the picks: a sentence each."""

from __future__ import annotations

from collections.abc import Sequence

from bakeoff.core.printable import join_names
from bakeoff.report.numbers import MINUS
from bakeoff.report.verdict_words import CONFIDENCE, Findings, plural
from bakeoff.results.schema import PossibleWinner, Row, Summary

CUT_FROM = 0.05  # of a corpus' texts: a row whose model truncates fewer of them is no other row


def further_sentences(summary: Summary) -> list[str]:
    """What else the verdict's facts say: equivalence, rows that are no better than chance, truncation, other orders."""
    return [
        *_unnoticed(summary),
        *equivalence_sentences(summary),
        *_below_random(summary),
        *_truncation(summary.ran),
        *_possible_winners(summary),
        *_agreement(summary),
        *_pairs(summary),
    ]


def _unnoticed(summary: Summary) -> list[str]:
    outlook = summary.verdict.outlook
    if outlook is None or outlook.unnoticed_below is None:
        return []
    what = "gains" if summary.verdict.baseline else "gaps"
    asked = Findings(summary).asked
    return [f"With {asked}, {what} below about {outlook.unnoticed_below:g} will usually go unnoticed."]


def equivalence_sentences(summary: Summary) -> list[str]:
    """What is as good as the leader within the margin that was asked for, or how many queries that takes."""
    verdict, within = summary.verdict, summary.verdict.equivalent_within
    if within is None or len(verdict.standings) < 2:
        return []
    shown = [label for label, standing in verdict.standings.items() if standing.equivalent]
    if shown:
        are = "is" if len(shown) == 1 else "are"
        return [f"{join_names(shown)} {are} as good as {verdict.leader} within {within:g} ({CONFIDENCE})."]
    have, unit = Findings(summary).units
    needed = verdict.queries_for_equivalence
    needs = f"; that takes about {needed:,} {plural(unit, 2)}" if needed and needed > have else ""
    return [f"Nothing is shown to be as good as {verdict.leader} within {within:g}{needs}."]


def _below_random(summary: Summary) -> list[str]:
    below = [label for label, standing in summary.verdict.standings.items() if standing.beats_random is False]
    if not below or summary.verdict.situation == "nothing beats random":
        return []
    return [f"{join_names(below)} {'is' if len(below) == 1 else 'are'} not shown to beat a random order."]


def _truncation(rows: Sequence[Row]) -> list[str]:
    cut: dict[tuple[int, int], list[str]] = {}
    for row in rows:
        if row.cut and row.cut[0] >= CUT_FROM * row.cut[1]:
            cut.setdefault(row.cut, []).append(row.label)
    return [
        f"{join_names(labels)} truncated about {long:,} of {texts:,} documents."
        for (long, texts), labels in cut.items()
    ]


def _possible_winners(summary: Summary) -> list[str]:
    verdict, winners = summary.verdict, summary.verdict.turning
    if not winners or verdict.situation == "open until graded":
        return []
    return [f"{winners[0].challenger} would lead {verdict.leader} if {_grades(winners[0])} had the highest grade."]


def _grades(winner: PossibleWinner) -> str:
    return "one ungraded document" if winner.documents == 1 else f"at most {winner.documents} ungraded documents"


def _agreement(summary: Summary) -> list[str]:
    agreement, label = summary.verdict.agreement, summary.label(summary.verdict.measure)
    if not agreement:
        return []
    least = min(agreement, key=lambda key: agreement[key])
    if agreement[least] > 1 - 1e-9:
        return [f"Every other measure orders the rows as {label} does."]
    where, hint = f"by {summary.label(least)}", ""
    if least.startswith("category "):
        number = summary.verdict.category_sizes.get(least.removeprefix("category "), 0)
        counted = f"{number} {plural(summary.task.unit, number)}: " if number else ""
        where, hint = f"within {least}", f"; {counted}a hint"
    tau = f"{agreement[least]:.2f}".replace("-", MINUS)
    return [f"The order by {label} agrees least with the order {where} (Kendall's τ {tau}{hint})."]


def _pairs(summary: Summary) -> list[str]:
    verdict = summary.verdict
    if len(verdict.pairs) >= verdict.pairs_tested:
        return []
    return [
        f"Shown are {len(verdict.pairs):,} of {verdict.pairs_tested:,} pairs; bakeoff compare RESULT --contender A "
        "--contender B shows any other."
    ]
