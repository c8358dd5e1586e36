"""One right answer a query (next place, next item): from score arrays, ranked lists, or retrieval."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from bakeoff_providers.errors import InputError

from bakeoff.core.files import read_bytes, read_json_lines
from bakeoff.core.ranking import Ranking, ordered
from bakeoff.core.task import Document, Query, Task
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.metrics import Scores, evaluate, weighted_f1
from bakeoff.evaluation.ranked_grades import NO_DOCUMENT, UNJUDGED, RankedGrades
from bakeoff.results.schema import Section
from bakeoff.run.prepare import Entrant
from bakeoff.run.runner import Outcome
from bakeoff.statistics.tests import paired_t
from bakeoff.tasks.formats.items import read_documents
from bakeoff.tasks.kinds.base import Extras, Kind
from bakeoff.tasks.score_arrays import Ranks, blocks, has_targets, ranks_and_tops, read_targets

COLUMNS = ("acc@1", "acc@3", "acc@5", "acc@10", "mrr", "ndcg@10")
ROWS = 4096  # rankings held at once while measuring
RANKINGS_UP_TO = 1_000_000  # scores of an array that are also kept as rankings, for people to look at
MAJORITY = "majority class"
ABSENT = 0  # the rank of an answer that a ranking does not hold


class Answer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a truth in JSON Lines."""

    query: str
    answer: str
    text: str = ""
    category: str = ""


