"""The files of a result as types. They are written atomically, and every report is made from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from bakeoff_providers.errors import InputError
from bakeoff_providers.prices import Price
from bakeoff_providers.secrets import without_secrets

from bakeoff.core.facts import Fact, Failure, Public, Section, fact
from bakeoff.core.figures import STOP_WITHIN, Loss, OwnColumn, PairedDifference, Percentiles, Timing
from bakeoff.core.files import decode_json, read_json, write_atomic, write_folder, write_parts
from bakeoff.core.machine import Machine
from bakeoff.core.progress import steps
from bakeoff.core.task import Drawn
from bakeoff.results.published import published

if TYPE_CHECKING:
    from bakeoff.core.ranking import Ranking

AGAIN = "the file was changed after the run: run it again"
FORMAT = 2  # of the summary; one without a number is of the first format, and has sentences for a verdict
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
    """A contender that would lead if that many unjudged documents had the highest grade."""

    challenger: Public[str]
    documents: int


class Against(msgspec.Struct, frozen=True, kw_only=True):
    """A row against the incumbent. The bounds hold for all rows at once, each with 95% confidence; None is no bound."""

    difference: float  # its mean minus the incumbent's
    low: float | None
    high: float | None
    p_better: float
    p_worse: float
    relation: Literal["better", "worse", "undecided"]
    open: bool = False  # documents without a grade could put it above the incumbent


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """A row's standing by the confidence set of the best."""

    mark: Literal["leads", "may be best", "worse"]
    p: float  # of its being the best
    behind_least: float  # the true best's mean minus its own, each bound with 95% confidence
    behind_most: float | None  # None: no bound
    open: bool = False  # documents without a grade could put it first
    beats_random: bool | None = None  # None where there is no random row
    against: Against | None = None  # None for the incumbent, and where there is none
    equivalent: bool | None = None  # to the leader within `Verdict.equivalent_within`; None without a margin
    p_equivalent: float | None = None
    alike: Public[str] = ""  # the first row of the line-up that scores the same on every query in every shown measure


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """What these queries can show about the leader and its nearest rival."""

    rival: Public[str]
    differing: int  # queries, or clusters of them, on which any two distinct rows differ
    unnoticed_below: float | None  # rounded as it may be said; None: nothing can be said
    gap: float  # that planning is for
    queries_for_gap: tuple[int, int] | None  # in all, from and to; where queries are in clusters, so many of these


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """Which look at this question this is. The verdict's bounds allow for earlier looks."""

    number: int
    queries: list[int]  # at each look: of a plan at all of them, otherwise at those so far
    planned: bool


class Pick(msgspec.Struct, frozen=True, kw_only=True):
    """One pick with its price: how much less it scores than the best row, at least and at most."""

    use: Literal["best", "faster", "fastest", "cheaper", "within limits", "as good"]
    label: Public[str]
    p50_ms: float | None
    times_faster: float | None  # than the best pick
    usd_per_million_documents: float | None
    usd_per_thousand_queries: float | None
    less_least: float
    less_most: float | None
    local: bool


Situation = Literal[
    "nothing ran",
    "not comparable",  # `without_verdict` says why
    "one row",
    "incumbent did not run",
    "nothing beats random",
    "only a baseline leads",
    "all alike",
    "incumbent beaten",
    "incumbent kept",
    "open until graded",
    "too few differ",
    "clear",
    "within margin",
    "not settled",
    "older format",  # stored sentences without the figures from which a verdict could be made
]
Action = Literal["take and stop", "take for now", "switch", "keep", "do not choose", "choose by speed", "none"]


class Verdict(msgspec.Struct, kw_only=True, frozen=True):
    """The verdict as facts: which rows may be best, what to do, and what these queries can't show."""

    measure: Public[str]
    leader: Public[str | None]  # has the highest mean
    best_set: Public[list[str]]  # with 95% confidence the best row is one of these; by mean
    situation: Situation
    action: Action
    take: Public[str | None]  # what to take, switch to or keep
    stop_within: float = STOP_WITHIN  # no other row is better by more: take and stop
    baseline: Public[str] = ""  # the incumbent
    standings: dict[str, Standing] = {}
    outlook: Outlook | None = None
    look: Look | None = None  # None at a first look that nobody planned
    picks: list[Pick] = []
    pairs: list[PairedDifference] = []
    pairs_tested: int = 0
    agreement: dict[str, float] = {}
    category_sizes: dict[str, int] = {}  # queries of each category
    turning: list[PossibleWinner] = []
    equivalent_within: float | None = None
    queries_for_equivalence: int | None = None  # that show the closest row to be as good as the leader, if it is
    without_verdict: Public[str] = ""  # id of the reason why rows can't be compared
    sentences: list[str] | msgspec.UnsetType = msgspec.UNSET  # of the older format; never written

    @property
    def decided(self) -> bool:
        """Whether a plan of looks stops here: a row to take or switch to, or nothing that could gain what matters."""
        if self.situation == "incumbent kept":
            highest = [standing.against.high for standing in self.standings.values() if standing.against]
            return all(high is not None and high <= self.stop_within for high in highest)
        return self.action in ("take and stop", "switch")


