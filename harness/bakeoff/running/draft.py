"""Drafts: measurements written to disk as they arrive. Every result is made from a draft.

One log records the run, and one log per contender its answers. Records are only appended. Reading stops at a record
torn by a kill. The writing process holds a lock on the folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import struct
import time
import zlib
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import msgspec
from bakeoff_providers.errors import InputError
from bakeoff_providers.files import is_at, try_lock, writing

from bakeoff.core.facts import Failure
from bakeoff.core.figures import CallTime, Timing
from bakeoff.core.files import read_json, write_json
from bakeoff.core.machine import Machine
from bakeoff.core.paths import DRAFT_HEAD
from bakeoff.core.ranking import RankedRun, Ranking
from bakeoff.core.task import Judgments
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.stages import Answered, Compared, Embedding, Search, SecondStage
from bakeoff.search.answer import Answer, Timed
from bakeoff.systems.base import Build, System

SUFFIX = ".draft"
COURSE, JUDGMENTS, ANSWERS = "course.log", "judgments.json", "answers"
FLUSH = 0.2  # seconds of answers that a kill may cost
_FRAME = struct.Struct("<II")  # length and CRC-32 of the record that follows
UNANSWERED = Ranking((), ())
_OWN_CODE = re.compile(r"file:([^:]+)")


class DraftHead(msgspec.Struct, frozen=True, kw_only=True):
    """Identifies the run and its line-up.

    `question` is a hash of rows and task, `means` a hash of the code.
    """

    name: str
    file: str = ""
    question: str = ""
    means: str = ""
    labels: list[str] = []
    rounds: int = 1
    overrides: dict[str, Any] = {}
    baseline: str = ""
    equivalent_within: float | None = None
    sample_documents: int | None = None
    tune_weights: bool = False
    cache: str | None = None
    vectors: list[str] = []
    command: str = ""


class _Session(msgspec.Struct, array_like=True, tag=1):
    """A process started asking queries."""

    started: str
    machine: Machine


class _Round(msgspec.Struct, array_like=True, tag=2):
    """A contender answered every query once."""

    session: int
    label: str
    number: int


class _Failed(msgspec.Struct, array_like=True, tag=3):
    session: int
    label: str
    failure: Failure


class _Ended(msgspec.Struct, array_like=True, tag=4):
    """All rounds are done. No further query is needed."""

    session: int
    machine: Machine
    seconds: float


class _Packed(msgspec.Struct, array_like=True):
    """A ranking with documents as numbers; `names` are the newly numbered ones."""

    names: list[str]
    documents: bytes
    scores: bytes
    matched: int | None


class _Asked(msgspec.Struct, array_like=True, tag=5):
    """One answer. Its ranking is omitted if it equals the first round's, or if an earlier process recorded it."""

    session: int
    round: int
    query: int
    search_ns: int
    embed_ns: int | None
    rerank_ns: int | None
    total_ns: int
    timed: int
    kept_embed: CallTime | None
    kept_rerank: CallTime | None
    ranking: _Packed | None = None
    retrieved: _Packed | None = None  # where the kind of task has stages of its own behind the search
    limit_ns: int | None = None  # that the answer missed: there is no ranking


class _Searched(msgspec.Struct, array_like=True, tag=6):
    """A contender's resources so far, written before its first round and after its last."""

    session: int
    build: Build
    cold_embed_ns: int | None
    cold_search_ns: int | None
    embedding: Embedding | None
    second_stage: SecondStage | None


class _Whole(msgspec.Struct, array_like=True, tag=8):
    """Every contender was compared with exact search. All measurements are complete."""


_Course = _Session | _Round | _Failed | _Ended | _Whole
_Row = _Asked | _Searched | Compared
_COURSE = msgspec.msgpack.Decoder(_Course)
_ROW = msgspec.msgpack.Decoder(_Row)


