"""Types and bounds of what is read, before memory or money is taken."""

from __future__ import annotations

import io
import json
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bakeoff.cli.shared_options import parse_value
from bakeoff.extensions.kinds.single import read_targets
from bakeoff.extensions.kinds.snapshot import write_snapshot
from bakeoff.tasks.kinds import load_kind
from bakeoff_providers.errors import InputError

from tests.errors import refuses


@pytest.mark.parametrize("classes", [-1, 10**8, 10**30])
def test_a_count_of_classes_that_fits_nowhere(tmp_path: Path, classes: int) -> None:
    (tmp_path / "truth.jsonl").write_text('{"id": "q", "target": 0}\n')
    with pytest.raises(InputError):
        load_kind({"kind": "single", "classes": classes, "truth": "truth.jsonl"}, tmp_path).task()


@pytest.mark.parametrize(("option", "value"), [("snapshot", 0.5), ("profiles", True), ("use_best_weights", "yes")])
def test_an_option_of_another_type(tmp_path: Path, option: str, value: Any) -> None:
    options = {"snapshot": "x", "profiles": "p.json", "profile_text": "{a}", "rules": [], option: value}
    with pytest.raises(InputError) as caught:
        load_kind({"kind": "profiles", **options}, tmp_path)
    assert caught.value.place == option


def test_an_array_that_promises_more_than_its_file_holds(tmp_path: Path) -> None:
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": "<i8", "fortran_order": False, "shape": (10**12,)})
    (tmp_path / "targets.npy").write_bytes(stream.getvalue() + b"\0" * 80)
    with refuses(InputError, "unreadable", file="targets.npy"):
        read_targets(tmp_path / "targets.npy")


@pytest.mark.parametrize("values", [[1, "a"], [10**30, 1], [{}, {}]])
def test_a_snapshot_of_mixed_or_too_large_values(tmp_path: Path, values: list[Any]) -> None:
    items = [{"id": str(place), "title": "t", "description": "d", "n": value} for place, value in enumerate(values)]
    (tmp_path / "items.json").write_text(json.dumps(items))
    keys = {"id_key": "id", "title_key": "title", "text_key_": "description"}
    with refuses(InputError, "column", file="items.json"):
        write_snapshot(tmp_path / "items.json", tmp_path, date(2026, 1, 2), **keys)
    assert [path.name for path in tmp_path.iterdir()] == ["items.json"]


def test_brackets_without_end_are_text() -> None:
    assert parse_value("[" * 5000) == "[" * 5000
