"""A plug-in's requirements as data, so that `bakeoff list` imports no adapter."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, ClassVar

from bakeoff_providers.keys import missing_key
from bakeoff_providers.registry import importable, missing_modules


@dataclass(frozen=True, slots=True)
class Needs:
    """`modules` always, one of `either`, and where the variable `server` names no server, one of `keys` and `engine`.

    With neither of these the server is a must. `running` says that one has to run, which only a call can tell.
    `client` is for that server; `engine_extra` installs the engine where `extra` does not.
    `weights` names a model whose files have to be here; `note` says what nothing on this machine can supply.
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
        """What is missing, in words, all at once; None if nothing is. Makes no call."""
        served = bool(self.server and os.environ.get(self.server))
        absent = [self._missing_key(served), self._missing_package(served)]
        if any(absent):
            return "; ".join(filter(None, absent))
        if self.server and not (served or self.keys or self.engine):
            return f"needs a server: {self.server} is not set"
        if not served and missing_modules(self.engine, None):
            install = f"install bakeoff[{self.engine_extra or self.extra}]"
            return f"{self.server} is not set; or {install}" if self.engine_extra else install
        if self.weights:
            from bakeoff_providers import weights

            if not weights.present(self.weights):
                return weights.remedy(self.weights)
        return self.note

    def _missing_key(self, served: bool) -> str | None:
        reasons = [] if served else [missing_key(name) for name in self.keys]
        if not reasons or not all(reasons):
            return None
        absent = f"{' or '.join(self.keys)} is not set"
        return next((reason for reason in reasons if reason and not reason.endswith("is not set")), absent)

    def _missing_package(self, served: bool) -> str | None:
        if self.either and not any(map(importable, self.either)):
            return f"install bakeoff[{self.extra}]"
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
        """What keeps it from running here, in words; None if nothing does. Makes no call."""
        return cls.needs(**options).missing()
