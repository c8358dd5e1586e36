"""`bakeoff options`: every option, from its declaration. The reference pages come from the same source."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from bakeoff_providers.errors import BrokenPlugin, InputError
from bakeoff_providers.registry import Registry, nearest

from bakeoff.cli.streams import echo

if TYPE_CHECKING:  # `--help` reads this module for one line, so imports are lazy
    import msgspec
    from bakeoff_providers.options import Option

LINEUP = "lineup"
HEADS = ("option", "type", "default", "meaning")
COMES_ALONG = "comes with Bakeoff"


@dataclass(frozen=True, slots=True)
class Sort:
    """A sort of plug-in: its registry, its page in the docs, and how users write its options."""

    registry: Registry[Any]
    page: str
    written: str
    common: type[msgspec.Struct] | None = None  # keys beside the plug-in's own options


@dataclass(frozen=True, slots=True)
class OptionTable:
    """The keys of one table, and the keys that lead to it (none for the outermost)."""

    paths: tuple[str, ...]
    about: str
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class PluginOptions:
    """All options of a plug-in or a line-up."""

    noun: str
    name: str
    about: str
    install: str
    tables: tuple[OptionTable, ...]

    def to_dict(self) -> dict[str, Any]:
        """For --json."""
        return {
            "noun": self.noun,
            "name": self.name,
            "about": self.about,
            "install": self.install,
            "tables": [
                {"paths": list(table.paths), "about": table.about, "options": [*map(_option_dict, table.options)]}
                for table in self.tables
            ],
        }


def options(
    name: Annotated[
        str | None,
        typer.Argument(help="Plug-in, sort such as `stores`, or `lineup`."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Say what can be set: every option with its type, its default and its meaning."""
    import msgspec

    from bakeoff.report.console import console
    from bakeoff.report.grid import Grid

    screen = console()
    if name is None:
        names = {sort.registry.noun: sort.registry.names() for sort in sorts()}
        if as_json:
            echo(msgspec.json.encode(names))
            return
        table = Grid(["what", "names"])
        for noun, known in names.items():
            table.add_row(noun, ", ".join(known))
        table.add_row("line-up", LINEUP)
        screen.print(table)
        screen.print("`bakeoff options NAME` lists its options.")
        return
    if sort := _sort_called(name):
        _print_sort(sort, as_json=as_json)
        return
    entries = find_entries(name)
    if as_json:
        echo(msgspec.json.encode([entry.to_dict() for entry in entries]))
        return
    for entry in entries:
        screen.print(f"{entry.noun} {entry.name}: {entry.about}")
        screen.print(entry.install)
        for shown in entry.tables:
            if shown.paths:
                screen.print(f"{' and '.join(shown.paths)}: {shown.about}")
            if shown.options:
                table = Grid(HEADS)
                for option in shown.options:
                    table.add_row(option.name, option.type_words, option.default_words, option.meaning)
                screen.print(table)
            else:
                screen.print("It has no options.")


def _sort_called(name: str) -> Sort | None:
    """The sort named by a word such as `store` or `stores`, unless a plug-in has that name."""
    every = sorts()
    if any(name in sort.registry.names() for sort in every):
        return None
    word = name.replace("-", " ").lower()
    words = ((sort, {sort.registry.noun, f"{sort.registry.noun}s", sort.page.replace("-", " ")}) for sort in every)
    return next((sort for sort, known in words if word in known), None)


def _print_sort(sort: Sort, *, as_json: bool) -> None:
    """A sort's plug-ins, each with its first line."""
    import msgspec

    from bakeoff.report.console import console
    from bakeoff.report.grid import Grid

    entries = [entry_of(sort, name) for name in sort.registry.names()]
    if as_json:
        echo(msgspec.json.encode([entry.to_dict() for entry in entries]))
        return
    table = Grid([sort.registry.noun, "about"])
    for entry in entries:
        table.add_row(entry.name, entry.about)
    console().print(table)
    console().print(f"Written as {sort.written}; `bakeoff options NAME` lists its options.")


