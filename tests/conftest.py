"""For all tests: how long an example takes on a busy machine says nothing about the code."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("bakeoff", deadline=None)
settings.load_profile("bakeoff")
pytest.register_assert_rewrite("bakeoff.search.stores.conformance")
