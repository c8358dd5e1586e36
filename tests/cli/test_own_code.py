"""Own code that changes its process costs its row, or nothing: the command goes on where it was, and it ends."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from bakeoff.calls.locks import SOON, Claims
from bakeoff.core.facts import Fact
from bakeoff.core.progress import showing, silent
from bakeoff.report.words import failure_words
from bakeoff.results.schema import find, read_summary
from bakeoff_providers.errors import Unavailable

from tests.native_task import native_files, write_lineup

ROOT = Path(__file__).parents[2]
OWN = """
import os, threading, time
def moves(text, k):
    os.chdir("/")
    return ["1"]
def interrupts(text, k):
    raise KeyboardInterrupt
def closes(text, k):
    raise GeneratorExit
def leaves(text, k):
    if threading.active_count() < 9:
        threading.Thread(target=time.sleep, args=(600,)).start()
    return ["1"]
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("own", "lost"), [("moves", ""), ("leaves", ""), ("interrupts", "KeyboardInterrupt"), ("closes", "GeneratorExit")]
)
def test_own_code_does_not_take_the_run_with_it(tmp_path: Path, own: str, lost: str) -> None:
    rows = f'[[contender]]\nlabel = "own"\nretriever = "file:own.py:{own}"\n[[contender]]\nranker = "bm25"\n'
    write_lineup(tmp_path, native_files(), head="rounds = 1", task='name = "own"', contenders=rows, name="line")
    (tmp_path / "own.py").write_text(OWN)
    variables = os.environ | {"PYTHONPATH": f"{ROOT / 'harness'}:{ROOT / 'providers'}"}
    command = [sys.executable, "-m", "bakeoff", "run", "line.toml", "--no-charts"]
    done = subprocess.run(
        command, cwd=tmp_path, env=variables, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 0, done.stderr
    (folder,) = find(tmp_path / "results")
    reasons = {row.label: failure_words(row.not_run) for row in read_summary(folder).rows if row.not_run}
    assert {label: reason.rstrip(": ") for label, reason in reasons.items()} == ({"own": lost} if lost else {})


HOLDER = """
import sys, time
from pathlib import Path
import numpy as np
from bakeoff.calls.locks import Claims
claims = Claims(Path(sys.argv[1]))
claims.take(np.array([[7, 7]], dtype=np.uint64))
print("held", flush=True)
time.sleep(600)
"""


@pytest.mark.slow
def test_who_waits_for_another_process_names_it_and_gives_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, told = tmp_path / "claims", list[Fact]()
    variables = os.environ | {"PYTHONPATH": f"{ROOT / 'harness'}:{ROOT / 'providers'}"}
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(file)], env=variables, stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        monkeypatch.setattr("bakeoff.calls.locks.SOON", 0.0)
        monkeypatch.setattr("bakeoff.calls.locks.LIMIT", 0.3)
        start = time.monotonic()
        with showing(silent, told.append), pytest.raises(Unavailable, match=str(holder.pid)):
            Claims(file).wait(np.array([[7, 7]], dtype=np.uint64))
        assert time.monotonic() - start >= 0.3
        assert SOON == 3.0
    finally:
        holder.kill()
        holder.communicate()
    (said,) = told
    assert isinstance(said, Fact)
    assert (said.id, said.arguments["process"]) == ("waits_for", holder.pid)
