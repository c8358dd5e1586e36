"""Folders of embedded shards (`00003-of-00064/`): a vector cache each, with receipts."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec
from bakeoff_providers.base import Role
from bakeoff_providers.errors import InputError

from bakeoff.core.files import read_json, write_json
from bakeoff.core.hashing import space_name
from bakeoff.core.printable import some, whole_number
from bakeoff.embedding.corpus_chunks import in_blocks
from bakeoff.embedding.embed import Embedder
from bakeoff.embedding.vector_rows import BLOCK
from bakeoff.systems.base import System

COMPLETE = "complete.json"
SHOWN = 5  # shards that an error names
_NAME = re.compile(r"(\d+)-of-(\d+)")
_GIVEN = re.compile(r"(\d+)/(\d+)")


class Receipt(msgspec.Struct, frozen=True):
    """Written when a shard is complete: its number of texts, and the corpus'."""

    texts: int
    of_texts: int


@dataclass(frozen=True, slots=True)
class ShardNumber:
    """One of several equal parts, counted from 1."""

    number: int
    of: int

    @classmethod
    def parse(cls, text: str) -> ShardNumber:
        """`3/64`."""
        given = _GIVEN.fullmatch(text.strip())
        number, of = map(whole_number, given.groups()) if given else (None, None)
        if number is None or of is None or not 1 <= number <= of:
            raise InputError(f"{text!r} is not a shard", place="--shard", remedy="write it as 3/64; the first is 1/64")
        return cls(number, of)

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    @property
    def folder(self) -> str:
        """The folder's name, which sorts in order."""
        return f"{self.number:05}-of-{self.of:05}"

    def share(self, count: int) -> tuple[int, int]:
        """Its range of `count` items."""
        return count * (self.number - 1) // self.of, count * self.number // self.of


def complete_folders(folder: Path, listed: Collection[str] | None = None, named: str = "") -> tuple[Path, ...]:
    """Folders of all shards, in order. The error for a missing shard names the command that makes it.

    For a copy, only `listed` files count, since files may have been removed at its address, `named`.
    """
    address = named or folder
    if not folder.is_dir():
        raise InputError("is not a folder", file=address, remedy="make shards first: bakeoff embed --shard 1/8 --out …")
    if listed is None:
        there_now = [*folder.glob("*-of-*"), *folder.glob(f"*-of-*/*/{COMPLETE}")]
        listed = [path.relative_to(folder).as_posix() for path in there_now]
    there: dict[int, dict[int, Path]] = {}
    for part in sorted({file.partition("/")[0] for file in listed}):
        if name := _NAME.fullmatch(part):
            there.setdefault(int(name[2]), {})[int(name[1])] = folder / part
    if not there:
        raise InputError("holds no shards", file=address, remedy="make them first: bakeoff embed --shard 1/8 --out …")
    if len(there) > 1:
        counts = " and of ".join(map(str, sorted(there)))
        raise InputError(f"holds shards of {counts}", file=address, remedy="keep one of these sets")
    ((of, paths),) = there.items()
    complete = {file.partition("/")[0] for file in listed if file.endswith(f"/{COMPLETE}")}
    missing = [n for n in range(1, of + 1) if n not in paths or paths[n].name not in complete]
    if missing:
        raise InputError(
            f"{_shards(missing, of)} not complete",
            file=address,
            remedy=f"bakeoff embed LINEUP --shard {missing[0]}/{of} --out {address}",
        )
    return tuple(paths[number] for number in range(1, of + 1))


def note_complete(embedder: Embedder, role: Role, receipt: Receipt) -> None:
    """Mark this role of this shard as complete."""
    space = embedder.space(role)
    assert space is not None
    if not space.folder.is_dir():  # a shard without texts has a receipt, too
        space.folder.mkdir(parents=True)
    write_json(space.folder / COMPLETE, receipt)


def check_complete(embedder: Embedder, texts: Sequence[str], contender: System, folders: Sequence[Path]) -> None:
    """Refuse a contender with a missing shard before any call; its documents are never paid for."""
    space = embedder.space(Role.DOCUMENT)
    if space is None:
        raise InputError(f"{contender.label}: nothing tells when its code changes", remedy="give it a revision")
    name, of = space_name(space.identity), len(folders)
    receipts = [folder / name / COMPLETE for folder in folders]
    if missing := [number for number, receipt in enumerate(receipts, start=1) if not receipt.is_file()]:
        raise InputError(
            f"{_shards(missing, of)} not complete for {contender.label}",
            file=folders[0].parent,
            remedy=f"bakeoff embed LINEUP --contender {contender.label} --shard {missing[0]}/{of} "
            f"--out {folders[0].parent}",
        )
    absent = sum(len(embedder.missing(block, Role.DOCUMENT)) for block in in_blocks(texts, BLOCK))
    if absent:
        known = read_json(receipts[0], Receipt).of_texts
        raise InputError(
            f"{absent} texts of {contender.label} are in none of the {of} shards, which were made of {known} texts",
            file=folders[0].parent,
            remedy="the corpus or its chunking has changed: make the shards again; unchanged texts are reused",
        )


def _shards(numbers: Sequence[int], of: int) -> str:
    named = some([f"{number}/{of}" for number in numbers], SHOWN)
    return f"shard {named} is" if len(numbers) == 1 else f"shards {named} are"
