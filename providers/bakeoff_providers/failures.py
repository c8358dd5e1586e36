"""Turns SDK errors into ours, with what the retry policy needs: status, whether to retry, and when."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from bakeoff_providers.answers import RefusedAnswer
from bakeoff_providers.errors import AnswerUnusable, BakeoffError, CallFailed, EmbeddingFailed
from bakeoff_providers.secrets import scrub

RETRYABLE = frozenset({408, 409, 425, 429, 500, 502, 503, 504, *range(520, 525), 529})
# Matched by name: httpx and httpx2 have separate classes of the same names, and none is imported.
TRANSPORT = frozenset(
    {
        "TransportError",  # httpx, httpx2, google.auth
        "APIConnectionError",  # openai, voyageai
        "ConnectionError",  # builtin, requests
        "ConnectionClosed",
        "DeadlineTimeout",  # ours
        "Timeout",  # requests, voyageai
        "TimeoutError",
        "ChunkedEncodingError",
        "ContentDecodingError",
        "DecodingError",
        "IncompleteRead",
        "ProtocolError",
        "RetryError",
        "RpcError",
        "TryAgain",
    }
)
# Subclasses of the above that fail on every try: the address or the certificate is wrong.
HOPELESS = frozenset(
    {
        "CertificateError",
        "InvalidHeader",
        "InvalidProxyURL",
        "InvalidSchema",
        "InvalidURL",
        "LocalProtocolError",
        "MissingSchema",
        "SSLCertVerificationError",
        "UnsupportedProtocol",
    }
)
WORDS = {400: "bad request", 401: "not authorised", 403: "forbidden", 404: "not found", 413: "too large"}
WORDS |= {408: "timed out", 422: "not accepted", 429: "too many requests", 500: "server error"}
WORDS |= {502: "bad gateway", 503: "unavailable", 504: "gateway timed out", 529: "overloaded"}
# A text stays too long. Some servers (llama.cpp) report it as their own error, which would be retried.
TOO_LONG = re.compile(
    r"\b(input|text|prompt|sequence|tokens?)\b.*\b(too (large|long)|exceeds?|longer than)\b", re.IGNORECASE
)
CUT = "a text is too long for it: cut texts with chunking or max_chars, or let the server take larger batches"
GRPC = {"INVALID_ARGUMENT": 400, "UNAUTHENTICATED": 401, "PERMISSION_DENIED": 403, "NOT_FOUND": 404, "ABORTED": 409}
GRPC |= {"RESOURCE_EXHAUSTED": 429, "INTERNAL": 500, "UNAVAILABLE": 503, "DEADLINE_EXCEEDED": 504}


def failure(
    error: Exception, *, who: str, secrets: Iterable[str] = (), hints: Mapping[int, str] | None = None
) -> BakeoffError:
    """Our error for an SDK's exception. `hints` are remedies by status."""
    if isinstance(error, BakeoffError):
        return error
    chain = tuple(_chain(error))
    if refused := next((link for link in chain if isinstance(link, RefusedAnswer)), None):
        message = f"{who}: refused {scrub(str(refused), secrets)}"
        status = refused.status_code
        return EmbeddingFailed(message) if status is None else CallFailed(message, status=status)
    status = next((code for link in chain if (code := _status(link)) is not None), None)
    body = next((content for link in chain if (content := _body(link)) is not None), None)
    said = scrub(_extract_message(error, chain, body), secrets)
    if status is not None and not 200 <= status < 300:
        too_long = status in (400, 413, 422, 500) and TOO_LONG.search(said) is not None
        retryable = status in RETRYABLE and not too_long and not _out_of_money(body, said)
        words = f"HTTP {status}" + (f" ({WORDS[status]})" if status in WORDS else "")
        message = f"{who}: {words}: {said}"
        if too_long:
            message += f"; {CUT}"
        elif hints and status in hints:
            message += f"; {hints[status]}"
        return CallFailed(message, status=status, retryable=retryable, retry_after=_retry_after(chain, body))
    names = {name for link in chain for name in _names(link)}
    if "JSONDecodeError" in names:
        return AnswerUnusable(f"{who}: the answer is truncated or not JSON", status=status, retryable=True)
    if hopeless := names & HOPELESS:
        return CallFailed(f"{who}: {sorted(hopeless)[0]}: {said}", status=status)
    if names & TRANSPORT or isinstance(error, OSError):
        kind = "no answer in time" if any("timeout" in name.lower() for name in names) else "connection failed"
        said = scrub(str(error.__cause__ or error), secrets)
        return CallFailed(f"{who}: {kind}: {said}", status=status, retryable=True)
    first_line = scrub(f"{error}".partition("\n")[0], secrets)
    return EmbeddingFailed(f"{who}: unreadable answer ({type(error).__name__}: {first_line})")


