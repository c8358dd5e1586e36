"""JSON Schemas from the structs and registries that read the same files.

Editors decide their form. taplo offers no key of a schema that has an `allOf`, so rules are in a `then` whose `if` is
always true. Older drafts ignore what is beside a `$ref`, so nothing is.
"""

from __future__ import annotations

import collections.abc
import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, get_args, get_origin

import msgspec
from bakeoff_providers import PROVIDERS
from bakeoff_providers.errors import BrokenPlugin, InputError
from bakeoff_providers.keys import VARIABLE
from bakeoff_providers.options import AMOUNT, COUNT, REST, Option, bare, choices_of, is_union, options_of
from bakeoff_providers.registry import Registry, nearest

from bakeoff.core.extensions import collect_entries, load_place
from bakeoff.core.paths import task_names
from bakeoff.evaluation.measures import MEASURES, Measure
from bakeoff.evaluation.measures import base as measures
from bakeoff.lineup.checks import LARGEST_SEED, MOST
from bakeoff.lineup.entries import ContenderEntry, EngineEntry, LineupFile, RerankEntry, StoreEntry, TaskEntry
from bakeoff.lineup.keys import KEYS
from bakeoff.running.engines import ENGINES
from bakeoff.search.rankers import RANKERS
from bakeoff.search.rerankers import RERANKERS
from bakeoff.search.retrievers import RETRIEVERS
from bakeoff.search.stores import STORES
from bakeoff.search.stores.base import HybridStore
from bakeoff.search.stores.existing import EXISTING
from bakeoff.systems import SYSTEMS
from bakeoff.systems.embedding import StoreRow
from bakeoff.systems.hybrid import HYBRID
from bakeoff.tasks.formats import FORMATS
from bakeoff.tasks.kinds import TASK_KINDS, TaskKeys

Schema = dict[str, Any]
Plugins = dict[str, list[Option]]  # by name
FOLDER = Path(__file__).parent  # of the shipped schemas, which know what comes with Bakeoff
DRAFT = "https://json-schema.org/draft/2020-12/schema"
TEXT: Schema = {"type": "string"}
TABLE: Schema = {"type": "object"}
LIST: Schema = {"type": "array"}
NOTHING: Schema = {"not": {}}  # unlike `false`, errors of it have the key's path
FILLED_IN: Schema = {"type": "string", "pattern": VARIABLE.pattern}  # from the environment
OWN_CODE: Schema = {"type": "string", "pattern": "^file:"}
TOKENS = "tokens"
_TYPES = {str: TEXT, bool: {"type": "boolean"}, int: {"type": "integer"}, float: {"type": "number"}}
_HEAD = ("type", "enum", "pattern")  # the keywords that say which values an alternative takes


def schema_names() -> list[str]:
    """The files that have a schema."""
    return ["lineup", "task", *collect_entries("SCHEMAS")]


def schema_text(name: str, *, installed: bool = True) -> str:
    """A schema as JSON. `installed` includes the plug-ins of other packages."""
    if name not in schema_names():
        raise InputError(f"there is no schema {name!r}", remedy=nearest(name, schema_names()))
    builder = _SchemaBuilder(installed)
    if name == "task":
        schema = {**TABLE, **builder.task()}
    else:
        struct = LineupFile if name == "lineup" else load_place(collect_entries("SCHEMAS")[name])
        schema = builder.struct(struct)
    definitions = {"$defs": builder.definitions} if builder.definitions else {}
    whole = {"$schema": DRAFT, "title": f"Bakeoff {name}", **schema, **definitions}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


