"""For all tests: examples of a property, conformance failures with their figures, and servers that several use."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

# How long an example takes on a busy machine says nothing about the code. `make test` takes the smaller profile.
settings.register_profile("dev", deadline=None, max_examples=20)
settings.register_profile("thorough", deadline=None, max_examples=100)
settings.load_profile("thorough")
pytest.register_assert_rewrite("bakeoff.extensions.conformance")


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    from tests.search.store_setups import postgres_server

    with postgres_server() as url:
        yield url


@pytest.fixture(scope="session")
def chroma(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from tests.search.store_setups import chroma_server

    with chroma_server(tmp_path_factory.mktemp("chroma")) as url:
        yield url
