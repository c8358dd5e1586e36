"""Export cached vectors to a file and import them, so that no vector is paid for twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
from bakeoff_providers.base import Role
from bakeoff_providers.errors import InputError
from numpy.typing import NDArray

from bakeoff.calls.key_index import Keys, keys_of
from bakeoff.core.id_rows import IdRows
from bakeoff.core.progress import steps
from bakeoff.embedding.cache import Space
from bakeoff.embedding.corpus_chunks import ChunkTexts, in_blocks
from bakeoff.extensions.vectors.files import FileContents, VectorBlock, VectorFile
from bakeoff.lineup.lineup import Lineup
from bakeoff.running.embeddings import Embeddings
from bakeoff.running.settings import Settings
from bakeoff.systems.embedding import EmbeddingRow
from bakeoff.tasks.kinds import load_kind

ROWS = 8_192  # texts or vectors in memory at once
SAME = 0.99  # a lower cosine to the cached vector means another model or text


@dataclass(frozen=True, slots=True)
class Texts:
    """One contender's texts in one role, in order, with the cache space of their vectors."""

    contender: EmbeddingRow
    role: Role
    ids: Sequence[str]
    texts: Sequence[str]
    space: Space

    def keys(self) -> Keys:
        """The keys of all texts, which are read block by block."""
        keys, first = np.empty((len(self.texts), 2), dtype=np.uint64), 0
        with steps("texts to hash", len(keys)) as advance:
            for block in in_blocks(self.texts, ROWS):
                keys[first : first + len(block)] = keys_of(block)
                first += len(block)
                advance(len(block))
        return keys


@dataclass(frozen=True, slots=True)
class ImportedVectors:
    """An import's counts: vectors written, vectors already cached, texts without a vector in the file."""

    written: int
    present: int
    lacking: int


def one_embedding(lineup: Lineup, name: str | None) -> EmbeddingRow:
    """The named contender, or the only one that embeds. Rows that share vectors count as one."""
    named = lineup.narrow([name]).contenders if name else lineup.contenders
    embedding = [contender for contender in named if isinstance(contender, EmbeddingRow)]
    distinct = {contender.shares: contender for contender in reversed(embedding)}
    if len(distinct) == 1:
        return next(iter(distinct.values()))
    labels = ", ".join(contender.label for contender in embedding)
    if not distinct:
        raise InputError("none of the contenders has vectors", place="--contender", remedy="name one with a provider")
    raise InputError(f"several contenders have vectors: {labels}", place="--contender", remedy="name one of them")


@contextmanager
def texts_of(lineup: Lineup, contender: EmbeddingRow, role: Role, settings: Settings) -> Iterator[Texts]:
    """A contender's texts and their cache space. Sends no requests."""
    task = load_kind(lineup.task, lineup.folder, lineup.overrides).task()
    embeddings = Embeddings(task, 1, settings, lineup.folder)
    try:
        embedder, index = embeddings.embedder(contender), embeddings.index(contender)
        chunks = ChunkTexts(index.chunks)
        if embedder.provider.by_id:
            raise InputError(f"{contender.label}: its vectors come from a file", place="--contender")
        embedder.fit(chunks)
        space = embedder.space(role)
        if space is None:
            raise InputError(
                f"{contender.label}: its code may change unnoticed, so its vectors are not cached",
                place="--contender",
                remedy="give it a revision",
            )
        if role is Role.DOCUMENT:
            yield Texts(contender, role, index.ids, chunks, space)
        else:
            queries = [query for query in task.queries if not query.item]
            yield Texts(contender, role, [query.id for query in queries], [query.text for query in queries], space)
    finally:
        embeddings.close()


def export_vectors(texts: Texts, file: VectorFile) -> int:
    """Write every vector as the provider returned it. A missing vector is an error; nothing is embedded."""
    space, keys = texts.space, texts.keys()
    places = np.empty(len(keys), dtype=np.int64)
    for first in range(0, len(keys), ROWS):
        places[first : first + ROWS] = space.find(keys[first : first + ROWS])
    if len(absent := np.flatnonzero(places < 0)):
        raise InputError(
            f"{len(absent)} of {len(keys)} {texts.role.value} vectors of {texts.contender.label} are not in the cache, "
            f"such as that of {texts.ids[int(absent[0])]!r}",
            remedy="make them first: bakeoff run, or bakeoff embed",
        )

    def blocks() -> Iterator[VectorBlock]:
        with steps("vectors written", len(keys)) as advance:
            for first in range(0, len(keys), ROWS):
                part = slice(first, first + ROWS)
                tokens = space.tokens_of(places[part])
                yield VectorBlock(list(texts.ids[part]), keys[part], tokens, space.take(places[part]))
                advance(len(keys[part]))

    file.write(space.identity, space.dimensions or 0, blocks(), len(keys))
    return len(keys)


def import_vectors(
    texts: Texts, file: VectorFile, *, partial: bool = False, trust_ids: bool = False
) -> ImportedVectors:
    """Check the whole file before writing, so that a bad file leaves the cache unchanged."""
    contents, keys = file.contents(), texts.keys()
    _check_identity(contents, texts, file)
    chunk_of, lacking = _match(contents, texts, keys, file, partial=partial, trust_ids=trust_ids)
    contents = replace(contents, keys=None)  # the space's own keys
    present = _check_vectors(texts, keys, chunk_of, file)
    texts.space.check_writable(len(contents.ids), contents.dimensions)
    written = 0
    for first, vectors in _number_blocks(file, "vectors written", len(contents.ids)):
        chunks = chunk_of[first : first + len(vectors)]
        rows = np.flatnonzero(chunks >= 0)
        _, once = np.unique(keys[chunks[rows]], axis=0, return_index=True)  # equal texts share a vector
        rows = rows[np.sort(once)]
        rows = rows[texts.space.find(keys[chunks[rows]]) < 0]
        if len(rows):
            paid = np.zeros(len(vectors), np.float32) if contents.tokens is None else contents.tokens[first:]
            texts.space.append(keys[chunks[rows]], np.asarray(paid[rows], dtype="<f4"), vectors[rows])
            written += len(rows)
    return ImportedVectors(written, present, lacking)


def _check_identity(contents: FileContents, texts: Texts, file: VectorFile) -> None:
    """Refuse a file of another model or other dimensions."""
    space = texts.space
    if contents.identity is not None and dict(contents.identity) != space.identity:
        keys = sorted(contents.identity.keys() | space.identity.keys())
        differing = next(key for key in keys if contents.identity.get(key) != space.identity.get(key))
        raise file.wrong(
            f"its vectors were made with {differing} = {contents.identity.get(differing)!r}, "
            f"but {texts.contender.label} has {space.identity.get(differing)!r}",
            remedy="name the contender and role they were made for",
        )
    if space.dimensions is not None and contents.dimensions != space.dimensions:
        raise file.wrong(
            f"its vectors have {contents.dimensions} dimensions, those of {texts.contender.label} {space.dimensions}",
            remedy="name the contender they were made for",
        )
    if not contents.dimensions:
        raise file.wrong("holds no vectors")


def _match(
    contents: FileContents, texts: Texts, keys: Keys, file: VectorFile, *, partial: bool, trust_ids: bool
) -> tuple[NDArray[np.int64], int]:
    """Match rows to texts (−1 for none), and count the texts without a row."""
    if IdRows(contents.ids).has_repeats():
        raise _repetition_error(contents.ids, file)
    chunk_of, known = np.full(len(contents.ids), -1, dtype=np.int64), IdRows(texts.ids)
    for first in range(0, len(chunk_of), ROWS):
        rows, chunks = known.matches(contents.ids[first : first + ROWS])
        chunk_of[first + rows] = chunks
    if not partial and len(unknown := np.flatnonzero(chunk_of < 0)):
        raise file.wrong(
            f"id {contents.ids[int(unknown[0])]!r} is not among the {len(texts.ids)} {texts.role.value} ids of the task"
            + (f", nor are {len(unknown) - 1} others" if len(unknown) > 1 else ""),
            int(unknown[0]),
            "--partial imports the others",
        )
    if not partial and len(chunk_of) < len(texts.ids):
        has = np.zeros(len(texts.ids), dtype=bool)
        has[chunk_of] = True
        raise file.wrong(
            f"has no vector for {len(texts.ids) - len(chunk_of)} of {len(texts.ids)} {texts.role.value} ids, "
            f"such as {texts.ids[int(np.argmin(has))]!r}",
            remedy="--partial imports those it has",
        )
    if contents.keys is not None:
        _check_texts(contents, keys, chunk_of, file, partial=partial)
    elif not trust_ids:
        raise file.wrong(
            "has neither texts nor their hashes, so its vectors can't be matched to the texts",
            remedy="add a column text or text_hash; --trust-ids matches only by id",
        )
    return chunk_of, len(texts.ids) - int(np.count_nonzero(chunk_of >= 0))


