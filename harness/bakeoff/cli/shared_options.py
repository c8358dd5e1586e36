"""What several commands share: their arguments and options, the one reading of key=value, and how a check ends."""

from __future__ import annotations

import datetime
import json
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar

import typer
from bakeoff_providers.errors import CallFailed, EmbeddingFailed, InputError, StoreError, Unavailable
from bakeoff_providers.secrets import without_secrets

from bakeoff.cli.streams import echo
from bakeoff.core.facts import Fact
from bakeoff.core.whole import whole_number

if TYPE_CHECKING:
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.results.check import Check
    from bakeoff.systems.base import NotRun

T = TypeVar("T")

LineupArgument = Annotated[
    Path | None,
    typer.Argument(help="A line-up, or a built-in one's name; default: ./bakeoff.toml, or the built-in one."),
]
LineupOption = Annotated[Path | None, typer.Option(help="The contenders; default: ./bakeoff.toml or the built-in one.")]
ContendersOption = Annotated[
    list[str] | None, typer.Option(help="Only contenders of this label, provider, ranker or model; may be repeated.")
]
TaskArgument = Annotated[str, typer.Argument(help="The task: its folder, task.toml or built-in name, or a line-up.")]
OutOption = Annotated[Path, typer.Option(help="Where the result's folder is made.")]
EquivalentWithin = Annotated[
    float | None,
    typer.Option(
        "--equivalent-within", min=0, help="Say what is as good as the best within this margin, such as 0.02."
    ),
]
Baseline = Annotated[
    str, typer.Option("--baseline", metavar="CONTENDER", help="Compare every other row with this one, the incumbent.")
]
Wide = Annotated[bool, typer.Option("--wide", help="All figures, the matrix as one wide table.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the stored figures as JSON instead.")]
MaxCost = Annotated[float | None, typer.Option(min=0, help="Stop before this many dollars are spent.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print requests and cost; send nothing.")]
Offline = Annotated[bool, typer.Option("--offline", help="Use cached vectors only.")]
VectorsOption = Annotated[str | None, typer.Option(help="Shards that `bakeoff embed` made: no document is asked for.")]
EngineOption = Annotated[
    str | None, typer.Option(help="Where the heavy steps are done: local or ray; default: what the line-up says.")
]
AddressOption = Annotated[
    str | None, typer.Option(help="Ray's cluster: auto, or ray://head:10001; default: one on this machine.")
]
ColumnOption = Annotated[
    list[str] | None, typer.Option(help="Another name of a column, as text=body; may be repeated.")
]
LabelOption = Annotated[
    list[str] | None, typer.Option("--grade", help="What a label is worth, as Exact=3; may be repeated.")
]

LATEST = "latest"
ARTICLES = Path("articles.json")  # what `corpus import` writes and `queries import` reads
SHOWN = 10  # of a list of what was left out
MOST_ROUNDS = 10_000  # as of a line-up
OWN_LINEUP = Path("bakeoff.toml")  # what commands take, and `init` writes, where no other line-up is named
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LONGEST_NUMBER = 400  # characters: a float has 309 digits at most
_WORDS = {"true": True, "false": False, "null": None}


def result_path(given: Path) -> Path:
    """A result's folder; of a folder that holds several the newest; `latest` is the newest under results/ here."""
    from bakeoff.results.schema import SUMMARY, newest

    path = _existing(given)
    return path if (path / SUMMARY).is_file() else newest(path) or path


def _existing(given: Path) -> Path:
    """What was named, or what `latest` stands for."""
    from bakeoff_providers.registry import closest_path

    from bakeoff.results.schema import newest

    results = Path("results")
    if given.exists():
        return given
    if given != Path(LATEST):
        problem, question = "no such folder", closest_path(given, [Path(LATEST), *sorted(results.glob("[!.]*"))])
        remedy = f"{question} A folder under results/ is a result, `{LATEST}` the newest of them".lstrip()
        raise InputError(problem, file=given, remedy=remedy)
    if (result := newest(results)) is None:
        raise InputError("there is no result under results/ yet", place=LATEST, remedy="make one with `bakeoff run`")
    return result


def latest(given: Path | list[Path] | None) -> Path | list[Path] | None:
    """Wherever a result is taken, `latest` is one; commands that take several look into folders themselves."""
    if isinstance(given, list):
        return [_existing(path) for path in given]
    return None if given is None else result_path(given)


ResultArgument = Annotated[
    Path, typer.Argument(metavar="RESULT", callback=latest, help="A folder under results/, or `latest`.")
]
ResultsArgument = Annotated[
    list[Path], typer.Argument(metavar="RESULT...", callback=latest, help="Folders under results/, or `latest`.")
]
ResultOption = Annotated[
    Path | None,
    typer.Option(callback=latest, help="Take the rankings of this result (or `latest`) instead of running."),
]
BaselineOption = Annotated[
    Path | None, typer.Option(help="The result to compare with, or a folder of results: the newest other one.")
]


