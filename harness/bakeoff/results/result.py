"""A loaded result folder: its figures by contender and measure, as tables or data frames."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.registry import missing_modules, nearest

from bakeoff.core.arrays import Values
from bakeoff.core.ranking import Ranking
from bakeoff.evaluation.measures import Measure
from bakeoff.evaluation.measures.base import check_decides
from bakeoff.evaluation.ranked_grades import join
from bakeoff.evaluation.score import score_queries
from bakeoff.evaluation.unjudged import winner_changing_grades
from bakeoff.results.all_scores import AllScores, read_all_scores
from bakeoff.results.columns import Table, matrix_table, scores_table
from bakeoff.results.schema import ContenderResult, Detailed, Summary, read_detailed, read_summary
from bakeoff.statistics.averaging import Averaging, averaging_of
from bakeoff.statistics.constants import SEED
from bakeoff.systems.base import given_name, names_of

if TYPE_CHECKING:
    import pandas
    import polars

TableName = Literal["matrix", "scores"]


def load(folder: Path | str, name: str = "") -> Result:
    """Loads a result folder. Comparisons refer to it by `name`, by default its folder's.

    The verdict of an older format is recomputed from its figures.
    """
    folder = Path(folder)
    summary, detailed = read_summary(folder), read_detailed(folder)
    labels = [contender.label for contender in detailed.contenders]
    result = Result(name or folder.resolve().name, summary, detailed, read_all_scores(folder, labels))
    if summary.verdict.situation != "older format":
        return result
    from bakeoff.results.restate import with_verdict

    return with_verdict(result)


@dataclass(frozen=True, slots=True)
class Result:
    """One result folder: the summary, every query of every contender, and tables of both.

    Above 10,000 queries, `detailed` holds only the first ones, and `all_scores` the scores of all.
    """

    name: str
    summary: Summary
    detailed: Detailed
    all_scores: AllScores | None = None
    screen: Callable[[Summary], str] | None = field(default=None, repr=False, compare=False)  # what `print` shows

    def __str__(self) -> str:
        return self.screen(self.summary) if self.screen else repr(self)

    def __repr__(self) -> str:
        return f"Result({self.name!r}: {len(self.labels)} rows, {len(self.queries)} queries)"

    @property
    def labels(self) -> list[str]:
        """The contenders that ran."""
        return [contender.label for contender in self.detailed.contenders]

    @property
    def queries(self) -> dict[str, str]:
        """The texts of all scored queries, in the order of the scores."""
        if self.all_scores is not None:
            return self.all_scores.asked.texts
        return {query: info.text for query, info in self.detailed.queries.items()}

    @property
    def names(self) -> dict[str, set[str]]:
        """The names of each contender that ran, by label."""
        described = {contender["label"]: names_of(contender) for contender in self.summary.lineup["contenders"]}
        return {label: described.get(label, {label}) for label in self.labels}

    @property
    def given_names(self) -> dict[str, str]:
        """The name of each row's line-up entry, by label. A row's label also has store and dimensions."""
        given = {row["label"]: given_name(row) for row in self.summary.lineup["contenders"]}
        return {label: given.get(label, "") for label in self.labels}

    def matrix(self) -> Table:
        """One record per row of the matrix: contenders by the deciding measure, baselines, rows that did not run."""
        return matrix_table(self.summary)

    def scores(self) -> Table:
        """One record per contender and query, with a value for every stored measure."""
        return scores_table(self.detailed)

    def to_pandas(self, table: TableName = "matrix") -> pandas.DataFrame:
        """One of the tables as a pandas data frame."""
        return _library("pandas").DataFrame(self._table(table))

    def to_polars(self, table: TableName = "matrix") -> polars.DataFrame:
        """One of the tables as a polars data frame."""
        return _library("polars").DataFrame(self._table(table), infer_schema_length=None)

    def averaging(self, seed: int = SEED) -> Averaging:
        """How this result's means are taken."""
        if self.all_scores is not None:
            return averaging_of(self.all_scores.asked.drawn, seed, self.all_scores.asked.clusters)
        asked = self.detailed.queries.values()
        return averaging_of([query.drawn or None for query in asked], seed, [query.cluster or "" for query in asked])

    def measure(self, given: Measure | str | None = None) -> Measure:
        """A measure by its spelling; by default the deciding measure."""
        return given if isinstance(given, Measure) else Measure.parse(given or self.summary.verdict.measure)

    def deciding(self, given: Measure | str | None = None) -> Measure:
        """The measure, if rows can be compared by it."""
        measure = self.measure(given)
        check_decides(measure, "compare by another, for example ndcg@10; scores() has its values")
        return measure

    def values(self, label: str, measure: Measure | str | None = None) -> Values:
        """Values per query. A measure that was not stored is computed from the stored rankings.

        NaN if a measure of dates has no value.
        """
        contender, measure = self._contender(label), self.measure(measure)
        asked, name = list(self.detailed.queries), str(measure)
        if self.all_scores is not None and (stored := self.all_scores.values(label, name)) is not None:
            return stored
        self._check_whole(name)
        if any(name in contender.queries[query].measures for query in asked):
            return np.array([contender.queries[query].measures.get(name, np.nan) for query in asked])
        return self.rescore(label, measure, self)

    def rescore(self, label: str, measure: Measure, graded: Result) -> Values:
        """Per query of another result, what the stored rankings score by the grades stored there."""
        judged = {query: info.grades for query, info in graded.detailed.queries.items()}
        ranked = join(self.rankings(label, measure), judged, list(judged))
        return score_queries(ranked, [measure], graded.summary.task.rel)[measure]

    def could_overtake(self, measure: Measure, label: str, other: str) -> bool:
        """Whether further grades could put a row above another; also if the stored rankings can't tell."""
        try:
            mine, theirs = (self.rankings(row, measure) for row in (label, other))
        except InputError:
            return True
        judged = {query: info.grades for query, info in self.detailed.queries.items()}
        rel, weights = self.summary.task.rel, self.averaging().weights
        return bool(winner_changing_grades(theirs, mine, judged, list(judged), measure, rel, weights))

    def floor(self, measure: str) -> Values | None:
        """The expected score of a random order on each query; None if not stored for all queries."""
        stored = self.detailed.baselines.get("random", {}).get(measure)
        if stored is None or len(stored) != len(self.queries) or None in stored:
            return None
        return np.array(stored, dtype=np.float64)

    def rankings(self, label: str, measure: Measure) -> dict[str, Ranking]:
        """The stored rankings, if they are complete and deep enough for the measure."""
        contender = self._contender(label)
        self._check_whole(str(measure))
        self._check_depth(label, measure)
        return {query: answer.ranking for query, answer in contender.queries.items()}

    def _table(self, table: TableName) -> Table:
        if table not in ("matrix", "scores"):
            raise InputError(f"a result has no table {table!r}", remedy=nearest(table, ["matrix", "scores"]))
        return self.matrix() if table == "matrix" else self.scores()

    def _contender(self, label: str) -> ContenderResult:
        for contender in self.detailed.contenders:
            if contender.label == label:
                return contender
        for row in self.summary.rows:
            if row.label == label and row.not_run:
                raise InputError(f"{label} did not run", file=self.name, remedy="bakeoff show explains why")
        raise InputError(f"has no contender {label!r}", file=self.name, remedy=nearest(label, self.labels))

    def _check_whole(self, measure: str) -> None:
        """Refuses a result that stores only some queries, because means and tests would differ."""
        if len(self.detailed.queries) == self.summary.task.queries:
            return
        kept = f"the first {len(self.detailed.queries):,} of {self.summary.task.queries:,} queries"
        if self.all_scores is None:
            raise InputError(
                f"has only the scores of {kept}", file=self.name, remedy="run it again; all are stored now"
            )
        raise InputError(
            f"{measure} was not stored, and rankings exist only for {kept}",
            file=self.name,
            remedy=f"add {measure} to the measures of the line-up and run it again, or use bakeoff score with runs/",
        )

    def _check_depth(self, label: str, measure: Measure) -> None:
        depth = int(self.summary.lineup["depth"])
        if measure.k is not None and measure.k > depth:
            raise InputError(f"{measure} reads deeper than the {depth} places that were stored", file=self.name)
        if any(row.label == label and row.stable is False for row in self.summary.rows):
            raise InputError(f"{label} was unstable, and {measure} was not stored", file=self.name)


def _library(name: str) -> Any:
    if remedy := missing_modules((name,), name):
        raise Unavailable(f"no {name} here: {remedy}")
    return import_module(name)