def _repetition_error(ids: Sequence[str], file: VectorFile) -> InputError:
    seen: dict[str, int] = {}
    row, name = next((row, name) for row, name in enumerate(ids) if seen.setdefault(name, row) != row)
    return file.wrong(f"id {name!r} is a duplicate of row {seen[name] + 1}", row, "keep one of them")


def _check_texts(
    contents: FileContents, keys: Keys, chunk_of: NDArray[np.int64], file: VectorFile, *, partial: bool
) -> None:
    """A vector of a changed text is an error, or skipped with --partial."""
    assert contents.keys is not None
    differs = np.zeros(len(chunk_of), dtype=bool)
    for first in range(0, len(chunk_of), ROWS):
        part = slice(first, first + ROWS)
        differs[part] = (chunk_of[part] >= 0) & (contents.keys[part] != keys[chunk_of[part]]).any(axis=1)
    other = np.flatnonzero(differs)
    if len(other) and not partial:
        raise file.wrong(
            f"the text of {contents.ids[int(other[0])]!r} differs from the task's"
            + (f", as do {len(other) - 1} others" if len(other) > 1 else ""),
            int(other[0]),
            "--partial imports the unchanged ones",
        )
    chunk_of[other] = -1


def _check_vectors(texts: Texts, keys: Keys, chunk_of: NDArray[np.int64], file: VectorFile) -> int:
    """Check that vectors are finite, nonzero, one per id, and consistent with the cache. Count the cached ones."""
    present, count, space = 0, 0, texts.space
    for first, vectors in _number_blocks(file, "vectors checked", len(chunk_of)):
        count += len(vectors)
        for problem, bad in (
            ("has NaN or infinity in its vector", ~np.isfinite(vectors).all(axis=1)),
            ("is a vector of zeros", ~vectors.any(axis=1)),
        ):
            if bad.any():
                raise file.wrong(problem, first + int(np.flatnonzero(bad)[0]))
        rows = np.flatnonzero(chunk_of[first : first + len(vectors)] >= 0)
        places = space.find(keys[chunk_of[first + rows]])
        rows, places = rows[places >= 0], places[places >= 0]
        present += len(rows)
        if len(rows) and (low := np.flatnonzero(_cosines(vectors[rows], space.take(places)) < SAME)).size:
            raise file.wrong(
                f"the vector of {texts.ids[int(chunk_of[first + rows[low[0]]])]!r} differs from the cached one",
                first + int(rows[low[0]]),
                "it is of another model or text; name the right contender",
            )
    if count != len(chunk_of):
        raise file.wrong(f"has {count} vectors for {len(chunk_of)} ids")
    return present


def _number_blocks(file: VectorFile, label: str, total: int) -> Iterator[tuple[int, NDArray[np.float32]]]:
    first = 0
    with steps(label, total) as advance:
        for vectors in file.vectors():
            yield first, vectors
            first += len(vectors)
            advance(len(vectors))


def _cosines(one: NDArray[np.float32], other: NDArray[np.float32]) -> NDArray[np.float64]:
    one, other = one.astype(np.float64), other.astype(np.float64)
    products = np.einsum("ij,ij->i", one, other)
    return np.asarray(products / (np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)))
