"""CONTRIBUTING's guide to a store: what it shows passes the suite that it names, and is as short as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bakeoff.extensions.conformance.stores import OpenStore, StoreConformance
from bakeoff_providers.code import load_from_file

from tests.registries import ROOT

FILE = "harness/bakeoff/extensions/stores/kd_tree.py"
GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").partition("## Add a store in 60 lines\n")[2]
CODE = re.findall(rf"^`{re.escape(FILE)}`:\n\n```python\n(.*?)^```", GUIDE, flags=re.MULTILINE | re.DOTALL)[0]


def test_it_is_as_short_as_it_says() -> None:
    assert len([line for line in CODE.splitlines() if line.strip()]) <= 60


@pytest.mark.parametrize("path", sorted(set(re.findall(r"[\w/]+/[\w/]+\.(?:py|md|toml)", GUIDE)) - {FILE}))
def test_the_files_that_it_names_exist(path: str) -> None:
    assert (ROOT / path).is_file() or (ROOT / "harness/bakeoff" / path).is_file()


class TestKdTree(StoreConformance):
    @pytest.fixture(scope="class")
    @classmethod
    def open_store(cls, tmp_path_factory: pytest.TempPathFactory) -> OpenStore:
        file = tmp_path_factory.mktemp("guide") / "kd_tree.py"
        Path(file).write_text(CODE, encoding="utf-8")
        store = load_from_file(file, "KdTree")
        return lambda folder, dimensions: store(dimensions=dimensions, folder=folder)
