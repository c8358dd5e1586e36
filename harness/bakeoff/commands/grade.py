"""`bakeoff grade`, `annotate` and `adjudicate`: who grades, what is still worth grading, and what it comes to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from bakeoff_providers.errors import InputError
from typer.core import TyperGroup

from bakeoff.commands.options import (
    DryRun,
    LineupOption,
    MaxCost,
    Offline,
    ResultOption,
    TaskArgument,
    lineup_path,
    warn,
)
from bakeoff.commands.testsets import (
    ChatOption,
    ModelOption,
    chat_askers,
    echo_foreseen,
    echo_spent,
)

if TYPE_CHECKING:
    from bakeoff.testsets.agreement import Disagreement
    from bakeoff.testsets.label_next import Candidate
    from bakeoff.testsets.pool import Rankings
    from bakeoff.testsets.task_folder import QueryDocument, TaskFolder

Who = Annotated[str | None, typer.Option(help="Who is grading; default: your login.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The page's port; 0 takes a free one.")]
OpenPage = Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")]


class GradeOrNext(TyperGroup):
    """`bakeoff grade TASK` grades; only the name of a subcommand leads elsewhere."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Puts in the command that is meant when none is named."""
        if args and args[0] not in self.commands and args[0] != "--help":
            args = ["pairs", *args]
        return super().parse_args(ctx, args)


grade = typer.Typer(
    cls=GradeOrNext, help="Grade a task's pairs: `bakeoff grade TASK --judge llm`, or `people`.", no_args_is_help=True
)


@grade.command("pairs")
def pairs_(
    task: TaskArgument,
    judge: Annotated[str, typer.Option(help="people or llm.")] = "people",
    model: ModelOption = None,
    set_: ChatOption = None,
    repeats: Annotated[int, typer.Option(min=1, help="llm: ask each model so often; the majority counts.")] = 1,
    lineup: LineupOption = None,
    depth: Annotated[int, typer.Option(min=1, help="How many documents of each contender are pooled.")] = 10,
    all_below: Annotated[int, typer.Option(min=0, help="Up to so many pairs all are graded.")] = 1000,
    max_cost: MaxCost = None,
    dry_run: DryRun = False,
    offline: Offline = False,
    who: Who = None,
    port: Port = 0,
    open_page: OpenPage = True,
) -> None:
    """Grade: pool the contenders' top documents, then let models or people grade them (the default)."""
    from bakeoff.testsets.task_folder import TaskFolder

    folder = TaskFolder.open(task)
    if judge not in ("llm", "people"):
        raise InputError(f"unknown judge {judge!r}", place="--judge", remedy="llm or people")
    if judge == "people" and (model or repeats > 1):
        raise InputError("--model and --repeats are for --judge llm", remedy="add --judge llm")
    pairs = _pairs(folder, lineup, depth, all_below, offline or dry_run, dry_run)
    if judge == "people":
        if dry_run:
            typer.echo(f"dry run: {len(pairs)} pairs to grade")
        else:
            _serve(folder, who, pairs, port, open_page)
        return
    _judge(folder, pairs, model or ["ollama"], set_, repeats, max_cost, dry_run, offline)


@grade.command("next")
def next_(
    task: TaskArgument,
    n: Annotated[int, typer.Option("--n", min=1, help="How many pairs to name.")] = 10,
    measure: Annotated[str | None, typer.Option(help="The measure that orders; default: the line-up's.")] = None,
    result: ResultOption = None,
    lineup: LineupOption = None,
    offline: Offline = False,
) -> None:
    """Name the ungraded pairs whose grade would most change the order of the contenders."""
    from bakeoff.evaluation.measures import Measure
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.report.console import Bars, console, grid
    from bakeoff.tasks.load import load_task
    from bakeoff.testsets.label_next import next_pairs
    from bakeoff.testsets.task_folder import TaskFolder

    folder = TaskFolder.open(task)
    by = Measure.parse(measure) if measure else Lineup.read(lineup_path(lineup)).primary
    loaded = load_task(str(folder.path.resolve()), Path())
    found = next_pairs(loaded, rankings_for(folder, result, lineup, offline), by, n, progress=Bars())
    if not found:
        typer.echo("Every pair that a contender ranked high enough to matter is graded.")
        return
    titles = {str(article.page_id): article.title for article in folder.articles}
    table = grid("query", "document", "title", "ranked", f"what a grade would do to the order by {by}")
    for it in found:
        best = sorted(it.ranks.items(), key=lambda item: item[1])
        ranked = ", ".join(f"{label} {rank}" for label, rank in best[:3]) + (", …" if len(best) > 3 else "")
        table.add_row(*it.pair, titles[it.pair[1]], ranked, _effect(it))
    console().print(table)