def retry_after(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """The server's requested wait in seconds, from milliseconds, seconds, or an HTTP date."""
    wanted = {str(name).lower(): str(value).strip() for name, value in headers.items()}
    for name, unit in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        value = wanted.get(name, "")
        if re.fullmatch(r"\d+(\.\d+)?", value):
            return float(value) / unit
    try:
        until = parsedate_to_datetime(wanted["retry-after"])
    except (KeyError, ValueError, TypeError):
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (until - (now or datetime.now(UTC))).total_seconds())


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The exception and its causes, once each. ollama hides the response in `__context__`.

    It stops at one of our own errors, which belongs to an earlier call.
    """
    waiting: list[BaseException | None] = [error]
    seen: set[int] = set()
    while waiting:
        link = waiting.pop(0)
        if link is None or id(link) in seen or isinstance(link, BakeoffError):
            continue
        seen.add(id(link))
        yield link
        waiting += [link.__cause__, link.__context__]
        waiting += [part for part in link.args if isinstance(part, BaseException)]


def _names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}


def _status(error: BaseException) -> int | None:
    response = getattr(error, "response", None)
    for holder, attribute in (
        (error, "status_code"),
        (error, "http_status"),
        (response, "status_code"),
        (error, "code"),
    ):
        value = getattr(holder, attribute, None)
        if isinstance(value, int) and 100 <= value < 600:
            return int(value)
    code = getattr(error, "code", None)
    if callable(code) and "RpcError" in _names(error):
        return GRPC.get(getattr(code(), "name", ""))
    return None


def _body(error: BaseException) -> Any:
    """The parsed body of the answer, wherever the SDK keeps it."""
    for attribute in ("json_body", "body", "details"):
        value = getattr(error, attribute, None)
        if isinstance(value, (dict, list)) and value:
            return value
    try:
        return json.loads(error.response.text)  # type: ignore[attr-defined]
    except Exception:  # no response, an unread one, or no JSON
        return None


def _extract_message(error: BaseException, chain: tuple[BaseException, ...], body: Any) -> str:
    """The server's own message if it sent one, else the exception's."""
    inner = body.get("error", body) if isinstance(body, dict) else body
    if isinstance(inner, dict):
        inner = inner.get("message") or inner.get("detail") or inner.get("error")
    if isinstance(inner, str) and inner.strip():
        return inner
    for link in chain:
        for attribute in ("error", "user_message", "message"):
            value = getattr(link, attribute, None)
            if isinstance(value, str) and value.strip():
                return value
    return str(error) or type(error).__name__


def _out_of_money(body: Any, said: str) -> bool:
    return "insufficient_quota" in f"{body!r} {said}"


def _retry_after(chain: tuple[BaseException, ...], body: Any) -> float | None:
    for link in chain:
        for holder in (link, getattr(link, "response", None)):
            headers = getattr(holder, "headers", None)
            if isinstance(headers, Mapping) and (seconds := retry_after(headers)) is not None:
                return seconds
    # Gemini sends no header, but a RetryInfo in the body's details.
    delay = re.search(r"retry_?delay\W+(\d+(?:\.\d+)?)s", repr(body), re.IGNORECASE)
    return float(delay[1]) if delay else None