class Single(Kind):
    """Ranks under ties are pessimistic: everything that scores as much as the right answer stands above it."""

    name = "single"
    whole = True
    measures = COLUMNS

    def __init__(
        self,
        name: str,
        base: Path,
        targets: Mapping[str, float],
        truth: str,
        classes: str | int = "",
        items: str = "",
        id_key: str = "id",
        train: str = "",
        percent: bool = False,
    ) -> None:
        super().__init__(name, base, targets)
        if bool(classes) == bool(items):
            raise InputError(
                "name either the classes or the items", place="classes", remedy='classes = "places.txt", or a number'
            )
        self.truth, self.classes, self.items, self.id_key = base / truth, classes, items, id_key
        self.train, self.percent = base / train if train else None, bool(percent)
        self._numbers: Ranks = np.empty(0, dtype=np.int64)  # the right class of every query, by its number
        self._f1: dict[str, dict[str, float]] = {}
        self._ranks: dict[str, Ranks] = {}

    def task(self) -> Task:
        """Classes (or items) are the documents, samples the queries, and each has one judgment."""
        documents = self._documents()
        numbers = {document.id: number for number, document in enumerate(documents)}
        answers = self._answers([document.id for document in documents])
        for place, entry in enumerate(answers):
            if entry.answer not in numbers:
                raise InputError(f"unknown answer {entry.answer!r}", file=self.truth, place=f"sample {place + 1}")
        self._numbers = np.array([numbers[entry.answer] for entry in answers], dtype=np.int64)
        return Task(
            name=self.task_name,
            kind=self.name,
            documents=documents,
            queries=[Query(id=entry.query, text=entry.text, category=entry.category) for entry in answers],
            judgments={entry.query: {entry.answer: 1} for entry in answers},
            targets=self.targets,
        )

    def _documents(self) -> list[Document]:
        if isinstance(self.classes, int):
            return [Document(id=str(number), text="") for number in range(self.classes)]
        return read_documents(self.base / (self.classes or self.items), id_key=self.id_key)

    def _answers(self, ids: Sequence[str]) -> list[Answer]:
        if self.truth.suffix == ".jsonl":
            try:
                return [msgspec.convert(line, Answer) for _, line in read_json_lines(self.truth, Any)]
            except msgspec.ValidationError as error:
                raise InputError(str(error), file=self.truth, remedy='{"query": "q1", "answer": "a"}') from None
        found = read_targets(self.truth)
        if len(found) and not (found.min() >= 0 and found.max() < len(ids)):
            raise InputError(f"targets from {found.min()} to {found.max()} for {len(ids)} classes", file=self.truth)
        return [Answer(str(sample), ids[target]) for sample, target in enumerate(found.tolist())]

    def score(
        self, entrant: Entrant, answered: Mapping[str, Ranking], task: Task, measures: Sequence[Measure]
    ) -> Scores:
        """From the rank of the one right answer, which is all there is to know."""
        ids = [document.id for document in task.documents]
        numbers = {document: number for number, document in enumerate(ids)}
        found = [
            _rank_and_top(answered.get(query.id), ids[right])
            for query, right in zip(task.queries, self._numbers, strict=True)
        ]
        tops = np.array([len(ids) if top is None else numbers[top] for _, top in found], dtype=np.int64)
        self._f1.setdefault(entrant.contender.label, {})[""] = self._weighted_f1(tops, len(ids))
        return scores_of(np.array([rank for rank, _ in found], dtype=np.int64), len(ids), measures)

    def read(
        self, entrant: Entrant, file: Path, task: Task, measures: Sequence[Measure]
    ) -> tuple[Scores, dict[str, Ranking]]:
        """A score array in blocks; anything else is a file of rankings."""
        label, seed = entrant.contender.label, list(entrant.contender.answers)[len(entrant.seeds)]
        if file.suffix not in (".npy", ".npz"):
            scores, rankings = super().read(entrant, file, task, measures)
            self._f1[label][seed or "only"] = self._f1[label].pop("")
            return scores, rankings
        if file.suffix == ".npz" and has_targets(file) and not np.array_equal(read_targets(file), self._numbers):
            raise InputError(
                "its targets are not those of the task", file=file, remedy="give all models the same samples"
            )
        classes = len(task.documents)
        ranks, tops = ranks_and_tops(file, self._numbers, classes)
        self._f1.setdefault(label, {})[seed or "only"] = self._weighted_f1(tops, classes)
        self._ranks[f"ranks/{label}{f'-{seed}' if seed else ''}.npy"] = ranks
        rankings = self._rankings(file, task) if len(ranks) * classes <= RANKINGS_UP_TO else {}
        return scores_of(ranks, classes, measures), rankings

    def _rankings(self, file: Path, task: Task) -> dict[str, Ranking]:
        """An array as rankings, the right answer last among equals: these are the ranks that were measured."""
        ids, found = [document.id for document in task.documents], {}
        for start, scores in blocks(file, len(task.queries), len(ids)):
            for row, values in enumerate(scores.tolist()):
                query, right = task.queries[start + row], ids[self._numbers[start + row]]
                pairs = sorted(zip(ids, values, strict=True), key=lambda pair: (-pair[1], pair[0] == right, pair[0]))
                found[query.id] = Ranking(tuple(name for name, _ in pairs), tuple(value for _, value in pairs))
        return found

    def _weighted_f1(self, tops: Ranks, classes: int) -> float:
        """The extra column is for queries that got no answer at all."""
        cells = np.bincount(self._numbers * (classes + 1) + tops, minlength=(classes + 1) ** 2)
        return weighted_f1(cells[: (classes + 1) ** 2].reshape(classes + 1, classes + 1))

    def baselines(self, task: Task, measures: Sequence[Measure]) -> dict[str, Scores]:
        """Always the same ranking: the classes by how often they were right in training (or, without it, here)."""
        ranks, _ = self._majority(task)
        return {MAJORITY: scores_of(ranks, len(task.documents), measures)}

    def _majority(self, task: Task) -> tuple[Ranks, Ranks]:
        ids = [document.id for document in task.documents]
        numbers = {document: number for number, document in enumerate(ids)}
        seen = self._numbers
        if self.train is not None:
            names = [line.strip() for line in read_bytes(self.train).decode().splitlines() if line.strip()]
            if unknown := [name for name in names if name not in numbers]:
                raise InputError(f"unknown class {unknown[0]!r}", file=self.train)
            seen = np.array([numbers[name] for name in names], dtype=np.int64)
        counts = np.bincount(seen, minlength=len(ids))
        ranking = ordered((name, float(counts[number])) for number, name in enumerate(ids))
        place = np.empty(len(ids), dtype=np.int64)
        place[[numbers[name] for name in ranking.ids]] = np.arange(1, len(ids) + 1)
        return place[self._numbers], np.full(len(self._numbers), numbers[ranking.ids[0]], dtype=np.int64)

    def extras(self, outcome: Outcome) -> Extras:
        """The table with spreads over seeds, paired t-tests between models, and the ranks."""
        extras = Extras(files={name: _npy(ranks) for name, ranks in self._ranks.items()})
        figures: dict[str, dict[str, list[float]]] = {}
        for entrant in outcome.ran:
            by_seed = list(entrant.seeds.values()) or [entrant.scores]
            figures[entrant.contender.label] = {
                **{name: [float(s[Measure.parse(name)].mean()) for s in by_seed] for name in COLUMNS},
                "weighted_f1": list(self._f1[entrant.contender.label].values()),
            }
        for name in ("random", MAJORITY):
            scores = outcome.baselines[name]
            figures[name] = {column: [float(scores[Measure.parse(column)].mean())] for column in COLUMNS}
        _, tops = self._majority(outcome.task)
        figures[MAJORITY]["weighted_f1"] = [self._weighted_f1(tops, len(outcome.task.documents))]
        extras.figures = {"models": figures}
        extras.sections = [self._table(figures, len(outcome.task.documents))]
        if tests := self._tests(outcome):
            extras.sections.append(tests)
            extras.figures["paired_t"] = tests.rows
        return extras

    def _table(self, figures: Mapping[str, Mapping[str, Sequence[float]]], classes: int) -> Section:
        columns = [*COLUMNS, "weighted_f1"]
        labels = [*(Measure.parse(name).label for name in COLUMNS), "weighted F1"]
        harmonic = float((1 / np.arange(1, classes + 1)).sum())
        source = "training" if self.train else "these very samples, which flatters it"
        return Section(
            title="One right answer" + (" (%)" if self.percent else ""),
            head=["Model", *labels, "seeds"],
            rows=[
                [label, *(self._shown(figure.get(name)) for name in columns), str(len(figure["mrr"]))]
                for label, figure in figures.items()
            ],
            notes=[
                "Ties are pessimistic: everything that scores as much as the right answer stands above it. With "
                "several seeds: mean ± standard deviation (n − 1) over them.",
                f"random: exact expectation over {classes} classes, MRR = H_n / n = {harmonic / classes:.4f}. "
                f"{MAJORITY}: classes by their frequency in {source}.",
            ],
        )

    def _shown(self, values: Sequence[float] | None) -> str:
        if values is None:
            return "–"
        scale, digits = (100, 2) if self.percent else (1, 3)
        shown = f"{scale * float(np.mean(values)):.{digits}f}"
        return f"{shown}±{scale * float(np.std(values, ddof=1)):.{digits}f}" if len(values) > 1 else shown

    def _tests(self, outcome: Outcome) -> Section | None:
        """Between models with the same seeds, paired by seed."""
        primary = outcome.lineup.primary
        seeded = {e.contender.label: e.seeds for e in outcome.ran if len(e.seeds) > 1}
        rows = []
        for a, b in combinations(seeded, 2):
            if list(seeded[a]) != list(seeded[b]):
                continue
            pairs = zip(seeded[a].values(), seeded[b].values(), strict=True)
            differences = np.array([float(x[primary].mean() - y[primary].mean()) for x, y in pairs])
            rows.append([a, b, str(len(differences)), f"{differences.mean():+.4f}", f"{paired_t(differences):.3g}"])
        if not rows:
            return None
        return Section(
            title=f"Paired t-test over seeds ({primary.label})",
            head=["Model", "against", "seeds", "mean difference", "p"],
            rows=rows,
            notes=["Not corrected for the number of pairs; the verdict above tests over samples, and is."],
        )


