"""Scrubbing: nothing printed or written holds a secret."""

from __future__ import annotations

import base64
import json
import os
import re
from collections.abc import Iterable
from functools import lru_cache
from urllib.parse import SplitResult, quote, quote_plus, unquote, urlsplit

LONGEST = 300
_PERCENT = re.compile("%[0-9A-F]{2}")
SHORTEST_SECRET = 6  # the "none" sent without a key is shorter
SHORTEST_VALUE = 8  # shorter values of variables are everyday words
HIDDEN = "***"
_used: set[str] = set()

_SECRET_VARIABLE = re.compile(  # neither MONKEY nor BYPASS, nor PWD, which is the folder
    r"(?:^|_|API|ACCESS|AUTH|PRIVATE|SECRET)KEY(?:_|$)|(?:^|_)PASS(?:_|$)|_PWD$"
    r"|(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?|DSN)(?:_|$)"
)
_URL_VARIABLE = re.compile(r"(?:URL|URI|DSN|PROXY|CONNECTION_STRING|(?:^|_)HOST)$", re.IGNORECASE)
_NAMES = r"(?:api|access|auth|secret|private|client)[-_]?(?:key|token|secret)|password|passwd|pwd|sslpassword"
# Parameters of a query or DSN. sslkey and passfile are paths, so they are not listed.
_PARAMETER = re.compile(
    r"(?i)(?:^|[\s?&;])(?:\w*passw(?:or)?d|passphrase|pwd|(?:[\w-]*[-_])?(?:key|token|secret|sig)|apikey)"
    r"\s*=\s*('[^']*'|[^\s&;']+)"
)
# Between a name and a host, if the scheme is missing or broken: up to the next @, and up to the last.
_BEFORE_HOST = (re.compile(r":(?!/)([^:@\s]+)@"), re.compile(r"^(?:[\w+.-]+:/+)?[^:/@\s]*:(?!/)(\S+)@"))
# The rest of a sentence about a file called passwd: words shorter than any secret, then another word.
_PROSE = r"(?-i:\s+(?:(?:no|not|is|are|was|has|does|must|needs|can't|two|the|there|it|line) [\w'\"(]))"
_PATTERNS = (
    (re.compile(r"(?i)\b((?:bearer|basic)\s+)[\w.~+/=-]{6,}"), rf"\1{HIDDEN}"),
    (
        re.compile(
            rf"(?i)\b((?:{_NAMES})(?:[\"']\s*[=:]|\s*=|\s*:(?!{_PROSE}))\s*)"
            r"(\"[^\"]*\"|'[^']*'|[^\s\"'&,;})]+)"
        ),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"\b(?:sk|pa|al|co)-(?=[\w*-]*[\d*])[\w*-]{8,}|\bAIza[\w-]{10,}"), HIDDEN),
    (re.compile(r"://(?:[^\s\"'<>/?#]{1,500}@|[^\s@\"'<>]{1,500}@)"), f"://{HIDDEN}@"),
    # Without a scheme, as database clients quote it: name:password@host, but not provider:model@256 or mailto.
    (
        re.compile(
            r"(?<![\w./+%~-])((?!mailto:)[\w.+%~-]+:)(?![/\\])[^\s@\"'<>:/]{3,}@(?=[A-Za-z\[]|\d+\.\d)", re.IGNORECASE
        ),
        rf"\1{HIDDEN}@",
    ),
    (re.compile(r"(://[^\s?#\"'<>]{1,2000}\?)[^\s#\"'<>]+"), rf"\1{HIDDEN}"),
)


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """The text on one line, shortened, without secrets."""
    text = " ".join(without_secrets(text, secrets).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def without_secrets(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without known secrets or anything that looks like one."""
    text = without_known(text, secrets)
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return text


def without_known(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without these secrets and the environment's: plain, escaped, URL-quoted or in base64."""
    for spelling in collect_spellings(secrets):
        if spelling in text:
            text = text.replace(spelling, HIDDEN)
    return text


def collect_spellings(secrets: Iterable[str] = ()) -> list[str]:
    """All spellings of these secrets and the environment's, longest secret first."""
    known = {secret for secret in (*secrets, *_used) if len(secret) >= SHORTEST_SECRET} | environment_secrets()
    return [spelling for secret in sorted(known, key=len, reverse=True) for spelling in _spellings(secret)]


def remember(secret: str) -> None:
    """Registers a value that a line-up names as `${NAME}`, to be scrubbed from now on."""
    _used.add(secret)


def is_secret_variable(name: str) -> bool:
    """Whether a variable's name marks its value as secret."""
    return _SECRET_VARIABLE.search(name.upper()) is not None


def environment_secrets() -> set[str]:
    """The values of secret variables, and the passwords in other variables' addresses."""
    secrets = set()
    for name, value in os.environ.items():
        value = value.strip()
        if is_secret_variable(name) and len(value) >= SHORTEST_VALUE:
            secrets.add(value)
        if _URL_VARIABLE.search(name):
            secrets |= {password for password in passwords_in(value) if len(password) >= SHORTEST_SECRET}
    return secrets


def passwords_in(address: str) -> set[str]:
    """The passwords, keys and tokens in an address, raw and decoded.

    Malformed addresses are parsed as well as possible; the caller reports the error.
    """
    values = {value.strip("'") for value in _PARAMETER.findall(address)}
    parts = _parts(address)
    if parts is None:
        between = {value for pattern in _BEFORE_HOST for value in pattern.findall(address)}
        values |= between | {
            value.partition("/")[0] for value in between
        }  # a client takes what is before it for a port
    elif parts.password is not None:
        values.add(parts.password)
    elif parts.username and parts.scheme in ("http", "https"):  # a database's user is no secret, a token is
        values.add(parts.username)
    return {spelling for value in values if value for spelling in (value, unquote(value))}


def secret_in_url(url: str) -> str | None:
    """Names the part of an address that may hold a secret; None if none does."""
    before_host = "a name or password before the host"
    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
    except ValueError:
        return before_host if "@" in url else "a query" if "?" in url else None
    if "@" in parts.netloc:
        return before_host
    if parts.query:
        return "a query"
    return "a password" if passwords_in(url) else None


def redact_url(url: str) -> str:
    """The address without user, password and query."""
    scheme = "" if "://" in url else "//"
    try:
        parts = urlsplit(scheme + url)
        shown = parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    except ValueError:
        return HIDDEN
    return HIDDEN if passwords_in(shown) else shown.removeprefix(scheme)


def _parts(address: str) -> SplitResult | None:
    """The parts of an address, even if it is malformed."""
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:  # what follows the colon is no port, or a bracket is open
        return None
    return parts if "://" in address else None


@lru_cache(maxsize=256)
def _spellings(secret: str) -> tuple[str, ...]:
    """The secret and its quoted forms in errors, logs and addresses, longest first; also line by line."""
    data = secret.encode(errors="surrogateescape")
    quoted = [quote(secret, safe="", errors="surrogateescape"), quote(secret, errors="surrogateescape")]
    quoted.append(quote_plus(secret, errors="surrogateescape"))
    spellings = [secret, *quoted, *(_PERCENT.sub(lambda found: found[0].lower(), text) for text in quoted)]
    spellings += [repr(secret)[1:-1], repr(data)[2:-1], json.dumps(secret)[1:-1], *_base64(data)]
    spellings += [json.dumps(secret, ensure_ascii=False)[1:-1]]
    spellings += [line for line in map(str.strip, secret.splitlines()) if len(line) >= SHORTEST_SECRET]
    return tuple(sorted(dict.fromkeys(spellings), key=len, reverse=True))


def _base64(data: bytes) -> list[str]:
    """Base64 depends on the offset: the characters that don't, at each of three offsets."""
    spellings = []
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + data).decode()
        first, last = -(-offset * 8 // 6), (offset + len(data)) * 8 // 6
        inner = encoded[first:last]
        if len(inner) >= SHORTEST_VALUE:
            spellings += [inner, inner.replace("+", "-").replace("/", "_")]
    return spellings
