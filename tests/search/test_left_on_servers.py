"""What a killed run has made on a server, real ones here, is dropped by the next run, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import chromadb
import psycopg
import pytest
from bakeoff.search.stores import STORES
from bakeoff.search.stores.scratch import NOTE, collect, scratch
from bakeoff.search.stores.servers import drop_left

from tests.search.store_setups import chroma_server

KILLED = """
import os, signal, sys
import numpy as np
from bakeoff.search.stores import STORES
from bakeoff.search.stores.scratch import scratch

with scratch() as folder:
    options = dict(part.split("=", 1) for part in sys.argv[2:])
    (folder / "0").mkdir()
    store = STORES.create(sys.argv[1], dimensions=4, folder=folder / "0", **options)
    store.add(["a", "b"], np.eye(4, dtype=np.float32)[:2])
    (folder / "0" / "large").write_bytes(bytes(1000))
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def _killed(tmp_path: Path, *arguments: str, **variables: str) -> Path:
    done = subprocess.run(
        [sys.executable, "-c", KILLED, *arguments],
        env={**os.environ, "TMPDIR": str(tmp_path), **variables},
        check=False,
    )
    assert done.returncode == -9
    (folder,) = tmp_path.glob("bakeoff-run-*")
    return folder


def _tables(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("select tablename from pg_tables where tablename like 'bakeoff_%' order by 1")
        return [str(row[0]) for row in rows.fetchall()]


def test_a_table_of_a_killed_run_is_dropped_by_the_next_that_knows_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres: str
) -> None:
    before = _tables(postgres)  # the server's own, which stands for those of other people
    monkeypatch.delenv("PGVECTOR_URL", raising=False)
    folder = _killed(tmp_path, "pgvector", PGVECTOR_URL=postgres)
    assert len(_tables(postgres)) == len(before) + 1
    note = (folder / "0" / NOTE).read_text()
    assert '"PGVECTOR_URL"' in note
    assert "host=" not in note  # neither the query of the address nor what a password would be in
    assert collect() == []  # nobody says where the server is: the note stays, and nothing else does
    assert sorted(path.name for path in folder.rglob("*")) == [".in-use", "0", NOTE]
    monkeypatch.setenv("PGVECTOR_URL", "postgresql://127.0.0.1:9/elsewhere")
    assert collect() == []
    assert len(_tables(postgres)) == len(before) + 1
    monkeypatch.setenv("PGVECTOR_URL", postgres)
    with scratch():
        assert not folder.exists()
    assert _tables(postgres) == before
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_ends_well_leaves_no_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres: str) -> None:
    monkeypatch.setenv("PGVECTOR_URL", postgres)
    before = _tables(postgres)
    with scratch() as folder:
        store = STORES.create("pgvector", dimensions=4, folder=folder / "0")
        assert (folder / "0" / NOTE).is_file()
        code = (
            f"import tempfile; tempfile.tempdir = {str(tmp_path)!r}; from bakeoff.search.stores import STORES, scratch"
        )
        subprocess.run([sys.executable, "-c", f"{code}; assert scratch.collect() == []"], check=True)
        assert len(_tables(postgres)) == len(before) + 1  # that of a process that lives
        store.discard()
        assert not (folder / "0" / NOTE).exists()
    assert _tables(postgres) == before
    assert list(tmp_path.iterdir()) == []


def test_a_collection_whose_server_a_line_up_names(tmp_path: Path) -> None:
    home = tmp_path / "server"
    with chroma_server(home) as url:
        client: Any = chromadb.HttpClient(host="127.0.0.1", port=int(url.rpartition(":")[2]))
        client.create_collection("of_others")
        folder = _killed(tmp_path, "chroma", f"url={url}")
        assert len(client.list_collections()) == 2
        assert collect() == [folder]
        assert [collection.name for collection in client.list_collections()] == ["of_others"]
        folder = _killed(tmp_path, "chroma", f"url={url}")
    assert collect() == []  # the server is gone, and may come back
    assert (folder / "0" / NOTE).is_file()
    os.utime(folder / "0" / NOTE, (1, 1))
    assert collect() == [folder]


def test_a_note_of_another_user_or_without_sense_is_not_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres: str
) -> None:
    folder = _killed(tmp_path, "pgvector", PGVECTOR_URL=postgres)
    monkeypatch.setenv("PGVECTOR_URL", postgres)
    before = _tables(postgres)
    with monkeypatch.context() as patched:
        patched.setattr(os, "getuid", lambda: folder.stat().st_uid + 1)
        assert collect() == []
    assert _tables(postgres) == before
    wrong = tmp_path / NOTE
    wrong.write_text('{"store": 5}')
    drop_left(wrong)
    assert not wrong.exists()
    assert collect() == [folder]
