"""Answers that were made elsewhere and are in files."""

from __future__ import annotations

from typing import ClassVar

from bakeoff_providers.errors import InputError

from bakeoff.lineup.contender import Contender
from bakeoff.running.embeddings import Embeddings
from bakeoff.running.preparers.base import Preparer, Workshop
from bakeoff.running.stages import Given


class FromFiles(Preparer):
    """One file, or one for each seed; the kind of task reads them."""

    asked: ClassVar[bool] = False

    def check(self, contender: Contender, embeddings: Embeddings) -> None:
        """All files are there."""
        for file in contender.answers.values():
            if not (embeddings.folder / file).is_file():
                raise InputError("no such file", file=embeddings.folder / file, remedy="check the path")

    def prepare(self, contender: Contender, workshop: Workshop) -> Given:
        """Nothing to prepare but the paths."""
        folder = workshop.embeddings.folder
        return Given(contender, {seed: folder / file for seed, file in contender.answers.items()})
