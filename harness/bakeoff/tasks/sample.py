"""A sample of a corpus with every graded document. Scores are too high on it, so the result says so."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
import xxhash
from bakeoff_providers.errors import InputError

from bakeoff.core.corpus import collect_documents
from bakeoff.core.task import Document, Task, document_blocks, document_ids


def find_required(task: Task) -> set[str]:
    """Documents in every sample: the graded ones and query items."""
    judged = {document for grades in task.judgments.values() for document in grades}
    return judged | {query.excluded for query in task.queries if query.excluded}


def draw_sample(task: Task, documents: int, seed: int) -> Task:
    """Sample ungraded documents by seed. Smaller samples are subsets of larger ones."""
    ids, kept = document_ids(task.documents), find_required(task)
    if documents >= len(ids):
        return task
    if documents < len(kept):
        raise InputError(
            f"a sample of {documents} documents can't hold the {len(kept)} that have a grade or are queries",
            place="--sample-documents",
            remedy=f"ask for {len(kept)} or more",
        )
    named = (f"{seed}:{name}".encode(errors="surrogatepass") for name in ids)
    order = np.fromiter(map(xxhash.xxh3_64_intdigest, named), np.uint64, len(ids))
    fixed = np.fromiter((name in kept for name in ids), bool, len(ids))
    rest = np.flatnonzero(~fixed)
    chosen = fixed.copy()
    chosen[rest[np.argsort(order[rest], kind="stable")[: documents - len(kept)]]] = True

    def blocks() -> Iterator[list[Document]]:
        start = 0
        for block in document_blocks(task.documents):
            mask = chosen[start : start + len(block)]
            yield [document for document, wanted in zip(block, mask, strict=True) if wanted]
            start += len(block)

    return msgspec.structs.replace(task, documents=collect_documents(blocks()), drawn_from=len(ids))
