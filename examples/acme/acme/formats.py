"""Tasks in one JSON file."""

import json
from pathlib import Path
from typing import Annotated

from bakeoff.plugins import Task


def load(name: str, base: Path, file: Annotated[str, "the JSON file, relative to the line-up"]) -> Task:
    """Texts, queries and grades by their ids."""
    content = json.loads((base / file).read_text())
    return Task.from_dicts(content["corpus"], content["queries"], content["qrels"], name=name)
