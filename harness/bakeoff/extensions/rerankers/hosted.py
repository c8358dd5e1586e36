"""Cohere's and Voyage's rerankers, through the same SDKs as their embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

import msgspec
from bakeoff_providers.answers import Envelope, Expected, RefusedAnswer, in_order, read_count, rerank_bytes
from bakeoff_providers.cohere import Cohere
from bakeoff_providers.connection import TIMEOUT, Connection
from bakeoff_providers.options import Transport
from bakeoff_providers.shared_options import BaseUrl, KeyEnv, Model, Timeout
from bakeoff_providers.voyage import Voyage

from bakeoff.search.rerankers import Reranked, Reranker


class _Result(msgspec.Struct, frozen=True):
    index: int
    relevance_score: float


class _CohereAnswer(Envelope, frozen=True):
    rows: list[_Result] = msgspec.field(name="results")


class _VoyageAnswer(Envelope, frozen=True):
    rows: list[_Result] = msgspec.field(name="data")


class HostedReranker(Connection, Reranker):
    """One request per query. The line-up sets the price."""

    shape: ClassVar[Any]  # of the response as JSON, with types

    def __init__(
        self,
        *,
        model: Model = None,
        price: Annotated[
            float | None, "US dollars a thousand searches or a million tokens, as the service counts", Transport
        ] = None,
        base_url: BaseUrl = None,
        timeout: Timeout = TIMEOUT,
        key_env: KeyEnv = None,
    ) -> None:
        self._model = model or self.default_model
        super().__init__(base_url=base_url, timeout=timeout, key_env=key_env)
        self._price = price

    @property
    def model(self) -> str:
        """The service's name of the model."""
        return self._model

    def identity(self) -> dict[str, str | int | float | bool | None]:
        """Includes the server, which may have another model of the same name."""
        server = {"server": self.public_url} if self.foreign else {}
        return {"reranker": self.name, "model": self.model, **server}

    def rank(self, query: str, documents: Sequence[str]) -> Reranked:
        """Scores in the order of the candidates. The service returns them by index, best first."""
        sdk = self._get_sdk()
        expected = Expected(rerank_bytes(list(documents)), self.shape)

        def work() -> Reranked:
            tokens = self._call(sdk, query, list(documents))
            results = expected.require().rows
            if len(results) != len(documents):
                raise RefusedAnswer(f"{len(results)} results for {len(documents)} documents")
            scores = in_order([result.relevance_score for result in results], [result.index for result in results])
            return Reranked(scores, read_count(tokens))

        return self._run_call(work, expected)

    def _call(self, sdk: Any, query: str, documents: list[str]) -> Any:
        """Call the SDK. Returns the tokens; scores are read from the checked response."""
        raise NotImplementedError


class CohereReranker(HostedReranker):
    """Charged per search: one query with up to 100 documents."""

    name: ClassVar[str] = "cohere"
    default_model: ClassVar[str] = "rerank-v3.5"
    extra: ClassVar[str | None] = Cohere.extra
    modules: ClassVar[tuple[str, ...]] = Cohere.modules
    keys: ClassVar[tuple[str, ...]] = Cohere.keys
    own_url: ClassVar[str] = Cohere.own_url
    url_variable: ClassVar[str | None] = Cohere.url_variable
    shape: ClassVar[Any] = _CohereAnswer

    def cost(self, tokens: float, searches: int) -> float | None:  # noqa: ARG002 - tokens are free
        """Uses the line-up's `price` per thousand searches; there is no list price."""
        return None if self._price is None else searches * self._price / 1000

    def _connect(self, key: str) -> Any:
        return Cohere._connect(self, key)  # type: ignore[arg-type]

    def _disconnect(self, sdk: Any) -> None:
        sdk.__exit__(None, None, None)

    def _call(self, sdk: Any, query: str, documents: list[str]) -> Any:
        sdk.rerank(
            model=self.model, query=query, documents=documents, top_n=len(documents), request_options={"max_retries": 0}
        )


class VoyageReranker(HostedReranker):
    """Charged per token."""

    name: ClassVar[str] = "voyage"
    default_model: ClassVar[str] = "rerank-2.5"
    extra: ClassVar[str | None] = Voyage.extra
    modules: ClassVar[tuple[str, ...]] = Voyage.modules
    keys: ClassVar[tuple[str, ...]] = Voyage.keys
    own_url: ClassVar[str] = Voyage.own_url
    url_variable: ClassVar[str | None] = Voyage.url_variable
    shape: ClassVar[Any] = _VoyageAnswer

    def cost(self, tokens: float, searches: int) -> float | None:  # noqa: ARG002 - searches are free
        """Dollars for a million tokens come from the line-up's `price`; none is known here."""
        return None if self._price is None else tokens * self._price / 1e6

    def _connect(self, key: str) -> Any:
        return Voyage._connect(self, key)  # type: ignore[arg-type]

    def _disconnect(self, sdk: Any) -> None:
        """Nothing to do, since the SDK keeps a session per thread."""

    def _call(self, sdk: Any, query: str, documents: list[str]) -> Any:
        return sdk.rerank(query, documents, model=self.model, truncation=True).total_tokens
