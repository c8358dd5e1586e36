"""A server behind HTTP, whatever it is asked for: its address, its key, one SDK client and one way to fail."""

from __future__ import annotations

import logging
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from ipaddress import ip_address
from threading import Lock
from typing import Any, ClassVar, TypeVar
from urllib.parse import urlsplit

from bakeoff_providers.answers import Expected, expecting
from bakeoff_providers.errors import BakeoffError, InputError, Unavailable
from bakeoff_providers.failures import failure
from bakeoff_providers.keys import key_in
from bakeoff_providers.needs import Needs, Plugin
from bakeoff_providers.secrets import passwords_in, shown_url, without_known
from bakeoff_providers.stopping import in_time

NO_KEY = "none"  # what is sent where a server wants none: an SDK insists on something
LOGGERS = ("httpx", "httpx2", "voyage", "openai")
TIMEOUT = 60.0  # seconds for one whole call
T = TypeVar("T")


class Connection(Plugin, ABC):
    """What an adapter knows of its server. Subclasses say how to connect; what they ask for is their own affair."""

    name: ClassVar[str]
    own_url: ClassVar[str]
    url_variable: ClassVar[str | None] = None
    keys: ClassVar[tuple[str, ...]] = ()
    optional_keys: ClassVar[tuple[str, ...]] = ()

    def __init__(self, *, base_url: str | None = None, timeout: float = TIMEOUT, key_env: str | None = None) -> None:
        if timeout <= 0:
            raise InputError(f"timeout = {timeout!r} is not a number of seconds above 0")
        self._given_url, self._timeout, self._key_env = base_url, float(timeout), _variable(key_env)
        self._lock = Lock()
        self._sdk: Any = None

    @property
    @abstractmethod
    def model(self) -> str:
        """The model that is asked, for messages."""

    @classmethod
    def needs(cls, **options: Any) -> Needs:
        """The SDK and a key; a line-up's `key_env` is the variable that counts."""
        keys = cls._keys(options.get("key_env"), options.get("base_url"))
        return Needs(cls.modules, cls.extra, keys=keys)

    @classmethod
    def _keys(cls, key_env: str | None, base_url: str | None) -> tuple[str, ...]:  # noqa: ARG003 - for adapters
        """The variables of which one must hold a key; none where the server needs no key."""
        return (_variable(key_env) or "",) if key_env else cls.keys

    @property
    def base_url(self) -> str:
        """The server that is asked: the line-up's, the environment's, or the provider's own."""
        named = os.environ.get(self.url_variable, "") if self.url_variable else ""
        return (self._given_url or named.strip() or self.own_url).rstrip("/")

    @property
    def shown_url(self) -> str:
        """The address without a secret in it, for messages and the cache key."""
        return without_known(shown_url(self.base_url))

    @property
    def foreign(self) -> bool:
        """Whether another server than the provider's own is asked: the same model name may mean other vectors."""
        return self.base_url != self.own_url

    @property
    def on_loopback(self) -> bool:
        """Whether the server that is asked runs on this machine."""
        with suppress(ValueError):
            host = urlsplit(self.base_url).hostname or ""
            return host == "localhost" or ip_address(host).is_loopback
        return False

    def ready(self) -> None:
        """What `missing` can't see, as it knows no options: this contender's own key. Asks no server."""
        if reason := self._own_needs().missing():
            raise Unavailable(f"{self.name}: {reason}")

    def _own_needs(self) -> Needs:
        """With the options that it was made with."""
        return self.needs(key_env=self._key_env, base_url=self._given_url)

    def close(self) -> None:
        """Closes the connections; a later call opens new ones."""
        with self._lock:
            sdk, self._sdk = self._sdk, None
        if sdk is not None:
            self._disconnect(sdk)

    @abstractmethod
    def _connect(self, key: str) -> Any:
        """The SDK's client, its own retry off and a timeout set. Imports the SDK."""

    def _disconnect(self, sdk: Any) -> None:
        sdk.close()

    def _key(self) -> str:
        names = self._keys(self._key_env, self._given_url)
        for name in names or self.keys or self.optional_keys:
            if value := key_in(name):
                return value
        if names:
            raise Unavailable(f"{self.name}: {' or '.join(names)} is not set")
        return NO_KEY

    def _connected(self) -> Any:
        """Connects once, also when several threads make their first call together."""
        with self._lock:
            if self._sdk is None:
                key = self._key()
                _silence_logs()
                try:
                    self._sdk = self._connect(key)
                except ImportError as error:
                    reason = replace(self._own_needs(), keys=()).missing() or f"{type(error).__name__}: {error}"
                    raise Unavailable(f"{self.name}: {reason}") from None
                except Exception as error:
                    raise self._failure(error) from None
            return self._sdk

    def _answered(self, work: Callable[[], T], expected: Expected) -> T:
        """One call, held to a deadline and to what it may bring; an SDK's own failures become ours."""

        def guarded() -> T:
            with expecting(expected):
                answer = work()
            if expected.shape is not None:
                expected.checked()
            return answer

        try:
            return in_time(guarded, self._timeout, bought=True)
        except ImportError as error:
            raise Unavailable(f"{self.name}: {error}") from None
        except Exception as error:
            raise self._failure(error) from None

    def _failure(self, error: Exception) -> BakeoffError:
        names = [*self.keys, *self.optional_keys, *([self._key_env] if self._key_env else [])]
        secrets = [*(os.environ.get(name, "").strip() for name in names), *passwords_in(self.base_url)]
        return failure(error, who=f"{self.name} {self.model}", secrets=secrets, hints=self._hints())

    def _hints(self) -> dict[int, str]:
        """What the person can do about a status that no second try would change."""
        names = (self._key_env,) if self._key_env else self.keys or self.optional_keys
        key = f"check {' or '.join(names)}"
        return {401: key, 403: key, 404: f"is {self.model!r} the name of a model there?"}


def _silence_logs() -> None:
    """Below warnings these log whole addresses and answers, where a password or an echoed key may stand."""
    for name in LOGGERS:
        logger = logging.getLogger(name)
        if logger.level < logging.WARNING:
            logger.setLevel(logging.WARNING)


def _variable(name: str | None) -> str | None:
    """Refuses a key where the name of its variable belongs, without repeating it."""
    if name is not None and not re.fullmatch(r"[A-Z][A-Z0-9_]*", name):
        raise InputError("key_env wants the name of an environment variable (A-Z, 0-9, _), not a key")
    return name
