"""Files of vectors that other tools read and write. A format is one module here and one line below, by its suffix."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.registry import Registry, missing_modules

if TYPE_CHECKING:
    from bakeoff.embedding.vector_files.base import VectorFile

BUILTIN = {
    "parquet": "bakeoff.embedding.vector_files.parquet:Parquet",
    "lance": "bakeoff.embedding.vector_files.lance:Lance",
    "npy": "bakeoff.embedding.vector_files.npy:Npy",
    "faiss": "bakeoff.embedding.vector_files.faiss:FaissFile",
}

VECTOR_FILES: Registry[VectorFile] = Registry("format of vectors", "bakeoff.vector_files", BUILTIN)


def vector_file(path: Path, columns: dict[str, str] | None = None) -> VectorFile:
    """The file as its suffix says; a library that it needs and that is missing is named."""
    suffix = path.suffix.removeprefix(".")
    if suffix not in VECTOR_FILES.names():
        known = ", ".join(f".{name}" for name in VECTOR_FILES.names())
        raise InputError(f"its name ends with none of {known}", file=path, remedy="name it by what is in it")
    kind = VECTOR_FILES.get(suffix)
    if reason := missing_modules(kind.modules, kind.extra):
        raise Unavailable(f"{path.name}: {reason}")
    return VECTOR_FILES.create(suffix, path=path, columns=columns or {})
