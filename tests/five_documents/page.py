"""docs/five-documents/: a page for each document, its functions, and its commands run on files in its formats."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bakeoff_providers import weights

from tests.cli.test_testsets import say
from tests.five_documents import data
from tests.test_docs import DOCS, write_named_files
from tests.wire import WireServer

_NAMES = ("wikipedia", "ada-002", "films", "next-location", "golden-profiles")
_PAGES = [(DOCS / "five-documents" / f"{name}.md").read_text(encoding="utf-8") for name in ("index", *_NAMES)]
PAGE = "\n".join(_PAGES)
SECTIONS = {title.removeprefix("# "): text for title, _, text in (page.partition("\n") for page in _PAGES[1:])}


@dataclass
class Played:
    """A document's folder after the section's commands."""

    folder: Path
    printed: list[str] = field(default_factory=list)
    results: list[Path] = field(default_factory=list)

    def summary(self, place: int = 0) -> Any:
        """The figures of a result, by the order of the commands."""
        return read_json(self.results[place] / "metrics_summary.json")

    def figures(self) -> Any:
        """What the kind of task adds to the first result."""
        return self.summary()["figures"]


def read_json(file: Path) -> Any:
    """A file's content."""
    return json.loads(file.read_text(encoding="utf-8"))


def commands(title: str) -> list[tuple[str, ...]]:
    """The indented ones of a section, and those in its tables that name a line-up of the page; each once."""
    text = SECTIONS[title]
    shown = re.findall(r"^    bakeoff (.*)$", text, re.M) + re.findall(r"`bakeoff (run \w+\.toml[^`]*)`", text)
    return list(dict.fromkeys(tuple(shlex.split(line, comments=True)) for line in shown))


def functions(title: str) -> list[str]:
    """The functions of a document that its section maps."""
    return re.findall(r"^\| `([\w.]+)` \|", SECTIONS[title].partition("## Functions")[2], re.M)


def prepare(title: str, folder: Path) -> None:
    """The document's files, and those that the section shows."""
    data.MAKERS[title](folder)
    write_named_files(SECTIONS[title], folder)


def play(
    title: str,
    folder: Path,
    *,
    wire: WireServer | None = None,
    before: Callable[[Path, Sequence[str]], None] = lambda _folder, _command: None,
) -> Played:
    """All commands of a section in their order; `before` does what people do between two of them.

    Where a server answers, vectors are kept apart from those of real models.
    """
    prepare(title, folder)
    played = Played(folder)
    environment = {"OLLAMA_HOST": wire.url} if wire else {"BAKEOFF_HOME": str(weights.home())}
    for command in commands(title):
        before(folder, command)
        known = set(folder.glob("results/**/metrics_summary.json"))
        charts = command[0] != "run" or "--out" in command
        played.printed.append(say(folder, *command, *([] if charts else ["--no-charts"]), code=0, **environment))
        played.results += [file.parent for file in set(folder.glob("results/**/metrics_summary.json")) - known]
    return played
