"""Arguments and options shared by commands, key=value parsing, and exit codes of checks."""

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
from bakeoff.core.printable import whole_number

if TYPE_CHECKING:
    from bakeoff.lineup.lineup import Lineup
    from bakeoff.results.check import Check
    from bakeoff.systems.base import NotRun

T = TypeVar("T")

LineupArgument = Annotated[
    Path | None,
    typer.Argument(help="Line-up or built-in name. Default: ./bakeoff.toml."),
]
LineupOption = Annotated[Path | None, typer.Option(help="Line-up with the contenders. Default: ./bakeoff.toml.")]
ContendersOption = Annotated[
    list[str] | None, typer.Option(help="Keep this label, provider, ranker or model; repeatable.")
]
OutOption = Annotated[Path, typer.Option(help="Folder for the result.")]
EquivalentWithin = Annotated[
    float | None,
    typer.Option("--equivalent-within", min=0, help="Test equivalence with the best within this margin."),
]
Baseline = Annotated[
    str, typer.Option("--baseline", metavar="CONTENDER", help="Compare every row with this one, the incumbent.")
]
Wide = Annotated[bool, typer.Option("--wide", help="Print all figures as one wide table.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the stored figures as JSON instead.")]
MaxCost = Annotated[float | None, typer.Option(min=0, help="Stop before this many dollars are spent.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print requests and cost; send nothing.")]
Offline = Annotated[bool, typer.Option("--offline", help="Use cached vectors only.")]
VectorsOption = Annotated[str | None, typer.Option(help="Use shards made by `bakeoff embed` for the documents.")]
EngineOption = Annotated[str | None, typer.Option(help="Run heavy steps on local or ray. Default: the line-up's.")]
AddressOption = Annotated[str | None, typer.Option(help="Ray cluster: auto or ray://head:10001. Default: local.")]
ColumnOption = Annotated[list[str] | None, typer.Option(help="Map a column name, such as text=body; repeatable.")]
LabelOption = Annotated[
    list[str] | None, typer.Option("--grade", help="Map a label to a grade, such as Exact=3; repeatable.")
]

LATEST = "latest"
PIPE = Path("-")
MOST_ROUNDS = 10_000  # as in a line-up
OWN_LINEUP = Path("bakeoff.toml")  # the default line-up, which `init` writes
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_LONGEST_NUMBER = 400  # characters; a float has at most 309 digits
_WORDS = {"true": True, "false": False, "null": None}


def result_path(given: Path) -> Path:
    """A result's folder; for a folder of results, the newest. `latest` is the newest under results/."""
    from bakeoff.results.schema import SUMMARY, newest

    path = _existing(given)
    return path if (path / SUMMARY).is_file() else newest(path) or path


def read_pipe(given: Path | list[Path]) -> Path | list[Path]:
    """A file to read; `-` is standard input, copied to a file because many formats are read twice."""
    if isinstance(given, list):
        if given.count(PIPE) > 1:
            raise InputError("standard input can be read only once", place="-", remedy="name files")
        return [_spool_stdin() if path == PIPE else path for path in given]
    return _spool_stdin() if given == PIPE else given


def _spool_stdin() -> Path:
    """Copies stdin to a temporary file whose suffix fits its content; removed at exit."""
    import atexit
    import shutil
    from contextlib import ExitStack

    from bakeoff.core.files import open_unpacked
    from bakeoff.search.stores.scratch import scratch

    stack = ExitStack()
    atexit.register(stack.close)
    path = stack.enter_context(scratch("pipe")) / "stdin"
    with path.open("wb") as file:
        shutil.copyfileobj(sys.stdin.buffer, file)
    with open_unpacked(path) as stream:
        return path.rename(path.with_suffix(_ending_of(stream.readline())))


def _ending_of(line: bytes) -> str:
    """Guesses the suffix of a file from its first line."""
    if line.startswith(b"PAR1"):
        return ".parquet"
    if line.lstrip()[:1] in (b"{", b"["):
        try:
            return ".jsonl" if isinstance(json.loads(line), dict) else ".json"
        except ValueError:  # continues on the next line
            return ".json"
    return ".tsv" if b"\t" in line else ".csv" if b"," in line else ".txt"


def _existing(given: Path) -> Path:
    """The given path, with `latest` resolved."""
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
    """Resolves `latest` for arguments that take results. Commands that take several search folders themselves."""
    if isinstance(given, list):
        return [_existing(path) for path in given]
    return None if given is None else result_path(given)


ResultArgument = Annotated[Path, typer.Argument(metavar="RESULT", callback=latest, help="Result folder, or `latest`.")]
ResultsArgument = Annotated[
    list[Path], typer.Argument(metavar="RESULT...", callback=latest, help="Result folders, or `latest`.")
]
BaselineOption = Annotated[Path | None, typer.Option(help="Result to compare with, or a folder for its newest.")]


def baseline_path(given: Path | None, result: Path) -> Path:
    """The baseline of a result: possibly the newest of a folder, but never the result itself."""
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
    """Each `key=value` of an option, in order."""
    pairs = []
    for text in texts or ():
        key, equals, value = (part.strip() for part in text.partition("="))
        if not key or not equals:
            raise InputError(f"{text!r} is not key=value", place=option, remedy=f"write it as {example}")
        pairs.append((key, value))
    return pairs


