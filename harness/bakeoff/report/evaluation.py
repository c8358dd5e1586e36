"""`bakeoff.evaluate`: evaluates contenders from Python in one call and returns a printable result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bakeoff_providers.errors import BakeoffError

from bakeoff.core.paths import vectors_folder
from bakeoff.core.task import Task
from bakeoff.lineup.from_python import lineup_of, task_from_python
from bakeoff.lineup.lineup import DEFAULT_MEASURES, Lineup
from bakeoff.report import PAGE, render
from bakeoff.report.first_screen import first_screen_text
from bakeoff.report.page_data import page_matrix
from bakeoff.report.verdict_words import Findings, verdict_sentences
from bakeoff.report.words import failure_words
from bakeoff.results import result
from bakeoff.results.result import Result, TableName
from bakeoff.results.save import save
from bakeoff.results.summary import all_scores, detail, summarise
from bakeoff.running.runner import Outcome, run
from bakeoff.running.settings import Settings

if TYPE_CHECKING:
    import pandas


def evaluate(
    contenders: Mapping[str, Any] | Lineup,
    task: str | Path | Task | Mapping[str, Any] | None = None,
    *,
    measures: Sequence[str] = DEFAULT_MEASURES,
    primary: str = "",
    store: str = "faiss",
    rounds: int = 3,
    depth: int | None = None,
    seed: int = 42,
    baseline: str = "",
    cache: bool = True,
    settings: Settings | None = None,
) -> Evaluation:
    """Runs contenders on a task: functions, embeddings objects, names, dicts of runs, or a whole line-up.

    A value is a provider's or ranker's name, `embed(texts)` or `embed(texts, role)`, `search(text, k)`, an object with
    the methods of sentence-transformers, LangChain or LlamaIndex, scores by query and document, or a dict like a
    [[contender]] of a line-up. The task is its name or folder, a `Task`, or BEIR's dicts. `baseline` names the
    incumbent: every other row is compared with it.
    """
    if isinstance(contenders, Lineup):
        lineup = contenders
        if task is not None:
            lineup = replace(lineup, task=task_from_python(task))
        lineup = lineup.with_baseline(baseline)
    else:
        lineup = lineup_of(
            contenders,
            "wikipedia" if task is None else task,
            measures=measures,
            primary=primary,
            store=store,
            rounds=rounds,
            depth=depth,
            seed=seed,
            baseline=baseline,
        )
    return Evaluation(run(lineup, settings or Settings(cache=vectors_folder() if cache else None)))


def load(folder: Path | str, name: str = "") -> Result:
    """Reads a result folder that `save` or `bakeoff run` wrote; comparisons use `name`, or the folder's name.

    `print` shows its first screen. For an older format, the verdict is recomputed from the figures.
    """
    return replace(result.load(folder, name), screen=first_screen_text)


@dataclass(frozen=True)
class Evaluation:
    """The result of a run. It prints like `bakeoff run`; notebooks show a table."""

    outcome: Outcome
    result: Result = field(init=False, repr=False)

    def __post_init__(self) -> None:
        outcome = self.outcome
        result = Result(outcome.lineup.name, summarise(outcome), detail(outcome), all_scores(outcome))
        object.__setattr__(self, "result", result)

    @property
    def scores(self) -> dict[str, dict[str, dict[str, float]]]:
        """Values by contender, measure and query id."""
        queries = [query.id for query in self.outcome.task.queries]
        return {
            label: {measure: dict(zip(queries, values, strict=True)) for measure, values in measures.items()}
            for label, measures in self.outcome.scores.items()
        }

    @property
    def verdict(self) -> list[str]:
        """The verdict as sentences; `result.summary.verdict` has the facts."""
        return verdict_sentences(self.result.summary)

    @property
    def not_run(self) -> dict[str, str]:
        """Why a contender has no row, by its label."""
        return {row.contender.label: failure_words(row.failure) for row in self.outcome.not_run}

    def to_pandas(self, table: TableName = "matrix") -> pandas.DataFrame:
        """The matrix, or "scores": one line per contender and query."""
        return self.result.to_pandas(table)

    def save(self, out: Path | str = "results") -> Path:
        """Writes a result folder like `bakeoff run`; `bakeoff.load` reads it."""
        return save(self.outcome, out)

    def report(self, out: Path | str = "results") -> Path:
        """Saves the result, makes the page and exports, and returns the page's path."""
        folder = self.save(out)
        problems = render(folder)
        if not (folder / PAGE).is_file():
            raise BakeoffError(f"the figures are in {folder}, but the page could not be made: {'; '.join(problems)}")
        return folder / PAGE

    def __repr__(self) -> str:
        """The first screen, as `bakeoff run` prints it."""
        return first_screen_text(self.result.summary)

    def _repr_html_(self) -> str:
        """The decision, and the first screen's table."""
        from markupsafe import Markup

        found = Findings(self.result.summary)
        content = page_matrix(found) if found.groups else None
        rows = [["", *(column.head for column in content.columns)]] if content else []
        rows += [[line.sign, *(cell.text for cell in line.cells.values())] for line in content.lines] if content else []
        lost = [f"{label} did not run: {reason}" for label, reason in self.not_run.items()]
        said, after = (Markup("").join(map(Markup("<p>{}</p>").format, part)) for part in (self.verdict, lost))
        cells = (Markup("").join(map(Markup("<td>{}</td>").format, row)) for row in rows)
        table = Markup("").join(map(Markup("<tr>{}</tr>").format, cells))
        return str(said + Markup("<table>{}</table>").format(table) + after)
