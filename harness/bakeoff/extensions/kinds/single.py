"""One right answer per query (next place, next item): from score arrays, ranked lists, or retrieval."""

from __future__ import annotations

import io
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import IO, Annotated, Any
from zipfile import BadZipFile, ZipFile

import msgspec
import numpy as np
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.core.facts import Section, TableCell, TableColumn, column, fact
from bakeoff.core.figures import OwnColumn
from bakeoff.core.files import check_regular, read_bytes, read_json_lines
from bakeoff.core.ranking import Ranking, make_ranking
from bakeoff.core.task import Document, Query, Task
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.ranked_grades import NO_DOCUMENT, UNJUDGED, RankedGrades
from bakeoff.evaluation.score import Scores, f1_by_weight, score_queries
from bakeoff.extensions.kinds.items import read_documents
from bakeoff.statistics.tests import t_test
from bakeoff.systems.base import System
from bakeoff.tasks.kinds.base import Answers, Extras, FinishedRun, Reading, TaskKind

BLOCK_CELLS = 1 << 22  # scores in memory at once: 32 MB in float64

MOST_BYTES = 1 << 33  # of targets: a billion of them

Ranks = NDArray[np.int64]


def ranks_and_tops(file: Path, targets: Ranks, classes: int) -> tuple[Ranks, Ranks]:
    """The pessimistic rank of every target (ties rank above it), and the top class.

    If the target ties for the highest score, the top class is another one: a tie is not a right answer.
    """
    ranks, tops = np.empty(len(targets), dtype=np.int64), np.empty(len(targets), dtype=np.int64)
    for start, scores in blocks(file, len(targets), classes):
        rows, mine = np.arange(len(scores)), targets[start : start + len(scores)]
        if not np.isfinite(scores).all():
            row, column = np.argwhere(~np.isfinite(scores))[0]
            raise InputError(f"the score of sample {start + row}, class {column} is not finite", file=file)
        ranks[start : start + len(scores)] = (scores >= scores[rows, mine][:, None]).sum(axis=1)
        top = scores.argmax(axis=1)
        shared = (top == mine) & (ranks[start : start + len(scores)] > 1)
        if shared.any():
            others = scores[shared]
            others[np.arange(len(others)), mine[shared]] = -np.inf
            top[shared] = others.argmax(axis=1)
        tops[start : start + len(scores)] = top
    return ranks, tops