def scores_of(ranks: Ranks, classes: int, measures: Sequence[Measure]) -> Scores:
    """The engine's measures of rankings with one relevant place each, a block of them at a time."""
    parts: dict[Measure, list[np.ndarray]] = {measure: [] for measure in measures}
    for start in range(0, len(ranks), ROWS):
        mine = ranks[start : start + ROWS]
        grades = np.full((len(mine), classes), UNJUDGED, dtype=np.int32)
        found = np.flatnonzero(mine != ABSENT)
        grades[found, mine[found] - 1] = 1
        grades[mine == ABSENT] = NO_DOCUMENT
        returned = np.where(mine == ABSENT, 0, classes).astype(np.int32)
        ranked = RankedGrades(grades, returned, np.ones((len(mine), 1), dtype=np.int32))
        for measure, values in evaluate(ranked, measures).items():
            parts[measure].append(values)
    return {measure: np.concatenate(values) if values else np.empty(0) for measure, values in parts.items()}


def _rank_and_top(ranking: Ranking | None, right: str) -> tuple[int, str | None]:
    """The pessimistic rank of the right answer, and the first answer; among equals another one than the right."""
    if ranking is None or not ranking.ids:
        return ABSENT, None
    if right not in ranking.ids:
        return ABSENT, ranking.ids[0]
    score = ranking.scores[ranking.ids.index(right)]
    rank = sum(other >= score for other in ranking.scores)
    return rank, right if rank == 1 else next(name for name in ranking.ids if name != right)


def _npy(values: Ranks) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values.astype(np.int32))
    return stream.getvalue()
