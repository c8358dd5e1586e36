"""A plug-in's requirements as data, so that `bakeoff list` imports no adapter."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, ClassVar

from bakeoff_providers.errors import Lack, join_lacks, lack
from bakeoff_providers.keys import missing_key
from bakeoff_providers.registry import importable, missing_modules


@dataclass(frozen=True, slots=True)
class Needs:
    """A plug-in's requirements: all `modules`, one of `either`, and without `server` one of `keys` and `engine`.

    `server` is the variable with the server's address; without keys and engine it is required. `running`: the server
    must be running, which only a call can check. `client` is for that server. `engine_extra` installs the engine if
    `extra` does not. `weights` names a model whose files are required. `note` is a requirement that can't be checked.
    """

    modules: tuple[str, ...] = ()
    extra: str | None = None
    either: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    server: str | None = None
    client: tuple[str, ...] = ()
    engine: tuple[str, ...] = ()
    engine_extra: str | None = None
    weights: str | None = None
    note: str | None = None
    running: bool = False

    def missing(self) -> str | None:
        """What is missing, all at once; None if nothing is. Makes no call."""
        served = bool(self.server and os.environ.get(self.server))
        if absent := join_lacks(self._missing_key(served), self._missing_package(served)):
            return absent
        if self.server and not (served or self.keys or self.engine):
            return lack("server_unset", variable=self.server)
        if not served and missing_modules(self.engine, None):
            install = f"bakeoff[{self.engine_extra or self.extra}]"
            if self.engine_extra and self.server:
                return lack("server_or_engine", variable=self.server, install=install)
            return lack("package", install=install)
        if self.weights:
            from bakeoff_providers import weights

            if not weights.present(self.weights):
                return lack("weights", command=weights.pull_command(self.weights))
        return self.note

    def _missing_key(self, served: bool) -> Lack | None:
        reasons = [] if served else [missing_key(name) for name in self.keys]
        if not reasons or not all(reasons):
            return None
        unusable = (reason for reason in reasons if reason and reason.facts[0].id != "variable_unset")
        return next(unusable, lack("key_unset", variables=self.keys))

    def _missing_package(self, served: bool) -> Lack | None:
        if self.either and not any(map(importable, self.either)):
            return lack("package", install=f"bakeoff[{self.extra}]")
        return missing_modules((*self.modules, *(self.client if served else ())), self.extra)

    def state(self) -> str:
        """What is missing, or that nothing is, without making a call."""
        return self.missing() or ("needs a running server" if self.running else "available")


class Plugin:
    """The base of plug-ins: their requirements, and the packages whose versions a result records."""

    extra: ClassVar[str | None] = None
    modules: ClassVar[tuple[str, ...]] = ()
    distributions: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def needs(cls, **options: Any) -> Needs:  # noqa: ARG003 - some need to know what the line-up says
        """The requirements as data."""
        return Needs(cls.modules, cls.extra)

    @classmethod
    def missing(cls, **options: Any) -> str | None:
        """The missing requirements, as a `Lack` if known; None if there are none. Makes no call."""
        return cls.needs(**options).missing()
