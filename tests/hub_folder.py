"""A folder as MTEB lays its retrieval sets out on the hub, for the real `datasets` library without a network."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

README = """---
configs:
- config_name: corpus
  data_files:
  - split: corpus
    path: corpus/rows.jsonl
- config_name: queries
  data_files:
  - split: queries
    path: queries/rows.jsonl
- config_name: default
  data_files:
  - split: test
    path: qrels/rows.jsonl
---
"""


def write_hub_folder(folder: Path, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Three configurations, named in the README's head; `tables` are corpus, queries and qrels."""
    for name, rows in tables.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "README.md").write_text(README)


def stay_offline(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The library asks no server and keeps its files in `cache`; skips where it is not installed."""
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", cache)
    datasets.disable_progress_bars()
