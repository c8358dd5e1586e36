"""For all tests: how many examples a property gets, and conformance failures with their figures."""

from __future__ import annotations

import pytest
from hypothesis import settings

# How long an example takes on a busy machine says nothing about the code. `make test` takes the smaller profile.
settings.register_profile("dev", deadline=None, max_examples=20)
settings.register_profile("thorough", deadline=None, max_examples=100)
settings.load_profile("thorough")
pytest.register_assert_rewrite("bakeoff.search.stores.conformance")