def blocks(file: Path, samples: int, classes: int) -> Iterator[tuple[int, NDArray[Any]]]:
    """Blocks of rows and their first row number, from a .npy or the array `scores` of a .npz."""
    with _stream(file, "scores") as stream:
        shape, fortran, dtype = _header(stream, file)
        if shape != (samples, classes):
            raise InputError(f"scores of shape {shape}, not {samples} samples × {classes} classes", file=file)
        if dtype.kind not in "fiu":
            raise InputError(f"scores of type {dtype}, not numbers", file=file)
        if fortran:
            raise InputError("scores are stored by columns", file=file, remedy="save np.ascontiguousarray(scores)")
        step = max(1, BLOCK_CELLS // max(classes, 1))
        for start in range(0, samples, step):
            rows = min(step, samples - start)
            data = stream.read(rows * classes * dtype.itemsize)
            if len(data) < rows * classes * dtype.itemsize:
                raise InputError("the file ends too early", file=file, remedy="save it again")
            yield start, np.frombuffer(data, dtype=dtype).reshape(rows, classes).copy()


def read_targets(file: Path) -> Ranks:
    """Read class numbers, one per sample, from a .npy or the array `targets` of a .npz."""
    try:
        with _stream(file, "targets") as stream:
            shape, _, dtype = _header(stream, file)
            if len(shape) != 1 or dtype.kind not in "iu":
                raise InputError(f"targets of shape {shape} and type {dtype}, not class numbers", file=file)
            data = stream.read(min(shape[0] * dtype.itemsize, MOST_BYTES))  # the header may promise anything
            targets = np.frombuffer(data, dtype=dtype, count=shape[0])
    except ValueError as error:
        raise InputError(f"unreadable: {error}", file=file) from None
    return targets.astype(np.int64)


def has_targets(file: Path) -> bool:
    """Whether a .npz has its own targets, which must equal the task's."""
    try:
        with ZipFile(file) as archive:
            return "targets.npy" in archive.namelist()
    except (BadZipFile, NotImplementedError, OSError, ValueError):
        return False


@contextmanager
def _stream(file: Path, name: str) -> Iterator[IO[bytes]]:
    try:
        check_regular(file)
        if file.suffix == ".npz":
            with ZipFile(file) as archive, archive.open(f"{name}.npy") as stream:
                yield stream
        else:
            with file.open("rb") as stream:
                yield stream
    except FileNotFoundError:
        raise InputError("no such file", file=file, remedy="check the path") from None
    except KeyError:
        raise InputError(f"has no array {name!r}", file=file, remedy=f"np.savez(…, {name}=…)") from None
    except (BadZipFile, EOFError, NotImplementedError, OSError, RuntimeError, zlib.error) as error:
        raise InputError(f"unreadable: {error}", file=file) from None


def _header(stream: IO[bytes], file: Path) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    try:
        version = np.lib.format.read_magic(stream)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(stream)
    except Exception as error:  # the header is parsed as Python: a damaged one raises anything
        raise InputError(f"is not a NumPy array: {error}", file=file) from None
    return tuple(shape), bool(fortran), dtype


ACCURACIES = ("acc@1", "acc@5", "acc@10")  # on a first screen
COLUMNS = ("acc@1", "acc@3", "acc@5", "acc@10", "mrr", "ndcg@10")
MOST_CLASSES = 1_000_000  # each is a document
ROWS = 4096  # rankings in memory at once
RANKINGS_UP_TO = 1_000_000  # top scores of an array that are also kept as rankings
MAJORITY = "majority class"
ABSENT = 0  # the rank of an answer that a ranking does not hold


class RightAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One line of a truth in JSON Lines."""

    query: str
    answer: str
    text: str = ""
    category: str = ""


class Single(TaskKind):
    """Ranks are pessimistic under ties: items with the right answer's score rank above it."""

    name = "single"
    scores_itself = True
    needs_full_ranking = True
    measures = COLUMNS
    unit, item = "sample", "class"

    def __init__(
        self,
        name: str,
        base: Path,
        targets: Mapping[str, float],
        truth: Annotated[str, "file of right answers: class numbers (.npy, .npz) or .jsonl"],
        classes: Annotated[str | int, "file with the names of the classes, or their number"] = "",
        items: Annotated[str, "file of items in place of classes, for retrieval"] = "",
        id_key: Annotated[str, "key of an item's id"] = "id",
        train: Annotated[str, "training answers, for the majority baseline"] = "",
        percent: Annotated[bool, "show the table in percentages"] = False,
    ) -> None:
        super().__init__(name, base, targets)
        if bool(classes) == bool(items):
            raise InputError(
                "name either the classes or the items", place="classes", remedy='classes = "places.txt", or a number'
            )
        self.truth, self.classes, self.items, self.id_key = base / truth, classes, items, id_key
        self.train, self.percent = base / train if train else None, bool(percent)

    def task(self) -> Task:
        """Documents are classes or items, queries are samples with one judgment each."""
        documents = self._documents()
        ids = [document.id for document in documents]
        known, answers = set(ids), self._answers(ids)
        for place, entry in enumerate(answers):
            if entry.answer not in known:
                raise InputError(f"unknown answer {entry.answer!r}", file=self.truth, place=f"sample {place + 1}")
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
            if not 1 <= self.classes <= MOST_CLASSES:
                raise InputError(f"must be from 1 to {MOST_CLASSES}", place="classes")
            return [Document(id=str(number), text="") for number in range(self.classes)]
        return read_documents(self.base / (self.classes or self.items), id_key=self.id_key)

    def _answers(self, ids: Sequence[str]) -> list[RightAnswer]:
        if self.truth.suffix == ".jsonl":
            return [answer for _, answer in read_json_lines(self.truth, RightAnswer)]
        targets = read_targets(self.truth)
        if len(targets) and not (targets.min() >= 0 and targets.max() < len(ids)):
            raise InputError(f"targets from {targets.min()} to {targets.max()} for {len(ids)} classes", file=self.truth)
        return [RightAnswer(str(sample), ids[target]) for sample, target in enumerate(targets.tolist())]

    def score(self, task: Task, answers: Answers, measures: Sequence[Measure]) -> Scores:
        """Score by the rank of the right answer."""
        ranks, _ = _ranks_and_tops(task, answers.rankings)
        return scores_of(ranks, len(task.documents), measures)

    def read(
        self, task: Task, contender: System, seed: str, file: Path, measures: Sequence[Measure], depth: int
    ) -> Reading:
        """Read a score array in blocks; other files hold rankings."""
        if file.suffix not in (".npy", ".npz"):
            reading = super().read(task, contender, seed, file, measures, depth)
            return replace(reading, figures={"weighted_f1": _f1_of_rankings(task, reading.rankings)})
        right, classes = _right_classes(task), len(task.documents)
        if file.suffix == ".npz" and has_targets(file) and not np.array_equal(read_targets(file), right):
            raise InputError(
                "its targets are not those of the task", file=file, remedy="give all models the same samples"
            )
        ranks, tops = ranks_and_tops(file, right, classes)
        return Reading(
            scores_of(_within(ranks, depth), classes, measures),
            _array_rankings(file, task, right) if len(ranks) * classes <= RANKINGS_UP_TO else {},
            figures={"weighted_f1": _f1(right, tops, classes)},
            files={f"ranks/{_file_name(contender, seed)}.npy": _npy(ranks)},
        )

    def baselines(self, task: Task, measures: Sequence[Measure], depth: int) -> dict[str, Scores]:
        """Classes by frequency in the training answers, or in the task's own if there are none."""
        ranks, _ = self._majority(task)
        return {MAJORITY: scores_of(_within(ranks, depth), len(task.documents), measures)}

    def _majority(self, task: Task) -> tuple[Ranks, Ranks]:
        ids, right = [document.id for document in task.documents], _right_classes(task)
        numbers = {document: number for number, document in enumerate(ids)}
        seen = right
        if self.train is not None:
            names = [line.strip() for line in read_bytes(self.train).decode().splitlines() if line.strip()]
            if unknown := [name for name in names if name not in numbers]:
                raise InputError(f"unknown class {unknown[0]!r}", file=self.train)
            seen = np.array([numbers[name] for name in names], dtype=np.int64)
        counts = np.bincount(seen, minlength=len(ids))
        ranking = make_ranking((name, float(counts[number])) for number, name in enumerate(ids))
        place = np.empty(len(ids), dtype=np.int64)
        place[[numbers[name] for name in ranking.ids]] = np.arange(1, len(ids) + 1)
        return place[right], np.full(len(right), numbers[ranking.ids[0]], dtype=np.int64)

    def extras(self, run: FinishedRun) -> Extras:
        """The table with spread over seeds, paired t-tests, and files per model and seed."""
        task, files = run.task, dict[str, str | bytes]()
        figures: dict[str, dict[str, list[float]]] = {}
        for scored in run.contenders:
            f1 = "weighted_f1"
            asked = {"": Reading(scored.scores, {}, {f1: _f1_of_rankings(task, scored.rankings)})}
            readings = scored.readings or asked
            sums = {seed: _sums(reading.scores) for seed, reading in readings.items()}
            means = {name: [one[name] / len(task.queries) for one in sums.values()] for name in COLUMNS}
            figures[scored.contender.label] = {**means, f1: [reading.figures[f1] for reading in readings.values()]}
            for seed, reading in readings.items():
                name = _file_name(scored.contender, seed)
                files[f"metrics/{name}.json"] = _json(_percentages(sums[seed], reading.figures[f1], len(task.queries)))
                files[f"result_array/{name}.json"] = _json([*sums[seed].values(), len(task.queries)])
                files |= reading.files
        for name in ("random", MAJORITY):
            baseline = run.baselines[name]
            figures[name] = {column: [float(baseline[Measure.parse(column)].mean())] for column in COLUMNS}
        _, tops = self._majority(task)
        figures[MAJORITY]["weighted_f1"] = [_f1(_right_classes(task), tops, len(task.documents))]
        columns = [self._accuracy(name, figures, run) for name in ACCURACIES]
        table = self._table(figures, len(task.documents))
        extras = Extras({"models": figures}, [table], files, columns=columns)
        tests = _seed_tests(run)
        return extras.with_table("paired_t", [list(row) for row in tests.rows], tests) if tests else extras

    @staticmethod
    def _accuracy(name: str, figures: Mapping[str, Mapping[str, Sequence[float]]], run: FinishedRun) -> OwnColumn:
        labels = [scored.contender.label for scored in run.contenders]
        means: dict[str, float | None] = {label: float(np.mean(figures[label][name])) for label in labels}
        return OwnColumn(
            head=fact("kinds.accuracy", k=int(name.partition("@")[2])), values=means, quantity="percent", measure=name
        )

    def _table(self, figures: Mapping[str, Mapping[str, Sequence[float]]], classes: int) -> Section:
        columns = [*COLUMNS, "weighted_f1"]
        labels = [Measure.parse(name).label for name in COLUMNS]
        harmonic = float((1 / np.arange(1, classes + 1)).sum())
        digits, unit = (2, "%") if self.percent else (3, "")
        return Section(
            title=fact("kinds.one_right_answer"),
            head=[
                column("kinds.model"),
                *(TableColumn(head=label, form="spread", digits=digits, unit=unit) for label in labels),
                column("kinds.weighted_f1", "spread", digits, unit=unit),
                column("kinds.seeds", "count"),
            ],
            rows=[
                [label, *(self._spread(figure.get(name)) for name in columns), len(figure["mrr"])]
                for label, figure in figures.items()
            ],
            notes=[
                fact("kinds.pessimistic_ties"),
                fact("kinds.random_and_majority", classes=classes, mrr=harmonic / classes, trained=bool(self.train)),
            ],
        )

    def _spread(self, values: Sequence[float] | None) -> TableCell:
        """The mean, with its standard deviation if there are several seeds."""
        if values is None:
            return None
        scaled = (100 if self.percent else 1) * np.array(values)
        return [float(scaled.mean()), float(scaled.std(ddof=1))] if len(values) > 1 else float(scaled.mean())


def _within(ranks: Ranks, depth: int) -> Ranks:
    """A right answer below the common depth counts as not found."""
    return np.where(ranks <= depth, ranks, ABSENT)


def scores_of(ranks: Ranks, classes: int, measures: Sequence[Measure]) -> Scores:
    """Score rankings with one relevant item each, block by block."""
    parts: dict[Measure, list[np.ndarray]] = {measure: [] for measure in measures}
    for start in range(0, len(ranks), ROWS):
        mine = ranks[start : start + ROWS]
        grades = np.full((len(mine), classes), UNJUDGED, dtype=np.int32)
        present = np.flatnonzero(mine != ABSENT)
        grades[present, mine[present] - 1] = 1
        grades[mine == ABSENT] = NO_DOCUMENT
        returned = np.where(mine == ABSENT, 0, classes).astype(np.int32)
        ranked = RankedGrades(grades, returned, np.ones((len(mine), 1), dtype=np.int32))
        for measure, values in score_queries(ranked, measures).items():
            parts[measure].append(values)
    return {measure: np.concatenate(values) if values else np.empty(0) for measure, values in parts.items()}


def _rank_and_top(ranking: Ranking | None, right: str) -> tuple[int, str | None]:
    """The pessimistic rank of the right answer, and the top answer (a wrong one if tied)."""
    if ranking is None or not ranking.ids:
        return ABSENT, None
    if right not in ranking.ids:
        return ABSENT, ranking.ids[0]
    score = ranking.scores[ranking.ids.index(right)]
    rank = sum(other >= score for other in ranking.scores)
    return rank, right if rank == 1 else next(name for name in ranking.ids if name != right)


def _file_name(contender: System, seed: str) -> str:
    return f"{contender.label}-{seed}" if seed else contender.label


def _sums(scores: Scores) -> dict[str, float]:
    """Sums over all samples by column. Right answers within k are whole numbers, unless rounds differ."""
    sums = {name: float(scores[Measure.parse(name)].sum()) for name in COLUMNS}
    return {name: int(value) if value.is_integer() else value for name, value in sums.items()}


def _percentages(sums: Mapping[str, float], f1: float, samples: int) -> dict[str, float]:
    """Percentages with two decimals, under the short names of next-place papers."""
    shares = {{"ndcg@10": "ndcg"}.get(name, name): value / samples for name, value in sums.items()}
    return {name: round(100 * share, 2) for name, share in (shares | {"f1": f1}).items()}


def _json(content: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def _npy(values: Ranks) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values.astype(np.int32))
    return stream.getvalue()


def _seed_tests(run: FinishedRun) -> Section | None:
    """Paired t-tests between models with the same seeds."""
    primary = run.primary
    seeded = {scored.contender.label: scored.readings for scored in run.contenders if len(scored.readings) > 1}
    rows: list[list[TableCell]] = []
    for a, b in combinations(seeded, 2):
        if list(seeded[a]) != list(seeded[b]):
            continue
        pairs = zip(seeded[a].values(), seeded[b].values(), strict=True)
        differences = np.array([float(x.scores[primary].mean() - y.scores[primary].mean()) for x, y in pairs])
        rows.append([a, b, len(differences), float(differences.mean()), t_test(differences)])
    if not rows:
        return None
    return Section(
        title=fact("kinds.seed_tests", measure=primary.label),
        head=[
            column("kinds.model"),
            column("kinds.against"),
            column("kinds.seeds", "count"),
            column("kinds.mean_difference", "fixed", 4, signed=True),
            column("p", "significant"),
        ],
        rows=rows,
        notes=[fact("kinds.seed_p")],
    )


def _right_classes(task: Task) -> Ranks:
    """The number of the right class of every query."""
    numbers = {document.id: number for number, document in enumerate(task.documents)}
    return np.array([numbers[next(iter(task.judgments[query.id]))] for query in task.queries], dtype=np.int64)


def _ranks_and_tops(task: Task, rankings: Mapping[str, Ranking]) -> tuple[Ranks, Ranks]:
    """By query: the rank of the right answer, and the top class (one past the last for no answer)."""
    ids = [document.id for document in task.documents]
    numbers = {document: number for number, document in enumerate(ids)}
    answered = [
        _rank_and_top(rankings.get(query.id), ids[right])
        for query, right in zip(task.queries, _right_classes(task), strict=True)
    ]
    ranks = np.array([rank for rank, _ in answered], dtype=np.int64)
    return ranks, np.array([len(ids) if top is None else numbers[top] for _, top in answered], dtype=np.int64)


def _f1_of_rankings(task: Task, rankings: Mapping[str, Ranking]) -> float:
    return _f1(_right_classes(task), _ranks_and_tops(task, rankings)[1], len(task.documents))


def _f1(right: Ranks, tops: Ranks, classes: int) -> float:
    """Weighted F1. The extra column is for queries that got no answer at all."""
    counts = partial(np.bincount, minlength=classes + 1)
    return f1_by_weight(counts(right[right == tops]), counts(right), counts(tops))


def _array_rankings(file: Path, task: Task, right: Ranks) -> dict[str, Ranking]:
    """An array as rankings, with the right answer last among ties, as measured."""
    ids, rankings = [document.id for document in task.documents], {}
    for start, scores in blocks(file, len(task.queries), len(ids)):
        for row, values in enumerate(scores.tolist()):
            query, answer = task.queries[start + row], ids[right[start + row]]
            pairs = sorted(zip(ids, values, strict=True), key=lambda pair: (-pair[1], pair[0] == answer, pair[0]))
            rankings[query.id] = Ranking(tuple(name for name, _ in pairs), tuple(value for _, value in pairs))
    return rankings
