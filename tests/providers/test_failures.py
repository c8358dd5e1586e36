"""Any SDK's exception becomes one of ours, with what the retry policy needs to know."""

from __future__ import annotations

import json
import ssl
from datetime import UTC, datetime
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import httpx
import httpx2
import pytest
import requests
from bakeoff_providers.errors import BakeoffError, CallFailed, EmbeddingFailed
from bakeoff_providers.failures import RETRYABLE, failure, retry_after
from bakeoff_providers.secrets import LONGEST, scrub
from google.api_core import exceptions as google
from hypothesis import given
from hypothesis import strategies as st

from tests.errors import says

NOW = datetime(2026, 11, 5, 12, 0, 0, tzinfo=UTC)


def translated(error: Exception, **options: Any) -> CallFailed:
    result = failure(error, who="someone", **options)
    assert isinstance(result, CallFailed)
    return result


@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError("refused"),
        httpx2.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx2.ReadTimeout("slow"),
        httpx.RemoteProtocolError("gone"),
        httpx2.RemoteProtocolError("gone"),
        requests.exceptions.ConnectionError("refused"),
        requests.exceptions.ReadTimeout("slow"),
        requests.exceptions.ChunkedEncodingError("gone"),
        ConnectionResetError("gone"),
        TimeoutError("slow"),
        google.ServiceUnavailable("later"),
        google.DeadlineExceeded("slow"),
        google.TooManyRequests("later"),
    ],
    ids=lambda error: f"{type(error).__module__}.{type(error).__name__}",
)
def test_what_may_pass_is_retryable(error: Exception) -> None:
    assert translated(error).retryable


def test_what_took_too_long_is_told_from_what_broke() -> None:
    says(str(translated(httpx.ReadTimeout("slow"))))
    says(str(translated(ConnectionResetError("gone"))))


@pytest.mark.parametrize(
    "error",
    [
        httpx.UnsupportedProtocol("ftp"),
        httpx2.UnsupportedProtocol("ftp"),
        httpx.LocalProtocolError("illegal header"),
        requests.exceptions.MissingSchema("no scheme"),
        requests.exceptions.InvalidURL("no host"),
        google.BadRequest("no"),
        google.Unauthorized("no"),
        google.Forbidden("no"),
        google.NotFound("no"),
    ],
    ids=lambda error: f"{type(error).__module__}.{type(error).__name__}",
)
def test_what_stays_wrong_is_not(error: Exception) -> None:
    assert not translated(error).retryable


def test_a_bad_certificate_is_hopeless_wherever_it_hides() -> None:
    error = httpx.ConnectError("failed")
    error.__cause__ = ssl.SSLCertVerificationError("self-signed")
    assert not translated(error).retryable


class Status(Exception):
    """An SDK's exception in the form that cohere and voyage have."""

    def __init__(self, status: int, body: Any = None, headers: dict[str, str] | None = None) -> None:
        self.status_code, self.body, self.headers = status, body, headers or {}
        super().__init__(f"status {status}")


def test_only_the_listed_statuses_are_retried() -> None:
    listed = {408, 409, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524, 529}
    errors = [translated(Status(status)) for status in range(300, 600)]
    assert [error.status for error in errors] == list(range(300, 600))
    assert {error.status for error in errors if error.retryable} == listed == RETRYABLE


def test_no_money_is_not_retried() -> None:
    body = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
    error = translated(Status(429, body, {"Retry-After": "3"}))
    assert (error.status, error.retryable) == (429, False)
    assert "You exceeded your current quota" in str(error)


@pytest.mark.parametrize(
    ("said", "retryable"),
    [
        # as llama.cpp, vLLM and OpenAI say it
        (
            "input (2002 tokens) is too large to process. increase the physical batch size (current: 512)",
            False,
        ),
        ("input is too large to process. increase the physical batch size", False),
        ("This model's maximum context length is 8192 tokens, the given text exceeds it", False),
        ("tokens per minute: limit reached", True),
        ("internal error: the queue is too long", True),
    ],
)
def test_a_text_that_is_too_long_is_not_sent_again(said: str, retryable: bool) -> None:
    error = translated(Status(500, body={"error": {"message": said}}))
    assert error.retryable is retryable
    assert ("max_chars" in str(error)) is not retryable
    assert translated(Status(429, body={"error": {"message": said}})).retryable  # a rate limit is no long text


def test_the_remedy_of_a_status_is_told() -> None:
    hints = {404: "run ollama pull x"}
    says(str(translated(Status(404), hints=hints)), "HTTP")
    assert "pull" not in str(translated(Status(400), hints=hints))


