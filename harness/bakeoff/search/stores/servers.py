"""What server adapters share: processes, collection names, and no secrets in a line-up.

A run notes in its folder what it creates on a server. After a kill, the next run drops it.
"""

from __future__ import annotations

import contextlib
import hashlib
import ipaddress
import os
import socket
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import msgspec
from bakeoff_providers import stopping
from bakeoff_providers.errors import BakeoffError, InputError
from bakeoff_providers.secrets import passwords_in, redact_url, secret_in_url, without_secrets

from bakeoff.core.files import read_json, write_json
from bakeoff.search.stores import STORES
from bakeoff.search.stores.scratch import NOTE

CONNECT = 30  # seconds to connect
ANSWER = 120  # seconds per request
SCAN = 3600  # seconds for a statement that may scan an existing table


def collection_name(folder: Path) -> str:
    """A collection name derived from this folder."""
    return "bakeoff_" + hashlib.blake2b(str(folder.resolve()).encode(), digest_size=8).hexdigest()


def server_url(url: str, variable: str) -> str:
    """The address from the line-up or the environment. Passwords are refused, as results hold the line-up."""
    if passwords_in(url):
        raise InputError("the URL of a store holds a password", remedy=f"put it into the environment as {variable}")
    return url or os.environ.get(variable, "")


def key(item: str) -> uuid.UUID:
    """A key from an id, for engines with reserved characters or short keys."""
    return uuid.uuid5(uuid.NAMESPACE_URL, item)


def marks(conditions: Sequence[str]) -> list[str]:
    """Filter tokens as letters and digits, for engines that tokenise or have operators."""
    return [hashlib.blake2b(condition.encode(), digest_size=12).hexdigest() for condition in conditions]


def listeners(url: str) -> list[int]:
    """Local processes that listen on the URL's port, with their children."""
    import psutil

    parts = urlsplit(url)
    if not parts.port or not _local(parts.hostname or ""):
        return []
    pids = [
        connection.pid
        for connection in psutil.net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN and connection.laddr.port == parts.port and connection.pid
    ]
    return family(pids[0]) if pids else []


def family(pid: int) -> list[int]:
    """A process and everything that it started."""
    import psutil

    process = psutil.Process(pid)
    return [pid, *(child.pid for child in process.children(recursive=True))]


def _local(host: str) -> bool:
    try:
        return ipaddress.ip_address(socket.gethostbyname(host)).is_loopback
    except (OSError, ValueError):
        return False


GIVEN_UP = 30 * 86_400.0  # seconds after which a note is dropped
PATIENCE = 10.0  # seconds to drop leftovers
CONNECTING = 1.0  # seconds to connect for that
PORTS = {"postgresql": 5432, "postgres": 5432, "http": 80, "https": 443, "redis": 6379, "rediss": 6379}


class ServerNote(msgspec.Struct, frozen=True, kw_only=True):
    """A store and how to reach its server again, by options or a variable. Holds no secret."""

    store: str
    variable: str
    server: str
    options: dict[str, str] = {}


def note_made(folder: Path, store: str, address: str, variable: str, **options: str) -> None:
    """Note a collection before creating it. `options` reopen the store, apart from its address."""
    by_variable = os.environ.get(variable, "") == address or secret_in_url(address) or "password" in address.lower()
    if not by_variable:
        options["url"] = address
    write_json(
        folder / NOTE, ServerNote(store=store, variable=variable, server=_format_address(address), options=options)
    )


def note_dropped(folder: Path) -> None:
    """Remove the note of a dropped collection."""
    (folder / NOTE).unlink(missing_ok=True)


def drop_left(note: Path) -> None:
    """Drop the collection that a dead run noted. The note stays while its server is unreachable.

    The collection's name is derived from the note's folder, so a note can't name anything else. Only this user's notes
    count.
    """
    if hasattr(os, "getuid") and note.stat().st_uid != os.getuid():
        return
    try:
        left = read_json(note, ServerNote)
    except BakeoffError:
        note.unlink(missing_ok=True)
        return
    if time.time() - note.stat().st_mtime > GIVEN_UP:
        note.unlink(missing_ok=True)
        return
    address = left.options.get("url") or os.environ.get(left.variable, "")
    if address and not stopping.is_stopped() and _format_address(address) == left.server and _answers(address):
        with contextlib.suppress(Exception):  # whatever a client raises: the next run tries again
            stopping.in_time(lambda: _drop(left, note.parent), PATIENCE)


def _drop(left: ServerNote, folder: Path) -> None:
    STORES.create(left.store, dimensions=1, folder=folder, **left.options).discard()


def _answers(address: str) -> bool:
    """Whether the address accepts connections; True if it has no host."""
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return False
    if not host or not port:
        return True
    try:
        socket.create_connection((host, port), CONNECTING).close()
    except OSError:
        return False
    return True


def _format_address(address: str) -> str:
    return without_secrets(redact_url(address))
