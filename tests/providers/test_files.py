"""A file is whole or absent."""

from pathlib import Path

import pytest
from bakeoff_providers.files import replacing


def test_an_interrupted_write_never_gets_the_name(tmp_path: Path) -> None:
    target = tmp_path / "graph.onnx"

    def interrupted() -> None:
        with replacing(target) as part:
            part.write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []


def test_a_finished_write_replaces_the_file(tmp_path: Path) -> None:
    target = tmp_path / "new" / "graph.onnx"
    for content in (b"first", b"second"):
        with replacing(target) as part:
            part.write_bytes(content)
        assert target.read_bytes() == content
    assert list(target.parent.iterdir()) == [target]
