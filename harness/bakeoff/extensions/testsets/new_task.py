"""Create a task folder for imported or generated queries, or as a copy of a task."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import msgspec
from bakeoff_providers.errors import InputError

from bakeoff.core.data_files import read_data
from bakeoff.core.files import check_writable, read_toml, write_atomic, write_folder, write_json
from bakeoff.extensions.testsets.task_folder import TaskFolder, check_not_built_in
from bakeoff.tasks.formats.native import FORMAT, ArticleFile, QueryFile
from bakeoff.tasks.formats.source_tables import FILES
from bakeoff.tasks.ground_truth import FILE, GroundTruth, rel_line

DESCRIPTION, QUERIES = "task.toml", "queries.json"  # file names in a new task
UNNAMED = "task"  # default folder of a task
ENDINGS = (*FILES, ".json", ".txt", ".db", ".sqlite", ".sqlite3")  # suffixes of a source that are not part of its name


def copy_task(source: str, target: Path) -> Path:
    """Copy a native task with its documents, grades and annotations to a new folder."""
    folder = TaskFolder.open(source)
    if folder.kind.format != FORMAT:
        raise InputError(
            f"is a task of format {folder.kind.format!r}", file=folder.path, place="format",
            remedy="grade it in place; its files are your own",
        )  # fmt: skip
    articles = folder.kind.base / folder.kind.options["articles"]
    if target.exists():
        raise InputError("exists already", file=target, remedy="choose another folder")
    check_writable(target, "choose another folder")

    def fill(draft: Path) -> None:
        shutil.copytree(folder.path.parent, draft, dirs_exist_ok=True)
        shutil.copy(articles, draft / "articles.json")
        text = (draft / folder.path.name).read_text(encoding="utf-8")
        text = re.sub(r"^articles = .*$", 'articles = "articles.json"', text, count=1, flags=re.MULTILINE)
        (draft / folder.path.name).write_text(text, encoding="utf-8")

    return write_folder(target, fill) / folder.path.name


def queries_file(folder: Path) -> Path:
    """The file with the task's queries, as task.toml names it; the default for a new task."""
    path = folder / DESCRIPTION
    check_not_built_in(path)
    if not path.exists():
        return folder / QUERIES
    description = read_toml(path, dict[str, Any])
    if description.get("format") != FORMAT:
        raise InputError(
            f"the queries of this task are not in Bakeoff's own format ({FORMAT})", file=path, place="format",
            remedy="add them to its own file, or choose another --out",
        )  # fmt: skip
    return folder / str(description.get("queries", QUERIES))


def check_new(folder: Path) -> None:
    """Refuse to overwrite a task or its grades."""
    check_not_built_in(folder / DESCRIPTION)
    for name in (DESCRIPTION, FILE):
        if (folder / name).exists():
            raise InputError(
                "already exists and would be overwritten", file=folder / name,
                remedy="use --add to extend the task, or choose another --out",
            )  # fmt: skip


def write_task(folder: Path, articles: Path, queries: QueryFile) -> Path:
    """Write a complete task without grades, which every command accepts."""
    check_new(folder)
    relative = Path(os.path.relpath(articles.resolve(), folder.resolve())).as_posix()
    name = _name(folder, articles)
    write_json(folder / QUERIES, queries)
    write_json(folder / FILE, GroundTruth(grades={}))
    path = folder / DESCRIPTION
    write_atomic(
        path,
        f'name = {_quote(name)}\nformat = "{FORMAT}"\narticles = {_quote(relative)}\nqueries = "{QUERIES}"\n'
        f'ground_truth = "{FILE}"\n{rel_line()}\n',
    )
    return path


def _name(folder: Path, articles: Path) -> str:
    """The folder's name if it was chosen; otherwise the name of the corpus's source."""
    if folder.resolve().name != UNNAMED:
        return folder.resolve().name
    source = Path(str(read_data(articles, ArticleFile)[0].metadata.get("source", "")))
    name = source.stem if source.suffix.lower() in ENDINGS else source.name
    return name or folder.resolve().parent.name or UNNAMED


def _quote(text: str) -> str:
    return msgspec.json.encode(text).decode()
