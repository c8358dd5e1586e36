from __future__ import annotations

import pytest
from bakeoff.core.task import Chunking, ChunkStrategy, Document
from bakeoff.embedding.chunking import chunks, sentences
from bakeoff.embedding.cutting import Cutting, cut
from bakeoff_providers.errors import InputError
from hypothesis import given
from hypothesis import strategies as st

TEXT = "One two three. Four five six seven. Eight nine."


def _texts(strategy: ChunkStrategy, size: int, text: str = TEXT, title: str = "") -> list[str]:
    return [piece.text for piece in chunks(Document("d", text, title=title, chunking=Chunking(strategy, size)))]


def test_a_whole_document_keeps_its_id_and_gets_its_title() -> None:
    (piece,) = chunks(Document("d", "text", title="Title"))
    assert (piece.id, piece.document, piece.text) == ("d", "d", "Title text")


def test_title_and_text_are_fields_of_every_document() -> None:
    document = Document("1", "A cat sat.", "Cats", fields={"feel": "soft"})
    assert [piece.text for name in ("title", "text", "feel") for piece in chunks(document, name)] == [
        "Cats",
        "A cat sat.",
        "soft",
    ]
    assert [piece.text for piece in cut(document, "title", Cutting("whole"))] == ["Cats"]
    with pytest.raises(InputError, match="document '1' has no field 'titel'") as caught:
        document.whole("titel")
    assert "'title'" in str(caught.value.remedy)


def test_fixed_pieces_by_words() -> None:
    assert _texts("fixed", 4) == ["One two three. Four", "five six seven. Eight", "nine."]


def test_sentences_are_packed_while_they_fit() -> None:
    assert _texts("sentence", 7) == ["One two three. Four five six seven.", "Eight nine."]
    assert _texts("sentence", 4) == ["One two three.", "Four five six seven.", "Eight nine."]


def test_a_sentence_that_is_too_long_is_cut_by_words() -> None:
    assert _texts("sentence", 3) == ["One two three.", "Four five six", "seven.", "Eight nine."]


def test_semantic_pieces_are_cut_where_the_words_change() -> None:
    text = "Copper mines opened. Copper mines closed. Boats sail lakes. Boats cross lakes."
    assert _texts("semantic", 6, text) == [
        "Copper mines opened. Copper mines closed.",
        "Boats sail lakes. Boats cross lakes.",
    ]


def test_pieces_are_named_after_their_document_and_all_carry_its_title() -> None:
    pieces = chunks(Document("d", TEXT, title="T", chunking=Chunking("fixed", 5)))
    assert [piece.id for piece in pieces] == ["d#0", "d#1"]
    assert {piece.document for piece in pieces} == {"d"}
    assert all(piece.text.startswith("T ") for piece in pieces)


def test_initials_and_abbreviations_end_no_sentence() -> None:
    assert sentences("Daniel C. Jackling came to St. George. He left.") == [
        "Daniel C. Jackling came to St. George.",
        "He left.",
    ]


@given(st.text(min_size=0, max_size=300), st.sampled_from(["fixed", "sentence", "semantic"]), st.integers(1, 20))
def test_no_word_is_lost_and_no_piece_too_long(text: str, strategy: ChunkStrategy, size: int) -> None:
    pieces = _texts(strategy, size, text)
    assert " ".join(pieces).split() == text.split()
    assert all(len(piece.split()) <= size for piece in pieces)


def test_a_long_text_is_cut_where_its_subject_changes() -> None:
    """3,000 sentences: judging every gap against the whole text, again for every piece, would take hours."""
    subjects = ("harbour ships sailing anchor", "forest trees growing leaves", "bread flour baking oven")
    text = " ".join(f"The {subjects[place // 5 % 3]} number{place}." for place in range(3000))
    pieces = _texts("semantic", 40, text)
    assert " ".join(pieces) == text
    assert all(len(piece.split()) <= 40 for piece in pieces)
    assert sum(len({word for word in ("ships", "trees", "flour") if word in piece}) == 1 for piece in pieces) > 590
