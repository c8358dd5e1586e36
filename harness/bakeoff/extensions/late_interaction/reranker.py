"""Late interaction as a reranker: MaxSim over token vectors that are computed in advance."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import Provider, Role
from bakeoff_providers.bert_onnx import Precision
from bakeoff_providers.errors import InputError
from bakeoff_providers.needs import Needs
from bakeoff_providers.shared_options import Model

from bakeoff.calls.key_index import KeyIndex, keys_of
from bakeoff.core.facts import Fact
from bakeoff.embedding.cache import VectorCache
from bakeoff.embedding.corpus_chunks import ChosenTexts
from bakeoff.extensions.late_interaction.stores import maxsim
from bakeoff.extensions.late_interaction.token_rows import TokenRows, check_tokens, embed_tokens, storage_bill
from bakeoff.search.rerankers import Reranked, Reranker
from bakeoff.search.stores.scratch import scratch


class MaxSim(Reranker):
    """Token vectors of a local provider (`provider = "minilm"`), compared by MaxSim.

    A [[rerank]] with `vectors = "tokens"` is this with its provider.
    """

    name: ClassVar[str] = "maxsim"
    default_model: ClassVar[str] = ""
    local: ClassVar[bool] = True

    def __init__(
        self,
        *,
        model: Model = None,
        provider: Annotated[str, "provider of the token vectors: minilm or granite"] = "minilm",
        compute: Annotated[Precision, "int8: about twice as fast, slightly different vectors"] = "fp32",
    ) -> None:
        if not PROVIDERS.get(provider).local:
            raise InputError(f"{provider} has no token vectors", place="provider", remedy="minilm and granite do")
        options = {"compute": compute} if compute != "fp32" else {}
        self._provider: Provider = PROVIDERS.create(provider, **({"model": model} if model else {}), **options)
        self._tokens = check_tokens(self._provider)
        self._texts: Sequence[str] = ()  # of all documents, read when they are needed
        self._numbers = KeyIndex()
        self._rows: TokenRows | None = None
        self._resources = ExitStack()

    @classmethod
    def needs(cls, **options: Any) -> Needs:
        """The provider's requirements."""
        return PROVIDERS.get(options.get("provider", "minilm")).needs()

    @property
    def model(self) -> str:
        """The provider's."""
        return self._provider.model

    def prepare(self, documents: Sequence[str], cache: VectorCache | None) -> Fact:
        """Embed the tokens of every document, and report their size."""
        everything, self._numbers = KeyIndex(), KeyIndex()
        everything.add(keys_of(documents), np.arange(len(documents)))
        keys, first = everything.all()  # each text once
        self._numbers.add(keys, np.arange(len(keys)))
        self._texts = ChosenTexts(documents, first)
        self._rows = embed_tokens(self._provider, self._texts, cache, self._folder).rows
        return storage_bill(self._rows)

    def rank(self, query: str, documents: Sequence[str]) -> Reranked:
        """Embed the query, which counts as the stage's time, and any document not yet embedded."""
        wanted = keys_of(documents)
        if self._rows is None or (self._numbers.find(wanted) < 0).any():
            self.prepare([*self._texts, *documents], None)
        assert self._rows is not None
        vectors = self._tokens.embed_tokens([query], Role.QUERY).vectors[0]
        tokens, begins = self._rows.of(self._numbers.find(wanted).tolist())
        return Reranked(maxsim(vectors, tokens, begins).tolist())

    def close(self) -> None:
        """Free the weights and this run's vectors."""
        self._provider.close()
        if self._rows is not None:
            self._rows.space.close()
        self._resources.close()

    @cached_property
    def _folder(self) -> Path:
        return self._resources.enter_context(scratch("tokens"))
