"""What a type of row supplies: how a contender of the line-up becomes something that can be asked."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from bakeoff.lineup.contender import Contender
from bakeoff.running.embeddings import Embeddings
from bakeoff.running.stages import Given, NotRun, Prepared


@dataclass(frozen=True, slots=True)
class PreparationContext:
    """What preparing may use: the embedded corpus, a folder for this row alone, and the rows before it by label."""

    embeddings: Embeddings
    folder: Path
    ready: Mapping[str, Prepared | Given | NotRun]


class Preparer(ABC):
    """One type of row. `asked` is False where the answers are there already: they are read before anything costs."""

    asked: ClassVar[bool] = True

    def check(self, contender: Contender, embeddings: Embeddings) -> None:  # noqa: B027 - some can't be wrong
        """Raises InputError for what the line-up has wrong with this row; called before any row is prepared."""

    def try_out(self, contender: Contender, embeddings: Embeddings) -> None:  # noqa: B027
        """What `validate` looks at besides: whether its parts can be made and its servers live. Embeds nothing."""

    @abstractmethod
    def prepare(self, contender: Contender, context: PreparationContext) -> Prepared | Given:
        """Ready to be asked, or a reason in an exception, which costs this row alone."""
