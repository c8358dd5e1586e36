"""Computes the files of a result from an outcome: every figure that reports show."""

from __future__ import annotations

import logging
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
from msgspec import UNSET
from numpy.typing import NDArray

from bakeoff.core.arrays import Values
from bakeoff.core.facts import Fact, Section, TableColumn, column, fact
from bakeoff.core.figures import Timing
from bakeoff.core.progress import steps
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Document, Task, document_ids
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.measures.base import options_of
from bakeoff.evaluation.unjudged import winner_changing_grades
from bakeoff.results.all_scores import AllQueries, AllScores
from bakeoff.results.looks import QuestionLooks, planned_looks
from bakeoff.results.rows import RowMaker
from bakeoff.results.schema import (
    ContenderResult,
    Detailed,
    PossibleWinner,
    QueryInfo,
    QueryResult,
    Row,
    Summary,
    TaskInfo,
)
from bakeoff.results.unjudged import possible_winners, unjudged_sections
from bakeoff.results.verdict import VerdictQuestion, decide, leader_of, not_comparable
from bakeoff.running.runner import Outcome
from bakeoff.running.stages import Scored
from bakeoff.statistics.averaging import Averaging, task_averaging
from bakeoff.systems.base import NotRun
from bakeoff.systems.failures import Additions, Part, failure_of, reason_of
from bakeoff.tasks.kinds import TASK_KINDS

log = logging.getLogger(__name__)

LANGUAGE_KEYS = ("language", "lang")
LENGTHS = ((1, 3), (4, 8), (9, 16), (17, None))  # words of a query
FEWEST = 10  # queries in a group: fewer say nothing


def by_language(task: Task) -> list[str]:
    """The language of each query's relevant documents; "" if there is none or several."""
    if not any(key in next(iter(task.documents)).metadata for key in LANGUAGE_KEYS):
        return [""] * len(task.queries)  # a large corpus is not read for nothing
    languages = {
        document.id: str(next((document.metadata[key] for key in LANGUAGE_KEYS if key in document.metadata), ""))
        for document in task.documents
    }
    of_relevant = [
        {languages[document] for document, grade in task.judgments.get(query.id, {}).items() if grade >= task.rel}
        for query in task.queries
    ]
    return [next(iter(names)) if len(names) == 1 else "" for names in of_relevant]


def by_length(task: Task) -> list[int | None]:
    """The length band of each query."""
    counts = [len(query.text.split()) for query in task.queries]
    return [
        next((band for band, (low, high) in enumerate(LENGTHS) if low <= count <= (high or count)), None)
        for count in counts
    ]


def breakdown_sections(
    task: Task, scores: Mapping[str, Values], measure: Measure, averaging: Averaging
) -> list[Section]:
    """A table for each grouping of queries with at least two groups of ten."""
    languages, lengths = np.array(by_language(task)), np.array(by_length(task))
    by_name = [(name, languages == name) for name in sorted(set(languages.tolist())) if name]
    by_band = [(band, lengths == number) for number, band in enumerate(LENGTHS)]
    groupings: dict[str, list[tuple[Fact, NDArray[np.bool_]]]] = {
        "by_language": [(fact("language", name=name, queries=int(mask.sum())), mask) for name, mask in by_name],
        "by_length": [
            (fact("words", low=low, high=high, queries=int(mask.sum())), mask) for (low, high), mask in by_band
        ],
    }
    sections = []
    for title, groups in groupings.items():
        kept = [(head, mask) for head, mask in groups if mask.sum() >= FEWEST]
        if len(kept) < 2:
            continue
        sections.append(
            Section(
                title=Fact(title, {"measure": measure.label}),
                head=[column("contender"), *(TableColumn(head=head, form="fixed") for head, _ in kept)],
                rows=[
                    [label, *(measure.figure(averaging.mean(values, mask)) for _, mask in kept)]
                    for label, values in scores.items()
                ],
                notes=[fact("fewest_of_a_group", queries=FEWEST)],
            )
        )
    return sections


QRELS_FILE, RUN_FILE = "judgments.qrels", "runs/{}.trec"