@dataclass(slots=True)
class _SchemaBuilder:
    """Builds one schema. `definitions` are the parts that it refers to."""

    installed: bool
    definitions: dict[str, Schema] = field(default_factory=dict)

    def struct(self, struct: type[msgspec.Struct]) -> Schema:
        """A table with the keys of a struct."""
        options = options_of(struct)
        schema = {**TABLE, "description": _first_paragraph(struct), **self._keys(options, ranges=False)}
        if struct.__struct_config__.forbid_unknown_fields:
            schema["additionalProperties"] = False
        refinements = {
            LineupFile: self._refine_lineup,
            ContenderEntry: self._refine_contender,
            StoreEntry: self._refine_store,
            RerankEntry: self._refine_rerank,
            TaskEntry: self._refine_task,
            EngineEntry: self._refine_engine,
        }
        if refine := refinements.get(struct):
            schema |= self._under(struct.__name__, refine(schema["properties"]))
        return schema

    def task(self) -> Schema:
        """The keys of a task: of every task, of its kind and of its format."""
        common, kinds, formats = options_of(TaskKeys), self._plugins(TASK_KINDS), self._plugins(FORMATS)
        properties = _meanings([*kinds.values(), *formats.values()])
        properties |= self._keys(common, ranges=False)["properties"]
        _restrict(properties, "kind", _choice(kinds))
        _restrict(properties, "format", _choice(formats))
        return {"properties": properties, **self._under("task", self._task_rules(common, kinds, formats))}

    def _task_rules(self, common: Sequence[Option], kinds: Plugins, formats: Plugins) -> Iterator[Schema]:
        for kind, own in kinds.items():
            needed = [] if kind == TaskKeys().kind else ["kind"]
            keys = {option.name: option for option in [*common, *own]}
            if keys.pop(REST, None) is None:
                yield _when({"kind": {"const": kind}}, needed, self._closed(keys.values()))
                continue
            yield _when({"kind": {"const": kind}}, needed, {"required": ["format"]})
            for name, options in formats.items():
                chosen = {"kind": {"const": kind}, "format": {"const": name}}
                table = self._closed([*keys.values(), *options])
                yield _when(chosen, [*needed, "format"], table)

    def _task_or_name(self, described: Schema) -> Schema:
        """A built-in name, a path, or the task itself."""
        return {"description": described["description"], "anyOf": [{"enum": task_names()}, TEXT, TABLE], **self.task()}

    def _refine_lineup(self, keys: Schema) -> list[Schema]:
        families = {name: MEASURES.get(name) for name in self._plugins(MEASURES)}
        pattern = {**TEXT, "pattern": _measure_pattern(families)}
        measure = _choice(map(_common_spelling, families, families.values()), pattern)
        keys["contender"]["minItems"] = 1
        keys["measures"] |= {"minItems": 1, "items": measure}
        _restrict(keys, "primary", measure)
        keys["task"] = self._task_or_name(keys["task"])
        keys["rerank"]["items"]["required"].append("of")
        keys["seed"] |= {"minimum": 0, "maximum": LARGEST_SEED}
        for key, most in MOST.items():
            keys[key] |= {"minimum": 1, "maximum": most}
        alone = {"properties": {"tasks": {"maxItems": 0}}}
        return [{"if": {"required": ["task"]}, "then": alone, "else": {"required": ["tasks"]}}]

    def _refine_contender(self, keys: Schema) -> list[Schema]:
        providers, rankers = self._plugins(PROVIDERS), self._plugins(RANKERS)
        _restrict(keys, "provider", _choice(providers, OWN_CODE))
        _restrict(keys, "ranker", _choice(rankers))
        if systems := self._systems():
            _restrict(keys, "system", _choice(systems))
        addresses = {**TEXT, "pattern": "^(file:|https?://)"}
        _restrict(keys, "retriever", {"anyOf": [addresses, FILLED_IN, TABLE]})
        keys["options"]["properties"] = _meanings([*providers.values(), *rankers.values()])
        for table in (keys["rerank"], keys["rerank"]["items"]):
            table["properties"]["of"] = NOTHING
        return [*self._key_rules(), *self._store_rules(), *self._plugin_rules(), *self._retriever_rules()]

    def _refine_store(self, keys: Schema) -> list[Schema]:
        tables = [self._plugins(registry) for registry in (STORES, _token_stores())]
        _restrict(keys, "name", _choice(dict.fromkeys(name for table in tables for name in table)))
        keys["options"]["properties"] = _meanings([options for table in tables for options in table.values()])
        reading = [{"required": [key]} for key in keys if key not in ("name", "label", "options")]
        existing = {"name": _choice(self._plugins(EXISTING)), "options": NOTHING}
        return [{"if": {"anyOf": reading}, "then": {"required": ["existing"], "properties": existing}}]

    def _refine_rerank(self, keys: Schema) -> list[Schema]:
        rerankers = self._plugins(RERANKERS)
        by_tokens, others = _choice(self._plugins(PROVIDERS), OWN_CODE), _choice(rerankers, OWN_CODE)
        _restrict(keys, "provider", {"anyOf": [*others["anyOf"], *by_tokens["anyOf"]]})
        keys["options"]["properties"] = _meanings(rerankers.values())
        token_keys = {"properties": {"provider": by_tokens, "options": self._options(RERANKERS, "maxsim")}}
        rules = [{**_when({"vectors": {"const": TOKENS}}, ["vectors"], token_keys),
                  "else": {"properties": {"provider": others}}}]  # fmt: skip
        for name in rerankers:
            options = {"properties": {"options": self._options(RERANKERS, name)}}
            rules.append(_when({"provider": {"const": name}, "vectors": {"const": ""}}, ["provider"], options))
        return rules

    def _refine_task(self, keys: Schema) -> list[Schema]:
        keys["task"] = self._task_or_name(keys["task"])
        return []

    def _refine_engine(self, keys: Schema) -> list[Schema]:
        _restrict(keys, "name", _choice(self._plugins(ENGINES)))
        return []

    def _key_rules(self) -> Iterator[Schema]:
        """One key decides what rows a contender has, and which others it takes."""
        yield {"oneOf": [{"required": [key]} for key in KEYS]}
        for name, key in KEYS.items():
            allowed = {*key.takes, *KEYS, "label"}
            refused = [one for one in ContenderEntry.__struct_fields__ if one not in allowed]
            yield {"if": {"required": [name]}, "then": {"properties": dict.fromkeys(refused, NOTHING)}}

    def _store_rules(self) -> Iterator[Schema]:
        vectors = {"required": ["provider"], "not": {"required": ["vectors"]}}
        yield {"if": vectors, "then": {"required": ["store"]}}
        of_tokens, of_texts = self._stores(_token_stores()), self._stores(STORES)
        yield {**_when({"vectors": {"const": TOKENS}}, ["vectors"], of_tokens), "else": of_texts}
        able = [name for name in self._plugins(STORES) if issubclass(STORES.get(name), HybridStore)]
        hybrid = {"anyOf": [{"const": HYBRID}, {**LIST, "contains": {"const": HYBRID}}]}
        yield _when({"search": hybrid}, ["search"], _each_store(_store_called(able)))

    def _plugin_rules(self) -> Iterator[Schema]:
        for key, registry, names in (
            ("provider", PROVIDERS, self._plugins(PROVIDERS)),
            ("ranker", RANKERS, self._plugins(RANKERS)),
            ("system", SYSTEMS, self._systems()),
        ):
            for name in names:
                options = {"properties": {"options": self._options(registry, name, whole=key == "system")}}
                yield _when({key: {"const": name}}, [key], options)
        own = {"properties": {"options": self._options(PROVIDERS, "own")}}
        yield _when({"provider": OWN_CODE}, ["provider"], own)

    def _retriever_rules(self) -> Iterator[Schema]:
        """Which retriever it is follows from the address, or from the keys of the table."""
        kind, url, file = ({"required": [key]} for key in ("kind", "url", "file"))
        yield {"properties": {"retriever": {"if": TABLE, "then": {"anyOf": [kind, url, file]}}}}
        by_url = {"if": TEXT, "then": {"pattern": "^https?://"}, "else": {**url, "not": kind}}
        by_file = {"if": TEXT, "then": {"pattern": "^file:"}, "else": {**file, "not": {"anyOf": [kind, url]}}}
        known = {name: {**TABLE, "properties": {"kind": {"const": name}}, **kind} for name in self._plugins(RETRIEVERS)}
        for name, given in [*known.items(), ("http", by_url), ("function", by_file)]:
            options = self._options(RETRIEVERS, name)
            table = self._open(self._plugins(RETRIEVERS)[name], "kind")
            yield _when({"retriever": given}, ["retriever"], {"properties": {"retriever": table, "options": options}})

    def _stores(self, registry: Registry[Any]) -> Schema:
        """One or several stores of a registry, by name or with options."""
        names, called = self._plugins(registry), registry.noun.replace(" ", "-")
        rules = [
            _when({"name": {"const": name}}, ["name"], {"properties": {"options": self._options(registry, name)}})
            for name in names
        ]
        return _each_store(self._define(called, _store_called(names) | self._under(f"{called}s", rules)))

    def _options(self, registry: Registry[Any], name: str, *, whole: bool = False) -> Schema:
        """A reference to the options of a plug-in; `whole` requires those without a default."""
        options = self._plugins(registry)[name]
        called = f"{registry.noun.replace(' ', '-')}.{name}"
        return self._define(called, self._closed(options) if whole else self._open(options))

    def _under(self, name: str, rules: Iterable[Schema]) -> Schema:
        listed = list(rules)
        return {"if": {}, "then": self._define(f"rules.{name}", {"allOf": listed})} if listed else {}

    def _define(self, name: str, schema: Schema) -> Schema:
        """A reference to a part that several places share."""
        self.definitions[name] = schema
        return {"$ref": f"#/$defs/{name}"}

    def _closed(self, options: Iterable[Option]) -> Schema:
        """A table of these keys and no others, unless they are passed on."""
        options = list(options)
        rest = any(option.name == REST for option in options)
        keys = self._keys([option for option in options if option.name != REST], ranges=True)
        return keys if rest else {**keys, "additionalProperties": False}

    def _open(self, options: Iterable[Option], *others: str) -> Schema:
        """The same, of which any may be missing; `others` may be there too."""
        schema = self._closed(options)
        schema.pop("required", None)
        schema["properties"] |= {name: {} for name in others}
        return schema

    def _plugins(self, registry: Registry[Any]) -> Plugins:
        """The options of every plug-in. Broken ones are unknown."""
        plugins: Plugins = {}
        for name in registry.names() if self.installed else registry.builtin:
            with suppress(BrokenPlugin):
                plugins[name] = registry.options(name)
        return plugins

    def _systems(self) -> Plugins:
        """Row types of other packages; Bakeoff's own have keys of their own."""
        return {name: options for name, options in self._plugins(SYSTEMS).items() if name not in SYSTEMS.builtin}

    def _keys(self, options: Sequence[Option], *, ranges: bool) -> Schema:
        """The keys of a table. Numbers in structs have a range only if it is declared; options always have one."""
        properties = {}
        for option in options:
            declared = option.range if ranges or option.range not in (COUNT, AMOUNT) else None
            schema = {"description": option.meaning, **self._type(option.type, option.tables, declared)}
            if option.default not in (None, "", (), [], {}) and not isinstance(option.default, msgspec.Struct):
                schema["default"] = msgspec.to_builtins(option.default, enc_hook=str)
            properties[option.name] = schema
        required = [option.name for option in options if option.required]
        return {"properties": properties, **({"required": required} if required else {})}

    def _type(
        self, hint: Any, tables: Sequence[type[msgspec.Struct]] = (), allowed: msgspec.Meta | None = None
    ) -> Schema:
        hint = bare(hint)
        if is_union(hint):
            parts = [part for part in get_args(hint) if part is not type(None)]  # TOML has no null
            return _either([self._type(part, tables, allowed) for part in parts])
        origin, arguments = get_origin(hint) or hint, get_args(hint)
        if origin in (list, tuple, collections.abc.Sequence):
            return {**LIST, "items": self._type(arguments[0], tables, allowed)}
        if origin in (dict, collections.abc.Mapping):
            if tables:
                return _either([self.struct(table) for table in tables])
            values = self._type(arguments[1]) if arguments else {}
            return {**TABLE, "additionalProperties": values} if values else dict(TABLE)
        if choices := choices_of(hint):
            return _choice(choices)
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            return self.struct(hint)
        if isinstance(hint, type) and issubclass(hint, PurePath):
            return dict(TEXT)
        return {**_TYPES.get(hint, {}), **(_range(allowed) if hint in (int, float) and allowed else {})}