class Cost(msgspec.Struct, kw_only=True, frozen=True):
    """The cost of a row's vectors, now or when first paid for, and of a million such documents.

    `usd_paid` is the cost of this run's requests, including unusable answers.
    `usd_per_thousand_queries` is for embedding and reranking.
    """

    usd: float | None = None
    usd_paid: float | None = None
    usd_per_million_documents: float | None = None
    usd_per_thousand_queries: float | None = None
    tokens: float = 0.0
    tokens_estimated: bool = False
    requests: int = 0
    retries: int = 0
    cached: int = 0
    truncated: int = 0
    list_price: Price | None = None


class Kept(msgspec.Struct, kw_only=True, frozen=True):
    """Dates (UTC) and machines of the timings of cached vectors or scores."""

    stages: list[Literal["embed", "rerank"]]
    first: str
    last: str
    machines: list[str]

    @property
    def when(self) -> str:
        """The date, or from which to which."""
        return self.first if self.first == self.last else f"{self.first} to {self.last}"


class Latency(msgspec.Struct, kw_only=True, frozen=True):
    """Milliseconds, with embedding and search apart; `doubts` are reasons why they are unreliable.

    `kept`: embedding or reranking was timed in earlier runs, so the row's time is not compared with others.
    """

    embed: Percentiles
    search: Percentiles
    total: Percentiles
    cold_embed_ms: float | None = None
    cold_search_ms: float | None = None
    rerank: Percentiles | None = None
    doubts: Sequence[Fact] = ()
    kept: Kept | None = None


class Row(msgspec.Struct, kw_only=True, frozen=True):
    """One row of the matrix. A row that did not run has `not_run` and no figures."""

    label: Public[str]
    row_type: Public[str]
    provider: Public[str] = ""
    model: Public[str] = ""
    store: Public[str] = ""
    local: bool = False
    baseline: bool = False  # shows what no model is needed for; never advised
    not_run: Failure | None = None
    measures: dict[str, Value] = {}
    categories: dict[str, dict[str, float]] = {}
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
    answered_as: Public[list[str]] = []  # the models' names in services' answers of this run
    cut: tuple[int, int] | None = None  # about how many texts its model read in part, of how many
    warnings: list[Fact] = []

    @property
    def ran(self) -> bool:
        """Whether this contender ran."""
        return self.not_run is None and self.row_type != "baseline"


class TaskInfo(msgspec.Struct, kw_only=True, frozen=True):
    """The task's description, and what decides whether two results are comparable."""

    name: Public[str]
    kind: Public[str]
    fingerprint: Public[str]
    documents: int
    chunks: int
    queries: int
    rel: int
    clusters: int = 0  # how many needs the queries are about, where several ask for the same thing
    drawn_from: int = 0  # how many documents there were, where these are a sample
    categories: Public[list[str]] = []
    targets: dict[str, float] = {}
    without_relevant: Public[list[str]] = []
    weighting: Public[str | msgspec.UnsetType] = msgspec.UNSET  # "traffic" where queries do not count alike
    about: str = ""  # what the task is, where it says so
    unit: Public[str] = "query"  # what a query is called, and a document
    item: Public[str] = "document"
    reference: Public[str] = ""  # the model whose neighbours are the truth


class Summary(msgspec.Struct, kw_only=True, frozen=True):
    """`metrics_summary.json`. Results without `format` held sentences, which are quoted."""

    name: Public[str]
    started: Public[str]
    seconds: float
    lineup: dict[str, Any]
    task: TaskInfo
    machine: Machine
    matrix_measures: Public[list[str]]
    rows: list[Row]
    verdict: Verdict
    format: int = FORMAT
    labels: Public[dict[str, str]] = {}  # of measures, as tables head them
    diagnostic: Public[list[str]] = []  # measures by which no row is better than another
    warnings: list[Fact] = []
    command: str = ""
    trec_eval: list[str] = []
    figures: Public[dict[str, Any]] = {}
    own_columns: list[OwnColumn] = []  # of the kind of task
    sections: list[Section] = []

    @property
    def ran(self) -> list[Row]:
        """The contenders that ran, in the order of the line-up."""
        return [row for row in self.rows if row.ran]

    def row(self, label: str) -> Row:
        """The row with this label."""
        return next(row for row in self.rows if row.label == label)

    def label(self, measure: str) -> str:
        """A measure's name in tables."""
        return self.labels.get(measure, measure)


