"""HTTP answers are checked before an SDK parses them: no redirects, a size limit, the right types.

SDKs coerce types (a boolean to a number, text to a vector), follow redirects with the key, and read without limit.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import msgspec

from bakeoff_providers.secrets import redact_url

ENCODINGS = ("", "identity", "gzip", "deflate")  # others may expand a few bytes to gigabytes in one step
HEADERS = {"Accept-Encoding": "gzip"}
BASE_BYTES = 1 << 20  # for everything but the vectors, and for errors
NUMBER_BYTES = 32  # the longest JSON number, with its comma
MOST_DIMENSIONS = 16_384  # if the card has none
ESCAPED = 12  # bytes of a character in the longest JSON spelling: two escapes
RESULT_BYTES = 1024  # around a document
CHUNK = 1 << 16
MOST_TOKENS = 10**12  # more than any call can use


class RefusedAnswer(Exception):
    """The server sent something else than requested. A retry would not help."""

    def __init__(self, message: str, status: int | None = None) -> None:
        self.status_code = status
        super().__init__(message)


@dataclass(slots=True)
class Expected:
    """What one call may return: its size limit and shape. `parsed` is the answer."""

    most_bytes: int = 8 * BASE_BYTES
    shape: Any = None
    parsed: Any = None

    def require(self) -> Any:
        """The parsed answer. Raises if it came past the checks."""
        if self.parsed is None:
            raise RefusedAnswer("an answer that came past the checks")
        return self.parsed


_expected: ContextVar[Expected | None] = ContextVar("expected", default=None)


@contextmanager
def expecting(expected: Expected) -> Iterator[Expected]:
    """Applies to all calls of this thread within the block."""
    token = _expected.set(expected)
    try:
        yield expected
    finally:
        _expected.reset(token)


def rerank_bytes(documents: list[str]) -> int:
    """The size limit for reranking these documents. Some servers echo them, escaped."""
    return BASE_BYTES + sum(ESCAPED * len(document) + RESULT_BYTES for document in documents)


def most_bytes(texts: int, dimensions: int | None) -> int:
    """The size limit for this many texts."""
    return BASE_BYTES + texts * (dimensions or MOST_DIMENSIONS) * NUMBER_BYTES


def guard_httpx(response: Any) -> None:
    """For `event_hooks` of an httpx or httpx2 client: reads the body within the limit."""
    _check_head(response.status_code, response.headers)
    response._content = _read_body(response.status_code, response.iter_bytes())


def guard_requests(response: Any, **_: Any) -> None:
    """For `hooks` of a requests session, which run before redirects are followed or the body is read."""
    _check_head(response.status_code, response.headers)
    response._content = _read_body(response.status_code, response.iter_content(CHUNK))
    response._content_consumed = True


def httpx_options() -> dict[str, Any]:
    """Options for every httpx client."""
    return {"follow_redirects": False, "event_hooks": {"response": [guard_httpx]}, "headers": dict(HEADERS)}


def _check_head(status: int, headers: Any) -> None:
    if 300 <= status < 400:
        target = redact_url(str(headers.get("location") or "")) or "nowhere"
        raise RefusedAnswer(f"a redirect to {target}, which is not followed: name the right address instead", status)
    if (encoding := str(headers.get("content-encoding") or "").lower()) not in ENCODINGS:
        raise RefusedAnswer(f"an answer encoded as {encoding}, which was not requested")


def _read_body(status: int, chunks: Iterable[bytes]) -> bytes:
    expected = _expected.get() or Expected()
    most = expected.most_bytes if status < 300 else BASE_BYTES
    parts, size = [], 0
    for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise RefusedAnswer(f"an answer of more than {most:,} bytes, the most that this call can need")
        parts.append(chunk)
    body = b"".join(parts)
    if expected.shape is not None and status < 300:
        expected.parsed = _parse(body, expected.shape)
    return body


def _parse(body: bytes, shape: Any) -> Any:
    """The answer in its shape. SDKs accept more than JSON allows (NaN, byte order marks)."""
    try:
        return msgspec.json.decode(body, type=shape)
    except msgspec.ValidationError as error:
        raise RefusedAnswer(f"an answer of another shape ({error})") from None
    except RecursionError:
        raise RefusedAnswer("an answer that is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        _check_complete(body)
        raise RefusedAnswer("an answer that is not quite JSON: NaN, a byte order mark, half a character") from None


def _check_complete(body: bytes) -> None:
    """Raises an error worth a retry if the answer is truncated or a gateway's page."""
    try:
        json.loads(body)
    except RecursionError:
        return
    except ValueError:
        raise json.JSONDecodeError("the answer is truncated or not JSON", "", 0) from None


def read_count(tokens: Any) -> int | None:
    """A server's token count; None if it is not a plausible one, which must not enter a budget."""
    if isinstance(tokens, float) and tokens.is_integer():
        tokens = int(tokens)
    whole = isinstance(tokens, int) and not isinstance(tokens, bool)
    return tokens if whole and 0 <= tokens <= MOST_TOKENS else None


def in_order(rows: list[Any], places: list[int]) -> list[Any]:
    """Rows sorted by their index, which must be exactly 0 … n-1."""
    if sorted(places) != list(range(len(rows))):
        raise RefusedAnswer(f"an answer whose indices are not 0 to {len(rows) - 1}, once each")
    return [row for _, row in sorted(zip(places, rows, strict=True), key=lambda pair: pair[0])]


class Envelope(msgspec.Struct, frozen=True, kw_only=True):
    """What a service may send besides its data: the responding model's name, and an error."""

    model: Any = None
    error: Any = None


class IndexedRow(msgspec.Struct, frozen=True):
    """One vector of OpenAI's or Voyage's answer."""

    embedding: str | list[float]
    index: int


class IndexedRows(Envelope, frozen=True):
    """OpenAI's and Voyage's answer."""

    data: list[IndexedRow]

    @property
    def places(self) -> list[int]:
        """The index of each row."""
        return [row.index for row in self.data]