def trec_commands(task: Task, measures: Sequence[Measure], depth: int, labels: Sequence[str]) -> list[str]:
    """trec_eval commands, one per threshold and cut-off; none if a kind scores in its own way.

    They use the first contender's run file.
    """
    if not labels or TASK_KINDS.get(task.kind).scores_itself:
        return []
    commands: dict[tuple[int, int | None], list[str]] = {}
    for measure in measures:
        if (name := _name(measure, depth)) is not None:
            rel = measure.options.get("rel") or task.rel
            cut = measure.k if measure.k and measure.trec_cut_name is None else None  # mrr@10 is -M 10 -m recip_rank
            commands.setdefault((rel, cut), []).append(name)
    files = f"{QRELS_FILE} {shlex.quote(RUN_FILE.format(labels[0]))}"
    options = {(rel, cut): f"-l {rel}" + (f" -M {cut}" if cut else "") for rel, cut in commands}
    return [
        f"trec_eval -c {options[key]} {' '.join(f'-m {name}' for name in names)} {files}"
        for key, names in commands.items()
    ]


def _name(measure: Measure, depth: int) -> str | None:
    """A measure's name in trec_eval; None if it has no equivalent."""
    defaults = options_of(type(measure))
    if any(value != defaults[option] for option, value in measure.options.items() if option != "rel"):
        return None
    if measure.trec_cut_name and (measure.k or not measure.trec_name):
        return f"{measure.trec_cut_name}.{measure.k or depth}"
    return measure.trec_name


FAULT = "fault"  # why there is no verdict; a warning says which one
TITLE_LENGTH = 90
TEXT_LENGTH = 600  # of a document's text, for those who read what was returned
TEXT_PLACES = 10  # of each ranking whose documents can be read, beside those that are relevant
DETAILED_QUERIES = 10_000  # beyond this a reader needs a program, and the runs hold everything


def summarise(outcome: Outcome, command: str = "", looks: QuestionLooks | None = None) -> Summary:
    """`metrics_summary.json`: the rows of the matrix, the verdict, and how it was measured.

    `looks` are those that earlier results show; planned ones come with the task.
    """
    lineup, task = outcome.lineup, outcome.task
    shown = tuple(dict.fromkeys([*lineup.measures, lineup.primary]))
    by_measure = {measure: {row.contender.label: row.scores[measure] for row in outcome.ran} for measure in shown}
    averaging = task_averaging(task, lineup.seed)
    by_traffic = averaging.weights is not None
    additions = Additions()
    kind = TASK_KINDS.get(task.kind)
    in_part = () if kind.judges_all else shown
    maker = RowMaker(task, outcome.machine, averaging, in_part)
    rows = maker.of(outcome.contenders)
    no_rows: list[Row] = []
    rows += additions.attempt(
        "baselines",
        lambda: [maker.baseline(name, scores, shown) for name, scores in outcome.baselines.items()],
        no_rows,
    )
    turning: list[PossibleWinner] = []
    floor = outcome.baselines.get("random", {}).get(lineup.primary)
    if in_part:
        turning = additions.attempt("possible_winners", partial(_possible_winners, outcome, averaging), turning)
    with steps("verdict", 1) as advance:
        question = VerdictQuestion(
            measure=lineup.primary,
            averaging=averaging,
            floor=floor,
            category_sizes=Counter(query.category for query in task.queries if query.category),
            baseline=lineup.baseline,
            equivalent_within=lineup.equivalent_within,
            stop_within=lineup.stop_within,
            looks=planned_looks(task) or looks,
            turning=turning,
            overtakes=partial(_overtakes, outcome, averaging),
        )
        verdict = not_comparable(lineup.primary, outcome.no_verdict or FAULT)
        if not outcome.no_verdict:
            verdict = additions.attempt("verdict", partial(decide, by_measure, rows, question), verdict)
        advance(1)
    makers: dict[Part, Callable[[], list[Section]]] = {
        "unjudged": partial(unjudged_sections, rows, lineup.primary),
        "breakdowns": partial(breakdown_sections, task, by_measure[lineup.primary], lineup.primary, averaging),
    }
    nothing: list[Section] = []
    sections = [section for part, make in makers.items() for section in additions.attempt(part, make, nothing)]
    commands: list[str] = []
    if not by_traffic:  # trec_eval has no weights
        ran = [row.contender.label for row in outcome.ran]
        make_commands = partial(trec_commands, task, shown, outcome.depth, ran)
        commands = additions.attempt("trec_commands", make_commands, commands)
    return Summary(
        name=lineup.name,
        started=outcome.started.isoformat(timespec="seconds"),
        seconds=round(outcome.seconds, 3),
        lineup=lineup.to_dict(),
        task=TaskInfo(
            name=task.name,
            kind=task.kind,
            fingerprint=outcome.fingerprint or task.fingerprint(),
            documents=len(task.documents),
            chunks=outcome.chunks,
            queries=len(task.queries),
            rel=task.rel,
            clusters=averaging.clusters,
            drawn_from=task.drawn_from,
            categories=task.categories,
            targets=dict(task.targets),
            without_relevant=task.without_relevant(),
            weighting="traffic" if by_traffic else UNSET,
            about=task.about,
            unit=kind.unit,
            item=kind.item,
            reference=outcome.extras.reference,
        ),
        machine=outcome.machine,
        matrix_measures=[str(measure) for measure in lineup.measures],
        rows=rows,
        verdict=verdict,
        diagnostic=[str(measure) for measure in shown if measure.diagnostic],
        labels={
            str(measure): kind.measure_label(measure) for measure in dict.fromkeys((*lineup.measures, lineup.primary))
        },
        warnings=[*outcome.warnings, *outcome.extras.warnings, *_shortened(task), *additions.warnings],
        command=command,
        trec_eval=commands,
        figures=dict(outcome.extras.figures),
        own_columns=list(outcome.extras.columns),
        sections=[*sections, *outcome.extras.sections],
    )


