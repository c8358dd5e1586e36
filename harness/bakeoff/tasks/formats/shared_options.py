"""Options that several formats share."""

from __future__ import annotations

from typing import Annotated, Any

from bakeoff.tasks.formats.rows import Columns

Rel = Annotated[int, "the lowest grade that counts as relevant"]
Split = Annotated[str, "which judgments are taken: the split's name"]
HubRevision = Annotated[str | None, "branch, tag or commit on the hub; the newest if left out"]
Grades = Annotated[dict[str, int] | None, "grades for labels that are words: { Exact = 3, Partial = 1 }"]
ColumnNames = Annotated[dict[str, Any] | None, "what the tables call their columns", Columns]
DropNegative = Annotated[bool, "grades below 0 count as unjudged instead of being refused"]
DropUnknown = Annotated[bool, "leave out judgments of documents or queries that the task lacks"]
DropEmpty = Annotated[bool, "leave out documents without title and text, and their judgments"]
IgnoreIdenticalIds = Annotated[bool, "leave a document with the query's own id out of its ranking, as BEIR does"]
JudgedOnly = Annotated[bool, "leave out queries without any judgment"]
