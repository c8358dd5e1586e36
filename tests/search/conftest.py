"""Servers that several modules use: each starts with the first test that needs it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.search.store_setups import chroma_server, postgres_server


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    with postgres_server() as url:
        yield url


@pytest.fixture(scope="session")
def chroma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with chroma_server(tmp_path_factory.mktemp("chroma")) as url:
        yield url
