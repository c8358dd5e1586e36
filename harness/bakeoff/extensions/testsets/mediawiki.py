"""Fetch articles by title through the API of any MediaWiki, such as Wikipedia."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit

import msgspec
from bakeoff_providers.answers import Expected, expecting, httpx_options
from bakeoff_providers.errors import CallFailed, EmbeddingFailed, InputError
from bakeoff_providers.failures import failure, retry_after
from bakeoff_providers.stopping import in_time

from bakeoff.calls.retry import RateLimit, RetryPolicy, call
from bakeoff.core.progress import Progress, silent
from bakeoff.extensions.testsets.document_files import with_content_type
from bakeoff.tasks.formats.native import Article

if TYPE_CHECKING:
    import httpx

TITLES = 20  # most extracts per request; only introductions can be batched
AGENT = "bakeoff (retrieval evaluation; one request at a time)"
LAG = 5  # seconds of replication lag above which the server asks to retry later
MOST_BYTES = 32 << 20  # of one response: twenty introductions, or one whole article
MOST_PARTS = 1000  # continuations of one response


class _Change(msgspec.Struct, frozen=True):
    before: str = msgspec.field(name="from")
    after: str = msgspec.field(name="to")


class _Category(msgspec.Struct, frozen=True):
    title: str


class _Page(msgspec.Struct):
    """A page as far as it was received; continuations add to it."""

    title: str
    pageid: int | None = None
    extract: str | None = None
    missing: bool = False
    invalid: bool = False
    categories: list[_Category] = []

    def add(self, other: _Page) -> None:
        """Add the content of a continuation."""
        self.pageid = self.pageid if other.pageid is None else other.pageid
        self.extract = self.extract if other.extract is None else other.extract
        self.missing, self.invalid = self.missing or other.missing, self.invalid or other.invalid
        self.categories += other.categories


class _WikiQuery(msgspec.Struct, frozen=True):
    normalized: list[_Change] = []
    redirects: list[_Change] = []
    pages: list[_Page] = []


class _Problem(msgspec.Struct, frozen=True):
    code: str = ""
    info: str = ""


class _WikiAnswer(msgspec.Struct, frozen=True):
    query: _WikiQuery = _WikiQuery()
    error: _Problem | None = None
    more: dict[str, str | int] = msgspec.field(name="continue", default_factory=dict)


@dataclass(slots=True)
class Fetched:
    """Articles, and titles without a page."""

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
    """Fetch the introductions (or whole texts) of these pages in order, following redirects."""
    import httpx

    if urlsplit(api).scheme not in ("http", "https"):
        raise InputError(f"{api!r} is not a URL", place="--api", remedy="such as https://…/w/api.php")
    wanted = list(dict.fromkeys(title.strip().replace("_", " ") for title in titles if title.strip()))
    for title in wanted:
        if "|" in title:
            raise InputError(f"{title!r} is not a title; titles have no |")
    policy, rate_limit = policy or RetryPolicy(), RateLimit()
    rate_limit.sleep = policy.sleep
    fetched, size = Fetched(), 1 if whole else TITLES
    options = httpx_options()
    options["headers"]["User-Agent"] = AGENT
    with httpx.Client(timeout=timeout, **options) as client, progress("pages", len(wanted)) as advance:

        def get(url: str) -> _WikiAnswer:
            return call(lambda: _get(client, url, timeout), policy, rate_limit)[0]

        for first in range(0, len(wanted), size):
            part = wanted[first : first + size]
            _fetch_part(part, api, whole, fetched, get)
            advance(len(part))
    return fetched


def _fetch_part(
    titles: Sequence[str], api: str, whole: bool, fetched: Fetched, get: Callable[[str], _WikiAnswer]
) -> None:
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
    pages: dict[str, _Page] = {}
    names: dict[str, str] = {}
    more: dict[str, str] = {}
    for _ in range(MOST_PARTS):
        answer = get(f"{api}{'&' if '?' in api else '?'}{urlencode(asked | more)}")
        for change in (*answer.query.normalized, *answer.query.redirects):
            names[change.before] = change.after
        for page in answer.query.pages:
            if page.title in pages:
                pages[page.title].add(page)
            else:
                pages[page.title] = page
        if not answer.more:
            break
        more = {key: str(value) for key, value in answer.more.items()}
    else:
        raise CallFailed(f"{urlsplit(api).netloc}: the answer about {titles[0]!r} never ends")
    seen = {article.document_id for article in fetched.articles}
    for title in titles:
        name = title
        for _ in range(len(names) + 1):  # a title may be normalised and then redirected
            name = names.get(name, name)
        fetched_page = pages.get(name)
        if fetched_page is None or fetched_page.missing or fetched_page.invalid or fetched_page.pageid is None:
            fetched.missing.append(title)
        elif fetched_page.pageid not in seen:
            seen.add(fetched_page.pageid)
            fetched.articles.append(_article(fetched_page, fetched_page.pageid))


def _article(page: _Page, page_id: int) -> Article:
    categories = [category.title.partition(":")[2] for category in page.categories]
    return Article(
        document_id=page_id,
        title=page.title,
        summary=(page.extract or "").strip(),
        categories=with_content_type(page.title, categories),
    )


def _get(client: httpx.Client, url: str, timeout: float) -> _WikiAnswer:
    """Send one request. MediaWiki reports errors with status 200; temporary ones have a retry time."""
    expected = Expected(MOST_BYTES, _WikiAnswer)

    def work() -> httpx.Response:
        with expecting(expected):
            return client.get(url).raise_for_status()

    try:
        response = in_time(work, timeout)
        answer: _WikiAnswer = expected.require()
    except json.JSONDecodeError:
        raise InputError("is not a MediaWiki API", file=url.partition("?")[0], remedy="check --api") from None
    except Exception as error:
        failed = failure(error, who=urlsplit(url).netloc, hints={404: "check --api"})
        raise CallFailed(str(failed)) if isinstance(failed, EmbeddingFailed) else failed from None
    if (problem := answer.error) is not None:
        raise CallFailed(
            f"the wiki answered: {problem.info or problem.code}",
            retryable=problem.code in ("maxlag", "ratelimited", "readonly"),
            retry_after=retry_after(response.headers),
        )
    return answer
