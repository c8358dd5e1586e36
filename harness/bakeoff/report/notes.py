"""Text around the matrix: notes on its figures, the headline, date and machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bakeoff.core.figures import Loss
from bakeoff.core.printable import pluralise
from bakeoff.report.matrix import DOUBT, KEPT, earlier_timing_words
from bakeoff.report.words import WEIGHTED, words
from bakeoff.results.schema import Summary

NO_COSINE = 0.5  # a larger error is not explained by quantisation either
NoteTopic = Literal["warning", "loss", "doubt", "kept", "stable"]


@dataclass(frozen=True, slots=True)
class Note:
    """A note on the figures, and the rows it concerns."""

    topic: NoteTopic
    text: str
    about: str = ""

    @property
    def sentence(self) -> str:
        """The note on one line; a note on times starts with its figures' mark."""
        mark = {"doubt": f"{DOUBT} ", "kept": f"{KEPT} "}.get(self.topic, "")
        return mark + (f"{self.about}: {self.text}" if self.about else self.text)


def notes(summary: Summary) -> list[Note]:
    """Warnings, losses of approximate indexes, unreliable and earlier timings, stability."""
    every = [Note("warning", words(warning)) for warning in summary.warnings]
    doubted: dict[str, list[str]] = {}
    warned: dict[str, list[str]] = {}
    lost: dict[str, list[str]] = {}
    kept: dict[str, list[str]] = {}
    for row in summary.rows:
        for warning in dict.fromkeys(map(words, row.warnings)):
            warned.setdefault(warning, []).append(row.label)
        for doubt in map(words, row.latency.doubts if row.latency else []):
            doubted.setdefault(doubt, []).append(row.label)
        if row.latency and row.latency.kept:
            kept.setdefault(earlier_timing_words(row.latency.kept), []).append(row.label)
        if row.loss is not None:
            lost.setdefault(_index_loss(row.loss), []).append(row.label)
    every += [Note("warning", warning, ", ".join(labels)) for warning, labels in warned.items()]
    every += [Note("loss", loss, ", ".join(labels)) for loss, labels in lost.items()]
    every += [Note("doubt", doubt, _who(labels, summary)) for doubt, labels in doubted.items()]
    every += [Note("kept", words, ", ".join(labels)) for words, labels in kept.items()]
    if any(row.stable for row in summary.rows) and not any(row.stable is False for row in summary.rows):
        every.append(Note("stable", _stable(summary)))
    return every


def _stable(summary: Summary) -> str:
    """A note on stability. All rounds use one build, so other builds may differ."""
    approximate = any(row.loss for row in summary.rows)
    other = "; another build of an approximate index may rank differently" if approximate else ""
    return f"Stable: all {summary.lineup['rounds']} rounds ranked identically, over one build of each index{other}."


def _index_loss(loss: Loss) -> str:
    """A note on what the index lost; without the row's NDCG if nothing was lost, so that rows can share it."""
    lost = round(loss.ndcg_lost, 3) + 0.0  # no minus before a zero
    queries = "1 query" if loss.short == 1 else f"{loss.short} queries"
    change = f", of which the index lost {lost:.3f}" if lost > 0 else ""
    if lost < 0:
        change = f", and by chance {-lost:.3f} more with the index"
    no_cosines = loss.score_error > NO_COSINE
    if lost == 0 and round(loss.recall, 3) == 1 and not loss.short and not no_cosines:
        return "the index returns what exact search does"
    return (
        f"NDCG@10 {loss.ndcg_exact:.3f} under exact search{change}; "
        f"recall@10 against exact search {loss.recall:.3f}"
        + (f"; {queries} got shorter lists than the corpus allows" if loss.short else "")
        + (f"; its scores are not cosines (up to {loss.score_error:.3g} off)" if no_cosines else "")
    )


def _who(labels: list[str], summary: Summary) -> str:
    timed = [row for row in summary.rows if row.latency is not None]
    return "all rows" if len(labels) == len(timed) > 1 else ", ".join(labels)


def task_called(name: str) -> str:
    """The task's name, or a phrase for a task without one."""
    return "task" if name == "task" else f"task {name}"


def headline(summary: Summary) -> str:
    """Task, sizes and settings of the run."""
    task = summary.task
    called = task_called(task.name)
    drawn = f" drawn from {task.drawn_from}" if task.drawn_from else ""
    return (
        f"{summary.name}: {called} ({pluralise(task.documents, 'document')}{drawn}, "
        f"{pluralise(task.queries, 'query')}, relevant = grade ≥ {task.rel}), "
        f"top {summary.lineup['depth']}, {pluralise(summary.lineup['rounds'], 'round')}"
        + (f"; {WEIGHTED}" if task.weighting else "")
    )


def when_and_where(summary: Summary) -> str:
    """The run's date, machine and task in one sentence."""
    machine = summary.machine
    return (
        f"Made {summary.started} on {machine.cpu} ({machine.cores} cores, load {machine.load_before} before and "
        f"{machine.load_after} after), Python {machine.python}; task fingerprint {summary.task.fingerprint}."
    )
