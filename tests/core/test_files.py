"""Results appear whole or not at all."""

from pathlib import Path

import pytest
from bakeoff.core.files import new_folder, write_atomic


def test_a_folder_appears_when_it_is_complete(tmp_path: Path) -> None:
    with new_folder(tmp_path / "run") as draft:
        write_atomic(draft / "a.txt", "a")
        assert not (tmp_path / "run").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
    assert (tmp_path / "run" / "a.txt").read_text() == "a"


def test_an_interrupted_folder_leaves_nothing(tmp_path: Path) -> None:
    def interrupted() -> None:
        with new_folder(tmp_path / "run") as draft:
            write_atomic(draft / "a.txt", "a")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []
