"""Options that several formats share."""

from __future__ import annotations

from typing import Annotated, Any

from bakeoff.tasks.formats.rows import Columns

Rel = Annotated[int, "the lowest grade that counts as relevant"]
Split = Annotated[str, "the split whose judgments are used"]
HubRevision = Annotated[str | None, "branch, tag or commit on the hub; default: the newest"]
Grades = Annotated[dict[str, int] | None, "grades for labels that are words: { Exact = 3, Partial = 1 }"]
ColumnNames = Annotated[dict[str, Any] | None, "column names of the tables", Columns]
DropNegative = Annotated[bool, "grades below 0 count as unjudged instead of being refused"]
DropUnknown = Annotated[bool, "drop judgments of unknown documents or queries"]
DropEmpty = Annotated[bool, "drop empty documents and their judgments"]
IgnoreIdenticalIds = Annotated[bool, "exclude the document with the query's own id, as in BEIR"]
JudgedOnly = Annotated[bool, "drop queries without judgments"]
