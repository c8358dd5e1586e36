"""The commands by name. Each is imported when it is called, and none for `--help`."""

from __future__ import annotations

import copy
import errno
import math
import os
from collections.abc import Callable
from functools import cache
from typing import Any, TypeVar

import typer
from bakeoff_providers.errors import BrokenPlugin
from typer.core import TyperCommand, TyperGroup
from typer.models import TyperInfo, TyperPath

from bakeoff.core.extensions import Command, extension_commands, load_place, load_plugin_commands

F = TypeVar("F", bound=Callable[..., Any])
_IMPOSSIBLE = (errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL)


class _CheckedPath(TyperPath):
    """Refuses impossible file names, which would raise at every lookup."""

    def __init__(self, kind: TyperPath) -> None:
        super().__init__(
            kind.exists, kind.file_okay, kind.dir_okay, kind.writable, kind.readable, kind.resolve_path,
            kind.allow_dash, kind.type,
        )  # fmt: skip

    def convert(self, value: Any, param: Any, ctx: Any) -> Any:
        try:
            os.lstat(value)
        except ValueError:
            raise typer.BadParameter("no file can have a null byte in its name", ctx=ctx, param=param) from None
        except OSError as error:
            if error.errno in _IMPOSSIBLE:
                problem = f"{os.fspath(value)[:40]}…: {error.strerror}"
                raise typer.BadParameter(problem, ctx=ctx, param=param) from None
        return super().convert(value, param, ctx)


def _finite(kind: Any) -> Any:
    """A number type that refuses NaN and infinity, since a limit of either would be meaningless."""
    checked = copy.copy(kind)

    def convert(value: Any, param: Any, ctx: Any) -> Any:
        number = kind.convert(value, param, ctx)
        if not math.isfinite(number):
            raise typer.BadParameter(f"{value} is not a finite number", ctx=ctx, param=param)
        return number

    checked.convert = convert
    return checked


def check_values(parameters: list[Any]) -> None:
    """Checks every path and number of a command before it starts."""
    for parameter in parameters:
        if type(parameter.type) is TyperPath:
            parameter.type = _CheckedPath(parameter.type)
        elif getattr(parameter.type, "name", "") in ("float", "float range"):
            parameter.type = _finite(parameter.type)


START, DECIDE, SET_UP = "Start", "Decide", "Set up"
TEST_SETS, STORES, PRODUCTION = "Test sets", "Stores", "Production"
GROUPS = (START, DECIDE, TEST_SETS, STORES, PRODUCTION, SET_UP)

CORE = (
    Command("init", "bakeoff.cli.init:init", START, "Write a line-up for your task or tables."),
    Command("run", "bakeoff.cli.run:run", START, "Run a line-up; print the matrix and the verdict."),
    Command("show", "bakeoff.cli.run:show", START, "Print a result again."),
    Command("report", "bakeoff.cli.report:report", START, "Rebuild a result's page, exports and charts."),
    Command("compare", "bakeoff.cli.compare:compare", DECIDE, "Compare contenders or results, pair by pair."),
    Command("gate", "bakeoff.cli.compare:gate", DECIDE, "Fail if a contender dropped; for CI."),
    Command("score", "bakeoff.cli.compare:score", DECIDE, "Score TREC runs and test their differences."),
    Command("validate", "bakeoff.cli.validate:validate", SET_UP, "Check a line-up or a task; spend nothing."),
    Command("list", "bakeoff.cli.listing:list_", SET_UP, "List what is available and what is missing."),
)


@cache
def own_commands() -> dict[str, Command]:
    """The core's commands and those of our extensions."""
    return {command.name: command for command in (*CORE, *extension_commands())}


@cache
def all_commands() -> dict[str, Command]:
    """Built-in commands, then those of plug-ins. On a name clash, the first wins."""
    own = own_commands()
    return own | {one.name: one for one in _plugin_commands() if isinstance(one, Command) and one.name not in own}


@cache
def _plugin_commands() -> list[Command | BrokenPlugin]:
    return list(load_plugin_commands())


class CommandGroup(TyperGroup):
    """All commands. `--help` describes the first group and lists the others."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Refuses arguments that are not UTF-8, since names and values end up in UTF-8 files."""
        for argument in args:
            try:
                argument.encode()
            except UnicodeEncodeError:
                shown = argument.encode("utf-8", "backslashreplace").decode()
                raise typer.BadParameter(f"{shown} is not UTF-8: rename the file, or write it in UTF-8") from None
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click's signature
        """The names by group, in table order."""
        return [command.name for group in _group_commands().values() for command in group]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 - click's signature
        """Imports the command; None if the name is unknown."""
        if command := own_commands().get(cmd_name) or all_commands().get(cmd_name):
            return build_command(command)
        for broken in _plugin_commands():
            if isinstance(broken, BrokenPlugin) and broken.name == cmd_name:
                raise broken
        return None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Suggests the nearest name for an unknown command."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-") and not ctx.resilient_parsing:
            from bakeoff_providers.registry import nearest

            ctx.fail(f"No such command {args[0]!r}. {nearest(args[0], list(all_commands()))}".rstrip())
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - click's signature
        """The list under `--help`."""
        grouped = _group_commands()
        with formatter.section(START):
            formatter.write_dl([(command.name, command.summary) for command in grouped.pop(START)])
        with formatter.section("More (bakeoff COMMAND --help)"):
            named = [(group, ", ".join(command.name for command in commands)) for group, commands in grouped.items()]
            formatter.write_dl(named)


def _group_commands() -> dict[str, list[Command]]:
    """The commands by group: ours in order, then other packages' groups."""
    grouped: dict[str, list[Command]] = {group: [] for group in GROUPS}
    for command in all_commands().values():
        grouped.setdefault(command.group, []).append(command)
    return {group: commands for group, commands in grouped.items() if commands}


class CheckedCommand(TyperCommand):
    """A command that checks its paths and numbers, and explains an argument written as an option."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        check_values(self.params)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parses; explains that `--RESULT` is an argument."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter:
            raise
        except Exception as error:
            written = getattr(error, "option_name", None)
            for parameter in self.params:
                if parameter.param_type_name == "argument" and written == f"--{parameter.name}":
                    shown = parameter.make_metavar(ctx).strip("[]")
                    hint = f"it is an argument, so write its value alone: {ctx.command_path} {shown}"
                    error.message = f"No such option: {written}; {hint}"  # type: ignore[attr-defined]
            raise


class Family(typer.Typer):
    """Commands under one name, such as `bakeoff cache info`. Each checks its arguments."""

    def command(self, name: str | None = None, **settings: Any) -> Callable[[F], F]:
        """Registers a function under its name or another one."""

        def register(function: F) -> F:
            summary = first_line(function.__doc__ or "")
            return super(Family, self).command(name, cls=CheckedCommand, short_help=summary, **settings)(function)

        return register


def build_command(command: Command) -> Any:
    """The click command for a record, which names a function or a family."""
    imported = load_place(command.place)
    if isinstance(imported, typer.Typer):
        built: Any = typer.main.get_group_from_info(
            TyperInfo(imported), pretty_exceptions_short=True, suggest_commands=True, rich_markup_mode=None
        )
    else:
        single = typer.Typer(add_completion=False, rich_markup_mode=None)
        single.command(command.name, cls=CheckedCommand)(imported)
        built = typer.main.get_command(single)
    built.name = command.name
    return built


def first_line(text: str) -> str:
    """The first paragraph of a docstring on one line."""
    return " ".join(text.partition("\n\n")[0].split())
