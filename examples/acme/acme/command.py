"""`bakeoff acme-count`."""

import json
from pathlib import Path

from bakeoff.plugins import Command

COUNT = Command("acme-count", "acme.command:count", "Acme", "Count the documents of a task.")


def count(file: Path) -> None:
    """Count the documents of a task in Acme's format."""
    print(len(json.loads(file.read_text())["corpus"]), "documents")