def sorts() -> list[Sort]:
    """All registries whose plug-ins users can set."""
    from bakeoff_providers import PROVIDERS
    from bakeoff_providers.chat import CHATS

    from bakeoff.core.extensions import collect_entries, load_place
    from bakeoff.evaluation.measures import MEASURES
    from bakeoff.search.rankers import RANKERS
    from bakeoff.search.rerankers import RERANKERS
    from bakeoff.search.retrievers import RETRIEVERS
    from bakeoff.search.stores import STORES
    from bakeoff.search.stores.existing import EXISTING
    from bakeoff.tasks.formats import FORMATS
    from bakeoff.tasks.kinds import TASK_KINDS, TaskKeys

    return [
        Sort(PROVIDERS, "providers", 'provider = "NAME", options = { … } in a [[contender]]'),
        Sort(STORES, "stores", 'store = { name = "NAME", options = { … } } in a [[contender]]'),
        Sort(EXISTING, "existing", 'store = { name = "NAME", existing = "…" } in a [[contender]]'),
        Sort(RANKERS, "rankers", 'ranker = "NAME", options = { … } in a [[contender]]'),
        Sort(RETRIEVERS, "retrievers", "retriever = { … } in a [[contender]]"),
        Sort(RERANKERS, "rerankers", 'rerank = { provider = "NAME", options = { … } } in a [[contender]]'),
        Sort(FORMATS, "formats", 'format = "NAME" and its options, in [task] or a task.toml'),
        Sort(TASK_KINDS, "kinds", 'kind = "NAME" and its options, in [task] or a task.toml', TaskKeys),
        Sort(MEASURES, "measures", "NAME(option=value)@k among the measures"),
        Sort(CHATS, "chats", "--model NAME:MODEL --set option=value of `bakeoff grade` and `bakeoff queries generate`"),
        *(Sort(load_place(place), page, written) for page, (place, written) in collect_entries("REGISTRIES").items()),
    ]


def find_entries(name: str) -> list[PluginOptions]:
    """The line-up, or every plug-in of this name, since a provider and a reranker may share one."""
    if name == LINEUP:
        return [lineup_entry()]
    known = {plugin: None for sort in sorts() for plugin in sort.registry.names()}
    if name not in known:
        raise InputError(
            f"nothing is called {name!r}", remedy=nearest(name, [*known, *(sort.page for sort in sorts()), LINEUP])
        )
    return [entry_of(sort, name) for sort in sorts() if name in sort.registry.names()]


def entry_of(sort: Sort, name: str) -> PluginOptions:
    """A plug-in's options, as declared."""
    from bakeoff_providers.options import options_of

    try:
        plugin = sort.registry.get(name)
    except BrokenPlugin as error:
        return PluginOptions(sort.registry.noun, name, str(error), f"update or remove {error.package}", ())
    common = options_of(sort.common) if sort.common else []
    tables = tuple(_tables([*common, *sort.registry.options(name)]))
    return PluginOptions(sort.registry.noun, name, _about(plugin), _install(plugin), tables)


def lineup_entry() -> PluginOptions:
    """All keys of a line-up."""
    from bakeoff_providers.options import options_of

    from bakeoff.lineup.entries import LineupFile

    about = "the TOML file that names a task and its contenders"
    return PluginOptions("line-up", LINEUP, about, COMES_ALONG, tuple(_tables(options_of(LineupFile))))


def _tables(outermost: Sequence[Option]) -> Iterator[OptionTable]:
    """The outermost table, then every table that a key of it holds, each once."""
    from bakeoff_providers.options import options_of

    paths: dict[type[msgspec.Struct], list[str]] = {}

    def walk(inside: Sequence[Option], prefix: str) -> None:
        for option in inside:
            for struct in option.tables:
                seen = struct in paths
                paths.setdefault(struct, []).append(f"{prefix}{option.name}")
                if not seen:
                    walk(options_of(struct), f"{prefix}{option.name}.")

    walk(outermost, "")
    yield OptionTable((), "", tuple(outermost))
    for struct, leading in paths.items():
        yield OptionTable(tuple(leading), _about(struct), tuple(options_of(struct)))


def _about(plugin: Any) -> str:
    return " ".join((inspect.getdoc(plugin) or "").split("\n\n")[0].split())


def _install(plugin: Any) -> str:
    """The extra to install: a class names it itself, a function's module does."""
    module = getattr(plugin, "__module__", "")
    extra = getattr(plugin, "extra", None) or getattr(sys.modules.get(module), "EXTRA", None)
    if extra:
        return f"install: pip install 'bakeoff[{extra}]'"
    return COMES_ALONG if module.partition(".")[0] in ("bakeoff", "bakeoff_providers") else "comes with its package"


def _option_dict(option: Option) -> dict[str, Any]:
    import msgspec

    return {
        "name": option.name,
        "type": option.type_words,
        "required": option.required,
        "default": msgspec.to_builtins(option.default, enc_hook=str),
        "choices": list(option.choices),
        "meaning": option.meaning,
    }
