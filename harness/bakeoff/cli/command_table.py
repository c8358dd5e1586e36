"""The commands by name, each imported when it is called: most of a short command's time would go into the others."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from bakeoff.cli.path_arguments import with_checked_paths

# Name → `module:function` in this folder, or the family's Typer; in the order of `bakeoff --help`.
COMMANDS = {
    "init": "init:init",
    "run": "run:run",
    "show": "run:show",
    "embed": "embed:embed",
    "tasks": "tasks:tasks",
    "validate": "validate:validate",
    "report": "report:report",
    "history": "report:history",
    "serve": "report:serve",
    "list": "listing:list_",
    "options": "options:options",
    "corpus": "corpus:corpus",
    "select": "select:select",
    "queries": "queries:queries",
    "grade": "grade:grade",
    "annotate": "annotate:annotate",
    "agreement": "agreement:agreement",
    "adjudicate": "annotate:adjudicate",
    "audit": "agreement:audit",
    "score": "score:score",
    "compare": "compare:compare",
    "gate": "compare:gate",
    "plan-queries": "plan_queries:plan_queries",
    "corpus-size": "corpus_size:corpus_size",
    "export-mteb": "export_mteb:export_mteb",
    "snapshot": "snapshot:snapshot",
    "sweep": "stores:sweep",
    "loadtest": "stores:loadtest",
    "footprint": "stores:footprint",
    "log": "log:log",
    "canary": "canary:canary",
    "probe": "probe:probe",
    "migrate": "migrate:migrate",
    "interleave": "traffic:interleave",
    "ab": "traffic:ab",
    "doctor": "doctor:doctor",
    "cache": "cache:cache",
    "vectors": "vectors:vectors",
    "models": "listing:models",
}


class CommandGroup(TyperGroup):
    """All commands; `--help` needs their first lines alone, so that it reads no signature."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _Commands()  # type: ignore[assignment]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Names and values end up in files, and these are UTF-8: what is not is said before anything is done."""
        for argument in args:
            try:
                argument.encode()
            except UnicodeEncodeError:
                shown = argument.encode("utf-8", "backslashreplace").decode()
                raise typer.BadParameter(f"{shown} is not UTF-8: rename the file, or write it in UTF-8") from None
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click's signature
        """In the order of the table."""
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - click's signature
        """The list under `--help`."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _summary(name)) for name in COMMANDS])


class _Commands(Mapping[str, Any]):
    """Looks like typer's own mapping, but makes a command when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        imported = _imported(name)
        family = isinstance(imported, typer.Typer)
        commands = imported if family else typer.Typer()
        commands.rich_markup_mode, commands._add_completion = None, False
        if family:
            command: Any = typer.main.get_group(commands)
            for member in command.commands.values():  # click would cut the first line of its help off
                member.short_help = _first_line(member.help or "")
        else:
            commands.command(name)(imported)
            command = typer.main.get_command(commands)
        command.name = name
        for part in (command, *getattr(command, "commands", {}).values()):
            _explain_arguments(part)
        return with_checked_paths(command)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


def _explain_arguments(command: Any) -> None:
    """An argument that is written as an option is no unknown word: the error says how it is written."""
    parse = command.parse_args

    def parse_args(ctx: Any, args: list[str]) -> list[str]:
        try:
            parsed: list[str] = parse(ctx, args)
        except typer.BadParameter:
            raise
        except Exception as error:
            written = getattr(error, "option_name", None)
            for parameter in command.params:
                if parameter.param_type_name == "argument" and written == f"--{parameter.name}":
                    shown = parameter.make_metavar(ctx).strip("[]")
                    hint = f"it is an argument, so write its value alone: {ctx.command_path} {shown}"
                    error.message = f"No such option: {written}; {hint}"  # type: ignore[attr-defined]
            raise
        return parsed

    command.parse_args = parse_args


def _imported(name: str) -> Any:
    module, _, attribute = COMMANDS[name].partition(":")
    return getattr(import_module(f"bakeoff.commands.{module}"), attribute)


def _summary(name: str) -> str:
    command = _imported(name)
    text = command.info.help if isinstance(command, typer.Typer) else inspect.getdoc(command)
    return _first_line(str(text))


def _first_line(text: str) -> str:
    return text.partition("\n\n")[0].replace("\n", " ")
