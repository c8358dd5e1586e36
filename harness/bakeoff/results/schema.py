"""What a run leaves behind: typed files, written whole or not at all, from which every report is made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
from bakeoff_providers.errors import InputError
from bakeoff_providers.secrets import without_secrets

from bakeoff.core.figures import Loss, PairedDifference, Percentiles, Section, Timing
from bakeoff.core.files import read_json, write_atomic, write_folder, write_parts
from bakeoff.core.machine import Machine
from bakeoff.core.progress import steps
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Drawn
from bakeoff.results.published import published

AGAIN = "the file was changed after the run: run it again"
SUMMARY, DETAILED, QRELS = "metrics_summary.json", "detailed_results.json", "judgments.qrels"


class Value(msgspec.Struct, frozen=True):
    """A mean over queries with its 95% interval; the oracle and random rows have none."""

    mean: float
    low: float | None = None
    high: float | None = None


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a row's rankings was judged, and its score if the rest were irrelevant, or all relevant."""

    judged: float
    irrelevant: float
    relevant: float


class PossibleWinner(msgspec.Struct, frozen=True, kw_only=True):
    """A contender that would lead if so many unjudged documents had the highest grade."""

    challenger: str
    documents: int


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A contender against the best one: how often it would win, what choosing it would cost, what can be said of it.

    `relation` is the contender's to the best; `p_equivalent` is known where a margin was given.
    """

    probability: float
    regret: float
    relation: Literal["best", "same", "better", "worse", "equivalent", "undecided"]
    p_equivalent: float | None = None


class Cost(msgspec.Struct, kw_only=True, frozen=True):
    """What a row's vectors cost, now or when they were first bought, and a million such documents would.

    `usd_per_thousand_queries` is for embedding and reranking.
    """

    usd: float | None = None
    usd_per_million_documents: float | None = None
    usd_per_thousand_queries: float | None = None
    tokens: float = 0.0
    tokens_estimated: bool = False
    requests: int = 0
    retries: int = 0
    cached: int = 0
    truncated: int = 0
    price: str = ""


class Kept(msgspec.Struct, kw_only=True, frozen=True):
    """When (dates, UTC) and on which machines the calls were timed whose vectors or scores came from the cache."""

    stages: list[Literal["embed", "rerank"]]
    first: str
    last: str
    machines: list[str]

    @property
    def when(self) -> str:
        """The date, or from which to which."""
        return self.first if self.first == self.last else f"{self.first} to {self.last}"


class Latency(msgspec.Struct, kw_only=True, frozen=True):
    """Milliseconds, embedding and search apart; `doubts` say why they can't be trusted.

    `kept` says that embedding, or reranking, was timed in earlier runs: such a row is compared with no other's time.
    """

    embed: Percentiles
    search: Percentiles
    total: Percentiles
    cold_embed_ms: float | None = None
    cold_search_ms: float | None = None
    rerank: Percentiles | None = None
    doubts: list[str] = []
    kept: Kept | None = None


class Row(msgspec.Struct, kw_only=True, frozen=True):
    """One row of the matrix. `not_run` holds the reason where there is nothing else to say."""

    label: str
    row_type: str
    provider: str = ""
    model: str = ""
    store: str = ""
    local: bool = False
    not_run: str | None = None
    measures: dict[str, Value] = {}
    categories: dict[str, dict[str, float]] = {}
    ties: dict[str, bool] = {}
    bounds: dict[str, Bounds] = {}
    targets: dict[str, bool] = {}
    latency: Latency | None = None
    cost: Cost | None = None
    dimensions: int | None = None
    vector_bytes: float | None = None
    index_bytes: int | None = None
    loss: Loss | None = None
    build_seconds: float | None = None
    stable: bool | None = None
    cut: tuple[int, int] | None = None  # about how many texts its model read in part, of how many
    warnings: list[str] = []

    @property
    def ran(self) -> bool:
        """Whether this is a contender that answered."""
        return self.not_run is None and self.row_type != "baseline"


class TaskInfo(msgspec.Struct, kw_only=True, frozen=True):
    """Enough of the task to know what was asked, and whether two results may be compared."""

    name: str
    kind: str
    fingerprint: str
    documents: int
    chunks: int
    queries: int
    rel: int
    drawn_from: int = 0  # how many documents there were, where these are a sample
    categories: list[str] = []
    targets: dict[str, float] = {}
    without_relevant: list[str] = []
    weighting: str | msgspec.UnsetType = msgspec.UNSET  # what means are taken over, where queries do not count alike
    about: str = ""  # what the task is, where it says so


class Recommendation(msgspec.Struct, frozen=True, kw_only=True):
    """What to choose for one use, and why; no label where nothing will do."""

    use: str
    label: str | None
    why: str


class Verdict(msgspec.Struct, kw_only=True, frozen=True):
    """Who wins, who ties, how sure, and what this many queries can't show."""

    measure: str
    best: str | None
    tie_group: list[str]
    pairs: list[PairedDifference]
    smallest_detectable: float | None
    sentences: list[str]
    agreement: dict[str, float] = {}
    turning: list[PossibleWinner] = []
    standings: dict[str, Standing] = {}
    equivalent_within: float | None = None
    recommendations: list[Recommendation] = []


