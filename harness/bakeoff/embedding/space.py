"""The vectors of one identity (all that shapes a vector but its text): a folder of shards.

Each process writes its own shards, so readers need no lock. They refresh to see what others have written, and claims
show what others are requesting.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from bakeoff_providers.base import Vectors
from bakeoff_providers.errors import BakeoffError, EmbeddingFailed, InputError

from bakeoff.calls.key_index import KeyIndex, Keys, Places, keys_of
from bakeoff.calls.locks import Claims, InUse
from bakeoff.core.figures import CallTime
from bakeoff.core.files import check_free_space, explain_full_disk, read_json, write_json
from bakeoff.core.hashing import Identity, text_key
from bakeoff.core.progress import steps
from bakeoff.embedding.shards import MANIFEST, ROW_BITS, ROWS, Batch, Description, Shard, ShardRows, ShardWriter, Tokens

IDENTITY, IN_USE = "identity.json", "in-use.lock"
_RECORD = 1024  # vectors per rewritten record
_UNKNOWN_DIMENSIONS = 4096  # assumed if unknown
REMEDY = "make room, set BAKEOFF_HOME to a folder on another disk, or run with --no-cache"


Known = Mapping[str, tuple[Description | None, int]]  # by shard name: its description, and how far it was read


class Space:
    """A space, read when opened. Vectors are available at once, and on disk when `put` returns."""

    def __init__(
        self,
        folder: Path,
        identity: Identity,
        complete: Sequence[Path] = (),
        *,
        shared: bool = True,
        known: Known = MappingProxyType({}),
        dimensions: int | None = None,
        remedy: str = REMEDY,
    ) -> None:
        """`complete` are further folders of this space, read-only.

        `shared=False`: exclusive access, for rewriting. `known` shards are not read again; `dimensions` are then those
        of their vectors, if the identity has none. `remedy` is for a full disk.
        """
        self.folder, self.identity, self._remedy = folder, dict(identity), remedy
        fixed = identity.get("dimensions")
        self.dimensions: int | None = fixed if isinstance(fixed, int) and not isinstance(fixed, bool) else dimensions
        self.claims = Claims(folder / "asking.lock")
        self._in_use = InUse(folder / IN_USE) if shared else None
        self._index = KeyIndex()
        self._shards: list[Shard] = []
        self._known: set[str] = set()  # paths of their manifests
        self._tokens: list[Tokens] = []
        self._writer: ShardWriter | None = None
        self._own: int | None = None  # number of the shard being written here
        self._written: set[int] = set()  # numbers of all shards written here
        self._ended: set[int] = set()  # fully read shards of read-only folders
        self._foreign = 0  # batches of another dimension
        self._room_for = 0  # vectors that were checked to fit
        self._hold()
        for name, (description, read_to) in known.items():
            self._add_shard(Shard(folder / name, description, 0, read_to, read_to))
        for other in complete:
            self._find_shards(other)
        complete_ones = range(len(known), len(self._shards))
        self.refresh()
        self._ended.update(complete_ones)

    @property
    def damaged(self) -> int:
        """The number of unusable records, which pruning removes."""
        others = (shard for number, shard in enumerate(self._shards) if number not in self._written)
        return self._foreign + sum(shard.damaged + shard.torn for shard in others)

    def __len__(self) -> int:
        return len(self._index)

    def __contains__(self, text: str) -> bool:
        return bool(self.find(keys_of([text]))[0] >= 0)

    def find(self, keys: Keys) -> Places:
        """The place of each key's vector; −1 if missing."""
        return self._index.find(keys)

    def places(self) -> Places:
        """All places, in the order of writing."""
        return self._index.all()[1]

    def get(self, texts: Sequence[str]) -> tuple[Vectors, float]:
        """The vectors of texts that are all here, and the tokens paid for them."""
        places = self.find(keys_of(texts))
        return self.take(places), float(self.tokens_of(places).sum(dtype=np.float64))

    def take(self, places: Places) -> Vectors:
        """The vectors at these places, as the provider returned them."""
        return self.rows().take(places)

    def collect_marks(self) -> Known:
        """How far this folder's shards were read, so that another process can start there."""
        others = [shard for number, shard in enumerate(self._shards) if number not in self._written]
        return {shard.stem.name: shard.mark() for shard in others if shard.stem.parent == self.folder}

    def rows(self) -> ShardRows:
        """The current content, read-only, for sending to another process that sees the same files."""
        return ShardRows(self._shards, self.dimensions or 0)

    def tokens_of(self, places: Places) -> Tokens:
        """The number of tokens paid for each vector."""
        numbers, rows = places >> ROW_BITS, places & ((1 << ROW_BITS) - 1)
        tokens = np.empty(len(places), dtype="<f4")
        order = np.argsort(numbers, kind="stable")
        for group in np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1):
            if len(group):
                tokens[group] = self._tokens[int(numbers[group[0]])][rows[group]]
        return tokens

    def put(self, texts: Sequence[str], vectors: Vectors, tokens: int | None, keys: Keys | None = None) -> None:
        """Appends a batch. Tokens are reported per batch and split by the texts' lengths."""
        lengths = np.maximum(np.fromiter(map(len, texts), dtype=np.float64, count=len(texts)), 1)
        shares = (lengths / lengths.sum() * (tokens or 0)).astype("<f4")
        self.append(keys_of(texts) if keys is None else keys, shares, vectors)

    def append(self, keys: Keys, tokens: Tokens, vectors: Vectors) -> None:
        """Appends a batch with known keys. The first vector of a space fixes its dimension."""
        dimensions = int(vectors.shape[1])
        if self.dimensions not in (None, dimensions):
            raise EmbeddingFailed(
                f"returned {dimensions} dimensions, but the cached vectors of this model have {self.dimensions}: "
                "this batch was not stored"
            )
        self.dimensions = dimensions
        with explain_full_disk(self.folder, self._remedy):
            self._append(keys, tokens, vectors)

    def _append(self, keys: Keys, tokens: Tokens, vectors: Vectors) -> None:
        writer, own = self._own_shard(vectors.shape[1])
        start = writer.append(keys.astype("<u8").tobytes(), tokens, vectors)
        self._remember(own, [Batch(start, keys, tokens)])

    def _own_shard(self, dimensions: int) -> tuple[ShardWriter, int]:
        if self._writer is None or self._own is None:
            self._write_identity()
            self._writer = ShardWriter(self.folder, self.identity, dimensions)
            self._own = len(self._shards)
            self._written.add(self._own)
            self._add_shard(Shard(self._writer.stem, Description(self.identity, dimensions)))
        return self._writer, self._own

    def call_time(self, text: str) -> CallTime | None:
        """How long the call that first delivered this text's vector took; None if it was not timed."""
        key = text_key(text)
        return min((shard.times[key] for shard in self._shards if key in shard.times), key=lambda t: t.at, default=None)

    def note_time(self, text: str, time: CallTime) -> None:
        """Stores the first time of a text whose vector is here."""
        if self.call_time(text) is None:
            self._append_time(text_key(text), time)

    def _append_time(self, key: bytes, time: CallTime) -> None:
        assert self.dimensions is not None
        with explain_full_disk(self.folder, self._remedy):
            writer, own = self._own_shard(self.dimensions)
            writer.append_time(key, time)
        self._shards[own].times[key] = time

    def refresh(self) -> None:
        """Reads what other processes have written since the last call."""
        self._hold()
        self._find_shards(self.folder)
        fresh = [
            (number, _check_shard(shard))
            for number, shard in enumerate(self._shards)
            if number not in self._written and number not in self._ended and shard.has_grown()
        ]
        if self.dimensions is None:
            rows: Counter[int] = Counter()
            for number, batches in fresh:
                if self._shards[number].description is not None:
                    rows[self._shards[number].dimensions] += sum(len(batch.keys) for batch in batches)
            self.dimensions = rows.most_common(1)[0][0] if rows.total() else None
        for number, batches in fresh:
            description = self._shards[number].description
            if description is not None and description.dimensions != self.dimensions:
                self._foreign += len(batches)
                continue
            if batches:
                self._remember(number, batches)

    def check_writable(self, vectors: int, dimensions: int | None = None) -> None:
        """Checks once for this many that vectors can be stored, before anything is requested or paid for.

        `dimensions` are those that the model promises, as long as the space is empty.
        """
        if vectors <= self._room_for:
            return
        needed = vectors * (4 * (self.dimensions or dimensions or _UNKNOWN_DIMENSIONS) + 64)
        trial = self.folder / ".probe"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            trial.write_bytes(bytes(1 << 16))
        except OSError as error:
            raise InputError(f"can't be written ({error.strerror})", file=self.folder, remedy=self._remedy) from None
        finally:
            with contextlib.suppress(OSError):
                trial.unlink()
        check_free_space(self.folder, needed, "vectors", self._remedy)
        self._room_for = vectors

    def batches(self) -> Iterator[tuple[Keys, Tokens, Vectors]]:
        """Everything once, in the order of writing."""
        keys, places = self._index.all()
        for start in range(0, len(keys), _RECORD):
            part = places[start : start + _RECORD]
            yield keys[start : start + _RECORD], self.tokens_of(part), self.take(part)

    def rewrite(self) -> None:
        """Writes everything into one new shard, each vector once."""
        times = {key: time for shard in self._shards for key, time in shard.times.items()}
        for keys, tokens, vectors in self.batches():
            self.append(keys, tokens, vectors)
        for key, time in times.items():
            self._append_time(key, time)
        self.close()

    def close(self) -> None:
        """Closes this process's shard, its claims and all files."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self.claims.close()
        for shard in self._shards:
            shard.close()
        if self._in_use is not None:
            self._in_use.close()

    def end_shard(self) -> list[Path]:
        """Closes the files being written and returns them. The next batch starts new ones."""
        if self._writer is None:
            return []
        self._writer.close()
        stem = self._writer.stem
        self._writer = self._own = None
        return [stem.with_name(stem.name + ROWS), stem.with_name(stem.name + MANIFEST), self.folder / IDENTITY]

    def _hold(self) -> None:
        """Holds the folder before reading it, so that its files can't be deleted."""
        if self._in_use is not None:
            self._in_use.hold()

    def _find_shards(self, folder: Path) -> None:
        with contextlib.suppress(OSError), os.scandir(folder) as entries:
            new = [entry.path for entry in entries if entry.name.endswith(MANIFEST) and entry.path not in self._known]
            for path in sorted(new):
                self._add_shard(Shard(Path(path.removesuffix(MANIFEST))))

    def _add_shard(self, shard: Shard) -> None:
        self._known.add(f"{shard.stem}{MANIFEST}")
        self._shards.append(shard)
        self._tokens.append(np.empty(0, dtype=np.float32))

    def _remember(self, number: int, batches: Sequence[Batch]) -> None:
        known, end = self._tokens[number], max(batch.start + len(batch.keys) for batch in batches)
        if len(known) < end:
            known = np.zeros(max(end, 2 * len(known)), dtype=np.float32)
            known[: len(self._tokens[number])] = self._tokens[number]
            self._tokens[number] = known
        counts = np.array([len(batch.keys) for batch in batches])
        before = np.array([batch.start for batch in batches]) - (np.cumsum(counts) - counts)
        rows = np.arange(counts.sum(), dtype=np.int64) + np.repeat(before, counts)
        known[rows] = np.concatenate([batch.tokens for batch in batches])
        self._index.add(np.concatenate([batch.keys for batch in batches]), rows + (number << ROW_BITS))

    def _write_identity(self) -> None:
        with contextlib.suppress(BakeoffError):
            if read_json(self.folder / IDENTITY, dict[str, Any]) == self.identity:
                return
        write_json(self.folder / IDENTITY, self.identity)


def _check_shard(shard: Shard) -> list[Batch]:
    """The new batches of a shard. Every byte is checked, which takes seconds for gigabytes."""
    batches, done = [], 0
    with steps("cached vectors: MB checked", shard.row_bytes() >> 20) as advance:
        for batch in shard.new_batches():
            batches.append(batch)
            before, done = done, done + 4 * len(batch.keys) * shard.dimensions
            advance((done >> 20) - (before >> 20))
    return batches


def read_identity(folder: Path) -> Identity | None:
    """The identity of a space; from a shard if the file itself is missing or damaged."""
    with contextlib.suppress(BakeoffError):
        return read_json(folder / IDENTITY, dict[str, str | int | float | bool | None])
    for manifest in sorted(folder.glob(f"*{MANIFEST}")):
        shard = Shard(manifest.with_suffix(""))
        next(iter(shard.new_batches(trusted=True)), None)
        if shard.description is not None:
            return shard.description.identity
    return None
