"""pgvector's types of columns: how a vector is written, compared and indexed in each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import InputError
from bakeoff_providers.registry import nearest

from bakeoff.search.stores.codes import bit_similarity

FULL, HALF = 2000, 4000  # dimensions that an index takes as 32-bit and as 16-bit numbers


@dataclass(frozen=True, slots=True)
class Column:
    """A column of vectors. `indexed` may be a smaller type: beyond 2,000 dimensions an index takes 16-bit numbers."""

    type: str
    dimensions: int
    indexed: str
    operator: str
    width: float  # bytes per component

    @classmethod
    def of(cls, type: str, dimensions: int, *, index: str) -> Column:
        """The column that an option names."""
        if type not in WIDTHS:
            raise InputError(f"pgvector has no type {type!r}", remedy=nearest(type, list(WIDTHS)))
        if index != "none" and type != "bit" and dimensions > HALF:
            raise InputError(f"pgvector indexes up to {HALF} dimensions, not {dimensions}", remedy='use index = "none"')
        indexed = "halfvec" if type == "vector" and dimensions > FULL and index != "none" else type
        return cls(type, dimensions, indexed, "<~>" if type == "bit" else "<=>", WIDTHS[type])

    @property
    def declared(self) -> str:
        """As `create table` has it."""
        return f"{self.type}({int(self.dimensions)})"

    @property
    def expression(self) -> str:
        """What is indexed and compared with."""
        if self.indexed == self.type:
            return "embedding"
        return f"(embedding::{self.indexed}({int(self.dimensions)}))"

    @property
    def operators(self) -> str:
        """The operator class of an index."""
        return "bit_hamming_ops" if self.type == "bit" else f"{self.indexed}_cosine_ops"

    @property
    def index_width(self) -> float:
        """Bytes per component in an index."""
        return WIDTHS[self.indexed]

    @property
    def distance(self) -> str:
        """SQL with one gap, for the query."""
        return f"{self.expression} {self.operator} %s::{self.indexed}({int(self.dimensions)})"

    def value(self, vector: Vectors) -> Any:
        """The vector as the client sends it."""
        from pgvector import Bit, HalfVector

        match self.type:
            case "bit":
                return Bit(vector >= 0)
            case "halfvec":
                return HalfVector(vector)
        return vector

    def similarity(self, distance: float) -> float:
        """The cosine, from what the operator gives."""
        return float(bit_similarity(distance, self.dimensions)) if self.type == "bit" else 1.0 - distance


WIDTHS = {"vector": 4.0, "halfvec": 2.0, "bit": 1 / 8}
