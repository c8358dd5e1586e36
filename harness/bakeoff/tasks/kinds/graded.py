"""The graded kind: people or a judge model graded query–document pairs, in files of one of the formats."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import msgspec
from bakeoff_providers.errors import InputError
from bakeoff_providers.options import convert

from bakeoff.core.corpus import transform_documents
from bakeoff.core.files import file_exists
from bakeoff.core.task import DocumentChunking, Task
from bakeoff.tasks.formats import FORMATS
from bakeoff.tasks.ground_truth import FILE, overlay_grades
from bakeoff.tasks.kinds.base import TaskKind
from bakeoff.tasks.looks import at_look, read_state


class Graded(TaskKind):
    """Grades from files. All options belong to the format.

    `ground_truth` is the file of grades given with Bakeoff. It overlays the judgments of formats that do not read it
    themselves.
    """

    name = "graded"
    free_health_check = True
    judges_all = False
    can_be_sampled = True

    def __init__(
        self,
        name: str,
        base: Path,
        targets: Mapping[str, float],
        format: Annotated[str, "format of the files; its options are further keys"] = "",
        chunking: Annotated[
            Mapping[str, Any] | None, "how documents are chunked before embedding", DocumentChunking
        ] = None,
        ground_truth: Annotated[str, "file of grades given with Bakeoff; default: ground_truth.json"] = "",
        **options: Annotated[Any, "the format's options; see for example `bakeoff options tables`"],
    ) -> None:
        super().__init__(name, base, targets)
        if not isinstance(format, str) or not format:
            raise InputError("a task needs a format", place="format", remedy=f"one of: {', '.join(FORMATS.names())}")
        takes_truth = any(option.name == "ground_truth" for option in FORMATS.options(format))
        if takes_truth and ground_truth:
            options["ground_truth"] = ground_truth
        FORMATS.check_options(format, options, whole=True)
        self.format, self.options = format, options
        self.ground_truth = base / (ground_truth or FILE)
        self._lay_over = not takes_truth
        self.chunking = None if chunking is None else convert("chunking", chunking, DocumentChunking)

    def task(self) -> Task:
        """The task as its format reads it, chunked if the task file says so."""
        task = FORMATS.create(self.format, name=self.task_name, base=self.base, **self.options)
        if self._lay_over and file_exists(self.ground_truth):
            task = overlay_grades(task, self.ground_truth)
        if self.chunking is not None:
            cut = transform_documents(task.documents, partial(msgspec.structs.replace, chunking=self.chunking))
            task = msgspec.structs.replace(task, documents=cut)
        return msgspec.structs.replace(task, targets=self.targets)

    def at_look(self, task: Task) -> Task:
        """The queries of the last fully graded look."""
        state = read_state(self.base, task)
        return task if state is None else at_look(task, state, self.base)


class InMemory(TaskKind):
    """A task made in Python, without files."""

    name = "graded"
    free_health_check = True
    judges_all = False
    can_be_sampled = True

    def __init__(self, task: Task) -> None:
        super().__init__(task.name, Path(), task.targets)
        self._task = task

    def task(self) -> Task:
        """The task itself."""
        return self._task