class QueryResult(msgspec.Struct, kw_only=True, frozen=True):
    """One query of one contender: its ranking, grades and scores.

    If the query is not time-bound, measures of dates are absent, or null in a baseline.
    """

    ids: Public[list[str]]
    scores: list[float]
    grades: list[int | None]
    measures: dict[str, float]
    matched: int | None = None  # places behind it hold what matched nothing, by id

    @property
    def ranking(self) -> Ranking:
        """The ranking, including its padding."""
        from bakeoff.core.ranking import Ranking  # here because results are read without numpy

        return Ranking(tuple(self.ids), tuple(self.scores), self.matched)


class ContenderResult(msgspec.Struct, kw_only=True, frozen=True):
    """One contender: a result for each query, and the raw samples."""

    label: Public[str]
    queries: dict[str, QueryResult]
    timing: Timing


class QueryInfo(msgspec.Struct, kw_only=True, frozen=True):
    """A query as the reports show it, with every judged document's grade."""

    text: str
    category: Public[str]
    grades: dict[str, int]
    drawn: Drawn | msgspec.UnsetType = msgspec.UNSET
    cluster: str | msgspec.UnsetType = msgspec.UNSET  # what queries share that ask for the same thing
    as_of: str | msgspec.UnsetType = msgspec.UNSET  # the day of a time-bound query
    look: int | msgspec.UnsetType = msgspec.UNSET  # at which it joined, where nobody planned looks and there were more


class Detailed(msgspec.Struct, kw_only=True, frozen=True):
    """`detailed_results.json`."""

    queries: dict[str, QueryInfo]
    titles: dict[str, str]
    contenders: list[ContenderResult]
    baselines: dict[str, dict[str, list[float | None]]]
    texts: dict[str, str] = {}  # the beginning of documents that a page may show; absent in older results


Content = str | bytes | Iterator[str] | Iterator[bytes]  # of a file; the parts of a long one


def write(folder: Path, summary: Summary, detailed: Detailed, files: Mapping[str, Content]) -> Path:
    """Writes all files of a result into a folder that appears when complete, and returns its path.

    A file that can't be made is left out, and the summary records it.
    """

    def fill(draft: Path) -> None:
        lost: list[Fact] = []
        with steps("result: files written", len(files)) as advance:
            for name, content in files.items():
                try:
                    write_parts(draft / name, [content] if isinstance(content, str | bytes) else content)
                except Exception as error:
                    if isinstance(error, OSError) or isinstance(error.__cause__, OSError):  # the disk
                        raise
                    lost.append(fact("not_made", part=name, reason=f"{type(error).__name__}: {error}"))
                advance(1)
        write_atomic(draft / DETAILED, published(detailed))
        whole = msgspec.structs.replace(summary, warnings=[*summary.warnings, *lost])
        write_atomic(draft / SUMMARY, msgspec.json.format(published(_strip_secrets(whole)), indent=2) + b"\n")

    return write_folder(folder, fill)


def _strip_secrets(summary: Summary) -> Summary:
    """Removes secrets from addresses, which no variable names."""
    return msgspec.structs.replace(
        summary,
        command=without_secrets(summary.command),
        warnings=[_without_secrets(warning) for warning in summary.warnings],
    )


def _without_secrets(warning: Fact) -> Fact:
    safe = {
        name: without_secrets(value) if isinstance(value, str) else value for name, value in warning.arguments.items()
    }
    return Fact(warning.id, safe)


def read_summary(folder: Path) -> Summary:
    """Reads the summary of a result. The older format has sentences instead of a verdict."""
    return decode_json(_result(folder) / SUMMARY, _decode_summary, Summary)


class _Format(msgspec.Struct):
    format: int = 1


def _decode_summary(data: bytes | bytearray) -> Summary:
    number = msgspec.json.decode(data, type=_Format).format
    if number > FORMAT:
        raise msgspec.ValidationError(f"format {number} is of a later version of Bakeoff; this one reads {FORMAT}")
    if number == 1:
        from bakeoff.results.older_format import read_older

        return read_older(data)
    return msgspec.json.decode(data, type=Summary)


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
    """The results in a folder, oldest first, or the folder itself if it is one."""
    if (folder / SUMMARY).is_file():
        return [folder]
    return sorted(path.parent for path in folder.glob(f"[!.]*/{SUMMARY}"))


class _Started(msgspec.Struct):
    started: str


def newest(folder: Path, but: Path | None = None) -> Path | None:
    """The latest result other than `but`."""
    results = [path for path in find(folder) if but is None or path.resolve() != but.resolve()]
    return max(results, key=lambda path: read_json(path / SUMMARY, _Started).started, default=None)
