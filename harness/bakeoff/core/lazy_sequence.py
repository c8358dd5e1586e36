"""Sequences whose items are read on access."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TypeVar, overload

T = TypeVar("T")


class LazySequence(Sequence[T]):
    """Indexing, slicing and iteration, given the length and a reader of consecutive items."""

    __slots__ = ()

    @abstractmethod
    def _between(self, start: int, stop: int) -> Iterator[T]:
        """The items from `start` up to, not including, `stop`."""

    @overload
    def __getitem__(self, place: int) -> T: ...

    @overload
    def __getitem__(self, place: slice) -> list[T]: ...

    def __getitem__(self, place: int | slice) -> T | list[T]:
        if isinstance(place, slice):
            start, stop, step = place.indices(len(self))
            if step == 1:
                return list(self._between(start, stop))
            return [self[number] for number in range(start, stop, step)]
        number = range(len(self))[place]
        return next(self._between(number, number + 1))

    def __iter__(self) -> Iterator[T]:
        return self._between(0, len(self))
