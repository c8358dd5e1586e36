"""The real command in a process, with a home, a temporary folder and a provider of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from bakeoff.search.stores.scratch import PREFIX

from tests.services import KEYS
from tests.wire import PROXIES, WireServer

BATCH, WORKERS = 4, 4
KEY = "test-key-0123456789abcdef"
LINEUP = """task = "wikipedia"
rounds = 1
[[contender]]
provider = "openai"
store = "faiss"
options = {{ base_url = "{base}", batch_items = {batch} }}
"""


def environment(folder: Path, **more: str) -> dict[str, str]:
    """Nothing of this machine's home, cache or proxies."""
    (folder / "tmp").mkdir(parents=True, exist_ok=True)
    variables = {name: value for name, value in os.environ.items() if name not in PROXIES}
    variables |= {"TMPDIR": str(folder / "tmp"), "BAKEOFF_HOME": str(folder / "home"), "COLUMNS": "100"}
    return {**variables, **dict.fromkeys(KEYS, KEY), "OMP_NUM_THREADS": "1", **more}


def bakeoff(folder: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Starts the command line with these arguments."""
    return subprocess.Popen(
        [sys.executable, "-m", "bakeoff", *arguments],
        env=environment(folder, **(variables or {})),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )


def start(folder: Path, wire: WireServer, more: str = "") -> subprocess.Popen[str]:
    """`bakeoff run` with a hosted provider; `more` are further lines of its contender."""
    folder.mkdir(parents=True, exist_ok=True)
    lineup = folder / "lineup.toml"
    lineup.write_text(LINEUP.format(base=wire.base("openai"), batch=BATCH) + more)
    return bakeoff(folder, "run", str(lineup), "--no-charts", "--out", str(folder / "results"))


def wait_for(wire: WireServer, count: int, process: subprocess.Popen[str]) -> None:
    """Until so many requests have arrived, or the process has ended."""
    until = time.monotonic() + 120
    while len(wire.embeddings()) < count and process.poll() is None and time.monotonic() < until:
        time.sleep(0.01)


def left_in(folder: Path) -> int:
    """Our folders that are still in the temporary folder."""
    return len(list((folder / "tmp").glob(f"{PREFIX}*")))


def exit_code(number: signal.Signals) -> int:
    """What a shell expects after this signal."""
    return 128 + number
