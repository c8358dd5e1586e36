"""Data of the page: matrix lines, limits, and queries, small enough to embed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from msgspec.structs import replace

from bakeoff.core.printable import dollars, markdown_table
from bakeoff.evaluation.measures import Measure
from bakeoff.report.groups import MOST_LINES, RowGroup, by_model, group_rows, store_name
from bakeoff.report.matrix import earlier_timing_words
from bakeoff.report.numbers import interval, milliseconds, size
from bakeoff.report.plots import state
from bakeoff.report.score_table import (
    BEATS,
    DASH,
    INCUMBENT,
    LEADS,
    MAY_BE_BEST,
    OPEN,
    WORSE,
    Scale,
    legend,
    mark,
    own_text,
    p50,
    p95,
    search_p50,
    short_head,
)
from bakeoff.report.sections import head_words
from bakeoff.report.verdict_words import Findings, decision, no_time, score_and_price, unreliable
from bakeoff.report.words import words
from bakeoff.results.columns import INDEX, PER_MILLION, PER_THOUSAND, TOTAL, Column, judged_columns
from bakeoff.results.picks import is_advisable, price, query_price
from bakeoff.results.picks import p50 as comparable_p50
from bakeoff.results.schema import Detailed, QueryInfo, Row, Summary
from bakeoff.statistics.constants import ALPHA

SHOWN = 10  # places of each ranking shown for a query
MISSED = 20  # relevant documents whose places are shown
QUERIES = 2_000  # queries on a page
ANSWERS = 20_000  # rankings on a page; beyond, only those of the best contenders
TEXTS = 1_000_000  # document characters on a page
SHORTEST_TEXT = 80


@dataclass(frozen=True, slots=True)
class Limit:
    """A column that the reader can limit, with its unit before or after the field."""

    key: str
    name: str
    column: Column
    before: str = ""
    after: str = ""


LIMITS = (
    Limit("p50", "p50", dataclasses.replace(TOTAL, value=comparable_p50), after="ms"),
    Limit("cost", "cost", PER_MILLION, before="$", after="/M docs"),
    Limit("index", "index", INDEX, after="MB"),
)


def acting_limits(summary: Summary) -> list[Limit]:
    """The limits that can exclude some rows but not all."""
    return [limit for limit in LIMITS if len({limit.column.value(row) for row in summary.ran}) > 1]


@dataclass(frozen=True, slots=True)
class Part:
    """One figure of a cell; stores that share a line have one each."""

    text: str
    label: str = ""  # the store, if the figure is not the whole group's
    hint: str = ""


@dataclass(frozen=True, slots=True)
class PageCell:
    """The figures of a cell and its sort key."""

    parts: tuple[Part, ...]
    value: float | str | None = None

    @property
    def text(self) -> str:
        """All figures on one line."""
        return " · ".join(part.text for part in self.parts)


@dataclass(frozen=True, slots=True)
class PageColumn:
    """A column of the page's matrix; narrow screens show only `main` ones."""

    key: str
    head: str
    cell: Callable[[RowGroup], PageCell]
    is_text: bool = False
    best_is_high: bool = False
    main: bool = False


@dataclass(frozen=True, slots=True)
class PageLine:
    """Rows that score alike: verdict, figures and details."""

    group: RowGroup
    sign: str
    verdict: str
    state: str
    cells: Mapping[str, PageCell]
    scores: Sequence[Sequence[str]]
    rows: Sequence[Sequence[str]]
    settings: Sequence[RowGroup] = ()  # further lines of its model, folded under this one
    folded: int | None = None  # index of the line it is folded under
    may_be_best: int = 0  # among the folded lines


@dataclass(frozen=True, slots=True)
class PageMatrix:
    """The page's matrix."""

    columns: Sequence[PageColumn]
    lines: Sequence[PageLine]
    scale: Scale | None
    legend: str
    row_heads: Sequence[str]
    marked: bool  # whether the verdict separates rows
    constants: Sequence[str] = field(default_factory=tuple)


