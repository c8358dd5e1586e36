"""A connection to an HTTP server: address, key, SDK client and error handling."""

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

from bakeoff_providers.answers import Envelope, Expected, expecting
from bakeoff_providers.errors import BakeoffError, InputError, Unavailable, lack
from bakeoff_providers.failures import failure
from bakeoff_providers.keys import key_in
from bakeoff_providers.needs import Needs, Plugin
from bakeoff_providers.secrets import passwords_in, redact_url, scrub, without_known
from bakeoff_providers.stopping import in_time

NO_KEY = "none"  # sent if a server needs no key, since SDKs insist on one
LOGGERS = ("httpx", "httpx2", "voyage", "openai")
TIMEOUT = 60.0  # seconds per call
T = TypeVar("T")


class Connection(Plugin, ABC):
    """An adapter's server. Subclasses define how to connect and what to call."""

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
        self.answered_as: set[str] = set()  # the models' names in its answers
        self.sent_errors = False  # beside complete data

    @property
    @abstractmethod
    def model(self) -> str:
        """The model's name, for messages."""

    @classmethod
    def needs(cls, **options: Any) -> Needs:
        """The SDK and a key. A line-up's `key_env` overrides the variable."""
        keys = cls._keys(options.get("key_env"), options.get("base_url"))
        return Needs(cls.modules, cls.extra, keys=keys)

    @classmethod
    def _keys(cls, key_env: str | None, base_url: str | None) -> tuple[str, ...]:  # noqa: ARG003 - for adapters
        """The variables of which one must hold a key; empty if the server needs none."""
        return (_variable(key_env) or "",) if key_env else cls.keys

    @property
    def base_url(self) -> str:
        """The server's address: the line-up's, the environment's, or the provider's own."""
        named = os.environ.get(self.url_variable, "") if self.url_variable else ""
        return (self._given_url or named.strip() or self.own_url).rstrip("/")

    @property
    def public_url(self) -> str:
        """The address without secrets, for messages and the cache key."""
        return without_known(redact_url(self.base_url))

    @property
    def foreign(self) -> bool:
        """Whether the server is not the provider's own. The same model name may then mean other vectors."""
        return self.base_url != self.own_url

    @property
    def on_loopback(self) -> bool:
        """Whether the server runs on this machine."""
        with suppress(ValueError):
            host = urlsplit(self.base_url).hostname or ""
            return host == "localhost" or ip_address(host).is_loopback
        return False

    def ready(self) -> None:
        """Checks this contender's own key, which `missing` can't see. Calls no server."""
        if reason := self._own_needs().missing():
            raise Unavailable(reason, of=self.name)

    def _own_needs(self) -> Needs:
        """The needs given its options."""
        return self.needs(key_env=self._key_env, base_url=self._given_url)

    def close(self) -> None:
        """Closes the connections. A later call opens new ones."""
        with self._lock:
            sdk, self._sdk = self._sdk, None
        if sdk is not None:
            self._disconnect(sdk)

    @abstractmethod
    def _connect(self, key: str) -> Any:
        """The SDK's client, with its own retries off and a timeout. Imports the SDK."""

    def _disconnect(self, sdk: Any) -> None:
        sdk.close()

    def _key(self) -> str:
        names = self._keys(self._key_env, self._given_url)
        for name in names or self.keys or self.optional_keys:
            if value := key_in(name):
                return value
        if names:
            raise Unavailable(lack("key_unset", variables=names), of=self.name)
        return NO_KEY

    def _get_sdk(self) -> Any:
        """The client, connected once even if several threads start together."""
        with self._lock:
            if self._sdk is None:
                key = self._key()
                _silence_logs()
                try:
                    self._sdk = self._connect(key)
                except ImportError as error:
                    reason = replace(self._own_needs(), keys=()).missing() or f"{type(error).__name__}: {error}"
                    raise Unavailable(reason, of=self.name) from None
                except Exception as error:
                    raise self._failure(error) from None
            return self._sdk

    def _run_call(self, work: Callable[[], T], expected: Expected) -> T:
        """One call under a deadline and the answer checks. SDK errors become ours."""

        def call() -> T:
            with expecting(expected):
                answer = work()
            if expected.shape is not None:
                self._note(expected.require())
            return answer

        try:
            return in_time(call, self._timeout, bought=True)
        except ImportError as error:
            raise Unavailable(str(error), of=self.name) from None
        except Exception as error:
            raise self._failure(error) from None

    def _note(self, answer: Any) -> None:
        if isinstance(answer, Envelope):
            if isinstance(answer.model, str) and answer.model:
                self.answered_as.add(scrub(answer.model, self._secrets()))
            self.sent_errors |= bool(answer.error)

    def _failure(self, error: Exception) -> BakeoffError:
        who = f"{self.name} {self.model}"
        return failure(error, who=who, secrets=self._secrets(), hints=self._hints())

    def _secrets(self) -> list[str]:
        names = [*self.keys, *self.optional_keys, *([self._key_env] if self._key_env else [])]
        return [*(os.environ.get(name, "").strip() for name in names), *passwords_in(self.base_url)]

    def _hints(self) -> dict[int, str]:
        """Remedies by status, for failures that a retry would not fix."""
        names = (self._key_env,) if self._key_env else self.keys or self.optional_keys
        key = f"check {' or '.join(names)}"
        return {401: key, 403: key, 404: f"is {self.model!r} the name of a model there?"}


def _silence_logs() -> None:
    """Below warnings, these loggers print full addresses and answers, which may contain secrets."""
    for name in LOGGERS:
        logger = logging.getLogger(name)
        if logger.level < logging.WARNING:
            logger.setLevel(logging.WARNING)


def _variable(name: str | None) -> str | None:
    """Refuses a key where a variable's name belongs, without quoting it."""
    if name is not None and not re.fullmatch(r"[A-Z][A-Z0-9_]*", name):
        raise InputError("key_env takes the name of an environment variable (A-Z, 0-9, _), not a key")
    return name
