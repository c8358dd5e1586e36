"""What a task can show, checked before money is spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from bakeoff.core.arrays import Grades, Values
from bakeoff.core.facts import SOME, Fact, fact
from bakeoff.core.filters import find_unmatched
from bakeoff.core.printable import join_names
from bakeoff.core.progress import Progress, silent
from bakeoff.core.ranking import Ranking
from bakeoff.core.task import Task
from bakeoff.embedding.preflight import task_warnings
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.ranked_grades import NO_DOCUMENT
from bakeoff.evaluation.score import Scores, join, score_queries
from bakeoff.extensions.testsets.annotations import QueryDocument
from bakeoff.extensions.testsets.text_similarity import MOST_ALIKE, near_duplicates, overlap
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.runner import Settings, run
from bakeoff.statistics.averaging import Averaging, task_averaging
from bakeoff.statistics.columns import differences_of
from bakeoff.statistics.detectable import find_noticeable_gap, round_gap
from bakeoff.systems.dense import Dense
from bakeoff.systems.lexical import Lexical

MOST_RELEVANT = 0.5  # of the corpus: above it a random order looks good
LEXICAL = 0.9  # of the oracle's score: above it words alone answer the queries
# Free and quick everywhere; their spread stands in for that of the real contenders.
FREE_CONTENDERS = (
    Lexical("bm25", ranker="bm25"),
    Dense("tfidf+faiss", provider="tfidf", store="faiss"),
    Dense("fake+faiss", provider="fake", store="faiss"),
)
FREE_NAMES = join_names([contender.label for contender in FREE_CONTENDERS])


class Ceiling(msgspec.Struct, frozen=True):
    """Scores of a perfect, a random and a lexical ranking on one measure, and the target."""

    measure: str
    oracle: float
    random: float
    bm25: float
    target: float | None = None

    @property
    def out_of_reach(self) -> bool:
        """Whether not even a perfect ranking meets the target."""
        return self.target is not None and self.oracle < self.target - 1e-9


class TextHealth(msgspec.Struct, frozen=True, kw_only=True):
    """Figures on documents and queries that need no grades."""

    unmatched: list[str]
    duplicates: list[tuple[str, str, float]]
    warnings: list[Fact]

    def findings(self) -> list[Fact]:
        """What should be fixed or known."""
        findings = [*self.warnings]
        if self.unmatched:
            findings.append(_of_queries("testsets.filter_matches_nothing", self.unmatched))
        for first, second, share in self.duplicates:
            findings.append(fact("testsets.near_duplicates", first=first, second=second, share=share))
        return findings


class Grading(msgspec.Struct, frozen=True):
    """The pooled pairs, None without a pool, and the command that grades the open ones."""

    pool: Sequence[QueryDocument] | None = None
    command: str = "bakeoff grade TASK --ungraded"


class Health(TextHealth, frozen=True, kw_only=True):
    """Also figures on judgments."""

    documents: int
    queries: int
    judged: int
    judged_share: float
    judged_top: float
    pooled: int | None
    open_pairs: int  # of the pool
    grade_command: str
    depth: int
    without_relevant: list[str]
    too_many: dict[str, int]
    beyond_cut: dict[str, int]
    ceilings: list[Ceiling]
    primary: str
    lexical: float | None
    shared_words: float | None
    unnoticed_below: float | None
    unnoticed_between: str  # the pair that this is said of

    def findings(self) -> list[Fact]:
        """Findings on texts and on grades."""
        findings = super().findings()
        if self.without_relevant:
            findings.append(_of_queries("nothing_relevant", self.without_relevant))
        if self.too_many:
            findings.append(_of_queries("testsets.mostly_relevant", list(self.too_many), share=MOST_RELEVANT))
        if self.beyond_cut:
            findings.append(_of_queries("testsets.more_relevant_than_depth", list(self.beyond_cut), depth=self.depth))
        deep = [row.measure for row in self.ceilings if (Measure.parse(row.measure).k or 0) > self.documents]
        if deep:
            findings.append(fact("k_beyond_corpus", measures=deep, documents=self.documents))
        for row in self.ceilings:
            if row.out_of_reach:
                findings.append(
                    fact("testsets.target_out_of_reach", measure=row.measure, target=row.target, oracle=row.oracle)
                )
        if self.open_pairs:
            findings.append(
                fact(
                    "testsets.pool_ungraded", open_pairs=self.open_pairs, pooled=self.pooled, command=self.grade_command
                )
            )
        elif self.pooled is None and self.judged_top < 1:
            findings.append(
                fact(
                    "testsets.top_ungraded",
                    share=1 - self.judged_top,
                    labels=[contender.label for contender in FREE_CONTENDERS],
                    depth=self.depth,
                    command=self.grade_command,
                )
            )
        if self.lexical is not None and self.lexical >= LEXICAL:
            findings.append(fact("testsets.lexical_task", share=self.lexical, measure=self.primary))
        return findings


def _of_queries(id_: str, queries: Sequence[str], **more: int | float) -> Fact:
    return Fact(id_, {"count": len(queries), "queries": list(queries[:SOME]), **more})


def text_health(task: Task) -> TextHealth:
    """Checks documents, queries and filters. The same text with another date or filter is another query."""
    asked = task.queries
    alike = near_duplicates([query.text for query in asked], MOST_ALIKE)
    return TextHealth(
        unmatched=find_unmatched({query.id: query.where for query in task.queries}, task.metadata.values()),
        duplicates=[
            (asked[first].id, asked[second].id, share)
            for first, second, share in alike
            if (asked[first].as_of, asked[first].where) == (asked[second].as_of, asked[second].where)
        ],
        warnings=task_warnings(task),
    )


def health(task: Task, lineup: Lineup, progress: Progress = silent, grading: Grading = Grading()) -> Health:
    """Checks the judgments, then runs three free contenders.

    If there is a pool, only pooled pairs count as open.
    """
    measures = tuple(dict.fromkeys([*lineup.measures, *map(Measure.parse, task.targets)]))
    primary = lineup.primary
    free = replace(lineup, contenders=FREE_CONTENDERS, measures=measures, rounds=1)
    outcome = run(free, Settings(progress=progress, graded=False, recorded=False))
    scales = outcome.baselines
    ids = [query.id for query in task.queries]
    answers = {scored.contender.label: scored.rankings for scored in outcome.ran}
    depth = max((measure.k for measure in measures if measure.k), default=10)
    joined = {label: join(_drop_fill(rankings), task.judgments, ids) for label, rankings in answers.items()}
    scored = {row.contender.label: row.scores for row in outcome.ran}
    relevant = {query: sum(grade >= task.rel for grade in task.judgments.get(query, {}).values()) for query in ids}
    graded = sum(len(grades) for grades in task.judgments.values())
    oracle = float(scales["oracle"][primary].mean())
    words = float(
        score_queries(joined["bm25"], [primary], task.rel)[primary].mean()
    )  # what follows by id alone is no word's
    texts = {document.id: f"{document.title}\n{document.text}" for document in task.documents}
    unnoticed, between = _find_unnoticed_gap(
        {label: scores[primary] for label, scores in scored.items()}, task_averaging(task)
    )
    return Health(
        **msgspec.structs.asdict(text_health(task)),
        documents=len(task.documents),
        queries=len(ids),
        judged=graded,
        judged_share=graded / (len(ids) * len(task.documents)),
        judged_top=_measure_judged_share([ranked.grades[:, :depth] for ranked in joined.values()]),
        pooled=None if grading.pool is None else len(grading.pool),
        open_pairs=sum(document not in task.judgments.get(query, {}) for query, document in grading.pool or ()),
        grade_command=grading.command,
        depth=depth,
        without_relevant=task.without_relevant(),
        too_many={q: n for q, n in relevant.items() if n > MOST_RELEVANT * len(task.documents)},
        beyond_cut={q: n for q, n in relevant.items() if n > depth},
        ceilings=[_ceiling(measure, task, scales, scored["bm25"]) for measure in measures],
        primary=str(primary),
        lexical=words / oracle if oracle else None,
        shared_words=_measure_shared_words(task, texts),
        unnoticed_below=unnoticed,
        unnoticed_between=between,
    )


def _drop_fill(rankings: Mapping[str, Ranking]) -> dict[str, Ranking]:
    """Drop the padding of lexical rankings."""
    return {query: ranking.cut(len(ranking.found)) for query, ranking in rankings.items()}


def _ceiling(measure: Measure, task: Task, scales: Mapping[str, Scores], words: Scores) -> Ceiling:
    return Ceiling(
        measure=str(measure),
        oracle=float(np.nanmean(scales["oracle"][measure])),
        random=float(np.nanmean(scales["random"][measure])),
        bm25=float(np.nanmean(words[measure])),
        target=next((target for text, target in task.targets.items() if Measure.parse(text) == measure), None),
    )


def _measure_judged_share(tops: Sequence[Grades]) -> float:
    """Share of returned documents with a grade; 1 if nothing was returned."""
    returned = sum(int(np.count_nonzero(top != NO_DOCUMENT)) for top in tops)
    return sum(int(np.count_nonzero(top >= 0)) for top in tops) / returned if returned else 1.0


def _find_unnoticed_gap(scores: Mapping[str, Values], averaging: Averaging) -> tuple[float | None, str]:
    """The gap that would go unnoticed between the best row and its nearest different rival."""
    best, *others = sorted(scores, key=lambda label: -averaging.mean(scores[label]))
    for rival in others:
        if differences_of(scores[best], scores[rival]).any() and averaging.has_error:
            pair = [averaging.linear(scores[label]) for label in (best, rival)]
            gap = find_noticeable_gap(*pair, heaviest=averaging.heaviest)
            return (None, "") if gap is None else (round_gap(gap, len(pair[0])), f"{best} and {rival}")
    return None, ""


def _measure_shared_words(task: Task, texts: Mapping[str, str]) -> float | None:
    """Mean share of a query's words that occur in its relevant documents."""
    shares = [
        np.mean([overlap(query.text, texts[document]) for document in relevant])
        for query in task.queries
        if (relevant := [d for d, grade in task.judgments.get(query.id, {}).items() if grade >= task.rel])
    ]
    return float(np.mean(shares)) if shares else None
