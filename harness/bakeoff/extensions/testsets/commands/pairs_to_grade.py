"""Shared by the commands: arguments, the pairs to grade, planned looks, chat models with options and usage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer
from bakeoff_providers.errors import InputError

from bakeoff.cli.shared_options import OWN_LINEUP, grading_command, latest, lineup_path, parse_settings, say, warn
from bakeoff.core.printable import pluralise
from bakeoff.extensions.testsets.task_folder import TaskFolder

if TYPE_CHECKING:
    from bakeoff.calls.paid import Usage
    from bakeoff.extensions.testsets.annotations import QueryDocument
    from bakeoff.extensions.testsets.ask import Asker
    from bakeoff.extensions.testsets.pool import Rankings
    from bakeoff.extensions.testsets.task_folder import TaskFolder
    from bakeoff.tasks.looks import LookState


TaskArgument = Annotated[str, typer.Argument(help="Task folder, task.toml, built-in name, or line-up.")]
ResultOption = Annotated[
    Path | None,
    typer.Option(callback=latest, help="Use the rankings of this result (or `latest`)."),
]
Depth = Annotated[int, typer.Option(min=1, help="Number of documents to pool from each contender.")]
AllBelow = Annotated[int, typer.Option(min=0, help="Grade all pairs if there are at most this many.")]
Ungraded = Annotated[bool, typer.Option("--ungraded", help="Only pairs without a grade.")]

ARTICLES = Path("articles.json")  # written by `corpus import`, read by `queries import`
SHOWN = 10  # entries shown of a list


class PairsToGrade(NamedTuple):
    """The pairs; `keep` writes their pool once grading can begin."""

    pairs: list[QueryDocument]
    keep: Callable[[], object] = lambda: None


def rankings_for(folder: TaskFolder, result: Path | None, lineup: Path | None, offline: bool) -> Rankings:
    """The contenders' rankings, from a result or by running a line-up."""
    from bakeoff.extensions.testsets.pool import rankings_of_result, rankings_of_run
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.report.console import Bars
    from bakeoff.running.runner import Settings, vectors_folder

    if result is not None:
        return rankings_of_result(result, folder.query_ids)
    settings = Settings(
        cache=vectors_folder(),
        offline=offline,
        progress=Bars(),
        notice=warn,
    )
    return rankings_of_run(Lineup.read(lineup_path(lineup)), folder.task, settings)


def pairs_to_grade(
    folder: TaskFolder, lineup: Path | None, depth: int, all_below: int, offline: bool, *, ungraded: bool
) -> PairsToGrade:
    """All pairs if they are few, otherwise the existing pool or a new one; `ungraded` omits graded pairs."""
    to_grade = _pairs(folder, lineup, depth, all_below, offline)
    if not ungraded:
        return to_grade
    open_ = [pair for pair in to_grade.pairs if pair[1] not in folder.task.judgments.get(pair[0], {})]
    have = "has" if len(open_) == 1 else "have"
    say(f"{len(open_)} of them {have} no grade yet" if open_ else "nothing to grade; all of them have a grade")
    return to_grade._replace(pairs=open_)


def _pairs(folder: TaskFolder, lineup: Path | None, depth: int, all_below: int, offline: bool) -> PairsToGrade:
    from bakeoff.core.printable import pluralise
    from bakeoff.extensions.testsets.pool import extend_pool, pool_rankings, write_pool
    from bakeoff.tasks.looks import POOL

    if folder.size <= all_below:
        say(f"{pluralise(folder.size, 'pair')}: all of them")
        return PairsToGrade(folder.all_pairs())
    if lineup is None and (folder.annotations / POOL).exists():
        pairs = folder.pool()
        say(f"{pluralise(len(pairs), 'pair')} of {folder.size}: the existing pool (--lineup makes a new one)")
        return PairsToGrade(pairs)
    rankings = rankings_for(folder, None, lineup, offline)
    pool = extend_pool(folder, pool_rankings(rankings, folder.query_ids, depth))
    pairs = [(query, document) for query, documents in pool.items() for document in documents]
    say(f"{pluralise(len(pairs), 'pair')} of {folder.size}: the first {depth} of {', '.join(rankings)}")
    metadata = {"contenders": sorted(rankings), "depth": depth}
    return PairsToGrade(pairs, lambda: write_pool(folder, pool, metadata))


ModelOption = Annotated[
    list[str] | None, typer.Option("--model", help="A chat model: ollama:llama3.1, gemini:…, openai:…")
]
ChatOption = Annotated[
    list[str] | None,
    typer.Option("--set", help="A model option, such as temperature=0.7; repeatable."),
]


def chat_askers(specs: list[str], given: list[str] | None, max_cost: float | None, offline: bool) -> list[Asker]:
    """The models, which share one budget and the answer cache."""
    from bakeoff_providers.weights import home

    from bakeoff.calls.budget import Budget
    from bakeoff.extensions.testsets.ask import make_asker

    budget: Budget | None = Budget(max_cost) if max_cost is not None else None
    options = parse_settings(given, "temperature=0.7")
    return [make_asker(spec, options, answers=home() / "answers", budget=budget, offline=offline) for spec in specs]