def bare_summary(outcome: Outcome, command: str, error: Exception) -> Summary:
    """A summary without a verdict, for figures that can't be computed, with the reason."""
    log.warning("no verdict", exc_info=error)
    lineup, task, failure = outcome.lineup, outcome.task, failure_of(error)
    return Summary(
        name=lineup.name,
        started=outcome.started.isoformat(timespec="seconds"),
        seconds=round(outcome.seconds, 3),
        lineup=lineup.to_dict(),
        task=TaskInfo(
            name=task.name,
            kind=task.kind,
            fingerprint=outcome.fingerprint,
            documents=len(task.documents),
            chunks=outcome.chunks,
            queries=len(task.queries),
            rel=task.rel,
        ),
        machine=outcome.machine,
        matrix_measures=[str(measure) for measure in lineup.measures],
        rows=[
            Row(
                label=row.contender.label,
                row_type=row.contender.row_type,
                not_run=row.failure if isinstance(row, NotRun) else failure,
            )
            for row in outcome.contenders
        ],
        verdict=not_comparable(lineup.primary, FAULT),
        warnings=[*outcome.warnings, fact("not_made", part="figures", reason=reason_of(error))],
        command=command,
    )


def _possible_winners(outcome: Outcome, averaging: Averaging) -> list[PossibleWinner]:
    """Rows that further grades could put first."""
    lineup = outcome.lineup
    rankings = {row.contender.label: row.rankings for row in outcome.ran}
    leader = leader_of({row.contender.label: row.scores[lineup.primary] for row in outcome.ran}, averaging)
    return possible_winners(rankings, leader, outcome.task, lineup.primary, averaging.weights)


def _overtakes(outcome: Outcome, averaging: Averaging, label: str, other: str) -> bool:
    """Whether further grades could put a row above another."""
    rankings, task = {row.contender.label: row.rankings for row in outcome.ran}, outcome.task
    queries = [query.id for query in task.queries]
    return bool(
        winner_changing_grades(
            rankings[other], rankings[label], task.judgments, queries, outcome.lineup.primary, task.rel,
            averaging.weights,
        )
    )  # fmt: skip