def baseline_path(given: Path | None, result: Path) -> Path:
    """The result to compare another one with: it may be the newest of a folder, but never that other one itself."""
    from bakeoff.results.schema import SUMMARY, newest

    problem = "not given: the result to compare with"
    if given is not None:
        path = _existing(given)
        is_one = (path / SUMMARY).is_file()
        baseline = path if is_one else newest(path, result) or (None if newest(path) else path)
        if baseline is not None and baseline.resolve() != result.resolve():
            return baseline
        problem = f"{given} is the result itself" if is_one else f"{given} holds no other result"
    other = newest(result.parent, result)
    remedy = f"bakeoff gate {result} --baseline {other}" if other else "make another result with `bakeoff run`"
    raise InputError(problem, place="--baseline", remedy=remedy)


def key_values(texts: Sequence[str] | None, option: str = "--set", example: str = "ef=64") -> list[tuple[str, str]]:
    """Each `key=value` that an option was given, in order."""
    pairs = []
    for text in texts or ():
        key, equals, value = (part.strip() for part in text.partition("="))
        if not key or not equals:
            raise InputError(f"{text!r} is not key=value", place=option, remedy=f"write it as {example}")
        pairs.append((key, value))
    return pairs


def _each_once(texts: Sequence[str] | None, option: str, example: str) -> dict[str, str]:
    """Where a second value of a key would silently replace the first, it is refused."""
    values: dict[str, str] = {}
    for key, value in key_values(texts, option, example):
        if key in values:
            raise InputError(f"{key} is set twice", place=option, remedy="give it once")
        values[key] = value
    return values


def parse_value(text: str) -> Any:
    """Numbers, true, false, null, and lists, tables and quoted text as JSON; anything else is text as it is."""
    if len(text) < _LONGEST_NUMBER and _NUMBER.fullmatch(text):
        return int(text) if text.lstrip("+-").isdecimal() else float(text)
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    if text[:1] in ("[", "{", '"'):
        try:
            return json.loads(text)
        except (RecursionError, ValueError):
            pass
    return text


def parse_settings(texts: Sequence[str] | None, example: str) -> dict[str, Any]:
    """What `--set` says, each key once."""
    return _without_secrets({key: parse_value(value) for key, value in _each_once(texts, "--set", example).items()})


def parse_repeated(texts: Sequence[str] | None) -> dict[str, list[Any]]:
    """What `--set` says where a key may be given several values, one after the other."""
    values: dict[str, list[Any]] = {}
    for key, value in key_values(texts):
        values.setdefault(key, []).append(parse_value(value))
    return _without_secrets(values)


def _without_secrets(settings: dict[str, T]) -> dict[str, T]:
    """Recordings, tables and results hold what was set: an address with a secret in it is refused, as in a line-up."""
    if settings:
        from bakeoff.lineup.checks import check_no_secrets

        check_no_secrets(settings, "--set")
    return settings


def parse_columns(texts: Sequence[str] | None, example: str = "title=heading") -> dict[str, str]:
    """What a table calls its columns, by what we call them."""
    columns = _each_once(texts, "--column", example)
    if unnamed := [key for key, column in columns.items() if not column]:
        raise InputError(f"{unnamed[0]}= names no column", place="--column", remedy=f"write it as {example}")
    return columns


def parse_labels(texts: Sequence[str] | None) -> dict[str, int]:
    """What the labels of a column of grades are worth."""
    grades = {}
    for label, text in _each_once(texts, "--grade", "Exact=3").items():
        if (grade := whole_number(text)) is None:
            raise InputError(f"{label}={text} is no whole number from 0 on", place="--grade", remedy="as Exact=3")
        grades[label] = grade
    return grades


def annotator_name(given: str | None) -> str:
    """Who grades: the name that was given, or the one that this machine knows the user by."""
    import getpass

    try:
        return given or getpass.getuser()
    except (KeyError, OSError):  # a user without a name, as in many containers
        raise InputError("no user name is known here", place="--who", remedy="give --who NAME") from None


def parse_day(text: str | None, option: str) -> datetime.date | None:
    """The day that an option gives."""
    try:
        return datetime.date.fromisoformat(text) if text else None
    except ValueError:
        raise InputError(f"{text!r} is not a date", place=option, remedy="write it as 2026-11-16") from None


def lineup_path(given: Path | None) -> Path:
    """The file that was named, the one in this folder, or the one that comes with Bakeoff."""
    from bakeoff.core.paths import default_lineup, lineup_file

    return lineup_file(given) if given else OWN_LINEUP if OWN_LINEUP.is_file() else default_lineup()


def read_lineup(path: Path) -> Lineup:
    """The line-up in a file; a task that it names and that is nowhere is an error in this file."""
    from bakeoff.core.paths import task_description
    from bakeoff.lineup.lineup import Lineup

    lineup = Lineup.read(path)
    for one in lineup.per_task():
        if isinstance(one.task, str):
            try:
                task_description(one.task, one.folder)
            except InputError as error:
                raise InputError(error.problem, file=path, place="task", remedy=error.remedy) from None
    return lineup


