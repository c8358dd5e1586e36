"""Names on disk, as earlier versions wrote them: a cache or a snapshot of theirs must still be found."""

from __future__ import annotations

import pytest
from bakeoff.core.hashing import space_name, text_key


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("", "cae66941d9efbd404e4d88758ea67670"),
        ("One first", "b736d265de881b4484b1bd16eb2f51a1"),
        ("Zürich 日本", "72e321d725abf401bb0c658e7e455124"),
    ],
)
def test_keys_of_texts(text: str, key: str) -> None:
    assert text_key(text).hex() == key


def test_names_of_spaces_do_not_depend_on_the_order_of_fields() -> None:
    identity: dict[str, str | int | float | bool | None] = {
        "provider": "fake",
        "model": "m",
        "dimensions": 8,
        "normalised": True,
        "revision": None,
        "temperature": 0.5,
    }
    assert space_name(identity) == "22ac89d39cd555bd9cb52bacd153e1bb"
    assert space_name(dict(sorted(identity.items(), reverse=True))) == "22ac89d39cd555bd9cb52bacd153e1bb"
    assert space_name({}) == "44136fa355b3678a1146ad16f7e8649e"
