"""ClickHouse in this process. It allows one data folder per process: all stores share an engine in a scratch folder.

Each store keeps its table on a disk of its own, which is the store's folder, so that another process can open it.
"""

from __future__ import annotations

import contextlib
import threading
import uuid
from pathlib import Path
from typing import Any

import msgspec

from bakeoff.search.stores.scratch import scratch

# ClickHouse allows disks anywhere below this folder; queries grow with the vector and with the ids that they name.
CONFIG = """<clickhouse>
<custom_local_disks_base_directory>/</custom_local_disks_base_directory>
<logger><console>false</console><level>none</level></logger>
</clickhouse>
"""
LONGEST_QUERY = 2**26
PATCHES = "enable_block_number_column = 1, enable_block_offset_column = 1"  # a delete writes what it hides, no masks

_lock = threading.Lock()
_users = 0
_open = contextlib.ExitStack()
_connection: Any = None


class Table:
    """A table in a folder: made there, or attached where the folder holds one. The engine ends with its last table."""

    def __init__(self, folder: Path, definition: str) -> None:
        _enter()
        self.name = "t" + uuid.uuid4().hex
        try:
            disk = quoted(f"{folder.resolve()}/")
            known = next(folder.glob("store/*/*-*"), None)
            how, number = ("attach", known.name) if known else ("create", str(uuid.uuid4()))
            self.run(
                f"{how} table {self.name} uuid '{number}' {definition}"
                f" settings disk = disk(type = 'local', path = {disk}), old_parts_lifetime = 1, {PATCHES}"
            )
        except BaseException:
            _leave()
            raise

    def run(self, statement: str) -> None:
        """A statement without an answer."""
        _connection.query(statement)

    def columns(self, statement: str, count: int) -> list[list[Any]]:
        """The answer to a query for so many columns, column by column."""
        answer = _connection.query(statement, "JSONCompactColumns").bytes()
        columns: list[list[Any]] = msgspec.json.decode(answer)
        return columns or [[]] * count

    def insert(self, rows: Any, settings: str) -> None:
        """An Arrow table whose columns have the names of this one's."""
        names = ", ".join(rows.column_names)
        _connection.query(f"insert into {self.name} ({names}) select {names} from Python(rows) settings {settings}")

    def close(self) -> None:
        """Lets go of the folder, once; what was inserted is in it."""
        if self.name:
            self.run(f"detach table {self.name} sync")
            self.name = ""
            _leave()


def quoted(text: str) -> str:
    """A text in a statement."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\0", "\\0") + "'"


def array(texts: list[str]) -> str:
    """Texts in a statement."""
    return f"[{', '.join(map(quoted, texts))}]"


def _enter() -> None:
    global _users, _connection
    with _lock:
        if not _users:
            import chdb

            with contextlib.ExitStack() as opened:
                folder = opened.enter_context(scratch("clickhouse"))
                config = folder / "config.xml"
                config.write_text(CONFIG)
                _connection = chdb.connect(f"{folder / 'data'}?config-file={config}")
                opened.callback(_connection.close)
                _connection.query(f"set max_query_size = {LONGEST_QUERY}")
                _open.push(opened.pop_all())
        _users += 1


def _leave() -> None:
    global _users
    with _lock:
        _users -= 1
        if not _users:
            _open.close()
