"""`bakeoff options`: what can be set, from where it is declared; pages of the docs are made of the same entries."""

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

if TYPE_CHECKING:  # `--help` reads this module for one line: what takes time is imported below
    import msgspec
    from bakeoff_providers.options import Option

LINEUP = "lineup"
HEADS = ("option", "type", "default", "meaning")
COMES_ALONG = "comes with Bakeoff"


@dataclass(frozen=True, slots=True)
class Sort:
    """One sort of plug-in: its registry, its page in the docs, and how a user writes its options."""

    registry: Registry[Any]
    page: str
    written: str
    common: type[msgspec.Struct] | None = None  # what may be said beside the plug-in's own options


@dataclass(frozen=True, slots=True)
class Table:
    """The keys of one table, by the keys that lead to it (none for the outermost)."""

    paths: tuple[str, ...]
    about: str
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """Everything that can be set of one plug-in, or of a line-up."""

    noun: str
    name: str
    about: str
    install: str
    tables: tuple[Table, ...]

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
        typer.Argument(help="A plug-in's name, a sort such as `stores`, or `lineup`; all names if left out."),
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
        screen.print("`bakeoff options NAME` says what can be set of one.")
        return
    if sort := _sort_called(name):
        _print_sort(sort, as_json=as_json)
        return
    entries = named(name)
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
    """The sort that a word such as `store` or `stores` means, where no plug-in is called so."""
    every = sorts()
    if any(name in sort.registry.names() for sort in every):
        return None
    word = name.replace("-", " ").lower()
    words = ((sort, {sort.registry.noun, f"{sort.registry.noun}s", sort.page.replace("-", " ")}) for sort in every)
    return next((sort for sort, known in words if word in known), None)


def _print_sort(sort: Sort, *, as_json: bool) -> None:
    """Its plug-ins, each with its first line."""
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
    console().print(f"Written as {sort.written}; `bakeoff options NAME` says what can be set of one.")


def sorts() -> list[Sort]:
    """Every registry whose plug-ins a user can set."""
    from bakeoff_providers import PROVIDERS
    from bakeoff_providers.chat import CHATS

    from bakeoff.core.extensions import added, load_place
    from bakeoff.evaluation.measures import MEASURES
    from bakeoff.search.rankers import RANKERS
    from bakeoff.search.rerankers import RERANKERS
    from bakeoff.search.retrievers import RETRIEVERS
    from bakeoff.search.stores import STORES
    from bakeoff.search.stores.existing import EXISTING
    from bakeoff.search.token_stores import TOKEN_STORES
    from bakeoff.tasks.formats import FORMATS
    from bakeoff.tasks.kinds import TASK_KINDS, TaskKeys

    return [
        Sort(PROVIDERS, "providers", 'provider = "NAME", options = { … } in a [[contender]]'),
        Sort(STORES, "stores", 'store = { name = "NAME", options = { … } } in a [[contender]]'),
        Sort(
            TOKEN_STORES,
            "token-stores",
            'vectors = "tokens", store = { name = "NAME", options = { … } } in a [[contender]]',
        ),
        Sort(EXISTING, "existing", 'store = { name = "NAME", existing = "…" } in a [[contender]]'),
        Sort(RANKERS, "rankers", 'ranker = "NAME", options = { … } in a [[contender]]'),
        Sort(RETRIEVERS, "retrievers", "retriever = { … } in a [[contender]]"),
        Sort(RERANKERS, "rerankers", 'rerank = { provider = "NAME", options = { … } } in a [[contender]]'),
        Sort(FORMATS, "formats", 'format = "NAME" and the options beside it, in [task] or a task.toml'),
        Sort(TASK_KINDS, "kinds", 'kind = "NAME" and the options beside it, in [task] or a task.toml', TaskKeys),
        Sort(MEASURES, "measures", "NAME(option=value)@k among the measures"),
        Sort(CHATS, "chats", "--model NAME:MODEL --set option=value of `bakeoff grade` and `bakeoff queries generate`"),
        *(Sort(load_place(place), page, written) for page, (place, written) in added("REGISTRIES").items()),
    ]


def named(name: str) -> list[Entry]:
    """The line-up, or every plug-in of this name: a provider and a reranker may share one."""
    if name == LINEUP:
        return [lineup_entry()]
    known = {plugin: None for sort in sorts() for plugin in sort.registry.names()}
    if name not in known:
        raise InputError(
            f"nothing is called {name!r}", remedy=nearest(name, [*known, *(sort.page for sort in sorts()), LINEUP])
        )
    return [entry_of(sort, name) for sort in sorts() if name in sort.registry.names()]


def entry_of(sort: Sort, name: str) -> Entry:
    """One plug-in, as its class or function declares itself."""
    from bakeoff_providers.options import options_of

    try:
        plugin = sort.registry.get(name)
    except BrokenPlugin as error:
        return Entry(sort.registry.noun, name, str(error), f"update or remove {error.package}", ())
    common = options_of(sort.common) if sort.common else []
    tables = tuple(_tables([*common, *sort.registry.options(name)]))
    return Entry(sort.registry.noun, name, _about(plugin), _install(plugin), tables)


def lineup_entry() -> Entry:
    """Every key of a line-up."""
    from bakeoff_providers.options import options_of

    from bakeoff.lineup.entries import LineupFile

    about = "the TOML file that names a task and its contenders"
    return Entry("line-up", LINEUP, about, COMES_ALONG, tuple(_tables(options_of(LineupFile))))


def _tables(outermost: Sequence[Option]) -> Iterator[Table]:
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
    yield Table((), "", tuple(outermost))
    for struct, leading in paths.items():
        yield Table(tuple(leading), _about(struct), tuple(options_of(struct)))


def _about(plugin: Any) -> str:
    return " ".join((inspect.getdoc(plugin) or "").split("\n\n")[0].split())


def _install(plugin: Any) -> str:
    """A class names its extra; the module of a function does."""
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
