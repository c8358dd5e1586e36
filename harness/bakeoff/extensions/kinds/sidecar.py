"""The vectors beside a snapshot: `embeddings/<model>/embeddings.npz`, by the snapshot's `embedding_key`."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
from bakeoff_providers.errors import InputError

from bakeoff.embedding.given_vectors import GivenVectors
from bakeoff.extensions.kinds.snapshot import KEY, Snapshot

VECTORS = "vectors"


def read_sidecar(folder: Path, model: str, snapshot: Snapshot) -> GivenVectors | None:
    """What this model made of the snapshot's items; None where there is no file for it."""
    names = [re.sub(r"[^A-Za-z0-9._-]+", "_", name).strip("_") for name in (model, model.rpartition("/")[2])]
    files = [folder / "embeddings" / name / "embeddings.npz" for name in names if name]
    file = next((file for file in files if file.is_file()), None)
    if file is None or not snapshot.keys:
        return None
    try:
        with np.load(file, allow_pickle=False) as arrays:
            keys, vectors = arrays[KEY].tolist(), arrays[VECTORS]
    except Exception as error:  # a damaged archive raises anything
        remedy = f"expected arrays `{KEY}` and `{VECTORS}`; or remove the file"
        raise InputError(f"unreadable: {error}", file=file, remedy=remedy) from None
    if vectors.ndim != 2 or vectors.dtype.kind != "f" or len(keys) != len(vectors):
        problem = f"{len(keys)} keys for vectors of shape {vectors.shape} and type {vectors.dtype}"
        raise InputError(problem, file=file, remedy=f"expected one row of floating numbers for each {KEY}")
    rows = {str(key): row for row, key in enumerate(keys)}
    of_text = {item.whole(): snapshot.keys.get(item.id, "") for item in snapshot.documents}
    return GivenVectors(file, {text: rows[key] for text, key in of_text.items() if key in rows}, vectors)
