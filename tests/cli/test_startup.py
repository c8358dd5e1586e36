"""What short commands must not import, because it takes longer than what they do; bench/startup.py has the times."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from bakeoff.core.files import write_atomic
from bakeoff.results.current import current_summary
from bakeoff.results.schema import SUMMARY

ROOT = Path(__file__).parent.parent.parent
COMMAND = """
import sys
from bakeoff.cli.main import main
try:
    main()
except SystemExit as end:
    assert not end.code
print("imported", *sorted(sys.modules))
"""


@pytest.mark.parametrize(
    ("command", "absent"),
    [
        ("--help", {"numpy", "msgspec", "rich", "importlib.metadata"}),
        ("show RESULT", {"numpy", "importlib.metadata"}),
        ("validate wikipedia", {"asyncio", "tqdm", "psutil", "rich.progress", "bakeoff.extensions.stores.qdrant"}),
    ],
)
def test_a_short_command_leaves_alone_what_it_does_not_need(command: str, absent: set[str], tmp_path: Path) -> None:
    write_atomic(tmp_path / SUMMARY, msgspec.json.encode(current_summary(ROOT / "results" / "reference")))
    command = command.replace("RESULT", str(tmp_path))
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *command.split()], cwd=ROOT, capture_output=True, text=True, check=True
    )
    imported = done.stdout.splitlines()[-1].split()
    assert imported[0] == "imported"
    assert not absent & set(imported)
