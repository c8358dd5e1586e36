"""The pages of docs/ that are made from the code: `python -m tests.reference_pages` writes them again.

One page for each command, provider and store; the keys of a line-up; the options of every other sort of plug-in.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bakeoff.cli.command_table import GROUPS, build_command, own_commands
from bakeoff.core.extensions import Command
from bakeoff.extensions.installation.options import HEADS, PluginOptions, Sort, entry_of, lineup_entry, sorts
from bakeoff.search.stores import STORES
from bakeoff.search.stores.base import Store
from bakeoff.search.stores.existing import EXISTING
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import ModelCard
from bakeoff_providers.options import Option
from bakeoff_providers.registry import Registry

DOCS = Path(__file__).parent.parent / "docs"
FOLDERS = ("reference/options", "reference/commands", "providers", "stores")  # nothing in them is written by hand
LINEUP = "reference/lineup.md"
OWN_PAGES = ("providers", "stores")  # sorts whose plug-ins have a page each
MADE = "This page is generated from the code.\n"
DEFAULTS = {"grade": "pairs"}  # what a family does where none of its commands is named
# Where a reader learns when to use a command.
GUIDES = {
    "init": "tutorial/your-documents.md", "run": "tutorial/first-run.md", "show": "tutorial/reading-the-report.md",
    "report": "tutorial/reading-the-report.md", "serve": "tutorial/reading-the-report.md",
    "compare": "guides/compare-results.md", "gate": "guides/gate-in-ci.md", "score": "guides/compare-results.md",
    "tasks": "guides/several-tasks.md", "history": "guides/gate-in-ci.md", "plan-queries": "concepts/planning.md",
    "export-mteb": "guides/several-tasks.md", "corpus-size": "guides/large-corpora.md",
    "snapshot": "concepts/kind-profiles.md", "log": "guides/logs.md", "canary": "guides/monitoring.md",
    "probe": "guides/monitoring.md", "migrate": "guides/migration.md", "interleave": "guides/online-tests.md",
    "ab": "guides/online-tests.md", "sweep": "guides/test-a-store.md", "loadtest": "guides/test-a-store.md",
    "footprint": "guides/test-a-store.md", "corpus": "tutorial/your-documents.md", "select": "guides/label-queries.md",
    "queries": "guides/label-queries.md", "grade": "guides/label-queries.md", "annotate": "guides/label-queries.md",
    "agreement": "guides/label-queries.md", "adjudicate": "guides/label-queries.md",
    "audit": "guides/grade-with-a-model.md", "vectors": "guides/large-corpora.md", "embed": "guides/cluster.md",
    "validate": "reference/tasks.md", "doctor": "guides/pick-a-model.md", "models": "guides/pick-a-model.md",
    "cache": "guides/large-corpora.md", "list": "guides/pick-a-model.md", "options": "reference/lineup.md",
    "schema": "reference/lineup.md",
}  # fmt: skip


def pages() -> dict[str, str]:
    """Every generated page, by its path under docs/."""
    by_page = {sort.page: sort for sort in sorts()}
    written = {f"reference/options/{name}.md": _sort_page(sort) for name, sort in by_page.items()
               if name not in OWN_PAGES}  # fmt: skip
    written |= {f"providers/{name}.md": _provider_page(by_page["providers"], name) for name in PROVIDERS.builtin}
    written |= {f"stores/{name}.md": _store_page(by_page["stores"], name) for name in STORES.builtin}
    written |= {f"reference/commands/{name}.md": _command_page(one) for name, one in own_commands().items()}
    written["providers/index.md"] = _index("Providers", _PROVIDERS, PROVIDERS)
    written["stores/index.md"] = _index("Stores", _STORES, STORES)
    written["reference/commands/index.md"] = _commands_index()
    return {LINEUP: _lineup_page(), **written}


_PROVIDERS = """Every embedding provider, with a page of its options and models. A provider turns texts into vectors.
[Pick a model](../guides/pick-a-model.md) helps to choose."""
_STORES = """Every vector store, with a page of its options. A store holds vectors and finds the nearest ones.
[Pick a store](../guides/pick-a-store.md) helps to choose."""


def _index(title: str, about: str, registry: Registry[Any]) -> str:
    lines = [f"| [`{name}`]({name}.md) | {_paragraphs(registry.get(name))[0]} |" for name in registry.builtin]
    return f"# {title}\n\n{about}\n\n{MADE}\n| {registry.noun} | about |\n|---|---|\n" + "\n".join(lines) + "\n"


def _provider_page(sort: Sort, name: str) -> str:
    provider = PROVIDERS.get(name)
    facts = [("runs", "on this machine" if provider.local else "on a server"), ("install", _install(sort, name))]
    if keys := getattr(provider, "keys", ()):
        facts.append(("key", " or ".join(f"`{key}`" for key in keys)))
    if variable := getattr(provider, "url_variable", ""):
        facts.append(("another server", f"`base_url` in its options, or `{variable}`"))
    if provider.default_model:
        facts.append(("default model", f"`{provider.default_model}`"))
    text = _head(f"The provider `{name}`", provider, facts, f'[[contender]]\nprovider = "{name}"\nstore = "faiss"')
    cards: Sequence[ModelCard] = getattr(provider, "cards", ())
    if cards:
        text += "\n## Models\n\nOther models work too; set their dimensions and limits in `options`.\n\n" + _cards(
            cards
        )
    return text + _options(entry_of(sort, name))


def _cards(cards: Iterable[ModelCard]) -> str:
    lines = ["| model | dimensions | reads at most, tokens | $ per million tokens | seen |", "|---|---|---|---|---|"]
    for card in cards:
        money = f"{card.price.usd_per_million_tokens:g}" if card.price else "not known"
        seen = card.price.seen if card.price else "–"
        shorter = ", ".join(str(length) for length in card.output_dimensions if length != card.dimensions)
        others = f" (also {shorter})" if shorter else ""
        reads = f"{card.context:,}" if card.context else "–"
        lines.append(f"| `{card.name}` | {card.dimensions or '–'}{others} | {reads} | {money} | {seen} |")
    return "\n".join(lines) + "\n"


def _store_page(sort: Sort, name: str) -> str:
    store: type[Store] = STORES.get(name)
    native = [precision for precision in ("int8", "binary") if store.quantise(precision, {}) is not None]
    facts = [
        ("install", _install(sort, name)),
        ("query options", ", ".join(f"`{option}`" for option in store.query_options) or "none"),
        ("types of its own", ", ".join(["float32", *native])),
        ("hybrid search", "yes" if "hybrid" in store.search_kinds else "no"),
        ("an existing index as a row", "yes" if name in EXISTING.builtin else "no"),
        ("searched while it is written to", "yes" if store.reads_while_writing else "behind a lock"),
    ]
    text = _head(f"The store `{name}`", store, facts, f'[[contender]]\nprovider = "minilm"\nstore = "{name}"')
    return text + _options(entry_of(sort, name))


def _head(title: str, plugin: Any, facts: Iterable[tuple[str, str]], example: str) -> str:
    rows = "\n".join(f"| {what} | {value} |" for what, value in facts)
    about = "\n\n".join(_paragraphs(plugin))
    gives = f"Requirements, line-up syntax and options. {MADE}"
    return f"# {title}\n\n{gives}\n{about}\n\n| | |\n|---|---|\n{rows}\n\n```toml\n{example}\n```\n"


def _paragraphs(plugin: Any) -> list[str]:
    return [" ".join(part.split()) for part in (inspect.getdoc(plugin) or "").split("\n\n")]


def _install(sort: Sort, name: str) -> str:
    install = entry_of(sort, name).install
    _, _, command = install.partition("install: ")
    return f"`{command}`" if command else install


def _options(entry: PluginOptions) -> str:
    text = "\n## Options\n"
    for table in entry.tables:
        if table.paths:
            text += f"\n### {' and '.join(f'`{path}`' for path in table.paths)}\n\n{table.about}\n"
        text += "\n" + (_markdown(table.options) if table.options else "It has no options.\n")
    return text


def _lineup_page() -> str:
    note = (
        "Every key that a line-up may have. `bakeoff options lineup` prints the same.\n\n"
        f"{MADE}\n"
        "A table is written as `[key]` or in place as `key = { … }`, a list of tables as `[[key]]`. The keys of\n"
        "`task` are those of its [kind](options/kinds.md) and its [format](options/formats.md), those of `options`\n"
        "are the [provider's](../providers/index.md), [store's](../stores/index.md), [ranker's](options/rankers.md),\n"
        "[retriever's](options/retrievers.md) or [reranker's](options/rerankers.md). `${NAME}` in any text is an\n"
        "[environment variable](environment.md#variables-in-a-line-up).\n\n"
        "`bakeoff init` writes `bakeoff.schema.json` beside the line-up, and names it in the line-up's first line:\n"
        "`#:schema ./bakeoff.schema.json`. Editors that use taplo, such as VS Code with Even Better TOML, then\n"
        "complete and check the line-up, also offline. For any other line-up, add this line and run\n"
        "`bakeoff schema lineup > bakeoff.schema.json`. Run it again after an update, or if you install a plug-in.\n"
        "`bakeoff validate` checks more.\n"
    )
    text = f"# All keys of a line-up\n\n{note}"
    for table in lineup_entry().tables:
        text += "\n## " + (" and ".join(f"`{path}`" for path in table.paths) or "At the top") + "\n\n"
        text += (f"{table.about}\n\n" if table.paths else "") + _markdown(table.options)
    return text


def _sort_page(sort: Sort) -> str:
    noun = sort.registry.noun
    text = f"# Options of every {noun}\n\nThe options of each {noun}; `bakeoff options NAME` prints the same. {MADE}\n"
    text += f"Written as `{sort.written}`.\n"
    for name in sort.registry.builtin:
        entry = entry_of(sort, name)
        text += f"\n## {name}\n\n{entry.about}\n\n{entry.install[0].upper()}{entry.install[1:]}.\n"
        text += _options(entry).removeprefix("\n## Options\n")
    return text


def _markdown(options: Sequence[Option]) -> str:
    rows = [(f"`{one.name}`", one.type_words, one.default_words, one.meaning) for one in options]
    return _table(HEADS, rows)


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _commands_index() -> str:
    text = f"# Commands\n\nEvery command by what you want to do, with a page of its options. {MADE}\n"
    text += "`bakeoff --install-completion` teaches your shell all of them.\n"
    for group in GROUPS:
        rows = [(f"[`bakeoff {one.name}`]({one.name}.md)", one.summary) for one in own_commands().values()
                if one.group == group]  # fmt: skip
        text += f"\n## {group}\n\n" + _table(("command", "what it does"), rows)
    return text


def _command_page(command: Command) -> str:
    built = build_command(command)
    text = f"# bakeoff {command.name}\n\n{command.summary}\n\n{MADE}"
    guide = GUIDES[command.name]
    text += f"[{_title(guide)}]({os.path.relpath(guide, 'reference/commands')}) shows when to use it.\n"
    members = getattr(built, "commands", None)
    if members is None:
        return text + _usage(built, f"bakeoff {command.name}")
    for name, member in members.items():
        whole = f"bakeoff {command.name}" if name == DEFAULTS.get(command.name) else f"bakeoff {command.name} {name}"
        text += f"\n## {whole}\n" + _usage(member, whole)
    return text


def _title(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def _usage(built: Any, whole: str) -> str:
    about = "\n\n".join(" ".join(part.split()) for part in (built.help or "").split("\n\n"))
    shown = [one for one in built.params if not getattr(one, "hidden", False)]
    arguments = [one for one in shown if one.param_type_name == "argument"]
    options = [one for one in shown if one.param_type_name == "option"]
    usage = " ".join([whole, *(["[OPTIONS]"] if options else []), *map(_argument, arguments)])
    text = f"\n{about}\n\n```text\n{usage}\n```\n"
    if arguments:
        rows = [(f"`{_argument(one)}`", one.help or "") for one in arguments]
        text += "\n" + _table(("argument", "meaning"), rows)
    if options:
        lines = [(_spelling(one), _default(one), one.help or "") for one in options]
        text += "\n" + _table(("option", "default", "meaning"), lines)
    return text


def _argument(argument: Any) -> str:
    """As usage lines write it, whatever the version of the library that prints them."""
    shown = (argument.metavar or argument.name.upper()).strip("[].") + ("…" if argument.nargs < 0 else "")
    return shown if argument.required else f"[{shown}]"


def _spelling(option: Any) -> str:
    names = ", ".join([*option.opts, *option.secondary_opts])
    return f"`{names}`" if option.is_flag else f"`{names} {_value(option)}`"


def _value(option: Any) -> str:
    """The choices, or a word for the type."""
    if choices := getattr(option.type, "choices", None):
        return "|".join(str(getattr(one, "value", one)) for one in choices)
    kind = option.type.name.lower()
    return "N" if kind.startswith(("int", "float")) else "PATH" if kind == "path" else "TEXT"


def _default(option: Any) -> str:
    """As a reader would write it; none where leaving it out is a choice of its own."""
    value = option.default
    if option.is_flag or callable(value) or value is None or value in ((), [], ""):
        return "–"
    values = value if isinstance(value, (list, tuple)) else [value]
    return ", ".join(str(getattr(one, "value", one)) for one in values)


if __name__ == "__main__":
    for folder in FOLDERS:
        (DOCS / folder).mkdir(parents=True, exist_ok=True)
        for stale in (DOCS / folder).glob("*.md"):
            stale.unlink()
    for path, text in pages().items():
        (DOCS / path).write_text(text, encoding="utf-8")
