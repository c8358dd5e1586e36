"""Options that several stores share."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

M = Annotated[int, "links per node of the graph; higher = better recall, more memory", Meta(ge=1, le=1024)]
EfConstruction = Annotated[int, "candidates considered while building; higher = better recall, slower build"]
Ef = Annotated[int, "candidates per search of the graph; higher = better recall, slower search"]
Lists = Annotated[int, "lists that the vectors are divided into"]
Probes = Annotated[int, "lists probed per search; higher = better recall, slower search"]
KFactor = Annotated[
    float, "candidates per wanted document that a refining index compares exactly", Meta(ge=1, le=10_000)
]
Url = Annotated[str, "server address; default: the environment variable, if set"]
Threads = Annotated[int, "threads that build and search", Meta(ge=1, le=1024)]
SearchKind = Annotated[Literal["vectors", "hybrid"], "hybrid keeps texts too; a contender's `search` sets it"]
