"""Very many ids that are read in their order: the bytes of all in one piece, and where each ends."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate, islice
from typing import overload


class PackedIds(Sequence[str]):
    """A list of ids without an object for each: its bytes and 8 more. What is asked for is made anew."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._bytes = bytearray()
        self._ends = array("q")
        self.extend(names)

    def extend(self, names: Iterable[str]) -> None:
        """Further ones, best some thousands at a time."""
        encoded = [name.encode("utf-8", "surrogatepass") for name in names]
        self._ends.extend(islice(accumulate(map(len, encoded), initial=len(self._bytes)), 1, None))
        self._bytes += b"".join(encoded)

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self._at(number) for number in range(*place.indices(len(self)))]
        return self._at(range(len(self))[place])

    def __iter__(self) -> Iterator[str]:
        return map(self._at, range(len(self)))

    def _at(self, number: int) -> str:
        start = self._ends[number - 1] if number else 0
        return self._bytes[start : self._ends[number]].decode("utf-8", "surrogatepass")
