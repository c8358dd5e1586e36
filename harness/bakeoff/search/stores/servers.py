"""What adapters of servers share: whose processes they are, names that do not collide, and no secrets in a line-up."""

from __future__ import annotations

import hashlib
import ipaddress
import os
import socket
import uuid
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from bakeoff_providers.errors import InputError
from bakeoff_providers.secrets import passwords_in

CONNECT = 30  # seconds until a server has taken a connection
ANSWER = 120  # seconds for one answer of a server
SCAN = 3600  # seconds for a statement that may read all of a table that exists


def collection_name(folder: Path) -> str:
    """A name on a shared server that belongs to this folder alone, and is found again from it."""
    return "bakeoff_" + hashlib.blake2b(str(folder.resolve()).encode(), digest_size=8).hexdigest()


def server_url(url: str, variable: str) -> str:
    """The address from the line-up or the environment. The line-up is copied into results: no password in it."""
    if passwords_in(url):
        raise InputError("the URL of a store holds a password", remedy=f"put it into the environment as {variable}")
    return url or os.environ.get(variable, "")


def key(item: str) -> uuid.UUID:
    """A key made from an id, for engines that give signs in keys a meaning of their own, or take no long ones."""
    return uuid.uuid5(uuid.NAMESPACE_URL, item)


def marks(conditions: Sequence[str]) -> list[str]:
    """Tokens of a filter as letters and digits, for engines that take texts apart or read signs as operators."""
    return [hashlib.blake2b(condition.encode(), digest_size=12).hexdigest() for condition in conditions]


def listeners(url: str) -> list[int]:
    """The processes on this machine that listen on the URL's port, with their children; none if it is elsewhere."""
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
