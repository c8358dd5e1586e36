from __future__ import annotations

import math

import numpy as np
import pytest
from bakeoff_providers.base import Fitted, Role, check_batch
from bakeoff_providers.errors import EmbeddingFailed, InputError
from bakeoff_providers.tfidf import Tfidf
from sklearn.feature_extraction.text import TfidfVectorizer

from tests.errors import refuses

DOCUMENTS = ["vitamin C and vitamin D", "iron and zinc", "a river rose overnight", "the river and the sea"]


def fitted(documents: list[str] = DOCUMENTS, max_features: int = 8192) -> Tfidf:
    provider = Tfidf(max_features=max_features)
    provider.fit(documents)
    return provider


def test_weights_worked_out_by_hand() -> None:
    # Vocabulary: apple, pear. n = 2; df(apple) = 2, df(pear) = 1; idf = ln((1 + n) / (1 + df)) + 1.
    # "pear pear pear apple": tf = 1 + ln(count); then length 1. The last two dimensions are for unknown words.
    provider = fitted(["apple pear", "apple"])
    apple, pear = 1.0, (1 + math.log(3)) * (math.log(3 / 2) + 1)
    length = math.hypot(apple, pear)
    vectors = provider.embed(["pear pear pear apple"], Role.QUERY).vectors
    np.testing.assert_allclose(vectors, [[apple / length, pear / length, 0, 0]], atol=1e-6)


def test_vectors_agree_with_scikit_learn() -> None:
    reference = TfidfVectorizer(sublinear_tf=True, token_pattern=r"\w+").fit(DOCUMENTS)
    texts = [*DOCUMENTS, "iron in the river", "Vitamin c, vitamin c!"]
    batch = fitted().embed(texts, Role.DOCUMENT)
    assert batch.vectors.dtype == np.float32
    np.testing.assert_allclose(batch.vectors[:, :-2], reference.transform(texts).toarray(), atol=1e-6)
    assert not batch.vectors[:, -2:].any()


def test_words_of_one_letter_count() -> None:
    queries = fitted().embed(["C", "D"], Role.QUERY).vectors
    assert queries[0] @ queries[1] == 0


def test_a_query_without_a_known_word_is_at_0_from_every_document() -> None:
    provider = fitted()
    texts = [*DOCUMENTS, "xylophone", ""]
    documents = check_batch(provider.embed(texts, Role.DOCUMENT), texts, provider.card).vectors
    unknown = ["Schlagzeug", "!?"]
    queries = check_batch(provider.embed(unknown, Role.QUERY), unknown, provider.card).vectors
    assert not (queries @ documents.T).any()
    np.testing.assert_array_equal(np.linalg.norm(queries, axis=1), 1)
    np.testing.assert_array_equal(documents[4], documents[5])


def test_a_known_query_is_at_0_from_a_document_without_a_known_word() -> None:
    provider = fitted(["apple pear", "apple"])
    known = provider.embed(["apple pear"], Role.QUERY).vectors
    assert known[0] @ provider.embed(["zebra"], Role.DOCUMENT).vectors[0] == 0


def test_the_most_frequent_words_stay() -> None:
    provider = fitted(["river river sea", "river sea lake"], max_features=2)
    assert provider.card.dimensions == 4
    lake = provider.embed(["lake"], Role.QUERY).vectors
    np.testing.assert_array_equal(lake, [[0, 0, 1, 0]])


def test_the_identity_covers_what_was_learnt() -> None:
    same, again = fitted(), fitted()
    other_words = fitted([*DOCUMENTS[:3], "the river and the lake"])
    other_idf = fitted([*DOCUMENTS[:3], "the river and the sea and"])  # counts change, words and df do not
    rarer = fitted([*DOCUMENTS, "river"])
    assert same.identity(Role.QUERY) == again.identity(Role.QUERY) == other_idf.identity(Role.QUERY)
    revisions = {provider.identity(Role.QUERY)["revision"] for provider in (same, other_words, rarer)}
    assert len(revisions) == 3


def test_it_is_a_provider_that_must_be_fitted() -> None:
    provider = Tfidf()
    assert isinstance(provider, Fitted)
    with refuses(EmbeddingFailed):
        provider.embed(["river"], Role.QUERY)
    with refuses(EmbeddingFailed):
        provider.identity(Role.QUERY)


@pytest.mark.parametrize("documents", [[], ["", "!?"]])
def test_a_corpus_without_words_is_refused(documents: list[str]) -> None:
    with refuses(InputError, place="tfidf"):
        Tfidf().fit(documents)


def test_no_text_gives_no_vector() -> None:
    assert fitted().embed([], Role.QUERY).vectors.shape[0] == 0


def test_a_vocabulary_of_nothing_is_refused() -> None:
    with refuses(InputError, "max_features", place="tfidf"):
        Tfidf(max_features=0)