def page_matrix(found: Findings) -> PageMatrix:
    """Builds the matrix. Rows that score alike share a line, unless only stores are compared."""
    by_store = found.compares_stores
    groups = found.groups
    if by_store:
        groups = sorted(group_rows(found.summary.ran, {}), key=lambda group: search_p50(group.first) or math.inf)
    every, columns, constants = _columns(found, by_store=by_store), [], []
    for column in every:
        texts = {column.cell(group).text for group in groups}
        if column.main or (len(texts) > 1 and texts - {DASH}) or (len(groups) == 1 and texts - {DASH, "$0"}):
            columns.append(column)
        elif texts - {DASH, "$0"}:
            constants.append(f"{column.head} {texts.pop()}")
    marked = found.has_marks
    folds = _folds(groups)
    row_columns = [column for column in ROW_COLUMNS if any(column[1](row) != DASH for row in found.summary.ran)]
    lines = [
        PageLine(
            group=group,
            sign=mark(group, found),
            verdict=_verdict(mark(group, found), found) if marked else "",
            state=state(group, found) if marked else "",
            cells={column.key: column.cell(group) for column in columns},
            scores=_scores(group.first, found.summary),
            rows=[[column[1](row) for column in row_columns] for row in group.rows],
            settings=folds.get(at, ()),
            folded=next((place for place, under in folds.items() if group in under), None),
            may_be_best=sum(mark(other, found) == MAY_BE_BEST for other in folds.get(at, ())),
        )
        for at, group in enumerate(groups)
    ]
    return PageMatrix(
        columns=columns,
        lines=lines,
        scale=None if by_store else Scale.over(groups, found),
        legend=legend(found, groups, 400, bars=False),
        row_heads=[column[0] for column in row_columns],
        marked=marked,
        constants=constants,
    )


def _folds(groups: Sequence[RowGroup]) -> dict[int, list[RowGroup]]:
    """For long tables: each model's further lines, by the index of its first."""
    if len(groups) <= MOST_LINES:
        return {}
    places = {id(group): at for at, group in enumerate(groups)}
    return {places[id(several[0])]: several[1:] for several in by_model(groups)}


def _verdict(sign: str, found: Findings) -> str:
    if found.has_incumbent:
        return {INCUMBENT: "incumbent", BEATS: "beats it", MAY_BE_BEST: "undecided", WORSE: "worse"}.get(sign, DASH)
    return {LEADS: "leads", MAY_BE_BEST: "may be best", OPEN: "open"}.get(sign, "worse")


def _columns(found: Findings, *, by_store: bool) -> list[PageColumn]:
    """Columns in order: name, score, latency, the kind's own figures, other measures, size and price."""
    summary, decides = found.summary, found.verdict.measure
    stores = any(row.store for row in summary.ran)
    doubt = "?" if unreliable(summary.ran) else ""
    own = {column.measure for column in summary.own_columns}
    columns = [
        PageColumn("model", "Model", _name, is_text=True, main=True),
        *([PageColumn("store", "Store", _stores, is_text=True)] if stores else []),
        PageColumn(decides, found.measure, lambda group: _mean(group.first, decides, 3), best_is_high=True, main=True),
        *([PageColumn("search", f"search p50 ms{doubt}", _timed(search_p50))] if by_store else []),
        PageColumn("p50", f"p50 ms{doubt}", _timed(p50), main=any(map(p50, summary.ran))),
        *([PageColumn("p95", f"p95 ms{doubt}", _timed(p95))] if by_store else []),
    ]
    for number, one in enumerate(summary.own_columns):
        columns.append(PageColumn(f"own{number}", head_words(one.head), _own(one)))
    for measure in summary.matrix_measures:
        if measure not in {decides, *own}:
            columns.append(PageColumn(measure, short_head(found, measure), _of(measure), best_is_high=True))
    judged = judged_columns(summary)
    columns += [PageColumn(one.key, one.field, _share(one.value)) for one in judged]
    columns.append(PageColumn("index", "Index", _by_row(lambda row: row.index_bytes, size)))
    columns.append(PageColumn(PER_MILLION.key, "$ / M docs", _by_row(price, dollars)))
    columns.append(PageColumn(PER_THOUSAND.key, "$ / K queries", _by_row(query_price, dollars)))
    return columns


def _name(group: RowGroup) -> PageCell:
    return PageCell((Part(group.title),), group.name)


def _stores(group: RowGroup) -> PageCell:
    rows = group.same_name
    if len(rows) > 2:
        return PageCell(
            (Part(f"{store_name(rows[0])} +{len(rows) - 1}", hint=", ".join(group.stores)),), group.stores[0]
        )
    parts = tuple(Part(store_name(row), row.label) for row in rows if row.store)
    return PageCell(parts or (Part(DASH),), parts[0].text if parts else "")


def _mean(row: Row, measure: str, digits: int) -> PageCell:
    value = row.measures.get(measure)
    if value is None:
        return PageCell((Part(DASH),))
    ends = "" if value.low is None or value.high is None else f"95% interval {interval(value.low, value.high)}"
    return PageCell((Part(f"{value.mean:.{digits}f}", hint=ends),), value.mean)


def _of(measure: str) -> Callable[[RowGroup], PageCell]:
    return lambda group: _mean(group.first, measure, 2)


