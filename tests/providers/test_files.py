"""A file is whole or absent."""

import errno
import fcntl
import subprocess
import sys
from pathlib import Path

import pytest
from bakeoff.core.files import write_folder
from bakeoff.search.stores.scratch import scratch
from bakeoff_providers import files
from bakeoff_providers.files import remove_drafts, replacing


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


WRITER = """
import os, sys, time
from pathlib import Path
from bakeoff.core.files import write_folder
from bakeoff_providers.files import replacing

def fill(draft):
    (draft / "half").write_text("x")
    with replacing(Path(sys.argv[1]) / "a.json") as part:
        part.write_text("half")
        print("ready", flush=True)
        time.sleep(60)

write_folder(Path(sys.argv[1]) / "results" / "run", fill)
"""


def _looks_again() -> None:
    files._looked_at.clear()  # as another process does


def test_what_a_killed_writer_left_goes_and_what_a_living_one_writes_stays(tmp_path: Path) -> None:
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    foreign = tmp_path / ".theirs.0123abcd.part"
    foreign.touch()
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "ready\n"
        _looks_again()
        remove_drafts(tmp_path, below=2)
        with replacing(tmp_path / "b.json") as part:
            part.write_text("whole")
        drafts = [path for path in tmp_path.rglob(".*") if path != foreign]
        assert sorted(path.name.split(".")[1] for path in drafts) == ["a", "run"]
    finally:
        writer.kill()
        writer.communicate()
    _looks_again()
    with replacing(tmp_path / "b.json") as part:
        part.write_text("whole")
    write_folder(tmp_path / "results" / "run", lambda draft: None)
    assert sorted(path.name for path in tmp_path.rglob("*")) == [foreign.name, "b.json", "results", "run"]


def test_drafts_in_the_home_go_with_the_next_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path))
    left = tmp_path / "vectors" / "space" / ".identity.json.0123abcd.bakeoff-part"
    left.parent.mkdir(parents=True)
    left.touch()
    _looks_again()
    with scratch():
        assert not left.exists()


def test_drafts_stay_where_there_are_no_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    monkeypatch.setattr(fcntl, "flock", refused)
    left = tmp_path / ".a.json.0123abcd.bakeoff-part"
    left.touch()
    with replacing(tmp_path / "a.json") as part:
        part.write_text("whole")
    assert (tmp_path / "a.json").read_text() == "whole"
    assert left.exists()
