from __future__ import annotations

from bakeoff.core.task import ChunkStrategy, Document, DocumentChunking
from bakeoff.embedding.chunking import ContenderChunking, contender_chunks, document_chunks, sentences
from bakeoff_providers.errors import InputError
from hypothesis import given
from hypothesis import strategies as st

from tests.errors import refuses

TEXT = "One two three. Four five six seven. Eight nine."


def _texts(strategy: ChunkStrategy, size: int, text: str = TEXT, title: str = "") -> list[str]:
    return [
        chunk.text
        for chunk in document_chunks(Document("d", text, title=title, chunking=DocumentChunking(strategy, size)))
    ]


def test_a_whole_document_keeps_its_id_and_gets_its_title() -> None:
    (chunk,) = document_chunks(Document("d", "text", title="Title"))
    assert (chunk.id, chunk.document, chunk.text) == ("d", "d", "Title text")


def test_title_and_text_are_fields_of_every_document() -> None:
    document = Document("1", "A cat sat.", "Cats", fields={"feel": "soft"})
    assert [chunk.text for name in ("title", "text", "feel") for chunk in document_chunks(document, name)] == [
        "Cats",
        "A cat sat.",
        "soft",
    ]
    assert [chunk.text for chunk in contender_chunks(document, "title", ContenderChunking("whole"))] == ["Cats"]
    with refuses(InputError, "'1'", "'titel'", place="field") as caught:
        document.whole("titel")
    assert "'title'" in str(caught.value.remedy)


def test_fixed_chunks_by_words() -> None:
    assert _texts("fixed", 4) == ["One two three. Four", "five six seven. Eight", "nine."]


def test_sentences_are_packed_while_they_fit() -> None:
    assert _texts("sentence", 7) == ["One two three. Four five six seven.", "Eight nine."]
    assert _texts("sentence", 4) == ["One two three.", "Four five six seven.", "Eight nine."]


def test_a_sentence_that_is_too_long_is_cut_by_words() -> None:
    assert _texts("sentence", 3) == ["One two three.", "Four five six", "seven.", "Eight nine."]


def test_semantic_chunks_are_cut_where_the_words_change() -> None:
    text = "Copper mines opened. Copper mines closed. Boats sail lakes. Boats cross lakes."
    assert _texts("semantic", 6, text) == [
        "Copper mines opened. Copper mines closed.",
        "Boats sail lakes. Boats cross lakes.",
    ]


def test_chunks_are_named_after_their_document_and_all_carry_its_title() -> None:
    chunks = document_chunks(Document("d", TEXT, title="T", chunking=DocumentChunking("fixed", 5)))
    assert [chunk.id for chunk in chunks] == ["d#0", "d#1"]
    assert {chunk.document for chunk in chunks} == {"d"}
    assert all(chunk.text.startswith("T ") for chunk in chunks)


def test_initials_and_abbreviations_end_no_sentence() -> None:
    assert sentences("Daniel C. Jackling came to St. George. He left.") == [
        "Daniel C. Jackling came to St. George.",
        "He left.",
    ]


@given(st.text(min_size=0, max_size=300), st.sampled_from(["fixed", "sentence", "semantic"]), st.integers(1, 20))
def test_no_word_is_lost_and_no_chunk_too_long(text: str, strategy: ChunkStrategy, size: int) -> None:
    chunks = _texts(strategy, size, text)
    assert " ".join(chunks).split() == text.split()
    assert all(len(chunk.split()) <= size for chunk in chunks)


def test_a_long_text_is_cut_where_its_subject_changes() -> None:
    """3,000 sentences: judging every gap against the whole text, again for every chunk, would take hours."""
    subjects = ("harbour ships sailing anchor", "forest trees growing leaves", "bread flour baking oven")
    text = " ".join(f"The {subjects[place // 5 % 3]} number{place}." for place in range(3000))
    chunks = _texts("semantic", 40, text)
    assert " ".join(chunks) == text
    assert all(len(chunk.split()) <= 40 for chunk in chunks)
    assert sum(len({word for word in ("ships", "trees", "flour") if word in chunk}) == 1 for chunk in chunks) > 590