def annotate(task: TaskArgument, who: Who = None, port: Port = 0, open_page: OpenPage = True) -> None:
    """Grade by hand, on a page that only this machine sees."""
    from bakeoff.testsets.task_folder import TaskFolder

    folder = TaskFolder.open(task)
    _serve(folder, who, folder.pool(), port, open_page)


def adjudicate(
    task: TaskArgument,
    decisions: Annotated[
        Path | None, typer.Option("--from", help="A JSON list of {query_id, page_id, grade, why}.")
    ] = None,
    majority: Annotated[bool, typer.Option("--majority", help="Ask nothing: leave the rest to the majority.")] = False,
) -> None:
    """Settle what annotators disagree on, then write the ground truth."""
    from bakeoff.testsets.adjudicate import Adjudication
    from bakeoff.testsets.task_folder import TaskFolder

    folder = TaskFolder.open(task)
    if not folder.annotators():
        raise InputError("nobody has graded anything", file=folder.annotations, remedy=f"bakeoff annotate {task}")
    work = Adjudication(folder)
    if decisions is not None:
        typer.echo(f"{work.decide_from(decisions)} decisions taken from {decisions}")
    if not majority and (left := work.open()):
        typer.echo(f"{len(left)} pairs to settle. A grade and Enter; s leaves a pair open, q ends.")
        decided = work.ask(_Asking(folder))
        typer.echo(f"{decided} settled.")
    _write_truth(folder, task)


class _Asking:
    """Shows a pair at the terminal and takes a grade with a reason."""

    def __init__(self, folder: TaskFolder) -> None:
        self._queries = {entry.query_id: entry.query_text for entry in folder.queries.queries}
        self._documents = {str(article.page_id): article for article in folder.articles}
        self._ended = False

    def __call__(self, it: Disagreement) -> tuple[int, str] | None:
        if self._ended:
            return None
        article = self._documents[it.document]
        typer.echo(f"\n{it.query}: {self._queries[it.query]}\n{article.title} ({it.document})\n{article.summary}")
        typer.echo("given: " + ", ".join(f"{name} {grade}" for name, grade in it.grades.items()))
        while True:
            try:
                answer = typer.prompt("grade", prompt_suffix=" (0-3, s, q): ").strip().lower()
            except typer.Abort:
                answer = "q"
            if answer in ("s", "q"):
                self._ended = answer == "q"
                return None
            if answer in ("0", "1", "2", "3"):
                return int(answer), typer.prompt("why", default="", show_default=False)
            typer.echo("0, 1, 2, 3, s or q")


def rankings_for(folder: TaskFolder, result: Path | None, lineup: Path | None, offline: bool) -> Rankings:
    """What contenders answered: from a result, or by running a line-up now."""
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.report.console import Bars
    from bakeoff.run.runner import Settings, vectors_folder
    from bakeoff.testsets.pool import rankings_of_result, rankings_of_run

    if result is not None:
        return rankings_of_result(result, [entry.query_id for entry in folder.queries.queries])
    settings = Settings(
        cache=vectors_folder(),
        offline=offline,
        progress=Bars(),
        notice=warn,
    )
    return rankings_of_run(Lineup.read(lineup_path(lineup)), folder.path, settings)