def _token_stores() -> Registry[Any]:
    row_type = SYSTEMS.get(TOKENS)
    assert issubclass(row_type, StoreRow)
    return row_type.stores()


def _store_called(names: Iterable[str]) -> Schema:
    """A store by name or as a table. Lists are for `_each_store`."""
    named = _choice(names)
    return {"anyOf": [*named["anyOf"], TABLE, LIST], "properties": {"name": named}}


def _each_store(schema: Schema) -> Schema:
    """A rule for the store of a contender, or for each of several."""
    return {"properties": {"store": {"allOf": [schema, {"items": schema}]}}}


def _choice(names: Iterable[str], *others: Schema) -> Schema:
    return {"anyOf": [{"enum": list(names)}, *others, FILLED_IN]}


def _restrict(keys: Schema, name: str, values: Schema) -> None:
    """Replace a key's allowed values; keep its description."""
    known = keys.get(name, {})
    keys[name] = {key: known[key] for key in ("description", "default") if key in known} | values


def _meanings(tables: Iterable[Sequence[Option]]) -> Schema:
    """Every key of several tables, for completion. Rules say which of them are allowed, and their types."""
    keys: Schema = {}
    for option in (option for table in tables for option in table if option.name != REST):
        keys.setdefault(option.name, {"description": option.meaning})
    return keys


