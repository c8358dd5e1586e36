"""Titles → articles, through the API of any MediaWiki, such as Wikipedia."""

from __future__ import annotations

import urllib.parse
import urllib.request
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
from bakeoff_providers.errors import BakeoffError, CallFailed, InputError
from bakeoff_providers.failures import failure

from bakeoff.core.progress import Progress, silent
from bakeoff.embedding.retry import RateLimit, RetryPolicy, call
from bakeoff.tasks.formats.native import Article
from bakeoff.testsets.content_types import with_content_type

TITLES = 20  # the most extracts that one request may ask for, and only introductions come in numbers
AGENT = "bakeoff (retrieval evaluation; one request at a time)"
LAG = 5  # seconds a replica may be behind before the server asks us to come back later


@dataclass(slots=True)
class Fetched:
    """The articles, and the titles that have no page."""

    articles: list[Article] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


def fetch(
    titles: Sequence[str],
    api: str,
    *,
    whole: bool = False,
    policy: RetryPolicy | None = None,
    timeout: float = 30.0,
    progress: Progress = silent,
) -> Fetched:
    """The introductions (or the whole texts) of these pages, redirects followed, in the order of the titles."""
    if urllib.parse.urlsplit(api).scheme not in ("http", "https"):
        raise InputError(f"{api!r} is no address", place="--api", remedy="such as https://…/w/api.php")
    wanted = list(dict.fromkeys(title.strip().replace("_", " ") for title in titles if title.strip()))
    for title in wanted:
        if "|" in title:
            raise InputError(f"{title!r} is no title: it has a bar in it")
    policy, rate_limit = policy or RetryPolicy(), RateLimit()
    rate_limit.sleep = policy.sleep
    fetched, size = Fetched(), 1 if whole else TITLES
    with progress("pages", len(wanted)) as advance:
        for first in range(0, len(wanted), size):
            part = wanted[first : first + size]
            _fetch_part(part, api, whole, fetched, lambda url: call(lambda: _get(url, timeout), policy, rate_limit)[0])
            advance(len(part))
    return fetched


def _fetch_part(titles: Sequence[str], api: str, whole: bool, fetched: Fetched, get: Any) -> None:
    asked: dict[str, str] = {
        "action": "query",
        "prop": "extracts|categories",
        "explaintext": "1",
        "exlimit": str(len(titles)),
        "clshow": "!hidden",
        "cllimit": "max",
        "redirects": "1",
        "titles": "|".join(titles),
        "format": "json",
        "formatversion": "2",
        "maxlag": str(LAG),
    }
    if not whole:
        asked["exintro"] = "1"
    pages: dict[str, dict[str, Any]] = {}
    names: dict[str, str] = {}
    more: dict[str, str] = {}
    while True:
        answer = get(f"{api}{'&' if '?' in api else '?'}{urllib.parse.urlencode(asked | more)}")
        query = answer.get("query") or {}
        for change in (*query.get("normalized", ()), *query.get("redirects", ())):
            names[change["from"]] = change["to"]
        for page in query.get("pages", ()):
            kept = pages.setdefault(page["title"], {"categories": []})
            kept["categories"] += [entry["title"].partition(":")[2] for entry in page.get("categories", ())]
            kept.update({key: value for key, value in page.items() if key != "categories"})
        if not answer.get("continue"):
            break
        more = {key: str(value) for key, value in answer["continue"].items()}
    seen = {article.page_id for article in fetched.articles}
    for title in titles:
        name = title
        for _ in range(len(names) + 1):  # a title may be normalised and then redirected
            name = names.get(name, name)
        page = pages.get(name, {})
        if page.get("missing") or page.get("invalid") or "pageid" not in page:
            fetched.missing.append(title)
        elif page["pageid"] not in seen:
            seen.add(page["pageid"])
            fetched.articles.append(_article(page))


def _article(page: dict[str, Any]) -> Article:
    return Article(
        page_id=int(page["pageid"]),
        title=str(page["title"]),
        summary=str(page.get("extract") or "").strip(),
        categories=with_content_type(page["title"], page["categories"]),
    )


def _get(url: str, timeout: float) -> dict[str, Any]:
    """One request. MediaWiki reports errors with status 200; temporary ones come with a time to wait."""
    request = urllib.request.Request(url, headers={"User-Agent": AGENT})
    try:
        with urllib.request.urlopen(request, timeout=timeout) as response:
            answer = msgspec.json.decode(response.read(), type=dict[str, Any])
            headers = response.headers
    except msgspec.DecodeError:
        raise InputError("does not speak MediaWiki's API", file=url.partition("?")[0], remedy="check --api") from None
    except Exception as error:
        raise _failure(error, url) from None
    if problem := answer.get("error"):
        passing = problem.get("code") in ("maxlag", "ratelimited", "readonly")
        wait = headers.get("Retry-After", "")
        raise CallFailed(
            f"the wiki answered: {problem.get('info') or problem.get('code')}",
            retryable=passing,
            retry_after=float(wait) if wait.isdigit() else None,
        )
    return answer


def _failure(error: Exception, url: str) -> BakeoffError:
    return failure(error, who=urllib.parse.urlsplit(url).netloc, hints={404: "check --api"})