class _Log:
    """Appends records after the last complete one. The file is open only while records arrive."""

    def __init__(self, path: Path) -> None:
        self.path, self._encode = path, msgspec.msgpack.Encoder().encode
        self._file: BinaryIO | None = None
        self._flushed = time.monotonic()
        with writing(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                os.truncate(path, sum(_FRAME.size + len(record) for record in _records(path)))

    def append(self, record: _Course | _Row) -> None:
        content = self._encode(record)
        with writing(self.path):
            if self._file is None:
                self._file = self.path.open("ab")
            self._file.write(_FRAME.pack(len(content), zlib.crc32(content)) + content)
            if time.monotonic() - self._flushed > FLUSH:
                self._file.flush()
                self._flushed = time.monotonic()

    def close(self, *, to_disk: bool = False) -> None:
        """Flushes and closes the file."""
        if self._file is not None:
            with writing(self.path), self._file as file:
                self._file = None
                file.flush()
                if to_disk:
                    os.fsync(file.fileno())


def _records(path: Path) -> Iterator[bytes]:
    if not path.exists():
        return
    with path.open("rb") as file:
        left = os.fstat(file.fileno()).st_size
        while len(frame := file.read(_FRAME.size)) == _FRAME.size:
            length, checksum = _FRAME.unpack(frame)
            left -= _FRAME.size + length
            if left < 0 or zlib.crc32(content := file.read(length)) != checksum:
                return
            yield content


class RowLog:
    """The answers of one contender, written as they arrive.

    A ranking that an earlier process recorded is not written again.
    """

    def __init__(self, path: Path, session: int, queries: int) -> None:
        self._session, self._queries = session, queries
        self._numbers: dict[str, int] = {}
        self._orders = array("q", bytes(8 * queries))  # hashes of the first round's ids
        self._known: dict[int, bytearray] = defaultdict(lambda: bytearray(queries))
        names: list[str] = []
        for record in map(_ROW.decode, _records(path)):
            if isinstance(record, _Asked) and not record.limit_ns:
                self._known[record.round][record.query] = True
                for packed in (record.retrieved, record.ranking):
                    if packed is not None:
                        names += packed.names
                if record.round == 0 and record.ranking is not None:
                    self._orders[record.query] = hash(_unpack(record.ranking, names).ids)
        self._numbers = {name: number for number, name in enumerate(names)}
        self._log = _Log(path)

    def begin(self, build: Build, cold: Answer, embedding: Embedding | None, second: SecondStage | None) -> None:
        """Before the first round."""
        self._began = build, cold.embed_ns, cold.search_ns
        self._log.append(_Searched(self._session, *self._began, embedding, second))
        self._log.close()

    def add(self, number: int, query: int, answer: Answer, refined: Ranking) -> None:
        """One answer of a round; `refined` is the ranking after the kind's own stages."""
        record = _Asked(
            self._session, number, query, answer.search_ns, answer.embed_ns, answer.rerank_ns, answer.total_ns,
            answer.timed, answer.kept_embed, answer.kept_rerank, limit_ns=answer.limit_ns,
        )  # fmt: skip
        known = self._known[number]
        if not known[query] and not answer.limit_ns:
            known[query] = True
            order = hash(refined.ids)
            if number == 0:
                self._orders[query] = order
                if refined is not answer.ranking:
                    record.retrieved = self._pack(answer.ranking)
            if number == 0 or order != self._orders[query]:
                record.ranking = self._pack(refined)
        self._log.append(record)

    def end(self, embedding: Embedding | None, second: SecondStage | None) -> None:
        """After the last round."""
        self._log.append(_Searched(self._session, *self._began, embedding, second))
        self._log.close(to_disk=True)

    def compare(self, compared: Compared) -> None:
        """The comparison with exact search. The last record counts."""
        self._log.append(compared)
        self._log.close()

    def close(self) -> None:
        """Flushes and closes the file."""
        self._log.close()

    def _pack(self, ranking: Ranking) -> _Packed:
        numbers, before = self._numbers, len(self._numbers)
        documents = array("i", [numbers.setdefault(name, len(numbers)) for name in ranking.ids])
        names = [name for name in ranking.ids if numbers[name] >= before] if len(numbers) > before else []
        return _Packed(names, documents.tobytes(), array("d", ranking.scores).tobytes(), ranking.matched)


def _unpack(packed: _Packed, names: Sequence[str]) -> Ranking:
    documents, scores = array("i", packed.documents), array("d", packed.scores)
    return Ranking(tuple(names[number] for number in documents), tuple(scores), packed.matched)


@dataclass(slots=True)
class Course:
    """The log of a run: completed rounds and failures by process."""

    sessions: list[_Session] = field(default_factory=list)
    rounds: dict[str, dict[int, int]] = field(default_factory=dict)  # completed rounds, by label and process
    failed: dict[str, tuple[int, Failure]] = field(default_factory=dict)
    ended: _Ended | None = None
    whole: bool = False  # nothing is left to measure

    @classmethod
    def read(cls, path: Path) -> Course:
        """Reads the log up to its last complete record."""
        course = cls()
        for record in map(_COURSE.decode, _records(path)):
            match record:
                case _Session():
                    course.sessions.append(record)
                case _Round():
                    course.rounds.setdefault(record.label, {})[record.session] = record.number + 1
                case _Failed():
                    course.failed[record.label] = record.session, record.failure
                case _Ended():
                    course.ended = record
                case _Whole():
                    course.whole = True
        return course

    @property
    def timed(self) -> int:
        """The process whose times count for all rows: the one that timed most rows, or the last of several."""
        rows = [sum(session in whole for whole in self.rounds.values()) for session in range(len(self.sessions))]
        return max(range(len(rows)), key=lambda session: (rows[session], session), default=0)


class Draft:
    """The draft folder of one run, created with the first answer."""

    def __init__(self, folder: Path, head: DraftHead) -> None:
        self.folder, self.head = folder, head
        self._lock: int | None = None
        self._course: _Log | None = None
        self._session = 0
        self._rows: dict[str, RowLog] = {}

    @classmethod
    def open(cls, folder: Path) -> Draft:
        """Opens an abandoned draft; raises if its process is still alive."""
        draft = cls(folder, read_json(folder / DRAFT_HEAD, DraftHead))
        draft._lock = os.open(folder, os.O_RDONLY)
        if try_lock(draft._lock) is False:
            draft.close()
            raise InputError("a run is writing this draft", file=folder, remedy="wait until it ends, or interrupt it")
        if not is_at(draft._lock, folder):
            draft.close()
            raise InputError(
                "was finished by another command", file=folder, remedy="look for the result in the same folder"
            )
        return draft

    @property
    def course(self) -> Course:
        """What happened so far."""
        return Course.read(self.folder / COURSE)

    @property
    def has_rows(self) -> bool:
        """Whether a contender answered every query."""
        return bool(self.course.rounds)

    def judgments(self) -> Judgments | None:
        """The run's judgments; None before the first query."""
        path = self.folder / JUDGMENTS
        return read_json(path, dict[str, dict[str, int]]) if path.exists() else None

    def begin(self, started: str, machine: Machine, judgments: Judgments) -> None:
        """Records that a process starts asking queries."""
        with writing(self.folder):
            if self._lock is None:
                while self.folder.exists():  # another run of this second
                    self.folder = self.folder.with_name(f"{self.folder.stem}-2{SUFFIX}")
                self.folder.mkdir(parents=True)
                self._lock = os.open(self.folder, os.O_RDONLY)
                try_lock(self._lock)
        write_json(self.folder / DRAFT_HEAD, self.head)
        write_json(self.folder / JUDGMENTS, judgments)
        self._session = len(self.course.sessions)
        self._note(_Session(started, machine))

    def row(self, label: str, queries: int) -> RowLog:
        """The log of this contender's answers."""
        if label not in self._rows:
            self._rows[label] = RowLog(self._answers(label), self._session, queries)
        return self._rows[label]

    def end_round(self, label: str, number: int) -> None:
        """Records that a contender completed a round."""
        self._rows[label].close()
        self._note(_Round(self._session, label, number))

    def fail(self, label: str, failure: Failure) -> None:
        """Records that a contender failed."""
        self._note(_Failed(self._session, label, failure))

    def end(self, machine: Machine, seconds: float) -> None:
        """Records the end of all rounds."""
        self._note(_Ended(self._session, machine, seconds), to_disk=True)

    def complete(self) -> None:
        """Records that all measurements are complete."""
        self._note(_Whole(), to_disk=True)

    def close(self) -> None:
        """Closes the draft and leaves it for a later command."""
        for log in (*self._rows.values(), *([self._course] if self._course else ())):
            log.close()
        if self._lock is not None:
            os.close(self._lock)
        self._rows, self._course, self._lock = {}, None, None

    def remove(self) -> None:
        """Removes a draft that is finished or empty."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.close()

    def read(self, contender: System, queries: Sequence[str], course: Course) -> Answered | Failure:
        """The contender's answers, or the reason why it has none."""
        session, failure = course.failed.get(contender.label, (-1, None))
        if failure is not None and session == len(course.sessions) - 1:
            return failure
        rounds = course.rounds.get(contender.label, {})
        reading = _Reading(self._answers(contender.label), course.timed, queries, rounds)
        took = reading.searched
        if not rounds or took is None or len(reading.first) < len(queries):
            return Failure(kind="failed", error="Interrupted", text="the run ended before it answered every query")
        search = Search(took.build, reading.timing, took.embedding, second_stage=took.second_stage)
        retrieved = reading.retrieved or reading.first
        return Answered(contender, reading.rounds, retrieved, search, reading.compared, reading.unanswered)

    def _answers(self, label: str) -> Path:
        return self.folder / ANSWERS / f"{label}.log"

    def _note(self, record: _Course, *, to_disk: bool = False) -> None:
        if self._course is None:
            self._course = _Log(self.folder / COURSE)
        self._course.append(record)
        self._course.close(to_disk=to_disk)


class _Reading:
    """One contender's log: rankings of all processes, times of one."""

    def __init__(self, path: Path, session: int, queries: Sequence[str], whole: Mapping[int, int]) -> None:
        self.whole, timed = max(whole.values(), default=0), whole.get(session, 0)
        self.first, self.retrieved = RankedRun(), RankedRun()
        self.timing = Timing()
        self.searched: _Searched | None = None
        self.compared: Compared | None = None
        self._differing: dict[int, RankedRun] = defaultdict(RankedRun)
        self._missed: set[tuple[int, str]] = set()  # round and query
        names: list[str] = []
        for record in map(_ROW.decode, _records(path)):
            match record:
                case Compared():
                    self.compared = record
                case _Searched():
                    if record.session == session or self.searched is None or self.searched.session != session:
                        self.searched = record
                case _Asked():
                    for packed, rankings in (
                        (record.retrieved, self.retrieved),
                        (record.ranking, self._differing[record.round] if record.round else self.first),
                    ):
                        if packed is not None:
                            names += packed.names
                            rankings.add(queries[record.query], _unpack(packed, names))
                    asked = record.round, queries[record.query]
                    (self._missed.add if record.limit_ns else self._missed.discard)(asked)
                    if record.session == session and record.round < timed:
                        _note(record, self.timing)
        self.unanswered = frozenset(query for number, query in self._missed if not number and query not in self.first)
        for query in self.unanswered:
            self.first.add(query, UNANSWERED)
            if self.retrieved:
                self.retrieved.add(query, UNANSWERED)
        if self._missed:
            self.timing.unanswered = sorted({query for _, query in self._missed})
        if timed and self.searched is not None:
            self.timing.cold_embed_ns = self.searched.cold_embed_ns
            self.timing.cold_search_ns = self.searched.cold_search_ns

    @property
    def rounds(self) -> list[Mapping[str, Ranking]]:
        """All rounds. One with the same order as the first is the first."""
        return [self._round(number) for number in range(self.whole)]

    def _round(self, number: int) -> RankedRun:
        if not number:
            return self.first
        missed = {query for missed, query in self._missed if missed == number} - self.unanswered
        differing = {**self._differing.get(number, {}), **dict.fromkeys(missed, UNANSWERED)}
        if not differing:
            return self.first
        rankings = RankedRun()
        for query, ranking in self.first.items():
            rankings.add(query, differing.get(query, ranking))
        return rankings


def _note(record: _Asked, timing: Timing) -> None:
    """A total is known only if all of the work was timed."""
    if record.limit_ns:
        timing.limit_ns = record.limit_ns
    if record.search_ns or not record.limit_ns:  # else it was not reached
        timing.search_ns.append(record.search_ns)
    if record.embed_ns is not None:
        timing.embed_ns.append(record.embed_ns)
    if record.rerank_ns is not None:
        timing.rerank_ns.append(record.rerank_ns)
    if record.kept_embed is not None:
        timing.kept_embed.append(record.kept_embed)
    if record.kept_rerank is not None:
        timing.kept_rerank.append(record.kept_rerank)
    if record.timed == Timed.NOW:
        timing.total_ns.append(record.total_ns)
    elif record.timed == Timed.EARLIER:
        timing.kept_total_ns.append(record.total_ns)


@dataclass(frozen=True, slots=True)
class Drafts:
    """The drafts of a command's results; `resume` continues abandoned ones.

    `opened` are those of this process.
    """

    folder: Path
    command: str = ""
    resume: bool = True
    opened: list[Draft] = field(default_factory=list, compare=False)

    def left(self, question: str, means: str) -> Draft | None:
        """A draft of the same run, if there is one. Removes empty drafts of killed runs.

        A complete draft is used even if the code has changed.
        """
        for folder in sorted(self.folder.glob(f"*{SUFFIX}"), reverse=True):
            try:
                draft = Draft.open(folder)
            except InputError:  # being written, or none
                continue
            if not draft.has_rows:
                draft.remove()
            elif draft.head.question == question and (draft.head.means == means or draft.course.ended):
                return draft
            else:
                draft.close()
        return None


def head_of(lineup: Lineup, fingerprint: str, machine: Machine, time_hosted: int) -> DraftHead:
    """The head of a new run."""
    described, own = lineup.to_dict(), hashlib.sha256()
    for name in sorted(set(_OWN_CODE.findall(str(described)))):
        if (code := lineup.folder / name).is_file():
            own.update(code.read_bytes())
    return DraftHead(
        name=lineup.name,
        file=str((lineup.folder / lineup.file).resolve()) if lineup.file else "",
        question=_hash([described, fingerprint]),
        means=_hash([machine.versions, own.hexdigest(), time_hosted]),
        labels=[contender.label for contender in lineup.contenders],
        rounds=lineup.rounds,
        overrides=lineup.overrides,
        baseline=lineup.baseline,
        equivalent_within=lineup.equivalent_within,
    )


def _hash(content: object) -> str:
    return hashlib.sha256(msgspec.json.encode(content, order="deterministic")).hexdigest()