def _when(values: Mapping[str, Schema], needed: Sequence[str], then: Schema) -> Schema:
    return {"if": {"properties": dict(values), "required": list(needed)}, "then": then}


def _either(schemas: Sequence[Schema]) -> Schema:
    """Any of these. Keywords of tables, lists and numbers ignore other types, so that they can share a schema."""
    heads: list[Schema] = []
    rest: Schema = {}
    for schema in schemas:
        heads += schema.get("anyOf") or [{key: schema[key] for key in _HEAD if key in schema}]
        rest |= {key: value for key, value in schema.items() if key not in ("anyOf", *_HEAD)}
    if not all(heads):
        return {}
    if all(head.keys() == {"type"} for head in heads):
        types = list(dict.fromkeys(head["type"] for head in heads))
        return {"type": types if len(types) > 1 else types[0], **rest}
    return {"anyOf": heads, **rest}


def _range(allowed: msgspec.Meta) -> Schema:
    limits = {"minimum": allowed.ge, "exclusiveMinimum": allowed.gt, "maximum": allowed.le}
    return {keyword: limit for keyword, limit in limits.items() if limit is not None}


def _first_paragraph(struct: type[msgspec.Struct]) -> str:
    return " ".join((inspect.getdoc(struct) or "").split("\n\n")[0].split())


