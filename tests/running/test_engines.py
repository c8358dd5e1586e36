"""Which engine a run has: the line-up's, with what the command line says instead."""

from __future__ import annotations

from pathlib import Path

import pytest
from bakeoff.lineup.entries import EngineEntry
from bakeoff.running.engines import engine_entry, with_shared_cache
from bakeoff.running.settings import Settings
from bakeoff_providers.errors import InputError

from tests.errors import refuses


def test_the_command_line_comes_before_the_lineup() -> None:
    written = EngineEntry(name="ray", workers=3, address="auto", shards="s3://bucket/run")
    assert engine_entry(written, None, None) == written
    assert engine_entry(written, "ray", "ray://head:10001").address == "ray://head:10001"


@pytest.mark.parametrize(
    ("entry", "name", "address", "problem"),
    [
        (EngineEntry(), None, "auto", "--address"),
        (EngineEntry(name="ray", shards="s3://bucket/run"), "local", None, "shards"),
        (EngineEntry(), "rya", None, "rya"),
    ],
)
def test_what_an_engine_does_not_have_is_refused(
    entry: EngineEntry, name: str | None, address: str | None, problem: str
) -> None:
    with refuses(InputError, problem):
        engine_entry(entry, name, address)


def test_vectors_are_where_all_nodes_see_them(tmp_path: Path) -> None:
    plain = Settings(cache=tmp_path / "cache")
    assert with_shared_cache(plain, EngineEntry()) == plain
    assert with_shared_cache(plain, EngineEntry(shards=str(tmp_path / "nfs"))).cache == tmp_path / "nfs"
    assert with_shared_cache(Settings(), EngineEntry(shards=f"file://{tmp_path}/a%20b")).cache == tmp_path / "a b"
