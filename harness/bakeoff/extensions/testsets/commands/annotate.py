"""`bakeoff annotate` and `bakeoff adjudicate`: grade by hand, and resolve disagreements."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from bakeoff_providers.errors import InputError

from bakeoff.cli import signals
from bakeoff.cli.shared_options import say, say_commands
from bakeoff.extensions.testsets.commands.pairs_to_grade import TaskArgument, annotator_name

if TYPE_CHECKING:
    from bakeoff.extensions.testsets.agreement import Disagreement
    from bakeoff.extensions.testsets.annotations import QueryDocument
    from bakeoff.extensions.testsets.task_folder import TaskFolder

Who = Annotated[str | None, typer.Option(help="Name of the annotator; default: your login.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The page's port; 0 takes a free one.")]
OpenPage = Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")]


def annotate(task: TaskArgument, who: Who = None, port: Port = 0, open_page: OpenPage = True) -> None:
    """Grade by hand, on a page that only this machine can open."""
    from bakeoff.extensions.testsets.pool import ALL_BELOW
    from bakeoff.extensions.testsets.task_folder import TaskFolder
    from bakeoff.tasks.looks import POOL

    folder = TaskFolder.open(task)
    if folder.size > ALL_BELOW and not (folder.annotations / POOL).exists():
        raise InputError(
            f"{folder.size} pairs are too many to grade by hand", file=folder.path,
            remedy=f"bakeoff grade {task} pools the contenders' top documents",
        )  # fmt: skip
    serve_page(folder, who, folder.pool(), port, open_page, again=True, whole=True)


def adjudicate(
    task: TaskArgument,
    decisions: Annotated[
        Path | None, typer.Option("--from", help="A JSON list of {query_id, page_id, grade, why}.")
    ] = None,
    majority: Annotated[bool, typer.Option("--majority", help="Ask no questions; the majority decides.")] = False,
) -> None:
    """Resolve disagreements, then write the ground truth."""
    from bakeoff.core.printable import pluralise
    from bakeoff.extensions.testsets.agreement import Adjudication
    from bakeoff.extensions.testsets.task_folder import TaskFolder

    folder = TaskFolder.open(task)
    folder.check_own()
    if not folder.annotators():
        raise InputError("there are no grades yet", file=folder.annotations, remedy=f"bakeoff annotate {task}")
    work = Adjudication(folder)
    if decisions is not None:
        say(f"{pluralise(work.decide_from(decisions), 'decision')} taken from {decisions}")
    if not majority and (left := work.open()):
        say(f"{pluralise(len(left), 'pair')} to settle. Type a grade and Enter; s skips a pair, q quits.")
        decided = work.ask(_Asking(folder))
        say(f"{decided} settled.")
    write_truth(folder, task)


class _Asking:
    """Shows a pair at the terminal and takes a grade with a reason."""

    def __init__(self, folder: TaskFolder) -> None:
        self._folder = folder
        self._grades = [str(grade) for grade in sorted(folder.scale)]
        self._ended = False

    def __call__(self, pair: Disagreement) -> tuple[int, str] | None:
        if self._ended:
            return None
        query, document = self._folder.query(pair.query), self._folder.document(pair.document)
        say(f"\n{pair.query}: {query.text}\n{document.title} ({pair.document})\n{document.text}")
        choice = ", ".join([*self._grades, "s", "q"])
        say("given: " + ", ".join(f"{name} {grade}" for name, grade in pair.grades.items()))
        while True:
            try:
                answer = typer.prompt("grade", prompt_suffix=f" ({choice}): ").strip().lower()
            except typer.Abort:
                answer = "q"
            if answer in ("s", "q"):
                self._ended = answer == "q"
                return None
            if answer in self._grades:
                return int(answer), typer.prompt("why", default="", show_default=False)
            say(f"one of {choice}")


def serve_page(
    folder: TaskFolder,
    who: str | None,
    pairs: list[QueryDocument],
    port: int,
    open_page: bool,
    keep_pool: Callable[[], object] = lambda: None,
    *,
    again: bool = False,
    whole: bool = False,
) -> None:
    """Serve the grading page for one annotator until Ctrl-C. `keep_pool` is called once it is up.

    If every pair is graded, the page is served only with `again`, for review. `whole` means that these are the pairs
    of an export.
    """
    import webbrowser

    from bakeoff.core.printable import pluralise
    from bakeoff.extensions.testsets.annotate import GradingSession, Server

    session = GradingSession(folder, annotator_name(who), pairs)
    folder.check_own()
    if session.done == len(session.pairs) and not again:
        keep_pool()
        say(
            f"Nothing left to grade: {session.done} of {pluralise(len(session.pairs), 'pair')} graded by {session.who}."
        )
        say_commands(f"To review them: bakeoff annotate {folder.name} --who {session.who}")
        write_truth(folder, folder.name)
        return
    server = Server(session, port)
    try:
        with session.alone():
            keep_pool()
            say(
                f"{session.done} of {pluralise(len(session.pairs), 'pair')} graded by {session.who}. "
                f"Open {server.address}\nPress Ctrl-C to stop."
            )
            if whole:
                say_commands(f"To grade in a spreadsheet: bakeoff grade export {folder.name}")
            with contextlib.suppress(KeyboardInterrupt), signals.allow_interrupt():
                if open_page:
                    webbrowser.open(server.address)
                server.serve()
    finally:
        server.close()
    kept = f"kept in {session.path}" if session.path.exists() else "nothing is written"
    say(f"\n{session.done} of {len(session.pairs)} graded: {kept}")
    if session.done:
        write_truth(folder, folder.name)


def write_truth(folder: TaskFolder, task: str) -> None:
    """Write the ground truth from all grades, and warn of pairs without a majority."""
    from bakeoff.core.printable import pluralise
    from bakeoff.report.words import words

    truth = folder.write_truth()
    say(f"{pluralise(folder.truth.metadata['pairs'], 'grade')} in {folder.truth_path}")
    if standing := folder.standing():
        say(words(standing))
    if truth.open:
        say(
            f"warning: {pluralise(len(truth.open), 'pair')} {'has' if len(truth.open) == 1 else 'have'} no majority; "
            f"the grade nearest to the median counts (the lower of two): bakeoff adjudicate {task}"
        )