def test_gemini_says_when_in_the_body() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34s"}]
    assert translated(Status(429, {"error": {"message": "slow down", "details": details}})).retry_after == 34.0


def test_grpc_codes_are_statuses() -> None:
    grpc: Any = import_module("grpc")

    class Broken(grpc.RpcError):  # type: ignore[misc]
        def __init__(self, code: Any) -> None:
            self._code = code

        def code(self) -> Any:
            return self._code

    assert translated(Broken(grpc.StatusCode.UNAVAILABLE)).status == 503
    assert not translated(Broken(grpc.StatusCode.UNAUTHENTICATED)).retryable


def test_a_code_of_something_else_is_not_asked_for() -> None:
    class Fault(Exception):
        def code(self) -> Any:
            return SimpleNamespace(name="UNAVAILABLE")  # gRPC's word, but no error of gRPC

    class RpcError(Exception):
        code = "UNAVAILABLE"

    for error in (Fault("x"), RpcError("x")):
        assert getattr(failure(error, who="someone"), "status", None) is None


def test_json_that_breaks_off_may_be_tried_again() -> None:
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads('{"data": [')
    assert translated(caught.value).retryable


@pytest.mark.parametrize("error", [AttributeError("data"), TypeError("None"), KeyError("embedding"), ValueError("x")])
def test_a_wrong_shape_is_final(error: Exception) -> None:
    result = failure(error, who="someone")
    assert isinstance(result, EmbeddingFailed)
    assert type(error).__name__ in str(result)


@pytest.mark.parametrize(("error", "said"), [(ValueError("no such row"), "no such row"), (OSError(), "OSError")])
def test_where_the_server_says_nothing_the_exception_does(error: Exception, said: str) -> None:
    error.__cause__ = Status(503)
    assert str(translated(error)).endswith(said)


def test_our_own_errors_pass_unchanged() -> None:
    error = BakeoffError("as it is")
    assert failure(error, who="someone") is error


def test_what_lay_behind_is_looked_at_also_without_a_cause() -> None:
    error = ValueError("unreadable")
    error.__context__ = Status(503)
    assert translated(error).status == 503


def test_an_earlier_call_of_ours_does_not_colour_this_one() -> None:
    try:
        try:
            try:
                raise Status(429, headers={"Retry-After": "9"})
            except Status as before:
                raise failure(before, who="someone") from None
        except CallFailed:
            raise httpx.ConnectError("now") from None
    except httpx.ConnectError as error:
        result = translated(error)
    assert (result.status, result.retry_after) == (None, None)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "2"}, 2.0),
        ({"retry-after": " 0.5 "}, 0.5),
        ({"RETRY-AFTER": "0"}, 0.0),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"Retry-After": "Thu, 05 Nov 2026 12:00:30 GMT"}, 30.0),
        ({"Retry-After": "Thu, 05 Nov 2026 11:00:00 GMT"}, 0.0),
        ({"Retry-After": "Thu, 05 Nov 2026 12:00:30"}, 30.0),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": ""}, None),
        ({}, None),
    ],
)
def test_retry_after_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=NOW) == seconds


@given(st.text())
def test_retry_after_never_breaks(value: str) -> None:
    seconds = retry_after({"Retry-After": value}, now=NOW)
    assert seconds is None or seconds >= 0


@pytest.mark.parametrize(
    "text",
    [
        "Incorrect API key provided: sk-proj-abcdef0123456789",
        "Incorrect API key provided: sk-abcd****************6789",
        "{'Authorization': 'Bearer abcdefgh12345'}",
        "http://host/v1?api_key=abcdefgh12345&x=1",
        "x-goog-api-key: AIzaSyabcdefghijk12345",
        "http://me:abcdefgh12345@host/v1",
        "my-secret-abcdefgh12345",
    ],
)
def test_keys_are_struck_out(text: str) -> None:
    clean = scrub(text, ["my-secret-abcdefgh12345"])
    assert "***" in clean
    assert "12345" not in clean
    assert "6789" not in clean


def test_plain_words_stay() -> None:
    text = "co-occurrence of para-sailing is not supported: none of the inputs fit"
    assert scrub(text, ["none", ""]) == text


@given(st.text(), st.text(min_size=6))
def test_a_scrubbed_text_is_one_short_line_without_the_secret(text: str, secret: str) -> None:
    clean = scrub(f"{text}{secret}{text}", [secret])
    assert len(clean) <= LONGEST
    assert "\n" not in clean
    if "*" not in secret and not set(secret) <= set(" .") and len(set(secret)) > 3:
        assert secret not in clean