def _common_spelling(name: str, family: type[Measure]) -> str:
    """For completion."""
    return name if family.cut == "refused" else f"{name}@10"


def _measure_pattern(families: Mapping[str, type[Measure]]) -> str:
    """The grammar of measures: `name(option=value)@k`, in any case, with blanks around the signs."""
    return rf"^\s*({'|'.join(map(_family_pattern, families, families.values()))})\s*$"


def _family_pattern(name: str, family: type[Measure]) -> str:
    option = "|".join(_option_pattern(family, option) for option in measures.options_of(family))
    options = rf"(({option})(\s*,\s*({option}))*)?\s*" if option else ""
    cut = r"\s*@\s*0*[1-9][0-9]{0,8}"
    ending = {"required": cut, "optional": f"({cut})?", "refused": ""}[family.cut]
    return rf"{_any_case(name)}(\s*\(\s*{options}\))?{ending}"


def _option_pattern(family: type[Measure], option: str) -> str:
    if choices := measures.choices_of(family, option):
        value = "|".join(map(_any_case, choices))
    else:
        value = "[0-9]{1,9}" + (r"(\.[0-9]{1,9})?" if measures.type_of(family, option) is float else "")
    return rf"{_any_case(option)}\s*=\s*({value})"


def _any_case(word: str) -> str:
    """JSON Schema has no flag for it."""
    return re.sub("[a-z]", lambda letter: f"[{letter[0]}{letter[0].upper()}]", word)
