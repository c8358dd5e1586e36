"""Notes of the first screen, one sentence each, most important first. Zeros are left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from bakeoff.core.facts import Fact, Failure
from bakeoff.core.printable import join_names
from bakeoff.report.numbers import bound_above, enumeration
from bakeoff.report.verdict_words import CONFIDENCE, NO_NEWS, Findings, plural
from bakeoff.report.words import failure_words, words
from bakeoff.results.schema import Row, Summary

# Already covered by a shorter sentence above.
SAID = {"graded_by_model", "unanswered", "unmatched", "unstable", "too_long", "truncated", "without_relevant"}
NEEDS = {
    "key_unset": "an API key",
    "key_unusable": "an API key",
    "variable_unset": "an environment variable",
    "server_unset": "a server",
    "server_or_engine": "a server",
    "server_silent": "a server",
    "server_stopped": "a server",
    "model_not_served": "a model on their server",
    "package": "a package",
    "weights": "model weights",
    "weights_absent": "model weights",
    "weights_damaged": "model weights",
    "undeclared": "a line-up's file or function",
}


def brief_notes(found: Findings) -> list[str]:
    """Equivalence, grades, ungraded documents, missed limits, timings, rows below random, truncation, empty answers."""
    return [*equivalence_sentences(found.summary), *_grades(found), *_grading_gaps(found), *_unanswered(found),
            *_timings(found), *below_random(found), *truncation_notes(found), *_empty_answers(found),
            *_ranking_notes(found), *_others(found)]  # fmt: skip


def _arguments(facts: Sequence[Fact], id_: str) -> list[dict[str, Any]]:
    """The arguments of the facts with this id."""
    return [fact.arguments for fact in facts if fact.id == id_]


def equivalence_sentences(summary: Summary) -> list[str]:
    """The rows shown to be as good as the leader within the margin, or how many queries that takes."""
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


def _grades(found: Findings) -> Iterator[str]:
    for said in _arguments(found.summary.warnings, "graded_by_model"):
        some = "all" if said["by_model"] == said["grades"] else f"{said['by_model']:,} of"
        yield f"A model graded {some} {said['grades']:,} pairs. Check it against people: bakeoff audit."


def _grading_gaps(found: Findings) -> Iterator[str]:
    measure = found.verdict.measure
    judged = [row.bounds[measure].judged for row in found.summary.ran if measure in row.bounds]
    if judged and min(judged) < 1 - 1e-12:
        cut = measure.rpartition("@")[2] if "@" in measure else "10"
        yield f"Up to {_share(1 - min(judged))} of a row’s top {cut} is ungraded."


def _share(share: float) -> str:
    return "less than 1%" if share < 0.01 else f"{share:.0%}"


def _unanswered(found: Findings) -> Iterator[str]:
    for row in found.summary.ran:
        for said in _arguments(row.warnings, "unanswered"):
            within = f"{said['count']:,} of {found.count(found.summary.task.queries)} within {said['seconds']:g} s"
            yield f"{found.name(row.label)} did not answer {within}."


def _timings(found: Findings) -> Iterator[str]:
    rows = [row for row in found.summary.ran if row.latency]
    doubts = [doubt for row in rows if row.latency for doubt in row.latency.doubts]
    if busy := _arguments(doubts, "busy"):
        load, cores = max(said["load"] for said in busy), busy[0]["cores"]
        on = f"load {load:.0f} on {cores} {plural('core', cores)}"
        yield f"Timings are unreliable ({on}). Run again when the machine is idle."
    elif noisy := [row for row in rows if row.latency and _arguments(row.latency.doubts, "scattered_times")]:
        who = "Timings" if len(noisy) == len(rows) else f"Timings of {enumeration([row.label for row in noisy], 2)}"
        yield f"{who} are noisy (p95 > 5 × p50). Raise --rounds."
    if few := _arguments(doubts, "few_samples"):
        yield f"Too few samples for p95 ({few[0]['samples']}, {few[0]['needed']} needed). Raise --rounds."
    for row in rows:
        if row.latency and (kept := row.latency.kept):
            yield f"{found.name(row.label)} was timed on {kept.last}; add --time-hosted 20 for new timings."
            break


def below_random(found: Findings) -> Iterator[str]:
    """Rows not shown to beat a random order."""
    if found.verdict.situation in ("nothing beats random", "one row"):
        return
    below = found.names(
        [label for label, standing in found.verdict.standings.items() if standing.beats_random is False]
    )
    if below:
        yield f"{enumeration(below)} {'is' if len(below) == 1 else 'are'} not shown to beat a random order."


def truncation_notes(found: Findings) -> Iterator[str]:
    """How many documents each model truncated."""
    said: dict[str, str] = {}
    for row in found.summary.ran:
        if row.cut is not None and row.cut[0]:
            part, whole = row.cut
            name = row.provider or found.name(row.label)
            said.setdefault(name, f"{name} truncated {part:,} of {whole:,} {plural(found.summary.task.item, whole)}.")
    yield from said.values()


def _empty_answers(found: Findings) -> Iterator[str]:
    task = found.summary.task
    empty: dict[int, list[str]] = {}
    for row in found.summary.ran:
        for said in _arguments(row.warnings, "unmatched"):
            empty.setdefault(said["queries"], []).append(row.label)
    for number, labels in empty.items():
        names = found.names(labels)
        who = "Every row" if len(names) == len(found.groups) > 1 else enumeration(names)
        yield f"{who} returned nothing for {number:,} of {found.count(task.queries)}."
    if lost := len(task.without_relevant):
        has = "has" if lost == 1 else "have"
        yield f"{lost:,} of {found.count(task.queries)} {has} no relevant {task.item}; every row scores 0 there."


def _ranking_notes(found: Findings) -> Iterator[str]:
    for row in found.summary.ran:
        if row.loss is not None and row.loss.ndcg_lost >= NO_NEWS:
            yield f"{found.name(row.label)} loses {bound_above(row.loss.ndcg_lost)} NDCG@10 against exact search."
    if unstable := [row.label for row in found.summary.ran if row.stable is False]:
        yield f"{enumeration(found.names(unstable))} ranked differently between rounds."


def _others(found: Findings) -> Iterator[str]:
    """All other warnings."""
    yield from (words(warning) for warning in found.summary.warnings if warning.id not in SAID)
    warned: dict[str, list[str]] = {}
    for row in found.summary.ran:
        for warning in row.warnings:
            if warning.id not in SAID:
                warned.setdefault(words(warning), []).append(row.label)
    for text, labels in warned.items():
        yield f"{enumeration(found.names(labels))}: {text}"


def list_failures(summary: Summary) -> list[tuple[Row, str]]:
    """The contenders that failed although nothing was missing."""
    return [(row, _reason(row.not_run)) for row in summary.rows if row.not_run and not _need(row.not_run)]


def _reason(failure: Failure) -> str:
    """The problem first and the file last, since the line may be cut."""
    said = failure_words(msgspec.structs.replace(failure, file=""))
    return f"{said}: {failure.file}" if failure.file else said


def not_run_sentence(summary: Summary) -> str:
    """How many contenders did not run, by what they need."""
    lacking = [row.not_run for row in summary.rows if row.not_run and _need(row.not_run)]
    return f"{len(lacking)} did not run: {needs_sentence(lacking)}. See bakeoff doctor." if lacking else ""


def needs_sentence(failures: Sequence[Failure]) -> str:
    """Counts contenders by what they need."""
    counts = Counter(map(_need, failures))
    return ", ".join(
        f"{number} {'needs' if number == 1 else 'need'} {what}" if what else f"{number} failed"
        for what, number in counts.most_common()
    )


def _need(failure: Failure) -> str:
    """What a contender needs, such as a key; "" if it failed."""
    if failure.kind == "quoted":
        return "what bakeoff show --full says"
    return NEEDS.get(failure.lacks[0].id, "something else") if failure.lacks else ""