def echo_usage(usage: Usage) -> None:
    """Print requests, tokens and cost in one line."""
    say(
        f"{pluralise(usage.asked, 'answer')}: {usage.cached} from the cache, {pluralise(usage.requests, 'request')} "
        f"({usage.unusable} unusable), {usage.tokens:.0f} + {usage.answer_tokens:.0f} tokens, {_dollars(usage)}"
    )


def echo_estimate(usage: Usage) -> None:
    """Print the expected requests, tokens and cost."""
    say(
        f"dry run: {pluralise(usage.asked, 'answer')}, {usage.cached} in the cache, {usage.requests} to ask for: about "
        f"{usage.tokens:.0f} + {usage.answer_tokens:.0f} tokens, {_dollars(usage)}"
    )


def _dollars(usage: Usage) -> str:
    if usage.usd is None:
        return "price unknown (give price_in and price_out)"
    return f"${usage.usd:.4f}" if usage.usd else "free"


GradePairs = Callable[["TaskFolder", "list[QueryDocument]", Callable[[], object]], None]


def look_queries(folder: TaskFolder) -> list[str] | None:
    """Print and return the queries of the next planned look; None without a plan, or after its end."""
    state = _state(folder)
    if state is None or state.is_last:
        return None
    look = state.number + 1
    of, left = len(state.plan.queries), len(state.missing(look))
    say(f"Look {look} of {of} is at {state.plan.queries[look - 1]} queries; {left} of them are not graded yet.")
    return state.asked(look)


def grade_until_decided(
    source: str, lineup: Path, depth: int, all_below: int, offline: bool, grade_pairs: GradePairs
) -> None:
    """Grade look by look, in the drawn order, until the plan decides or grades of a look are missing."""
    while True:
        folder = TaskFolder.open(source)
        state = _state(folder)
        if state is None:
            raise InputError(
                "the task has no plan of looks", file=folder.path,
                remedy=f"bakeoff plan-queries RESULT --looks 5 --difference 0.05 --task {source}",
            )  # fmt: skip
        if state.number and _is_over(folder, lineup, offline):
            return
        wanted = set(state.next_queries())
        look = state.number + 1
        say(f"Look {look} of {len(state.plan.queries)} takes {len(wanted)} more queries.")
        pairs, keep = pairs_to_grade(folder, lineup, depth, all_below, offline, ungraded=False)
        grade_pairs(folder, [pair for pair in pairs if pair[0] in wanted], keep)
        after = _state(TaskFolder.open(source))
        if after is None or after.number < look:
            left = len(after.missing(look)) if after else 0
            say(f"{left} queries of look {look} are not fully graded yet; run the same command again to continue.")
            return


def _state(folder: TaskFolder) -> LookState | None:
    from bakeoff.tasks.looks import read_state

    return read_state(folder.kind.base, folder.task)


def _is_over(folder: TaskFolder, lineup: Path, offline: bool) -> bool:
    """Run the line-up on the queries of the last look and print the verdict; True if the plan ends there."""
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.report.console import Bars
    from bakeoff.report.verdict_words import verdict_sentences
    from bakeoff.results.summary import summarise
    from bakeoff.running.runner import Settings, run, vectors_folder

    task = folder.kind.at_look(folder.task)
    settings = Settings(cache=vectors_folder(), offline=offline, progress=Bars(), notice=warn, recorded=False)
    chosen = replace(Lineup.read(lineup), task=task, tasks=(), overrides={}, rounds=1)
    summary = summarise(run(chosen, settings))
    for sentence in verdict_sentences(summary):
        say(sentence)
    look = summary.verdict.look
    return summary.verdict.decided or (look is not None and look.number == len(look.queries))


def annotator_name(given: str | None) -> str:
    """The annotator's name: the given one, or the user's name on this machine."""
    import getpass

    try:
        return given or getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in many containers
        raise InputError("no user name is known here", place="--who", remedy="give --who NAME") from None


def say_list(what: str, names: list[str], where: str) -> None:
    """The first names of a list; if it is longer, also the file with all of them."""
    if names:
        say(f"{what}: {len(names)}")
        for name in names[:SHOWN]:
            say(f"  {name}")
        if len(names) > SHOWN:
            say(f"  … and {len(names) - SHOWN} more" + (f", all in {where}" if where else ""))


def next_to_grade(task: Path | str, lineup: Path | None = None) -> str:
    """The next commands: a line-up, whose contenders decide what is worth grading, and then the grading."""
    grade = grading_command(task, lineup or OWN_LINEUP)
    return f"next: {grade}" if lineup or OWN_LINEUP.exists() else f"next: bakeoff init {task}\n      {grade}"
