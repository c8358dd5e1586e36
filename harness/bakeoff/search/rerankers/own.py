"""A user's function as a reranker: `rerank(query, documents)` returns one score per document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from bakeoff_providers.code import code_identity, load_from_file
from bakeoff_providers.errors import InputError, StoreError
from bakeoff_providers.shared_options import File, FunctionName, Label

from bakeoff.search.rerankers import Reranked, Reranker


class OwnReranker(Reranker):
    """Written as `provider = "file:mine.py:rerank"`. Scores are cached under a revision or a hash of the file."""

    name: ClassVar[str] = "own"
    default_model: ClassVar[str] = ""
    local: ClassVar[bool] = True
    paths: ClassVar[tuple[str, ...]] = ("file",)

    def __init__(
        self,
        *,
        file: File = "",
        function: FunctionName = "",
        model: Label = None,
        revision: Annotated[str | None, "version for cached scores; default: a hash of the file"] = None,
    ) -> None:
        if not file or not function:
            raise InputError("names no function", remedy='provider = "file:mine.py:rerank"')
        self._code, self._revision, self._model = load_from_file(file, function), revision, model or function

    @property
    def model(self) -> str:
        """The function's name."""
        return self._model

    def code(self) -> dict[str, str] | None:
        """A declared revision, or a hash of the file."""
        return {"revision": self._revision} if self._revision else code_identity(self._code)

    def rank(self, query: str, documents: Sequence[str]) -> Reranked:
        """One call."""
        answer: Any = self._code(query, list(documents))
        try:
            return Reranked([float(score) for score in answer])
        except (TypeError, ValueError):
            raise StoreError(f"{self.model} did not return a list of scores") from None