def _each_once(texts: Sequence[str] | None, option: str, example: str) -> dict[str, str]:
    """Refuses a key given twice, whose first value would silently be lost."""
    values: dict[str, str] = {}
    for key, value in key_values(texts, option, example):
        if key in values:
            raise InputError(f"{key} is set twice", place=option, remedy="give it once")
        values[key] = value
    return values


def parse_value(text: str) -> Any:
    """Numbers, true, false, null, and JSON lists, tables and quoted strings; anything else is a string."""
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
    """The values of `--set`, each key once."""
    return _without_secrets({key: parse_value(value) for key, value in _each_once(texts, "--set", example).items()})


def parse_repeated(texts: Sequence[str] | None) -> dict[str, list[Any]]:
    """The values of `--set` where keys may be repeated."""
    values: dict[str, list[Any]] = {}
    for key, value in key_values(texts):
        values.setdefault(key, []).append(parse_value(value))
    return _without_secrets(values)


def _without_secrets(settings: dict[str, T]) -> dict[str, T]:
    """Refuses an address with a secret, since settings are stored in recordings, tables and results."""
    if settings:
        from bakeoff.lineup.checks import check_no_secrets

        check_no_secrets(settings, "--set")
    return settings


def parse_columns(texts: Sequence[str] | None, example: str = "title=heading") -> dict[str, str]:
    """A table's column names by ours."""
    columns = _each_once(texts, "--column", example)
    if unnamed := [key for key, column in columns.items() if not column]:
        raise InputError(f"{unnamed[0]}= names no column", place="--column", remedy=f"write it as {example}")
    return columns


def parse_labels(texts: Sequence[str] | None) -> dict[str, int]:
    """The grades of labels."""
    grades = {}
    for label, text in _each_once(texts, "--grade", "Exact=3").items():
        if (grade := whole_number(text)) is None:
            raise InputError(f"{label}={text} is not a whole number from 0 up", place="--grade", remedy="as Exact=3")
        grades[label] = grade
    return grades


def parse_day(text: str | None, option: str) -> datetime.date | None:
    """Parses an option's date."""
    try:
        return datetime.date.fromisoformat(text) if text else None
    except ValueError:
        raise InputError(f"{text!r} is not a date", place=option, remedy="write it as 2026-11-16") from None


def lineup_path(given: Path | None) -> Path:
    """The line-up's path: the given one, the one in this folder, or the built-in one."""
    from bakeoff.core.paths import default_lineup, lineup_file

    return lineup_file(given) if given else OWN_LINEUP if OWN_LINEUP.is_file() else default_lineup()


def read_lineup(path: Path) -> Lineup:
    """The line-up in a file. A missing task is reported for this file."""
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
    """The shards named by `--vectors`, local or fetched. A missing one fails before any request."""
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
    """Prints a sentence wrapped to the screen. In a log on stderr, lines stay whole."""
    from bakeoff.core.printable import screen_width, wrap

    stream = sys.stderr if err else sys.stdout
    text = without_secrets(text) if err else text  # before a line break can split one
    for line in wrap(text, screen_width(stream)) if not err or stream.isatty() else [text]:
        echo(line, err=err)


def say_commands(text: str) -> None:
    """Prints commands unwrapped, so that they can be copied and pasted."""
    echo(text)


def grading_command(task: Path | str, lineup: Path) -> str:
    """The command that grades the top results of a line-up's contenders."""
    return f"bakeoff grade {task} --lineup {lineup}"


def notice(text: str) -> None:
    """Prints a note to stderr."""
    say(f"notice: {text}", err=True)


def warn(about: Fact | NotRun) -> None:
    """Prints a warning to stderr."""
    from bakeoff.report.words import failure_words, words

    if isinstance(about, Fact):
        say(f"warning: {words(about)}", err=True)
    else:
        say(f"warning: {about.contender.label} will not run: {failure_words(about.failure)}", err=True)


def check_file(out: Path | None, *, force: bool) -> None:
    """Refuses a file that can't be written or exists already, before the work starts.

    `force` is for the user's --force, and for files that are rewritten each time, such as pages and metrics.
    """
    if out is None:
        return
    if out.is_file() and not force:
        raise InputError("exists already", file=out, remedy="--force overwrites it, --out sets another path")
    if out.is_dir():
        raise InputError("is a folder", file=out, remedy="name a file, such as " + str(out / "name"))
    check_folder(out.parent)


def check_folder(out: Path) -> None:
    """Refuses a folder that can't be written, before the work starts."""
    from bakeoff.core.files import check_writable

    check_writable(out)


JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON instead of sentences.")]
MetricsOption = Annotated[
    Path | None, typer.Option("--metrics-file", help="Write the figures here as OpenMetrics text, for a monitor.")
]


def deliver(command: str, check: Callable[[], Check], *, as_json: bool, metrics_file: Path | None) -> NoReturn:
    """Runs a check, prints it and exits: 0 fine, 1 changed or worse, 2 bad input, 3 service unreachable."""
    from bakeoff.core.files import write_atomic
    from bakeoff.report.words import words
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
        if cause is not None:  # a full disk, an option: nothing was sent
            raise cause from None
        if metrics_file is not None:
            write_atomic(metrics_file, unreachable(command))
        say(f"error: {error}", err=True)
        raise typer.Exit(UNREACHABLE) from None
    if metrics_file is not None:
        write_atomic(metrics_file, outcome.to_openmetrics())
    text = [words(fact) for fact in outcome.facts]
    if as_json:
        echo(outcome.to_json(text).decode())
    else:
        for sentence in text:
            say(sentence)
    raise typer.Exit(outcome.exit_code)
