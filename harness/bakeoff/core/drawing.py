"""Vega in its own process, because V8 kills its process when memory runs out."""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bakeoff_providers.errors import BakeoffError

TIME_LIMIT = 120.0  # seconds for all charts of a page
_CHILD = Path(__file__).with_name("draw_child.py")


class DrawingFailed(BakeoffError):
    """A chart could not be drawn. The figures are not affected."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A chart in two formats."""

    svg: bytes
    png: bytes


def draw(specs: Sequence[dict[str, Any]]) -> list[Picture | DrawingFailed]:
    """Draws all charts in one process. If it dies, the remaining charts have failed."""
    pictures: list[Picture | DrawingFailed] = []
    for answer in _run_jobs([{"what": "picture", "spec": spec} for spec in specs]):
        if "error" in answer:
            pictures.append(DrawingFailed(answer["error"]))
        else:
            pictures.append(Picture(answer["svg"].encode(), base64.b64decode(answer["png"])))
    return pictures


def vega_bundle(script: str) -> str:
    """Vega and its parts as one script."""
    (answer,) = _run_jobs([{"what": "bundle", "script": script}])
    if "error" in answer:
        raise DrawingFailed(answer["error"])
    return answer["js"]


def _run_jobs(jobs: list[dict[str, Any]]) -> list[dict[str, str]]:
    if not jobs:
        return []
    try:
        done = subprocess.run(
            [sys.executable, str(_CHILD)],
            input=json.dumps(jobs).encode(),
            capture_output=True,
            timeout=TIME_LIMIT,
            check=False,
        )
        lines, reason = done.stdout.split(b"\n")[:-1], f"the process that draws ended with {done.returncode}"
    except subprocess.TimeoutExpired as error:
        lines = (error.stdout or b"").split(b"\n")[:-1]
        reason = f"the process that draws took longer than {TIME_LIMIT:g} s"
    except OSError as error:
        lines, reason = [], f"the drawing process can't be started: {error.strerror}"
    answers = [json.loads(line) for line in lines]
    return [*answers, *({"error": reason} for _ in range(len(jobs) - len(answers)))]