def detail(outcome: Outcome, looks: QuestionLooks | None = None) -> Detailed:
    """`detailed_results.json`: every query of every contender, raw samples included."""
    task = outcome.task
    nothing: tuple[dict[str, str], dict[str, str]] = ({}, {})
    titles, texts = Additions().attempt("titles", partial(_documents, outcome), nothing)
    return Detailed(
        queries={
            query.id: QueryInfo(
                text=query.text,
                category=query.category,
                grades=dict(task.judgments.get(query.id, {})),
                drawn=query.drawn or UNSET,
                cluster=query.cluster or UNSET,
                as_of=query.as_of or UNSET,
                look=int(looks.looks.joined[place]) if looks else UNSET,
            )
            for place, query in enumerate(task.queries[:DETAILED_QUERIES])
        },
        titles=titles,
        contenders=[
            ContenderResult(
                label=row.contender.label,
                queries=_query_results(row, task),
                timing=row.search.timing if row.search else Timing(),
            )
            for row in outcome.ran
        ],
        baselines={
            name: {str(measure): values[:DETAILED_QUERIES].tolist() for measure, values in scores.items()}
            for name, scores in outcome.baselines.items()
        },
        texts=texts,
    )


def all_scores(outcome: Outcome) -> AllScores | None:
    """Scores of all queries, if `detailed_results.json` does not hold them."""
    queries = outcome.task.queries
    if len(queries) <= DETAILED_QUERIES:
        return None
    measures = list(outcome.ran[0].scores) if outcome.ran else []
    asked = AllQueries(
        texts={query.id: query.text for query in queries},
        drawn=[query.drawn for query in queries],
        clusters=[query.cluster for query in queries] if any(query.cluster for query in queries) else [],
        measures=[str(measure) for measure in measures],
    )
    tables = {row.contender.label: [row.scores[measure] for measure in measures] for row in outcome.ran}
    return AllScores(asked, {label: np.stack(columns, axis=1) for label, columns in tables.items()})


def _documents(outcome: Outcome) -> tuple[dict[str, str], dict[str, str]]:
    """Titles of the documents in stored rankings and judgments.

    Top-ranked and relevant documents also have the beginning of their text.
    """
    task = outcome.task
    named: set[str] = set()
    read: set[str] = set()
    for query in task.queries[:DETAILED_QUERIES]:
        grades = task.judgments.get(query.id, {})
        named.update(grades)
        read.update(document for document, grade in grades.items() if grade >= task.rel)
        for row in outcome.ran:
            if query.id in row.rankings:
                named.update(row.rankings[query.id].ids)
                read.update(row.rankings[query.id].ids[:TEXT_PLACES])
    places = [place for place, name in enumerate(document_ids(task.documents)) if name in named]
    titles, texts = {}, {}
    with steps("titles", len(places)) as advance:
        for place in places:
            document = task.documents[place]
            titles[document.id] = _title(document)
            if document.id in read and (text := _beginning(document.text, TEXT_LENGTH)):
                texts[document.id] = text
            advance(1)
    return titles, texts


def _title(document: Document) -> str:
    """A document's title in reports, or the beginning of its text."""
    return document.title or _beginning(document.text, TITLE_LENGTH)


def _beginning(text: str, length: int) -> str:
    text = " ".join(text[: 4 * length].split())
    return text if len(text) <= length else f"{text[: length + 1].rpartition(' ')[0] or text[:length]} …"


def _query_results(row: Scored, task: Task) -> dict[str, QueryResult]:
    results = {}
    columns = {str(measure): values.tolist() for measure, values in row.scores.items()}
    for place, query in enumerate(task.queries[:DETAILED_QUERIES]):
        ranking, grades = row.rankings.get(query.id, Ranking((), ())), task.judgments.get(query.id, {})
        results[query.id] = QueryResult(
            ids=list(ranking.ids),
            scores=list(ranking.scores),
            grades=[grades.get(document) for document in ranking.ids],
            measures={name: values[place] for name, values in columns.items() if values[place] == values[place]},
            matched=ranking.matched,
        )
    return results


def _shortened(task: Task) -> list[Fact]:
    if len(task.queries) <= DETAILED_QUERIES:
        return []
    return [fact("detailed_in_part", detailed=DETAILED_QUERIES, queries=len(task.queries))]
