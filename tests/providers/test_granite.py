"""Granite on its real weights, against vectors by the pack's own binding (granite_reference.json says how)."""

from __future__ import annotations

import json
import random
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bakeoff_providers import granite, weights
from bakeoff_providers.base import Role
from bakeoff_providers.errors import InputError, Unavailable
from bakeoff_providers.granite import Granite

from tests.errors import refuses
from tests.providers.real_weights import TEXT, check_agreement, reference_vectors, require

PACK = "granite-embedding-30m-english-int8.hmsemb"


@pytest.fixture(scope="module")
def reference() -> dict[str, Any]:
    return reference_vectors("granite")


@pytest.fixture(scope="module")
def provider() -> Granite:
    require("granite")
    return Granite()


def test_vectors_agree_with_the_packs_own_binding(provider: Granite, reference: dict[str, Any]) -> None:
    check_agreement(provider, reference)


def test_the_reference_is_of_these_weights(provider: Granite, reference: dict[str, Any]) -> None:
    sha = reference["provenance"]["pack_sha256"]
    assert sha == weights.find_weights("granite").files[PACK]
    assert provider.identity(Role.QUERY)["revision"] == sha[:12]


def test_queries_and_documents_have_no_prompts_and_share_a_space(provider: Granite) -> None:
    assert (provider.card.prompt(Role.QUERY), provider.card.prompt(Role.DOCUMENT)) == ("", "")
    query, document = (provider.embed(["river"], role).vectors for role in Role)
    np.testing.assert_array_equal(query, document)


def test_a_text_is_cut_at_512_tokens(provider: Granite) -> None:
    exact = " ".join(["river"] * 510)  # the tokenizer adds one token at each end
    batch = provider.embed([exact, exact + " river"], Role.DOCUMENT)
    assert (batch.tokens, batch.truncated) == (1024, 1)
    np.testing.assert_allclose(batch.vectors[0], batch.vectors[1], atol=1e-6)


def test_a_vector_does_not_depend_on_its_batch(provider: Granite) -> None:
    rng = random.Random(42)
    texts = [" ".join(rng.choices(TEXT.split(), k=rng.choice([0, 1, 5, 40, 250]))) for _ in range(24)]
    alone = np.concatenate([provider.embed([text], Role.DOCUMENT).vectors for text in texts])
    np.testing.assert_allclose(provider.embed(texts, Role.DOCUMENT).vectors, alone, atol=1e-6)


def test_without_weights_it_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path))
    assert Granite.missing() == "run: bakeoff models pull granite"
    with refuses(Unavailable, "bakeoff models pull granite"):
        Granite().embed(["river"], Role.QUERY)


def test_a_pack_with_a_wrong_hash_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack = bytearray((weights.locate("granite") / PACK).read_bytes())
    pack[-1] ^= 1
    (tmp_path / PACK).write_bytes(pack)
    monkeypatch.setenv("BAKEOFF_HOME", str(tmp_path / "home"))
    with refuses(InputError, "SHA-256", place="granite-embedding-30m-english-int8.hmsemb"):
        weights.pull("granite", tmp_path)
    assert not weights.present("granite")


def test_it_is_not_fetched_from_the_hub() -> None:
    with refuses(InputError, place="--from"):
        weights.pull("granite", "hub")


def write_pack(path: Path, tensors: list[dict[str, Any]], data: bytes, tokenizer: bytes = b"{}") -> Path:
    header = {"arch": {"position_offset": 1}, "tokenizer_len": len(tokenizer), "tensors": tensors}
    text = json.dumps(header).encode()
    path.write_bytes(b"HMSEMB01" + struct.pack("<Q", len(text)) + text + tokenizer + data)
    return path


def test_the_pack_is_read_by_hand(tmp_path: Path) -> None:
    """Two groups of two bytes a row with a scale each; a table of positions whose first row is not used."""
    tensors = [
        {"name": "l0.ao.w", "dtype": "i8", "shape": [1, 4], "len": 12, "group": 2},
        {"name": "pos_emb", "dtype": "f32", "shape": [2, 1], "len": 8, "group": 0},
        {"name": "l0.qkv.b", "dtype": "f32", "shape": [3], "len": 12, "group": 0},
    ]
    data = struct.pack("<4b2f", 1, -2, 3, 127, 0.5, 0.25) + struct.pack("<2f", 7, 8) + struct.pack("<3f", 1, 2, 3)
    path = write_pack(tmp_path / "toy.hmsemb", tensors, data, b'{"version": 1}')
    read = granite.read_tensors(path)
    assert {name: values.tolist() for name, values in read.items()} == {
        "encoder.layer.0.attention.output.dense.weight": [[0.5, -1.0, 0.75, 31.75]],
        "embeddings.position_embeddings.weight": [[8.0]],
        "encoder.layer.0.attention.self.query.bias": [1.0],
        "encoder.layer.0.attention.self.key.bias": [2.0],
        "encoder.layer.0.attention.self.value.bias": [3.0],
    }
    assert granite.read_tokenizer(path) == '{"version": 1}'


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"PK\x03\x04 something else entirely", "HMSEMB01"),
        (b"HMSEMB01", "HMSEMB01"),
        (b"HMSEMB01" + struct.pack("<Q", 9) + b"not json!", "JSON"),
        (b"HMSEMB01" + b"\xff" * 8, "'int'"),
    ],
)
def test_what_is_no_pack_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    path = tmp_path / "bad.hmsemb"
    path.write_bytes(content)
    with pytest.raises(InputError, match=problem):
        granite.read_tensors(path)


def test_a_cut_pack_is_refused(tmp_path: Path) -> None:
    tensors = [{"name": "pos_emb", "dtype": "f32", "shape": [2, 1], "len": 8, "group": 0}]
    path = write_pack(tmp_path / "cut.hmsemb", tensors, struct.pack("<f", 7))
    with refuses(InputError, file=path):
        granite.read_tensors(path)


def test_an_unknown_layout_is_refused(tmp_path: Path) -> None:
    tensors = [{"name": "pos_emb", "dtype": "f16", "shape": [2, 1], "len": 4, "group": 0}]
    path = write_pack(tmp_path / "half.hmsemb", tensors, b"1234")
    with refuses(InputError, "pos_emb", file=path):
        granite.read_tensors(path)
