"""Nothing that is printed or written holds a secret: one scrubber for messages, addresses and results."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterable
from urllib.parse import quote, urlsplit

LONGEST = 300
SHORTEST_SECRET = 6  # the "none" that is sent where no key is wanted is a word, too
SHORTEST_VALUE = 8  # of a variable: shorter ones are words of everyday texts
HIDDEN = "***"

_SECRET_VARIABLE = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|PASS|CREDENTIALS?|DSN)(?:_|$)")
_URL_VARIABLE = re.compile(r"(?:^|_)(?:URL|URI|HOST|DSN|PROXY)$", re.IGNORECASE)
_NAMES = r"(?:api|access|auth|secret|private|client)[-_]?(?:key|token|secret)|password|passwd|pwd|sslpassword"
# How the sentence goes on that is wrong with a file called passwd: words shorter than any secret, then another word.
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
    (re.compile(r"://[^\s@\"'<>]+@"), f"://{HIDDEN}@"),
    (re.compile(r"(://[^\s?#\"'<>]{1,2000}\?)[^\s#\"'<>]+"), rf"\1{HIDDEN}"),
)


def scrubbed(text: str, secrets: Iterable[str] = ()) -> str:
    """The text on one line, cut to a readable length, with every secret in it struck out."""
    text = " ".join(without_secrets(text, secrets).split())
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."


def without_secrets(text: str, secrets: Iterable[str] = ()) -> str:
    """The text with known secrets, and whatever looks like one, struck out."""
    text = without_known(text, secrets)
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return text


def without_known(text: str, secrets: Iterable[str] = ()) -> str:
    """The text without these secrets and those of the environment, plain, quoted for a URL or in base64."""
    for spelling in known_spellings(secrets):
        if spelling in text:
            text = text.replace(spelling, HIDDEN)
    return text


def known_spellings(secrets: Iterable[str] = ()) -> list[str]:
    """What must not be seen of these secrets and of those of the environment, the longest secret first."""
    known = {secret for secret in secrets if len(secret) >= SHORTEST_SECRET} | environment_secrets()
    return [spelling for secret in sorted(known, key=len, reverse=True) for spelling in _spellings(secret)]


def environment_secrets() -> set[str]:
    """Values of variables whose names say that they are secret, and the passwords in addresses among the others."""
    secrets = set()
    for name, value in os.environ.items():
        value = value.strip()
        if _SECRET_VARIABLE.search(name.upper()) and len(value) >= SHORTEST_VALUE:
            secrets.add(value)
        if _URL_VARIABLE.search(name) and (password := _password(value)) and len(password) >= SHORTEST_SECRET:
            secrets.add(password)
    return secrets


def secret_in_url(url: str) -> str | None:
    """Which part of an address may hold a secret, in words; None where none does."""
    try:
        parts = urlsplit(url if "://" in url else f"//{url}")
    except ValueError:
        return None
    if "@" in parts.netloc:
        return "a name or password before the host"
    return "a query" if parts.query else None


def shown_url(url: str) -> str:
    """The address without a name, a password or a query in it."""
    try:
        parts = urlsplit(url)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
    except ValueError:
        return HIDDEN


def _password(url: str) -> str:
    try:
        return urlsplit(url).password or ""
    except ValueError:
        return ""


def _spellings(secret: str) -> list[str]:
    """Base64 depends on what stands before: the characters that do not are the same at each of three offsets."""
    data = secret.encode(errors="surrogateescape")
    spellings = [secret, quote(secret, safe="")]
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + data).decode()
        first, last = -(-offset * 8 // 6), (offset + len(data)) * 8 // 6
        inner = encoded[first:last]
        if len(inner) >= SHORTEST_VALUE:
            spellings += [inner, inner.replace("+", "-").replace("/", "_")]
    return spellings
