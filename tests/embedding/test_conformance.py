"""Providers of ours through the suite that other packages run, and providers that must not pass it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

import numpy as np
import pytest
from bakeoff.extensions.conformance.providers import MakeProvider, ProviderConformance
from bakeoff_providers import PROVIDERS
from bakeoff_providers.base import EmbeddingBatch, ModelCard, Provider, Role
from bakeoff_providers.errors import EmbeddingFailed
from bakeoff_providers.options import Transport

from tests.providers.real_weights import require
from tests.services import ADDRESSES, HOSTED, KEYS
from tests.wire import PROXIES, WireServer

LOCAL: dict[str, dict[str, Any]] = {
    "fake": {"seed": 1, "dimensions": 32},
    "tfidf": {"max_features": 5},
    "wordllama": {},
    "minilm": {"threads": 1},
    "granite": {"threads": 1},
    "use": {},
}


class TestOnThisMachine(ProviderConformance):
    @pytest.fixture(params=LOCAL)
    def name(self, request: pytest.FixtureRequest) -> str:
        if request.param in ("minilm", "granite", "use"):
            require(request.param)
        return str(request.param)

    @pytest.fixture
    def make(self, name: str) -> MakeProvider:
        return PROVIDERS.get(name)

    @pytest.fixture
    def other_options(self, name: str) -> dict[str, Any]:
        return LOCAL[name]


class TestHosted(ProviderConformance):
    @pytest.fixture(params=HOSTED)
    def make(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeProvider]:
        for name in (*PROXIES, *ADDRESSES.values()):
            monkeypatch.delenv(name, raising=False)
        for name in KEYS:
            monkeypatch.setenv(name, "test-key-0123456789abcdef")
        name = str(request.param)
        with WireServer() as wire:
            yield lambda **options: PROVIDERS.create(name, base_url=wire.base(name), **options)

    @pytest.fixture
    def other_options(self) -> dict[str, Any]:
        return {"max_chars": 5, "query_prompt": "Q: ", "timeout": 30.0, "batch_items": 2}


class Wrong(Provider):
    """Lengths of texts, with one mistake at a time."""

    name, default_model, local = "wrong", "v1", True

    def __init__(
        self, mistake: str = "", shift: Annotated[float, "added to each vector: no transport at all", Transport] = 0.0
    ) -> None:
        self.mistake, self.shift = mistake, shift
        self.card = ModelCard(name="v1", dimensions=2)

    def embed(self, texts: Sequence[str], role: Role) -> EmbeddingBatch:
        vectors = np.array([[len(text) + self.shift, 1.0] for text in texts], dtype=np.float32)
        match self.mistake:
            case "count":
                vectors = vectors[1:]
            case "order":
                vectors = vectors[np.argsort(vectors[:, 0])]
            case "company":
                vectors[:, 1] = len(texts)
            case "type":
                return EmbeddingBatch(vectors.astype(np.float64))
        return EmbeddingBatch(vectors)


@pytest.mark.parametrize(
    ("mistake", "check"),
    [
        ("count", "test_every_text_gets_its_vector"),
        ("order", "test_every_text_gets_its_vector"),
        ("type", "test_every_text_gets_its_vector"),
        ("company", "test_a_vector_does_not_depend_on_the_other_texts"),
    ],
)
def test_a_mistake_is_found(mistake: str, check: str) -> None:
    test = getattr(ProviderConformance(), check)
    test(Wrong(), Role.DOCUMENT)
    with pytest.raises((AssertionError, EmbeddingFailed)):
        test(Wrong(mistake), Role.DOCUMENT)


def test_an_option_that_is_wrongly_declared_as_transport_is_found() -> None:
    suite = ProviderConformance()
    suite.test_what_changes_a_vector_changes_the_cache_key(Wrong, Wrong(), {"mistake": "company"})
    with pytest.raises(AssertionError):
        suite.test_what_changes_a_vector_changes_the_cache_key(Wrong, Wrong(), {"shift": 7.0})
