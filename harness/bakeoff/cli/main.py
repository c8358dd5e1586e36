"""The entry point: commands, and how errors are reported."""

from __future__ import annotations

import contextlib
import shlex
import sys
from collections.abc import Sequence
from typing import Annotated, NoReturn

import typer
from bakeoff_providers.errors import BakeoffError, InputError
from bakeoff_providers.secrets import scrub, without_secrets

from bakeoff.cli import signals, streams
from bakeoff.cli.command_table import CommandGroup
from bakeoff.core.printable import printable

UNEXPECTED = 70  # EX_SOFTWARE of sysexits.h

app = typer.Typer(
    help="Compare embedding models and vector stores on your corpus.",
    cls=CommandGroup,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich would take half the time of `--help`
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from bakeoff import __version__

        streams.echo(f"bakeoff {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    verbose: Annotated[bool, typer.Option("--verbose", help="Log to stderr, with tracebacks of failed rows.")] = False,
    version: Annotated[  # noqa: ARG001 - its callback does it
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    if verbose:
        import logging

        class Scrubbing(logging.Formatter):
            """Scrubs tracebacks, which quote addresses and keys."""

            def format(self, record: logging.LogRecord) -> str:
                return without_secrets(super().format(record))

        handler = logging.StreamHandler()
        handler.setFormatter(Scrubbing("%(asctime)s %(name)s %(levelname)s: %(message)s", "%H:%M:%S"))
        for name in ("bakeoff", "bakeoff_providers"):
            logger = logging.getLogger(name)
            logger.setLevel(logging.DEBUG)
            logger.addHandler(handler)


def main() -> None:
    """The entry point. Exits with 2 for bad input, 1 for a failure, 70 for an unexpected error."""
    streams.ready()
    sys.argv[1:] = _verbose_first(sys.argv[1:])
    signals.install()
    try:
        app()
    except InputError as error:
        _fail(f"error: {error}" + (f"\n  remedy: {error.remedy}" if error.remedy else ""), 2, error)
    except BakeoffError as error:
        _fail(f"error: {error}", 1, error)
    except OSError as error:  # a full or read-only disk, an impossible file name
        where = f"{error.filename}: " if error.filename else ""
        _fail(f"error: {where[:300]}{error.strerror or error}", 1, error)
    except SystemExit:
        if signals.received:  # typer exits silently on Ctrl-C
            _leave_interrupted()
        raise
    except KeyboardInterrupt:
        _leave_interrupted()
    except BaseException as error:
        report_ = f"unexpected error: {type(error).__name__}: {scrub(str(error))}{_place(error)}"
        verbose = "--verbose" in sys.argv
        _fail(report_ + ("" if verbose else "\n  run again with --verbose for the traceback"), UNEXPECTED, error)


def console() -> None:
    """Runs the command as the process's only work, then exits."""
    code = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1 if ended.code else 0
        raise
    finally:
        signals.leave_threads(code)


def _place(error: BaseException) -> str:
    """The last line of our code in the traceback."""
    import traceback

    frames = [(frame.f_globals.get("__name__", ""), line) for frame, line in traceback.walk_tb(error.__traceback__)]
    ours = [f"{name}:{line}" for name, line in frames if name.split(".")[0] in ("bakeoff", "bakeoff_providers")]
    return f"\n  at {ours[-1]}" if ours else ""


def _verbose_first(arguments: Sequence[str]) -> list[str]:
    """Move `--verbose` to the front. It is a global option, but users often put it last."""
    last = arguments.index("--") if "--" in arguments else len(arguments)
    others = [argument for argument in arguments[:last] if argument != "--verbose"]
    return [*["--verbose"] * (len(others) < last), *others, *arguments[last:]]


def _leave_interrupted() -> NoReturn:
    """Prints what was saved and how to resume."""
    with contextlib.suppress(OSError, ValueError):  # whoever read the output may be gone
        sys.stdout.flush()
    message = f"{signals.message()}\n  {shlex.join(['bakeoff', *sys.argv[1:]])}"
    signals.leave(signals.exit_code(), printable(without_secrets(message)))


def _fail(text: str, code: int, error: BaseException | None = None) -> None:
    """Prints the error, and with --verbose the traceback."""
    if error is not None:
        import logging

        logging.getLogger("bakeoff").debug("the command failed", exc_info=error)
    from bakeoff.cli.shared_options import say

    say(without_secrets(text), err=True)
    sys.exit(code)