def _pairs(
    folder: TaskFolder, lineup: Path | None, depth: int, all_below: int, offline: bool, dry_run: bool
) -> list[QueryDocument]:
    """All pairs where they are few; otherwise the pool that is there, or one that is made now."""
    from bakeoff.testsets.pool import pooled, write_pool
    from bakeoff.testsets.task_folder import POOL

    if folder.size <= all_below:
        typer.echo(f"{folder.size} pairs: all of them")
        return folder.all_pairs()
    if lineup is None and (folder.annotations / POOL).exists():
        pairs = folder.pool()
        typer.echo(f"{len(pairs)} pairs of {folder.size}: the pool that is there (--lineup pools anew)")
        return pairs
    rankings = rankings_for(folder, None, lineup, offline)
    found = pooled(rankings, [entry.query_id for entry in folder.queries.queries], depth)
    if not dry_run:
        write_pool(folder, found, {"contenders": sorted(rankings), "depth": depth})
        pairs = folder.pool()
    else:
        pairs = [(query, document) for query, documents in found.items() for document in documents]
    typer.echo(f"{len(pairs)} pairs of {folder.size}: the first {depth} of {', '.join(rankings)}")
    return pairs


def _judge(
    folder: TaskFolder, pairs: list[QueryDocument], models: list[str], options: list[str] | None, repeats: int,
    max_cost: float | None, dry_run: bool, offline: bool,
) -> None:  # fmt: skip
    from bakeoff.report.console import Bars
    from bakeoff.testsets.grade import Judge, Judged, grade_all

    askers = chat_askers(models, options, max_cost, offline)
    for asker in askers:
        if repeats > 1 and asker.model.temperature == 0:
            raise InputError(
                "repeats at temperature 0 give the same answer", place="--repeats",
                remedy="add --set temperature=0.7, or name several models",
            )  # fmt: skip
    bars = Bars()
    judges = [Judge(folder, asker, repeat, bars) for asker in askers for repeat in range(repeats)]
    try:
        foreseen = [judge.asker.estimate(judge.questions(judge.open_pairs(pairs))) for judge in judges]
        if dry_run:
            for judge, spent in zip(judges, foreseen, strict=True):
                typer.echo(judge.who)
                echo_foreseen(spent)
            return
        for asker in askers:
            if not offline and any(it.requests for it, j in zip(foreseen, judges, strict=True) if j.asker is asker):
                asker.model.ready()

        def told(judged: Judged) -> None:
            typer.echo(f"{judged.who}: {sum(map(len, judged.annotation.grades.values()))} pairs graded")
            for pair, why in list(judged.failed.items())[:5]:
                typer.echo(f"  no grade for {pair[0]}, {pair[1]}: {why}", err=True)

        try:
            grade_all(judges, pairs, told)
        finally:
            for asker in askers:
                echo_spent(asker.usage)
            if folder.annotators():
                _write_truth(folder, str(folder.path))
    finally:
        for asker in askers:
            asker.close()


def _write_truth(folder: TaskFolder, task: str) -> None:
    truth = folder.write_truth()
    typer.echo(f"{folder.truth.metadata['pairs']} grades in {folder.truth_path}")
    if truth.open:
        typer.echo(
            f"warning: {len(truth.open)} pairs have no majority; the grade nearest to the middle stands, the lower of "
            f"two: bakeoff adjudicate {task}"
        )


def _serve(folder: TaskFolder, who: str | None, pairs: list[QueryDocument], port: int, open_page: bool) -> None:
    import getpass
    import webbrowser

    from bakeoff.testsets.annotate import Server
    from bakeoff.testsets.grading_session import GradingSession

    session = GradingSession(folder, who or getpass.getuser(), pairs)
    with session.alone():
        server = Server(session, port)
        typer.echo(
            f"{session.done} of {len(session.pairs)} pairs graded by {session.who}. Open {server.address}\n"
            "Ctrl-C ends it."
        )
        if open_page:
            webbrowser.open(server.address)
        try:
            server.serve()
        except KeyboardInterrupt:
            pass
        finally:
            server.close()
    typer.echo(f"\n{session.done} of {len(session.pairs)} graded: {session.path}")
    typer.echo(f"next: bakeoff adjudicate {folder.path.parent}")


def _effect(it: Candidate) -> str:
    if it.swaps:
        first, second = it.swaps[0]
        more = f" and {len(it.swaps) - 1} more such" if len(it.swaps) > 1 else ""
        return f"a {it.grade} puts {first} before {second}{more}"
    if it.gap is None:
        return "nothing"
    behind, ahead = it.gap
    if it.closes == float("inf"):
        return f"a {it.grade} parts {behind} and {ahead}"
    return f"a {it.grade} closes {it.closes:.0%} of the gap of {behind} to {ahead}"
