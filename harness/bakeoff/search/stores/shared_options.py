"""Options that several stores share."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

M = Annotated[
    int, "links that a node of the graph has to others: more find better and take more memory", Meta(ge=1, le=1024)
]
EfConstruction = Annotated[int, "candidates looked at while the graph is built: more find better and build slower"]
Ef = Annotated[int, "candidates that a search of the graph looks at: more find better and take longer"]
Lists = Annotated[int, "lists that the vectors are divided into"]
Probes = Annotated[int, "lists that a search looks into: more find better and take longer"]
KFactor = Annotated[
    float, "candidates per wanted document that a refining index compares exactly", Meta(ge=1, le=10_000)
]
Url = Annotated[str, "address of a server; the environment's variable or none if left out"]
Threads = Annotated[int, "threads that build and search", Meta(ge=1, le=1024)]
SearchKind = Annotated[Literal["vectors", "hybrid"], "hybrid keeps texts too; a contender's `search` sets it"]