def _own(column: Any) -> Callable[[RowGroup], PageCell]:
    return lambda group: PageCell((Part(own_text(column, group.first.label)),), column.values.get(group.first.label))


def _share(value: Callable[[Row], float | None]) -> Callable[[RowGroup], PageCell]:
    def cell(group: RowGroup) -> PageCell:
        share = value(group.first)
        return PageCell((Part(DASH if share is None else f"{share:.0%}"),), share)

    return cell


def _by_row(value: Callable[[Row], float | None], form: Callable[[float], str]) -> Callable[[RowGroup], PageCell]:
    """One figure per store; a range for three or more, and one figure if all are equal."""

    def cell(group: RowGroup) -> PageCell:
        known = [(row, figure) for row in group.same_name if (figure := value(row)) is not None]
        if not known:
            return PageCell((Part(DASH),))
        texts = [form(figure) for _, figure in known]
        lowest = min(figure for _, figure in known)
        if len(set(texts)) == 1:
            return PageCell((Part(texts[0], hint=_doubt(known[0][0])),), lowest)
        if len(known) > 2:
            ends = f"{form(lowest)}{DASH}{form(max(figure for _, figure in known))}"
            return PageCell((Part(ends),), lowest)
        return PageCell(tuple(Part(form(figure), row.label, _doubt(row)) for row, figure in known), lowest)

    return cell


def _timed(value: Callable[[Row], float | None]) -> Callable[[RowGroup], PageCell]:
    return _by_row(value, milliseconds)


def _doubt(row: Row) -> str:
    """Why a row's times are unreliable."""
    if row.latency is None:
        return ""
    said = [words(doubt) for doubt in row.latency.doubts]
    return "; ".join([*said, *([earlier_timing_words(row.latency.kept)] if row.latency.kept else [])])


def _scores(row: Row, summary: Summary) -> list[list[str]]:
    """Every measure of a row with its interval, random and oracle scores, and target."""
    scale = {other.label: other.measures for other in summary.rows if other.row_type == "baseline"}
    lines = []
    for measure in dict.fromkeys([summary.verdict.measure, *summary.matrix_measures]):
        if (value := row.measures.get(measure)) is None:
            continue
        ends = DASH if value.low is None or value.high is None else interval(value.low, value.high)
        ground = [f"{scale[name][measure].mean:.3f}" if measure in scale.get(name, {}) else DASH
                  for name in ("random", "oracle")]  # fmt: skip
        target = DASH
        if measure in row.targets:
            target = f"{summary.task.targets.get(measure, 0):g}, {'met' if row.targets[measure] else 'missed'}"
        lines.append([summary.label(measure), f"{value.mean:.3f}", ends, *ground, target])
    return lines


def _ms(value: float | None) -> str:
    return DASH if value is None else milliseconds(value)


def _usd(value: float | None) -> str:
    return DASH if value is None else dollars(value)


RowColumn = tuple[str, Callable[[Row], str]]
ROW_COLUMNS: tuple[RowColumn, ...] = (
    ("Contender", lambda row: row.label),
    ("embed p50 ms", lambda row: _ms(row.latency.embed.p50 if row.latency else None)),
    ("search p50 ms", lambda row: _ms(search_p50(row))),
    ("rerank p50 ms", lambda row: _ms(row.latency.rerank.p50 if row.latency and row.latency.rerank else None)),
    ("total p50 ms", lambda row: _ms(p50(row))),
    ("total p95 ms", lambda row: _ms(p95(row))),
    ("index", lambda row: DASH if row.index_bytes is None else size(row.index_bytes)),
    ("$ / M docs", lambda row: _usd(price(row))),
    ("$ / K queries", lambda row: _usd(query_price(row))),
    ("timing", lambda row: _doubt(row) or DASH),
)


def pull_request_text(found: Findings, matrix: PageMatrix) -> str:
    """The decision and the matrix, short enough for a comment on a pull request."""
    said = decision(found)
    heads = [column.head for column in matrix.columns]
    rows = [
        [f"{line.sign} {line.cells[column.key].text}".strip() if at == 0 else line.cells[column.key].text
         for at, column in enumerate(matrix.columns)]
        for line in matrix.lines if line.folded is None
    ]  # fmt: skip
    figures = [at for at, column in enumerate(matrix.columns) if not column.is_text]
    text = " ".join(part for part in (said.advice, said.unsettled, said.meaning) if part)
    return "\n".join([f"**{said.headline}** {text}", "", *markdown_table(heads, rows, figures=figures), "",
                      matrix.legend, ""])  # fmt: skip


