"""Further sentences on a verdict, besides the decision and the picks."""

from __future__ import annotations

from bakeoff.report.brief_notes import below_random, equivalence_sentences, truncation_notes
from bakeoff.report.numbers import MINUS
from bakeoff.report.verdict_words import Findings, plural
from bakeoff.results.schema import PossibleWinner, Summary


def further_sentences(summary: Summary) -> list[str]:
    """Sentences on equivalence, rows no better than chance, truncation, and other measures' orders."""
    found = Findings(summary)
    return [
        *_unnoticed(summary),
        *equivalence_sentences(summary),
        *below_random(found),
        *truncation_notes(found),
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
