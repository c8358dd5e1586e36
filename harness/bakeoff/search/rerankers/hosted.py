"""Cohere's and Voyage's rerankers, through the SDKs and connections of their embeddings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, ClassVar

from bakeoff_providers.answers import Expected
from bakeoff_providers.cohere import Cohere
from bakeoff_providers.connection import TIMEOUT, Connection
from bakeoff_providers.errors import StoreError
from bakeoff_providers.shared_options import BaseUrl, KeyEnv, Model, Timeout
from bakeoff_providers.voyage import Voyage

from bakeoff.search.rerankers.base import Reranked, Reranker


class HostedReranker(Connection, Reranker):
    """One request per query; prices are list prices that a line-up may replace."""

    prices: ClassVar[dict[str, float]] = {}

    def __init__(
        self,
        *,
        model: Model = None,
        price: Annotated[
            float | None, "US dollars a thousand searches or a million tokens, as the service counts"
        ] = None,
        base_url: BaseUrl = None,
        timeout: Timeout = TIMEOUT,
        key_env: KeyEnv = None,
    ) -> None:
        self._model = model or self.default_model
        super().__init__(base_url=base_url, timeout=timeout, key_env=key_env)
        self._price = self.prices.get(self._model) if price is None else price

    @property
    def model(self) -> str:
        """As the service calls it."""
        return self._model

    def identity(self) -> dict[str, str | int | float | bool | None] | None:
        """Another server may mean another model of the same name."""
        server = {"server": self.shown_url} if self.foreign else {}
        return {"reranker": self.name, "model": self.model, **server}

    def rank(self, query: str, documents: Sequence[str]) -> Reranked:
        """The results come by index, best first: they are put back in the order of the candidates."""
        sdk = self._connected()
        results, tokens = self._answered(lambda: self._call(sdk, query, list(documents)), Expected())
        scores: dict[int, float] = {int(result.index): float(result.relevance_score) for result in results}
        if sorted(scores) != list(range(len(documents))):
            raise StoreError(f"{self.name} {self.model} answered {len(scores)} results for {len(documents)} documents")
        return Reranked([scores[place] for place in range(len(documents))], tokens)

    def _call(self, sdk: Any, query: str, documents: list[str]) -> tuple[Any, int | None]:
        raise NotImplementedError


class CohereReranker(HostedReranker):
    """Charged by the search: one query with up to 100 documents."""

    name: ClassVar[str] = "cohere"
    default_model: ClassVar[str] = "rerank-v3.5"
    extra: ClassVar[str | None] = Cohere.extra
    modules: ClassVar[tuple[str, ...]] = Cohere.modules
    keys: ClassVar[tuple[str, ...]] = Cohere.keys
    own_url: ClassVar[str] = Cohere.own_url
    url_variable: ClassVar[str | None] = Cohere.url_variable

    def cost(self, tokens: float, searches: int) -> float | None:  # noqa: ARG002 - tokens are free
        """Dollars for a thousand searches come from the line-up's `price`; none is known here."""
        return None if self._price is None else searches * self._price / 1000

    def _connect(self, key: str) -> Any:
        return Cohere._connect(self, key)  # type: ignore[arg-type]

    def _disconnect(self, sdk: Any) -> None:
        sdk.__exit__(None, None, None)

    def _call(self, sdk: Any, query: str, documents: list[str]) -> tuple[Any, int | None]:
        answer = sdk.rerank(
            model=self.model, query=query, documents=documents, top_n=len(documents), request_options={"max_retries": 0}
        )
        return answer.results, None


class VoyageReranker(HostedReranker):
    """Charged by the token."""

    name: ClassVar[str] = "voyage"
    default_model: ClassVar[str] = "rerank-2.5"
    extra: ClassVar[str | None] = Voyage.extra
    modules: ClassVar[tuple[str, ...]] = Voyage.modules
    keys: ClassVar[tuple[str, ...]] = Voyage.keys
    own_url: ClassVar[str] = Voyage.own_url

    def cost(self, tokens: float, searches: int) -> float | None:  # noqa: ARG002 - searches are free
        """Dollars for a million tokens come from the line-up's `price`; none is known here."""
        return None if self._price is None else tokens * self._price / 1e6

    def _connect(self, key: str) -> Any:
        return Voyage._connect(self, key)  # type: ignore[arg-type]

    def _disconnect(self, sdk: Any) -> None:
        """Nothing: the SDK keeps its sessions for each thread."""

    def _call(self, sdk: Any, query: str, documents: list[str]) -> tuple[Any, int | None]:
        answer = sdk.rerank(query, documents, model=self.model, truncation=True)
        return answer.results, int(answer.total_tokens)