def shown_contenders(summary: Summary, detailed: Detailed) -> Detailed:
    """The queries and contenders that fit on a page: the first queries, the best contenders."""
    if len(detailed.queries) > QUERIES:
        asked = dict(islice(detailed.queries.items(), QUERIES))
        kept = [
            replace(one, queries={query: one.queries[query] for query in asked if query in one.queries})
            for one in detailed.contenders
        ]
        detailed = replace(detailed, queries=asked, contenders=kept)
    most = max(2, ANSWERS // max(len(detailed.queries), 1))
    if len(detailed.contenders) <= most:
        return detailed
    means = {row.label: row.measures[summary.verdict.measure].mean for row in summary.ran}
    best = set(sorted(means, key=lambda label: -means[label])[:most])
    return replace(detailed, contenders=[one for one in detailed.contenders if one.label in best])


def payload(summary: Summary, detailed: Detailed) -> dict[str, Any]:
    """The rows for the limits, and the queries with what each contender returned."""
    measure = Measure.parse(summary.verdict.measure)
    return {
        "measure": measure.label,
        "best": summary.verdict.leader,
        "best_set": summary.verdict.best_set,
        "incumbent": Findings(summary).has_incumbent,
        "alpha": ALPHA,
        "rows": _rows(summary),
        "pairs": _pairs(summary),
        "limits": [limit.key for limit in acting_limits(summary)],
    } | _queries(summary, detailed, measure)


def _rows(summary: Summary) -> list[dict[str, Any]]:
    """Every contender that ran, in line-up order, with the figures that limits use."""
    found, standings = Findings(summary), summary.verdict.standings
    return [
        {
            "label": row.label,
            "alike": (standings[row.label].alike if row.label in standings else "") or row.label,
            "name": found.name(row.label),
            "mean": row.measures[summary.verdict.measure].mean,
            **{limit.key: limit.column.value(row) for limit in LIMITS},
            "local": row.local,
            "advisable": is_advisable(row, summary.verdict),
            "price": score_and_price(summary, row),
            **({"untimed": no_time(row)} if comparable_p50(row) is None else {}),
        }
        for row in summary.ran
    ]


def _pairs(summary: Summary) -> list[dict[str, Any]]:
    return [
        {
            "a": pair.a,
            "b": pair.b,
            "difference": _rounded(pair.difference),
            "low": _rounded(pair.low),
            "high": _rounded(pair.high),
            "p": _rounded(pair.p_holm),
            "wins": pair.wins,
            "ties": pair.ties,
            "losses": pair.losses,
        }
        for pair in summary.verdict.pairs
    ]


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.6g}")


def _queries(summary: Summary, detailed: Detailed, measure: Measure) -> dict[str, Any]:
    depth = min(measure.k or SHOWN, SHOWN)
    numbers: dict[str, int] = {}

    def number(document: str) -> int:
        return numbers.setdefault(document, len(numbers))

    queries = []
    for query, info in detailed.queries.items():
        answers = [contender.queries.get(query) for contender in detailed.contenders]
        wanted = _wanted(info, summary.task.rel)
        places = [
            {document: place for place, document in enumerate(answer.ids, 1)} if answer else {} for answer in answers
        ]
        queries.append(
            {
                "id": query,
                "text": f"{info.text} (as of {info.as_of})" if info.as_of else info.text,
                "category": info.category,
                "values": [
                    round(answer.measures.get(summary.verdict.measure, 0.0), 4) if answer else 0 for answer in answers
                ],
                "top": [[number(document) for document in answer.ids[:depth]] if answer else [] for answer in answers],
                "grades": [answer.grades[:depth] if answer else [] for answer in answers],
                "wanted": [
                    [number(document), info.grades[document], [ranked.get(document, 0) for ranked in places]]
                    for document in wanted[:MISSED]
                ],
                "relevant": len(wanted),
            }
        )
    length = TEXTS // max(len(numbers), 1)
    return {
        "contenders": [contender.label for contender in detailed.contenders],
        "queries": queries,
        "titles": [detailed.titles.get(document) or document for document in numbers],
        "texts": [detailed.texts.get(document, "")[:length] for document in numbers] if length >= SHORTEST_TEXT else [],
        "highest": max((grade for info in detailed.queries.values() for grade in info.grades.values()), default=1),
        "depth": depth,
        "asked": summary.lineup["depth"],
    }


def _wanted(info: QueryInfo, rel: int) -> list[str]:
    """The relevant documents, best grade first."""
    relevant = [document for document, grade in info.grades.items() if grade >= rel]
    return sorted(relevant, key=lambda document: (-info.grades[document], document))
