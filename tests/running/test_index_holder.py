"""An index in a worker of Ray: workers end by force, so what they write must be collected by somebody else."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bakeoff.embedding.vector_rows import VectorRows
from bakeoff.extensions.ray.workers import IndexHolder
from bakeoff.search.stores.scratch import LOCK


class Rows:
    """Four vectors, at right angles."""

    def take(self, places: Any) -> Any:
        return np.eye(4, dtype=np.float32)[places]


def test_its_folder_is_one_that_the_next_run_collects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    rows = VectorRows(Rows(), np.arange(4), (), 4)
    holder = IndexHolder(4, {}, ["a", "b", "c", "d"], rows, None, "")
    (folder,) = tmp_path.glob("bakeoff-*")
    assert (folder / LOCK).exists()
    assert list(holder.call("search", np.eye(4, dtype=np.float32)[2], 1).ids) == ["c"]
    del holder
    gc.collect()
    assert not list(tmp_path.glob("bakeoff-*"))