def shard_folders(vectors: str | None) -> tuple[Path, ...]:
    """The shards that `--vectors` names, here or fetched; one that is missing is an error before anything is asked."""
    from bakeoff.core.progress import showing
    from bakeoff.core.remote import SharedFolder
    from bakeoff.report.console import Bars
    from bakeoff.running.shard_folders import complete_folders

    if not vectors:
        return ()
    shared = SharedFolder(vectors)
    with showing(Bars()):
        listed = shared.fetch_listed()
    return complete_folders(shared.path, listed, shared.address if shared.remote else "")


def say(text: str, *, err: bool = False) -> None:
    """A sentence in lines that fit the screen; a log of what goes to stderr keeps its lines whole."""
    from bakeoff.core.wrapping import screen_width, wrapped

    stream = sys.stderr if err else sys.stdout
    text = without_secrets(text) if err else text  # before a line break can divide one
    for line in wrapped(text, screen_width(stream)) if not err or stream.isatty() else [text]:
        echo(line, err=err)


def say_commands(text: str) -> None:
    """Lines to copy and paste: a break within a command would run half of it, so the terminal folds them."""
    echo(text)


def say_list(what: str, names: list[str], where: str) -> None:
    """The first names of a list; of a longer one also where all of them are written."""
    if names:
        say(f"{what}: {len(names)}")
        for name in names[:SHOWN]:
            say(f"  {name}")
        if len(names) > SHOWN:
            say(f"  … and {len(names) - SHOWN} more" + (f", all in {where}" if where else ""))


def grading_command(task: Path | str, lineup: Path) -> str:
    """What grades a task, by the pairs that a line-up's contenders find first."""
    return f"bakeoff grade {task} --lineup {lineup}"


def next_to_grade(task: Path | str, lineup: Path | None = None) -> str:
    """What leads on to grades: a line-up, whose contenders say what is worth grading, and then the grading."""
    grade = grading_command(task, lineup or OWN_LINEUP)
    return f"next: {grade}" if lineup or OWN_LINEUP.exists() else f"next: bakeoff init {task}\n      {grade}"


def notice(text: str) -> None:
    """What a user may want to know, on stderr."""
    say(f"notice: {text}", err=True)


def warn(about: Fact | NotRun) -> None:
    """What may be wrong, on stderr."""
    from bakeoff.report.words import failure_words, words

    if isinstance(about, Fact):
        say(f"warning: {words(about)}", err=True)
    else:
        say(f"warning: {about.contender.label} will not run: {failure_words(about.failure)}", err=True)


def check_file(out: Path | None, *, force: bool) -> None:
    """Refuses at the start a file that can't be written, or that is there and may not be written over.

    `force` is for what the user says, and for files that are made again each time: pages of results, a monitor's.
    """
    if out is None:
        return
    if out.is_file() and not force:
        raise InputError("exists already", file=out, remedy="--force writes over it, --out names another")
    if out.is_dir():
        raise InputError("is a folder", file=out, remedy="name a file, such as " + str(out / "name"))
    check_folder(out.parent)


def check_folder(out: Path) -> None:
    """Refuses at the start what would only fail when the result is written."""
    from bakeoff.core.files import check_writable

    check_writable(out)


JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")]
MetricsOption = Annotated[
    Path | None, typer.Option("--metrics-file", help="Write the figures here as OpenMetrics text, for a monitor.")
]


def deliver(command: str, check: Callable[[], Check], *, as_json: bool, metrics_file: Path | None) -> NoReturn:
    """Runs the check, prints it and ends: 0 fine, 1 changed or worse, 2 bad input, 3 could not reach the service."""
    from bakeoff.core.files import write_atomic
    from bakeoff.results.check import UNREACHABLE, unreachable

    if metrics_file is not None and not metrics_file.absolute().parent.is_dir():
        raise InputError("its folder does not exist", file=metrics_file, place="--metrics-file", remedy="make it first")
    check_file(metrics_file, force=True)
    try:
        outcome = check()
    except (Unavailable, CallFailed, EmbeddingFailed, StoreError) as error:
        cause = error.__cause__
        while cause is not None and not isinstance(cause, InputError):
            cause = cause.__cause__
        if cause is not None:  # a disk that is full, an option: nothing was asked
            raise cause from None
        if metrics_file is not None:
            write_atomic(metrics_file, unreachable(command))
        say(f"error: {error}", err=True)
        raise typer.Exit(UNREACHABLE) from None
    if metrics_file is not None:
        write_atomic(metrics_file, outcome.to_openmetrics())
    if as_json:
        echo(outcome.to_json().decode())
    else:
        for sentence in outcome.sentences:
            say(sentence)
    raise typer.Exit(outcome.exit_code)
