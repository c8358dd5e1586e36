"""What every provider must do, as tests that any package can run. Needs pytest.

class TestMine(ProviderConformance):
    @pytest.fixture
    def make(self) -> MakeProvider:
        return Mine

    @pytest.fixture
    def other_options(self) -> dict[str, Any]:
        return {"dimensions": 32}
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from bakeoff_providers.base import Fitted, Provider, Role, Vectors, cache_key, check_batch
from bakeoff_providers.errors import BakeoffError

TEXTS = ["copper mines of the north", "sailing on lakes", "forest trails", "a lake in the north", "mines and trails"]
ODD = ["", " \n\t ", "日本の湖", "🚣" * 20, "word " * 3000, "null\0byte"]
SAME = 1e-3  # tolerance: other batch sizes sum in another order

MakeProvider = Callable[..., Provider]


class ProviderConformance:
    """Subclass it and define how the provider is made. `other_options` has a non-default value per option."""

    @pytest.fixture
    def make(self) -> MakeProvider:
        """The class itself, or a function that takes its options."""
        raise NotImplementedError

    @pytest.fixture
    def other_options(self) -> dict[str, Any]:
        """A non-default value for each option."""
        return {}

    @pytest.fixture
    def provider(self, make: MakeProvider) -> Iterator[Provider]:
        """The provider with default options, ready to embed."""
        made = _fit(make())
        yield made
        made.close()

    def test_it_can_run_here(self, provider: Provider) -> None:
        assert provider.missing() is None
        assert provider.card.name
        assert provider.card.batch_items >= 1

    @pytest.mark.parametrize("role", list(Role))
    def test_every_text_gets_its_vector(self, provider: Provider, role: Role) -> None:
        batch = check_batch(provider.embed(TEXTS, role), TEXTS, provider.card)
        assert batch.vectors.dtype == np.float32
        assert batch.tokens is None or batch.tokens > 0
        backwards = _embed(provider, TEXTS[::-1], role)
        np.testing.assert_allclose(backwards[::-1], batch.vectors, atol=SAME)

    @pytest.mark.parametrize("role", list(Role))
    def test_a_vector_does_not_depend_on_the_other_texts(self, provider: Provider, role: Role) -> None:
        alone = np.concatenate([_embed(provider, [text], role) for text in TEXTS])
        np.testing.assert_allclose(alone, _embed(provider, TEXTS, role), atol=SAME)

    @pytest.mark.parametrize("text", ODD, ids=["empty", "blank", "Japanese", "emoji", "long", "null"])
    def test_an_odd_text_is_embedded_or_refused_with_a_reason(self, provider: Provider, text: str) -> None:
        with contextlib.suppress(BakeoffError):
            check_batch(provider.embed([text], Role.DOCUMENT), [text], provider.card)

    def test_threads_get_the_same_vectors(self, provider: Provider) -> None:
        alone = _embed(provider, TEXTS, Role.QUERY)
        with ThreadPoolExecutor(4) as pool:
            for vectors in pool.map(lambda _: _embed(provider, TEXTS, Role.QUERY), range(8)):
                np.testing.assert_allclose(vectors, alone, atol=SAME)

    def test_its_identity_is_plain_and_the_same_when_made_again(self, make: MakeProvider) -> None:
        first, again = _fit(make()), _fit(make())
        for role in Role:
            key = cache_key(first, role)
            assert key == cache_key(again, role)
            assert all(isinstance(value, (str, int, float, bool, type(None))) for value in (key or {}).values())
            np.testing.assert_allclose(_embed(first, TEXTS, role), _embed(again, TEXTS, role), atol=SAME)

    def test_what_changes_a_vector_changes_the_cache_key(
        self, make: MakeProvider, provider: Provider, other_options: dict[str, Any]
    ) -> None:
        """Otherwise one contender would silently get another's vectors."""
        for option, value in other_options.items():
            other = _fit(make(**{option: value}))
            for role in Role:
                if not _equal(_embed(other, TEXTS, role), _embed(provider, TEXTS, role)):
                    assert cache_key(other, role) != cache_key(provider, role), f"{option} is not in the key"
            other.close()

    def test_tokens_are_counted(self, provider: Provider) -> None:
        assert 0 < provider.count_tokens(TEXTS[0]) < provider.count_tokens(TEXTS[0] * 3)

    def test_it_can_be_closed_twice(self, make: MakeProvider) -> None:
        made = _fit(make())
        made.close()
        made.close()


def _fit(provider: Provider) -> Provider:
    if isinstance(provider, Fitted):
        provider.fit(TEXTS)
    return provider


def _embed(provider: Provider, texts: list[str], role: Role) -> Vectors:
    return provider.embed(texts, role).vectors


def _equal(one: Vectors, other: Vectors) -> bool:
    return one.shape == other.shape and np.allclose(one, other, atol=SAME)
