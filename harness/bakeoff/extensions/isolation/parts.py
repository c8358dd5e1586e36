"""Parts of rows that live in a child process. Each is an instance of the adapter's own class."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter, methodcaller
from typing import Any, NamedTuple, TypeVar

from bakeoff_providers.base import Provider
from bakeoff_providers.code import OURS
from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import Registry

from bakeoff.extensions.isolation.process import Child, Stage
from bakeoff.search.rerankers import Reranker

T = TypeVar("T")


class ChildCalls(NamedTuple):
    """The methods of a type of plug-in that are called in the child; those that `change` it make it irreplaceable."""

    stage: Stage
    methods: tuple[str, ...]
    change: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()


CHILD_CALLS = {
    "provider": ChildCalls(
        "embed",
        ("embed", "embed_tokens", "rows", "rows_of", "count_tokens", "context_tokens", "identity", "code", "ready"),
        ("fit",),
        ("card", "model", "free", "needs_network"),
    ),
    "retriever": ChildCalls("search", ("search",)),
    "ranker": ChildCalls("search", ("search",), ("add",)),
    "reranker": ChildCalls("rerank", ("rank", "identity", "code", "load", "cost"), (), ("model",)),
    "existing index": ChildCalls("search", ("search", "documents"), (), ("dimensions", "entries", "id", "metric")),
    "store": ChildCalls(
        "search",
        ("search", "search_hybrid", "count", "tunings", "on_disk", "size_bytes", "size_model", "processes",
         "note_left_out"),
        ("add", "add_texts", "delete", "build", "tune", "persist"),
        ("capabilities", "dimensions", "folder", "left_out"),
    ),
}  # fmt: skip
ENDS = ("close", "discard")
NEED_NO_CHILD = ("count_tokens", "context_tokens", "ready")  # same in every provider; they only read its card


def create(registry: Registry[T], name: str, isolate: bool | None, options: Mapping[str, Any]) -> T | None:
    """Creates the part in a child process; None if it belongs in this one.

    By default, only third-party code is isolated.
    """
    calls, adapter = CHILD_CALLS.get(registry.noun), registry.get(name)
    importable = "<locals>" not in adapter.__qualname__ and adapter.__module__ != "__main__"
    if isolate is False or calls is None or not importable or not (isolate or is_foreign(adapter, options)):
        return None
    if os.name != "posix" or getattr(adapter, "prepare", Reranker.prepare) is not Reranker.prepare:
        if isolate:
            raise InputError(f"{name} can't run in its own process here", place="isolate", remedy="leave it out")
        return None
    place = f"{adapter.__module__}:{adapter.__qualname__}"
    make = partial(_make, registry.noun, registry.group, registry.given, name, place, dict(options))
    child = Child(make, calls.stage, threads=not getattr(adapter, "local", True))
    isolated = _isolated(adapter, calls)
    part = isolated.__new__(isolated)
    vars(part).update(_child=child, _kept={})
    return part


def is_foreign(adapter: type[Any], options: Mapping[str, Any]) -> bool:
    """Whether it comes from another package or runs a user's file."""
    return adapter.__module__.partition(".")[0] not in OURS or bool(options.get("file") and options.get("function"))


def _make(
    noun: str, group: str, given: tuple[str, ...], name: str, place: str, options: Mapping[str, Any], _: None
) -> Any:
    """Runs in the child: creates the part as the registry does."""
    return Registry[Any](noun, group, {name: place}, given).create(name, **options)


def _isolated(adapter: type[T], calls: ChildCalls) -> type[T]:
    """A subclass that passes on calls; what the class itself says is as it was."""
    passed = {
        **{name: _passed(name, Child.call) for name in calls.methods},
        **{name: _passed(name, Child.change) for name in calls.change},
        **{name: _passed(name, Child.close) for name in ENDS},
    }
    namespace: dict[str, Any] = {
        name: method
        for name, method in passed.items()
        if hasattr(adapter, name)
        and not (name in NEED_NO_CHILD and getattr(adapter, name) is getattr(Provider, name, None))
    }
    namespace |= {name: property(_attribute(name)) for name in calls.attributes}
    if hasattr(adapter, "expect"):
        namespace["expect"] = _expect
    return type(adapter.__name__, (adapter,), namespace)


def _passed(name: str, call: Callable[[Child, Any], Any]) -> Callable[..., Any]:
    def method(self: Any, *values: Any, **named: Any) -> Any:
        self._kept.clear()
        return call(self._child, methodcaller(name, *values, **named))

    return method


def _attribute(name: str) -> Callable[[Any], Any]:
    """Reads an attribute from the child, cached until the next call."""

    def attribute(self: Any) -> Any:
        if (value := self._kept.get(name, self)) is self:
            value = self._kept[name] = self._child.call(attrgetter(name))
        return value

    return attribute


def _expect(self: Any, documents: int, sample: Callable[[int], Any]) -> None:
    """Draws the sample for a store in the child."""
    drawn: dict[int, Any] = {}
    while wanted := self._child.change(partial(_drawn, documents, drawn)):
        drawn[wanted] = sample(wanted)


def _drawn(documents: int, samples: Mapping[int, Any], store: Any) -> int | None:
    """Runs in the child: the size of the sample that the store still needs."""
    try:
        store.expect(documents, samples.__getitem__)
    except KeyError as lacking:
        return int(lacking.args[0])
    return None
