"""A search endpoint by URL, such as Elasticsearch, Vespa or your own service."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar
from urllib.parse import urlsplit

from bakeoff_providers.answers import Expected, expecting, httpx_options
from bakeoff_providers.errors import BakeoffError, CallFailed, InputError, StoreError, Unavailable
from bakeoff_providers.failures import failure
from bakeoff_providers.keys import fill_in, find_secret, key_in, missing_variables, variables_in
from bakeoff_providers.shared_options import Timeout
from bakeoff_providers.stopping import in_time

from bakeoff.calls.retry import RateLimit, RetryPolicy, call
from bakeoff.search.retrievers import Retriever, Scored, Unknown, pair_scores

if TYPE_CHECKING:
    import httpx

ANSWER_BYTES, HIT_BYTES, MOST_BYTES = 8 << 20, 1 << 16, 1 << 28  # of an answer: in general, for each hit, at all


class Http(Retriever):
    """One request per query. `{text}` and `{k}` in the body (or in a GET's parameters) are filled in.

    `ids` and `scores` are paths into the JSON answer, `*` for every entry of a list: "hits.hits.*._id". A header and
    the body may hold `${NAME}`, taken from the environment: a line-up is copied into results, so it holds no key.
    """

    name: ClassVar[str] = "http"
    takes_policy: ClassVar[bool] = True

    def __init__(
        self,
        *,
        url: Annotated[str, "URL of the endpoint"],
        ids: Annotated[str, "path to the ids in the JSON answer, such as hits.*.id"] = "*",
        scores: Annotated[str, "path to the scores; default: ranked by order"] = "",
        body: Annotated[
            Mapping[str, Any] | None,
            "request body with {text}, {k} and ${NAME} from the environment; default: query and k",
        ] = None,
        method: Annotated[str, "POST, or GET with the body as parameters"] = "POST",
        headers: Annotated[Mapping[str, str] | None, "request headers; ${NAME} comes from the environment"] = None,
        timeout: Timeout = 30.0,
        unknown: Unknown = "error",
        policy: RetryPolicy | None = None,
    ) -> None:
        import httpx

        self.url, self.unknown, self._timeout = url, unknown, timeout
        self._ids, self._scores, self._method = ids, scores, method.upper()
        self._body = {"query": "{text}", "k": "{k}"} if body is None else fill_in(body)
        self._policy, self._rate_limit = policy or RetryPolicy(), RateLimit()
        self._secrets = [key_in(name) for name in variables_in([headers, body])]
        sent = fill_in(headers or {})
        shared = httpx_options()
        self._client = httpx.Client(**{**shared, "headers": shared["headers"] | sent}, timeout=timeout)

    @classmethod
    def missing(cls, **options: Any) -> str | None:
        """An unset variable that a header or the body names."""
        return missing_variables([options.get("headers"), options.get("body")])

    @classmethod
    def check(cls, **options: Any) -> None:
        """Checks URL, method and paths, and that no key is written out."""
        try:
            parts = urlsplit(str(options.get("url", "")))
        except ValueError:
            parts = urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(
                f"{options.get('url')!r} is not a URL", place="retriever url", remedy="http://host:port/path"
            )
        if str(options.get("method", "POST")).upper() not in ("GET", "POST"):
            raise InputError(f"method {options['method']!r} is neither GET nor POST", place="retriever method")
        for key in ("ids", "scores"):
            if not isinstance(options.get(key, ""), str) or (key in options and "*" not in options[key].split(".")):
                raise InputError(
                    f"{key} is not a path to a list", place=f"retriever {key}", remedy='for example "hits.*.id"'
                )
        if secret := find_secret({key: options[key] for key in ("headers", "body") if options.get(key)}):
            raise InputError(
                f"{secret} holds a key", place="retriever", remedy="name its environment variable as ${NAME}, all of it"
            )
        if options.get("unknown", "error") not in ("error", "drop"):
            raise InputError("unknown is neither 'error' nor 'drop'", place="retriever unknown")

    def search(self, text: str, k: int) -> tuple[Scored, int]:
        """Times only the successful request, without retries and waits."""
        content = _fill_template(self._body, text, k)
        answer, nanoseconds = call(lambda: self._request(content, k), self._policy, self._rate_limit)
        ids = _at(answer, self._ids)
        if not self._scores:
            return pair_scores(ids, k), nanoseconds
        values = _at(answer, self._scores)
        if len(values) != len(ids):
            raise StoreError(f"{self.url} returned {len(ids)} ids and {len(values)} scores")
        return pair_scores(list(zip(ids, values, strict=True)), k), nanoseconds

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()

    def _request(self, content: Any, k: int) -> Any:
        """One request with a deadline and a size limit; redirects are refused."""
        try:
            response = in_time(lambda: self._send(content, k), self._timeout)
        except Exception as error:
            raise self._wrap_error(error) from None
        try:
            return response.json()
        except (ValueError, RecursionError):
            raise StoreError(f"{self.url} did not return JSON") from None

    def _send(self, content: Any, k: int) -> httpx.Response:
        with expecting(Expected(min(ANSWER_BYTES + k * HIT_BYTES, MOST_BYTES))):
            if self._method == "GET":
                response = self._client.get(self.url, params=content)
            else:
                response = self._client.post(self.url, json=content)
            response.raise_for_status()
        return response

    def _wrap_error(self, error: Exception) -> BakeoffError:
        failed = failure(error, who=self.url, secrets=[secret for secret in self._secrets if secret], hints={})
        return failed if isinstance(failed, (CallFailed, Unavailable)) else CallFailed(str(failed))


def _fill_template(template: Any, text: str, k: int) -> Any:
    """Fill in the query. A value that is only `{k}` becomes a number."""
    match template:
        case "{text}":
            return text
        case "{k}":
            return k
        case str():
            return template.replace("{k}", str(k)).replace("{text}", text)
        case Mapping():
            return {key: _fill_template(value, text, k) for key, value in template.items()}
        case list() | tuple():
            return [_fill_template(value, text, k) for value in template]
    return template


def _at(answer: Any, path: str) -> list[Any]:
    """All values at a path; `*` stands for every entry of a list."""
    values = [answer]
    for step in filter(None, path.split(".")):
        if step == "*":
            if not all(isinstance(value, list) for value in values):
                raise StoreError(f"the answer has no list at {path!r}")
            values = [entry for value in values for entry in value]
        else:
            values = [_step(value, step, path) for value in values]
    return values


def _step(value: Any, step: str, path: str) -> Any:
    if isinstance(value, Mapping) and step in value:
        return value[step]
    if isinstance(value, list) and step.isdecimal() and int(step) < len(value):
        return value[int(step)]
    raise StoreError(f"the answer has no {step!r} at {path!r}")