class Summary(msgspec.Struct, kw_only=True, frozen=True):
    """`metrics_summary.json`."""

    name: str
    started: str
    seconds: float
    lineup: dict[str, Any]
    task: TaskInfo
    machine: Machine
    matrix_measures: list[str]
    rows: list[Row]
    verdict: Verdict
    labels: dict[str, str] = {}  # of measures, as tables head them
    warnings: list[str] = []
    command: str = ""
    trec_eval: list[str] = []
    figures: dict[str, Any] = {}
    sections: list[Section] = []

    @property
    def ran(self) -> list[Row]:
        """The contenders that answered, in the order of the line-up."""
        return [row for row in self.rows if row.ran]

    def label(self, measure: str) -> str:
        """What a table calls a measure."""
        return self.labels.get(measure, measure)


class QueryResult(msgspec.Struct, kw_only=True, frozen=True):
    """One query of one contender: what came back, how it was graded, and what it scored.

    A measure of dates is absent where the query is not time-bound; in a baseline it is null there.
    """

    ids: list[str]
    scores: list[float]
    grades: list[int | None]
    measures: dict[str, float]
    matched: int | None = None  # places behind it hold what matched nothing, by id

    @property
    def ranking(self) -> Ranking:
        """The answer as it was given, with what it was filled up with."""
        return Ranking(tuple(self.ids), tuple(self.scores), self.matched)


class ContenderResult(msgspec.Struct, kw_only=True, frozen=True):
    """One contender: a result for each query, and the raw samples."""

    label: str
    queries: dict[str, QueryResult]
    timing: Timing


class QueryInfo(msgspec.Struct, kw_only=True, frozen=True):
    """A query as the reports show it, with every judged document's grade."""

    text: str
    category: str
    grades: dict[str, int]
    drawn: Drawn | msgspec.UnsetType = msgspec.UNSET
    as_of: str | msgspec.UnsetType = msgspec.UNSET  # the day of a time-bound query


class Detailed(msgspec.Struct, kw_only=True, frozen=True):
    """`detailed_results.json`."""

    queries: dict[str, QueryInfo]
    titles: dict[str, str]
    contenders: list[ContenderResult]
    baselines: dict[str, dict[str, list[float | None]]]


Content = str | bytes | Iterator[str] | Iterator[bytes]  # of a file; the parts of a long one


def write(folder: Path, summary: Summary, detailed: Detailed, files: Mapping[str, Content]) -> Path:
    """All files of one result, in a folder that appears only when it is complete; says under which name."""

    def fill(draft: Path) -> None:
        write_atomic(draft / SUMMARY, msgspec.json.format(published(_shown(summary)), indent=2) + b"\n")
        write_atomic(draft / DETAILED, published(detailed))
        with steps("result: files written", len(files)) as advance:
            for name, content in files.items():
                write_parts(draft / name, [content] if isinstance(content, str | bytes) else content)
                advance(1)

    return write_folder(folder, fill)


def _shown(summary: Summary) -> Summary:
    """What came from outside may hold a password that no variable names."""
    return msgspec.structs.replace(
        summary,
        command=without_secrets(summary.command),
        warnings=[without_secrets(warning) for warning in summary.warnings],
    )


def read_summary(folder: Path) -> Summary:
    """The summary of a result."""
    return read_json(_result(folder) / SUMMARY, Summary)


def read_detailed(folder: Path) -> Detailed:
    """Every query of every contender."""
    file = _result(folder) / DETAILED
    detailed = read_json(file, Detailed)
    for contender in detailed.contenders:
        if contender.queries.keys() != detailed.queries.keys():
            raise InputError("does not answer the result's queries", file=file, place=contender.label, remedy=AGAIN)
        for query, answer in contender.queries.items():
            if not len(answer.ids) == len(answer.scores) == len(answer.grades):
                raise InputError("ids, scores and grades differ in number", file=file, place=query, remedy=AGAIN)
    return detailed


def _result(folder: Path) -> Path:
    if not (folder / SUMMARY).is_file():
        raise InputError(
            f"is not a result (no {SUMMARY})", file=folder, remedy="name a folder under results/, or `latest`"
        )
    return folder


def find(folder: Path) -> list[Path]:
    """The results in a folder, oldest first; a folder that is one itself is the only one."""
    if (folder / SUMMARY).is_file():
        return [folder]
    return sorted(path.parent for path in folder.glob(f"[!.]*/{SUMMARY}"))


class _Started(msgspec.Struct):
    started: str


def newest(folder: Path, but: Path | None = None) -> Path | None:
    """The result that was started last, another one than `but`; names need not be times."""
    results = [path for path in find(folder) if but is None or path.resolve() != but.resolve()]
    return max(results, key=lambda path: read_json(path / SUMMARY, _Started).started, default=None)
