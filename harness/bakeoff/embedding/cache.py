"""The vector cache: paid for once, written batch by batch, safe against kills and concurrent processes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bakeoff.calls.locks import lock_all
from bakeoff.core.hashing import Identity, space_name
from bakeoff.embedding.shards import MANIFEST, ROWS
from bakeoff.embedding.space import IDENTITY, IN_USE, REMEDY, Space, read_identity

__all__ = ["Space", "SpaceInfo", "VectorCache"]


@dataclass(frozen=True, slots=True)
class SpaceInfo:
    """One space, as `bakeoff cache info` shows it. The identity is empty if nothing readable records it."""

    name: str
    identity: Identity
    vectors: int
    damaged: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Freed:
    """What pruning or clearing freed. `in_use` spaces were skipped because a process reads or writes them."""

    size_bytes: int
    in_use: int


class VectorCache:
    """All spaces in one folder."""

    space_type: ClassVar[type[Space]] = Space

    def __init__(
        self,
        folder: Path,
        complete: Sequence[Path] = (),
        fetch: Callable[[str], object] | None = None,
        remedy: str = REMEDY,
    ) -> None:
        """`complete` caches are read-only, besides the one that is written to.

        If the folder is a copy of a remote one, `fetch` updates the space of a name. `remedy` is for a full disk.
        """
        self.folder, self.complete, self.fetch, self.remedy = folder, complete, fetch, remedy

    def space(self, identity: Identity) -> Space:
        """The space of this identity, created if it is new."""
        name = space_name(identity)
        if self.fetch is not None:
            self.fetch(name)
        complete = [folder / name for folder in self.complete]
        return self.space_type(self.folder / name, identity, complete, remedy=self.remedy)

    def spaces(self) -> Iterator[SpaceInfo]:
        """All spaces, for display and clearing."""
        for folder in self._folders():
            identity = read_identity(folder)
            space = Space(folder, identity or {})
            damaged = space.damaged + (identity is None)
            yield SpaceInfo(folder.name, identity or {}, len(space), damaged, _size(folder))
            space.close()

    def prune(self) -> Freed:
        """Rewrites spaces with damaged, duplicate or foreign records as one shard of the sound ones."""
        freed = in_use = 0
        for folder in self._folders():
            identity = read_identity(folder)
            if identity is None:
                continue  # its vectors may be sound but can't be identified, so only `clear` removes them
            before = _size(folder)
            with _alone(folder, _manifests(folder)) as free:
                in_use += not free
                if free:
                    _prune(folder, identity)
                    freed += before - _size(folder)
        return Freed(freed, in_use)

    def clear(self) -> Freed:
        """Deletes every space that no process reads or writes."""
        freed = in_use = 0
        for folder in self._folders():
            with _alone(folder, _manifests(folder)) as free:
                if not free:
                    in_use += 1
                    continue
                freed += _size(folder)
                delete_space(folder)
        return Freed(freed, in_use)

    def _folders(self) -> list[Path]:
        if not self.folder.is_dir():
            return []
        marks = (IDENTITY, f"*{MANIFEST}")
        return sorted(
            folder for folder in self.folder.iterdir() if any(next(folder.glob(mark), None) for mark in marks)
        )


def delete_space(folder: Path) -> None:
    """Deletes a space, the lock last: a process that waits for it finds nothing half-deleted."""
    for part in sorted(folder.iterdir(), key=lambda part: part.name == IN_USE):
        with suppress(OSError):
            part.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def _alone(folder: Path, files: list[Path]) -> AbstractContextManager[bool]:
    """Whether no other process has opened the space. Within the block none can."""
    with suppress(OSError):
        (folder / IN_USE).touch()
    return lock_all([folder / IN_USE, *files])


def _prune(folder: Path, identity: Identity) -> None:
    space = Space(folder, identity, shared=False)
    old = [manifest.with_suffix("") for manifest in _manifests(folder)]
    whole = (len(space) * 4 * (space.dimensions or 0)) == sum(
        stem.with_name(stem.name + ROWS).stat().st_size for stem in old if stem.with_name(stem.name + ROWS).exists()
    )
    if not (whole and len(old) <= 1 and not space.damaged):
        space.rewrite()
        for stem in old:
            stem.with_name(stem.name + MANIFEST).unlink(missing_ok=True)
            stem.with_name(stem.name + ROWS).unlink(missing_ok=True)
    space.close()


def _manifests(folder: Path) -> list[Path]:
    return sorted(folder.glob(f"*{MANIFEST}"))


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())
