"""What the adapters of all HTTP providers share: options, prompts, keys, and one way to call and to fail."""

from __future__ import annotations

import logging
import os
import re
from abc import abstractmethod
from collections.abc import Sequence
from threading import Lock
from typing import Any, ClassVar
from urllib.parse import urlsplit

import msgspec
import numpy as np

from providers.base import EmbeddingBatch, ModelCard, Provider, Role, Vectors, checked
from providers.cards import known_card, overridden
from providers.errors import BakeoffError, EmbeddingFailed, InputError, Unavailable
from providers.failures import failure
from providers.registry import missing_modules

NO_KEY = "none"  # what is sent where a server wants none: an SDK insists on something
LOGGERS = ("httpx", "httpx2", "voyage", "openai")


class Hosted(Provider):
    """A provider behind HTTP. An adapter fills in its cards, how to connect, and the one call."""

    own_url: ClassVar[str]
    url_variable: ClassVar[str | None] = None
    keys: ClassVar[tuple[str, ...]] = ()
    optional_keys: ClassVar[tuple[str, ...]] = ()
    cards: ClassVar[tuple[ModelCard, ...]] = ()
    open_card: ClassVar[ModelCard] = ModelCard(name="")
    tasks: ClassVar[tuple[str, str] | None] = None
    cuts: ClassVar[bool] = False

    def __init__(
        self,
        *,
        model: str | None = None,
        dimensions: int | None = None,
        base_url: str | None = None,
        timeout: float = 30.0,
        key_env: str | None = None,
        document_prompt: str | None = None,
        query_prompt: str | None = None,
        document_task: str | None = None,
        query_task: str | None = None,
        truncate: bool | None = None,
        max_chars: int | None = None,
        context: int | None = None,
        batch_items: int | None = None,
        batch_tokens: int | None = None,
        requests_per_minute: int | None = None,
        tokens_per_minute: int | None = None,
        price: float | None = None,
    ) -> None:
        known = known_card(model or self.default_model, self.cards, self.open_card)
        self.card = overridden(
            known,
            dimensions=dimensions,
            context=context,
            document_prompt=document_prompt,
            query_prompt=query_prompt,
            batch_items=batch_items,
            batch_tokens=batch_tokens,
            requests_per_minute=requests_per_minute,
            tokens_per_minute=tokens_per_minute,
            price=price,
        )
        if timeout <= 0:
            raise InputError(f"timeout = {timeout!r} is not a number of seconds above 0")
        if max_chars is not None and max_chars < 1:
            raise InputError(f"max_chars = {max_chars!r} is not a whole number above 0")
        if truncate is not None and not self.cuts:
            raise InputError(f"{self.name} has no option to cut long texts", remedy="use max_chars")
        if (document_task is not None or query_task is not None) and self.tasks is None:
            raise InputError(f"{self.name} knows no task types", remedy="use document_prompt and query_prompt")
        self._known, self._timeout, self._key_env = known, float(timeout), _variable(key_env)
        self._given_url, self._max_chars = base_url, max_chars
        self._tasks = (document_task, query_task)
        self._truncate = truncate is not False if self.cuts else None
        self._asked = dimensions if dimensions != known.dimensions else None
        self._lock = Lock()
        self._sdk: Any = None

    @classmethod
    def missing(cls, **options: Any) -> str | None:
        """As the base says it; a line-up's `key_env` is the variable that counts."""
        names = cls._keys(options.get("key_env"), options.get("base_url"))
        if names and not any(os.environ.get(name) for name in names):
            return f"{' or '.join(names)} is not set"
        return cls._missing_sdk()

    @classmethod
    def _missing_sdk(cls) -> str | None:
        return missing_modules(cls.modules, cls.extra)

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
        """The address without a name or password in it, for messages and the cache key."""
        parts = urlsplit(self.base_url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()

    @property
    def foreign(self) -> bool:
        """Whether another server than the provider's own is asked: the same model name may mean other vectors."""
        return self.base_url != self.own_url

    def task(self, role: Role) -> str | None:
        """The task type sent for this role; an empty one in the line-up sends none."""
        if self.tasks is None:
            return None
        index = 1 if role is Role.QUERY else 0
        given = self._tasks[index]
        return (self.tasks[index] if given is None else given) or None

    def identity(self, role: Role) -> dict[str, str | int | float | bool | None]:
        """Adds the task type, what is cut, and a server that is not the provider's own (without its password)."""
        identity = super().identity(role)
        extra = {"task": self.task(role), "truncate": self._truncate, "max_chars": self._max_chars}
        identity |= {name: value for name, value in extra.items() if value is not None}
        if self.foreign:
            identity["server"] = self.shown_url
        return identity

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        """One request, whatever comes of it: trying again is the harness's affair."""
        if not texts:
            return EmbeddingBatch(np.zeros((0, self.card.dimensions or 0), dtype=np.float32), tokens=0)
        prompt = self.card.prompt(role)
        inputs = [prompt + text[: self._max_chars] for text in texts]
        cut = sum(len(text) > self._max_chars for text in texts) if self._max_chars else 0
        sdk = self._connected()
        try:
            rows, tokens = self._call(sdk, inputs, role)
        except ImportError as error:
            raise Unavailable(f"{self.name}: {error}") from None
        except Exception as error:
            raise self._failure(error) from None
        tokens = tokens if isinstance(tokens, int) and tokens >= 0 else None
        return checked(EmbeddingBatch(self._vectors(rows), tokens, cut), texts, self.card)

    def ready(self) -> None:
        """What `missing` can't see, as it knows no options: this contender's own key. Asks no server."""
        if reason := self.missing(key_env=self._key_env, base_url=self._given_url):
            raise Unavailable(f"{self.name}: {reason}")

    def close(self) -> None:
        """Closes the connections; a later call opens new ones."""
        with self._lock:
            sdk, self._sdk = self._sdk, None
        if sdk is not None:
            self._disconnect(sdk)

    @abstractmethod
    def _connect(self, key: str) -> Any:
        """The SDK's client, its own retry off and a timeout set. Imports the SDK."""

    @abstractmethod
    def _call(self, sdk: Any, inputs: list[str], role: Role) -> tuple[Any, Any]:
        """The rows and the tokens as the SDK answers them, unchecked; any exception may pass."""

    def _disconnect(self, sdk: Any) -> None:
        sdk.close()

    def _key(self) -> str:
        names = self._keys(self._key_env, self._given_url)
        for name in names or self.keys or self.optional_keys:
            if value := os.environ.get(name, "").strip():
                return value
        if names:
            raise Unavailable(f"{self.name}: {' or '.join(names)} is not set")
        return NO_KEY

    def _connected(self) -> Any:
        """Connects once, also when several threads make their first call together."""
        with self._lock:
            if self._sdk is None:
                key = self._key()
                _hush()
                try:
                    self._sdk = self._connect(key)
                except ImportError as error:
                    reason = self._missing_sdk() or f"{type(error).__name__}: {error}"
                    raise Unavailable(f"{self.name}: {reason}") from None
                except Exception as error:
                    raise self._failure(error) from None
            return self._sdk

    def _failure(self, error: Exception) -> BakeoffError:
        names = [*self.keys, *self.optional_keys, *([self._key_env] if self._key_env else [])]
        secrets = [os.environ.get(name, "").strip() for name in names]
        secrets.append(urlsplit(self.base_url).password or "")
        return failure(error, who=f"{self.name} {self.card.name}", secrets=secrets, hints=self._hints())

    def _hints(self) -> dict[int, str]:
        """What the person can do about a status that no second try would change."""
        names = (self._key_env,) if self._key_env else self.keys or self.optional_keys
        key = f"check {' or '.join(names)}"
        return {401: key, 403: key, 404: f"is {self.card.name!r} the name of a model there?"}

    def _vectors(self, rows: Any) -> Vectors:
        """One float32 matrix from what the SDK gave, or a clear refusal of what is none."""
        if rows is None or isinstance(rows, (str, bytes, dict)):
            raise EmbeddingFailed(f"{self.name} {self.card.name} answered no vectors")
        try:
            with np.errstate(over="ignore"):
                vectors = np.asarray(list(rows), dtype=np.float32)
        except (TypeError, ValueError):
            raise EmbeddingFailed(
                f"{self.name} {self.card.name} answered vectors of unequal length, or no numbers"
            ) from None
        return vectors


def open_card(**known: Any) -> ModelCard:
    """The card of a model that is not listed: the provider's limits, and no promise of dimensions."""
    return msgspec.convert({"name": "", **known}, ModelCard)


def _hush() -> None:
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
